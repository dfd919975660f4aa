"""Pictures of what defenses leave: recall of scrubbers, small classes, proposals of MinHash, bypasses."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.defenses.dedup import proposal_probability
from privhelpers.errors import InvalidParameter
from privhelpers.figures import style

# Neither the grey of models nor the blue of DP nor the orange of attacks: these are none of them.
_LOOKS = (
    {"color": "#262626", "mfc": "white", "marker": "s"},
    {"color": "#009e73", "mfc": "#009e73", "marker": "o"},
    {"color": "#882255", "mfc": "#882255", "marker": "D"},
    {"color": "#7a7a7a", "mfc": "#d8d8d8", "marker": "^"},
)
_ENDS = ("rate", "low", "high")


def _columns(table: pd.DataFrame, *names: str) -> None:
    if missing := [name for name in names if name not in table.columns]:
        raise InvalidParameter(f"table: no column {missing}; it has {list(table.columns)}")
    if table.empty:
        raise InvalidParameter("table: has no rows")


def _dots(axes: Axes, table: pd.DataFrame, rows: Sequence[str], row: str, series: str) -> None:
    """Draw rates with intervals, one line of dots for each entry of `rows`, the series side by side."""
    names = list(dict.fromkeys(table[series]))
    if len(names) > len(_LOOKS):
        raise InvalidParameter(
            f"{series}: {len(names)} different ones; at most {len(_LOOKS)} can be told apart"
        )
    shifts = np.linspace(-0.27, 0.27, len(names)) if len(names) > 1 else [0.0]
    for name, look, shift in zip(names, _LOOKS, shifts, strict=False):
        part = table[table[series] == name].set_index(row).reindex(rows)
        here = part["rate"].notna().to_numpy()
        rate, low, high = (part[end].to_numpy(float)[here] for end in _ENDS)
        axes.errorbar(
            rate,
            np.arange(len(rows))[here] + shift,
            xerr=style.whiskers(rate, low, high),
            fmt=look["marker"],
            color=look["color"],
            mfc=look["mfc"],
            markersize=4,
            elinewidth=1,
            label=style.in_legend({"label": style.literal(name)})["label"],
        )
    for place in range(1, len(rows)):
        axes.axhline(place - 0.5, color="#e4e4e4", linewidth=0.6, zorder=0)


@style.drawn
def scrubbing_recall(table: pd.DataFrame) -> Figure:
    """Draw how much of each identifier each scrubber takes out, in one panel for each set of notes.

    Args:
        table: columns notes, scrubber, identifier, rate, low, high (in [0, 1]); first rows on top.

    Raises:
        InvalidParameter: a column is missing, or an interval misses its estimate.
    """
    _columns(table, "notes", "scrubber", "identifier", *_ENDS)
    identifiers, panels = list(dict.fromkeys(table["identifier"])), list(dict.fromkeys(table["notes"]))
    figure, axes = style.canvas(style.TALL, len(panels), sharey=True)
    for one, notes in zip(axes, panels, strict=True):
        _dots(one, table[table["notes"] == notes], identifiers, "identifier", "scrubber")
        one.set(title=style.literal(notes), xlabel="places taken out whole (%)", xlim=(-0.04, 1.04))
        one.grid(visible=False, axis="y")
        style.percent_axis(one.xaxis)
    axes[0].set_yticks(range(len(identifiers)), [style.literal(name) for name in identifiers])
    axes[0].set(ylim=(len(identifiers) - 0.5, -0.5), ylabel="identifier")
    style.legend_above(figure, axes[0])
    return figure


@style.drawn
def small_classes(
    names: Sequence[str], shares: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]]
) -> Figure:
    """Draw the share of patients in small classes as the reader knows more.

    Args:
        names: what the reader knows, from little to much, one a place on the axis.
        shares: label of a class size to (rates, lows, highs), each of the length of `names`, in [0, 1].

    Raises:
        InvalidParameter: lengths differ, or an interval misses its estimate.
    """
    if not shares:
        raise InvalidParameter("shares: give one series or more")
    figure, (axes,) = style.canvas()
    for number, (label, columns) in enumerate(shares.items()):
        look = _LOOKS[number % len(_LOOKS)]
        rates, lows, highs = style.columns_of(**dict(zip(_ENDS, columns, strict=True)))
        if rates.size != len(names):
            raise InvalidParameter(f"{label}: {rates.size} values for {len(names)} names")
        places = np.arange(len(names)) + 0.1 * number - 0.05 * (len(shares) - 1)
        axes.errorbar(
            places,
            rates,
            yerr=style.whiskers(rates, lows, highs),
            fmt=look["marker"] + ("-", "--", ":", "-.")[number % 4],
            color=look["color"],
            mfc=look["mfc"],
            capsize=2.5,
            label=style.in_legend({"label": style.literal(label)})["label"],
        )
    axes.set_xticks(range(len(names)), [style.literal(name) for name in names])
    axes.set(xlabel="what the reader knows", ylabel="patients (%)", ylim=(-0.03, 1.05))
    style.percent_axis(axes.yaxis)
    style.legend_above(figure, axes)
    return figure


@style.drawn
def proposal_curves(shapes: Mapping[str, tuple[int, int]], threshold: float) -> Figure:
    """Draw how probably MinHash proposes a pair, by its similarity.

    Args:
        shapes: label to (bands, rows).
        threshold: similarity from which a pair counts, in (0, 1].
    """
    if not shapes:
        raise InvalidParameter("shapes: give one or more")
    figure, (axes,) = style.canvas()
    similarity = np.linspace(0, 1, 201)
    for number, (label, (bands, rows)) in enumerate(shapes.items()):
        axes.plot(
            similarity,
            proposal_probability(similarity, bands, rows),
            ("-", "--", ":", "-.")[number % 4],
            color=_LOOKS[(number + 1) % len(_LOOKS)]["color"],
            label=style.in_legend({"label": style.literal(label)})["label"],
        )
    axes.axvspan(threshold, 1, facecolor="none", edgecolor="#9a9a9a", hatch="////", linewidth=0, zorder=0)
    axes.axvline(
        threshold, color=style.CONTROL, linewidth=0.8, label="threshold; duplicates lie to its right"
    )
    axes.set(xlabel="Jaccard similarity of two notes", ylabel="probability to be proposed", xlim=(0, 1))
    style.legend_above(figure, axes, columns=3)
    return figure


@style.drawn
def filter_bypasses(table: pd.DataFrame) -> Figure:
    """Draw how many identifiers a reader gets through a filter, bypass by bypass.

    Args:
        table: columns bypass, filter, rate, low, high (in [0, 1]); first rows on top.

    Raises:
        InvalidParameter: a column is missing, or an interval misses its estimate.
    """
    _columns(table, "bypass", "filter", *_ENDS)
    bypasses = list(dict.fromkeys(table["bypass"]))
    figure, (axes,) = style.canvas(style.TALL)
    _dots(axes, table, bypasses, "bypass", "filter")
    axes.set_yticks(range(len(bypasses)), [style.literal(name) for name in bypasses])
    axes.set(ylim=(len(bypasses) - 0.5, -0.5), ylabel="how the text is written", xlim=(-0.03, 1.03))
    axes.set_xlabel("identifiers that the reader recovers (%)")
    axes.grid(visible=False, axis="y")
    style.percent_axis(axes.xaxis)
    style.legend_above(figure, axes)
    return figure
