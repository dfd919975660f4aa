"""Pictures for a privacy officer: the ledger of 18 identifiers, what epsilon buys, what one score hides."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.figures.extraction import ARMS
from privhelpers.hipaa import MEASURED, NOT_IN_DATA, Promise
from privhelpers.mechanisms import posterior_range

_LINES = ("-", "--", "-.", ":")
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\")
_SHADES = (style.ATTACK, "#c9c9c9", "#ffffff", style.DP, style.NON_PRIVATE)


def _identifiers(axes: Axes, frame: pd.DataFrame) -> None:
    labels = [f"{style.literal(name)} ({letter})" for letter, name in frame["identifier"].items()]
    axes.set_yticks(range(len(frame)), labels, size=7.5)
    axes.set(ylim=(len(frame) - 0.4, -0.6), ylabel="HIPAA identifier (letter)")


def _arm(axes: Axes, place: float, rate: float, low: float, high: float, look: Mapping[str, str]) -> None:
    whiskers = style.whiskers(*(np.array([value]) for value in (rate, low, high)))
    axes.errorbar(
        rate, place, xerr=whiskers, fmt=look["marker"], color=look["color"], mfc=look["mfc"], markersize=4
    )


@style.drawn
def identifier_ledger(frame: pd.DataFrame) -> Figure:
    """Draw the 18-identifier ledger: leak rate and control with intervals, or why there is none.

    Args:
        frame: what `hipaa.ledger` returned.
    """
    figure, (axes,) = style.canvas(style.TALL)
    for place, (_, row) in enumerate(frame.iterrows()):
        if row["status"] != MEASURED:
            axes.text(0, place, row["status"], va="center", color="#6a6a6a", size=7.5, style="italic")
            continue
        _arm(axes, place - 0.17, row["rate"], row["low"], row["high"], ARMS["member"])
        if not np.isnan(row["control_rate"]):
            control = (row["control_rate"], row["control_low"], row["control_high"])
            _arm(axes, place + 0.17, *control, ARMS["control"])
    for look in ARMS.values():
        axes.plot([], [], linestyle="", **look)
    _identifiers(axes, frame)
    by_patient = frame["carriers"].notna().any()
    unit = "patients whose value came out" if by_patient else "attempts that reproduce a value"
    axes.set(xlabel=f"{unit} (%)")
    axes.set_xlim(left=0 - 0.02 * axes.get_xlim()[1])
    style.percent_axis(axes.xaxis)
    style.legend_above(figure, axes)
    return figure


def _cell(axes: Axes, column: int, place: int, row: pd.Series) -> None:
    corner = (column - 0.5, place - 0.5)
    if row["status"] != MEASURED:
        hatch = "////" if row["status"] == NOT_IN_DATA else "...."
        axes.add_patch(Rectangle(corner, 1, 1, facecolor="#f4f4f4", edgecolor="#c4c4c4", hatch=hatch, lw=0.4))
        return
    above = row["low"] > row["control_high"]
    color = style.ATTACK if above else "white"
    axes.add_patch(Rectangle(corner, 1, 1, facecolor=color, edgecolor="#9a9a9a", lw=1.4 if above else 0.4))
    control = "?" if pd.isna(row["control"]) else row["control"]
    weight = "bold" if above else "normal"
    axes.text(column, place, f"{row['leaked']} | {control}", ha="center", va="center", size=7, weight=weight)


@style.drawn
def ledger_by_model(ledgers: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw the ledgers of all models at once: leaked and control in each cell, hatched where there is none.

    A cell is filled where the interval of the members lies above that of the controls.

    Args:
        ledgers: what `hipaa.ledger` returned, by model.

    Raises:
        InvalidParameter: there is no model.
    """
    if not ledgers:
        raise InvalidParameter("ledgers: there is no model")
    figure, (axes,) = style.canvas(style.TALL)
    for column, frame in enumerate(ledgers.values()):
        for place, (_, row) in enumerate(frame.iterrows()):
            _cell(axes, column, place, row)
    looks = style.model_looks(ledgers)
    # One word a line, so that eight labels stand side by side.
    short = [looks[model]["label"].replace(" = ", "\u00a0=\u00a0").replace(" ", "\n") for model in ledgers]
    axes.set_xticks(range(len(ledgers)), short, size=6.5)
    _identifiers(axes, next(iter(ledgers.values())))
    axes.set(xlim=(-0.5, len(ledgers) - 0.5), xlabel="model (came out | control)")
    axes.set_ylim(len(next(iter(ledgers.values()))) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    looks_of_cells = {
        "above its control": {"facecolor": style.ATTACK, "lw": 1.4},
        "not told apart from it": {"facecolor": "white"},
        "not in the data": {"facecolor": "#f4f4f4", "hatch": "////"},
        "not measured": {"facecolor": "#f4f4f4", "hatch": "...."},
    }
    handles = [
        Rectangle((0, 0), 1, 1, edgecolor="#9a9a9a", label=label, **look)
        for label, look in looks_of_cells.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    return figure


@style.drawn
def belief_by_epsilon(promises: Sequence[Promise], priors: Sequence[float] = (0.01, 0.1, 0.5)) -> Figure:
    """Draw how sure an attacker can become at most, over epsilon, with the range of each trained budget.

    The curve is the guarantee of any epsilon; a filled mark is a budget that was trained, a hollow one
    what an audit certifies of the same run, and the truth lies on the line between them.

    Args:
        promises: of the trained budgets.
        priors: beliefs beforehand, each in (0, 1), at most four.

    Raises:
        InvalidParameter: there is no promise, or there are more priors than line styles.
    """
    if not promises or not 1 <= len(priors) <= len(_LINES):
        raise InvalidParameter("promises and priors: needs one promise, and one to four priors")
    figure, (axes,) = style.canvas()
    lows = [one.certified for one in promises if one.certified]
    grid = np.geomspace(min([*lows, *(one.epsilon for one in promises), 0.1]) / 1.5, 20, 200)
    for prior, line in zip(priors, _LINES, strict=False):
        beliefs = [posterior_range(prior=prior, epsilon=epsilon)[1] for epsilon in grid]
        axes.plot(grid, beliefs, line, color=style.NON_PRIVATE, lw=1, label=f"from {100 * prior:g} % before")
        for one in promises:
            ends = [epsilon for epsilon in (one.certified, one.epsilon) if epsilon]
            heights = [posterior_range(prior=prior, epsilon=epsilon)[1] for epsilon in ends]
            between = np.geomspace(ends[0], ends[-1], 40)
            path = [posterior_range(prior=prior, epsilon=epsilon)[1] for epsilon in between]
            axes.plot(between, path, color=style.dp_color(one.epsilon), lw=3.2, alpha=0.55, zorder=2)
            axes.plot(ends[-1], heights[-1], "o", color=style.dp_color(one.epsilon), zorder=3)
            if len(ends) == 2:
                axes.plot(ends[0], heights[0], "o", color=style.dp_color(one.epsilon), mfc="white", zorder=3)
    axes.plot([], [], "o", color=style.DP, label="budget trained")
    axes.plot([], [], "o", color=style.DP, mfc="white", label="certified by the audit")
    axes.set_xscale("log")
    style.log_axis(axes.xaxis, style.nice_ticks(grid))
    axes.set(xlabel="ε (nats)", ylabel="largest belief afterwards (%)", ylim=(0, 1.03))
    style.percent_axis(axes.yaxis)
    style.legend_above(figure, axes, columns=3)
    return figure


@style.drawn
def score_parts(parts: pd.DataFrame) -> Figure:
    """Draw a weighted score as the sum that it is: one bar a model, one piece a term.

    Args:
        parts: points that each term adds, 0 or more; one row a model, one column a term, at most five.

    Raises:
        InvalidParameter: more terms than hatches, a negative piece, or nothing to draw.
    """
    if parts.empty or parts.shape[1] > len(_HATCHES) or (parts.to_numpy() < 0).any():
        raise InvalidParameter("parts: needs at least one model, one to five terms, and pieces of 0 or more")
    figure, (axes,) = style.canvas()
    left = np.zeros(len(parts))
    for number, term in enumerate(parts.columns):
        pieces = parts[term].to_numpy(float)
        look = {"facecolor": _SHADES[number], "hatch": _HATCHES[number], "edgecolor": "#3a3a3a"}
        axes.barh(
            range(len(parts)), pieces, left=left, height=0.62, lw=0.6, label=style.literal(term), **look
        )
        left += pieces
    for place, total in enumerate(left):
        axes.text(total + 0.01 * left.max(), place, f"{total:.2f}", va="center", size=8)
    axes.set_yticks(range(len(parts)), [style.literal(model) for model in parts.index])
    axes.set(
        xlabel="score (points)", ylabel="model", ylim=(len(parts) - 0.4, -0.6), xlim=(0, 1.12 * left.max())
    )
    style.legend_above(figure, axes)
    return figure
