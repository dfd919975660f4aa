"""Pictures of training: loss, perplexity against epsilon, the budget as it is spent."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks


@style.drawn
def loss_curves(
    history: Mapping[str, Sequence[float] | int], *, validation_error: ArrayLike | None = None
) -> Figure:
    """Draw training and held-out loss over the epochs and mark the epoch with the lowest held-out loss.

    Args:
        history: `train_loss` and `validation_loss`, one value per epoch in nats per token (the second
            may be empty), as in `TrainingLog.as_dict()`.
        validation_error: standard error of each held-out loss, same length; drawn as a band of two.

    Raises:
        InvalidParameter: lengths differ or a loss is not finite.
    """
    train = checks.vector("train_loss", history["train_loss"])
    epochs = np.arange(1, train.size + 1)
    figure, (axes,) = style.canvas()
    axes.plot(epochs, train, "o-", color=style.NON_PRIVATE, label="training notes")
    if len(history.get("validation_loss", ())):
        _, heldout = style.columns_of(train_loss=train, validation_loss=history["validation_loss"])
        axes.plot(epochs, heldout, "s--", color=style.CONTROL, mfc="white", label="held-out notes")
        if validation_error is not None:
            _, error = style.columns_of(validation_loss=heldout, validation_error=validation_error)
            axes.fill_between(epochs, heldout - 2 * error, heldout + 2 * error, color="#d9d9d9", zorder=0)
        best = int(np.argmin(heldout))
        label = f"lowest held-out loss: epoch {best + 1}"
        axes.axvline(epochs[best], color=style.ATTACK, linestyle=":", label=label)
    axes.set(xlabel="epoch (passes over the notes)", ylabel="loss (nats per token)")
    axes.xaxis.get_major_locator().set_params(integer=True)
    style.legend_above(figure, axes)
    return figure


@style.drawn
def perplexity_by_epsilon(
    epsilons: ArrayLike,
    perplexities: ArrayLike,
    references: Mapping[str, float],
    *,
    lows: ArrayLike | None = None,
    highs: ArrayLike | None = None,
    repeats: tuple[ArrayLike, ArrayLike] | None = None,
    others: Mapping[str, tuple[float, float]] | None = None,
) -> Figure:
    """Draw held-out perplexity against epsilon, with the models that have no epsilon as lines.

    Args:
        epsilons: budget of each DP model, greater than 0.
        perplexities: held-out perplexity of each, 1 or more (per token).
        references: perplexity by model name: `public`, `best_nonprivate`, `baseline`.
        lows, highs: ends of the interval of each perplexity.
        repeats: (epsilons, perplexities) of further runs with the same settings and another seed.
        others: (epsilon, perplexity) of models trained in another way, by label.

    Raises:
        InvalidParameter: lengths differ, a value is not finite or not positive.
    """
    epsilons, perplexities = style.columns_of(epsilons=epsilons, perplexities=perplexities)
    again = style.columns_of(epsilons=repeats[0], perplexities=repeats[1]) if repeats else []
    marks = [checks.vector(name, point) for name, point in (others or {}).items()]
    every = np.concatenate([epsilons, perplexities, [*references.values()], *again, *marks])
    if every.min() <= 0:
        raise InvalidParameter("epsilons and perplexities: must be greater than 0 (log axes)")
    order = np.argsort(epsilons)
    epsilons, perplexities = epsilons[order], perplexities[order]
    figure, (axes,) = style.canvas()
    for (name, value), line in zip(references.items(), ("--", "-.", ":", (0, (5, 1))) * 9, strict=False):
        style.reference_line(axes, value, style.model_looks([name])[name], line)
    axes.plot(epsilons, perplexities, color=style.DP, zorder=2)
    if lows is not None and highs is not None:
        _, lows, highs = style.columns_of(epsilons=epsilons, lows=lows, highs=highs)
        ends = style.whiskers(perplexities, lows[order], highs[order])
        axes.errorbar(epsilons, perplexities, ends, fmt="none", ecolor=style.DP, capsize=3)
    shades = [style.dp_color(epsilon) for epsilon in epsilons]
    axes.scatter(epsilons, perplexities, c=shades, s=36, zorder=3, edgecolor=style.DP, label="DP-SGD")
    if repeats:
        axes.plot(*again, "_", color=style.CONTROL, ms=13, mew=1.1, zorder=4, label="the same, other seeds")
    for name, marker in zip(others or {}, "DPXv" * len(others or {}), strict=False):
        look = style.in_legend({"label": style.literal(name)})
        axes.plot(*others[name], marker, color=style.CONTROL, ms=7, mfc="white", zorder=4, ls="", **look)
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel="ε (privacy budget, nats)", ylabel="held-out perplexity (per token)")
    style.log_axis(axes.xaxis, epsilons)
    heights = [*perplexities, *references.values(), *(again[1] if repeats else ()), *(m[1] for m in marks)]
    style.log_axis(axes.yaxis, style.nice_ticks(heights))
    style.legend_above(figure, axes)
    return figure


@style.drawn
def epsilon_spent(steps: ArrayLike, epsilons: ArrayLike, target: float) -> Figure:
    """Draw the budget spent after each step against the target; an upper bound, so it has no interval.

    Args:
        steps: number of steps taken, increasing.
        epsilons: epsilon spent after as many steps, at the run's delta.
        target: epsilon that the run may spend, greater than 0.

    Raises:
        InvalidParameter: lengths differ or a value is not finite.
    """
    steps, epsilons = style.columns_of(steps=steps, epsilons=epsilons)
    figure, (axes,) = style.canvas()
    axes.axhline(target, color=style.CONTROL, linestyle="--", label=f"target, ε = {target:g}")
    axes.plot(steps, epsilons, color=style.DP, label="spent (upper bound)")
    axes.plot(steps[-1], epsilons[-1], "o", color=style.DP, label=f"end of the run, ε = {epsilons[-1]:.4g}")
    axes.set(xlabel="steps (noisy updates)", ylabel="ε (privacy budget, nats)")
    axes.set(ylim=(0, 1.12 * max(target, epsilons.max())))
    style.legend_above(figure, axes)
    return figure


@style.drawn
def luck_by_model(
    perplexities: Mapping[str, ArrayLike], intervals: Mapping[str, tuple[float, float, float]]
) -> Figure:
    """Draw how far runs with other seeds lie apart, beside what the held-out sample leaves open.

    Args:
        perplexities: by model name, the perplexity of each of its runs, on the same notes; 2 or more runs.
        intervals: by the same names, (estimate, low, high) of one of the runs.

    Raises:
        InvalidParameter: there is no model, names differ, or a value is not finite or not positive.
    """
    if not perplexities or set(perplexities) != set(intervals):
        raise InvalidParameter("perplexities and intervals: need one or more models, the same in both")
    figure, (axes,) = style.canvas()
    first = True
    for row, (name, values) in enumerate(perplexities.items()):
        values = checks.vector(f"perplexities[{name!r}]", values, 2)
        interval = checks.vector(f"intervals[{name!r}]", intervals[name], 3)
        if min(*values, *interval) <= 0:
            raise InvalidParameter(f"{name!r}: perplexities must be greater than 0")
        away = 100 * (values / values.mean() - 1)
        middle, low, high = 100 * (interval / interval[0] - 1)
        ends = style.whiskers(np.array([middle]), np.array([low]), np.array([high]))
        labels = ("95 % interval over held-out patients", "one run for each seed") if first else (None, None)
        look = {"color": style.CONTROL, "fmt": "none", "capsize": 4, "label": labels[0]}
        axes.errorbar([middle], [row + 0.18], xerr=ends, **look)
        axes.plot(away, np.full(values.size, row - 0.18), "o", color=style.DP, mfc="white", label=labels[1])
        first = False
    looks = style.model_looks(perplexities)
    axes.axvline(0, color=style.CONTROL, linestyle=":", linewidth=1)
    axes.set_yticks(range(len(looks)), [look["label"] for look in looks.values()])
    axes.set(ylim=(-0.6, len(looks) - 0.4), ylabel="model")
    axes.set(xlabel="perplexity, difference from the mean of the runs (percent)")
    style.legend_above(figure, axes)
    return figure
