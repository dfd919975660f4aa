"""The normal form of Unicode in which a model knows the letters of the notes.

A letter with an accent is one character (NFC) or a letter and a mark (NFD). Programs change one into the
other without a word, a byte-level tokenizer makes other tokens of each, and a model that was trained on one
form knows little of the other. So the notes are read in the form that the model predicts best.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from privaudit._sample import Sample
from privaudit._target import Target

Form = Literal["NFC", "NFD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD")
_ASKED = 100  # notes with such a letter


def rewrite(texts: Sequence[str], form: Form | None) -> list[str]:
    """Return texts in a normal form; as they are, where it is None."""
    return [unicodedata.normalize(form, text) for text in texts] if form else list(texts)


def form_the_model_knows(target: Target, sample: Sample, *, seed: int) -> Form | None:
    """Return the form that a model predicts best, or None if that is how the notes are written.

    Both sides are asked together, so that the choice knows nothing of who is a member.

    Args:
        target: the audited model.
        sample: the notes.
        seed: of the groups in which a masked model's tokens are hidden.
    """
    texts = [text for text in sample.texts if len({text, *(rewrite([text], form)[0] for form in FORMS)}) > 1]
    texts = texts[:: max(1, len(texts) // _ASKED)]
    if not texts:
        return None
    surprise: dict[Form | None, float] = {}
    for form in (None, *FORMS):
        written = rewrite(texts, form)
        if form and written == texts:
            continue
        if not target.readable(written).all():
            continue
        scored = target.score(written, seed=seed)
        read = [scored.part_read(number, text) for number, text in enumerate(written)]
        characters = sum(len(unicodedata.normalize("NFC", part)) for part in read)
        surprise[form] = -sum(float(log_p.sum()) for log_p in scored.log_p) / max(1, characters)
    return min(surprise, key=surprise.__getitem__)  # of equal ones the first: as the notes are written


def in_form(sample: Sample, form: Form | None) -> Sample:
    """Return a sample with its notes, and the strings that name a patient, in a normal form."""
    if form is None:
        return sample
    notes = [
        replace(note, text=text, identifiers=tuple(rewrite(note.identifiers, form)))
        for note, text in zip(sample.notes, rewrite(sample.texts, form), strict=True)
    ]
    return replace(sample, notes=notes)
