"""Pictures of the mechanisms: a belief after a noisy answer, two calibrations, composition, float64.

All four draw formulas or exact facts about numbers; none of them carries chance, so none has an interval.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks

_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
_SHADES = (style.NON_PRIVATE, style.ATTACK, style.DP)


def _lines_of(name: str, length: int, values: Mapping[object, ArrayLike]) -> dict[object, np.ndarray]:
    """Return each line as an array of `length` numbers, refusing none, too many or one of another length."""
    if not 1 <= len(values) <= len(_LINES):
        raise InvalidParameter(f"{name}: give 1 to {len(_LINES)} lines, each with a style of its own")
    lines = {key: checks.vector(f"{name}[{key!r}]", line) for key, line in values.items()}
    wrong = {key: line.size for key, line in lines.items() if line.size != length}
    if wrong:
        raise InvalidParameter(f"{name}: lengths {wrong} differ from {length}")
    return lines


def _mark(axes: Axes, readings: Sequence[float], height: float) -> None:
    """Mark answers on an axis of answers that ends at `height`."""
    for reading in readings:
        axes.axvline(reading, color=style.CONTROL, linestyle=":", linewidth=1)
        axes.text(reading, 1.01 * height, f"{reading:g}", ha="center", va="bottom", fontsize=8)
    axes.set(xlabel="noisy answer y (points)", ylim=(0, height))


@style.drawn
def posterior_by_answer(
    answers: ArrayLike,
    likelihoods: Mapping[str, ArrayLike],
    posteriors: Mapping[float, ArrayLike],
    *,
    ranges: Mapping[float, tuple[float, float]],
    readings: Sequence[float],
) -> Figure:
    """Draw the density of a noisy answer under two data sets, and the belief that each answer leaves.

    Args:
        answers: answers on the horizontal axis, increasing, in points.
        likelihoods: density of each answer by the name of its data set, per point.
        posteriors: belief in the first data set after each answer, by epsilon.
        ranges: lowest and highest belief that the epsilon allows, by the same epsilons.
        readings: answers to mark.

    Raises:
        InvalidParameter: lengths differ, a value is not finite, or the epsilons of the two differ.
    """
    answers = checks.vector("answers", answers)
    densities = _lines_of("likelihoods", answers.size, likelihoods)
    beliefs = _lines_of("posteriors", answers.size, posteriors)
    if set(ranges) != set(beliefs):
        raise InvalidParameter(f"ranges: epsilons {sorted(ranges)} must be those of posteriors")
    figure, (left, right) = style.canvas(style.TALL, columns=2)
    for (name, density), line, color in zip(densities.items(), _LINES, _SHADES * 2, strict=False):
        look = style.in_legend({"label": style.literal(name), "color": color})
        left.plot(answers, density, linestyle=line, **look)
    for (epsilon, belief), line in zip(sorted(beliefs.items()), _LINES, strict=False):
        color = style.dp_color(epsilon)
        right.plot(answers, belief, color=color, linestyle=line, label=f"belief at ε = {epsilon:g}")
        for end in ranges[epsilon]:
            right.plot(answers[[0, -1]], [end, end], color=color, linestyle=line, linewidth=0.7)
    _mark(left, readings, left.get_ylim()[1])
    _mark(right, readings, 1.0)
    left.set(ylabel="density of the answer (per point)")
    right.set(ylabel="belief after the answer")
    handles, labels = (
        left_part + right_part
        for left_part, right_part in zip(
            left.get_legend_handles_labels(), right.get_legend_handles_labels(), strict=True
        )
    )
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


@style.drawn
def noise_ratio(epsilons: ArrayLike, ratios: Mapping[float, ArrayLike], *, proved_to: float = 1) -> Figure:
    """Draw by how much the classic Gaussian noise exceeds the exact one, and where it falls short.

    Args:
        epsilons: greater than 0, increasing.
        ratios: classic over exact standard deviation at each epsilon, by delta.
        proved_to: largest epsilon that the proof of the classic formula covers.

    Raises:
        InvalidParameter: lengths differ or a value is not finite or not positive.

    Source: Balle and Wang 2018, for the comparison.
    """
    epsilons = checks.vector("epsilons", epsilons)
    lines = _lines_of("ratios", epsilons.size, ratios)
    if epsilons.min() <= 0 or min(line.min() for line in lines.values()) <= 0:
        raise InvalidParameter("epsilons and ratios: must be greater than 0 (logarithmic axes)")
    figure, (axes,) = style.canvas()
    floor = 0.9 * min(1.0, *(line.min() for line in lines.values()))
    axes.axhspan(floor, 1, facecolor="none", edgecolor="#c9c9c9", hatch="///", linewidth=0, zorder=0)
    axes.axhline(1, color=style.CONTROL, linewidth=0.9)
    axes.axvline(proved_to, color=style.CONTROL, linestyle=":", label=f"proof ends, ε = {proved_to:g}")
    for (delta, line), dashes, color in zip(lines.items(), _LINES, _SHADES * 2, strict=False):
        axes.plot(epsilons, line, linestyle=dashes, color=color, label=f"δ = {delta:g}")
    axes.text(
        epsilons[0] * 1.1,
        (floor + 1) / 2,
        "too little noise",
        va="center",
        fontsize=8,
        bbox=dict(fc="white", lw=0),
    )
    axes.set(xscale="log", yscale="log", xlim=(epsilons[0], epsilons[-1]), ylim=(floor, None))
    axes.set(xlabel="ε (nats)", ylabel="classic σ / exact σ")
    style.log_axis(axes.xaxis)
    style.log_axis(axes.yaxis, [0.5, 0.7, 1, 1.5, 2, 3, 4])
    style.legend_above(figure, axes)
    return figure


@style.drawn
def composition_bounds(runs: ArrayLike, bounds: Mapping[str, ArrayLike], *, epsilon: float) -> Figure:
    """Draw what several bounds say that equal releases spend together.

    Args:
        runs: numbers of releases, increasing.
        bounds: epsilon of the whole after each number, by the name of the bound.
        epsilon: of one release.

    Raises:
        InvalidParameter: lengths differ or a value is not finite.
    """
    runs = checks.vector("runs", runs)
    lines = _lines_of("bounds", runs.size, bounds)
    figure, (axes,) = style.canvas()
    for (name, line), dashes, color in zip(lines.items(), ("--", "-.", "-", ":"), _SHADES * 2, strict=False):
        look = style.in_legend({"label": style.literal(name), "color": color})
        axes.plot(runs, line, linestyle=dashes, **look)
    axes.set(xlabel=f"number of releases, each at ε = {epsilon:g}", ylabel="ε of all together (nats)")
    axes.set(xlim=(0, runs[-1]), ylim=(0, None))
    style.legend_above(figure, axes)
    return figure


@style.drawn
def possible_outputs(possible: Mapping[str, ArrayLike], *, first: float) -> Figure:
    """Draw which of a row of neighbouring float64 numbers each true answer can give.

    Args:
        possible: for each true answer, by its name, whether it can give each of the numbers.
        first: the first of these numbers; each next one is the smallest float64 above.

    Raises:
        InvalidParameter: lengths differ or there is no row.

    Source: Mironov 2012, for the observation.
    """
    rows = [np.asarray(row, dtype=bool) for row in possible.values()]
    if not rows or len({row.shape for row in rows}) > 1 or rows[0].ndim != 1:
        raise InvalidParameter("possible: give rows of one common length")
    steps = np.arange(rows[0].size)
    figure, (axes,) = style.canvas()
    for place, row in enumerate(rows):
        color = _SHADES[place % len(_SHADES)]
        axes.bar(steps[~row], 0.66, 0.7, place - 0.33, color="none", edgecolor="#c9c9c9", linewidth=0.5)
        axes.bar(steps[row], 0.66, 0.7, place - 0.33, color=color, edgecolor=color, linewidth=0.5)
    alone = np.sum(rows, axis=0) == 1
    axes.plot(steps[alone], np.full(alone.sum(), len(rows) - 0.2), "^", color=style.CONTROL, ms=4)
    labels = [style.literal(name) for name in possible]
    axes.set_yticks([*range(len(rows)), len(rows) - 0.2], [*labels, "tells them apart"])
    axes.set(ylim=(len(rows) + 0.1, -0.5), ylabel="true answer", xlim=(-1, steps.size))
    axes.set(xlabel=f"released number: float64 steps above {first:g} (filled: possible, hollow: impossible)")
    axes.grid(visible=False)
    return figure
