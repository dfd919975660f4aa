"""What a model is shown when an attacker looks inside it: batches of texts, under masks where it has any."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.models import Masking, encode, padded

Batch = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Features:
    """Numbers that describe how a model treats each text.

    Attributes:
        names: one for each number.
        values: shape [texts, numbers].
    """

    names: tuple[str, ...]
    values: np.ndarray


def is_masked(model: PreTrainedModel) -> bool:
    """Return whether a model predicts hidden tokens, and not the next one."""
    return type(model).__name__.endswith("ForMaskedLM")


def batches(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    masks: int = 1,
    seed: int = 0,
    batch_size: int = 32,
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Yield (which text each row is of, batch) with `attention_mask`, rows of similar length together.

    Args:
        texts: one or more.
        masks: rows of each text for a masked model, each under its own mask; a causal model has one.
        seed: of the masks, which no training has seen.
        batch_size: rows of a batch.

    Raises:
        InvalidParameter: there is no text, or one is empty.
    """
    validate.positive_int(masks=masks, batch_size=batch_size)
    if not texts:
        raise InvalidParameter("texts: there is nothing to look at")
    rows = encode(tokenizer, texts, max_length=model.config.max_position_embeddings).ids
    if is_masked(model):
        masking, generator = Masking.of(tokenizer), rng.make(seed, "attack masks")
        pairs = [(i, masking(row, generator)) for i, row in enumerate(rows) for _ in range(masks)]
    else:
        pairs = [(i, (row, row)) for i, row in enumerate(rows)]
    pairs.sort(key=lambda pair: len(pair[1][0]))
    for start in range(0, len(pairs), batch_size):
        chosen = pairs[start : start + batch_size]
        batch = padded([pair for _, pair in chosen], tokenizer.eos_token_id)
        yield np.array([i for i, _ in chosen]), {k: v.to(model.device) for k, v in batch.items()}


def mean_by_text(
    found: Iterator[tuple[np.ndarray, np.ndarray]], texts: int, names: Callable[[], tuple[str, ...]]
) -> Features:
    """Return the mean over each text's rows.

    Args:
        found: (which text each row is of, numbers of shape [rows, numbers]).
        texts: how many.
        names: of the numbers, known once they have been computed.
    """
    total, count = None, np.zeros(texts)
    for chosen, values in found:
        total = np.zeros((texts, values.shape[1])) if total is None else total
        np.add.at(total, chosen, values)
        np.add.at(count, chosen, 1)
    return Features(names(), total / count[:, None])
