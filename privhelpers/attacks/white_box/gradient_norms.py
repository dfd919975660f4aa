"""The norm of each parameter's gradient on one text (the attack called S-GWBA).

Training stops where the gradients of its own texts add up to little, and a text that was learnt by heart has
a small one of its own. The norms come from the private engine, which has them of every row from one pass and
never holds a gradient.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers.attacks.white_box.reading import Batch, Features, batches, mean_by_text

FLOOR = 1e-6  # of the whole norm: a gradient that is zero but for rounding, such as that of BERT's key biases


def gradient_features(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    layer_norms: Callable[[Batch], Mapping[str, torch.Tensor]],
    masks: int = 1,
    seed: int = 0,
    batch_size: int = 32,
) -> Features:
    """Return the logarithm of the gradient norm of every parameter on each text.

    Args:
        texts: one or more.
        layer_norms: of a batch: by parameter name, the norm of each row's gradient, shape [rows];
            `dpsgd.ClippedGradients(model, max_grad_norm=1.0).layer_norms`.
        masks, seed: for a masked model, as in `batches`; the numbers are means over masks.
        batch_size: rows of a batch.

    Returns:
        Features of shape [texts, parameters]; the names are those of the parameters.

    Source: Jagannatha et al. 2021, section 4.1.2, with the logarithm of the norm in place of its square;
    Nasr, Shokri and Houmansadr 2019, section III, for gradients as features.
    """
    known: dict[str, None] = {}

    def found() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for chosen, batch in batches(model, tokenizer, texts, masks=masks, seed=seed, batch_size=batch_size):
            norms = layer_norms(batch)
            in_order = [name for name, _ in model.named_parameters() if name in norms]
            known.update(dict.fromkeys(in_order or norms))
            values = torch.stack([norms[name].double() for name in known], 1).cpu().numpy()
            whole = np.linalg.norm(values, axis=1, keepdims=True)
            yield chosen, np.log(np.maximum(values, FLOOR * whole))

    was_training = model.training
    model.eval()
    try:
        return mean_by_text(found(), len(texts), lambda: tuple(known))
    finally:
        model.train(was_training)
