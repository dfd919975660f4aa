"""From patients to micro-batches: a patient's notes enter a step together or not at all."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers.dpsgd._losses import Batch
from privhelpers.errors import InvalidParameter, UnsupportedModel
from privhelpers.models.encoding import encode, to_batch
from privhelpers.models.masking import Pair, padded

Row = list[int] | Pair  # the ids of a note; or what a masked model reads of it, and what it is asked
Rows = list[Row]
_PUBLIC, _PUBLIC_TEXT = 128, 'The ward "A" has 20 beds, 7 of them free; 3 patients: pain, fever, cough. '


def encode_patients(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, notes_by_patient: Sequence[Sequence[str]]
) -> list[Rows]:
    """Return the token ids of every note of every patient.

    Raises:
        InvalidParameter: a patient has no notes, or something other than a sequence of texts.
        UnsupportedModel: the model does not say how long a note may be.
    """
    length, rows = _positions(model), []
    for number, notes in enumerate(notes_by_patient):
        name = f"notes_by_patient[{number}]"
        listed = isinstance(notes, Sequence) and not isinstance(notes, str)
        if not listed or not all(isinstance(note, str) for note in notes):
            raise InvalidParameter(
                f"{name}: must be a list of texts, one a note; put a single note into a list"
            )
        if not notes:
            raise InvalidParameter(f"{name}: a patient without notes is not a privacy unit; leave it out")
        try:
            rows.append(encode(tokenizer, notes, max_length=length).ids)
        except InvalidParameter as error:
            raise InvalidParameter(f"{name}, {error}") from error
    return rows


def _positions(model: PreTrainedModel) -> int:
    """Return how many tokens a model reads; RoBERTa's positions begin after the position of its padding."""
    length = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(length, int) or length < 3:
        raise UnsupportedModel(
            f"{type(model).__name__}: its config names no max_position_embeddings; set it to the tokens that "
            "a note may have, 3 or more"
        )
    return length - model.config.pad_token_id - 1 if model.config.model_type == "roberta" else length


def bounded(rows: Rows, limit: int, generator: np.random.Generator) -> Rows:
    """Return at most `limit` of a patient's rows, chosen again at every step."""
    if len(rows) <= limit:
        return list(rows)
    return [rows[i] for i in generator.choice(len(rows), limit, replace=False)]


def micro_batches(
    drawn: Sequence[Rows], max_rows: int, pad_id: int, *, attention_mask: bool = False
) -> Iterator[tuple[Batch, torch.Tensor]]:
    """Yield batches of whole patients, similar lengths together so that little padding is computed.

    Args:
        drawn: the rows of each patient of one Poisson draw; empty for an empty draw.
        max_rows: rows of a micro-batch, unless one patient alone has more.
        pad_id: token that fills short rows; it has no label.
        attention_mask: whether the model needs one, to leave out the padding; see `reads_backward`.

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
        yield _collated([row for rows in chosen for row in rows], pad_id, attention_mask), unit


def tokens(row: Row) -> int:
    """Return how many tokens a row has."""
    return len(row[0]) if isinstance(row, tuple) else len(row)


def _collated(rows: Rows, pad_id: int, attention_mask: bool = False) -> Batch:
    if isinstance(rows[0], tuple):
        return padded(rows, pad_id)
    if attention_mask:
        return padded([(row, row) for row in rows], pad_id)
    ids, labels = to_batch(rows, pad_id)
    return {"input_ids": ids, "labels": labels}


def public_trial(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pad_id: int, *, attention_mask: bool
) -> tuple[Batch, list[Batch]]:
    """Return a batch of two notes that no patient wrote, a long and a short one, and each without padding.

    A model is checked with it before a run, so that a refusal follows from no patient's note.
    """
    length = max(4, min(_positions(model), _PUBLIC))
    long = encode(tokenizer, [_PUBLIC_TEXT * length], max_length=length).ids[0]
    rows = [long, long[: max(2, len(long) // 3)]]
    batch, *alone = (_collated(some, pad_id, attention_mask) for some in (rows, rows[:1], rows[1:]))
    return batch, alone
