"""Hostile texts, every way in which a page comes to show one, and what a browser made of it."""
