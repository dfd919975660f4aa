"""Pictures of forgetting: ascent step by step, what attacks say afterwards, and what shards cost."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks

_LOOKS = (
    {"color": style.ATTACK, "linestyle": "-", "marker": "o"},
    {"color": style.DP, "linestyle": "--", "marker": "s"},
    {"color": style.NON_PRIVATE, "linestyle": "-.", "marker": "^"},
    {"color": "#7a7a7a", "linestyle": ":", "marker": "D"},
)


@style.drawn
def ascent_path(
    areas: Mapping[str, Sequence[ArrayLike]],
    perplexities: Mapping[str, Sequence[ArrayLike]],
    *,
    standard: float,
) -> Figure:
    """Draw membership and utility against the steps of unlearning, one line a method.

    Args:
        areas: by method: steps, AUC of forgotten against never-trained patients, and its interval's ends.
        perplexities: by method: steps, and perplexity on notes of never-trained patients.
        standard: perplexity of the model that never saw the forgotten patients.

    Raises:
        InvalidParameter: lengths differ, methods differ or are more than four, or an interval misses its
            estimate.
    """
    if set(areas) != set(perplexities) or not 1 <= len(areas) <= len(_LOOKS):
        raise InvalidParameter("areas and perplexities: must be of the same methods, 1 to 4")
    figure, (left, right) = style.canvas(style.SHORT, columns=2)
    for (name, (steps, values, lows, highs)), look in zip(areas.items(), _LOOKS, strict=False):
        steps, values, lows, highs = style.columns_of(steps=steps, areas=values, lows=lows, highs=highs)
        style.whiskers(values, lows, highs)
        label = style.in_legend({"label": style.literal(name)})
        left.plot(steps, values, markersize=4, **look, **label)
        left.fill_between(steps, lows, highs, color=look["color"], alpha=0.18, linewidth=0)
        times, heights = style.columns_of(steps=perplexities[name][0], perplexities=perplexities[name][1])
        if heights.min() <= 0:
            raise InvalidParameter("perplexities: must be greater than 0 (log axis)")
        right.plot(times, heights, markersize=4, **look)
    left.axhline(0.5, color=style.CONTROL, linestyle="--", linewidth=1, label="never trained")
    right.axhline(standard, color=style.CONTROL, linestyle="--", linewidth=1)
    left.set(xlabel="steps of unlearning", ylabel="AUC, forgotten against others", ylim=(0, 1))
    right.set(xlabel="steps of unlearning", ylabel="perplexity, never-trained notes", yscale="log")
    shown = [standard, *(value for _, values in perplexities.values() for value in values)]
    wide = max(shown) > 50 * min(shown)  # then a tick for each power of ten is enough
    style.log_axis(right.yaxis, None if wide else style.nice_ticks(shown))
    style.legend_above(figure, left)
    return figure


@style.drawn
def forgetting_verdicts(
    models: Sequence[str], attacks: Mapping[str, Sequence[ArrayLike]], *, null: float = 0.5
) -> Figure:
    """Draw how the forgotten patients look to each attack on each model, first model on top.

    Args:
        models: names, all different.
        attacks: by attack, up to four: AUC on each model, and the ends of its interval.
        null: what never-trained patients give.

    Raises:
        InvalidParameter: lengths differ, names repeat, or an interval misses its estimate.
    """
    if not 1 <= len(attacks) <= len(_LOOKS) or len(set(models)) != len(models):
        raise InvalidParameter("models must differ, and attacks be 1 to 4")
    figure, (axes,) = style.canvas(style.TALL)
    places = np.arange(len(models))
    shifts = np.linspace(-0.24, 0.24, len(attacks)) if len(attacks) > 1 else [0.0]
    for (name, columns), look, shift in zip(attacks.items(), _LOOKS, shifts, strict=False):
        _, values, lows, highs = style.columns_of(
            models=places, areas=columns[0], lows=columns[1], highs=columns[2]
        )
        axes.errorbar(
            values,
            places + shift,
            xerr=style.whiskers(values, lows, highs),
            color=look["color"],
            marker=look["marker"],
            linestyle="none",
            capsize=2.5,
            **style.in_legend({"label": style.literal(name)}),
        )
    axes.axvline(null, color=style.CONTROL, linestyle="--", linewidth=1, label="never trained")
    axes.set_yticks(places, [style.literal(name) for name in models])
    axes.set(ylim=(len(models) - 0.4, -0.6), xlim=(-0.02, 1.02), ylabel="model")
    axes.set_xlabel("AUC, forgotten against never trained (left: over-forgotten)")
    style.legend_above(figure, axes)
    return figure


@style.drawn
def shard_costs(
    requests: ArrayLike, shares: Mapping[str, ArrayLike], measured: Sequence[float] | None = None
) -> Figure:
    """Draw the expected share of training that requests to forget repeat, by number of shards.

    Args:
        requests: numbers of patients who ask at once, greater than 0.
        shares: by number of shards, in words: expected share, in [0, 1], up to four lines.
        measured: requests and share of a run, marked with a star.

    Raises:
        InvalidParameter: lengths differ, or a number of requests is not positive.
    """
    numbers = checks.vector("requests", requests)
    if numbers.min() <= 0 or not 1 <= len(shares) <= len(_LOOKS):
        raise InvalidParameter("requests: must be greater than 0 (log axis); shares: give 1 to 4 lines")
    figure, (axes,) = style.canvas()
    for (name, values), look in zip(shares.items(), _LOOKS, strict=False):
        _, heights = style.columns_of(requests=numbers, shares=values)
        axes.plot(numbers, heights, markersize=4, **look, **style.in_legend({"label": style.literal(name)}))
    if measured is not None:
        axes.plot(*measured, "*", color=style.CONTROL, markersize=11, label="this chapter", linestyle="none")
    axes.set(xscale="log", xlabel="patients who ask at once", ylabel="training repeated (%)", ylim=(0, 1.05))
    style.log_axis(axes.xaxis)
    style.percent_axis(axes.yaxis)
    style.legend_above(figure, axes)
    return figure
