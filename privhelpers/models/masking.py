"""The masked objective: hide some tokens of a row, predict them, average a text's loss over several masks.

A causal model has one loss for one text. A masked model has one for each choice of hidden tokens, so its
loss is a draw: an attacker draws masks of their own, as many as they like, and takes the mean.

masking = Masking.of(tokenizer)
ids, labels = masking(row, rng.make(0, "masks"))
scores = score_masked(model, tokenizer, texts, masks=8, seed=0)      # .losses: mean over 8 masks

Source: Devlin et al. 2019, section 3.1 and appendix A.1.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.models.encoding import IGNORED, batches_by_length, encode, end_id
from privhelpers.models.scoring import Scores, evaluating, row_losses

Row = Sequence[int]
Pair = tuple[list[int], list[int]]  # the model's input, and its targets (IGNORED elsewhere)
SHOWN_AS_MASK, SHOWN_AS_RANDOM = 0.8, 0.1  # of the chosen tokens; the rest is shown as it is


def with_mask(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """Return a copy of a tokenizer that has a mask token; the ids of all other tokens stay."""
    copied = copy.deepcopy(tokenizer)
    if copied.mask_token_id is None:
        copied.add_special_tokens({"mask_token": "<|mask|>"})
    return copied


@dataclass(frozen=True)
class Masking:
    """How tokens are hidden.

    Attributes:
        mask_id: the token that replaces a hidden one.
        special: ids that are never chosen: the end token and the mask itself.
        vocabulary: number of tokens.
        share: of a text's tokens that are asked for, in (0, 1]; at least one is.
    """

    mask_id: int
    special: frozenset[int]
    vocabulary: int
    share: float = 0.15

    def __post_init__(self) -> None:
        """Refuse a share outside (0, 1]."""
        validate.fields(self, validate.probability, "share")

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, *, share: float = 0.15) -> "Masking":
        """Return the masking of a tokenizer that has a mask token.

        Raises:
            InvalidParameter: it has none; `with_mask` adds one.
        """
        if tokenizer.mask_token_id is None:
            raise InvalidParameter("tokenizer: has no mask token; models.with_mask(tokenizer) adds one")
        special = frozenset((end_id(tokenizer), tokenizer.mask_token_id))
        return cls(tokenizer.mask_token_id, special, len(tokenizer), share)

    def check(self, patients: Sequence[Sequence[Row]]) -> None:
        """Refuse a patient who has a row in which nothing can be masked.

        Raises:
            InvalidParameter: a row has no token that may be hidden.
        """
        for number, rows in enumerate(patients):
            if not all(set(row) - self.special for row in rows):
                raise InvalidParameter(
                    f"notes_by_patient[{number}]: a note has no token that may be hidden, so it has no loss; "
                    "leave it out"
                )

    def __call__(self, row: Row, generator: np.random.Generator) -> Pair:
        """Return the model's input and its targets, both as long as the row.

        Args:
            row: token ids.
            generator: draws which tokens are chosen and how they are shown.

        Raises:
            InvalidParameter: the row has no token that may be hidden.
        """
        places = [place for place, token in enumerate(row) if token not in self.special]
        if not places:
            raise InvalidParameter("row: has no token that may be hidden, so it has no loss")
        chosen = generator.permutation(places)[: max(1, round(self.share * len(places)))]
        ids, labels = list(row), [IGNORED] * len(row)
        kinds, others = generator.random(len(chosen)), generator.integers(self.vocabulary, size=len(chosen))
        for place, kind, other in zip(chosen.tolist(), kinds, others.tolist(), strict=True):
            labels[place] = row[place]
            if kind < SHOWN_AS_MASK:
                ids[place] = self.mask_id
            elif kind < SHOWN_AS_MASK + SHOWN_AS_RANDOM:
                ids[place] = other
        return ids, labels


def padded(pairs: Sequence[Pair], pad_id: int) -> dict[str, torch.Tensor]:
    """Return `input_ids`, `labels` and `attention_mask` of shape [rows, longest], padded on the right.

    A model that reads in both directions would see the padding without an attention mask.
    """
    longest = max(len(ids) for ids, _ in pairs)

    def filled(values: Sequence[Sequence[int]], filler: int) -> torch.Tensor:
        return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in values], dtype=torch.long)

    return {
        "input_ids": filled([ids for ids, _ in pairs], pad_id),
        "labels": filled([labels for _, labels in pairs], IGNORED),
        "attention_mask": filled([[1] * len(ids) for ids, _ in pairs], 0),
    }


def _scored_by_head(model: PreTrainedModel, states: torch.Tensor) -> torch.Tensor | None:
    """Return logits from last hidden states, shape [..., vocabulary], or None for an unknown family."""
    if model.config.model_type == "bert":
        return model.cls(states)
    if model.config.model_type == "distilbert":
        return model.vocab_projector(model.vocab_layer_norm(model.activation(model.vocab_transform(states))))
    return None


def masked_losses(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return the mean loss of each row over its hidden tokens, shape [rows], in nats per token.

    Only hidden tokens are scored against the vocabulary, the widest axis of a small model: the others have
    no loss, and a pass over all of them costs twice as much.
    """
    batch = {name: value.to(model.device) for name, value in batch.items()}
    labels = batch.pop("labels")
    row, place = (labels != IGNORED).nonzero(as_tuple=True)
    states = model.base_model(**batch).last_hidden_state
    logits = _scored_by_head(model, states[row, place])
    if logits is None:
        return row_losses(model(**batch).logits, labels, shift=False)
    losses = functional.cross_entropy(logits, labels[row, place], reduction="none")
    total = losses.new_zeros(len(labels)).index_add(0, row, losses)
    return total / torch.bincount(row, minlength=len(labels)).clamp_min(1)


