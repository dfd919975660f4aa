"""Loss-threshold membership inference, at a fixed threshold and over all thresholds.

A note's score is minus its loss, so that a higher score means "more likely a member".

>>> result = yeom_attack([0.2, 0.4], [0.3, 2.0])
>>> result.true_positive_rate, result.false_positive_rate, result.membership_advantage
(0.5, 0.5, 0.0)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privhelpers.errors import InvalidParameter


@dataclass(frozen=True)
class ThresholdAttack:
    """An attack that says "member" when the loss is at most the mean training loss.

    Attributes:
        threshold: mean loss of the members, nats per token.
        true_positive_rate, false_positive_rate: shares of members and non-members called members.
        membership_advantage: their difference, in [-1, 1].
    """

    threshold: float
    true_positive_rate: float
    false_positive_rate: float
    membership_advantage: float


def yeom_attack(member_losses: Sequence[float], nonmember_losses: Sequence[float]) -> ThresholdAttack:
    """Attack with the mean training loss as the threshold, which a model's owner often publishes.

    Args:
        member_losses, nonmember_losses: mean loss of each note, nats per token.

    Source: Yeom et al. 2018, section 3.3; named S-BBA by Jagannatha et al. 2021, section 4.1.
    Taught in: 10_membership_inference.
    """
    members, others = np.asarray(member_losses, float), np.asarray(nonmember_losses, float)
    for name, values in (("member_losses", members), ("nonmember_losses", others)):
        if values.size == 0 or not np.isfinite(values).all():
            raise InvalidParameter(f"{name}: must be one or more finite numbers")
    threshold = float(members.mean())
    true_positive, false_positive = float(np.mean(members <= threshold)), float(np.mean(others <= threshold))
    return ThresholdAttack(threshold, true_positive, false_positive, true_positive - false_positive)
