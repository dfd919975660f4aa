"""Pictures of a sweep: one point a run, and the mean over seeds with its spread."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.stats import t as student

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style

LINES, MARKERS = ("-", "--", ":", "-."), ("o", "s", "^", "D", "v", "P")


def _mean_and_half_width(values: np.ndarray, level: float) -> tuple[float, float]:
    """Return the mean over seeds and the half width of Student's interval; NaN for a single seed."""
    if values.size < 2:
        return float(values.mean()), float("nan")
    error = values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean()), float(student.ppf((1 + level) / 2, values.size - 1) * error)


@style.drawn
def by_budget(
    epsilons: ArrayLike,
    values: ArrayLike,
    groups: Sequence[str],
    *,
    measure: str,
    control: float | None = None,
    level: float = 0.95,
) -> Figure:
    """Draw a measure of every private run against its budget, one line of means for each group.

    Args:
        epsilons: budget of each run, greater than 0, in nats.
        values: what was measured, one value a run.
        groups: what the run belongs to (its architecture), one name a run.
        measure: label of the vertical axis, with its unit.
        control: mean of the same measure on people whom no model was trained on; a dotted line.
        level: of Student's interval over seeds, in (0, 1); drawn where there are two seeds or more.

    Raises:
        InvalidParameter: lengths differ, or a budget is not positive.
    """
    epsilons, values = style.columns_of(epsilons=epsilons, values=values)
    if len(groups) != epsilons.size or epsilons.min() <= 0:
        raise InvalidParameter("groups: one for each run; epsilons: greater than 0 (log axis)")
    figure, (axes,) = style.canvas()
    names = np.array([str(group) for group in groups])
    for number, name in enumerate(dict.fromkeys(names)):
        own = names == name
        budgets = np.unique(epsilons[own])
        means = np.array([_mean_and_half_width(values[own & (epsilons == e)], level) for e in budgets])
        color = style.dp_color(0.5 * 4.0**number)
        look = {"color": color, "marker": MARKERS[number % len(MARKERS)]}
        axes.scatter(epsilons[own], values[own], s=14, facecolors="none", edgecolors=color, linewidths=0.9)
        line = LINES[number % len(LINES)]
        label = style.in_legend({"label": style.literal(name)})["label"]
        axes.errorbar(budgets, means[:, 0], means[:, 1], ls=line, capsize=3, label=label, **look)
    if control is not None:
        axes.axhline(control, color=style.CONTROL, linestyle=":", label="never trained on (mean)")
    axes.set(xscale="log", xlabel="ε (privacy budget, nats)", ylabel=measure)
    style.log_axis(axes.xaxis, np.unique(epsilons))
    style.legend_above(figure, axes)
    return figure
