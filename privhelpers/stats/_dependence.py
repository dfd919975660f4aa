"""How much alike the observations of one cluster are, and what that costs.

>>> round(intraclass_correlation([0, 0, 1, 1], ["a", "a", "b", "b"]), 6)
1.0
"""

import numpy as np
from numpy.typing import ArrayLike

from privhelpers.stats import checks


def intraclass_correlation(values: ArrayLike, clusters: ArrayLike) -> float:
    """Return the correlation of two observations of one cluster, by analysis of variance.

    Below 0 where observations of one cluster differ more than those of different ones; not a number
    where all values are equal or no cluster has two observations: such data say nothing.

    Args:
        values: one number per observation (0 and 1 for outcomes), shape (n,).
        clusters: cluster of each observation (any labels), shape (n,).

    Raises:
        InvalidParameter: lengths differ, a value is not finite, or there are fewer than 2 clusters.

    Source: Donner and Klar, Design and Analysis of Cluster Randomization Trials (2000), section 1.4.
    """
    array = checks.vector("values", values)
    codes, count = checks.cluster_codes("clusters", clusters, array.size)
    sizes = np.bincount(codes)
    if array.size == count or np.ptp(array) == 0:
        return float("nan")
    means = np.bincount(codes, weights=array) / sizes
    between = np.sum(sizes * (means - array.mean()) ** 2) / (count - 1)
    within = np.sum((array - means[codes]) ** 2) / (array.size - count)
    # The size that counts when clusters differ: a little below their mean.
    size = (array.size - np.sum(sizes**2) / array.size) / (count - 1)
    return float((between - within) / (between + (size - 1) * within))