@torch.inference_mode()
def losses_by_mask(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    masks: int = 8,
    seed: int = 0,
    batch_size: int = 64,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each text under each of several masks, and how many tokens a mask hides.

    The masks belong to the seed and the texts: two models are asked the same questions.

    Args:
        texts: one or more.
        masks: how many masks are drawn for each text, 1 or more.
        seed: of the masks.

    Returns:
        Losses in nats per token, shape [texts, masks], and hidden tokens, shape [texts].
    """
    masks, batch_size = validate.positive_int(masks=masks, batch_size=batch_size)
    if not texts:
        raise InvalidParameter("texts: there is nothing to score")
    masking = Masking.of(tokenizer)
    rows = encode(tokenizer, texts, max_length=model.config.max_position_embeddings).ids
    generator = rng.make(seed, "attack masks")
    losses, hidden = np.zeros((len(rows), masks)), np.zeros(len(rows), dtype=int)
    pairs = [[masking(row, generator) for _ in range(masks)] for row in rows]
    with evaluating(model):
        for chosen in batches_by_length(rows, max(1, batch_size // masks)):
            batch = padded([pair for i in chosen for pair in pairs[i]], end_id(tokenizer))
            batch_losses = masked_losses(model, batch).double().cpu().numpy()
            losses[chosen] = batch_losses.reshape(len(chosen), masks)
            hidden[chosen] = [int(np.sum(np.array(pairs[i][0][1]) != IGNORED)) for i in chosen]
    return losses, hidden


def score_masked(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    masks: int = 8,
    seed: int = 0,
) -> Scores:
    """Score texts under a masked model: the mean loss over fresh masks.

    Args:
        masks, seed: as in `losses_by_mask`.
    """
    losses, hidden = losses_by_mask(model, tokenizer, texts, masks=masks, seed=seed)
    rows = encode(tokenizer, texts, max_length=model.config.max_position_embeddings)
    return Scores(losses.mean(1), hidden, rows.truncated)
