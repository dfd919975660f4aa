"""Checks that the statistics alone need; figures and defenses share those of `checks`."""

import numbers

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.validate import shown


def count(name: str, value: int, low: int = 0) -> int:
    """Return a whole number of at least `low`; numpy integers are welcome, booleans are not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise InvalidParameter(f"{name} = {shown(value)}: must be a whole number of {low} or more")
    return int(value)


def open_unit(name: str, value: float) -> float:
    """Return a number strictly between 0 and 1, such as the level of an interval."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < value < 1:
        raise InvalidParameter(f"{name} = {shown(value)}: must be in (0, 1)")
    return float(value)


def rates(name: str, values: ArrayLike, above: float | None = None) -> np.ndarray:
    """Return rates in [0, 1] (greater than `above` where given): a number or one axis of numbers."""
    array = validate.array(name, values, float)
    low = array >= 0 if above is None else array > above
    if array.ndim > 1 or array.size == 0 or not (low & (array <= 1)).all():
        bounds = "[0, 1]" if above is None else f"({above:g}, 1]"
        raise InvalidParameter(f"{name} = {shown(values)}: must be in {bounds}")
    return array


def no_common(name_a: str, clusters_a: ArrayLike, name_b: str, clusters_b: ArrayLike) -> None:
    """Refuse two arms that share a cluster: they would be neither independent nor free to be dealt anew."""
    common = np.intersect1d(np.asarray(clusters_a), np.asarray(clusters_b))
    if common.size:
        raise InvalidParameter(
            f"{name_a} and {name_b}: {common.size} are in both arms, such as {common[0]!r}; "
            "pair the measurements, or give each arm labels of its own"
        )
