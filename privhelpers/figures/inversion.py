"""Pictures of gradient inversion: the gap of the span check, what was read, recovery by noise and batch."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import Interval, checks

_READ = mpl.colors.ListedColormap(["white", style.ATTACK])
_LOOKS = (
    (style.ATTACK, "o", "-"),
    (style.NON_PRIVATE, "^", (0, (5, 1.5))),
    ("#7a3e00", "s", "-."),
    ("#8a8a8a", "D", (0, (1, 1))),
)
Rates = Mapping[str, Mapping[float, Interval]]
_ASIDE = 1.025  # by what factor bars of the next line stand aside, so that none hides another
_ZERO = 1e-9  # where a distance of nothing at all is drawn


def _by_place(name: str, given: Rates) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return places, rising, and (estimate, low, high) of each by name."""
    if not given or not all(given.values()):
        raise InvalidParameter(f"{name}: give one name or more, each with one interval or more")
    found = {}
    for key, intervals in given.items():
        places = checks.vector(f"places of {style.literal(key)}", sorted(intervals))
        if places.min() <= 0:
            raise InvalidParameter(f"{name}: places must be greater than 0 (logarithmic axis)")
        ends = np.array([(i.estimate, i.low, i.high) for _, i in sorted(intervals.items())]).T
        style.whiskers(*ends)
        found[key] = (places, ends)
    return found


@style.drawn
def span_gap(own: ArrayLike, others: ArrayLike, *, passes: float) -> Figure:
    """Draw how far the note's own tokens and all other candidates lie from the span, on a logarithmic axis.

    Args:
        own: distance of the right token at each position, in [0, 1].
        others: distances of the wrong ones, in [0, 1].
        passes: the distance below which a candidate passes, greater than 0.

    Raises:
        InvalidParameter: an arm is empty or a value is not finite.
    """
    arms = {"tokens of the note": checks.vector("own", own), "all others": checks.vector("others", others)}
    edges = np.geomspace(_ZERO, 1.0, 55)
    figure, (axes,) = style.canvas()
    looks = ((style.ATTACK, None, 0.85), (style.CONTROL, "////", 1.0))
    for (name, values), (color, hatch, alpha) in zip(arms.items(), looks, strict=True):
        shares = np.histogram(np.clip(values, _ZERO, 1.0), edges)[0] / values.size
        fill = {"facecolor": "none" if hatch else color, "hatch": hatch, "alpha": alpha}
        label = f"{name} (n = {values.size:,})"
        axes.stairs(shares, edges, fill=True, edgecolor=color, linewidth=0, label=label, **fill)
        axes.stairs(shares, edges, color=color, linewidth=1)
    axes.axvline(passes, color=style.NON_PRIVATE, linestyle="--", label="passes to the left")
    axes.set(xscale="log", xlim=(_ZERO, 1.5), ylim=(0, None), ylabel="share of the group (%)")
    axes.set(xlabel="distance from the span of the gradient (share of the vector's length)")
    style.log_axis(axes.xaxis, [1e-8, 1e-6, 1e-4, 1e-2, 1])
    style.percent_axis(axes.yaxis)
    style.legend_above(figure, axes)
    return figure


