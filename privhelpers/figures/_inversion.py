"""What gradient inversion recovers: rates below their ceiling."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.figures import _style as style
from privhelpers.stats import Interval

_LOOKS = (
    (style.ATTACK, "o", "-"),
    (style.NON_PRIVATE, "^", (0, (5, 1.5))),
    ("#7a3e00", "s", "-."),
    ("#8a8a8a", "D", (0, (1, 1))),
)
Rates = Mapping[str, Mapping[float, Interval]]
_ASIDE = 1.025  # factor between the bars of neighboring lines, so that none hides another


@style.drawn
def recovery(
    attacks: Rates,
    controls: Rates,
    *,
    xlabel: str,
    what: str,
    ceiling: tuple[ArrayLike, ArrayLike] | None = None,
    marks: Mapping[str, float] | None = None,
) -> Figure:
    """Draw what attacks recover, each at places of its own, with their controls and a ceiling.

    Args:
        attacks, controls: by name, the interval of the rate at each place, such as the noise over the
            clipping bound or the size of a batch, greater than 0; up to four of each.
        xlabel, what: labels of the places and of the rate.
        ceiling: (places, rising; the most that any attack may recover there, in [0, 1]).
        marks: places of runs by label, such as {"ε = 8": 0.8}.

    Raises:
        InvalidParameter: a place is missing or not positive, an interval misses its estimate, or the lengths
            of the ceiling differ.
    """
    given = (*attacks.values(), *controls.values())
    sizes = sorted({place for line in given for place in line})
    if not given or not all(given) or sizes[0] <= 0:
        raise InvalidParameter("attacks, controls: each needs places greater than 0 (logarithmic axis)")
    figure, axes = style.canvas(style.TALL)
    axes.set(xscale="log", xlabel=xlabel)
    if ceiling is None:
        style.log_axis(axes.xaxis, sizes)
    else:
        x, top = style.columns_of(noise=ceiling[0], ceiling=ceiling[1])
        if x.min() <= 0:
            raise InvalidParameter("ceiling: places must be greater than 0 (logarithmic axis)")
        axes.fill_between(x, top, 1.04, facecolor="none", edgecolor="#b0b0b0", hatch="\\\\", linewidth=0)
        axes.plot(x, top, color=style.DP, linewidth=2.2, label="ceiling by differential privacy")
        axes.set(xlim=(x.min(), x.max()))
        style.log_axis(axes.xaxis, 10.0 ** np.arange(np.round(np.log10(x.min())), np.log10(x.max()) + 0.01))
    hollow = [(style.CONTROL, marker, ":") for _, marker, _ in _LOOKS]
    for rates, looks in ((attacks, _LOOKS), (controls, hollow)):
        for place, (name, intervals) in enumerate(rates.items()):
            color, marker, line = looks[place]
            x, ends = zip(*sorted(intervals.items()), strict=True)
            middle, low, high = np.array([(i.estimate, i.low, i.high) for i in ends]).T
            errors = style.whiskers(middle, low, high)
            if ceiling is None:
                x = np.array(x) * _ASIDE ** (len(rates) if looks is hollow else place)
                axes.errorbar(x, middle, errors, fmt="none", ecolor=color, elinewidth=1, capsize=2)
            else:
                axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
            look = {"linestyle": line, "color": color, "marker": marker, "label": style.literal(name)}
            axes.plot(x, middle, **look, mfc="white" if looks is hollow else color, ms=4)
    for name, place in (marks or {}).items():
        axes.axvline(place, color=style.DP, linestyle=":", linewidth=1)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(place, 0.85, style.literal(name), rotation=90, ha="center", va="center", size=9, bbox=box)
    axes.set(ylim=(-0.02, 1.04), ylabel=f"{style.literal(what)} (%)")
    style.percent_axis(axes.yaxis)
    style.legend_above(figure, axes)
    return figure
