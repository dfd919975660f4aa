"""Pictures of membership inference: ROC, loss histograms, areas by model, utility against attack."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style


def _named(names: Sequence[str], length: int) -> list[str]:
    if len(names) != length or len(set(names)) != length:
        raise InvalidParameter(f"names = {list(names)!r}: must be {length} different names")
    return list(names)


@style.drawn
def trade_off(
    perplexities: ArrayLike,
    aucs: ArrayLike,
    names: Sequence[str],
    lows: ArrayLike,
    highs: ArrayLike,
    *,
    perplexity_ends: tuple[ArrayLike, ArrayLike] | None = None,
    control: tuple[float, float] | None = None,
) -> Figure:
    """Draw what each model costs in perplexity and gives away to membership inference.

    Args:
        perplexities: held-out perplexity of each model, per token.
        aucs: area under the ROC of the attack on it, in [0, 1].
        names: model names, all different.
        lows, highs: ends of the interval of each area.
        perplexity_ends: lows and highs of each perplexity.
        control: ends of the area where nothing can leak, drawn as a band.

    Raises:
        InvalidParameter: lengths differ, names repeat, or an interval misses its estimate.
    """
    perplexities, aucs, lows, highs = style.columns_of(
        perplexities=perplexities, aucs=aucs, lows=lows, highs=highs
    )
    looks = style.model_looks(_named(names, aucs.size))
    ends, across = style.whiskers(aucs, lows, highs), np.zeros((2, aucs.size))
    if perplexity_ends is not None:
        left, right = (style.columns_of(aucs=aucs, ends=values)[1] for values in perplexity_ends)
        across = style.whiskers(perplexities, left, right)
    figure, (axes,) = style.canvas(style.TALL)
    if control is not None:
        band = {"facecolor": "none", "edgecolor": style.PUBLIC, "hatch": "////", "linewidth": 0, "zorder": 0}
        axes.axhspan(*control, **band, label="never trained (control)")
    axes.axhline(0.5, color=style.CONTROL, linestyle="--", label="coin flip")
    for place, look in enumerate(looks.values()):
        axes.errorbar(
            perplexities[place],
            aucs[place],
            ends[:, [place]],
            across[:, [place]],
            fmt=look["marker"],
            color=look["color"],
            label=style.in_legend(look)["label"],
            markersize=7,
            capsize=3,
        )
    axes.set(xscale="log", xlabel="held-out perplexity (per token; left is more useful)")
    axes.set(ylabel="area under the ROC curve (lower is more private)")
    style.log_axis(axes.xaxis, style.nice_ticks(perplexities))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure
