"""Attribute inference: rank the values of an attribute by their probability after a prompt about a person.

What counts is not how often the first place is right, but how much more often than for people the model has
never seen, and than for someone who always says the most frequent value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import validate
from privhelpers.attacks.extraction import Profile
from privhelpers.attacks.ranking import expected_rank
from privhelpers.errors import InvalidParameter
from privhelpers.models.encoding import batches_by_length, end_id
from privhelpers.models.scoring import continuation_log_p


@dataclass(frozen=True)
class Question:
    """An attacker's prompts about one patient.

    Attributes:
        patient_id: the patient.
        by_name: a prompt with the name and nothing else of the patient.
        in_context: the patient's note up to the diagnosis, with every identifier before it.
        conditions: the diagnoses in the patient's notes; any of them is a right answer.
    """

    patient_id: str
    by_name: str
    in_context: str
    conditions: tuple[str, ...]


def questions(notes: Sequence[dict], people: Sequence[Profile]) -> list[Question]:
    """Return one question a person, from the first of their notes that carries identifiers."""
    first: dict[str, dict] = {}
    for note in notes:
        if note["kind"] == "report":
            first.setdefault(note["patient_id"], note)
    asked = []
    for person in people:
        note = first[person.patient_id]
        opening = note["text"][: note["text"].index(note["condition"])]
        asked.append(
            Question(
                patient_id=person.patient_id,
                by_name=f"Patient {person.identifiers['name'][0]}, diagnosed with",
                in_context=opening.rstrip(),
                conditions=person.conditions,
            )
        )
    return asked


def _exclusive_ids(tokenizer: PreTrainedTokenizerBase, candidates: Sequence[str]) -> list[list[int]]:
    """Return the tokens of each candidate, of which none begins with another."""
    if len(candidates) < 2:
        raise InvalidParameter("candidates: needs 2 or more to rank")
    rows = tokenizer([" " + c for c in candidates], add_special_tokens=False)["input_ids"]
    for row, name in zip(rows, candidates, strict=True):
        if sum(other[: len(row)] == row for other in rows) > 1:
            raise InvalidParameter(f"candidates: another one begins with {name!r}, so they are not exclusive")
    return rows


def candidate_table(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prefixes: Sequence[str],
    candidates: Sequence[str],
    *,
    batch_size: int = 16,
) -> np.ndarray:
    """Return the log probability, in nats, that the text after each prefix goes on with each candidate.

    No candidate begins with another, so these are probabilities of exclusive events and can be compared
    although the candidates differ in length. A prefix is run once for all of them.

    Args:
        prefixes: without a blank at the end; candidates follow after one.
        candidates: 2 or more.
        batch_size: prefixes of one length that are run together.

    Returns:
        Shape [prefixes, candidates].
    """
    batch_size = validate.positive_int(batch_size=batch_size)
    rows = _exclusive_ids(tokenizer, candidates)
    # Short candidates apart from long ones, or most of the work would be padding.
    blocks = batches_by_length(rows, 11)
    starts = [[end_id(tokenizer), *tokenizer(p, add_special_tokens=False)["input_ids"]] for p in prefixes]
    by_length: dict[int, list[int]] = {}
    for number, start in enumerate(starts):
        by_length.setdefault(len(start), []).append(number)
    table = np.zeros((len(starts), len(rows)))
    groups = [g[i : i + batch_size] for g in by_length.values() for i in range(0, len(g), batch_size)]
    for chosen in groups:
        first, rest = continuation_log_p(model, [starts[n] for n in chosen], rows, blocks)
        table[chosen] = (first.double() + rest.double()).cpu().numpy()
    return table


def ranks(table: ArrayLike, candidates: Sequence[str], truths: Sequence[Sequence[str]]) -> np.ndarray:
    """Return the place of the best-placed true value of each row; 1 is the first.

    Equal scores count as in random order: the place is their mean over all orders, which need not be a whole
    number, and is 1 only if no wrong value scores as high.

    Args:
        table: scores, higher is more likely, shape [rows, candidates].
        candidates: names of the columns, all different.
        truths: the true values of each row, one or more, all of them candidates.

    Returns:
        Shape [rows].

    Raises:
        InvalidParameter: shapes differ, a name repeats or is not a candidate, or a score is not a number.
    """
    scores = validate.array("table", table, float)
    if scores.shape != (len(truths), len(candidates)) or len(set(candidates)) < len(candidates):
        raise InvalidParameter(
            f"table {scores.shape}: needs a row for each of {len(truths)} truths and a column for each of "
            f"{len(set(candidates))} different candidates"
        )
    unknown = [name for truth in truths for name in truth if name not in candidates]
    if unknown:
        raise InvalidParameter(f"truths: {unknown[0]!r} is not among the candidates")
    right = [np.isin(candidates, list(truth)) for truth in truths]
    return np.array([expected_rank(*row) for row in zip(scores, right, strict=True)])
