"""Whether a tokenizer gives back the text that it is given.

What it loses, a model can neither know nor write. An audit would find none of it, whatever the model was
trained on, so it says so before it asks the model.
"""

import re
from collections import Counter
from collections.abc import Sequence

from privaudit._files import Note
from privaudit._memorization import naming_strings
from privaudit._target import Target
from privhelpers.errors import UnsupportedModel
from privhelpers.models._folder import called
from privhelpers.spelling import words
from privhelpers.text import found_in

LEAST = 0.5  # of words: with fewer, nothing found would mean nothing
MOST_LOST = 0.05  # of which nothing is said
_ASKED = 200  # notes
_TOKENS = 4  # of one character: bytes of UTF-8
_PART_OF_WORD = re.compile(r"\s\S*$")  # at the end of a text that was cut


def _there_and_back(target: Target, texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return what a model reads of some texts, and what its tokenizer makes of the tokens of that."""

    def rows_of(some: Sequence[str]) -> list[list[int]]:
        return target.tokenizer(some, add_special_tokens=False)["input_ids"]

    short = max(1, target.context // _TOKENS)
    rows = rows_of(texts)
    read = [
        text if len(row) < target.context else _PART_OF_WORD.sub("", text[:short])
        for text, row in zip(texts, rows, strict=True)
    ]
    return read, target.tokenizer.batch_decode(rows_of(read))


def require_text_back(target: Target, notes: Sequence[Note]) -> str:
    """Refuse a model whose tokenizer loses most of what the notes say; return in a sentence what it loses.

    Returns:
        The sentence, if more than one word in twenty does not return, or, with a causal model, more than one
        string in twenty that names a patient; otherwise "".

    Raises:
        UnsupportedModel: fewer than half of the words return.
    """
    asked = notes[:: max(1, -(-len(notes) // _ASKED))]
    read, back = _there_and_back(target, [note.text for note in asked])
    counts = {"words of the records": _words_kept(read, back)}
    if target.is_causal:
        counts["strings that name a patient"] = _strings_kept(asked, read, back)
    (kept, total), *_ = counts.values()
    if kept < LEAST * total:
        raise UnsupportedModel(
            f"{called(target.name)}: its tokenizer does not give a text back (of {total:,} words of the "
            f"records {kept:,} return); save to its folder the tokenizer, with its decoder, that the model "
            "was trained with"
        )
    lost = [
        f"{total - kept:,} of {total:,} {what}"
        for what, (kept, total) in counts.items()
        if kept < (1 - MOST_LOST) * total
    ]
    if not lost:
        return ""
    return (
        f"The tokenizer of {called(target.name)} does not give back {' and '.join(lost)}: what it loses, the "
        "model cannot write and no attack can find."
    )


def _words_kept(read: Sequence[str], back: Sequence[str]) -> tuple[int, int]:
    """Return how many words return, and of how many."""
    kept = total = 0
    for text, returned in zip(read, back, strict=True):
        given = Counter(words(text))
        total += given.total()
        kept += (given & Counter(words(returned))).total()
    return kept, total


def _strings_kept(asked: Sequence[Note], read: Sequence[str], back: Sequence[str]) -> tuple[int, int]:
    """Return how many strings that name a patient return, and of how many."""
    strings: dict[str, list[str]] = {}
    for value, patient in naming_strings(asked).items():
        strings.setdefault(patient, []).append(value)
    kept = total = 0
    for note, text, returned in zip(asked, read, back, strict=True):
        values = found_in(strings.get(note.patient, ()), text)
        total += len(values)
        kept += len(found_in(values, returned))
    return kept, total
