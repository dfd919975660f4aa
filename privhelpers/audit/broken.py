"""DP-SGD with one thing wrong each: what a reviewer of code, or an audit, must be able to find.

Each variant is trained by the same loop on the same notes and claims the same budget. None of them raises an
error, and most of them learn better than the run that keeps its promise.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from privhelpers import accounting
from privhelpers.accounting import PrivacySpent
from privhelpers.dpsgd import (
    ClippedGradients,
    PrivacyPlan,
    PrivateOptimizer,
    plan_privacy,
    poisson_draws,
    research,
)


class NoiseOff(PrivateOptimizer):
    """The noise was switched off for debugging, and stayed off."""

    def noise_deviation(self) -> float:
        """Return 0."""
        return 0.0


class NoiseDividedTwice(PrivateOptimizer):
    """The noise is divided by the batch size once with the sum, and once before."""

    def noise_deviation(self) -> float:
        """Return sigma C / B^2 where sigma C / B is right."""
        return super().noise_deviation() / self.expected_batch_size


class Unclipped(ClippedGradients):
    """Computes the factors of clipping as 1."""

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return 1 for every unit."""
        return torch.ones_like(norms)


class ClippingOff(PrivateOptimizer):
    """The norms are computed and logged, and nobody multiplies by the factors."""

    def make_engine(self, model: PreTrainedModel, *, max_grad_norm: float, memory: str) -> ClippedGradients:
        """Return an engine that sums gradients as they are."""
        return Unclipped(model, max_grad_norm=max_grad_norm, memory=memory)


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


_plan = functools.cache(plan_privacy)  # sealed and slow to calibrate: variants with one claim share it


@dataclass(frozen=True)
class Variant:
    """One way to train, and what is wrong with it.

    Attributes:
        name: in tables and files.
        fault: in words.
        make_optimizer, make_draws: what `dpsgd.train` is given.
        true_epsilon: from what the plan claims and the expected batch size, an upper bound on what the run
            spends; infinite for none.
        claim_share: part of the common claim that it claims: the clamp cuts nothing that is below it.
    """

    name: str
    fault: str
    make_optimizer: Callable[..., PrivateOptimizer] = PrivateOptimizer
    make_draws: Callable[..., Iterable[Sequence[int]]] = poisson_draws
    true_epsilon: Callable[[PrivacySpent, float], float] = lambda spent, _: spent.epsilon
    claim_share: float = 1.0

    @property
    def makers(self) -> dict[str, Callable[..., object]]:
        """What `dpsgd.train` must be given to train in this way."""
        return {"make_optimizer": self.make_optimizer, "make_draws": self.make_draws}

    def plan(self, target_epsilon: float, **settings: float) -> PrivacyPlan:
        """Return the plan of the variant's own claim; `settings` as of `dpsgd.plan_privacy`."""
        return _plan(target_epsilon=self.claim_share * target_epsilon, **settings)

    def spends(self, plan: PrivacyPlan) -> float:
        """Return an upper bound on the epsilon that the variant spends under a plan; infinite for none."""
        return self.true_epsilon(plan.spent, plan.expected_batch_size)

    def measured_noise(self, model: PreTrainedModel, plan: PrivacyPlan, seed: int) -> float:
        """Return the standard deviation of the noise on the mean gradient, measured on an empty draw."""
        private = self.make_optimizer(
            torch.optim.SGD(model.parameters(), lr=1.0),
            model,
            noise_multiplier=plan.spent.noise_multiplier,
            max_grad_norm=plan.max_grad_norm,
            expected_batch_size=plan.expected_batch_size,
            chance=research(seed),
        )
        private.noisy_mean([])
        return float(torch.cat([noise.flatten() for noise in private.gradients.values()]).std())


def _at(spent: PrivacySpent, sigma: float, accountant: str = "pld") -> float:
    settings = {"sample_rate": spent.sample_rate, "steps": spent.steps, "delta": spent.delta}
    return accounting.epsilon(noise_multiplier=sigma, **settings, accountant=accountant)


def _without_amplification(spent: PrivacySpent, _: float) -> float:
    return accounting.epsilon_without_amplification(
        noise_multiplier=spent.noise_multiplier,
        participations=math.ceil(spent.steps / max(1, round(1 / spent.sample_rate))),
        delta=spent.delta,
    )


VARIANTS = (
    Variant("honest", "nothing"),
    Variant("noise off", "no noise", NoiseOff, true_epsilon=lambda *_: math.inf),
    Variant(
        "noise / B twice",
        "noise divided by the batch size twice",
        NoiseDividedTwice,
        # An epsilon of hundreds needs no fine grid.
        true_epsilon=lambda spent, size: _at(spent, spent.noise_multiplier / size, "rdp"),
    ),
    Variant("clipping off", "gradients summed as they are", ClippingOff, true_epsilon=lambda *_: math.inf),
    Variant(
        "clamped noise",
        "noise multiplier cut down after calibration",
        NoiseClamped,
        true_epsilon=lambda spent, _: _at(spent, clamped_sigma(spent.noise_multiplier)),
        claim_share=0.25,
    ),
    Variant(
        "shuffled",
        "shuffled epochs accounted as Poisson draws",
        make_draws=shuffled_draws,
        true_epsilon=_without_amplification,
    ),
)
