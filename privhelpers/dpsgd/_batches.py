"""From patients to micro-batches: a patient's notes enter a step together or not at all."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers.dpsgd._checks import LOSS, allowed, heard_by_name, keeping_nothing, repeatable
from privhelpers.dpsgd._losses import Batch, losses_by_row
from privhelpers.errors import InvalidParameter, UnsupportedModel
from privhelpers.models.encoding import encode, to_batch
from privhelpers.models.masking import Pair, padded

Row = list[int] | Pair  # the ids of a note; or what a masked model reads of it, and what it is asked
Rows = list[Row]
_PUBLIC, _PUBLIC_TEXT = 128, 'The ward "A" has 20 beds, 7 of them free; 3 patients: pain, fever, cough. '
_MOVE = 0.02  # standard deviation by which weights are moved: that of GPT-2's first ones


def encode_patients(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, notes_by_patient: Sequence[Sequence[str]]
) -> list[Rows]:
    """Return the token ids of every note of every patient.

    Raises:
        InvalidParameter: a patient has no notes, or what is there is no sequence of texts.
        UnsupportedModel: the model does not say how long a note may be.
    """
    length, rows = getattr(model.config, "max_position_embeddings", None), []
    if not isinstance(length, int) or length < 3:
        raise UnsupportedModel(
            f"{type(model).__name__}: its config names no max_position_embeddings; set it to the tokens that "
            "a note may have, 3 or more"
        )
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


def micro_batches(
    drawn: Sequence[Rows], max_rows: int, pad_id: int, *, attention_mask: bool = False
) -> Iterator[tuple[Batch, torch.Tensor]]:
    """Yield batches of whole patients, similar lengths together so that little padding is computed.

    Args:
        drawn: the rows of each patient of one Poisson draw; empty for an empty draw.
        max_rows: rows of a micro-batch, unless one patient alone has more.
        pad_id: token that fills short rows; it has no label.
        attention_mask: whether the model needs one, lest it reads the padding; `needs_mask` says so.

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


def public_rows(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Rows:
    """Return a long and a short row that no patient wrote, which a model is asked about before a run.

    What is decided by such rows follows from the model alone, and is the same whoever takes part.
    """
    length = max(3, min(model.config.max_position_embeddings - 2, _PUBLIC))  # RoBERTa reads two fewer
    long = encode(tokenizer, [_PUBLIC_TEXT * length], max_length=length).ids[0]
    return [long, long[: max(2, len(long) // 3)]]


def needs_mask(
    model: PreTrainedModel,
    rows: Sequence[Rows],
    pad_id: int,
    *,
    public: Rows,
    always: bool = False,
) -> bool:
    """Return whether padding needs an attention mask, lest a note's gradient depend on longer ones beside it.

    A causal model sees no token after the one it predicts from; one that reads in both directions does. It is
    asked with its weights moved at random: what the first ones hide, such as a branch that begins at zero or
    a weight that is no number, training can uncover. Rows that nobody wrote decide, since what all batches
    have must not follow from one patient's note; the longest and the shortest note can only refuse.

    Args:
        model: that is trained.
        rows: of every patient, token ids.
        pad_id: token that fills short rows.
        public: a long row and a short one, of nobody.
        always: whether there is a mask in any case, so that the model is only checked with one.

    Raises:
        UnsupportedModel: the model reads padding with a mask, too, or takes none, or cannot read the notes,
            or keeps something of them.
    """
    notes = sorted((row for patient_rows in rows for row in patient_rows), key=len)
    ragged = len(notes[0]) < len(notes[-1])
    tried = (True,) if always else (False, True)
    sound = (mask for mask in tried if not _padding_counts(model, *public, pad_id, mask))
    attention_mask = next(sound, None)
    if not ragged:  # no note is padded
        return bool(attention_mask) or always
    if attention_mask is None or _padding_counts(model, notes[-1], notes[0], pad_id, attention_mask):
        too = ", with an attention mask, too" * (attention_mask is None)
        raise UnsupportedModel(
            f"{type(model).__name__}: what it makes of a note depends on the padding behind it{too}, so a "
            "patient's gradient would depend on others; train on notes of one length"
        )
    return attention_mask


def _padding_counts(model: PreTrainedModel, long: Row, short: Row, pad_id: int, attention_mask: bool) -> bool:
    """Return whether what a model makes of a short row depends on the padding that a longer one needs."""
    batch, alone = (_collated(rows, pad_id, attention_mask) for rows in ([long, short], [short]))
    with keeping_nothing(model), heard_by_name(model), _moved(model):
        return _reads(model, batch, after=len(short)) or not _same(model, batch, alone)


@contextmanager
def _moved(model: PreTrainedModel) -> Iterator[None]:
    """Move every weight a little for a while, and put it back to the bit; what is no number becomes one."""
    kept = [(p, p.detach().clone()) for p in model.parameters() if p.is_floating_point()]
    generator = torch.Generator().manual_seed(0)
    try:
        with torch.no_grad():
            for weight, before in kept:
                step = torch.empty(before.shape).normal_(0, _MOVE, generator=generator)
                weight.copy_(torch.nan_to_num(before, 0.0, 0.0, 0.0) + step.to(before))
        torch.clear_autocast_cache()  # of the weights as they were
        yield
    finally:
        torch.clear_autocast_cache()
        with torch.no_grad():
            for weight, before in kept:
                weight.copy_(before)


def _same(model: PreTrainedModel, batch: Batch, alone: Batch) -> bool:
    """Return whether the loss of the second row is that of the same note without padding."""
    with repeatable(model), torch.no_grad():
        padded_loss, loss = (losses_by_row(model, one)[-1].double() for one in (batch, alone))
    return bool(abs(padded_loss - loss) <= allowed(model, LOSS) * abs(loss))


def _reads(model: PreTrainedModel, batch: Batch, after: int) -> bool:
    """Return whether the second row's loss has a derivative by what is looked up `after` its end."""
    looked_up: list[torch.Tensor] = []

    def listen(module: nn.Module, given: object, out: torch.Tensor) -> torch.Tensor:
        if out.shape[:2] != batch["input_ids"].shape:
            return out
        looked_up.append(out.detach().requires_grad_())
        return looked_up[-1]

    tables = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    hooks = [table.register_forward_hook(listen) for table in tables]
    try:
        with repeatable(model), torch.enable_grad():
            loss = losses_by_row(model, batch)[1]
            if not torch.isfinite(loss):
                return True
            slopes = torch.autograd.grad(loss, looked_up, allow_unused=True) if looked_up else []
    except TypeError:  # its forward pass takes no attention mask
        return True
    finally:
        for hook in hooks:
            hook.remove()
    return not looked_up or any(slope is not None and bool(slope[1, after:].any()) for slope in slopes)
