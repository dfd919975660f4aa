"""Finding the text whose gradient fits: among all texts by descent, or on a list by comparison."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from transformers import PreTrainedModel

from privhelpers import rng, validate
from privhelpers.attacks.inversion.gradients import Gradient
from privhelpers.errors import InvalidParameter


def match(
    model: PreTrainedModel,
    gradients: Sequence[Gradient],
    *,
    length: int,
    end: int,
    seed: int,
    rows: int = 1,
    steps: int = 60,
) -> torch.Tensor:
    """Return the texts that descent finds when it makes their gradients point the way of the given ones.

    Each position is a mixture over the vocabulary; the mixtures are read as inputs and predicted as targets,
    and at the end the token of largest weight is returned. Only the blocks' weights are compared, so it does
    not matter whether the embeddings are tied. All gradients are worked on side by side.

    Args:
        model: the weights that the gradients were taken at.
        gradients: each by name, of the mean loss of `rows` notes.
        length: tokens of a note, end tokens left out.
        end: id of the end token.
        seed: of the first mixtures.
        rows: notes behind each gradient.
        steps: of Adam, 1 or more.

    Returns:
        Token ids, shape [gradients, rows, length].

    Raises:
        InvalidParameter: there is no gradient, or a value is out of its range.

    Source: Zhu, Liu and Han 2019, algorithm 1, with mixtures of tokens and the cosine distance of Geiping et
    al. 2020.
    """
    validate.positive_int(length=length, rows=rows, steps=steps)
    if not gradients:
        raise InvalidParameter("gradients: give one or more")
    twin = copy.deepcopy(model)
    twin.set_attn_implementation("eager")  # the fused kernel has no second derivative
    chosen = {name: p.detach() for name, p in twin.named_parameters() if ".h." in name}
    goal = torch.stack([torch.cat([g[name].flatten() for name in chosen]) for g in gradients])
    table = twin.transformer.wte.weight.detach()
    ends = functional.one_hot(torch.full((rows, 1), end), len(table)).to(table)

    def loss(weights: dict[str, torch.Tensor], mixed: torch.Tensor) -> torch.Tensor:
        inputs = {"inputs_embeds": torch.cat([ends, mixed], 1) @ table, "use_cache": False}
        logits = functional_call(twin, weights, kwargs=inputs).logits
        return -(torch.cat([mixed, ends], 1) * logits.log_softmax(-1)).sum(-1).mean()

    each = vmap(grad(loss), in_dims=(None, 0))
    chance = rng.torch_generator(seed, "inversion/match")
    scores = 0.1 * torch.randn(len(gradients), rows, length, len(table), generator=chance)
    scores.requires_grad_()
    optimizer = torch.optim.Adam([scores], lr=0.2)
    for _ in range(steps):
        found = torch.cat([part.flatten(1) for part in each(chosen, scores.softmax(-1)).values()], 1)
        distance = 1 - functional.cosine_similarity(found, goal, dim=1)
        (scores.grad,) = torch.autograd.grad(distance.sum(), [scores])
        optimizer.step()
    return scores.detach().argmax(-1)


def pick_from_list(gram: np.ndarray, *, noise: float, draws: int, seed: int) -> np.ndarray:
    """Return whom the likeliest-candidate attacker picks, for every true note and every draw of the noise.

    The noisy gradient enters through its products with the candidates' gradients alone, and those are normal
    with the Gram matrix as covariance, so that no gradient needs to be kept.

    Args:
        gram: inner products of the candidates' clipped gradients, shape [candidates, candidates].
        noise: standard deviation on each entry of the gradient, greater than 0.
        draws: of the noise for each true note.
        seed: of the noise.

    Returns:
        Index of the picked candidate, shape [candidates, draws].
    """
    validate.positive(noise=noise)
    validate.positive_int(draws=draws)
    gram = np.asarray(gram, dtype=np.float64)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or not np.isfinite(gram).all():
        raise InvalidParameter(f"gram of shape {gram.shape}: must be a square matrix of finite numbers")
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normals = rng.make(seed, "inversion/list").standard_normal((draws, len(gram)))
    blurred = gram[:, None, :] + noise * normals @ root.T  # [true, draw, candidate]
    return (blurred - np.diag(gram) / 2).argmax(-1)
