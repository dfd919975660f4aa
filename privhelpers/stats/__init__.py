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

from privhelpers.stats._decisions import (
    Equivalence,
    adjust,
    detectable,
    detectable_auc,
    detectable_rate,
    tost,
    tost_rates,
)
from privhelpers.stats._estimates import (
    Estimate,
    clustered_auc,
    clustered_difference,
    clustered_mean,
    paired_auc_difference,
    paired_difference,
)
from privhelpers.stats._permutation import permutation_scores, permutation_test
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
    intraclass_correlation,
    mean_difference,
    paired_rate_difference,
)
from privhelpers.stats.roc import RocCurve, auc, auc_interval, roc_curve
