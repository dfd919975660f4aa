"""Pictures of extraction: exposure by copies, leak rates beside their controls."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style

ARMS = {
    "member": {"label": "trained on", "color": style.ATTACK, "marker": "o", "mfc": style.ATTACK},
    "control": {"label": "never trained on (control)", "color": style.CONTROL, "marker": "D", "mfc": "white"},
}


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
