"""The least noise that keeps a run within its budget; only a sigma whose epsilon was computed is returned."""

import functools
import math
from collections.abc import Callable

from privhelpers import validate
from privhelpers.accounting.bounds import check_accountant, check_run, epsilon, grid_for, rdp_epsilon
from privhelpers.errors import InvalidParameter

_LARGEST = 2.0**60  # noise multiplier at which the search gives up
_ROUNDS = 60
_USUAL_SLOPE = 1.5  # of log epsilon against log sigma, until two points tell
# Gaps at which a cheaper bound hands over to the next: RDP to PLD on a coarse grid, that to the accountant.
_RDP_GAP, _COARSE_GAP, _COARSER = 0.02, 0.005, 8

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

    Works on log sigma: extrapolates while every trial is safe, interpolates once one was not. The end that
    stays put counts half each time (the Illinois rule), or a convex curve would let it stay for ever.
    """
    safe, unsafe, unsafe_over, weight = math.log(sigma), -math.inf, math.inf, over
    slope = _USUAL_SLOPE
    for _ in range(_ROUNDS):
        if over >= -gap:
            break
        aim = -gap / 2
        if not math.isfinite(unsafe):
            trial = safe + (over - aim) / slope
        elif not math.isfinite(unsafe_over):
            trial = (safe + unsafe) / 2
        else:
            trial = safe + (unsafe - safe) * (aim - weight) / (unsafe_over - weight)
            trial = min(max(trial, 0.98 * unsafe + 0.02 * safe), 0.02 * unsafe + 0.98 * safe)
        trial_over = excess(math.exp(trial))
        if trial_over > 0:
            unsafe, unsafe_over, weight = trial, trial_over, weight / 2
            continue
        slope = max((trial_over - over) / (safe - trial), 0.1) if trial < safe else slope
        safe, over, weight, unsafe_over = trial, trial_over, trial_over, unsafe_over / 2
    return math.exp(safe), over


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
        target_epsilon: budget of the whole run, greater than 0.
        sample_rate, steps, delta, accountant: as in `epsilon`.
        tolerance: relative gap allowed between the returned sigma's epsilon and the target, in (0, 1].

    Raises:
        InvalidParameter: a value is out of its range, or no noise reaches the target.

    Taught in: 04_renyi_accounting.

    >>> run = {"sample_rate": 0.04, "steps": 2000, "delta": 1e-5}
    >>> sigma = calibrate_noise_multiplier(target_epsilon=8.0, **run)
    >>> 7.99 < epsilon(noise_multiplier=sigma, **run) <= 8.0
    True
    """
    validate.positive(target_epsilon=target_epsilon)
    validate.probability(tolerance=tolerance)
    run = {"sample_rate": sample_rate, "steps": steps, "delta": delta}
    check_run(noise_multiplier=1.0, **run)
    check_accountant(accountant)

    def excess_of(bound: Callable[..., float]) -> Excess:
        return lambda sigma: math.log(max(bound(noise_multiplier=sigma, **run), 1e-12) / target_epsilon)

    by_rdp = excess_of(rdp_epsilon)
    sigma, _ = _descend(by_rdp, *_enough(by_rdp, 1.0), gap=tolerance if accountant == "rdp" else _RDP_GAP)
    if accountant == "rdp":
        return sigma
    if accountant == "pld":
        grid = grid_for(epsilon=target_epsilon, noise_multiplier=sigma, sample_rate=sample_rate)
        coarse = excess_of(functools.partial(epsilon, interval=_COARSER * grid))
        sigma, _ = _descend(coarse, *_enough(coarse, sigma), gap=max(tolerance, _COARSE_GAP))
    # An accountant with its own error term may sit above the cheaper one: a little more noise, then down.
    exact = excess_of(functools.partial(epsilon, accountant=accountant))
    return _descend(exact, *_enough(exact, sigma), gap=tolerance)[0]
