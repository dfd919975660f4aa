"""From a budget, or from a noise multiplier, to a plan.

>>> settings = {"target_delta": 1e-5, "sample_rate": 0.1, "steps": 100, "max_grad_norm": 0.5}
>>> plan = plan_privacy(target_epsilon=8.0, units=1000, **settings)
>>> plan.epsilon <= 8.0, plan.expected_batch_size
(True, 100.0)
"""

from privhelpers import accounting
from privhelpers.accounting import PrivacyPlan


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
        accountant: "pld", "rdp" or "prv".
        unit_name: whom the guarantee protects.

    Raises:
        InvalidParameter: a value is out of its range.
        BudgetExceeded: no noise multiplier that the search tries fits the budget.
    """
    sigma = accounting.calibrate_noise_multiplier(
        target_epsilon=target_epsilon,
        sample_rate=sample_rate,
        steps=steps,
        delta=target_delta,
        accountant=accountant,
    )
    plan = PrivacyPlan(
        target_epsilon=target_epsilon,
        delta=target_delta,
        noise_multiplier=sigma,
        sample_rate=sample_rate,
        steps=steps,
        max_grad_norm=max_grad_norm,
        units=units,
        accountant=accountant,
        unit=unit_name,
    )
    plan.require_budget()
    return plan


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
    >>> plan_with_noise(noise_multiplier=1e-20, units=1000, **settings).epsilon > 1e9
    True
    """
    run = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate, "steps": steps}
    spends = accounting.epsilon(**run, delta=target_delta, accountant=accountant)
    return PrivacyPlan(
        target_epsilon=spends,
        delta=target_delta,
        **run,
        max_grad_norm=max_grad_norm,
        units=units,
        accountant=accountant,
        unit=unit_name,
    )


def epsilon_curve(plan: PrivacyPlan) -> tuple[list[int], list[float]]:
    """Return (steps, epsilon spent by then) at up to twelve places of the run, the last included."""
    steps = sorted({max(1, round(plan.steps * i / 12)) for i in range(1, 13)})
    return steps, [plan.epsilon_after(step) for step in steps]
