"""Arrays in, Figure out: every picture of the book, in one style, with its uncertainty.

    figures.use_style()                        # once, for a notebook's own plots
    figures.roc({"baseline": curve})           # last line of a cell: shown once, nothing to close

Model names carry their own look: `public`, `baseline`, `best_nonprivate`, `dp-eps-8`.
"""

from privhelpers.figures.extraction import exposure_by_copies, identifier_ledger, leak_rates
from privhelpers.figures.membership import auc_by_model, loss_histogram, roc, trade_off
from privhelpers.figures.records import condition_counts, note_lengths
from privhelpers.figures.style import MECHANISM_COLORS, SHORT, TALL, WIDTH, dp_color, use_style
from privhelpers.figures.training import epsilon_spent, loss_curves, perplexity_by_epsilon

__all__ = [
    "MECHANISM_COLORS",
    "SHORT",
    "TALL",
    "WIDTH",
    "auc_by_model",
    "condition_counts",
    "dp_color",
    "epsilon_spent",
    "exposure_by_copies",
    "identifier_ledger",
    "leak_rates",
    "loss_curves",
    "loss_histogram",
    "note_lengths",
    "perplexity_by_epsilon",
    "roc",
    "trade_off",
    "use_style",
]
