"""Pictures of anonymized tables: classes with their k, l and t, who stands alone, what attackers conclude."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.stats import poisson

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks

_FILLS = ((style.PUBLIC, None), ("white", "////"), (style.NON_PRIVATE, None), ("white", "...."))
_STAGES = (
    ("before", "share in the whole table", {"marker": "o", "mfc": "white"}),
    ("table", "belief from the class", {"marker": "s", "mfc": style.PUBLIC}),
    ("after", "with further knowledge", {"marker": "D", "mfc": style.ATTACK}),
)


def _need(frame: pd.DataFrame, columns: tuple[str, ...], name: str) -> None:
    if missing := [column for column in columns if column not in frame.columns]:
        raise InvalidParameter(f"{name}: no column {missing}; it has {list(frame.columns)}")
    if frame.empty or not frame.index.is_unique:
        raise InvalidParameter(f"{name}: needs one row or more, each with its own name")


def _class_bars(axes: Axes, reports: Mapping[str, pd.DataFrame], column: str) -> None:
    width = 0.8 / len(reports)
    for place, (name, report) in enumerate(reports.items()):
        color, hatch = _FILLS[place]
        at = np.arange(1, len(report) + 1) + (place - (len(reports) - 1) / 2) * width
        looks = {"facecolor": color, "hatch": hatch, "edgecolor": style.NON_PRIVATE, "linewidth": 0.8}
        axes.bar(at, report[column], width * 0.9, label=style.literal(name), **looks)
        if column == "distinct_l":
            label = "entropy ℓ" if place == 0 else None
            mark = {"fmt": "D", "color": style.ATTACK, "mec": style.NON_PRIVATE, "markersize": 5}
            axes.errorbar(at, report["entropy_l"], label=label, **mark)


@style.drawn
def class_measures(reports: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw size, ℓ (distinct as bars, entropy as diamonds) and t of every class, releases side by side.

    Args:
        reports: result of `anonymity.class_report` by name of the release, one to four.

    Raises:
        InvalidParameter: there is no release or more than four, or a report lacks a column.
    """
    if not 1 <= len(reports) <= len(_FILLS):
        raise InvalidParameter(f"reports: give 1 to {len(_FILLS)} releases, not {len(reports)}")
    for name, report in reports.items():
        _need(report, ("size", "distinct_l", "entropy_l", "t"), name)
    figure, panels = style.canvas(style.SHORT, 3)
    labels = (
        ("size", "people in the class", "k: the least"),
        ("distinct_l", "different values in the class", "ℓ: the least"),
        ("t", "distance to the whole table", "t: the most"),
    )
    for axes, (column, label, summary) in zip(panels, labels, strict=True):
        _class_bars(axes, reports, column)
        classes = max(len(report) for report in reports.values())
        axes.set_xticks(range(1, classes + 1))
        axes.grid(False, axis="x")
        axes.set(xlabel=f"class ({summary})", ylabel=label, ylim=(0, 1 if column == "t" else None))
        if column != "t":
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    style.legend_above(figure, panels[1])
    return figure


