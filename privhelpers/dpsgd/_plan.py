"""What a private run is going to do, fixed before any record is read: noise, sampling, steps.

>>> settings = {"target_delta": 1e-5, "sample_rate": 0.1, "steps": 100, "max_grad_norm": 0.5}
>>> plan = plan_privacy(target_epsilon=8.0, units=1000, **settings)
>>> plan.spent.epsilon <= 8.0, plan.expected_batch_size
(True, 100.0)
"""

from dataclasses import dataclass, replace

from privhelpers import accounting, validate
from privhelpers.accounting import PrivacySpent
from privhelpers.errors import BudgetExceeded, InvalidParameter
from privhelpers.ledger import epsilon_of
from privhelpers.text import rounded_up


@dataclass(frozen=True)
class PrivacyPlan:
    """The sealed settings of a private run.

    Attributes:
        target_epsilon: budget asked for; `spent.epsilon` does not exceed it.
        max_grad_norm: clipping bound C of one unit's gradient, Euclidean norm.
        units: number of privacy units, treated as public.
        spent: the budget that the plan uses, with noise multiplier, sample rate, steps and delta.
    """

    target_epsilon: float
    max_grad_norm: float
    units: int
    spent: PrivacySpent

    def require_budget(self) -> PrivacySpent:
        """Return what the plan spends, its epsilon computed anew, or refuse it.

        Raises:
            BudgetExceeded: the planned steps would spend more than `target_epsilon`.
            InvalidParameter: a value was changed to one that no plan has.
        """
        spent = self.spent
        if not isinstance(spent, PrivacySpent):
            raise InvalidParameter(f"spent = {validate.shown(spent)}: must be what plan_privacy gives")
        validate.non_negative(target_epsilon=self.target_epsilon)
        _check(spent.delta, self.max_grad_norm, self.units, spent.unit)
        if spent.adjacency != (counted := PrivacySpent.adjacency):
            raise InvalidParameter(
                f"adjacency = {validate.shown(spent.adjacency)}: the accountants count {counted}"
            )
        planned = epsilon_of(spent, spent.steps)
        if not planned <= self.target_epsilon:
            raise BudgetExceeded(
                f"noise_multiplier = {spent.noise_multiplier:g}: {spent.steps} steps would spend epsilon "
                f"{rounded_up(planned, 6):g}, more than target_epsilon = {self.target_epsilon:g}; a "
                "calibrated noise multiplier must not be lowered"
            )
        return replace(spent, epsilon=planned)

    @property
    def expected_batch_size(self) -> float:
        """Units expected in a step: the public number that the noisy sum is divided by."""
        return self.spent.sample_rate * self.units


def plan_privacy(
    *,
    target_epsilon: float,
    target_delta: float,
    sample_rate: float,
    steps: int,
    max_grad_norm: float,
    units: int,
    accountant: str = "pld",
    unit_name: str = "patient",
) -> PrivacyPlan:
    """Calibrate the noise to a budget and seal the result.

    Args:
        target_epsilon: greater than 0.
        target_delta: in (0, 1 / units): at 1 / units a mechanism may publish a random record whole.
        sample_rate: probability that a unit enters a step, in (0, 1].
        steps: 1 or more.
        max_grad_norm: clipping bound, greater than 0.
        units: number of privacy units, 1 or more.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    target_epsilon = validate.positive(target_epsilon=target_epsilon)
    target_delta, max_grad_norm, units = _check(target_delta, max_grad_norm, units, unit_name)
    sigma = accounting.calibrate_noise_multiplier(
        target_epsilon=target_epsilon,
        sample_rate=sample_rate,
        steps=steps,
        delta=target_delta,
        accountant=accountant,
    )
    spent = _spent(sigma, target_delta, sample_rate, steps, accountant, unit_name)
    if spent.epsilon > target_epsilon:
        raise InvalidParameter(
            f"target_epsilon = {target_epsilon:g}: calibration gave {rounded_up(spent.epsilon, 6):g}"
        )
    return PrivacyPlan(target_epsilon, max_grad_norm, units, spent)


def plan_with_noise(
    *,
    noise_multiplier: float,
    target_delta: float,
    sample_rate: float,
    steps: int,
    max_grad_norm: float,
    units: int,
    accountant: str = "pld",
    unit_name: str = "patient",
) -> PrivacyPlan:
    """Seal a run whose noise is given: for experiments that ask what a noise multiplier does.

    The budget is whatever the noise spends, and may be so large that it promises nothing.

    Args:
        noise_multiplier: noise standard deviation over the clipping norm, greater than 0.
        target_delta, sample_rate, steps, max_grad_norm, units: as in `plan_privacy`.

    Raises:
        InvalidParameter: a value is out of its range.

    >>> settings = {"target_delta": 1e-5, "sample_rate": 0.1, "steps": 100, "max_grad_norm": 0.5}
    >>> plan_with_noise(noise_multiplier=1e-20, units=1000, **settings).spent.epsilon > 1e9
    True
    """
    target_delta, max_grad_norm, units = _check(target_delta, max_grad_norm, units, unit_name)
    spent = _spent(noise_multiplier, target_delta, sample_rate, steps, accountant, unit_name)
    return PrivacyPlan(spent.epsilon, max_grad_norm, units, spent)


def _check(target_delta: float, max_grad_norm: float, units: int, unit_name: str) -> tuple[float, float, int]:
    max_grad_norm = validate.positive(max_grad_norm=max_grad_norm)
    units = validate.positive_int(units=units)
    target_delta = validate.delta(target_delta)
    if target_delta >= 1 / units:
        raise InvalidParameter(
            f"target_delta = {target_delta:g}: must be below 1 / {units}, one over the number of {unit_name}s"
        )
    return target_delta, max_grad_norm, units


def _spent(
    sigma: float, delta: float, sample_rate: float, steps: int, accountant: str, unit: str
) -> PrivacySpent:
    run = accounting.check_run(noise_multiplier=sigma, sample_rate=sample_rate, steps=steps, delta=delta)
    bound = accounting.epsilon(**run, accountant=accountant)
    return PrivacySpent(epsilon=bound, **run, accountant=accountant, unit=unit)


def epsilon_curve(plan: PrivacyPlan, points: int = 12) -> tuple[list[int], list[float]]:
    """Return (steps, epsilon spent by then) at up to `points` places of the run, the last included."""
    points = validate.positive_int(points=points)
    total = plan.spent.steps
    steps = sorted({max(1, round(total * i / points)) for i in range(1, points + 1)})
    return steps, [epsilon_of(plan.spent, step) for step in steps]
