"""Intervals, tests, equivalence and power, for observations that come in clusters; no torch anywhere.

    clopper_pearson(5, 1400)                                   # a rate of independent trials
    clustered_proportion(hits, prompts)                        # a rate of attempts within prompts
    auc_interval(-member_losses, member_patients, -heldout_losses, heldout_patients)
    mean_difference(planted_exposures, control_exposures)
    gap = paired_difference(member_hits, control_hits, prompts)    # gap.interval(), gap.p_value()
    tost(gap, margin=0.01).verdict                             # equivalent, different, undecided, ...
    adjust({"loss": 0.01, "zlib": 0.03})                       # Holm

Scores of membership inference are HIGHER for notes that look more like members: pass minus the loss.
"""

from privhelpers.stats._dependence import intraclass_correlation
from privhelpers.stats._equivalence import Equivalence, tost, tost_rates
from privhelpers.stats._estimates import (
    Estimate,
    clustered_auc,
    clustered_difference,
    clustered_mean,
    paired_auc_difference,
    paired_difference,
)
from privhelpers.stats._membership import (
    RocCurve,
    auc,
    auc_interval,
    roc_curve,
)
from privhelpers.stats._multiplicity import adjust
from privhelpers.stats._permutation import permutation_auc, permutation_scores, permutation_test
from privhelpers.stats._power import (
    detectable,
    detectable_auc,
    detectable_rate,
)
from privhelpers.stats._proportions import (
    Interval,
    clopper_pearson,
    effect_label,
    newcombe_difference,
    two_proportion,
    wald,
    wilson,
)
from privhelpers.stats.clustered import (
    clustered_bootstrap,
    clustered_proportion,
    design_effect,
    mean_difference,
    paired_rate_difference,
)

__all__ = [
    "Equivalence",
    "Estimate",
    "Interval",
    "RocCurve",
    "adjust",
    "auc",
    "auc_interval",
    "clopper_pearson",
    "clustered_auc",
    "clustered_bootstrap",
    "clustered_difference",
    "clustered_mean",
    "clustered_proportion",
    "design_effect",
    "detectable",
    "detectable_auc",
    "detectable_rate",
    "effect_label",
    "intraclass_correlation",
    "mean_difference",
    "newcombe_difference",
    "paired_auc_difference",
    "paired_difference",
    "paired_rate_difference",
    "permutation_auc",
    "permutation_scores",
    "permutation_test",
    "roc_curve",
    "tost",
    "tost_rates",
    "two_proportion",
    "wald",
    "wilson",
]
