"""Checks shared by the modules of this package."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privhelpers import validate
from privhelpers.errors import InvalidParameter


def unit_interval(**values: ArrayLike) -> None:
    """Refuse a value, or an array that contains one, outside [0, 1]."""
    for name, value in values.items():
        real(name, value)  # of one length
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "fiu" or not np.all((numbers >= 0) & (numbers <= 1)):
            raise InvalidParameter(f"{name} = {validate.shown(value)}: must be in [0, 1]")


def real(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return numbers as an array; infinite ones mean certainty."""
    array = validate.array(name, values, float)
    if np.isnan(array).any() or np.iscomplexobj(values):
        raise InvalidParameter(f"{name} = {validate.shown(values)}: must be numbers")
    return array


def plain(values: NDArray[np.float64]) -> float | NDArray[np.float64]:
    """Return an array as it is and a single number as a float."""
    return values if np.ndim(values) else float(values)
