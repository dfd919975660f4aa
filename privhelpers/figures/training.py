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

    Taught in: 06_baseline_training
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
) -> Figure:
    """Draw held-out perplexity against epsilon, with the models that have no epsilon as lines.

    Args:
        epsilons: budget of each DP model, greater than 0.
        perplexities: held-out perplexity of each, 1 or more (per token).
        references: perplexity by model name: `public`, `best_nonprivate`, `baseline`.
        lows, highs: ends of the interval of each perplexity.

    Raises:
        InvalidParameter: lengths differ, a value is not finite or not positive.

    Taught in: 08_dpsgd_training
    """
    epsilons, perplexities = style.columns_of(epsilons=epsilons, perplexities=perplexities)
    if min(*epsilons, *perplexities, *references.values()) <= 0:
        raise InvalidParameter("epsilons, perplexities and references: must be greater than 0 (log axes)")
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
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel="ε (privacy budget, nats)", ylabel="held-out perplexity (per token)")
    style.log_axis(axes.xaxis, epsilons)
    style.log_axis(axes.yaxis, style.nice_ticks([*perplexities, *references.values()]))
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

    Taught in: 08_dpsgd_training
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
