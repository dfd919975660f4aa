"""Pictures of memorization: what the best-ranked texts copy, how many draws a note needs, duplication."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks, clopper_pearson

_LINES = ("-", "--", ":", "-.")
_SHADES = ("#7a4300", "#e07b00", "#b35f00", "#f0a850")
_MARKERS = "osv^"


@style.drawn
def precision_by_count(table: pd.DataFrame, base: float) -> Figure:
    """Draw how many of the first k texts of each ranking are copied, beside the mirrored control.

    Args:
        table: one row per ranking, k and arm, with columns ranking, k (texts, 1 or more), arm ("member",
            "control"), rate, low, high (rates in [0, 1]).
        base: share of copied texts among all, in [0, 1]: what a random order gives.

    Raises:
        InvalidParameter: a column or an arm is missing, or an interval misses its estimate.
    """
    missing = {"ranking", "k", "arm", "rate", "low", "high"} - set(table.columns)
    if missing or set(table["arm"]) != {"member", "control"}:
        raise InvalidParameter(f"table: columns missing {sorted(missing)}; arm must be member and control")
    names, counts = list(dict.fromkeys(table["ranking"])), sorted(set(table["k"]))
    figure, panels = style.canvas(style.SHORT, 2, sharey=True)
    for axes, (arm, title) in zip(
        panels, (("member", "copied from training notes"), ("control", "mirror: held-out notes")), strict=True
    ):
        for place, name in enumerate(names):
            part = table[(table["ranking"] == name) & (table["arm"] == arm)].set_index("k").loc[counts]
            rate, low, high = (part[column].to_numpy(float) for column in ("rate", "low", "high"))
            shift = 0.17 * (place - (len(names) - 1) / 2)
            look = {
                "marker": _MARKERS[place % 4],
                "color": _SHADES[place % 4],
                "linestyle": _LINES[place % 4],
            }
            look |= {"mfc": look["color"] if arm == "member" else "white", "capsize": 2, "markersize": 4}
            label = style.in_legend({"label": style.literal(name)})["label"]
            places = np.arange(len(counts)) + shift
            axes.errorbar(places, rate, yerr=style.whiskers(rate, low, high), label=label, lw=1, **look)
        axes.set_xticks(range(len(counts)), [f"{count:g}" for count in counts])
        axes.set(title=title, xlabel="best-ranked texts (count)")
        style.percent_axis(axes.yaxis)
    panels[0].axhline(base, color=style.CONTROL, linestyle=(0, (1, 1)), lw=1, label="random order")
    panels[0].set(ylabel="copied texts (%)", ylim=(-0.03, 1.03))
    style.legend_above(figure, panels[0], columns=5)
    return figure


@style.drawn
def discovery_by_attempts(
    needed: Mapping[str, ArrayLike], greedy: Mapping[str, int], most: float = 1e5
) -> Figure:
    """Draw which share of notes an attacker gets by a number of draws, members beside controls.

    Args:
        needed: draws that each note needs, infinity where it cannot be drawn; for "member" and "control".
        greedy: notes that greedy decoding returns, for the same two.
        most: draws at the right end.

    Raises:
        InvalidParameter: an arm is missing.

    Source: Hayes et al. 2025.
    """
    if set(needed) != {"member", "control"} or set(greedy) != set(needed):
        raise InvalidParameter("needed and greedy: give both for member and control")
    figure, (axes,) = style.canvas()
    grid = np.logspace(0, np.log10(most), 61)
    looks = {
        "member": {"color": style.ATTACK, "linestyle": "-", "label": "trained on"},
        "control": {"color": style.CONTROL, "linestyle": "--", "label": "never trained on (control)"},
    }
    for arm, look in looks.items():
        draws = np.asarray(needed[arm], dtype=float)
        intervals = [clopper_pearson(int(np.sum(draws <= n)), draws.size) for n in grid]
        axes.plot(grid, [i.estimate for i in intervals], **look)
        ends = [i.low for i in intervals], [i.high for i in intervals]
        axes.fill_between(grid, *ends, color=look["color"], alpha=0.15, lw=0)
        share = clopper_pearson(int(greedy[arm]), draws.size)
        marker = {"marker": "o" if arm == "member" else "D", "color": look["color"], "linestyle": "none"}
        hollow = {"mfc": "white" if arm == "control" else look["color"], "clip_on": False, "zorder": 4}
        ends = [[share.estimate - share.low], [share.high - share.estimate]]
        label = "greedy decoding" if arm == "member" else "greedy (control)"
        axes.errorbar(1, share.estimate, yerr=ends, capsize=2.5, label=label, **marker, **hollow)
    axes.set_xscale("log")
    style.log_axis(axes.xaxis, [10.0**power for power in range(int(np.log10(most)) + 1)])
    axes.set(xlabel="draws (count)", ylabel="notes discovered (%)", ylim=(-0.03, 1.03))
    style.percent_axis(axes.yaxis)
    style.legend_above(figure, axes, columns=4)
    return figure


@style.drawn
def ranks_of_truth(ranks: Mapping[str, ArrayLike], candidates: int) -> Figure:
    """Draw how often the true value is among the first r, for each way of ranking.

    Args:
        ranks: place of the true value of each patient, by the name of the ranking; the first is drawn as the
            attack, the others as controls.
        candidates: number of values that were ranked.
    """
    figure, (axes,) = style.canvas()
    grid = np.arange(1, candidates + 1)
    colors = (style.ATTACK, style.CONTROL, "#6a6a6a", "#9a9a9a")
    for place, (name, values) in enumerate(ranks.items()):
        places = checks.vector(f"ranks of {name}", values)
        share = np.array([np.mean(places <= r) for r in grid])
        look = {"color": colors[place % 4], "linestyle": _LINES[place % 4], "marker": _MARKERS[place % 4]}
        interval = clopper_pearson(int(np.sum(places <= 1)), places.size)
        ends = [[interval.estimate - interval.low], [interval.high - interval.estimate]]
        shift = 0.55 + 0.12 * place
        axes.errorbar(shift, interval.estimate, yerr=ends, color=look["color"], capsize=2.5, lw=1)
        label = style.in_legend({"label": style.literal(name)})["label"]
        hollow = {"mfc": "white" if place else look["color"], "markersize": 4, "markevery": 3}
        axes.plot(grid, share, drawstyle="steps-post", label=label, **hollow, **look)
    axes.set(xlabel="first places looked at (count)", ylabel="patients whose diagnosis\nis among them (%)")
    axes.set(ylim=(-0.03, 1.03), xlim=(0.4, candidates + 0.4))
    style.percent_axis(axes.yaxis)
    style.legend_above(figure, axes, columns=2)
    return figure


def _duplication(axes: Axes, table: pd.DataFrame, levels: list[int], column: str) -> None:
    models = list(dict.fromkeys(table["model"]))
    for place, (model, look) in enumerate(style.model_looks(models).items()):
        part = table[table["model"] == model].set_index("copies").loc[levels]
        middle, low, high = (part[f"{column}{end}"].to_numpy(float) for end in ("", "_low", "_high"))
        places = np.arange(len(levels)) + 0.07 * (place - (len(models) - 1) / 2)
        error = style.whiskers(middle, low, high)
        line = {"linestyle": _LINES[place % 4], "lw": 1.1, "markersize": 4, "capsize": 1.5, "elinewidth": 0.7}
        axes.errorbar(places, middle, yerr=error, **style.in_legend(look), **line)


@style.drawn
def duplication_curves(table: pd.DataFrame, chance: float, ceiling_bits: float) -> Figure:
    """Draw exposure and extraction by the number of copies, one line a model.

    Args:
        table: one row per model and number of copies (0 for the controls), with columns model, copies,
            exposure, exposure_low, exposure_high (bits), extracted, extracted_low, extracted_high (rates).
        chance: bits that a secret has on average without any memory.
        ceiling_bits: largest exposure that can be measured, in bits.

    Raises:
        InvalidParameter: a column is missing, or an interval misses its estimate.
    """
    ends = [f"{name}{end}" for name in ("exposure", "extracted") for end in ("", "_low", "_high")]
    missing = {"model", "copies", *ends} - set(table.columns)
    if missing:
        raise InvalidParameter(f"table: columns missing {sorted(missing)}")
    levels = sorted(set(table["copies"]))
    figure, panels = style.canvas(style.TALL, 2)
    for axes, column in zip(panels, ("exposure", "extracted"), strict=True):
        _duplication(axes, table, levels, column)
        axes.set_xticks(range(len(levels)), ["0\n(control)" if not x else f"{x:g}" for x in levels])
        axes.set(xlabel="copies in the training notes (count)")
    panels[0].axhline(chance, color=style.CONTROL, linestyle="--", lw=1, label="chance")
    panels[0].axhline(ceiling_bits, color=style.CONTROL, linestyle=":", lw=1, label="ceiling of the measure")
    panels[0].set(ylabel="mean exposure (bits)")
    panels[1].set(ylabel="secrets spelled out greedily (%)", ylim=(-0.03, 1.03))
    style.percent_axis(panels[1].yaxis)
    style.legend_above(figure, panels[0], columns=3)
    return figure
