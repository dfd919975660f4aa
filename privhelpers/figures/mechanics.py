"""Pictures of one private step: clipping in the plane, its three errors, whole paths, a coupled loss."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style

_LOOKS = (
    (style.NON_PRIVATE, "--"),
    (style.DP, "-."),
    ("#7a7a7a", ":"),
    (style.ATTACK, (0, (5, 1, 1, 1, 1, 1))),
)
# Where the two coincide, the disk lies inside the diamond and both are seen.
_TRUE = {"marker": "D", "ms": 8, "mfc": "white", "mec": style.CONTROL, "mew": 1.2, "ls": "none", "zorder": 6}
_BIASED = {"marker": "o", "ms": 5.5, "mfc": style.CONTROL, "mec": "white", "ls": "none", "zorder": 7}


def _points(name: str, values: ArrayLike, axes: int = 2) -> np.ndarray:
    """Return an array of points in the plane, its last axis of length 2, refusing anything else by name."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != axes or array.shape[-1] != 2 or array.size == 0:
        raise InvalidParameter(f"{name} of shape {array.shape}: needs {axes} axes, the last one of 2 values")
    if not np.isfinite(array).all():
        raise InvalidParameter(f"{name}: must be finite")
    return array


def _named(name: str, given: Mapping[str, ArrayLike], most: int = len(_LOOKS)) -> dict[str, ArrayLike]:
    """Return what is given under names that a refusal can quote, refusing none or too many."""
    if not 1 <= len(given) <= most:
        raise InvalidParameter(f"{name}: {len(given)} of them; give 1 to {most}")
    return {f"{name}[{key!r}]": values for key, values in given.items()}


def _arrows(axes: Axes, ends: np.ndarray, max_grad_norm: float) -> None:
    at = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.005, "zorder": 2}
    axes.quiver(*np.zeros_like(ends).T, *ends.T, color="#b4b4b4", **at)
    turn = np.linspace(0, 2 * np.pi, 181)
    look = {"color": style.CONTROL, "linestyle": "--", "linewidth": 1.1, "label": "norm C"}
    axes.plot(max_grad_norm * np.cos(turn), max_grad_norm * np.sin(turn), zorder=3, **look)


def _around(axes: Axes, points: np.ndarray) -> None:
    """Show all points in a square of equal scales."""
    low, high = points.min(0), points.max(0)
    half, middle = 0.55 * (high - low).max(), (low + high) / 2
    axes.set(xlim=middle[0] + half * np.array([-1, 1]), ylim=middle[1] + half * np.array([-1, 1]))
    axes.set_aspect("equal")


@style.drawn
def clipped_gradients(
    gradients: ArrayLike, clipped: ArrayLike, noisy_means: ArrayLike, *, max_grad_norm: float
) -> Figure:
    """Draw gradients in the plane as arrows, before and after clipping, with their means and noisy means.

    Args:
        gradients: one for each unit, shape [units, 2].
        clipped: the same gradients after clipping, shape [units, 2].
        noisy_means: what repeated steps release, shape [steps, 2].
        max_grad_norm: clipping bound C, greater than 0.

    Raises:
        InvalidParameter: a shape is wrong, a value is not finite, or a clipped gradient is longer than C.
    """
    before, after = _points("gradients", gradients), _points("clipped", clipped)
    cloud = _points("noisy_means", noisy_means)
    if not max_grad_norm > 0 or np.linalg.norm(after, axis=1).max() > max_grad_norm * (1 + 1e-9):
        raise InvalidParameter(f"max_grad_norm = {max_grad_norm!r}: must be at least every clipped norm")
    figure, (left, right) = style.canvas(style.TALL, columns=2)
    _arrows(left, before, max_grad_norm)
    _arrows(right, after, max_grad_norm)
    right.plot(*cloud.T, ".", color=style.DP, ms=2.5, label="released by a step", zorder=4)
    disk = max_grad_norm * np.array([[-1, -1], [1, 1]])
    for axes, shown in ((left, [before, disk]), (right, [disk, cloud])):
        axes.plot(*before.mean(0), label="mean of the gradients", **_TRUE)
        axes.plot(*after.mean(0), label="mean of the clipped ones", **_BIASED)
        axes.set(xlabel="first coordinate")
        _around(axes, np.concatenate(shown))
    left.set(ylabel="second coordinate", title="as computed")
    right.set(title="clipped and released (other scale)")
    style.legend_above(figure, right)
    return figure


