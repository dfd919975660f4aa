"""From notes to admissions and patients, and who is rare: the groups in which leakage is looked at.

>>> means, names = group_means([1.0, 3.0, 5.0], ["a", "a", "b"])
>>> means.tolist(), names.tolist()
([2.0, 5.0], ['a', 'b'])

Source: Jagannatha, Rawat and Yu 2021, sections 4.1.1 and 6 and appendix A.2.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.records import CONDITIONS, RARE_CONDITIONS

COMMON = frozenset(CONDITIONS[:4])  # by Zipf's law more than half of all notes
BUCKETS = ("common", "mid", "rare")


def group_means(values: ArrayLike, groups: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each group and the group's name, sorted by name.

    Args:
        values: one number a note.
        groups: group of each note, such as its patient or its admission.
    """
    values, groups = np.asarray(values, dtype=float), np.asarray(groups)
    if values.shape != groups.shape or values.ndim != 1 or not values.size:
        raise InvalidParameter(f"groups of shape {groups.shape}: must name one group for each of the values")
    names, codes = np.unique(groups, return_inverse=True)
    return np.bincount(codes, weights=values) / np.bincount(codes), names


def admissions(notes: Sequence[dict]) -> np.ndarray:
    """Return a name for the admission of each note, `patient/number`."""
    return np.array([f"{note['patient_id']}/{note['admission']}" for note in notes])


def patients(notes: Sequence[dict]) -> np.ndarray:
    """Return the patient of each note."""
    return np.array([note["patient_id"] for note in notes])


def rarity(notes: Sequence[dict]) -> np.ndarray:
    """Return `common`, `mid` or `rare` for the condition of each note.

    Common are the four most frequent conditions of the hospital, rare those of the tail behind the
    report's twelve.
    """
    rare = frozenset(RARE_CONDITIONS)

    def bucket(condition: str) -> str:
        return "common" if condition in COMMON else "rare" if condition in rare else "mid"

    return np.array([bucket(note["condition"]) for note in notes])


def disease_profiles(notes: Sequence[dict]) -> dict[str, frozenset[str]]:
    """Return the conditions that the notes of each patient name."""
    found: dict[str, set[str]] = {}
    for note in notes:
        found.setdefault(note["patient_id"], set()).add(note["condition"])
    return {patient: frozenset(conditions) for patient, conditions in found.items()}


def profile_log_probability(profiles: Mapping[str, frozenset[str]]) -> dict[str, float]:
    """Return the natural log of the probability of each patient's set of conditions.

    Conditions are taken as independent, each with the share of these patients who have it; what a patient
    does not have counts too.

    Args:
        profiles: conditions of each patient, of at least one patient.

    Source: Jagannatha, Rawat and Yu 2021, appendix A.2, equations 4 and 5.

    >>> found = profile_log_probability({"a": frozenset({"x"}), "b": frozenset({"x", "y"})})
    >>> {patient: round(math.exp(value), 2) for patient, value in found.items()}
    {'a': 0.5, 'b': 0.5}
    """
    if not profiles:
        raise InvalidParameter("profiles: there is nobody")
    counts = Counter(condition for own in profiles.values() for condition in own)
    share = {condition: count / len(profiles) for condition, count in counts.items()}
    # A condition that everybody has cannot be missing, so log(0) is never reached.
    return {
        patient: math.fsum(math.log(p if condition in own else 1 - p) for condition, p in share.items())
        for patient, own in profiles.items()
    }


def equal_buckets(values: ArrayLike, buckets: int) -> np.ndarray:
    """Return the number of the bucket of each value, 0 for the lowest; ties stay together.

    Args:
        values: one number a patient or note.
        buckets: how many, of about equal size, 1 or more.
    """
    validate.positive_int(buckets=buckets)
    values = np.asarray(values, dtype=float)
    edges = np.quantile(values, np.arange(1, buckets) / buckets)
    return np.searchsorted(edges, values, side="left")
