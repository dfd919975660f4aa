"""From notes to admissions and patients: the groups in which leakage is looked at.

>>> means, names = group_means([1.0, 3.0, 5.0], ["a", "a", "b"])
>>> means.tolist(), names.tolist()
([2.0, 5.0], ['a', 'b'])

Source: Jagannatha, Rawat and Yu 2021, section 4.1.1.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import validate
from privhelpers.errors import InvalidParameter


def group_means(values: ArrayLike, groups: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each group and the group's name, sorted by name.

    Args:
        values: one number a note.
        groups: group of each note, such as its patient or its admission.
    """
    values, groups = validate.array("values", values, float), validate.array("groups", groups)
    if values.shape != groups.shape or values.ndim != 1 or not values.size:
        raise InvalidParameter(f"groups of shape {groups.shape}: must name one group for each of the values")
    names, codes = np.unique(groups, return_inverse=True)
    return np.bincount(codes, weights=values) / np.bincount(codes), names


def patients(notes: Sequence[dict]) -> np.ndarray:
    """Return the patient of each note."""
    return np.array([note["patient_id"] for note in notes])
