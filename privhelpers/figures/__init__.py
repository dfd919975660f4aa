"""Arrays in, Figure out: every picture of the book, in one style, with its uncertainty.

    figures.use_style()                        # once, for a notebook's own plots
    figures.roc({"baseline": curve})           # last line of a cell: shown once, nothing to close

Model names carry their own look: `public`, `baseline`, `best_nonprivate`, `dp-eps-8`.
"""

from privhelpers.figures.accounting import (
    bound_by_order,
    epsilon_by_noise,
    epsilon_by_steps,
    rdp_by_order,
)
from privhelpers.figures.anonymity import attack_beliefs, class_measures, small_class_shares
from privhelpers.figures.extraction import exposure_by_copies, identifier_ledger, leak_rates
from privhelpers.figures.mechanics import (
    clipped_gradients,
    errors_by_bound,
    private_paths,
    pull_of_one_record,
)
from privhelpers.figures.mechanisms import (
    composition_bounds,
    noise_ratio,
    possible_outputs,
    posterior_by_answer,
)
from privhelpers.figures.membership import auc_by_model, loss_histogram, roc, trade_off
from privhelpers.figures.records import condition_counts, note_lengths
from privhelpers.figures.style import MECHANISM_COLORS, SHORT, TALL, WIDTH, dp_color, use_style
from privhelpers.figures.testing import ceilings, tradeoffs, what_epsilon_buys
from privhelpers.figures.training import epsilon_spent, loss_curves, luck_by_model, perplexity_by_epsilon

__all__ = [
    "MECHANISM_COLORS",
    "SHORT",
    "TALL",
    "WIDTH",
    "attack_beliefs",
    "auc_by_model",
    "bound_by_order",
    "ceilings",
    "class_measures",
    "clipped_gradients",
    "composition_bounds",
    "condition_counts",
    "dp_color",
    "epsilon_by_noise",
    "epsilon_by_steps",
    "epsilon_spent",
    "errors_by_bound",
    "exposure_by_copies",
    "identifier_ledger",
    "leak_rates",
    "loss_curves",
    "loss_histogram",
    "luck_by_model",
    "noise_ratio",
    "note_lengths",
    "perplexity_by_epsilon",
    "possible_outputs",
    "posterior_by_answer",
    "private_paths",
    "pull_of_one_record",
    "rdp_by_order",
    "roc",
    "small_class_shares",
    "trade_off",
    "tradeoffs",
    "use_style",
    "what_epsilon_buys",
]
