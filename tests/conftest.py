"""Shared by all tests; its place puts `tests/` on the import path, where `toy_chain` lies."""