@style.drawn
def errors_by_bound(
    bounds: ArrayLike, parts: Mapping[str, ArrayLike], *, measured: tuple[ArrayLike, ArrayLike, ArrayLike]
) -> Figure:
    """Draw the parts of the squared error of one step against the clipping bound, their sum, and a check.

    Args:
        bounds: clipping bounds C, greater than 0, rising; shape [bounds].
        parts: squared error by the name of its cause, 0 or more, each of shape [bounds].
        measured: (mean, low, high) of the squared error of simulated steps, each of shape [bounds].

    Raises:
        InvalidParameter: lengths differ, a bound is not positive, or an interval misses its mean.
    """
    at, *errors = style.columns_of(bounds=bounds, **_named("parts", parts))
    mean, low, high = measured
    _, mean, low, high = style.columns_of(bounds=bounds, mean=mean, low=low, high=high)
    if (at <= 0).any():
        raise InvalidParameter("bounds: must be greater than 0 (logarithmic axis)")
    figure, (axes,) = style.canvas(style.TALL)
    for name, error, (color, line) in zip(parts, errors, _LOOKS, strict=False):
        label = style.in_legend({"label": style.literal(name)})["label"]
        # A part that vanishes has no place on a logarithmic axis: its line ends there.
        axes.plot(at, np.where(error > 0, error, np.nan), color=color, linestyle=line, label=label)
    total = np.sum(errors, axis=0)
    axes.plot(at, total, color=style.CONTROL, linewidth=2.4, label="all together")
    best = int(total.argmin())
    axes.plot(at[best], 0.72 * total[best], "^", color=style.CONTROL, ms=7, label="best of these C")
    bars = style.whiskers(mean, low, high)
    look = {"fmt": "o", "mfc": "white", "color": style.CONTROL, "ms": 4.5, "capsize": 2.5, "elinewidth": 1}
    axes.errorbar(at, mean, bars, label="simulated steps (95 %)", zorder=4, **look)
    axes.set(xscale="log", yscale="log", xlabel="clipping bound C (units of the gradient)")
    axes.set(ylabel="mean squared error of a step", ylim=(total.min() / 60, None))
    style.log_axis(axes.xaxis, style.nice_ticks(at))
    style.log_axis(axes.yaxis)
    style.legend_above(figure, axes, columns=3)
    return figure


@style.drawn
def private_paths(
    paths: Mapping[str, ArrayLike], *, records: ArrayLike, optimum: ArrayLike, rests: Mapping[str, ArrayLike]
) -> Figure:
    """Draw where repeated runs of private gradient descent go in the plane, one panel for each setting.

    Args:
        paths: positions by the name of the setting, one to three, each of shape [steps + 1, runs, 2].
        records: where the loss of each record is least, shape [records, 2].
        optimum: where the mean loss is least, shape [2].
        rests: where clipped descent without noise comes to rest, by the same names, each of shape [2].

    Raises:
        InvalidParameter: a shape is wrong, a value is not finite, or the names of the two differ.
    """
    if set(paths) != set(rests):
        raise InvalidParameter(f"rests: names {sorted(rests)} must be those of paths")
    checked = [_points(name, path, axes=3) for name, path in _named("paths", paths, most=3).items()]
    walks = dict(zip(paths, checked, strict=True))
    dots, best = _points("records", records), _points("optimum", np.atleast_2d(optimum))[0]
    figure, panels = style.canvas(style.SHORT, columns=len(walks), sharex=True, sharey=True)
    everything = np.concatenate([dots, *(walk.reshape(-1, 2) for walk in walks.values())])
    for axes, (name, walk) in zip(panels, walks.items(), strict=True):
        axes.plot(*dots.T, "+", color="#a8a8a8", ms=4, label="records", zorder=1)
        axes.plot(*walk[:, 0].T, color=style.DP, linewidth=0.9, label="one run", zorder=2)
        axes.plot(*walk[-1].T, "o", color="#06264f", ms=1.8, label="ends of all runs", zorder=3)
        axes.plot(
            *_points(f"rests[{name!r}]", np.atleast_2d(rests[name]))[0], label="clipped, no noise", **_BIASED
        )
        axes.plot(*best, label="optimum", **_TRUE)
        axes.set(xlabel="first parameter", title=style.literal(name))
        _around(axes, everything)
    panels[0].set(ylabel="second parameter")
    style.legend_above(figure, panels[0], columns=5)
    return figure


@style.drawn
def pull_of_one_record(lengths: ArrayLike, pulls: Mapping[str, ArrayLike]) -> Figure:
    """Draw what one record contributes to a step against the length of another record.

    Args:
        lengths: predicted tokens of the other record, 1 or more, rising; shape [lengths].
        pulls: norm of the record's contribution by the name of the loss, each of shape [lengths].

    Raises:
        InvalidParameter: lengths differ, or a value is not finite.
    """
    at, *lines = style.columns_of(lengths=lengths, **_named("pulls", pulls))
    figure, (axes,) = style.canvas(style.SHORT)
    for (name, line), (color, dashes), marker in zip(
        zip(pulls, lines, strict=True), _LOOKS, "os^v", strict=False
    ):
        look = style.in_legend({"label": style.literal(name), "color": color})
        axes.plot(at, line, linestyle=dashes, marker=marker, **look)
    axes.set(xlabel="predicted tokens of another note in the batch", ylabel="norm of this note's pull")
    axes.set_ylim(0, 1.08 * max(line.max() for line in lines))
    style.legend_above(figure, axes, columns=2)
    return figure
