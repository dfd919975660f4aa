"""From patients to micro-batches: a patient's notes enter a step together or not at all."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers.dpsgd._engine import Batch
from privhelpers.errors import InvalidParameter
from privhelpers.models.encoding import encode, to_batch
from privhelpers.models.masking import Pair, padded

Row = list[int] | Pair  # the ids of a note; or what a masked model reads of it, and what it is asked
Rows = list[Row]


def encode_patients(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, notes_by_patient: Sequence[Sequence[str]]
) -> list[Rows]:
    """Return the token ids of every note of every patient.

    Raises:
        InvalidParameter: a patient has no notes, or what is there is no sequence of texts.
    """
    length, rows = model.config.max_position_embeddings, []
    for number, notes in enumerate(notes_by_patient):
        name = f"notes_by_patient[{number}]"
        listed = isinstance(notes, Sequence) and not isinstance(notes, str)
        if not listed or not all(isinstance(note, str) for note in notes):
            raise InvalidParameter(
                f"{name}: must be a list of texts, one a note; put a single note into a list"
            )
        if not notes:
            raise InvalidParameter(f"{name}: a patient without notes is no privacy unit; leave it out")
        try:
            rows.append(encode(tokenizer, notes, max_length=length).ids)
        except InvalidParameter as error:
            raise InvalidParameter(f"{name}, {error}") from error
    return rows


def bounded(rows: Rows, limit: int, generator: np.random.Generator) -> Rows:
    """Return at most `limit` of a patient's rows, chosen anew at every step."""
    if len(rows) <= limit:
        return list(rows)
    return [rows[i] for i in generator.choice(len(rows), limit, replace=False)]


def micro_batches(drawn: Sequence[Rows], max_rows: int, pad_id: int) -> Iterator[tuple[Batch, torch.Tensor]]:
    """Yield batches of whole patients, similar lengths together so that little padding is computed.

    Args:
        drawn: the rows of each patient of one Poisson draw; empty for an empty draw.
        max_rows: rows of a micro-batch, unless one patient alone has more.
        pad_id: token that fills short rows; it has no label.

    Yields:
        (batch, unit of each row).
    """
    waiting = sorted(drawn, key=lambda rows: max(map(tokens, rows)))
    while waiting:
        taken, rows = 0, 0
        while taken < len(waiting) and (rows == 0 or rows + len(waiting[taken]) <= max_rows):
            rows, taken = rows + len(waiting[taken]), taken + 1
        chosen, waiting = waiting[:taken], waiting[taken:]
        unit = torch.tensor([u for u, patient_rows in enumerate(chosen) for _ in patient_rows])
        yield _collated([row for patient_rows in chosen for row in patient_rows], pad_id), unit


def tokens(row: Row) -> int:
    """Return how many tokens a row has."""
    return len(row[0]) if isinstance(row, tuple) else len(row)


def _collated(rows: Rows, pad_id: int) -> Batch:
    if isinstance(rows[0], tuple):
        return padded(rows, pad_id)
    ids, labels = to_batch(rows, pad_id)
    return {"input_ids": ids, "labels": labels}
