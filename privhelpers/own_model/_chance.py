"""What chance gives, one patient one unit: permutation tests, exact counts, and what could have been seen.

If the model learned nothing of its records, a member patient and a held-out patient can change places and no
figure says so. Dealing the labels anew to the patients therefore gives the distribution of any figure under
"nothing", whatever the scores are and however many notes each patient has.

>>> round(exact_p(hits=3, other_hits=0, members=50, others=50), 3)
0.121
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import hypergeom, norm, rankdata

from privhelpers import rng, validate

RATE = 0.01  # of wrong accusations that an accuser allows: "TPR at 1 % FPR"
_BLOCK = 4_000_000  # labels that are dealt at once


@dataclass(frozen=True)
class Shuffled:
    """How far scores lie beyond chance, one value an attack.

    Attributes:
        ranking: p-value of "members score higher", by ranks; the test of the AUC.
        few: p-value of "more members than chance stand above all but 1 % of the others".
    """

    ranking: np.ndarray
    few: np.ndarray


def _found_first(member: np.ndarray, allowed: int) -> np.ndarray:
    """Return how many members stand before the first non-member that is too many, in each row."""
    wrong = np.cumsum(~member, axis=1, dtype=np.int32) > allowed
    ends = np.where(wrong[:, -1], wrong.argmax(1), member.shape[1])
    return ends - np.minimum(allowed, (~member).sum(1))


def shuffled(scores: np.ndarray, member: np.ndarray, *, times: int, seed: int) -> Shuffled:
    """Test several attacks against the same shuffles of who is a member.

    Args:
        scores: one row a patient, one column an attack; higher is more member-like.
        member: whether each patient is a member, shape [patients].
        times: shuffles; the smallest p-value is 1 / (times + 1).
        seed: of the shuffles, and of the order of equal scores.

    Source: Phipson and Smyth 2010, for the p-value of drawn permutations.
    """
    validate.positive_int(times=times)
    scores, member = np.asarray(scores, dtype=float), np.asarray(member, dtype=bool)
    generator = rng.make(seed, "checkup/shuffles")
    lot = generator.permutation(len(member))
    ranks = rankdata(scores, axis=0)
    orders = [np.lexsort((lot, -column)) for column in scores.T]
    allowed = math.floor(RATE * int((~member).sum()))

    def figures(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        few = [_found_first(labels[:, order], allowed) for order in orders]
        return labels.astype(float) @ ranks, np.stack(few, axis=1)

    own, beaten, done = figures(member[None]), [0, 0], 0
    while done < times:
        size = min(times - done, max(1, _BLOCK // len(member)))
        dealt = generator.permuted(np.broadcast_to(member, (size, len(member))), axis=1)
        for which, values in enumerate(figures(dealt)):
            # Half a unit of slack: sums of ranks are multiples of one half, up to rounding.
            beaten[which] = beaten[which] + (values >= own[which] - 1e-6).sum(0)
        done += size
    return Shuffled(*((1 + count) / (1 + times) for count in beaten))


def exact_p(*, hits: int, other_hits: int, members: int, others: int) -> float:
    """Return the chance that so many of the patients that something happened to are members.

    Args:
        hits, other_hits: members and others that it happened to.
        members, others: patients of each group.

    Source: Fisher's exact test, one-sided.
    """
    return float(hypergeom.sf(hits - 1, members + others, hits + other_hits, members))


@dataclass(frozen=True)
class Sensitivity:
    """The weakest leak that so many patients would have shown with the stated power.

    Attributes:
        auc: smallest area under the ROC curve of one attack.
        few: smallest share of members that can be told at 1 % wrong accusations.
        power: probability with which they would have been found.
    """

    auc: float
    few: float
    power: float


def sensitivity(*, members: int, others: int, tests: int, alarm: float, power: float = 0.9) -> Sensitivity:
    """Return what an audit of this size would have found, had it been there.

    Args:
        members, others: patients of each group.
        tests: among which the error is divided.
        alarm: error of the whole audit, in (0, 1).
        power: wanted probability of finding it, in (0, 1).

    Source: Mann-Whitney variance without ties; arcsine approximation of two shares (Cohen 1988, 6.4).

    >>> found = sensitivity(members=1000, others=1000, tests=10, alarm=0.01)
    >>> round(found.auc, 3), round(found.few, 3)
    (0.556, 0.039)
    """
    validate.positive_int(members=members, others=others, tests=tests)
    distance = float(norm.isf(alarm / tests) + norm.ppf(power))
    spread = math.sqrt((members + others + 1) / (12 * members * others))
    angle = math.asin(math.sqrt(RATE)) + distance * math.sqrt(1 / members + 1 / others) / 2
    return Sensitivity(min(1.0, 0.5 + distance * spread), math.sin(min(angle, math.pi / 2)) ** 2, power)
