"""Pictures of extraction: exposure by copies, leak rates beside their controls."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style
from privhelpers.stats import checks

ARMS = {
    "member": {"label": "trained on", "color": style.ATTACK, "marker": "o", "mfc": style.ATTACK},
    "control": {"label": "never trained on (control)", "color": style.CONTROL, "marker": "D", "mfc": "white"},
}


@style.drawn
def exposure_by_copies(
    copies: ArrayLike,
    exposures: ArrayLike,
    control_exposures: ArrayLike,
    ceiling_bits: float,
    theory: float | ArrayLike | None = None,
) -> Figure:
    """Draw the exposure of every planted canary by its number of copies, over the band of the controls.

    Args:
        copies: how often each planted canary was inserted, 1 or more.
        exposures: its exposure, in bits.
        control_exposures: exposure of each canary that was kept out, in bits; 2 or more.
        ceiling_bits: largest exposure that can be measured, in bits.
        theory: expected bits, one number or one per distinct number of copies; drawn dash-dotted.

    Raises:
        InvalidParameter: lengths differ or a value is not finite.

    Source: Carlini et al., USENIX Security 2019, section 4.
    """
    copies, exposures = style.columns_of(copies=copies, exposures=exposures)
    control = checks.vector("control_exposures", control_exposures, least=2)
    levels = np.unique(copies)
    figure, (axes,) = style.canvas()
    low, high = np.percentile(control, [2.5, 97.5])
    band = f"never inserted (n = {control.size}): 95 % range, median"
    axes.axhspan(
        low, high, facecolor="none", edgecolor="#9a9a9a", hatch="////", linewidth=0, zorder=0, label=band
    )
    axes.axhline(np.median(control), color=style.CONTROL, linestyle="--", zorder=1)
    axes.axhline(ceiling_bits, color=style.CONTROL, linestyle=":", label="ceiling of the measure")
    for place, level in enumerate(levels):
        values = np.sort(exposures[copies == level])
        spread = np.linspace(-0.22, 0.22, values.size) if values.size > 1 else [0]
        axes.plot(place + np.asarray(spread), values, "o", color=style.ATTACK, alpha=0.6, mew=0, zorder=2)
        axes.hlines(np.median(values), place - 0.32, place + 0.32, color=style.NON_PRIVATE, lw=2.2, zorder=3)
    axes.plot([], [], "o", color=style.ATTACK, label="inserted canary")
    axes.plot([], [], color=style.NON_PRIVATE, lw=2.2, label="median of the inserted")
    if theory is not None:
        expected = np.broadcast_to(np.asarray(theory, dtype=float), levels.shape)
        axes.plot(range(levels.size), expected, "-.", color=style.DP, label="theory")
    axes.set_xticks(range(levels.size), [f"{level:g}" for level in levels])
    axes.set(xlabel="copies in the training notes (count)", ylabel="exposure (bits)")
    style.legend_above(figure, axes, columns=3)
    return figure


def _paired_dots(axes: Axes, rows: pd.DataFrame, models: list[str]) -> None:
    for (arm, look), shift in zip(ARMS.items(), (-0.16, 0.16), strict=True):
        part = rows[rows["arm"] == arm].set_index("model").reindex(models)
        here = part["rate"].notna().to_numpy()
        rate, low, high = (part[name].to_numpy(float)[here] for name in ("rate", "low", "high"))
        places = np.arange(len(models))[here] + shift
        options = {"fmt": look["marker"], "color": look["color"], "mfc": look["mfc"], "label": look["label"]}
        axes.errorbar(rate, places, xerr=style.whiskers(rate, low, high), capsize=2.5, **options)


@style.drawn
def leak_rates(table: pd.DataFrame) -> Figure:
    """Draw, model by model, the leak rate on members beside the rate on never-trained controls.

    Args:
        table: one row per model, rule and arm, with columns model, rule ("strict", "loose"), arm
            ("member", "control"), rate, low, high (rates in [0, 1]); first model on top.

    Raises:
        InvalidParameter: a column or an arm is missing, or an interval misses its estimate.
    """
    missing = {"model", "rule", "arm", "rate", "low", "high"} - set(table.columns)
    if missing or set(table["arm"]) != set(ARMS):
        raise InvalidParameter(
            f"table: columns missing {sorted(missing)}; arm must hold both of {sorted(ARMS)}"
        )
    models, rules = list(dict.fromkeys(table["model"])), list(dict.fromkeys(table["rule"]))
    figure, panels = style.canvas(style.SHORT if len(models) <= 7 else style.TALL, len(rules), sharey=True)
    for axes, rule in zip(panels, rules, strict=True):
        _paired_dots(axes, table[table["rule"] == rule], models)
        axes.set(title=f"{style.literal(rule)} rule", xlabel="attempts that leak (%)")
        axes.set_xlim(left=0 - 0.03 * axes.get_xlim()[1])
        style.percent_axis(axes.xaxis)
    looks = style.model_looks(models)
    panels[0].set_yticks(range(len(models)), [looks[model]["label"] for model in models])
    panels[0].set(ylim=(len(models) - 0.4, -0.6), ylabel="model")
    style.legend_above(figure, panels[0])
    return figure
