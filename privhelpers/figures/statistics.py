"""Every leak rate beside its never-trained control: the picture of the front page."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style


@style.drawn
def leakage_bars(table: pd.DataFrame) -> Figure:
    """Draw leak rates as bars, each beside its never-trained control, one panel a measure.

    Args:
        table: columns model, measure, arm (`member` or `control`), rate, low, high; one row each.

    Raises:
        InvalidParameter: an arm is missing, or an interval misses its rate.
    """
    measures, models = list(dict.fromkeys(table["measure"])), list(dict.fromkeys(table["model"]))
    found = table.set_index(["measure", "model", "arm"])
    if len(found) != 2 * len(measures) * len(models) or not found.index.is_unique:
        raise InvalidParameter("table: needs one row for each measure, model and arm (member, control)")
    looks = style.model_looks(models)
    figure, row = style.canvas(style.TALL, len(measures), sharey=True)
    arms = {"member": (-0.2, style.ATTACK, None), "control": (0.2, style.CONTROL, "////")}
    for axes, measure in zip(row, measures, strict=True):
        for arm, (shift, color, hatch) in arms.items():
            rows = found.loc[[(measure, model, arm) for model in models]]
            ends = style.whiskers(*(rows[column].to_numpy() for column in ("rate", "low", "high")))
            places = np.arange(len(models)) + shift
            fill = {"facecolor": "none" if hatch else color, "hatch": hatch, "edgecolor": color}
            label = "trained on" if arm == "member" else "never trained on (control)"
            axes.barh(places, rows["rate"], 0.36, linewidth=0.8, label=label, **fill)
            axes.errorbar(rows["rate"], places, xerr=ends, fmt="none", ecolor="black", elinewidth=0.8)
        axes.set(title=style.literal(measure), xlabel="share (percent)", xlim=(0, None))
        style.percent_axis(axes.xaxis)
        axes.locator_params(axis="x", nbins=4)
    row[0].set_yticks(range(len(models)), [look["label"] for look in looks.values()])
    row[0].set(ylim=(len(models) - 0.4, -0.6), ylabel="model")
    style.legend_above(figure, row[0])
    return figure