@style.drawn
def positions_read(panels: Mapping[str, ArrayLike]) -> Figure:
    """Draw, for every note and position, whether the attack read the token: filled where it did.

    Args:
        panels: outcomes by what was done to the gradient, each of shape [notes, positions], 0 or 1; the same
            notes in every panel.

    Raises:
        InvalidParameter: shapes differ, or a value is neither 0 nor 1.
    """
    tables = {name: np.asarray(values, dtype=float) for name, values in panels.items()}
    shapes = {table.shape for table in tables.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2 or 0 in next(iter(shapes)):
        raise InvalidParameter(f"panels: must be one or more tables of one shape, got {sorted(shapes)}")
    if any(not np.isin(table, (0, 1)).all() for table in tables.values()):
        raise InvalidParameter("panels: outcomes must be 0 or 1")
    ((notes, length),) = shapes
    figure, columns = style.canvas(style.SHORT, len(tables), sharey=True)
    for axes, (name, table) in zip(columns, tables.items(), strict=True):
        axes.grid(False)
        edges = (np.arange(length + 1) + 0.5, np.arange(notes + 1) + 0.5)
        axes.pcolormesh(*edges, table, cmap=_READ, vmin=0, vmax=1, edgecolors="#cfcfcf", linewidth=0.2)
        axes.set(xlabel="position (tokens)", title=f"{style.literal(name, 24)}: {100 * table.mean():.0f} %")
        axes.set_xticks([1, length // 2, length])
        axes.spines[["top", "right"]].set_visible(True)
    columns[0].set(ylabel="note (number)", ylim=(notes + 0.5, 0.5))
    columns[0].set_yticks(sorted({1, max(1, notes // 2), notes}))
    return figure


def _lines(
    axes: Axes, given: dict[str, tuple[np.ndarray, np.ndarray]], *, hollow: bool, spread: float = 1.0
) -> None:
    """Draw lines with bands, or with bars side by side where `spread` is not 1."""
    for place, (name, (x, (middle, low, high))) in enumerate(given.items()):
        color, marker, line = _LOOKS[place % len(_LOOKS)]
        if hollow:
            color, line = style.CONTROL, ":"
        x = x * spread ** (len(given) if hollow else place)
        if spread == 1.0:
            axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
        else:
            ends = style.whiskers(middle, low, high)
            axes.errorbar(x, middle, ends, fmt="none", ecolor=color, elinewidth=1, capsize=2)
        label = style.in_legend({"label": style.literal(name)})["label"]
        fill = "white" if hollow else color
        axes.plot(x, middle, linestyle=line, color=color, marker=marker, mfc=fill, ms=4, label=label)


def _frame(figure: Figure, axes: Axes, what: str) -> None:
    axes.set(ylim=(-0.02, 1.04), ylabel=f"{style.literal(what)} (%)")
    style.percent_axis(axes.yaxis)
    style.legend_above(figure, axes, columns=3)


@style.drawn
def recovery_by_noise(
    attacks: Rates,
    controls: Rates,
    *,
    ceiling: tuple[ArrayLike, ArrayLike],
    marks: Mapping[str, float],
    what: str,
) -> Figure:
    """Draw what attacks recover against the noise, with their control, the ceiling and where runs lie.

    Args:
        attacks, controls: by name, the interval of the rate at each noise over clipping bound, greater than
            0; up to four of each.
        ceiling: (noise, rising; the most that any attack may recover there, in [0, 1]).
        marks: noise of runs by label, such as {"ε = 8": 0.8}.
        what: the label of the rate.

    Raises:
        InvalidParameter: there is no attack or no control, a noise is not positive, or lengths differ.
    """
    x, top = style.columns_of(noise=ceiling[0], ceiling=ceiling[1])
    lines, dashes = _by_place("attacks", attacks), _by_place("controls", controls)
    if x.min() <= 0:
        raise InvalidParameter("ceiling: noise must be greater than 0 (logarithmic axis)")
    figure, (axes,) = style.canvas(style.TALL)
    axes.fill_between(x, top, 1.04, facecolor="none", edgecolor="#b0b0b0", hatch="\\\\", linewidth=0)
    axes.plot(x, top, color=style.DP, linewidth=2.2, label="ceiling by differential privacy")
    _lines(axes, lines, hollow=False)
    _lines(axes, dashes, hollow=True)
    for name, place in marks.items():
        axes.axvline(place, color=style.DP, linestyle=":", linewidth=1)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(place, 0.85, style.literal(name), rotation=90, ha="center", va="center", size=9, bbox=box)
    axes.set(xscale="log", xlim=(x.min(), x.max()), xlabel="noise over clipping bound σ (no unit)")
    style.log_axis(axes.xaxis, 10.0 ** np.arange(np.round(np.log10(x.min())), np.log10(x.max()) + 0.01))
    _frame(figure, axes, what)
    return figure


@style.drawn
def recovery_by_batch(attacks: Rates, controls: Rates, *, what: str) -> Figure:
    """Draw what attacks recover against the number of notes in the batch, beside their control.

    Args:
        attacks, controls: by name, the interval of the rate at each batch size, 1 or more; up to four each.
        what: the label of the rate.

    Raises:
        InvalidParameter: there is no attack or no control, or a size is not positive.
    """
    lines, dashes = _by_place("attacks", attacks), _by_place("controls", controls)
    figure, (axes,) = style.canvas(style.TALL)
    _lines(axes, lines, hollow=False, spread=_ASIDE)
    _lines(axes, dashes, hollow=True, spread=_ASIDE)
    axes.set(xscale="log", xlabel="notes in the batch (count)")
    style.log_axis(axes.xaxis, sorted({size for x, _ in lines.values() for size in x}))
    _frame(figure, axes, what)
    return figure
