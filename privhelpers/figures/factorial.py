"""The picture of the factorial: what a training costs, beside what an attack makes of it."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style


@style.drawn
def layers_tradeoff(
    names: Sequence[str],
    perplexities: ArrayLike,
    aucs: ArrayLike,
    lows: ArrayLike,
    highs: ArrayLike,
    private: Sequence[bool],
    *,
    public: tuple[float, float],
) -> Figure:
    """Draw each training at its perplexity and at what the best attack makes of it.

    Args:
        names: of the cells, numbered in the plot and named in its legend.
        perplexities: on never-trained notes as written, greater than 0.
        aucs, lows, highs: of an attack, with the ends of its interval.
        private: whether the cell has DP.
        public: perplexity and AUC of the public checkpoint.

    Raises:
        InvalidParameter: lengths differ, or a value is out of range.
    """
    x, y, low, high = style.columns_of(perplexities=perplexities, aucs=aucs, lows=lows, highs=highs)
    if len(names) != x.size or len(private) != x.size or x.min() <= 0:
        raise InvalidParameter("names and private: one a perplexity, and those greater than 0 (log axis)")
    figure, (axes,) = style.canvas(style.TALL)
    ends = style.whiskers(y, low, high)
    markers = "os^Dv<>P*X"
    for place, (name, dp) in enumerate(zip(names, private, strict=True)):
        color = style.DP if dp else style.NON_PRIVATE
        axes.errorbar(
            x[place],
            y[place],
            yerr=ends[:, [place]],
            fmt=markers[place % len(markers)],
            color=color,
            markerfacecolor="white" if dp else color,
            capsize=2.5,
            **style.in_legend({"label": style.literal(name)}),
        )
    axes.plot(*public, "s", color=style.PUBLIC, markeredgecolor=style.CONTROL, label="public checkpoint")
    axes.axhline(0.5, color=style.CONTROL, linestyle="--", linewidth=1)
    axes.set(xscale="log", xlabel="perplexity on never-trained notes as written (log scale)")
    axes.set(ylabel="AUC of the attack (dashed: chance)", ylim=(min(0.4, low.min() - 0.02), 1.02))
    style.log_axis(axes.xaxis, style.nice_ticks([*x, public[0]]))
    style.legend_above(figure, axes, columns=3)
    return figure
