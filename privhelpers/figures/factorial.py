"""Pictures of the factorial: what each layer changes, what a cell costs, and what the filter blocks."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style

_MARKERS = "os^D"


@style.drawn
def layer_effects(names: Sequence[str], measures: Mapping[str, Sequence[ArrayLike]]) -> Figure:
    """Draw main effects and interactions with their intervals, one panel a measure, first effect on top.

    Args:
        names: of the effects, all different.
        measures: by measure, 1 to 4: effect, and the ends of its interval.

    Raises:
        InvalidParameter: lengths differ, names repeat, or an interval misses its estimate.
    """
    if not 1 <= len(measures) <= 4 or len(set(names)) != len(names):
        raise InvalidParameter("names must differ, and measures be 1 to 4")
    figure, panels = style.canvas(style.SHORT, columns=len(measures), sharey=True)
    places = np.arange(len(names))
    for axes, (name, columns) in zip(panels, measures.items(), strict=True):
        _, values, lows, highs = style.columns_of(
            names=places, effects=columns[0], lows=columns[1], highs=columns[2]
        )
        ends = style.whiskers(values, lows, highs)
        away = (lows > 0) | (highs < 0)
        axes.axvline(0, color=style.CONTROL, linestyle="--", linewidth=1)
        for mask, fill in ((away, style.DP), (~away, "white")):
            axes.errorbar(
                values[mask],
                places[mask],
                xerr=ends[:, mask],
                fmt="o",
                color=style.DP,
                markerfacecolor=fill,
                capsize=2.5,
            )
        axes.set_xlabel(style.literal(name))
        axes.locator_params(axis="x", nbins=4)
    panels[0].set_yticks(places, [style.literal(name) for name in names])
    panels[0].set(ylim=(len(names) - 0.5, -0.5), ylabel="layer, or two together")
    return figure


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


@style.drawn
def filter_costs(ngrams: ArrayLike, rates: Mapping[str, Sequence[ArrayLike]]) -> Figure:
    """Draw how often the filter holds something back, against the length of the runs it knows.

    Args:
        ngrams: words of a run, greater than 0.
        rates: by kind of text, 1 to 4: rate, and the ends of its interval.

    Raises:
        InvalidParameter: lengths differ, or an interval misses its estimate.
    """
    if not 1 <= len(rates) <= len(_MARKERS):
        raise InvalidParameter("rates: give 1 to 4 kinds of text")
    figure, (axes,) = style.canvas()
    looks = ((style.ATTACK, "-"), (style.CONTROL, "--"), (style.DP, "-."), ("#7a7a7a", ":"))
    for (name, columns), (color, line), marker in zip(rates.items(), looks, _MARKERS, strict=False):
        x, values, lows, highs = style.columns_of(
            ngrams=ngrams, rates=columns[0], lows=columns[1], highs=columns[2]
        )
        axes.errorbar(
            x,
            values,
            yerr=style.whiskers(values, lows, highs),
            color=color,
            linestyle=line,
            marker=marker,
            markerfacecolor="white" if color == style.CONTROL else color,
            capsize=2.5,
            **style.in_legend({"label": style.literal(name)}),
        )
    axes.set(xlabel="words of a protected run", ylabel="texts held back (%)", ylim=(-0.03, 1.05))
    axes.set_xticks(np.asarray(ngrams, dtype=float))
    style.percent_axis(axes.yaxis)
    style.legend_above(figure, axes, columns=2)
    return figure
