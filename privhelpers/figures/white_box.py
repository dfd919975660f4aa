"""Pictures of attacks that look inside: by architecture, by parameter, by masks, by noise."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import Interval

Ends = Interval | Sequence[float]  # or (estimate, low, high)

# Attacks are orange in the whole book: three lightnesses, and markers that a print in grey keeps apart.
_ATTACKS = (("#7a3d00", "o"), ("#f3b46c", "s"), (style.ATTACK, "^"), ("#b85f00", "D"))
_NETWORKS = (("#111111", "o", "-"), ("#5a5a5a", "s", "--"), ("#8a8a8a", "^", "-."), ("#a8a8a8", "D", ":"))


def _triple(interval: Ends) -> Sequence[float]:
    known = isinstance(interval, Interval)
    return (interval.estimate, interval.low, interval.high) if known else interval


def _ends(intervals: Sequence[Ends], what: str) -> tuple[np.ndarray, np.ndarray]:
    """Return estimates, shape [n], and the lengths of their whiskers, shape [2, n]."""
    found = np.asarray([_triple(interval) for interval in intervals], float)
    if found.ndim != 2 or found.shape[1] != 3 or not np.isfinite(found).all():
        raise InvalidParameter(f"{what}: each must be (estimate, low, high), finite numbers")
    return found[:, 0], style.whiskers(*found.T)


def _literals(names: Sequence[str]) -> list[str]:
    return [style.literal(name, 30) for name in names]


def _chance(axes: Axes, *, vertical: bool = False) -> None:
    line = axes.axvline if vertical else axes.axhline
    line(0.5, color=style.CONTROL, linestyle="--", linewidth=1, zorder=1)


@style.drawn
def auc_by_attack(found: Mapping[str, Mapping[str, Ends]]) -> Figure:
    """Draw the area under the ROC of each attack on each network, with intervals.

    Args:
        found: network -> attack -> (estimate, low, high); every network has the same attacks.

    Raises:
        InvalidParameter: there is no network, or the attacks differ.
    """
    attacks = list(next(iter(found.values()), {}))
    if not attacks or any(list(own) != attacks for own in found.values()):
        raise InvalidParameter("found: must hold the same attacks for one network or more")
    figure, (axes,) = style.canvas(style.SHORT if len(found) <= 4 else style.TALL)
    _chance(axes, vertical=True)
    step = 0.7 / len(attacks)
    for number, (attack, (color, marker)) in enumerate(zip(attacks, cycle(_ATTACKS))):
        values, ends = _ends([own[attack] for own in found.values()], "found")
        places = np.arange(len(found)) + (number - (len(attacks) - 1) / 2) * step
        look = style.in_legend({"label": style.literal(attack), "color": color, "marker": marker})
        axes.errorbar(values, places, xerr=ends, linestyle="none", capsize=2, **look)
    axes.set_yticks(range(len(found)), _literals(list(found)))
    axes.set(
        ylim=(len(found) - 0.45, -0.55), ylabel="network", xlabel="area under the ROC curve (dashed: 0.5)"
    )
    style.legend_above(figure, axes)
    return figure


@style.drawn
def auc_by_gap(found: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Figure:
    """Draw how the loss attack grows with the generalization gap while networks train.

    Args:
        found: network -> (gaps in nats per token, areas under the ROC), epoch after epoch.

    Raises:
        InvalidParameter: there is no network, or lengths differ.
    """
    if not found:
        raise InvalidParameter("found: give one network or more")
    figure, (axes,) = style.canvas()
    _chance(axes)
    for (name, (gaps, aucs)), (color, marker, dashes) in zip(found.items(), cycle(_NETWORKS)):
        gaps, aucs = style.columns_of(gaps=gaps, aucs=aucs)
        look = style.in_legend({"label": style.literal(name), "color": color, "marker": marker})
        axes.plot(gaps, aucs, linestyle=dashes, **look)
    axes.set(xlabel="generalization gap: held-out minus training loss (nats per token)")
    axes.set(ylabel="area under the ROC (loss attack)")
    style.legend_above(figure, axes)
    return figure


@style.drawn
def auc_by_masks(masks: ArrayLike, found: Mapping[str, Sequence[Ends]], causal: Ends) -> Figure:
    """Draw what an attacker gains by averaging the loss of a masked network over several masks.

    Args:
        masks: how many were averaged, increasing, 1 or more.
        found: network -> one (estimate, low, high) of the area under the ROC for each number of masks.
        causal: that of the causal network, which has no masks.

    Raises:
        InvalidParameter: there is no network, or lengths differ.
    """
    if not found:
        raise InvalidParameter("found: give one network or more")
    (masks,) = style.columns_of(masks=masks)
    figure, (axes,) = style.canvas()
    _chance(axes)
    value, low, high = _triple(causal)
    axes.axhspan(low, high, color=_NETWORKS[0][0], alpha=0.1, linewidth=0)
    axes.axhline(value, color=_NETWORKS[0][0], linestyle="-", label="causal (no masks)")
    shift = 2 ** (np.linspace(-0.06, 0.06, len(found)) if len(found) > 1 else np.zeros(1))
    looks = zip(found.items(), shift, cycle(_NETWORKS[1:]))
    for (name, intervals), factor, (color, marker, dashes) in looks:
        values, ends = _ends(intervals, name)
        if len(values) != len(masks):
            raise InvalidParameter(f"{name}: has {len(values)} intervals for {len(masks)} numbers of masks")
        look = style.in_legend({"label": style.literal(name), "color": color, "marker": marker})
        axes.errorbar(factor * masks, values, ends, linestyle=dashes, capsize=2, **look)
    axes.set_xscale("log", base=2)
    style.log_axis(axes.xaxis, masks)
    axes.set(xlabel="masks averaged for each note", ylabel="area under the ROC (loss attack)")
    style.legend_above(figure, axes)
    return figure


@style.drawn
def norms_by_parameter(names: Sequence[str], differences: Sequence[Ends]) -> Figure:
    """Draw by how much members' gradients are smaller, parameter by parameter.

    Args:
        names: of the parameters, in the order of the network.
        differences: mean log norm of members minus that of others, each (estimate, low, high), in nats.

    Raises:
        InvalidParameter: lengths differ, or an interval misses its estimate.
    """
    values, ends = _ends(differences, "differences")
    if len(names) != len(values):
        raise InvalidParameter(f"names: {len(names)} for {len(values)} differences")
    figure, (axes,) = style.canvas(style.TALL)
    axes.axvline(0, color=style.CONTROL, linestyle="--", linewidth=1)
    axes.errorbar(values, range(len(values)), xerr=ends, fmt="o", color=style.ATTACK, markersize=3)
    small = 8 if len(values) <= 20 else max(4.5, 160 / len(values))
    axes.set_yticks(range(len(values)), _literals(names), fontsize=small)
    axes.set(ylim=(len(values) - 0.4, -0.6), ylabel="parameter")
    axes.set(xlabel="log gradient norm, members minus others (dashed: no difference)")
    return figure


@style.drawn
def auc_by_noise(
    settings: Sequence[str],
    attacks: Mapping[str, Sequence[Ends]],
    perplexities: Sequence[Ends],
    public: float,
) -> Figure:
    """Draw leakage and utility for one training run after another, from most noise to none at all.

    Args:
        settings: what each run was given, in order.
        attacks: attack -> (estimate, low, high) of the area under the ROC for each run.
        perplexities: of never-trained notes, (estimate, low, high) for each run.
        public: perplexity of the public checkpoint on the same notes.

    Raises:
        InvalidParameter: there is no attack, or lengths differ.
    """
    if not attacks or any(len(own) != len(settings) for own in (*attacks.values(), perplexities)):
        raise InvalidParameter(f"attacks and perplexities: must have one value for each of {len(settings)}")
    figure, (leak, use) = style.canvas(style.TALL, 2, sharey=True)
    places = np.arange(len(settings))
    _chance(leak, vertical=True)
    spread = np.linspace(-0.18, 0.18, len(attacks)) if len(attacks) > 1 else np.zeros(1)
    for (name, own), shift, (color, marker) in zip(attacks.items(), spread, cycle(_ATTACKS)):
        values, ends = _ends(own, name)
        look = style.in_legend({"label": style.literal(name), "color": color, "marker": marker})
        leak.errorbar(values, places + shift, xerr=ends, linestyle="none", capsize=2, **look)
    values, ends = _ends(perplexities, "perplexities")
    use.errorbar(values, places, xerr=ends, fmt="o", color=style.NON_PRIVATE, capsize=2)
    use.axvline(public, color=style.PUBLIC, linestyle="-.", label="before: public checkpoint")
    use.set_xscale("log")
    style.log_axis(use.xaxis, style.nice_ticks([*values, public]))
    leak.set_yticks(places, _literals(settings))
    leak.set(ylim=(len(settings) - 0.5, -0.5), ylabel="noise multiplier σ, or what is missing")
    leak.set(xlabel="area under the ROC (dashed: 0.5)")
    use.set(xlabel="held-out perplexity (per token)")
    handles, labels = (
        own + other
        for own, other in zip(leak.get_legend_handles_labels(), use.get_legend_handles_labels(), strict=True)
    )
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return figure
