"""Pictures of the audited report: its counts beside chance, its budgets, its scores, its intervals."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks

_HATCHES = ("////", "....", "xxxx")
_MARKERS = "osD^vP"
_COLORS = (style.NON_PRIVATE, style.ATTACK, style.DP, style.CONTROL, "#6a6a6a", "#8fc3e3")


@style.drawn
def null_counts(nulls: Mapping[str, ArrayLike], reported: Mapping[str, ArrayLike]) -> Figure:
    """Draw simulated counts of a system without memory, a panel each, with the reported counts as lines.

    Args:
        nulls: title of the panel: simulated counts, 2 or more.
        reported: same titles: the counts that the document reports, 1 or more.

    Raises:
        InvalidParameter: the titles differ, or there are no numbers.
    """
    if set(nulls) != set(reported) or not nulls:
        raise InvalidParameter(f"reported: must have the titles of nulls, {sorted(nulls)}")
    figure, panels = style.canvas(style.SHORT, len(nulls))
    for axes, (title, counts) in zip(panels, nulls.items(), strict=True):
        values = checks.vector("nulls", counts, least=2)
        low, high = np.percentile(values, [2.5, 97.5])
        axes.hist(
            values,
            bins=min(40, max(5, int(np.ptp(values)) + 1)),
            weights=np.full(values.size, 1 / values.size),
            color=style.PUBLIC,
            edgecolor="white",
            linewidth=0.3,
            label="no memory, simulated",
        )
        axes.axvspan(
            low,
            high,
            facecolor="none",
            edgecolor="#8a8a8a",
            hatch="////",
            linewidth=0,
            zorder=0,
            label="its middle 95 %",
        )
        for number, count in enumerate(checks.vector("reported", reported[title])):
            label = "reported" if number == 0 else None
            axes.axvline(count, color=style.ATTACK, linestyle="--", label=label)
        axes.set(title=style.literal(title), xlabel="leaking attempts of 1400 (count)")
    panels[0].set_ylabel("share of simulations")
    style.legend_above(figure, panels[0], columns=3)
    return figure


@style.drawn
def epsilon_readings(names: Sequence[str], readings: Mapping[str, ArrayLike]) -> Figure:
    """Draw what several noise multipliers are worth by several readings, on a logarithmic axis.

    Args:
        names: of the noise multipliers, from left to right.
        readings: label: one epsilon for each, in nats, greater than 0.

    Raises:
        InvalidParameter: a reading has another length, or a value that is not positive.
    """
    figure, (axes,) = style.canvas(style.TALL)
    places = np.arange(len(names))
    seen = []
    for number, (label, values) in enumerate(readings.items()):
        epsilons = checks.vector("readings", values)
        if epsilons.size != places.size or (epsilons <= 0).any():
            raise InvalidParameter(f"readings[{label!r}]: {places.size} values greater than 0 are needed")
        look = {"color": _COLORS[number % len(_COLORS)], "marker": _MARKERS[number % len(_MARKERS)]}
        hollow = {"mfc": "white"} if number % 2 else {}
        label = style.in_legend({"label": style.literal(label)})["label"]
        dashes = ("-", "--", "-.", ":")[number % 4]
        axes.plot(places, epsilons, label=label, linestyle=dashes, linewidth=0.9, **look, **hollow)
        seen.extend(epsilons)
    axes.set_yscale("log")
    style.log_axis(axes.yaxis, [t for t in style.nice_ticks(seen) if f"{t:g}".lstrip("0.")[0] in "15"])
    axes.set_xticks(places, [style.literal(name) for name in names])
    axes.set(xlim=(-0.3, places.size - 0.7), xlabel="published noise multiplier σ", ylabel="ε (nats)")
    style.legend_above(figure, axes, columns=2)
    return figure


@style.drawn
def risk_scores(
    models: Sequence[str], printed: ArrayLike, formulas: Mapping[str, Mapping[str, ArrayLike]]
) -> Figure:
    """Draw printed risk scores over the stacked parts that each formula would give.

    Args:
        models: names, from left to right.
        printed: score of each, in percent.
        formulas: title of a panel: name of a part: its share of the score of each model, in percent.

    Raises:
        InvalidParameter: lengths differ.
    """
    figure, panels = style.canvas(style.SHORT, len(formulas), sharey=True)
    places = np.arange(len(models))
    for axes, (title, parts) in zip(panels, formulas.items(), strict=True):
        score, *heights = style.columns_of(printed=printed, **parts)
        if score.size != places.size:
            raise InvalidParameter(f"printed: {places.size} scores are needed")
        floor = np.zeros(places.size)
        for number, (name, height) in enumerate(zip(parts, heights, strict=True)):
            look = {"color": (style.PUBLIC, "#8fc3e3", "#f2f2f2")[number % 3], "hatch": _HATCHES[number % 3]}
            label = style.in_legend({"label": style.literal(name)})["label"]
            axes.bar(places, height, 0.62, bottom=floor, edgecolor="#6a6a6a", lw=0.4, label=label, **look)
            floor = floor + height
        axes.plot(places, score, "D", color=style.ATTACK, mec="white", label="printed score", zorder=3)
        axes.set_xticks(places, [style.literal(m) for m in models], rotation=35, ha="right")
        axes.set(title=style.literal(title), xlabel="model of the report")
    panels[0].set_ylabel("risk score (%)")
    style.legend_above(figure, panels[0])
    return figure


@style.drawn
def interval_forest(
    labels: Sequence[str], estimates: ArrayLike, lows: ArrayLike, highs: ArrayLike, groups: Sequence[str]
) -> Figure:
    """Draw rates with their intervals, one a line, grouped by how the interval was made.

    Args:
        labels: of the lines, from top to bottom.
        estimates, lows, highs: rates in [0, 1], same length.
        groups: kind of each line; each kind has its own mark.

    Raises:
        InvalidParameter: lengths differ, or an interval misses its estimate.
    """
    rate, low, high = style.columns_of(estimates=estimates, lows=lows, highs=highs)
    if not rate.size == len(labels) == len(groups):
        raise InvalidParameter(f"labels and groups: {rate.size} of each are needed")
    figure, (axes,) = style.canvas(style.TALL)
    kinds = list(dict.fromkeys(groups))
    places = np.arange(rate.size)
    for number, kind in enumerate(kinds):
        here = np.array([group == kind for group in groups])
        look = {"color": _COLORS[number % len(_COLORS)], "fmt": _MARKERS[number % len(_MARKERS)]}
        axes.errorbar(
            rate[here],
            places[here],
            xerr=style.whiskers(rate[here], low[here], high[here]),
            capsize=2.5,
            mfc="white" if number % 2 else None,
            label=style.in_legend({"label": style.literal(kind)})["label"],
            **look,
        )
    axes.set_yticks(places, [style.literal(label) for label in labels])
    axes.set(ylim=(rate.size - 0.4, -0.6), ylabel="count and method", xlabel="attempts that leak (%)")
    axes.set_xlim(left=-0.02 * axes.get_xlim()[1])
    style.percent_axis(axes.xaxis)
    style.legend_above(figure, axes)
    return figure


@style.drawn
def verdict_bars(counts: Mapping[str, Mapping[str, int]]) -> Figure:
    """Draw how many claims have each verdict, stacked by severity.

    Args:
        counts: verdict: severity: number of claims; verdicts from top to bottom.

    Raises:
        InvalidParameter: there is nothing to draw.
    """
    if not counts:
        raise InvalidParameter("counts: there is nothing to draw")
    figure, (axes,) = style.canvas()
    severities = list(dict.fromkeys(name for row in counts.values() for name in row))
    shades = {"A": style.ATTACK, "B": "#f3c08a", "C": "#f7e7d4", "none": style.PUBLIC}
    left = np.zeros(len(counts))
    for number, severity in enumerate(severities):
        width = np.array([row.get(severity, 0) for row in counts.values()], dtype=float)
        bars = axes.barh(
            range(len(counts)),
            width,
            0.66,
            left=left,
            color=shades.get(severity, style.PUBLIC),
            hatch=("", "////", "....", "")[number % 4],
            edgecolor="#6a6a6a",
            linewidth=0.5,
            label=style.in_legend({"label": style.literal(severity)})["label"],
        )
        for bar, size, start in zip(bars, width, left, strict=True):
            if size:
                middle = bar.get_y() + bar.get_height() / 2
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
                axes.text(start + size / 2, middle, f"{size:.0f}", ha="center", va="center", size=8, bbox=box)
        left = left + width
    axes.set_yticks(range(len(counts)), [style.literal(v) for v in counts])
    axes.set(ylim=(len(counts) - 0.4, -0.6), ylabel="verdict", xlabel="claims (count)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    handles, labels = axes.get_legend_handles_labels()
    title = {"title": "weight of the fault", "ncols": len(severities)}
    figure.legend(handles, labels, loc="outside upper center", **title)
    return figure
