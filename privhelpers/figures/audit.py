"""Pictures of the audit: scores of canaries, lower against upper bounds, ceilings, a gallery of faults."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks

_TICKS = (0, 0.1, 0.5, 1, 2, 4, 8, 16, 32)
_MARKERS = "sDv^P"


def _root_axis(axes: Axes, which: str, largest: float) -> None:
    """Scale an axis of epsilons by its square root: zero has a place and small budgets are seen."""
    scale = {"functions": (lambda x: np.sqrt(np.maximum(x, 0)), np.square)}
    getattr(axes, f"set_{which}scale")("function", **scale)
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(FixedLocator([tick for tick in _TICKS if tick <= 1.05 * largest]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    getattr(axes, f"set_{which}lim")(0, 1.12 * largest)


def _bounds(**arrays: ArrayLike) -> list[np.ndarray]:
    columns = style.columns_of(**arrays)
    if any((column < 0).any() for column in columns):
        raise InvalidParameter(f"{', '.join(arrays)}: a bound on epsilon is 0 or more")
    return columns


@style.drawn
def canary_scores(scores: ArrayLike, included: ArrayLike, *, bins: int = 40) -> Figure:
    """Draw the scores of included and excluded canaries, with one Poisson standard error a bin.

    Args:
        scores: log-likelihood ratio of each canary, in nats, higher looks more included, shape [canaries].
        included: whether its coin put it in, shape [canaries].
        bins: number of common bins, 1 or more.

    Raises:
        InvalidParameter: lengths differ, a score is not finite, or one of the groups is empty.
    """
    values, coins = style.columns_of(scores=scores, included=np.asarray(included, dtype=float))
    inside = coins > 0
    if inside.all() or not inside.any():
        raise InvalidParameter("included: needs canaries of both kinds")
    edges = np.histogram_bin_edges(values, bins=checks.count("bins", bins, low=1))
    figure, (axes,) = style.canvas()
    for mask, name, color, hatch in (
        (inside, "included", style.ATTACK, None),
        (~inside, "excluded", style.CONTROL, "////"),
    ):
        counts = np.histogram(values[mask], edges)[0]
        fill = {"facecolor": "none" if hatch else color, "hatch": hatch, "alpha": 1 if hatch else 0.75}
        label = f"{name} (n = {mask.sum():,})"
        axes.stairs(counts, edges, fill=True, edgecolor=color, linewidth=0, label=label, **fill)
        axes.stairs(counts, edges, color=color, linewidth=1)
        shift = (0.12 if hatch else -0.12) * (edges[1] - edges[0])
        place = (edges[1:] + edges[:-1]) / 2 + shift
        axes.errorbar(place, counts, np.sqrt(counts), fmt="none", ecolor=color, elinewidth=0.8)
    axes.set(xlabel="score (log-likelihood ratio, nats)", ylabel="canaries in the bin")
    axes.set_ylim(bottom=0)
    style.legend_above(figure, axes)
    return figure


@style.drawn
def audit_bounds(
    names: Sequence[str],
    uppers: ArrayLike,
    lowers: ArrayLike,
    others: Mapping[str, ArrayLike] | None = None,
) -> Figure:
    """Draw each model's lower bound of the audit against the accountant's upper bound.

    Args:
        names: model names, all different.
        uppers: epsilon of the accountant.
        lowers: epsilon certified by the main audit; bounds, so they have no interval.
        others: further lower bounds of each model, by method, up to five methods.

    Raises:
        InvalidParameter: lengths differ, names repeat, or a bound is negative.
    """
    uppers, lowers = _bounds(uppers=uppers, lowers=lowers)
    others = {name: _bounds(uppers=uppers, lowers=values)[1] for name, values in (others or {}).items()}
    if len(names) != uppers.size or len(set(names)) != uppers.size or len(others) > len(_MARKERS):
        raise InvalidParameter(
            f"names = {list(names)!r}: must be {uppers.size} different names, others 5 at most"
        )
    figure, (axes,) = style.canvas(style.TALL)
    places = np.arange(uppers.size)
    axes.vlines(places, lowers, uppers, color=style.PUBLIC, linewidth=5, zorder=1)
    upper = {"color": style.CONTROL, "markersize": 20, "markeredgewidth": 1.6}
    axes.plot(places, uppers, "_", label="upper bound (accountant)", **upper)
    axes.plot(
        places, lowers, "o", color=style.DP, ms=8, zorder=4, clip_on=False, label="lower bound (audit, f-DP)"
    )
    for number, (name, values) in enumerate(others.items()):
        beside = places + 0.14 * (number + 1)
        look = style.in_legend({"label": style.literal(name)})
        axes.plot(
            beside, values, _MARKERS[number], color=style.CONTROL, mfc="white", ms=6, clip_on=False, **look
        )
    labels = [look["label"] for look in style.model_looks(names).values()]
    axes.set_xticks(places, labels)
    axes.set(xlim=(-0.5, uppers.size - 0.2), xlabel="model", ylabel="ε (nats; square-root scale)")
    _root_axis(axes, "y", max(uppers.max(), lowers.max(), 0.1, *(v.max() for v in others.values())))
    style.legend_above(figure, axes, columns=3)
    return figure


@style.drawn
def audit_ceilings(
    canaries: ArrayLike, ceilings: Mapping[str, ArrayLike], *, mark: float | None = None
) -> Figure:
    """Draw what perfect guesses at so many canaries certify, by method: no audit can say more.

    Args:
        canaries: numbers of canaries, greater than 0, increasing.
        ceilings: largest bound for each number of canaries, by method, up to four.
        mark: number of canaries that the runs of the book carry.

    Raises:
        InvalidParameter: lengths differ, or a number of canaries is not positive.
    """
    if not 1 <= len(ceilings) <= 4:
        raise InvalidParameter(f"ceilings: {len(ceilings)} of them; give 1 to 4")
    figure, (axes,) = style.canvas()
    looks = (
        (style.DP, "-", "o"),
        (style.ATTACK, "--", "s"),
        (style.NON_PRIVATE, "-.", "^"),
        ("#7a7a7a", ":", "D"),
    )
    for (name, values), (color, line, marker) in zip(ceilings.items(), looks, strict=False):
        numbers, heights = _bounds(canaries=canaries, ceilings=values)
        if numbers.min() <= 0:
            raise InvalidParameter("canaries: must be greater than 0 (log axis)")
        look = style.in_legend({"label": style.literal(name)})
        axes.plot(numbers, heights, color=color, linestyle=line, marker=marker, **look)
    if mark is not None:
        axes.axvline(mark, color=style.CONTROL, linestyle=":", linewidth=1, label=f"our runs ({mark:,.0f})")
    axes.set(
        xscale="log", xlabel="canaries (each with a coin of its own)", ylabel="largest ε certified (nats)"
    )
    style.log_axis(axes.xaxis, numbers)
    axes.set_ylim(bottom=0)
    style.legend_above(figure, axes)
    return figure


@style.drawn
def broken_gallery(
    names: Sequence[str],
    claims: ArrayLike,
    lowers: ArrayLike,
    aucs: ArrayLike,
    lows: ArrayLike,
    highs: ArrayLike,
) -> Figure:
    """Draw what the audit and what the best attack say of each variant of DP-SGD, first one on top.

    Args:
        names: of the variants, all different.
        claims: epsilon that each claims.
        lowers: epsilon that the audit certifies.
        aucs: area under the ROC curve of the best attack on each.
        lows, highs: ends of its interval.

    Raises:
        InvalidParameter: lengths differ, names repeat, a bound is below 0, or an interval is none of its
            estimate.
    """
    claims, lowers = _bounds(claims=claims, lowers=lowers)
    _, aucs, lows, highs = style.columns_of(claims=claims, aucs=aucs, lows=lows, highs=highs)
    if len(names) != claims.size or len(set(names)) != claims.size:
        raise InvalidParameter(f"names = {list(names)!r}: must be {claims.size} different names")
    figure, (left, right) = style.canvas(style.SHORT, columns=2, sharey=True)
    places = np.arange(claims.size)
    caught = lowers > claims
    left.hlines(places, 0, lowers, color=style.PUBLIC, linewidth=4, zorder=1)
    claim = {"color": style.CONTROL, "ms": 13, "mew": 1.6}
    left.plot(claims, places, "|", label="claimed ε", **claim)
    for mask, look, name in (
        (caught, {"marker": "o", "color": style.ATTACK}, "audit: refuted"),
        (~caught, {"marker": "o", "color": style.DP, "mfc": "white"}, "audit: not refuted"),
    ):
        if mask.any():
            left.plot(
                lowers[mask], places[mask], ls="none", ms=7, zorder=4, clip_on=False, label=name, **look
            )
    right.axvline(0.5, color=style.CONTROL, linestyle="--", zorder=1)
    right.errorbar(
        aucs, places, xerr=style.whiskers(aucs, lows, highs), fmt="s", color=style.NON_PRIVATE, capsize=3
    )
    left.set_yticks(places, [style.literal(name) for name in names])
    left.set(ylim=(claims.size - 0.4, -0.6), ylabel="variant", xlabel="ε (nats; square-root scale)")
    right.set(xlim=(min(0.45, lows.min() - 0.02), max(1.0, highs.max())))
    right.set(xlabel="AUC of the best attack (dashed: chance)")
    _root_axis(left, "x", max(claims.max(), lowers.max(), 0.1))
    style.legend_above(figure, left, columns=3)
    return figure
