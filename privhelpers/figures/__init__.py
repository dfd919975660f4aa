"""Arrays in, Figure out: the charts of the book, in one style, with their uncertainty.

    figures.use_style()                        # once, for a notebook's own plots
    figures.roc({"baseline": curve})           # last line of a cell: shown once, nothing to close

Model names carry their own look: `public`, `baseline`, `best_nonprivate`, `dp-eps-8`.
"""

from privhelpers.figures._charts import bands, bars, forest, heat, roc, trade_off, two_arms
from privhelpers.figures._inversion import recovery
from privhelpers.figures._style import use_style
