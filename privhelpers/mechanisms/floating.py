"""What naive Laplace noise leaks when its numbers are float64.

A uniform number has 53 bits, so only some noise values exist, and adding a count rounds each of them. The
outputs that count 0 can give and those that count 1 can give are therefore different sets: one output that
lies in only one of them tells the counts apart with certainty, whatever epsilon was.
"""

import numpy as np
from numpy.typing import NDArray

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.mechanisms.noise import laplace_scale

BITS = 53
NEIGHBOURHOOD = 8  # grid points looked at on either side of the place that the inverse points to


def _naive_size(index: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    return -scale * np.log(index / 2.0**BITS)


def naive_laplace(
    count: int, *, epsilon: float, draws: int, generator: np.random.Generator, sensitivity: float = 1
) -> NDArray[np.float64]:
    """Return noisy counts, a sign times -scale ln(U) in float64: not private, kept to be attacked.

    U is uniform on the 2^53 multiples of 2^-53 in (0, 1]; -ln(U) inverts the CDF of the size of the noise.

    Args:
        count: true answer.
        epsilon: what the formula promises, greater than 0.
        draws: number of outputs, 1 or more.
        generator: source of chance.
        sensitivity: of the count, greater than 0.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Mironov 2012.
    """
    scale = laplace_scale(sensitivity=sensitivity, epsilon=epsilon)
    validate.positive_int(draws=draws)
    sign = generator.choice((-1, 1), size=draws)
    return count + sign * _naive_size(generator.integers(1, 2**BITS + 1, size=draws), scale)


def is_possible(
    outputs: NDArray[np.float64], count: int, *, epsilon: float, sensitivity: float = 1
) -> NDArray[np.bool_]:
    """Return for each output whether some uniform number makes `naive_laplace` give it from `count`.

    The noise is monotone in the uniform number: only grid points next to the inverse can hit the output.

    Args:
        outputs: what was released.
        count: the answer to test.
        epsilon, sensitivity: as in `naive_laplace`.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Mironov 2012.
    """
    scale = laplace_scale(sensitivity=sensitivity, epsilon=epsilon)
    outputs = np.asarray(outputs, dtype=float)
    noise = outputs - count
    sign = np.where(noise < 0, -1, 1)
    centre = np.rint(np.exp(-np.abs(noise) / scale) * 2.0**BITS).astype(np.int64)
    found = np.zeros(outputs.shape, dtype=bool)
    for offset in range(-NEIGHBOURHOOD, NEIGHBOURHOOD + 1):
        index = np.clip(centre + offset, 1, 2**BITS)
        found |= count + sign * _naive_size(index, scale) == outputs
    return found


def impossible_share(
    *,
    count: int,
    neighbour: int,
    epsilon: float,
    draws: int,
    generator: np.random.Generator,
    sensitivity: float = 1,
) -> float:
    """Return the share of naive outputs from `count` that `neighbour` can never give.

    Each of these has an infinite privacy loss; under epsilon-DP the share is 0.

    Args:
        count, neighbour: two different answers that neighbouring tables have.
        epsilon, draws, generator, sensitivity: as in `naive_laplace`.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Mironov 2012.
    """
    if count == neighbour:
        raise InvalidParameter(f"neighbour = {neighbour!r}: must differ from count")
    outputs = naive_laplace(count, epsilon=epsilon, draws=draws, generator=generator, sensitivity=sensitivity)
    return 1 - float(is_possible(outputs, neighbour, epsilon=epsilon, sensitivity=sensitivity).mean())
