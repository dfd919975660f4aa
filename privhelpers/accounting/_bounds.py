"""The epsilon of a run, by one of three accountants, every one an upper bound; and a lower bound by PLD.

One step is a Poisson-subsampled Gaussian mechanism, a run composes `steps` of them, and the neighboring
relation is add/remove of one privacy unit throughout.
"""

import functools
import logging
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import ndtri

from privhelpers import validate
from privhelpers.accounting import _peers, _renyi
from privhelpers.accounting._renyi import check_noise
from privhelpers.accounting._spent import POISSON, require_poisson
from privhelpers.errors import InvalidParameter

# dp-accounting remarks on rounding, and the bound is pessimistic with or without it.
logging.getLogger("absl").setLevel(logging.ERROR)
ACCOUNTANTS = ("pld", "rdp", "prv")
# The grid of the privacy loss: so many points up to epsilon and in the standard deviation of one step's
# loss, unless one step's largest loss would then need more points than a laptop composes in a second.
POINTS_TO_EPSILON, POINTS_IN_SPREAD, MOST_POINTS = 5000, 20, 200_000
MOST_COMPOSED, MOST_STEPS = 1_000_000, 2_000_000  # points and steps of the whole run: seconds
TAIL = 10.0  # standard deviations of noise beyond which dp-accounting cuts
_BISECTED = 1e-6  # relative: what a bisection leaves above the least epsilon
_CONCEDED = 6e-4  # relative: about what a lower bound gives up to its grid
_LEFT_OUT = 1e-3  # share of delta that a lower bound gives up to it
_MOST_LOOPED = 10_000  # steps of which each is composed by itself, if all losses fall on one point


def check_run(*, noise_multiplier: float, sample_rate: float, steps: int, delta: float) -> dict[str, Any]:
    """Return a run of DP-SGD in Python's numbers, and refuse a wrong value by its name."""
    return {
        "noise_multiplier": check_noise(noise_multiplier),
        "sample_rate": validate.probability(sample_rate=sample_rate),
        "steps": validate.positive_int(steps=steps),
        "delta": validate.delta(delta),
    }


def check_accountant(accountant: str) -> None:
    """Refuse an accountant that is not in `ACCOUNTANTS`."""
    validate.one_of(ACCOUNTANTS, accountant=accountant)


def loss_sizes(noise_multiplier: float, sample_rate: float) -> tuple[float, float]:
    """Return standard deviation and largest value, in nats, of the privacy loss of one step."""
    inverse = 1 / noise_multiplier
    rest = math.log1p(-sample_rate) if sample_rate < 1 else -math.inf
    largest = float(np.logaddexp(rest, math.log(sample_rate) + TAIL * inverse + inverse**2 / 2))
    of_ratio = sample_rate * math.sqrt(math.expm1(min(inverse**2, 700.0)))  # which is no smaller
    return max(min(of_ratio, math.sqrt(sample_rate) * largest), sys.float_info.min), largest


def _composed_points(interval: float, *, spread: float, largest: float, steps: int) -> float:
    """Return about how many points of a grid dp-accounting keeps for a whole run.

    Its tail bound stops at moments of the order of 1 over the length of one step's list, so that the points
    of very many steps grow with their number and not with its root.
    """
    length, deviation = 2 + max(largest, 0.0) / interval, min(spread / interval, 1e30)
    variance = min(steps, 1e30) * (deviation**2 + deviation)  # a coarse grid adds to the losses' own
    return variance / length + 4 * length + 17 * math.sqrt(variance)


def grid_for(*, epsilon: float, noise_multiplier: float, sample_rate: float, steps: int) -> float:
    """Return the grid of the privacy loss, in nats, on which an epsilon near this one is tight.

    Args:
        epsilon: a rough value of the epsilon to come, 0 or more.
        noise_multiplier, sample_rate, steps: as in `epsilon`.
    """
    spread, largest = loss_sizes(noise_multiplier, sample_rate)
    finest = min(epsilon / POINTS_TO_EPSILON, spread / POINTS_IN_SPREAD) if epsilon else spread
    finest = max(finest, largest / MOST_POINTS)
    points = _composed_points(finest, spread=spread, largest=largest, steps=steps)
    return finest * max(1.0, points / MOST_COMPOSED)


def rounding(steps: int) -> float:
    """Return the probability that a composition in float64 may lose: its transforms are raised to a power.

    Measured against the Gaussian's exact delta, it loses about a fifth of that.
    """
    return (steps + 100) * sys.float_info.epsilon if steps < sys.maxsize else 1.0


