"""Checks that the statistics alone need; figures and defenses share those of `checks`."""

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.validate import shown


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
