"""How a private run trains, and the Poisson sampling over patients, at the rate that is accounted."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from types import NoneType

import torch

from privhelpers import validate
from privhelpers.dpsgd._canaries import GradientCanaries
from privhelpers.errors import InvalidParameter
from privhelpers.models.masking import Masking
from privhelpers.models.precision import check_precision

_BITS = 2.0**-24  # between two neighbors among torch's uniform numbers of float32


def poisson_draws(
    generator: torch.Generator, *, units: int, sample_rate: float, steps: int
) -> Iterator[list[int]]:
    """Yield `steps` draws in which every unit takes part independently with probability `sample_rate`.

    A uniform number of torch has as many bits as its type, 24 in float32, so one is below a rate more often
    than it should be, and far more often below a small rate or in bfloat16. Here a number whose 24 bits do
    not tell whether it is below the rate gets 53 more.

    Args:
        generator: of the draws, on the processor.
        units: patients, 1 or more.
        sample_rate: in (0, 1].
        steps: draws, 0 or more.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    units = validate.positive_int(units=units)
    sample_rate = validate.probability(sample_rate=sample_rate)
    for _ in range(steps):
        uniform = torch.rand(units, generator=generator, dtype=torch.float32).double()
        undecided = torch.nonzero((uniform <= sample_rate) & (sample_rate < uniform + _BITS)).flatten()
        more = torch.rand(len(undecided), generator=generator, dtype=torch.float64)
        uniform[undecided] += _BITS * more
        yield torch.nonzero(uniform < sample_rate).flatten().tolist()


@dataclass(frozen=True)
class Settings:
    """How a private run trains; what it may spend is in its plan.

    Attributes:
        learning_rate: peak of the schedule of Adam, greater than 0.
        warm_up_steps: steps with a rising learning rate, 1 or more; it also falls linearly to zero.
        betas: of Adam. Less momentum than its default: with few, large and noisy steps an old gradient is
            worth less.
        notes_per_step: at most so many notes of a patient enter one step, 1 or more; those beyond are counted
            (`DPTrainingLog.notes_beyond_bound`).
        max_rows: rows of a physical micro-batch, 1 or more; changes speed and memory, and which numbers of
            the dropout a row meets; in a model without dropout, never more than rounding.
        objective: `models.Masking`, which masks each row again at every step; None: each token is predicted
            from those before it.
        matmul_precision: "highest", or "medium": linear layers multiply in bfloat16 if that is faster;
            norms, clipped sums and noise keep all digits, so that the bound on a unit holds as before.
        canaries: units without a text, for an audit; `canaries` of the log has the run's result.

    A run with a tokenizer, model or layer that `_supported` does not list has no `PrivacySpent` in its log,
    but what it `Claimed`, and its ledger counts steps and states no epsilon.

    Raises:
        InvalidParameter: a value is out of its range.
    """

    learning_rate: float
    warm_up_steps: int = 5
    betas: tuple[float, float] = (0.6, 0.999)
    notes_per_step: int = 4
    max_rows: int = 48
    matmul_precision: str = "highest"
    objective: Masking | None = None
    canaries: GradientCanaries | None = None

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        validate.fields(self, validate.positive, "learning_rate")
        validate.fields(self, validate.positive_int, "warm_up_steps", "notes_per_step", "max_rows")
        check_precision(self.matmul_precision)
        numbers = isinstance(self.betas, Sequence) and all(isinstance(beta, Real) for beta in self.betas)
        if not numbers or len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise InvalidParameter(f"betas = {validate.shown(self.betas)}: must be two numbers in [0, 1)")
        object.__setattr__(self, "betas", tuple(validate.finite(beta=beta) for beta in self.betas))
        if type(self.objective) not in (Masking, NoneType):
            raise InvalidParameter(f"objective = {validate.shown(self.objective)}: must be models.Masking")
        if not isinstance(self.canaries, GradientCanaries | NoneType):
            raise InvalidParameter(f"canaries = {validate.shown(self.canaries)}: must be GradientCanaries")

    def learning_rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of step 0, 1, ... of `steps`: linear warm-up, then decay to zero."""
        return self.learning_rate * min((step + 1) / self.warm_up_steps, (steps - step) / steps)

    def public(self) -> dict[str, object]:
        """Return what a fingerprint may contain, as plain values."""
        canaries = asdict(self.canaries) if self.canaries else None
        return {**vars(self), "objective": repr(self.objective), "canaries": canaries}
