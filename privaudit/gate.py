"""The gate of a pipeline: conditions on the report of an audit, any of which makes its command fail.

conditions = read_conditions("flagged, undecided, auc>0.55")
[condition for condition in conditions if condition.holds(facts)]      # of `report_facts`
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

FAILED = 3  # exit code of an audit whose report meets a condition
_AUC = re.compile(r"auc ?> ?(0?\.\d+)")


class Finding(StrEnum):
    """What a condition looks for in a report, as `--fail-if` names it; the first two are verdicts."""

    FLAGGED = "flagged"
    UNDECIDED = "undecided"
    EPSILON_REFUTED = "epsilon-refuted"
    AUC = "auc"


@dataclass(frozen=True)
class Condition:
    """A condition on the report of an audit.

    Attributes:
        finding: what it looks for.
        limit: of `Finding.AUC`, in (0, 1): an area under the ROC curve.
    """

    finding: Finding
    limit: float = 0.0

    def __str__(self) -> str:
        """Return it as `--fail-if` reads it."""
        return f"{self.finding}>{self.limit:g}" if self.finding is Finding.AUC else str(self.finding)

    def holds(self, facts: Mapping) -> bool:
        """Return whether a report meets the condition.

        An area counts if the lower end of its patient-clustered 95% interval is above the limit. It is the
        area of the first attack (the loss of a note), which was fixed before any result.

        Args:
            facts: from `report_facts`, or of a report.json.
        """
        if self.finding is Finding.AUC:
            _, low, _ = facts["attacks"][0]["patient"]["auc"]
            return low > self.limit
        if self.finding is Finding.EPSILON_REFUTED:
            claim = (facts["canaries"] or {}).get("claim")
            return claim is not None and claim["refuted"]
        return facts["outcome"] == self.finding


def read_conditions(text: str) -> tuple[Condition, ...]:
    """Return the conditions that `--fail-if` names, separated by commas.

    Raises:
        ValueError: a condition is unknown, or its limit is missing or not in (0, 1).

    >>> [str(one) for one in read_conditions("flagged, auc > 0.55")]
    ['flagged', 'auc>0.55']
    """
    return tuple(_condition(word.strip()) for word in text.split(","))


def _condition(word: str) -> Condition:
    if area := _AUC.fullmatch(word):
        return Condition(Finding.AUC, float(area[1]))
    if word not in set(Finding) - {Finding.AUC}:
        raise ValueError(
            "must be one or more of flagged, undecided, epsilon-refuted, auc>0.55 (or another limit in "
            "(0, 1)), separated by commas, in quotes: a shell takes > for itself"
        )
    return Condition(Finding(word))
