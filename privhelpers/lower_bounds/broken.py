"""DP-SGD with one thing wrong each: what a reviewer of code, or an audit, must be able to find.

Each variant is trained by the same loop on the same notes and claims its budget like the honest run. None of
them raises an error.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from privhelpers import accounting
from privhelpers.dpsgd import ClippedGradients, PrivateOptimizer, Training


class NoiseOff(PrivateOptimizer):
    """The noise was switched off for debugging, and stayed off."""

    def noise_deviation(self) -> float:
        """Return 0."""
        return 0.0


class NoiseDividedTwice(PrivateOptimizer):
    """The noise is divided by the batch size once with the sum, and once before."""

    def noise_deviation(self) -> float:
        """Return sigma C / B^2 instead of sigma C / B."""
        return super().noise_deviation() / self.expected_batch_size


class Unclipped(ClippedGradients):
    """Computes the factors of clipping as 1."""

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return 1 for every unit."""
        return torch.ones_like(norms)


class ClippingOff(PrivateOptimizer):
    """The norms are computed and logged, and no gradient is multiplied by its factor."""

    clipping = Unclipped


class NoiseClamped(PrivateOptimizer):
    """The calibrated noise multiplier is cut down to what the report allows for budgets up to 1."""

    def noise_deviation(self) -> float:
        """Return the deviation at the clamped noise multiplier."""
        return super().noise_deviation() * clamped_sigma(self.noise_multiplier) / self.noise_multiplier


def clamped_sigma(sigma: float) -> float:
    """Return a noise multiplier after the report's clamp for a budget of 1 or less."""
    return min(sigma, accounting.clamped(sigma, target_epsilon=1.0))


def shuffled_draws(
    generator: torch.Generator, *, units: int, sample_rate: float, steps: int
) -> Iterator[Sequence[int]]:
    """Yield fixed batches of a fresh shuffle in every epoch: each unit exactly once, as a data loader does.

    Args:
        generator: of the shuffles.
        units: number of units, 1 or more.
        sample_rate: share of the units in a batch, in (0, 1].
        steps: number of batches.
    """
    batches = max(1, round(1 / sample_rate))
    for step in range(steps):
        if step % batches == 0:
            order = torch.randperm(units, generator=generator)
        yield order.tensor_split(batches)[step % batches].tolist()


@dataclass(frozen=True)
class _Variant:
    """One way to train, and what is wrong with it.

    Attributes:
        fault: in words.
        training: runs it, as `dpsgd.train` does the honest one.
        claim_share: part of the common claim that it claims: the clamp cuts nothing that is below it.
    """

    fault: str
    training: type[Training] = Training
    claim_share: float = 1.0


def _with_optimizer(kind: type[PrivateOptimizer]) -> type[Training]:
    return type(kind.__name__, (Training,), {"optimizer": kind})


class Shuffled(Training):
    """Trains on the batches of shuffled epochs, and claims what Poisson sampling spends."""

    draws = staticmethod(shuffled_draws)


VARIANTS = {
    "honest": _Variant("nothing"),
    "noise off": _Variant("no noise", _with_optimizer(NoiseOff)),
    "noise / B twice": _Variant("noise divided by the batch size twice", _with_optimizer(NoiseDividedTwice)),
    "clipping off": _Variant("gradients summed as they are", _with_optimizer(ClippingOff)),
    "clamped noise": _Variant(
        "noise multiplier cut down after calibration", _with_optimizer(NoiseClamped), claim_share=0.25
    ),
    "shuffled": _Variant("shuffled epochs accounted as Poisson draws", Shuffled),
}
