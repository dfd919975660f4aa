"""Moments of the sampled Gaussian: log E[r^order], r = 1 - q + q e^((2z - 1) / (2 s^2)), z ~ N(0, s^2).

A calibration needs the same orders and rate at many noise multipliers, so everything that does not depend
on the noise is computed once. Logarithms throughout: at order 8192 a moment would overflow a float64.

>>> moments = SampledGaussianMoments([2.0, 2.5], sample_rate=0.1)
>>> [round(float(value), 4) for value in moments(1.0)]  # the first is ln(1 + q^2 (e - 1))
[0.017, 0.0353]
"""

import functools
import math
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, gammasgn, log_ndtr

_FIRST_TERMS, _MOST_TERMS = 32, 2048  # of the series of a fractional order
_NEGLIGIBLE = 1e-8  # a term over the moment: what the series may stay above the truth
_ROUNDING = 4 * sys.float_info.epsilon  # relative, of each number that the logarithm of a term is made of
_NEARLY_WHOLE = 1e-12  # relative: so near a whole order the series' own gamma functions have poles


def _log_binomial(order: NDArray, k: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return logarithm and sign of the binomial coefficient, and the size of what the logarithm is made of.

    The sign alternates once k exceeds a real order.
    """
    parts = gammaln(order + 1), -gammaln(k + 1), -gammaln(order - k + 1)
    return sum(parts), gammasgn(order - k + 1), sum(map(np.abs, parts))


@functools.lru_cache(maxsize=64)
def _whole_terms(orders: tuple[float, ...]) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Return k, order - k, log binomial for k = 2 to order, all orders in one row, and the start of each."""
    lengths = [int(order) - 1 for order in orders]
    k = np.concatenate([np.arange(2.0, order + 1) for order in orders])
    order = np.repeat(np.array(orders), lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return k, order - k, _log_binomial(order, k)[0], starts


@functools.lru_cache(maxsize=64)
def _series_terms(orders: tuple[float, ...], terms: int) -> tuple[NDArray, ...]:
    """Return i, order - i, log binomial, its sign and the size of its parts, each [orders, terms]."""
    order, i = np.array(orders)[:, None], np.arange(float(terms))[None, :]
    return np.broadcast_to(i, (len(orders), terms)), order - i, *_log_binomial(order, i)


class _Whole:
    """Whole orders: 1 plus a sum of terms that are all positive, so nothing cancels."""

    def __init__(self, orders: NDArray, q: float) -> None:
        k, rest, ways, self.starts = _whole_terms(tuple(orders.tolist()))
        self.lengths = np.diff(self.starts, append=k.size)
        self.base = ways + k * math.log(q) + rest * math.log1p(-q)
        self.pairs = k * (k - 1) / 2

    def __call__(self, sigma: float) -> NDArray:
        gain = self.pairs / sigma**2
        # The terms 0 and 1 of the binomial sum make the 1; the others lose it by e^gain - 1.
        logs = self.base + gain + np.log(-np.expm1(-gain))
        top = np.maximum.reduceat(logs, self.starts)
        sums = np.add.reduceat(np.exp(logs - np.repeat(top, self.lengths)), self.starts)
        return np.logaddexp(0.0, np.log(sums) + top)


class _Fractional:
    """Fractional orders: the integral cut at equal parts of the mixture, a series on either side.

    Left of the cut the power is expanded in the ratio of the two parts, right of it in its inverse. Past the
    order the terms alternate and shrink: the last one bounds the error and is added, to stay above. So is
    what rounding may have taken, as the terms cancel: if noise leaves almost no divergence, a bound is
    loose here and tight at whole orders.
    """

    def __init__(self, orders: NDArray, q: float, terms: int | None = None) -> None:
        self.orders, self.q = orders, q
        self.terms = terms or max(_FIRST_TERMS, 2 * math.ceil(orders.max()))
        self.i, self.j, ways, sign, size = _series_terms(tuple(orders.tolist()), self.terms)
        self.sign = np.concatenate([sign, sign], axis=1)
        self.log_q, self.log_rest = math.log(q), math.log1p(-q)
        self.left = ways + self.i * self.log_q + self.j * self.log_rest
        self.right = ways + self.j * self.log_q + self.i * self.log_rest
        made_of = size + self.terms - (self.i + np.abs(self.j)) * (self.log_q + self.log_rest)
        self.made_of = np.concatenate([made_of, made_of], axis=1)

    def __call__(self, sigma: float) -> NDArray:
        cut = sigma**2 * (self.log_rest - self.log_q) + 0.5
        pairs = 0.5 / sigma**2
        gains = np.concatenate([self.i * (self.i - 1), self.j * (self.j - 1)], axis=1) * pairs
        tails = log_ndtr(np.concatenate([cut - self.i, self.j - cut], axis=1) / sigma)
        logs = np.concatenate([self.left, self.right], axis=1) + gains + tails
        top = logs.max(axis=1)
        terms = np.exp(logs - top[:, None])
        rounding = _ROUNDING * np.einsum("ot,ot->o", terms, self.made_of + gains - tails)
        last = terms[:, self.terms - 1] + terms[:, -1]
        result = np.log(np.einsum("ot,ot->o", self.sign, terms) + last + rounding) + top
        open_ends = last * np.exp(top - result) > _NEGLIGIBLE * np.abs(result)
        if open_ends.any() and self.terms < _MOST_TERMS:
            longer = _Fractional(self.orders[open_ends], self.q, 2 * self.terms)
            result[open_ends] = longer(sigma)
        return result


class SampledGaussianMoments:
    """The logarithms of the moments at fixed orders and rate, as a function of the noise multiplier.

    Args:
        orders: finite numbers above 1; shape [orders].
        sample_rate: probability that a unit takes part, in (0, 1].

    Source: Mironov, Talwar and Zhang 2019, section 3.3.
    """

    def __init__(self, orders: Sequence[float], *, sample_rate: float) -> None:
        """Compute what does not depend on the noise."""
        given, self.sample_rate = np.asarray(orders, dtype=float), sample_rate
        nearest = np.maximum(np.round(given), 2.0)
        self.orders = np.where(np.abs(given - nearest) <= _NEARLY_WHOLE * nearest, nearest, given)
        self.whole = self.orders == np.floor(self.orders)
        if sample_rate < 1:
            self.parts = [
                (mask, kind(self.orders[mask], sample_rate))
                for mask, kind in ((self.whole, _Whole), (~self.whole, _Fractional))
                if mask.any()
            ]

    def __call__(self, noise_multiplier: float) -> NDArray[np.float64]:
        """Return log E[r^order] for every order, 0 or more and possibly infinite; shape [orders]."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if self.sample_rate == 1:
                logs = self.orders * (self.orders - 1) / (2 * noise_multiplier**2)
            else:
                logs = np.empty(self.orders.shape)
                for mask, part in self.parts:
                    logs[mask] = part(noise_multiplier)
            # Not a number is infinity minus infinity; rounding may leave a trace below zero.
            return np.where(np.isnan(logs), np.inf, np.maximum(logs, 0.0))
