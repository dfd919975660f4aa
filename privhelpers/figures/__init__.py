"""Arrays in, Figure out: every picture of the book, in one style, with its uncertainty.

    figures.use_style()                        # once, for a notebook's own plots
    figures.roc({"baseline": curve})           # last line of a cell: shown once, nothing to close

Model names carry their own look: `public`, `baseline`, `best_nonprivate`, `dp-eps-8`.
"""

from privhelpers.figures.charts import bands, bars, forest, heat, roc, two_arms
from privhelpers.figures.exposed import (
    shadow_evidence,
)
from privhelpers.figures.factorial import layers_tradeoff
from privhelpers.figures.inversion import recovery
from privhelpers.figures.mechanics import (
    clipped_gradients,
    errors_by_bound,
    private_paths,
    pull_of_one_record,
)
from privhelpers.figures.membership import trade_off
from privhelpers.figures.records import condition_counts, note_lengths
from privhelpers.figures.statistics import (
    leakage_bars,
)
from privhelpers.figures.style import MECHANISM_COLORS, SHORT, TALL, WIDTH, dp_color, use_style
from privhelpers.figures.training import epsilon_spent, loss_curves, luck_by_model, perplexity_by_epsilon
from privhelpers.figures.white_box import auc_by_gap

__all__ = [
    "MECHANISM_COLORS",
    "SHORT",
    "TALL",
    "WIDTH",
    "auc_by_gap",
    "bands",
    "bars",
    "clipped_gradients",
    "condition_counts",
    "dp_color",
    "epsilon_spent",
    "errors_by_bound",
    "forest",
    "heat",
    "layers_tradeoff",
    "leakage_bars",
    "loss_curves",
    "luck_by_model",
    "note_lengths",
    "perplexity_by_epsilon",
    "private_paths",
    "pull_of_one_record",
    "recovery",
    "roc",
    "shadow_evidence",
    "trade_off",
    "two_arms",
    "use_style",
]
