"""Membership inference: one threshold, all thresholds with intervals, levels, and controls.

A score is HIGHER for what looks more like a member, such as minus the loss of a note.

>>> result = yeom_attack([0.2, 0.4], [0.25, 2.0])
>>> result.true_positive_rate, result.false_positive_rate, result.membership_advantage
(0.5, 0.5, 0.0)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter


@dataclass(frozen=True)
class ThresholdAttack:
    """An attack that says "member" when the loss is below the mean training loss.

    Attributes:
        threshold: mean loss of the members' notes, nats per token.
        true_positive_rate, false_positive_rate: shares of members and non-members called members.
        membership_advantage: their difference, in [-1, 1].
    """

    threshold: float
    true_positive_rate: float
    false_positive_rate: float
    membership_advantage: float


def yeom_attack(
    member_losses: Sequence[float], nonmember_losses: Sequence[float], *, threshold: float | None = None
) -> ThresholdAttack:
    """Attack with the mean training loss as the threshold, which a model's owner often publishes.

    With losses of single notes this is S-BBA; with mean losses of admissions or patients, and the
    threshold of the notes, A-BBA and P-BBA. The advantage is the leakage Pr[A=0|b=0] - Pr[A=0|b=1],
    where b = 0 stands for a member and A = 0 for the answer "member".

    Args:
        member_losses, nonmember_losses: mean loss of each note or group, nats per token.
        threshold: default, the mean of `member_losses`.

    Source: Yeom et al. 2018, section 3.3; named S-BBA by Jagannatha et al. 2021, section 4.1.
    """
    members, others = np.asarray(member_losses, float), np.asarray(nonmember_losses, float)
    for name, values in (("member_losses", members), ("nonmember_losses", others)):
        if values.size == 0 or not np.isfinite(values).all():
            raise InvalidParameter(f"{name}: must be one or more finite numbers")
    threshold = float(members.mean()) if threshold is None else float(threshold)
    true_positive, false_positive = float(np.mean(members < threshold)), float(np.mean(others < threshold))
    return ThresholdAttack(threshold, true_positive, false_positive, true_positive - false_positive)


def by_note(ids: ArrayLike, values: ArrayLike) -> dict[str, float]:
    """Return values by the identifier of their note, rounded to six decimals for a file."""
    rounded = np.round(np.asarray(values, dtype=float), 6).tolist()
    return dict(zip(np.asarray(ids).tolist(), rounded, strict=True))
