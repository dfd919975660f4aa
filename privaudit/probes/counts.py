"""Counts of affected patients, members and held-out ones, which several probes share."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from scipy.stats import fisher_exact

from privhelpers import stats
from privhelpers.stats import Interval


class Check(StrEnum):
    """A test other than an attack on membership; keys of `tests`."""

    COMPLETIONS = "completions"
    DISCLOSURES = "disclosures"
    CANARIES = "canaries"
    COPIES = "copies"
    SINGLING_OUT = "singling_out"
    LINKABILITY = "linkability"
    INFERENCE = "inference"


@dataclass(frozen=True)
class Share:
    """How many of some patients or notes are affected."""

    hits: int
    of: int

    @property
    def interval(self) -> Interval:
        """The share with its exact interval."""
        return stats.clopper_pearson(self.hits, self.of)


@dataclass(frozen=True)
class PatientShares:
    """Affected patients of those who could be tested.

    Attributes:
        members, heldout: of each group.
        p: one-sided p-value of Fisher's exact test for more members.
        reverse_p: the same for more held-out patients.
    """

    members: Share
    heldout: Share
    p: float
    reverse_p: float

    @property
    def difference(self) -> Interval:
        """The members' share minus the held-out share, which chance and standard phrases explain."""
        return stats.newcombe_difference(self.members.interval, self.heldout.interval)


def compare_patients(hits: Iterable[str], asked: Iterable[str], members: Collection[str]) -> PatientShares:
    """Compare how many member and held-out patients are affected."""
    hits, asked, members = set(hits), set(asked), set(members)
    inside = Share(len(hits & members), len(asked & members))
    outside = Share(len(hits - members), len(asked - members))
    table = [[share.hits, share.of - share.hits] for share in (inside, outside)]
    p, reverse_p = (float(fisher_exact(table, side).pvalue) for side in ("greater", "less"))
    return PatientShares(inside, outside, p, reverse_p)
