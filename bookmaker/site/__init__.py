"""Stages the executed notebooks and builds the site; the only room that knows jupyter-book."""

from bookmaker.site._quizzes import questions
from bookmaker.site._quoted import quoted, with_numbers
from bookmaker.site._staging import page_of, pages

__all__ = ["page_of", "pages", "questions", "quoted", "with_numbers"]
