"""How concentrated a model's attention is, head by head (the attack called S-AWBA).

A head gives each token a distribution a over the tokens that it looks at. Its concentration is the sum of
a log a: minus the entropy. It is 0 when all weight lies on one token and -log n, its minimum, when the weight
is spread evenly over n, so a LARGER value is MORE concentrated; descriptions that say the opposite contradict
the formula they stand beside.

>>> round(float(concentration(torch.full((512,), 1 / 512))), 6)
-6.238325
>>> float(concentration(torch.tensor([0.0, 1.0, 0.0])))
0.0
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers.attacks.white_box.reading import Features, batches, mean_by_text

SUMMARIES = ("mean", "median", "5 %", "95 %")  # over a text's tokens


def concentration(attention: torch.Tensor) -> torch.Tensor:
    """Return the sum of a log a over the last axis, in nats, with 0 log 0 = 0: from -log n to 0.

    Args:
        attention: distributions over the last axis.

    Source: Jagannatha et al. 2021, section 4.1.2, equation 3.
    """
    return torch.special.xlogy(attention, attention).sum(-1)


def _summaries(values: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    """Return mean, median, 5th and 95th percentile over the real tokens.

    Args:
        values: shape [rows, heads, length].
        real: which tokens are no padding, shape [rows, length].

    Returns:
        Shape [rows, heads, 4].
    """
    values = values.masked_fill(~real[:, None, :], torch.nan)
    quantiles = torch.nanquantile(values, values.new_tensor([0.5, 0.05, 0.95]), dim=-1)
    return torch.cat([values.nanmean(-1)[None], quantiles]).permute(1, 2, 0)


def attention_features(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    masks: int = 1,
    seed: int = 0,
    batch_size: int = 32,
) -> Features:
    """Return four summaries of the concentration of every head over each text's tokens.

    Args:
        texts: one or more.
        masks, seed: for a masked model, as in `batches`; the numbers are means over masks.
        batch_size: rows of a batch.

    Returns:
        Features of shape [texts, layers * heads * 4].

    Source: Jagannatha et al. 2021, section 4.1.2.
    """
    usual = model.config._attn_implementation
    shape: list[int] = []

    def found() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for chosen, batch in batches(model, tokenizer, texts, masks=masks, seed=seed, batch_size=batch_size):
            inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
            layers = model.base_model(**inputs, output_attentions=True).attentions
            shape[:] = [len(layers), layers[0].shape[1]]
            values = torch.cat([concentration(layer) for layer in layers], 1)
            summaries = _summaries(values.double(), batch["attention_mask"].bool())
            yield chosen, summaries.flatten(1).cpu().numpy()

    def names() -> tuple[str, ...]:
        layers, heads = shape
        return tuple(
            f"layer {i}, head {j}, {s}" for i in range(layers) for j in range(heads) for s in SUMMARIES
        )

    was_training = model.training
    model.eval()
    model.set_attn_implementation("eager")  # the fused kernels keep no attention
    try:
        with torch.inference_mode():
            return mean_by_text(found(), len(texts), names)
    finally:
        model.set_attn_implementation(usual)
        model.train(was_training)
