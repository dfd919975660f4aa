"""Checks of arguments; every refusal names the argument and what it must be."""

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.validate import shown

_MOST_DRAWS = 10_000_000


def draws(value: int) -> int:
    """Return the number of random draws, 1 to 10 million (which take hours)."""
    return validate.positive_int(_MOST_DRAWS, draws=value)


def vector(name: str, values: ArrayLike, least: int = 1) -> np.ndarray:
    """Return a one-dimensional array of at least `least` finite numbers."""
    array = validate.array(name, values, float)
    if array.ndim != 1 or array.size < least:
        raise InvalidParameter(f"{name} of shape {array.shape}: must be one axis of {least} values or more")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise InvalidParameter(
            f"{name}[{bad[0]}] = {array[bad[0]]}: must be finite ({bad.size} values are not)"
        )
    return array


def cluster_codes(name: str, clusters: ArrayLike, length: int) -> tuple[np.ndarray, int]:
    """Return cluster numbers from 0, one per observation, and how many clusters there are (2 or more)."""
    try:
        labels = np.asarray(clusters)
    except ValueError as error:
        raise InvalidParameter(f"{name}: must be one axis of labels ({error})") from error
    if labels.shape != (length,):
        raise InvalidParameter(
            f"{name} of shape {labels.shape}: must give one cluster to each of {length} values"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InvalidParameter(f"{name}: a cluster is missing (not a finite number)")
    if labels.dtype.kind == "O" and any(label is None or label != label for label in labels):
        raise InvalidParameter(f"{name}: a cluster is missing (None or not a number)")
    distinct, codes = np.unique(labels, return_inverse=True)
    if distinct.size < 2:
        raise InvalidParameter(f"{name}: needs 2 clusters or more to resample, found {distinct.size}")
    return codes, int(distinct.size)


def rates(name: str, values: ArrayLike, above: float | None = None) -> np.ndarray:
    """Return rates in [0, 1] (greater than `above` if given): a number or one axis of numbers."""
    array = validate.array(name, values, float)
    low = array >= 0 if above is None else array > above
    if array.ndim > 1 or array.size == 0 or not (low & (array <= 1)).all():
        bounds = "[0, 1]" if above is None else f"({above:g}, 1]"
        raise InvalidParameter(f"{name} = {shown(values)}: must be in {bounds}")
    return array


def require_disjoint(name_a: str, clusters_a: ArrayLike, name_b: str, clusters_b: ArrayLike) -> None:
    """Refuse two arms that share a cluster: they are not independent, and labels cannot be permuted."""
    common = np.intersect1d(np.asarray(clusters_a), np.asarray(clusters_b))
    if common.size:
        raise InvalidParameter(
            f"{name_a} and {name_b}: {common.size} are in both arms, such as {common[0]!r}; "
            "pair the measurements, or give each arm labels of its own"
        )
