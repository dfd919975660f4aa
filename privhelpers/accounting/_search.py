"""The epsilon of a search: a random number of private runs, of which only the best is released.

One run with settings drawn at random satisfies a Rényi bound. The search draws a number K, makes K such runs
that do not depend on each other, and releases the best by a score that is computed from the run's own output.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from privhelpers import validate
from privhelpers.accounting import _renyi, _runs
from privhelpers.accounting._spent import PrivacySpent
from privhelpers.errors import InvalidParameter, SearchNotRandom
from privhelpers.text import rounded_up

_LAWS = {0.0: "logarithmic", 1.0: "geometric", math.inf: "Poisson"}
_MOST = 1e9  # expected runs, and finite shape


@dataclass(frozen=True)
class SearchSpent:
    """The budget of a search with everything that gives it meaning; it does not compose with a run.

    Attributes:
        epsilon: upper bound on the privacy loss of the released run, in nats.
        delta: probability left outside the bound, in (0, 1).
        run: each of the runs, which all spend at most this; its own epsilon and delta were not used.
        expected_runs: expected value of their number.
        shape: of the law of their number.
        order: of the Rényi divergence that gave the bound.
    """

    epsilon: float
    delta: float
    run: PrivacySpent
    expected_runs: float
    shape: float
    order: float

    def __str__(self) -> str:
        """Return the epsilon with everything that must be stated with it."""
        law = _LAWS.get(self.shape, f"truncated negative binomial, shape {self.shape:g},")
        return (
            f"ε = {rounded_up(self.epsilon):g} at δ = {rounded_up(self.delta):g} for the best of a random "
            f"number of runs ({law} with mean {self.expected_runs:g}, RDP accountant), each: {self.run}"
        )


def _check_law(expected_runs: float, shape: float) -> tuple[float, float]:
    expected_runs = validate.positive(expected_runs=expected_runs)
    if type(shape) is not float or shape != math.inf:
        shape = validate.non_negative(shape=shape)
    if not 1 <= expected_runs <= _MOST or _MOST < shape < math.inf:
        raise InvalidParameter(f"expected_runs = {expected_runs!r}, shape = {shape!r}: beyond 1 or {_MOST:g}")
    return expected_runs, shape


def _mean(log_gamma: float, shape: float) -> float:
    """Return the expected value of the truncated negative binomial law, γ given by its logarithm."""
    odds = math.expm1(-log_gamma)  # 1 / γ - 1
    # So near to logarithmic that a float64 does not tell.
    return odds / -log_gamma if shape < 1e-100 else shape * odds / -math.expm1(shape * log_gamma)


def stop_probability(*, expected_runs: float, shape: float) -> float:
    """Return the γ at which a truncated negative binomial number of runs has this expected value.

    The geometric law stops after each run with this probability.

    Args:
        expected_runs: 1 or more.
        shape: η, finite and 0 or more: 0 is the logarithmic law, 1 the geometric one.

    Returns:
        γ in (0, 1]; at 1 there is always one run.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Papernot and Steinke 2022, definition 1.

    >>> stop_probability(expected_runs=4, shape=1)
    0.25
    """
    expected_runs, shape = _check_law(expected_runs, shape)
    if shape == math.inf:
        raise InvalidParameter("shape = inf: a Poisson number of runs has no probability to stop")
    if expected_runs == 1 or shape == 1:
        return 1 / expected_runs
    return math.exp(brentq(lambda x: _mean(x, shape) - expected_runs, -50.0, -1e-200, xtol=1e-14))


def _deltas(alpha: NDArray, spent: NDArray, epsilons: NDArray) -> NDArray[np.float64]:
    """Return the least delta that a Rényi curve implies at each epsilon: `rdp_to_epsilon` the other way."""
    exponents = (alpha - 1) * (spent - epsilons[:, None] + np.log1p(-1 / alpha)) - np.log(alpha)
    return np.minimum(np.exp(np.minimum(exponents, 0.0).min(axis=1)), np.sqrt(-np.expm1(-spent.min())))


def search_rdp(
    *, orders: ArrayLike, rdp: ArrayLike, expected_runs: float, shape: float
) -> NDArray[np.float64]:
    """Return the Rényi divergence, at each order, of the best of a random number of runs.

    Args:
        orders: above 1, shape [orders].
        rdp: divergence of one run at each order, 0 or more and possibly infinite, in nats; it must hold for
            every setting that the search can draw.
        expected_runs: expected value of the number of runs, 1 or more.
        shape: of its law, 0 or more: 0 logarithmic, 1 geometric, math.inf Poisson, else truncated negative
            binomial. Under the Poisson law there may be no run, and then what is released must not depend
            on the data.

    Returns:
        Divergences in nats, shape [orders].

    Raises:
        InvalidParameter: a value is out of its range, or the rows differ in length.

    Source: Papernot and Steinke 2022, theorem 2 (truncated negative binomial; its second order ranges over
    `orders` and 1) and theorem 6 (Poisson).
    """
    expected_runs, shape = _check_law(expected_runs, shape)
    alpha, spent = _renyi.check_orders(orders), _renyi.check_divergences(rdp, orders)
    once = spent + math.log(expected_runs) / (alpha - 1)
    if shape == math.inf:
        return once + expected_runs * _deltas(alpha, spent, np.log1p(1 / (alpha - 1)))
    log_inverse = -math.log(stop_probability(expected_runs=expected_runs, shape=shape))
    # At order 1 the first term is 0 times a divergence that is finite if any other is.
    second = np.min((1 - 1 / alpha) * spent + log_inverse / alpha)
    return once + (1 + shape) * min(second, log_inverse)


def search_epsilon(
    run: PrivacySpent, *, expected_runs: float, shape: float | None, delta: float
) -> SearchSpent:
    """Return the budget of a search that draws its number of runs at random and releases the best.

    Args:
        run: what one run spends, whatever settings it draws: the noise, rate and steps must be the
            costliest. Poisson sampling, add/remove adjacency; its epsilon and delta are not used.
        expected_runs: expected value of the number of runs, 1 or more.
        shape: of its law, as of `search_rdp`; None is a fixed number, which is refused.
        delta: of the released run, in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range.
        SamplerMismatch: the batches of a run were not drawn by Poisson sampling.
        SearchNotRandom: the number of runs is fixed; the message has the epsilon of their composition.

    Source: as `search_rdp`, and `rdp_to_epsilon` for the conversion.

    >>> run = PrivacySpent(epsilon=6.77, delta=1e-5, noise_multiplier=1.5, sample_rate=0.04, steps=2249)
    >>> round(search_epsilon(run, expected_runs=8, shape=0, delta=1e-5).epsilon, 2)
    10.65
    """
    delta = validate.delta(delta)
    if shape is None:
        expected_runs = validate.positive_int(expected_runs=expected_runs)
        [run] = _runs.check_runs([run], "pld")
        together = _runs.compose_runs([replace(run, steps=run.steps * expected_runs)], delta=delta)
        raise SearchNotRandom(
            f"shape = None: the best of {expected_runs} fixed runs is not covered by the epsilon of one; it "
            f"spends what all of them together spend, ε = {rounded_up(together):g} at "
            f"δ = {rounded_up(delta):g} (accounting.compose_runs), or draw the number of runs at random"
        )
    [run] = _runs.check_runs([run], "rdp")
    curve = _renyi.rdp(noise_multiplier=run.noise_multiplier, sample_rate=run.sample_rate, steps=run.steps)
    orders = _renyi.RDP_ORDERS
    expected_runs, shape = _check_law(expected_runs, shape)
    curve = search_rdp(orders=orders, rdp=curve, expected_runs=expected_runs, shape=shape)
    bound = _renyi.rdp_to_epsilon(orders=orders, rdp=curve, delta=delta)
    return SearchSpent(bound.epsilon, delta, run, expected_runs, shape, bound.order)
