"""What a private run is going to do, fixed before any record is read: noise, sampling, steps, epsilon."""

from dataclasses import dataclass, fields
from functools import cached_property

from privhelpers import validate
from privhelpers.accounting._bounds import check_accountant, check_run, epsilon
from privhelpers.accounting._spent import ADJACENCY, POISSON, PrivacySpent, require_poisson
from privhelpers.errors import BudgetExceeded, InvalidParameter
from privhelpers.text import rounded_up


@dataclass(frozen=True, kw_only=True)
class PrivacyPlan:
    """The settings of a private run; every value is checked, and `dataclasses.replace` checks again.

    Attributes:
        target_epsilon: budget, 0 or more, in nats; `require_budget` refuses a plan that spends more.
        delta: in (0, 1 / units): at 1 / units a mechanism may publish a random record whole.
        noise_multiplier: noise standard deviation over the clipping norm, greater than 0.
        sample_rate: probability that a unit enters a step, in (0, 1].
        steps: planned number of steps, 1 or more.
        max_grad_norm: clipping bound C of one unit's gradient, Euclidean norm, greater than 0.
        units: number of privacy units, treated as public, 1 or more.
        accountant: "pld", "rdp" or "prv".
        sampler, adjacency: what the accountants count: "Poisson" and "add/remove".
        unit: whom the guarantee protects, such as "patient"; printable.

    Raises:
        InvalidParameter: a value is of the wrong type or out of its range; the message names it.
        SamplerMismatch: the batches are not drawn by Poisson sampling.
    """

    target_epsilon: float
    delta: float
    noise_multiplier: float
    sample_rate: float
    steps: int
    max_grad_norm: float
    units: int
    accountant: str = "pld"
    sampler: str = POISSON
    adjacency: str = ADJACENCY
    unit: str = "patient"

    def __post_init__(self) -> None:
        """Check every value, and make 8 and 8.0 the same budget."""
        checked = check_run(**self._run)
        checked["target_epsilon"] = validate.non_negative(target_epsilon=self.target_epsilon)
        checked["max_grad_norm"] = validate.positive(max_grad_norm=self.max_grad_norm)
        checked["units"] = validate.positive_int(units=self.units)
        for name, value in checked.items():
            object.__setattr__(self, name, type(self).__annotations__[name](value))
        check_accountant(self.accountant)
        require_poisson(self.sampler, accountant=self.accountant)
        validate.one_of((ADJACENCY,), adjacency=self.adjacency)
        if not isinstance(self.unit, str) or not self.unit.isprintable() or not self.unit.strip():
            raise InvalidParameter(f"unit = {validate.shown(self.unit)}: must be a word such as 'patient'")
        if self.delta >= 1 / self.units:
            raise InvalidParameter(
                f"delta = {self.delta:g}: must be below 1 / {self.units}, one over the number of {self.unit}s"
            )

    @property
    def _run(self) -> dict[str, float]:
        names = ("noise_multiplier", "sample_rate", "steps", "delta")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def epsilon(self) -> float:
        """Upper bound on the privacy loss of the whole plan, in nats."""
        return epsilon(**self._run, accountant=self.accountant)

    def epsilon_after(self, steps: int) -> float:
        """Return the epsilon of the first `steps` steps, 0 to the planned number, in nats.

        A part of a run loses no more than the whole run, and its bound is kept below the bound of the whole,
        however the accountant rounds: steps that are reserved within the plan never exceed the budget.
        """
        if steps in (0, self.steps):
            return self.epsilon if steps else 0.0
        part = epsilon(**{**self._run, "steps": steps}, accountant=self.accountant)
        return min(part, self.epsilon)

    @property
    def spent(self) -> PrivacySpent:
        """What the whole plan spends, with everything that gives it meaning."""
        return PrivacySpent(**{field.name: getattr(self, field.name) for field in fields(PrivacySpent)})

    @property
    def expected_batch_size(self) -> float:
        """Units expected in a step: the public number that the noisy sum is divided by."""
        return self.sample_rate * self.units

    def require_budget(self) -> None:
        """Refuse a plan whose epsilon exceeds its budget.

        Raises:
            BudgetExceeded: the planned steps would spend more than `target_epsilon`.
        """
        if not self.epsilon <= self.target_epsilon:
            raise BudgetExceeded(
                f"noise_multiplier = {self.noise_multiplier:g}: {self.steps} steps would spend epsilon "
                f"{rounded_up(self.epsilon, 6):g}, more than target_epsilon = {self.target_epsilon:g}; a "
                "calibrated noise multiplier must not be lowered"
            )
