"""What a scrubber misses: a simulated scrubber of a given recall, and what it leaves of each identifier.

    found = miss_at_random(notes, 0.99, seed=0)
    rows = mentions(notes, found)                # one row an identifier: is it left, and after which words

Every identifier is missed with the same probability, whatever its form and its patient. That is the simplest
model of a recall; a real scrubber misses whole forms, so its misses come together.

>>> note = {"patient_id": "p1", "text": "Ann Hill, 000-00-1578", "spans": [
...     {"identifier": "name", "start": 0, "end": 8, "value": "Ann Hill"},
...     {"identifier": "ssn", "start": 10, "end": 21, "value": "000-00-1578"},
... ]}
>>> mentions([note], [[Span(0, 8, "name")]])[["prompt", "value", "left"]].values.tolist()
[['', 'Ann Hill', False], ['[NAME], ', '000-00-1578', True]]
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from privhelpers import rng, validate
from privhelpers.defenses._spans import Span, replace
from privhelpers.errors import InvalidParameter


def miss_at_random(notes: Sequence[Mapping], recall: float, *, seed: int) -> list[list[Span]]:
    """Return the identifiers that a simulated scrubber finds in each note, in their order.

    Args:
        notes: with `spans`, the true places of the identifiers.
        recall: probability that an identifier is found, each on its own, in (0, 1].
        seed: of the misses, 0 or more.

    Raises:
        InvalidParameter: the recall is out of its range.
    """
    recall = validate.probability(recall=recall)
    generator = rng.make(seed, f"misses/{recall}")
    return [
        [
            Span(true["start"], true["end"], true["identifier"])
            for true in note["spans"]
            if generator.random() < recall
        ]
        for note in notes
    ]


def mentions(notes: Sequence[Mapping], found: Sequence[Sequence[Span]]) -> pd.DataFrame:
    """Return one row for each identifier in the notes, in their order.

    Args:
        notes: with `patient_id`, `text` and `spans`, the true places of the identifiers.
        found: what a scrubber finds in each note, disjoint and in order, as `find_all` and `miss_at_random`
            return it.

    Returns:
        Columns: `patient`; `kind` of identifier; `prompt`, the scrubbed note up to the identifier or to what
        replaces it; `value`, as the note has it; and whether the scrubber `left` all of it.

    Raises:
        InvalidParameter: there are not as many lists of spans as notes.
    """
    if len(notes) != len(found):
        raise InvalidParameter(f"found: has {len(found)} lists of spans for {len(notes)} notes")
    rows = []
    for note, spans in zip(notes, found, strict=True):
        for true in note["spans"]:
            start, end = true["start"], true["end"]
            touching = [span for span in spans if span.start < end and start < span.end]
            cut = min([start, *(span.start for span in touching)])
            before = [span for span in spans if span.end <= cut]
            prompt = replace(note["text"][:cut], before).text
            rows.append((note["patient_id"], true["identifier"], prompt, true["value"], not touching))
    return pd.DataFrame(rows, columns=["patient", "kind", "prompt", "value", "left"])
