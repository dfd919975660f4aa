"""Pictures of privacy accounting: divergence by order, bound by order, epsilon by noise and by steps."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks

# One look for each curve in the order given: they differ in line style as well as in color and lightness.
_LOOKS = (
    (style.DP, "-"),
    (style.NON_PRIVATE, "--"),
    (style.ATTACK, (0, (1, 1.2))),
    ("#7a7a7a", "-."),
    ("#06264f", (0, (5, 1, 1, 1, 1, 1))),
)
_MARKERS = "os^D"


def _positive(name: str, values: ArrayLike) -> np.ndarray:
    array = checks.vector(name, values)
    if (array <= 0).any():
        raise InvalidParameter(f"{name}: must be greater than 0 (logarithmic axis)")
    return array


def _draw_lines(axes: Axes, places: np.ndarray, curves: Mapping[str, ArrayLike]) -> None:
    if not 1 <= len(curves) <= len(_LOOKS):
        raise InvalidParameter(f"curves: {len(curves)} of them; give 1 to {len(_LOOKS)}")
    for (name, values), (color, line) in zip(curves.items(), _LOOKS, strict=False):
        array = np.asarray(values, dtype=float)
        if array.shape != places.shape:
            raise InvalidParameter(f"curves[{name!r}]: {array.size} values for {places.size} places")
        label = style.in_legend({"label": name})["label"]
        # Infinite divergences and epsilons have no place on the page: the line ends before them.
        axes.plot(
            places, np.where(np.isfinite(array), array, np.nan), color=color, linestyle=line, label=label
        )


@style.drawn
def rdp_by_order(orders: ArrayLike, curves: Mapping[str, ArrayLike]) -> Figure:
    """Draw Rényi divergences of one step against their order, on logarithmic axes.

    Args:
        orders: greater than 1, rising; shape [orders].
        curves: divergence at each order by name, in nats, each of shape [orders].

    Raises:
        InvalidParameter: lengths differ or an order is not positive.

    Source: Mironov, Talwar and Zhang 2019, for the threshold that shows.
    """
    orders = _positive("orders", orders)
    figure, (axes,) = style.canvas()
    _draw_lines(axes, orders, curves)
    axes.set(xscale="log", yscale="log", xlabel="order α of the divergence")
    axes.set(ylabel="Rényi divergence of one step (nats)")
    style.log_axis(axes.xaxis, style.nice_ticks(orders))
    style.log_axis(axes.yaxis)
    style.legend_above(figure, axes, columns=3)
    return figure


@style.drawn
def bound_by_order(orders: ArrayLike, bounds: Mapping[str, ArrayLike], *, ceiling: float = 3.0) -> Figure:
    """Draw the epsilon that each order alone would give, and mark the smallest on every curve.

    Args:
        orders: greater than 1, rising; shape [orders].
        bounds: epsilon by order for each name, in nats, each of shape [orders].
        ceiling: the axis ends at so many times the smallest epsilon, greater than 1.

    Raises:
        InvalidParameter: lengths differ or an order is not positive.
    """
    orders = _positive("orders", orders)
    figure, (axes,) = style.canvas()
    _draw_lines(axes, orders, bounds)
    lowest = []
    for values, (color, _), marker in zip(bounds.values(), _LOOKS, _MARKERS, strict=False):
        best = int(np.nanargmin(values))
        lowest.append(float(np.asarray(values)[best]))
        axes.plot(orders[best], lowest[-1], marker, color=color, mfc="white", markersize=7, zorder=3)
    axes.set(xscale="log", xlabel="order α (marked: the best one)", ylabel="ε that this order gives (nats)")
    axes.set_ylim(0, ceiling * max(lowest))
    style.log_axis(axes.xaxis, style.nice_ticks(orders))
    style.legend_above(figure, axes, columns=3)
    return figure


@style.drawn
def epsilon_by_noise(
    noise_multipliers: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    points: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
) -> Figure:
    """Draw epsilons against the noise multiplier on logarithmic axes, one line for each reading.

    Args:
        noise_multipliers: greater than 0, rising; shape [places].
        curves: epsilon at each place by name, in nats, each of shape [places].
        points: single pairs (noise multipliers, epsilons) by name, drawn as markers.

    Raises:
        InvalidParameter: lengths differ or a noise multiplier is not positive.
    """
    places = _positive("noise_multipliers", noise_multipliers)
    figure, (axes,) = style.canvas(style.TALL)
    _draw_lines(axes, places, curves)
    for (name, (x, y)), marker in zip((points or {}).items(), _MARKERS, strict=False):
        x, y = style.columns_of(noise_multipliers=x, epsilons=y)
        label = style.in_legend({"label": name})["label"]
        axes.plot(x, y, marker, color=style.CONTROL, mfc="white", markersize=7, label=label, zorder=3)
    axes.set(xscale="log", yscale="log", xlabel="noise multiplier σ (noise over clipping norm)")
    axes.set(ylabel="ε (nats)")
    style.log_axis(axes.xaxis, style.nice_ticks(places))
    style.log_axis(axes.yaxis)
    style.legend_above(figure, axes, columns=2)
    return figure


@style.drawn
def epsilon_by_steps(steps: ArrayLike, curves: Mapping[str, ArrayLike]) -> Figure:
    """Draw epsilons against the number of steps, one line for each accountant.

    Args:
        steps: 1 or more, rising; shape [places].
        curves: epsilon after so many steps by name, in nats, each of shape [places].

    Raises:
        InvalidParameter: lengths differ or a number of steps is not positive.
    """
    places = _positive("steps", steps)
    figure, (axes,) = style.canvas()
    _draw_lines(axes, places, curves)
    axes.set(xlabel="steps of DP-SGD", ylabel="ε spent (nats)", xlim=(0, places.max()))
    axes.set_ylim(bottom=0)
    style.legend_above(figure, axes, columns=3)
    return figure
