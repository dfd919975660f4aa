"""Intervals, two-proportion tests and clustered uncertainty; no torch anywhere.

    clopper_pearson(5, 1400)                                   # a rate of independent trials
    clustered_proportion(hits, prompts)                        # a rate of attempts within prompts
    auc_interval(-member_losses, member_patients, -heldout_losses, heldout_patients)
    mean_difference(planted_exposures, control_exposures)

Scores of membership inference are HIGHER for notes that look more like members: pass minus the loss.
"""

from privhelpers.stats.clustered import (
    clustered_bootstrap,
    clustered_proportion,
    design_effect,
    mean_difference,
)
from privhelpers.stats.membership import (
    RocCurve,
    auc,
    auc_interval,
    membership_advantage,
    membership_advantage_interval,
    roc_curve,
    tpr_at_fpr,
    tpr_at_fpr_interval,
)
from privhelpers.stats.proportions import (
    Interval,
    TwoProportion,
    clopper_pearson,
    effect_label,
    two_proportion,
    wilson,
)

__all__ = [
    "Interval",
    "RocCurve",
    "TwoProportion",
    "auc",
    "auc_interval",
    "clopper_pearson",
    "clustered_bootstrap",
    "clustered_proportion",
    "design_effect",
    "effect_label",
    "mean_difference",
    "membership_advantage",
    "membership_advantage_interval",
    "roc_curve",
    "tpr_at_fpr",
    "tpr_at_fpr_interval",
    "two_proportion",
    "wilson",
]