def composable(interval: float, *, spread: float, largest: float, steps: int, delta: float) -> bool:
    """Return whether losses on a grid can be composed in seconds, and their tail told from what is rounded.

    Args:
        interval: of the grid, in nats.
        spread, largest: standard deviation and largest value of the loss of one step, in nats.
        steps, delta: as in `epsilon`.
    """
    points = _composed_points(interval, spread=spread, largest=largest, steps=steps)
    few = steps <= MOST_STEPS and points <= 2 * MOST_COMPOSED  # the points are an estimate
    return few and rounding(steps) <= delta / 2


@contextmanager
def in_float64(**values: float) -> Iterator[None]:
    """Turn what dp-accounting raises for losses beyond its range into a refusal."""
    try:
        yield
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise _beyond(**values) from error


def _beyond(**values: float) -> InvalidParameter:
    given = ", ".join(f"{name} = {validate.shown(value)}" for name, value in values.items())
    return InvalidParameter(
        f"{given}: no privacy loss distribution in float64, on this grid and in seconds, fits such a run; "
        "epsilon with accountant='rdp' bounds it from above"
    )


BEYOND_GRIDS = 1e6  # nats
_COARSEST = 0.02  # nats: grid of the privacy loss, even if its spread would do with less


def composed(losses: pld.PrivacyLossDistribution, steps: int) -> pld.PrivacyLossDistribution:
    """Return the privacy losses of `steps` adaptive releases.

    Raises:
        ArithmeticError: a float64 does not tell the points of the grid apart. What it adds to the probability
            of one release compounds to more than there is, on lists that grow to gigabytes.
    """
    added = float(losses.get_delta_for_epsilon(-math.inf)) - 1  # below every loss, delta is all probability
    if steps * added > 1:
        raise ArithmeticError("a grid that is too fine for a float64")
    return losses.self_compose(steps)


def _joined(grid: float, *, noise_multiplier: float, sample_rate: float) -> pld.PrivacyLossDistribution:
    """Return the losses of one step, each split between its two neighbors on the grid."""
    return pld.from_gaussian_mechanism(
        noise_multiplier,
        sampling_prob=sample_rate,
        value_discretization_interval=grid,
        use_connect_dots=True,
    )


def epsilon_of_losses(
    losses: pld.PrivacyLossDistribution, *, steps: int, delta: float, optimistic: bool = False
) -> float:
    """Return the epsilon of `steps` adaptive releases of one privacy loss distribution each.

    What rounding may lose counts against delta, or for it in an optimistic epsilon; see `composable`. There
    counts too what it adds to all probability: losses far below 0, which raise delta by that share at most.

    Raises:
        ArithmeticError: see `composed`.
    """
    run = composed(losses, steps)
    if optimistic:  # its search ends a little too high if losses have no exponential in float64
        total = max(1.0, float(run.get_delta_for_epsilon(-math.inf)))  # as in `composed`
        return _bisected(run, delta * total + rounding(steps)) * (1 - _BISECTED)
    left = delta - rounding(steps)
    try:
        return float(run.get_epsilon_for_delta(left))
    except OverflowError:
        return _bisected(run, left)


