"""How the loss attack grows with the generalization gap: lines whose points have places of their own."""

from collections.abc import Mapping
from itertools import cycle

from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import style

_NETWORKS = (("#111111", "o", "-"), ("#5a5a5a", "s", "--"), ("#8a8a8a", "^", "-."), ("#a8a8a8", "D", ":"))


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
    axes.axhline(0.5, color=style.CONTROL, linestyle="--", linewidth=1, zorder=1)
    for (name, (gaps, aucs)), (color, marker, dashes) in zip(found.items(), cycle(_NETWORKS)):
        gaps, aucs = style.columns_of(gaps=gaps, aucs=aucs)
        look = style.in_legend({"label": style.literal(name), "color": color, "marker": marker})
        axes.plot(gaps, aucs, linestyle=dashes, **look)
    axes.set(xlabel="generalization gap: held-out minus training loss (nats per token)")
    axes.set(ylabel="area under the ROC (loss attack)")
    style.legend_above(figure, axes)
    return figure
