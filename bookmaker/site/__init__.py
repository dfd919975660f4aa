"""Stages the executed notebooks and builds the site; the only room that knows jupyter-book."""
