"""Whether a private step computes what it says: its clipped sum against one backward pass for each row."""

import torch
from dpsgd_cells import Scene
from dpsgd_variants import BOUND, SIGMA, Step

# What is wrong is wrong by percents; the flat float32 norms of Opacus and of the loop are off by up to 1e-4.
TOLERANCE = 1e-3


class Unusable(Exception):
    """A variant whose clipped sum is wrong."""


def one_by_one(scene: Scene, tied: bool) -> dict[str, torch.Tensor]:
    """Return the clipped sum from one backward pass for each row; norms in float64, no autocast."""
    model = scene.shared if tied else scene.model(tied=False)
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    sums = {name: torch.zeros_like(p) for name, p in parameters.items()}
    for row in range(scene.cell.rows):
        loss = model(**{name: value[row : row + 1] for name, value in scene.batch.items()}).loss
        gradients = torch.autograd.grad(loss, list(parameters.values()))
        norm = sum(float(g.double().square().sum()) for g in gradients) ** 0.5
        for total, gradient in zip(sums.values(), gradients, strict=True):
            total.add_(gradient, alpha=min(1.0, BOUND / norm))
    return sums


def error_of(variant: Step, expected: dict[str, torch.Tensor], tolerance: float = TOLERANCE) -> float:
    """Return the relative error of what a variant hands to AdamW when its noise is nothing.

    Raises:
        Unusable: the error is above the tolerance, or no number.
    """
    squares, rows = [], variant.rows

    def compare(*_: object) -> None:
        for name, parameter in variant.parameters.items():
            squares.append(float((rows * parameter.grad.double() - expected[name]).square().sum()))

    # Opacus wraps AdamW, the others call it.
    adam = getattr(variant.optimizer, "original_optimizer", variant.optimizer)
    handle = adam.register_step_pre_hook(compare)
    variant.set_noise(0.0)
    try:
        variant.step()
    finally:
        handle.remove()  # others share this optimizer
    variant.set_noise(SIGMA)
    error = (sum(squares) / sum(float(e.double().square().sum()) for e in expected.values())) ** 0.5
    if not error < tolerance:
        raise Unusable(f"its clipped sum is off by {error:.1e}")
    return error
