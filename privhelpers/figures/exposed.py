"""What shadow models say of one note, beside the attacked model."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.stats import norm

from privhelpers.figures import style
from privhelpers.stats import checks


@style.drawn
def shadow_evidence(inside: ArrayLike, outside: ArrayLike, target: float) -> Figure:
    """Draw what shadow models say of one note, with the normal fits, and where the target falls.

    Args:
        inside, outside: statistic under models that trained with the note, and without it; 2 or more each.
        target: the statistic under the attacked model.

    Raises:
        InvalidParameter: a side has fewer than 2 values, or a value is not finite.
    """
    arms = {
        "models with the note": (checks.vector("inside", inside, 2), style.ATTACK, "o", "-"),
        "models without it": (checks.vector("outside", outside, 2), style.CONTROL, "s", "--"),
    }
    every = np.concatenate([[target], *(arm[0] for arm in arms.values())])
    grid = np.linspace(every.min() - 0.3 * np.ptp(every), every.max() + 0.3 * np.ptp(every), 300)
    figure, (axes,) = style.canvas()
    for name, (values, color, marker, line) in arms.items():
        axes.plot(grid, norm.pdf(grid, values.mean(), values.std() + 1e-9), line, color=color)
        axes.plot(values, np.zeros(values.size), marker, color=color, mfc="white", clip_on=False, label=name)
    axes.axvline(target, color=style.NON_PRIVATE, linestyle="-.", label="the attacked model")
    axes.set(xlabel="statistic of the note, log p / (1 - p)", ylabel="density (per unit of it)")
    axes.set_ylim(bottom=0)
    style.legend_above(figure, axes)
    return figure
