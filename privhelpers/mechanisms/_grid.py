"""Noise on a grid, sampled exactly with whole numbers: the mechanism to release with.

No floating-point operation touches the sampling, so the probabilities are the ones of the proof. The
chance comes from a `random.Random`: a seeded one for a page that can be repeated, whose guarantee is void
once the seed is known, or `random.SystemRandom()` for a release. Algorithms and theorems are from
Canonne, Kamath and Steinke 2020.

>>> import random
>>> isinstance(laplace_on_grid(17, sensitivity=1, epsilon=0.5, source=random.SystemRandom()), float)
True
"""

import math
import random
from fractions import Fraction

from privhelpers import validate


def _happens(chance: Fraction, source: random.Random) -> bool:
    return source.randrange(chance.denominator) < chance.numerator


def _happens_exp(gamma: Fraction, source: random.Random) -> bool:
    """Return True with probability e^-gamma, without computing it (algorithm 1)."""
    while gamma > 1:
        if not _happens_exp(Fraction(1), source):
            return False
        gamma -= 1
    k = 1
    while _happens(gamma / k, source):
        k += 1
    return k % 2 == 1


def _sample_discrete_laplace(*, scale: Fraction, source: random.Random) -> int:
    """Return a whole number k with probability proportional to e^(-|k| / scale), exactly (algorithm 2)."""
    t, s = scale.numerator, scale.denominator
    while True:
        low = source.randrange(t)
        if not _happens_exp(Fraction(low, t), source):
            continue
        high = 0
        while _happens_exp(Fraction(1), source):
            high += 1
        size = (low + t * high) // s
        negative = bool(source.getrandbits(1))
        if negative and size == 0:  # zero must not be counted for both signs
            continue
        return -size if negative else size


def _to_grid(answer: float, sensitivity: float, step: float) -> tuple[int, int]:
    """Return the answer and its sensitivity in steps.

    Rounding half up moves with its argument, so two answers d steps apart end at most ceil(d) apart; the
    usual rounding half to even does not have that property.
    """
    answer = validate.finite(answer=answer)
    sensitivity, step = validate.positive(sensitivity=sensitivity, step=step)
    width = Fraction(step)
    exact = Fraction(answer)
    return math.floor(exact / width + Fraction(1, 2)), math.ceil(Fraction(sensitivity) / width)


@validate.within_float64
def laplace_on_grid(
    answer: float, *, sensitivity: float, epsilon: float, source: random.Random, step: float = 1
) -> float:
    """Return the answer, rounded to the grid, plus discrete Laplace noise: epsilon-DP as computed.

    Args:
        answer: any finite number.
        sensitivity: of the answer before rounding, greater than 0; rounding up to whole steps is done here.
        epsilon: greater than 0.
        source: `random.SystemRandom()` for a release.
        step: width of the grid, greater than 0; fixed before the data are seen.

    Raises:
        InvalidParameter: a value is out of its range, or the noise or the result is beyond a float64.

    Source: Canonne, Kamath and Steinke 2020, section 5.
    """
    epsilon = validate.positive(epsilon=epsilon)
    place, reach = _to_grid(answer, sensitivity, step)
    noise = _sample_discrete_laplace(scale=reach / Fraction(epsilon), source=source)
    return float((place + noise) * Fraction(step))
