"""The least noise that keeps a run within its budget; only a sigma whose epsilon was computed is returned."""

import functools
import math
import sys
from collections.abc import Callable

import numpy as np

from privhelpers import validate
from privhelpers.accounting._bounds import check_accountant, check_run, epsilon, grid_for
from privhelpers.accounting._moments import SampledGaussianMoments
from privhelpers.accounting._renyi import RDP_ORDERS, conversion_costs, with_costs
from privhelpers.errors import InvalidParameter

_LARGEST = 2.0**60  # noise multiplier at which the search gives up
_ROUNDS = 60
_USUAL_SLOPE = 2.5  # of log epsilon against log sigma, until two points tell
# Gaps at which a cheaper bound hands over to the next: RDP to PLD on a coarse grid, that to the accountant.
_RDP_GAP, _COARSE_GAP, _COARSER = 0.02, 0.005, 8

_SAME, _LONGEST_STEP = 1e-7, 0.7  # of log sigma: a bound of 0 must not send the search out of sight

Excess = Callable[[float], float]  # log(epsilon / target) at a noise multiplier: safe at or below 0


def _enough(excess: Excess, start: float) -> tuple[float, float]:
    """Return a safe noise multiplier of at least `start`, and its excess."""
    sigma, over = start, excess(start)
    while over > 0:
        sigma *= 2 if not math.isfinite(over) or over > 0.5 else 1.1
        if sigma > _LARGEST:
            raise InvalidParameter(f"target_epsilon: no noise multiplier up to {_LARGEST:g} reaches it")
        over = excess(sigma)
    return sigma, over


def _descend(excess: Excess, sigma: float, over: float, gap: float) -> tuple[float, float]:
    """Return the smallest safe noise multiplier found from a safe one on, and its excess.

    Works on log sigma: extrapolates while every trial is safe, interpolates once one was not. An end that
    stays put twice counts half (the Illinois rule), or a convex curve would let it stay forever.
    """
    safe, unsafe, slope = math.log(sigma), -math.inf, _USUAL_SLOPE
    safe_weight, unsafe_weight, last_was_safe = over, math.inf, True
    for _ in range(_ROUNDS):
        if over >= -gap or safe - unsafe < _SAME:  # close enough, or the bound jumps here
            break
        if not math.isfinite(unsafe):
            trial = safe + max((over + gap / 2) / slope, -_LONGEST_STEP)
        elif not math.isfinite(unsafe_weight):
            trial = (safe + unsafe) / 2
        else:
            share = (-gap / 2 - safe_weight) / (unsafe_weight - safe_weight)
            # Beyond a threshold order the bound explodes: such an end shows little of what lies between.
            trial = safe + (unsafe - safe) * min(max(share, 0.2), 0.98)
        trial_over = excess(math.exp(trial))
        if trial_over > 0:
            safe_weight = safe_weight if last_was_safe else safe_weight / 2
            unsafe, unsafe_weight, last_was_safe = trial, trial_over, False
        else:
            slope = min(max((trial_over - over) / (safe - trial), 0.1), 100.0)
            unsafe_weight = unsafe_weight / 2 if last_was_safe else unsafe_weight
            safe, over, safe_weight, last_was_safe = trial, trial_over, trial_over, True
    return math.exp(safe), over


def _guess(target: float, q: float, steps: int, delta: float) -> float:
    """Return a noise multiplier a little above the answer, from the leading term of the divergence."""
    root = math.sqrt(math.log(1 / delta) + target) - math.sqrt(math.log(1 / delta))
    leading = math.log1p(2 * root**2 / max(steps * q**2, sys.float_info.min))
    return 1.15 / math.sqrt(leading) if leading else _LARGEST


def _by_rdp(target: float, *, gap: float, sample_rate: float, steps: int, delta: float) -> float:
    """Return the least noise by RDP over `RDP_ORDERS`; what does not depend on the noise is computed once."""
    orders = np.array(RDP_ORDERS)
    moments = SampledGaussianMoments(orders, sample_rate=sample_rate)
    costs = conversion_costs(orders, delta=delta)

    def excess(sigma: float) -> float:
        spent = steps * moments(sigma) / (orders - 1)
        return math.log(max(float(with_costs(spent, costs, delta=delta).min()), 1e-12) / target)

    return _descend(excess, *_enough(excess, _guess(target, sample_rate, steps, delta)), gap=gap)[0]


@validate.within_float64
def calibrate_noise_multiplier(
    *,
    target_epsilon: float,
    sample_rate: float,
    steps: int,
    delta: float,
    accountant: str = "pld",
    tolerance: float = 1e-3,
) -> float:
    """Return the smallest noise multiplier, to `tolerance`, whose epsilon does not exceed the target.

    The cheap RDP bound finds a safe start, then the accountant itself walks down from there. Every value
    returned had its own epsilon computed by `epsilon` and found at or under the target, so no interpolation
    can overshoot the budget. Round it up if it must be rounded; lowering it voids the guarantee.

    Args:
        target_epsilon: budget of the whole run, greater than 0 and no less than delta: as a probability may
            move by delta anyway, a smaller one promises hardly more, and takes long to find.
        sample_rate, steps, delta, accountant: as in `epsilon`.
        tolerance: relative gap allowed between the returned sigma's epsilon and the target, in (0, 1].

    Raises:
        InvalidParameter: a value is out of its range, no noise reaches the target, or delta covers all runs
            in which a unit takes part at all, so that no noise is asked for.

    >>> run = {"sample_rate": 0.04, "steps": 2000, "delta": 1e-5}
    >>> sigma = calibrate_noise_multiplier(target_epsilon=8.0, **run)
    >>> 7.99 < epsilon(noise_multiplier=sigma, **run) <= 8.0
    True
    """
    target_epsilon = validate.positive(target_epsilon=target_epsilon)
    tolerance = validate.probability(tolerance=tolerance)
    run = check_run(noise_multiplier=1.0, sample_rate=sample_rate, steps=steps, delta=delta)
    del run["noise_multiplier"]
    sample_rate, steps, delta = run.values()
    check_accountant(accountant)
    if target_epsilon < delta:
        raise InvalidParameter(
            f"target_epsilon = {target_epsilon:g}: must be at least delta = {delta:g}, by which any "
            "probability may move as it is: choose a smaller delta"
        )
    takes_part = -math.expm1(steps * math.log1p(-sample_rate)) if sample_rate < 1 else 1.0
    if takes_part <= delta:
        raise InvalidParameter(
            f"delta = {delta:g}: a unit takes part in the run with probability {takes_part:g}, which delta "
            "covers, so that no noise at all would do: choose a smaller delta"
        )

    def excess_of(bound: Callable[..., float]) -> Excess:
        return lambda sigma: math.log(max(bound(noise_multiplier=sigma, **run), 1e-12) / target_epsilon)

    sigma = _by_rdp(target_epsilon, gap=tolerance if accountant == "rdp" else _RDP_GAP, **run)
    if accountant == "rdp":
        return sigma
    if accountant == "pld":
        grid = grid_for(epsilon=target_epsilon, noise_multiplier=sigma, sample_rate=sample_rate, steps=steps)
        coarse = excess_of(functools.partial(epsilon, interval=_COARSER * grid))
        sigma, _ = _descend(coarse, *_enough(coarse, sigma), gap=max(tolerance, _COARSE_GAP))
    # An accountant with its own error term may sit above the cheaper one: a little more noise, then down.
    exact = excess_of(functools.partial(epsilon, accountant=accountant))
    return _descend(exact, *_enough(exact, sigma), gap=tolerance)[0]
