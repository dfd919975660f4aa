"""What a model shows to someone who has its weights: attention (S-AWBA) and gradients (S-GWBA), by text.

    inside = attention_features(model, tokenizer, texts)     # .values: [texts, layers * heads * 4]

The concentration of a head is the sum of a log a over the tokens that it looks at: minus the entropy, 0 when
all weight lies on one token and -log n, its minimum, when it is spread evenly over n. A LARGER value is MORE
concentrated; descriptions of the opposite contradict the formula next to them. The classifier
that learns from the features is in its chapter.

>>> round(float(concentration(torch.full((512,), 1 / 512))), 6)
-6.238325

Source: Jagannatha, Rawat and Yu 2021, sections 4.1.2 and 5.1.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.models import Masking, Scores, encode, padded, score, score_masked
from privhelpers.models.encoding import batches_by_length
from privhelpers.models.scoring import evaluating

Batch = dict[str, torch.Tensor]
SUMMARIES = ("mean", "median", "5%", "95%")  # over a text's tokens
# Of the whole norm: a gradient below it is zero except for rounding, such as for BERT's key biases.
_FLOOR = 1e-6


@dataclass(frozen=True)
class Features:
    """Numbers that describe how a model treats each text.

    Attributes:
        names: one for each number.
        values: shape [texts, numbers].
    """

    names: tuple[str, ...]
    values: np.ndarray


def _is_masked(model: PreTrainedModel) -> bool:
    return type(model).__name__.endswith("ForMaskedLM")


def score_texts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    masks: int = 4,
    seed: int = 0,
) -> Scores:
    """Return the losses of texts under a causal model, or their means over fresh masks under a masked one.

    Args:
        texts: one or more.
        masks, seed: for a masked model, as in `losses_by_mask`.
    """
    if _is_masked(model):
        return score_masked(model, tokenizer, texts, masks=masks, seed=seed)
    return score(model, tokenizer, texts)


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
    masks, batch_size = validate.positive_int(masks=masks, batch_size=batch_size)
    if not texts:
        raise InvalidParameter("texts: give one or more")
    rows = encode(tokenizer, texts, max_length=model.config.max_position_embeddings).ids
    if _is_masked(model):
        masking, generator = Masking.of(tokenizer), rng.make(seed, "attack masks")
        pairs = [(i, masking(row, generator)) for i, row in enumerate(rows) for _ in range(masks)]
    else:
        pairs = [(i, (row, row)) for i, row in enumerate(rows)]
    for chosen in batches_by_length([row for _, (row, _) in pairs], batch_size):
        batch = padded([pairs[n][1] for n in chosen], tokenizer.eos_token_id)
        yield np.array([pairs[n][0] for n in chosen]), {k: v.to(model.device) for k, v in batch.items()}


def _mean_by_text(rows: Iterator[tuple[np.ndarray, np.ndarray]], texts: int) -> np.ndarray:
    """Return the mean over each text's rows of (which text each row is of, numbers [rows, numbers])."""
    total, count = None, np.zeros(texts)
    for chosen, values in rows:
        total = np.zeros((texts, values.shape[1])) if total is None else total
        np.add.at(total, chosen, values)
        np.add.at(count, chosen, 1)
    return total / count[:, None]


def concentration(attention: torch.Tensor) -> torch.Tensor:
    """Return the sum of a log a over the last axis, in nats, with 0 log 0 = 0: from -log n to 0.

    Args:
        attention: distributions over the last axis.

    Source: Jagannatha et al. 2021, section 4.1.2, equation 3.
    """
    return torch.special.xlogy(attention, attention).sum(-1)


def _summaries(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    values_of: Callable[[Batch], torch.Tensor],
    **options: int,
) -> np.ndarray:
    """Return four summaries over each text's tokens of what `values_of` gives: [rows, kinds, tokens]."""

    def rows() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for chosen, batch in batches(model, tokenizer, texts, **options):
            values = values_of({name: batch[name] for name in ("input_ids", "attention_mask")}).double()
            # Padding counts in no summary; [rows, kinds, length] becomes [rows, kinds, 4].
            values = values.masked_fill(~batch["attention_mask"].bool()[:, None, :], torch.nan)
            quantiles = torch.nanquantile(values, values.new_tensor([0.5, 0.05, 0.95]), dim=-1)
            four = torch.cat([values.nanmean(-1)[None], quantiles]).permute(1, 2, 0)
            yield chosen, four.flatten(1).cpu().numpy()

    with evaluating(model), torch.inference_mode():
        return _mean_by_text(rows(), len(texts))


def attention_features(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    **options: int,
) -> Features:
    """Return four summaries of the concentration of every head over each text's tokens.

    Args:
        texts: one or more.
        options: masks, seed and batch_size of `batches`; the numbers are means over masks.

    Returns:
        Features of shape [texts, layers * heads * 4].

    Source: Jagannatha et al. 2021, section 4.1.2.
    """
    shape: list[int] = []

    def by_head(inputs: Batch) -> torch.Tensor:
        layers = model.base_model(**inputs, output_attentions=True).attentions
        shape[:] = [len(layers), layers[0].shape[1]]
        return torch.cat([concentration(layer) for layer in layers], 1)

    usual = model.config._attn_implementation
    model.set_attn_implementation("eager")  # the fused kernels keep no attention
    try:
        values = _summaries(model, tokenizer, texts, by_head, **options)
    finally:
        model.set_attn_implementation(usual)
    layers, heads = shape
    names = [f"layer {i}, head {j}, {s}" for i in range(layers) for j in range(heads) for s in SUMMARIES]
    return Features(tuple(names), values)


def gradient_features(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    layer_norms: Callable[[Batch], Mapping[str, torch.Tensor]],
    **options: int,
) -> Features:
    """Return the logarithm of the gradient norm of every parameter on each text.

    Args:
        texts: one or more.
        layer_norms: of a batch: by parameter name, the norm of each row's gradient, shape [rows];
            `dpsgd.ClippedGradients(model, max_grad_norm=1.0).layer_norms`.
        options: masks, seed and batch_size of `batches`; the numbers are means over masks.

    Returns:
        Features of shape [texts, parameters]; named after the parameters.

    Source: Jagannatha et al. 2021, section 4.1.2, with the logarithm of the norm in place of its square;
    Nasr, Shokri and Houmansadr 2019, section III, for gradients as features.
    """
    known: dict[str, None] = {}

    def norms_of() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for chosen, batch in batches(model, tokenizer, texts, **options):
            norms = layer_norms(batch)
            in_order = [name for name, _ in model.named_parameters() if name in norms]
            known.update(dict.fromkeys(in_order or norms))
            values = torch.stack([norms[name].double() for name in known], 1).cpu().numpy()
            whole = np.linalg.norm(values, axis=1, keepdims=True)
            yield chosen, np.log(np.maximum(values, _FLOOR * whole))

    with evaluating(model):
        values = _mean_by_text(norms_of(), len(texts))
    return Features(tuple(known), values)