def _bisected(run: pld.PrivacyLossDistribution, delta: float) -> float:
    if run.get_delta_for_epsilon(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while run.get_delta_for_epsilon(high) > delta:
        low, high = high, 2 * high
        if high > 1e300:
            return math.inf
    while high - low > _BISECTED * high:
        middle = (low + high) / 2
        low, high = (middle, high) if run.get_delta_for_epsilon(middle) > delta else (low, middle)
    return high


def _rdp_epsilon(*, noise_multiplier: float, sample_rate: float, steps: int, delta: float) -> float:
    curve = _renyi.rdp(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps)
    return _renyi.rdp_to_epsilon(orders=_renyi.RDP_ORDERS, rdp=curve, delta=delta).epsilon


def unsampled_epsilon(mu: float, delta: float) -> float:
    """Return an epsilon of Gaussian releases that all units take part in, which sampling cannot raise.

    Args:
        mu: root of the sum over all steps of 1 / sigma^2, 0 or more.
        delta: in (0, 1).

    Source: Balle and Wang 2018, theorem 8, without its second term, which only lowers delta.
    """
    return max(0.0, mu * (mu / 2 - float(ndtri(delta))))


@functools.lru_cache(maxsize=1024)  # a plan, its training and a page's words ask for one run again and again
def _pld_epsilon(interval: float | None, **run: float) -> float:
    """Return PLD's epsilon, or a looser one if no grid fits the run."""
    by_rdp = _rdp_epsilon(**run)
    # Far beyond any guarantee RDP's least order is too large, and this one is the smaller.
    by_formula = min(
        by_rdp, unsampled_epsilon(math.sqrt(run["steps"]) / run["noise_multiplier"], run["delta"])
    )
    # No longer a guarantee of anything, and no grid fits its exponentials; or nothing is left to tighten.
    if by_rdp > BEYOND_GRIDS or by_rdp == 0:
        return by_formula
    step = {name: run[name] for name in ("noise_multiplier", "sample_rate", "steps")}
    grid = interval or grid_for(epsilon=by_rdp, **step)
    spread, largest = loss_sizes(run["noise_multiplier"], run["sample_rate"])
    if not composable(grid, spread=spread, largest=largest, steps=run["steps"], delta=run["delta"]):
        return by_formula
    try:
        with in_float64(**run):
            losses = _joined(grid, noise_multiplier=run["noise_multiplier"], sample_rate=run["sample_rate"])
            # All are upper bounds: if a loss is too large for its grid, another one is the smaller.
            return min(by_formula, epsilon_of_losses(losses, steps=run["steps"], delta=run["delta"]))
    except InvalidParameter:  # a float64 does not tell the losses, or their places, apart
        return by_formula


def epsilon(
    *,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    delta: float,
    accountant: str = "pld",
    sampler: str = POISSON,
    interval: float | None = None,
) -> float:
    """Return the epsilon that `steps` Poisson-subsampled Gaussian steps spend, add/remove adjacency.

    Args:
        noise_multiplier: noise standard deviation over the clipping norm, greater than 0.
        sample_rate: probability that a unit takes part in a step, in (0, 1].
        steps: number of steps, 1 or more; steps whose draw was empty count too.
        delta: in (0, 1).
        accountant: "pld" (tight upper bound, the default), "rdp" (looser, by hand) or "prv" (Opacus).
        sampler: how the batches were drawn; anything but "Poisson" is refused.
        interval: grid of the privacy loss in nats, PLD only; finer is tighter and slower. Left out,
            `grid_for` chooses it.

    If no grid fits the run (a delta near what float64 rounds, millions of steps, losses beyond
    float64, an epsilon above a million), PLD gives way to the smaller of two that bound it too: RDP, and
    Gaussian noise without sampling.

    Raises:
        InvalidParameter: a value is out of its range.
        SamplerMismatch: the batches were not drawn by Poisson sampling.

    Source: Koskela, Jalko and Honkela 2020, and Doroshenko et al. 2022 (PLD); Mironov, Talwar and Zhang
    2019 (RDP); Gopi, Lee and Wutschitz 2021 (PRV).

    >>> round(epsilon(noise_multiplier=1.5, sample_rate=0.04, steps=2249, delta=1e-5), 2)
    6.77
    """
    run = check_run(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps, delta=delta)
    check_accountant(accountant)
    require_poisson(sampler, accountant=accountant)
    if interval is not None:
        interval = validate.positive(interval=interval)
    if accountant == "rdp":
        return _rdp_epsilon(**run)
    if accountant == "prv":
        return _peers.opacus_epsilon("prv", **run)
    return _pld_epsilon(interval, **run)


def epsilon_lower(*, noise_multiplier: float, sample_rate: float, steps: int, delta: float) -> float:
    """Return an epsilon that `steps` Poisson-subsampled Gaussian steps spend at least, by PLD.

    The grid of `epsilon` splits a loss L between its two neighbors, L + N, so that neither of the two
    probabilities that it compares changes: E[exp(-N)] = 1. So N has a range of one interval h and a mean of
    at most h^2 / 8, and by Hoeffding's inequality N of all steps together exceeds T h^2 / 8 +
    h sqrt(T log(1/c) / 2) with probability c at most. That comes off epsilon, and c is added to delta.

    Args:
        noise_multiplier, sample_rate, steps, delta: as in `epsilon`.

    Returns:
        Nats, never above the exact epsilon of add/remove; below it by 1 part in 1,000 or less in some hundred
        steps at an ordinary delta, by more in many thousands or near what a float64 rounds.

    Raises:
        InvalidParameter: a value is out of its range, or no grid fits the run.

    Source: Doroshenko et al. 2022 (the split); Hoeffding 1963.

    >>> round(epsilon_lower(noise_multiplier=1.0, sample_rate=1.0, steps=1, delta=1e-5), 2)
    4.37
    """
    run = check_run(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps, delta=delta)
    noise_multiplier, sample_rate, steps, delta = run.values()
    step = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate}
    by_rdp, left_out = _rdp_epsilon(**run), _LEFT_OUT * delta
    if by_rdp == 0:
        return 0.0
    deviation = math.sqrt(steps * -math.log(left_out) / 2)  # in intervals
    wanted = _CONCEDED * min(by_rdp, BEYOND_GRIDS) / deviation
    spread, largest = loss_sizes(noise_multiplier, sample_rate)
    # Losses of 0 and more must be distinguishable from what a float64 rounds of their neighbors' sum.
    grid = max(
        grid_for(epsilon=wanted * POINTS_TO_EPSILON, **step, steps=steps),
        math.sqrt(100 * sys.float_info.epsilon * max(largest, 0.0)),
    )
    fits = composable(grid, spread=spread, largest=largest, steps=steps, delta=delta)
    if not fits or by_rdp > BEYOND_GRIDS:
        raise _beyond(**run)
    with in_float64(**run):
        joined = epsilon_of_losses(
            _joined(grid, **step), steps=steps, delta=delta + left_out, optimistic=True
        )
    return max(0.0, joined - grid * deviation - steps * grid**2 / 8)


