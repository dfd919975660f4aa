"""Pictures of hypothesis tests: trade-off curves, ceilings on an attack, and what epsilon buys."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks

_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 3)))


def _rates(name: str, values: ArrayLike) -> np.ndarray:
    array = checks.vector(name, values)
    if ((array < 0) | (array > 1)).any():
        raise InvalidParameter(f"{name}: rates must be in [0, 1]")
    return array


def _look(place: int, name: str, epsilon: float | None) -> dict[str, object]:
    """Return the look of a line: blue and darker with epsilon, grey where it has none."""
    color = style.NON_PRIVATE if epsilon is None else style.dp_color(epsilon)
    label = style.in_legend({"label": style.literal(name)})["label"]
    return {"color": color, "linestyle": _LINES[place % len(_LINES)], "label": label}


@style.drawn
def tradeoffs(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    corners: tuple[ArrayLike, ArrayLike] | None = None,
    epsilons: Mapping[str, float] | None = None,
) -> Figure:
    """Draw trade-off curves: the least false negatives of any test at each rate of false positives.

    Args:
        curves: (FPR, FNR) of points in order by name, each of shape [points], in [0, 1].
        corners: (FPR, FNR) of tests to mark, such as those that need no coin.
        epsilons: the epsilon of a curve by its name, for its color.

    Raises:
        InvalidParameter: there is no curve, or a rate is out of its range.

    Source: Dong, Roth and Su 2022, for the axes.
    """
    if not curves:
        raise InvalidParameter("curves: give one curve or more")
    figure, (axes,) = style.canvas(style.TALL)
    axes.plot([0, 1], [1, 0], color=style.PUBLIC, linewidth=1, label="guessing")
    for place, (name, (fpr, fnr)) in enumerate(curves.items()):
        x, y = style.columns_of(fpr=_rates("fpr", fpr), fnr=_rates("fnr", fnr))
        axes.plot(x, y, **_look(place, name, (epsilons or {}).get(name)))
    if corners is not None:
        x, y = style.columns_of(fpr=_rates("fpr", corners[0]), fnr=_rates("fnr", corners[1]))
        axes.plot(x, y, "o", color=style.ATTACK, mec=style.CONTROL, label="tests without a coin", zorder=3)
    axes.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    axes.set(xlabel="false-positive rate α", ylabel="false-negative rate β")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


@style.drawn
def ceilings(
    fpr: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    epsilons: Mapping[str, float] | None = None,
    points: Sequence[tuple[float, float, float, float]] = (),
) -> Figure:
    """Draw the largest true-positive rate at each false-positive rate, on logarithmic axes.

    Args:
        fpr: rising, in (0, 1]; shape [places].
        curves: largest TPR at each place by name, each of shape [places].
        epsilons: the epsilon of a curve by its name, for its color.
        points: measured attacks as (FPR, TPR, lower end, upper end of the interval of the TPR).

    Raises:
        InvalidParameter: lengths differ, or a rate is out of its range.

    Source: Carlini et al. 2022, for logarithmic axes.
    """
    places = _rates("fpr", fpr)
    if places.min() <= 0:
        raise InvalidParameter("fpr: must be greater than 0 (logarithmic axis)")
    figure, (axes,) = style.canvas(style.TALL)
    axes.plot(places, places, color=style.PUBLIC, linewidth=1, label="guessing")
    for place, (name, tpr) in enumerate(curves.items()):
        _, y = style.columns_of(fpr=places, tpr=_rates("tpr", tpr))
        axes.plot(places, y, **_look(place, name, (epsilons or {}).get(name)))
    if len(points):
        x, y, low, high = np.array(points, dtype=float).T
        ends = style.whiskers(y, low, high)
        look = {"color": style.ATTACK, "mec": style.CONTROL, "capsize": 3}
        axes.errorbar(x, y, ends, fmt="o", label="measured attack", zorder=3, **look)
    axes.set(xscale="log", yscale="log", xlim=(places.min(), 1), ylim=(places.min(), 1.15))
    axes.set(xlabel="false-positive rate (share of non-members)")
    axes.set(ylabel="true-positive rate (share of members)")
    style.log_axis(axes.xaxis)
    style.log_axis(axes.yaxis)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


@style.drawn
def what_epsilon_buys(epsilons: ArrayLike, curves: Mapping[str, ArrayLike]) -> Figure:
    """Draw ceilings on an attacker against epsilon, in percent.

    Args:
        epsilons: greater than 0, rising; shape [places].
        curves: a rate at each place by name, in [0, 1], each of shape [places].

    Raises:
        InvalidParameter: lengths differ, an epsilon is not positive or a rate out of its range.
    """
    places = checks.vector("epsilons", epsilons)
    if (places <= 0).any():
        raise InvalidParameter("epsilons: must be greater than 0 (logarithmic axis)")
    figure, (axes,) = style.canvas()
    colors = (style.DP, style.ATTACK, style.NON_PRIVATE, "#7a7a7a")
    for (name, values), line, color in zip(curves.items(), _LINES, colors * 2, strict=False):
        _, y = style.columns_of(epsilons=places, rates=_rates("rates", values))
        label = style.in_legend({"label": style.literal(name)})["label"]
        axes.plot(places, y, color=color, linestyle=line, label=label)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="ε of the guarantee (nats)", ylabel="at most (%)")
    style.log_axis(axes.xaxis, style.nice_ticks(places))
    style.percent_axis(axes.yaxis)
    style.legend_above(figure, axes, columns=2)
    return figure
