"""Pictures of who is exposed: attacks side by side, levels, rarity, epochs, and shadow models."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.stats import norm

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import RocCurve, checks

Rates = Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]]
_LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (5, 4)))
_MARKERS = "osD^vPX*"


def _looks(names: Sequence[str]) -> dict[str, dict]:
    """Return a look for each attack: oranges that differ in lightness, lines and markers that differ."""
    shades = np.linspace(0.95, 0.5, max(2, len(names)))
    return {
        name: {
            "label": style.literal(name),
            "color": colormaps["YlOrBr"](shade),
            "marker": _MARKERS[place % len(_MARKERS)],
            "linestyle": _LINES[place % len(_LINES)],
        }
        for place, (name, shade) in enumerate(zip(names, shades, strict=False))
    }


def _checked(rates: Rates, length: int) -> dict[str, list[np.ndarray]]:
    if not rates:
        raise InvalidParameter("rates: give one series or more")
    found = {}
    for name, (values, lows, highs) in rates.items():
        columns = style.columns_of(values=values, lows=lows, highs=highs)
        if columns[0].size != length:
            raise InvalidParameter(f"rates[{name!r}]: has {columns[0].size} values for {length} places")
        found[name] = [columns[0], style.whiskers(*columns)]
    return found


def _dodged(count: int, width: float) -> np.ndarray:
    return (np.arange(count) - (count - 1) / 2) * width


def _coin(axes: Axes, value: float, *, vertical: bool = False) -> None:
    line = axes.axvline if vertical else axes.axhline
    line(value, color=style.CONTROL, linestyle=":", linewidth=1, label="coin flip", zorder=1)


@style.drawn
def attack_areas(attacks: Sequence[str], levels: Rates) -> Figure:
    """Draw the area under the ROC of several attacks at each level, first attack on top.

    Args:
        attacks: names, in the order of the arrays.
        levels: (areas, lows, highs) by level, such as "note" and "patient"; NaN is refused.

    Raises:
        InvalidParameter: lengths differ or an interval misses its estimate.
    """
    found = _checked(levels, len(attacks))
    figure, (axes,) = style.canvas(style.TALL)
    _coin(axes, 0.5, vertical=True)
    for shift, (name, look), fill in zip(
        _dodged(len(found), 0.26), _looks(list(found)).items(), (True, False, True, False), strict=False
    ):
        values, ends = found[name]
        axes.errorbar(
            values,
            np.arange(values.size) + shift,
            xerr=ends,
            fmt=look["marker"],
            color=look["color"],
            mfc=None if fill else "white",
            capsize=2.5,
            label=look["label"],
        )
    axes.set_yticks(range(len(attacks)), [style.literal(name) for name in attacks])
    axes.set(ylim=(len(attacks) - 0.4, -0.6), ylabel="attack", xlabel="area under the ROC curve")
    style.legend_above(figure, axes)
    return figure


@style.drawn
def attack_rocs(curves: Mapping[str, RocCurve]) -> Figure:
    """Draw the ROC curves of several attacks on one model, with bands, on logarithmic axes.

    Args:
        curves: curve by attack, from `stats.roc_curve`.

    Raises:
        InvalidParameter: there is no curve.
    """
    if not curves:
        raise InvalidParameter("curves: give one curve or more")
    figure, (axes,) = style.canvas(style.TALL)
    style.draw_rocs(axes, curves, _looks(list(curves)))
    axes.axvline(0.01, color=style.CONTROL, linewidth=0.8, linestyle=(0, (1, 3)))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


@style.drawn
def levels_by_model(models: Sequence[str], levels: Rates) -> Figure:
    """Draw the area under the ROC of each model at each level, first model on top.

    Args:
        models: names, in the order of the arrays.
        levels: (areas, lows, highs) by level.

    Raises:
        InvalidParameter: lengths differ or an interval misses its estimate.
    """
    found = _checked(levels, len(models))
    figure, (axes,) = style.canvas(style.TALL)
    _coin(axes, 0.5, vertical=True)
    for shift, marker, name in zip(_dodged(len(found), 0.2), "osD^", found, strict=False):
        values, ends = found[name]
        for place, look in enumerate(style.model_looks(models).values()):
            axes.errorbar(
                values[place],
                place + shift,
                xerr=ends[:, [place]],
                fmt=marker,
                color=look["color"],
                mfc="white" if marker in "sD" else None,
                capsize=2.5,
            )
        axes.plot([], [], marker, color=style.CONTROL, mfc="white" if marker in "sD" else None, label=name)
    axes.set_yticks(range(len(models)), [look["label"] for look in style.model_looks(models).values()])
    axes.set(ylim=(len(models) - 0.4, -0.6), ylabel="model", xlabel="area under the ROC curve")
    style.legend_above(figure, axes)
    return figure


@style.drawn
def leakage_by_bucket(buckets: Sequence[str], by_model: Rates, *, what: str) -> Figure:
    """Draw the area under the ROC of each model within each bucket of patients or notes.

    Args:
        buckets: names, from left to right.
        by_model: (areas, lows, highs) by model name, one value a bucket.
        what: the axis: what the buckets are.

    Raises:
        InvalidParameter: lengths differ or an interval misses its estimate.
    """
    found = _checked(by_model, len(buckets))
    figure, (axes,) = style.canvas()
    _coin(axes, 0.5)
    looks = style.model_looks(found)
    for shift, line, (name, look) in zip(_dodged(len(found), 0.06), _LINES * 9, looks.items(), strict=False):
        values, ends = found[name]
        where = np.arange(values.size) + shift
        axes.errorbar(where, values, ends, capsize=2.5, linestyle=line, **style.in_legend(look))
    axes.set_xticks(range(len(buckets)), [style.literal(name) for name in buckets])
    axes.set(xlabel=what, ylabel="area under the ROC curve", xlim=(-0.4, len(buckets) - 0.6))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


@style.drawn
def leakage_by_epoch(
    epochs: ArrayLike, by_attack: Rates, *, what: str = "area under the ROC curve"
) -> Figure:
    """Draw a rate of several attacks against the epochs of training.

    Args:
        epochs: 1 or more, increasing.
        by_attack: (rates, lows, highs) by attack, one value for each entry of `epochs`.
        what: the vertical axis.

    Raises:
        InvalidParameter: lengths differ or an interval misses its estimate.
    """
    epochs = checks.vector("epochs", epochs)
    found = _checked(by_attack, epochs.size)
    figure, (axes,) = style.canvas()
    if what.startswith("area"):
        _coin(axes, 0.5)
    for name, look in _looks(list(found)).items():
        values, ends = found[name]
        axes.fill_between(epochs, values - ends[0], values + ends[1], color=look["color"], alpha=0.15, lw=0)
        axes.plot(epochs, values, **style.in_legend(look))
    axes.set(xscale="log", xlabel="epochs of training (passes over the notes)", ylabel=what)
    style.log_axis(axes.xaxis, epochs)
    style.legend_above(figure, axes, columns=3)
    return figure


@style.drawn
def shadow_evidence(inside: ArrayLike, outside: ArrayLike, target: float) -> Figure:
    """Draw what shadow models say of one note, with the normal fits, and where the target falls.

    Args:
        inside, outside: statistic under models that trained with the note, and without it; 2 or more each.
        target: the statistic under the attacked model.

    Raises:
        InvalidParameter: a side has fewer than 2 values, or a value is not finite.
    """
    arms = {
        "models with the note": (checks.vector("inside", inside, 2), style.ATTACK, "o", "-"),
        "models without it": (checks.vector("outside", outside, 2), style.CONTROL, "s", "--"),
    }
    every = np.concatenate([[target], *(arm[0] for arm in arms.values())])
    grid = np.linspace(every.min() - 0.3 * np.ptp(every), every.max() + 0.3 * np.ptp(every), 300)
    figure, (axes,) = style.canvas()
    for name, (values, color, marker, line) in arms.items():
        axes.plot(grid, norm.pdf(grid, values.mean(), values.std() + 1e-9), line, color=color)
        axes.plot(values, np.zeros(values.size), marker, color=color, mfc="white", clip_on=False, label=name)
    axes.axvline(target, color=style.NON_PRIVATE, linestyle="-.", label="the attacked model")
    axes.set(xlabel="statistic of the note, log p / (1 - p)", ylabel="density (per unit of it)")
    axes.set_ylim(bottom=0)
    style.legend_above(figure, axes)
    return figure
