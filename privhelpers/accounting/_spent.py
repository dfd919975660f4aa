"""A budget with everything that gives it meaning, and the words for how batches are drawn."""

from dataclasses import dataclass

from privhelpers.errors import InvalidParameter, SamplerMismatch
from privhelpers.text import rounded_up
from privhelpers.validate import shown

POISSON = "Poisson"
ADJACENCY = "add/remove"  # of one unit: what every accountant of this package counts
# What a training loop may do in place of Poisson sampling; no accountant of this room amplifies for it.
SAMPLERS = (POISSON, "shuffled epochs", "fixed batches", "all units")


@dataclass(frozen=True)
class PrivacySpent:
    """A budget with everything that gives it meaning.

    Attributes:
        epsilon: upper bound on the privacy loss, in nats.
        delta: probability left outside the bound, in (0, 1).
        noise_multiplier: standard deviation of the noise over the clipping norm.
        sample_rate: probability that a unit enters a step.
        steps: number of steps, noise-only ones included.
        accountant, sampler, unit, adjacency: the words that must be stated with an epsilon.
    """

    epsilon: float
    delta: float
    noise_multiplier: float
    sample_rate: float
    steps: int
    accountant: str = "pld"
    sampler: str = POISSON
    unit: str = "patient"
    adjacency: str = ADJACENCY

    def __str__(self) -> str:
        """Return the epsilon with everything that must be stated with it."""
        epsilon, delta = rounded_up(self.epsilon), rounded_up(self.delta)
        return (
            f"ε = {epsilon:g} at δ = {delta:g} ({self.adjacency} of one {self.unit}, "
            f"{self.sampler} sampling at rate {self.sample_rate:g}, {self.steps} steps, "
            f"noise multiplier {self.noise_multiplier:.4g}, {self.accountant.upper()} accountant)"
        )


@dataclass(frozen=True)
class Claimed:
    """A budget that a run claims and that was not counted: the proof does not cover a part of the run.

    It is not a `PrivacySpent` and has no epsilon of its own, so it cannot be reported or composed as one.

    Attributes:
        claim: what would have been spent if the proof covered all parts.
        parts: what the proof does not cover, in words, one or more.
    """

    claim: PrivacySpent
    parts: tuple[str, ...]

    def __str__(self) -> str:
        """Return that nothing was counted, why, and the claim."""
        return f"not counted ({'; '.join(self.parts)}); claimed: {self.claim}"


def require_poisson(sampler: str, *, accountant: str) -> None:
    """Refuse to account amplification by Poisson sampling for batches that were drawn in another way.

    Args:
        sampler: how the batches were drawn, one of `SAMPLERS`.
        accountant: the one that was going to count, for the message.

    Raises:
        InvalidParameter: the sampler is not in `SAMPLERS`.
        SamplerMismatch: it is not Poisson sampling.

    Source: Chua et al. 2024 for what shuffling can cost.
    """
    if not isinstance(sampler, str) or sampler not in SAMPLERS:
        raise InvalidParameter(f"sampler = {shown(sampler)}: must be one of {', '.join(SAMPLERS)}")
    if sampler != POISSON:
        raise SamplerMismatch(
            f"sampler = {sampler!r}: the {accountant} accountant assumes Poisson sampling, and its epsilon "
            "is not a bound for other batches; draw them with a Poisson sampler, or state "
            "accounting.epsilon_without_amplification(...)"
        )
