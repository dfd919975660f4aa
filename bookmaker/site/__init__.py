"""Stages the executed notebooks and builds the site; the only room that knows jupyter-book."""

from bookmaker.site._checks import findings, machine_strings, protect
from bookmaker.site._hover_cards import detach
from bookmaker.site._quizzes import questions, quoted, with_numbers
from bookmaker.site._staging import contents, page_of, pages

__all__ = [
    "contents",
    "detach",
    "findings",
    "machine_strings",
    "page_of",
    "pages",
    "protect",
    "questions",
    "quoted",
    "with_numbers",
]
