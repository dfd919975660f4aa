"""The words of the synthetic hospitals.

The 12 conditions, 12 medications and 10 procedures come from the report. The common conditions are
followed by a tail of rare diseases with Zipf frequencies, because leakage grows with rarity.
"""

from pathlib import Path

import numpy as np

from privhelpers import validate
from privhelpers.records._domain import read_domain

CLINICAL = read_domain(Path(__file__).with_name("clinical.yml"))
CONDITIONS, RARE_CONDITIONS, ALL_CONDITIONS = CLINICAL.topics, CLINICAL.rare_topics, CLINICAL.all_topics
MEDICATIONS, PROCEDURES, REPORT_TEMPLATES = CLINICAL.answers, CLINICAL.actions, CLINICAL.report


def zipf_probabilities(count: int, exponent: float = 1.1) -> np.ndarray:
    """Return probabilities proportional to rank ** -exponent, most frequent first, shape [count].

    >>> [round(float(p), 3) for p in zipf_probabilities(3, 1.0)]
    [0.545, 0.273, 0.182]
    """
    count = validate.positive_int(10_000_000, count=count)
    exponent = validate.positive(exponent=exponent)
    weights = np.arange(1, count + 1, dtype=float) ** -exponent
    return weights / weights.sum()
