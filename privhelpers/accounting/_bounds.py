"""The epsilon of a run, by one of three accountants; every one is an upper bound.

One step is a Poisson-subsampled Gaussian mechanism, a run composes `steps` of them, and the neighboring
relation is add/remove of one privacy unit throughout.
"""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld

from privhelpers import validate
from privhelpers.accounting import _peers, _renyi
from privhelpers.accounting._renyi import check_noise
from privhelpers.accounting._spent import POISSON, require_poisson
from privhelpers.errors import InvalidParameter

ACCOUNTANTS = ("pld", "rdp", "prv")
# The grid of the privacy loss: so many points up to epsilon and in the standard deviation of one step's
# loss, unless one step's largest loss would then need more points than a laptop composes in a second.
POINTS_TO_EPSILON, POINTS_IN_SPREAD, MOST_POINTS = 5000, 20, 200_000
TAIL = 10.0  # standard deviations of noise beyond which dp-accounting cuts


def check_run(*, noise_multiplier: float, sample_rate: float, steps: int, delta: float) -> None:
    """Refuse what is no run of DP-SGD, by the name of the value that is wrong."""
    check_noise(noise_multiplier)
    validate.probability(sample_rate=sample_rate)
    validate.positive_int(steps=steps)
    validate.delta(delta)


def check_accountant(accountant: str) -> None:
    """Refuse an accountant without a name of ours."""
    if not isinstance(accountant, str) or accountant not in ACCOUNTANTS:
        raise InvalidParameter(
            f"accountant = {validate.shown(accountant)}: must be one of {', '.join(ACCOUNTANTS)}"
        )


def grid_for(*, epsilon: float, noise_multiplier: float, sample_rate: float) -> float:
    """Return the grid of the privacy loss, in nats, on which an epsilon near this one is tight.

    Args:
        epsilon: a rough value of the epsilon to come, 0 or more.
        noise_multiplier, sample_rate: of one step, as in `epsilon`.
    """
    inverse = 1 / noise_multiplier
    spread = sample_rate * math.sqrt(math.expm1(min(inverse**2, 700.0)))
    exponent = TAIL * inverse + inverse**2 / 2
    rest = math.log1p(-sample_rate) if sample_rate < 1 else -math.inf
    largest = float(np.logaddexp(rest, math.log(sample_rate) + exponent))
    finest = min(epsilon / POINTS_TO_EPSILON, spread / POINTS_IN_SPREAD) if epsilon else spread
    return max(finest, largest / MOST_POINTS)


_BEYOND_GRIDS = 1e6  # nats
_COARSEST = 0.02  # nats: grid of the privacy loss where its spread would do with less


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence dp-accounting's remarks on rounding: the bound is pessimistic with or without them."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def epsilon_of_losses(losses: pld.PrivacyLossDistribution, *, steps: int, delta: float) -> float:
    """Return the epsilon of `steps` adaptive releases of one privacy loss distribution each."""
    with _quiet():
        run = losses.self_compose(steps)
        try:
            return float(run.get_epsilon_for_delta(delta))
        except OverflowError:  # its search passed losses whose exponential is no float64; bisect instead
            return _bisected(run, delta)


def _bisected(run: pld.PrivacyLossDistribution, delta: float) -> float:
    if run.get_delta_for_epsilon(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while run.get_delta_for_epsilon(high) > delta:
        low, high = high, 2 * high
        if high > 1e9:
            return math.inf
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if run.get_delta_for_epsilon(middle) > delta else (low, middle)
    return high


def _rdp_epsilon(*, noise_multiplier: float, sample_rate: float, steps: int, delta: float) -> float:
    curve = _renyi.rdp(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps)
    return _renyi.rdp_to_epsilon(orders=_renyi.RDP_ORDERS, rdp=curve, delta=delta).epsilon


def _pld_epsilon(run: dict, interval: float | None) -> float:
    by_rdp = _rdp_epsilon(**run)
    # No longer a guarantee of anything, and no grid can hold its exponentials; or nothing is left to tighten.
    if by_rdp > _BEYOND_GRIDS or by_rdp == 0:
        return by_rdp
    if interval is None:
        interval = grid_for(
            epsilon=by_rdp, noise_multiplier=run["noise_multiplier"], sample_rate=run["sample_rate"]
        )
    try:
        losses = pld.from_gaussian_mechanism(
            run["noise_multiplier"],
            sampling_prob=run["sample_rate"],
            value_discretization_interval=interval,
            use_connect_dots=True,
        )
    except (
        ValueError,
        TypeError,
    ):  # losses so small that a float64 does not tell them, or their places, apart
        return by_rdp
    # Both are upper bounds: where a loss is too large for its grid, RDP is the smaller one.
    return min(by_rdp, epsilon_of_losses(losses, steps=run["steps"], delta=run["delta"]))


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

    Raises:
        InvalidParameter: a value is out of its range.
        SamplerMismatch: the batches were not drawn by Poisson sampling.

    Source: Koskela, Jalko and Honkela 2020, and Doroshenko et al. 2022 (PLD); Mironov, Talwar and Zhang
    2019 (RDP); Gopi, Lee and Wutschitz 2021 (PRV).

    >>> round(epsilon(noise_multiplier=1.5, sample_rate=0.04, steps=2249, delta=1e-5), 2)
    6.77
    """
    run = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate, "steps": steps, "delta": delta}
    check_run(**run)
    check_accountant(accountant)
    require_poisson(sampler, accountant=accountant)
    if interval is not None:
        validate.positive(interval=interval)
    if accountant == "rdp":
        return _rdp_epsilon(**run)
    if accountant == "prv":
        return _peers.opacus_epsilon("prv", **run)
    return _pld_epsilon(run, interval)


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
    validate.non_negative(epsilon=epsilon)
    run = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate}
    check_run(**run, steps=steps, delta=0.5)
    try:
        losses = pld.from_gaussian_mechanism(
            noise_multiplier,
            sampling_prob=sample_rate,
            value_discretization_interval=grid_for(epsilon=_COARSEST * POINTS_TO_EPSILON, **run),
            use_connect_dots=True,
        )
    except (ValueError, TypeError):  # losses too small for a float64: the steps' distances, added up
        return min(1.0, steps * sample_rate * math.erf(1 / (math.sqrt(8) * noise_multiplier)))
    with _quiet():
        return min(1.0, float(losses.self_compose(steps).get_delta_for_epsilon(epsilon)))


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
        InvalidParameter: a value is out of its range.

    Source: Koskela, Jalko and Honkela 2020.
    """
    check_run(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps, delta=delta)
    validate.positive(interval=interval)
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
        )
        for pessimistic in (False, True)
    )
    return low, high if math.isfinite(high) else math.inf