@style.drawn
def small_class_shares(shares: pd.DataFrame, *, below: int) -> Figure:
    """Draw who stands alone, and who stands in a small class, for coarser and coarser quasi-identifiers.

    The curves are the theory for classes of equal expected size (Poisson); the bars are where the theory for
    the unequal classes of each version expects the measured shares.

    Args:
        shares: one row a version of the quasi-identifiers, its name as index; columns `people_per_class`
            (mean over all combinations, above 0), `unique` and `small` (measured shares in [0, 1]) and, for
            each of the two, `_low` and `_high`.
        below: class size from which on a class does not count as small, 2 or more.

    Raises:
        InvalidParameter: a column is missing, a name repeats, a size is not positive, or a low end is above
            its high end.

    Source: Golle 2006, for the question.
    """
    checks.count("below", below, low=2)
    ends = tuple(f"{k}{e}" for k in ("unique", "small") for e in ("", "_low", "_high"))
    _need(shares, ("people_per_class", *ends), "shares")
    sizes = checks.vector("people_per_class", shares["people_per_class"])
    if sizes.min() <= 0:
        raise InvalidParameter(f"people_per_class: must be above 0, found {sizes.min():g}")
    grid = np.geomspace(sizes.min() / 3, sizes.max() * 2, 300)
    figure, (axes,) = style.canvas(style.TALL)
    looks = (
        ("unique", 2, "alone in the class", {"marker": "o", "markersize": 4.5}, "-"),
        (
            "small",
            below,
            f"in a class of fewer than {below}",
            {"marker": "s", "mfc": "white", "markersize": 8},
            "--",
        ),
    )
    for key, limit, label, look, line in looks:
        low, high = shares[f"{key}_low"].to_numpy(), shares[f"{key}_high"].to_numpy()
        if (low > high).any():
            raise InvalidParameter(f"{key}_low: must not be above {key}_high")
        axes.plot(grid, poisson.cdf(limit - 2, grid), color=style.NON_PRIVATE, linestyle=line, linewidth=1)
        bars = {"fmt": "none", "ecolor": style.ATTACK, "elinewidth": 3, "capsize": 8, "capthick": 1.5}
        axes.errorbar(sizes, (low + high) / 2, (high - low) / 2, zorder=2, **bars)
        spots = {"color": style.NON_PRIVATE, "linewidth": 1, **look}
        axes.plot([], [], label=label, linestyle=line, **spots)
        # The filled circle is smaller and in front: both show where they coincide.
        place = {"zorder": 4 if key == "unique" else 3, "clip_on": False, "linestyle": "none"}
        axes.plot(sizes, shares[key], **place, **spots)
    axes.set(xscale="log", xlim=(grid[0], grid[-1]), ylim=(-0.02, 1.02))
    axes.set(xlabel="people per combination of released values (mean)")
    axes.set(ylabel="share of the inhabitants (percent)")
    style.log_axis(axes.xaxis)
    style.percent_axis(axes.yaxis)
    axes.vlines(sizes, 0, 1.02, color=style.PUBLIC, linewidth=0.8, linestyle=":", zorder=1)
    for size, name in zip(sizes, shares.index, strict=True):
        axes.text(size, 1.04, style.literal(name, 32), rotation=28, va="bottom", ha="left", size=7.5)
    axes.legend(loc="upper right", frameon=True, facecolor="white", edgecolor="none", framealpha=1)
    return figure


@style.drawn
def attack_beliefs(beliefs: pd.DataFrame) -> Figure:
    """Draw how sure an attacker is before a release, after reading it, and with knowledge besides.

    Args:
        beliefs: one row an attack, its name as index; columns `before`, `table` and `after`:
            probabilities in [0, 1]; a missing `after` is not drawn.

    Raises:
        InvalidParameter: a column is missing, a name repeats, or a probability is outside [0, 1].
    """
    _need(beliefs, tuple(key for key, _, _ in _STAGES), "beliefs")
    values = beliefs[[key for key, _, _ in _STAGES]].to_numpy(float)
    known = values[~np.isnan(values)]
    if np.isnan(values[:, :2]).any() or (known < 0).any() or (known > 1).any():
        raise InvalidParameter("beliefs: before and table must be there, and all must be in [0, 1]")
    figure, (axes,) = style.canvas()
    places = np.arange(len(beliefs))
    ends = np.nanmin(values, axis=1), np.nanmax(values, axis=1)
    axes.hlines(places, *ends, color=style.PUBLIC, linewidth=3, zorder=1)
    # Where two stages agree, the earlier one is drawn larger and shows around the later one.
    for (_, label, look), column, size in zip(_STAGES, values.T, (10, 8, 5), strict=True):
        spots = {"color": style.NON_PRIVATE, "linestyle": "none", "markersize": size, **look}
        axes.plot(column, places, label=label, zorder=3, clip_on=False, **spots)
    axes.set_yticks(places, [style.literal(name) for name in beliefs.index])
    axes.set(ylim=(len(beliefs) - 0.5, -0.5), xlim=(-0.02, 1.02), ylabel="attack")
    axes.set(xlabel="attacker's probability for the value (percent)")
    style.percent_axis(axes.xaxis)
    style.legend_above(figure, axes, columns=3)
    return figure