def delta_at(*, epsilon: float, noise_multiplier: float, sample_rate: float, steps: int) -> float:
    """Return the delta that `steps` Poisson-subsampled Gaussian steps need at an epsilon, by PLD.

    At epsilon = 0 it is the total variation distance of the outputs with and without one unit: no test's true
    positive rate exceeds its false positive rate by more, and the likelihood-ratio test at 1 reaches it.

    Args:
        epsilon: 0 or more, in nats.
        noise_multiplier, sample_rate, steps: as in the function `epsilon`.

    Returns:
        An upper bound for add/remove, in [0, 1]; at epsilon = 0 it is tight to about 1 part in 1,000.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Koskela, Jalko and Honkela 2020; Doroshenko et al. 2022.

    >>> round(delta_at(epsilon=0.0, noise_multiplier=1.0, sample_rate=1.0, steps=1), 4)
    0.3829
    """
    epsilon = validate.non_negative(epsilon=epsilon)
    run = check_run(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps, delta=0.5)
    del run["delta"]
    noise_multiplier, sample_rate, steps = run.values()
    spread, largest = loss_sizes(noise_multiplier, sample_rate)
    grid = grid_for(epsilon=_COARSEST * POINTS_TO_EPSILON, **run)
    added_up = min(1.0, steps * sample_rate * math.erf(1 / (math.sqrt(8) * noise_multiplier)))
    if not composable(grid, spread=spread, largest=largest, steps=steps, delta=1.0):
        return added_up
    try:
        with in_float64(**run):
            losses = _joined(grid, noise_multiplier=noise_multiplier, sample_rate=sample_rate)
            delta = float(composed(losses, steps).get_delta_for_epsilon(epsilon))
    except InvalidParameter:  # losses too small for a float64: the steps' distances, added up
        return added_up
    return min(added_up, delta + rounding(steps))


def pld_bracket(
    *, noise_multiplier: float, sample_rate: float, steps: int, delta: float, interval: float = 1e-4
) -> tuple[float, float]:
    """Return an optimistic and a pessimistic epsilon: the true one lies between them.

    Both round the privacy loss to a grid, one down and the other up, so their distance shows what the grid
    costs; `epsilon` uses a better rounding whose result lies between the true value and the pessimistic one.

    Args:
        noise_multiplier, sample_rate, steps, delta: as in `epsilon`.
        interval: grid in nats, greater than 0.

    Raises:
        InvalidParameter: a value is out of its range, or too extreme for a grid.

    Source: Koskela, Jalko and Honkela 2020.
    """
    run = check_run(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps, delta=delta)
    noise_multiplier, sample_rate, steps, delta = run.values()
    interval = validate.positive(interval=interval)
    spread, largest = loss_sizes(noise_multiplier, sample_rate)
    looped = interval > largest and steps > _MOST_LOOPED
    if looped or not composable(interval, spread=spread, largest=largest, steps=steps, delta=delta):
        raise _beyond(interval=interval, **run)
    with in_float64(**run):
        low, high = (
            epsilon_of_losses(
                pld.from_gaussian_mechanism(
                    noise_multiplier,
                    pessimistic_estimate=pessimistic,
                    sampling_prob=sample_rate,
                    value_discretization_interval=interval,
                    use_connect_dots=False,
                ),
                steps=steps,
                delta=delta,
                optimistic=not pessimistic,
            )
            for pessimistic in (False, True)
        )
    return low, high if math.isfinite(high) else math.inf
