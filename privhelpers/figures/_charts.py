"""The charts that draw most of the book: forest, bands, two arms, ROC, bars, heat, and a trade-off.

    figures.forest(["loss", "LiRA"], {"note": (aucs, lows, highs)}, xlabel="area under the ROC curve")
    figures.bands(epsilons, {"baseline": rates}, xlabel="ε (nats)", ylabel="share recited")

A series or a row with the name of a model (`baseline`, `dp-eps-8`) gets that model's look. A series named in
`controls` is what no model was trained on: hollow, dashed or hatched. Every function returns the Figure, so
that it is shown as the last value of a cell, and takes `axes=` to draw into one that exists.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import _style as style
from privhelpers.stats import RocCurve, checks
from privhelpers.validate import shown

Series = ArrayLike | tuple[ArrayLike, ArrayLike, ArrayLike]
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (5, 4)))
_MARKERS = "osD^vPX*"
_TALLEST = 6.8  # inches: a figure and its caption on one screen
_CONTROL_SHADE = "#6d6d6d"


def _is_model(name: str) -> bool:
    return style.is_model(name)


def _row_label(row: str) -> str:
    return style.model_looks([row])[row]["label"] if _is_model(row) else style.literal(row)


def _looks(names: Sequence[str], controls: Collection[str]) -> dict[str, dict]:
    """Return label, color, marker and line of each series: models their own, others from indigo to amber."""
    if missing := set(controls) - set(names):
        raise InvalidParameter(f"controls: no series is called {', '.join(sorted(missing))}")
    models = style.model_looks(filter(_is_model, names))
    others = [name for name in names if name not in models and name not in controls]
    colors = dict(zip(others, style.series_colors(len(others)), strict=True))
    looks = {}
    for place, name in enumerate(names):
        if name in models:
            look = dict(models[name]) | ({"color": _CONTROL_SHADE} if name in controls else {})
        else:
            color = _CONTROL_SHADE if name in controls else colors[name]
            look = {"label": style.literal(name), "color": color}
        look.setdefault("marker", _MARKERS[place % len(_MARKERS)])
        look["linestyle"] = "--" if name in controls else _LINES[place % len(_LINES)]
        looks[name] = look
    return looks


def _checked(series: Mapping[str, Series], length: int) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """Return the values and error bars of each series, all of the common length."""
    if not series:
        raise InvalidParameter("series: give one or more")
    checked = {}
    for name, given in series.items():
        if isinstance(given, tuple):
            values, lows, highs = style.columns_of(values=given[0], lows=given[1], highs=given[2])
            ends = style.whiskers(values, lows, highs)
        else:
            values, ends = checks.vector(name, given), None
        if values.size != length:
            raise InvalidParameter(f"series {shown(name)}: has {values.size} values for {length} places")
        checked[name] = values, ends
    return checked


def _start(axes: Axes | None, height: float) -> tuple[Figure, Axes]:
    if axes is not None:
        return axes.figure, axes
    return style.canvas(height)


def _mark(line: Callable[..., object], value: float | None, label: str) -> None:
    """Draw a dotted line at a value with a meaning, if there is one."""
    if value is not None:
        line(value, label=label or None, color=style.CONTROL, linestyle=":", linewidth=1, zorder=1)


def _finish(axes: Axes, figure: Figure, *, standalone: bool = True) -> Figure:
    """Put a legend above the plot if something in it has a name."""
    entries = style.legend_entries(axes)
    if entries[1] and standalone:
        style.legend_above(figure, axes)
    elif entries[1]:
        axes.legend(*entries)
    return figure


def _dodge(count: int) -> np.ndarray:
    """Return the offset of each of several series from its place, so that none hides another."""
    return (np.arange(count) - (count - 1) / 2) * ((0.6 if count < 5 else 0.8) / max(count, 2))


def _height(marks: int) -> float:
    """Return the height of a forest, which grows with its marks up to a limit so that they do not touch."""
    return style.SHORT if marks <= 9 else min(max(style.TALL, 1 + 0.12 * marks), _TALLEST)


@style.drawn
def forest(
    rows: Sequence[str],
    series: Mapping[str, Series],
    *,
    xlabel: str,
    ylabel: str = "",
    reference: float | None = None,
    reference_label: str = "",
    band: tuple[float, float] | None = None,
    band_label: str = "",
    controls: Collection[str] = (),
    percent: bool = False,
    log: bool = False,
    axes: Axes | None = None,
) -> Figure:
    """Draw estimates with their intervals, one row each, the first row on top.

    Args:
        rows: what each row is about, such as a model or an attack.
        series: values by name, or (values, lows, highs), one for each row.
        xlabel, ylabel: with units.
        reference: a value with a meaning, drawn as a dotted line, such as 0.5 for a coin flip.
        reference_label, band_label: what the legend calls them.
        band: ends of a region with a meaning, such as an equivalence margin.
        controls: names of series that no model was trained on, drawn hollow.
        percent: values are shares, the axis shows percent.
        log: a logarithmic axis.
        axes: where to draw instead of a new figure.

    Raises:
        InvalidParameter: lengths differ, an interval misses its estimate, or a control has no series.
    """
    checked, looks = _checked(series, len(rows)), _looks(list(series), controls)
    figure, place = _start(axes, _height(len(rows) * len(series)))
    if band is not None:
        place.axvspan(*band, color=style.PUBLIC, alpha=0.35, zorder=0, label=band_label or None)
    _mark(place.axvline, reference, reference_label)
    row_colors = [look["color"] for look in style.model_looks(rows).values()]
    by_model = len(series) == 1 and all(map(_is_model, rows))  # then the row has the color, not the series
    for shift, (name, (values, ends)) in zip(_dodge(len(checked)), checked.items(), strict=True):
        look = looks[name]
        for row in range(len(rows)):
            place.errorbar(
                values[row],
                row + shift,
                xerr=None if ends is None else ends[:, [row]],
                fmt=look["marker"],
                color=row_colors[row] if by_model else look["color"],
                mfc="white" if name in controls else None,
                capsize=2.5,
                label=look["label"] if row == 0 and len(checked) > 1 else None,
            )
    place.set_yticks(range(len(rows)), [_row_label(row) for row in rows])
    place.set(ylim=(len(rows) - 0.4, -0.6), xlabel=xlabel, ylabel=ylabel)
    if log:
        place.set_xscale("log")
        style.log_axis(place.xaxis)
    if percent:
        style.percent_axis(place.xaxis)
    return _finish(place, figure, standalone=axes is None)


@style.drawn
def bands(
    x: ArrayLike,
    series: Mapping[str, Series],
    *,
    xlabel: str,
    ylabel: str,
    reference: float | None = None,
    reference_label: str = "",
    controls: Collection[str] = (),
    log_x: bool = False,
    log_y: bool = False,
    percent: bool = False,
    markers: bool = True,
    axes: Axes | None = None,
) -> Figure:
    """Draw lines over a common axis, each with its band of uncertainty, if given.

    Args:
        x: places, the same for every series.
        series: values by name, or (values, lows, highs).
        xlabel, ylabel: with units.
        reference: a height with a meaning, drawn dotted, such as the promised ε.
        reference_label: what the legend calls it.
        controls: names of series that no model was trained on, drawn dashed and hollow.
        log_x, log_y: logarithmic axes.
        percent: values are shares, the axis shows percent.
        markers: mark each value; leave it out for curves of hundreds of points.
        axes: where to draw instead of a new figure.

    Raises:
        InvalidParameter: lengths differ, an interval misses its estimate, or a control has no series.
    """
    places = checks.vector("x", x)
    checked, looks = _checked(series, places.size), _looks(list(series), controls)
    figure, place = _start(axes, style.SHORT)
    _mark(place.axhline, reference, reference_label)
    for name, (values, ends) in checked.items():
        look = looks[name] if markers else looks[name] | {"marker": ""}
        if ends is not None:
            low, high = values - ends[0], values + ends[1]
            place.fill_between(places, low, high, color=look["color"], alpha=0.18, linewidth=0)
        hollow = {"mfc": "white"} if name in controls else {}
        place.plot(places, values, **look, **hollow)
    place.set(xlabel=xlabel, ylabel=ylabel)
    if (places == np.round(places)).all():
        place.xaxis.get_major_locator().set_params(integer=True)  # there is no epoch 2.5
    if log_x:
        place.set_xscale("log")
        style.log_axis(place.xaxis, style.ticks_at(place, places))
    if log_y:
        place.set_yscale("log")
        style.log_axis(place.yaxis)
    if percent:
        style.percent_axis(place.yaxis)
    return _finish(place, figure, standalone=axes is None)


@style.drawn
def two_arms(
    members: ArrayLike,
    controls: ArrayLike,
    *,
    xlabel: str,
    labels: tuple[str, str] = ("members", "controls"),
    threshold: float | None = None,
) -> Figure:
    """Draw how a score is distributed among members and among controls, as densities.

    Args:
        members: scores of what the model was trained on.
        controls: scores of what no model was trained on, drawn hollow and hatched.
        xlabel: the score, with its unit.
        labels: what the legend calls the two.
        threshold: where an attacker cuts, drawn as a line.

    Raises:
        InvalidParameter: an arm is empty or not finite.
    """
    arms = [checks.vector(name, values) for name, values in (("members", members), ("controls", controls))]
    edges = np.histogram_bin_edges(np.concatenate(arms), 30)
    figure, place = style.canvas()
    for values, name, color, hatch in zip(
        arms, labels, (style.ATTACK, style.CONTROL), (None, "////"), strict=True
    ):
        density = np.histogram(values, edges, density=True)[0]
        face = {"facecolor": "none" if hatch else color, "hatch": hatch, "alpha": 1 if hatch else 0.7}
        label = f"{style.literal(name)} (n = {values.size:,})"
        place.stairs(density, edges, fill=True, edgecolor=color, linewidth=0, label=label, **face)
        place.stairs(density, edges, color=color, linewidth=1)
    if threshold is not None:
        place.axvline(threshold, color=style.CONTROL, linestyle="--", label="threshold")
    place.set(xlabel=xlabel, ylabel="density")
    place.set_ylim(bottom=0)
    return _finish(place, figure)


@style.drawn
def roc(curves: Mapping[str, RocCurve], *, controls: Collection[str] = ()) -> Figure:
    """Draw ROC curves with their bands on logarithmic axes, with the diagonal of a coin flip.

    Args:
        curves: by model or by attack, from `stats.roc_curve`.
        controls: names of curves of what no model was trained on, drawn dashed and hollow.

    Raises:
        InvalidParameter: there is no curve, or a control has none.

    Source: Carlini et al., S&P 2022, figure 1, for the logarithmic axes.
    """
    if not curves:
        raise InvalidParameter("curves: give one curve or more")
    figure, place = style.canvas(style.TALL)
    looks = _looks(list(curves), controls)
    floor = min(curve.fpr[0] for curve in curves.values())
    place.plot([floor, 1], [floor, 1], color=style.CONTROL, linestyle=":", label="coin flip")
    for name, curve in curves.items():
        # A rate of zero has no place on a logarithmic axis: it is drawn on the lower edge.
        low, tpr, high = (np.maximum(values, floor / 2) for values in (curve.low, curve.tpr, curve.high))
        place.fill_between(curve.fpr, low, high, color=looks[name]["color"], alpha=0.16, linewidth=0)
        hollow = {"mfc": "white"} if name in controls else {}
        place.plot(curve.fpr, tpr, markevery=9, **looks[name], **hollow)
    place.set(xscale="log", yscale="log", xlim=(floor, 1), ylim=(floor / 2, 1.05))
    place.set(xlabel="false-positive rate (share of controls)")
    place.set(ylabel="true-positive rate (share of members)")
    style.log_axis(place.xaxis)
    style.log_axis(place.yaxis)
    return _finish(place, figure)


@style.drawn
def bars(
    rows: Sequence[str],
    series: Mapping[str, Series],
    *,
    xlabel: str,
    ylabel: str = "",
    stacked: bool = False,
    controls: Collection[str] = (),
    percent: bool = False,
    axes: Axes | None = None,
) -> Figure:
    """Draw horizontal bars, side by side with their intervals or stacked; a zero is drawn as a point.

    Args:
        rows: what each row is about, the first on top.
        series: values by name, or (values, lows, highs); stacked parts have no ends.
        xlabel, ylabel: with units.
        stacked: put the series of a row behind one another.
        controls: names of series that no model was trained on, drawn hatched.
        percent: values are shares, the axis shows percent.
        axes: where to draw instead of a new figure.

    Raises:
        InvalidParameter: lengths differ, an interval misses its estimate, a control has no series, or a
            stacked part has ends or is negative.
    """
    checked, looks = _checked(series, len(rows)), _looks(list(series), controls)
    if stacked and any(ends is not None or (values < 0).any() for values, ends in checked.values()):
        raise InvalidParameter("series: stacked parts are at least 0 and have no ends")
    figure, place = _start(axes, style.TALL if len(rows) * len(series) > 9 else style.SHORT)
    left = np.zeros(len(rows))
    shifts = np.zeros(len(checked)) if stacked else _dodge(len(checked)) * 1.3
    height = 0.7 if stacked else 0.78 / max(len(checked), 2)
    for shift, (name, (values, ends)) in zip(shifts, checked.items(), strict=True):
        look, heights = looks[name], np.arange(len(rows)) + shift
        hatch = {"facecolor": "none", "hatch": "////"} if name in controls else {"facecolor": look["color"]}
        order = np.argsort(values == 0, kind="stable")  # the legend looks like the first bar
        edges = {"edgecolor": look["color"], "linewidth": (values != 0)[order].astype(float)}
        place.barh(heights[order], values[order], height, left[order], label=look["label"], **edges, **hatch)
        if not stacked and (values == 0).any():
            zeros = {"linestyle": "none", "marker": look["marker"], "clip_on": False, "zorder": 3}
            place.plot(values[values == 0], heights[values == 0], color=look["color"], mfc="white", **zeros)
        if ends is not None:
            # A seam around each interval: in the dark it would vanish before its bar.
            seam = [patheffects.withStroke(linewidth=3.2, foreground="white")]
            interval = {"fmt": "none", "ecolor": style.CONTROL, "capsize": 2, "path_effects": seam}
            place.errorbar(values, heights, xerr=ends, **interval)
        left = left + values if stacked else left
    place.set_yticks(range(len(rows)), [_row_label(row) for row in rows])
    place.set(ylim=(len(rows) - 0.4, -0.6), xlabel=xlabel, ylabel=ylabel)
    if all((values == np.round(values)).all() for values, _ in checked.values()):
        place.xaxis.get_major_locator().set_params(integer=True)  # there is no claim 2.5
    if percent:
        style.percent_axis(place.xaxis)
    return _finish(place, figure, standalone=axes is None)


@style.drawn
def trade_off(
    names: Sequence[str],
    costs: Series,
    gains: Series,
    *,
    xlabel: str,
    ylabel: str,
    hollow: Collection[str] = (),
    reference: float | None = None,
    control: tuple[float, float] | None = None,
) -> Figure:
    """Draw one point a model: what it costs across, on a logarithmic axis, and what an attack gains upward.

    Args:
        names: of the models or settings, all different.
        costs: values greater than 0, or (values, lows, highs).
        gains: of the attack, in the same way.
        xlabel, ylabel: with units.
        hollow: names that are drawn hollow, such as the private ones.
        reference: gain of an attacker who guesses.
        control: ends of the gain if nothing can leak, drawn as a hatched band.

    Raises:
        InvalidParameter: names repeat, lengths differ, an interval misses its estimate, or a cost is not
            positive.
    """
    if len(set(names)) != len(names):
        raise InvalidParameter(f"names = {shown(list(names))}: must all be different")
    checked = _checked({"costs": costs, "gains": gains}, len(names))
    (across, across_ends), (upward, upward_ends) = checked.values()
    if across.min() <= 0:
        raise InvalidParameter("costs: must be greater than 0 (logarithmic axis)")
    figure, place = style.canvas(style.TALL)
    if control is not None:
        band = {"facecolor": "none", "edgecolor": style.PUBLIC, "hatch": "////", "linewidth": 0, "zorder": 0}
        place.axhspan(*control, **band, label="never trained on (control)")
    _mark(place.axhline, reference, "guessing")
    for number, (name, look) in enumerate(style.model_looks(names).items()):
        place.errorbar(
            across[number],
            upward[number],
            None if upward_ends is None else upward_ends[:, [number]],
            None if across_ends is None else across_ends[:, [number]],
            fmt=look["marker"],
            color=look["color"],
            mfc="none" if name in hollow else None,  # a mark below another one shows through
            label=look["label"],
            markersize=8,
            elinewidth=1,
            capsize=2,
        )
    place.set(xscale="log", xlabel=xlabel, ylabel=ylabel)
    style.log_axis(place.xaxis)
    return _finish(place, figure)


@style.drawn
def heat(
    frame: pd.DataFrame,
    *,
    label: str,
    xlabel: str = "",
    ylabel: str = "",
    digits: int = 2,
) -> Figure:
    """Draw a table as cells, darker for larger values, each with its number; missing cells stay white.

    Args:
        frame: numbers; its index and columns name rows and columns.
        label: what the numbers are, with their unit, for the scale.
        xlabel, ylabel: what the columns and the rows are.
        digits: after the decimal point.

    Raises:
        InvalidParameter: the table is empty or a value is infinite.
    """
    values = frame.to_numpy(dtype=float)
    if not values.size or np.isinf(values).any():
        raise InvalidParameter("frame: give a table with finite or missing values")
    figure, place = style.canvas(min(style.TALL, 1.2 + 0.34 * len(frame)))
    lowest, highest = np.nanmin(values), np.nanmax(values)
    sns.heatmap(
        frame.rename(index=str, columns=str).rename(index=_row_label, columns=_row_label),
        ax=place,
        cmap="Blues",
        vmin=lowest,
        vmax=highest if highest > lowest else lowest + 1,  # equal cells are light, none below zero
        annot=True,
        fmt=f".{digits}f",
        annot_kws={"fontsize": 8},
        cbar_kws={"label": label},
    )
    place.set(xlabel=xlabel, ylabel=ylabel)
    place.tick_params(rotation=0)
    place.grid(visible=False)
    return figure
