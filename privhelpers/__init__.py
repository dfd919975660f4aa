"""Helpers of the PrivAI-Leak book; every room is imported by its own name (see `DESIGN` in the README)."""

__version__ = "0.2.0"
