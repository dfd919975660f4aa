"""One look for every figure: width, two heights, one color per mechanism, text that is never parsed.

The baseline is dark gray, the best non-private model gray, the public checkpoint light gray, DP models blue
(darker = larger epsilon), attacks on members orange, several series indigo to amber; controls are hollow,
hatched or dashed. A dark page turns light and dark around and keeps the hues (`book.css`).
The colors differ in lightness as well as in hue, and every model has its own marker, so a black-and-white
print still reads.
"""

import functools
import io
import math
import re
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import ParamSpec

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.stats import checks
from privhelpers.text import in_words, inert, power_of_ten

WIDTH, SHORT, TALL = 6.5, 2.9, 4.3  # inches

NON_PRIVATE, PUBLIC, DP, ATTACK = "#3a3a3a", "#8f8f8f", "#0072b2", "#e07b00"
_BEST_NON_PRIVATE, _EQUAL_USE = "#777777", "#94643a"
CONTROL = "#262626"  # always hollow, hatched or dashed: never distinguished by color alone
_DP_SHADES = mpl.colors.LinearSegmentedColormap.from_list("dp", ["#4d9bcc", "#0072b2", "#0a3566"])
# Indigo, magenta, orange, amber: lightness and hue change together, so that neighbors differ in print, and
# if a dark page turns them around.
_SERIES_SHADES = mpl.colors.LinearSegmentedColormap.from_list(
    "series", ["#4b3fa7", "#b8327a", "#e0690f", "#c48a00"]
)
_DP_RANGE = (0.25, 16.0)  # epsilons at the ends of the shades
_SPARE_MARKERS = "Dv<>PX*pdh"
_KNOWN_MODELS = MappingProxyType(
    {
        "public": (PUBLIC, "s"),
        "baseline": (NON_PRIVATE, "o"),
        "best_nonprivate": (_BEST_NON_PRIVATE, "^"),
        "equal_use": (_EQUAL_USE, "D"),
    }
)


def is_model(name: str) -> bool:
    """Return whether `name` names a model of the book, which has a color and a marker of its own."""
    return name in _KNOWN_MODELS or epsilon_of(name) is not None


_RC = {
    **sns.axes_style("ticks"),
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "figure.dpi": 200,
    "figure.figsize": (WIDTH, SHORT),
    "font.size": 9,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
    "savefig.dpi": 200,
    "text.parse_math": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
_Arguments = ParamSpec("_Arguments")


class BookFigure(Figure):
    """A figure that a notebook shows when it is the last value of a cell, without loading pyplot."""

    def savefig(self, *args: object, **kwargs: object) -> None:
        """Save the figure in the style of the book; of the caller's settings only `svg.hashsalt` is kept."""
        with mpl.rc_context():
            salt = mpl.rcParams["svg.hashsalt"]
            use_style()
            mpl.rcParams["svg.hashsalt"] = salt
            super().savefig(*args, **kwargs)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()


def use_style() -> None:
    """Give this notebook's own plots the style of the book; the figures of this package have it anyway.

    It starts from matplotlib's defaults: nothing of a user's matplotlibrc is left.
    """
    mpl.rcdefaults()
    mpl.rcParams.update(_RC)


def drawn(make: Callable[_Arguments, Figure]) -> Callable[_Arguments, Figure]:
    """Draw a figure in the style of the book, whatever the caller's settings are."""

    @functools.wraps(make)
    def styled(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Figure:
        with mpl.rc_context():
            use_style()
            figure = make(*args, **kwargs)
            # Ticks are made when first drawn: drawing here gives them this style and this parser setting.
            figure.draw_without_rendering()
            for text in figure.findobj(Text):
                text.set_parse_math(False)
        return figure

    return styled


def canvas(height: float = SHORT) -> tuple[Figure, Axes]:
    """Return a figure of the book's width and its axes, free of pyplot (nothing to close, one display)."""
    figure = BookFigure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def literal(text: object) -> str:
    """Return text that a figure shows as it is: controls as escapes, one line of up to 48 characters.

    A blank goes before a first `_`, because matplotlib drops such labels from a legend.
    """
    shown = re.sub("^_", " _", inert(str(text)))
    return shown if len(shown) <= 48 else shown[:47] + "…"


def epsilon_of(model: str) -> float | None:
    """Return the epsilon in a model's name (`dp-eps-8`), or None."""
    match = re.fullmatch(r"dp-eps-(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?:-.*)?", model)
    return float(match[1]) if match else None


def dp_color(epsilon: float) -> str:
    """Return the blue of a DP model: darker means a larger epsilon, less privacy."""
    low, high = (math.log(bound) for bound in _DP_RANGE)
    place = (math.log(min(max(epsilon, _DP_RANGE[0]), _DP_RANGE[1])) - low) / (high - low)
    return mpl.colors.to_hex(_DP_SHADES(place))


def series_colors(count: int) -> list[str]:
    """Return the colors of `count` series other than models, dark to light; a single one is orange."""
    if count < 2:
        return [ATTACK] * count
    return [mpl.colors.to_hex(_SERIES_SHADES(place)) for place in np.linspace(0, 1, count)]


def model_looks(models: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return label, color and marker of each model by its name (`baseline`, `dp-eps-8`, ...)."""
    looks, spare = {}, 0
    for model in models:
        epsilon = epsilon_of(model)
        if model in _KNOWN_MODELS:
            label, (color, marker) = in_words(model), _KNOWN_MODELS[model]
        else:
            label = literal(model) if epsilon is None else in_words(f"dp-eps-{epsilon:g}")
            color = NON_PRIVATE if epsilon is None else dp_color(epsilon)
            marker = _SPARE_MARKERS[spare % len(_SPARE_MARKERS)]
            spare += 1
        looks[model] = {"label": label, "color": color, "marker": marker}
    return looks


def columns_of(**arrays: ArrayLike) -> list[np.ndarray]:
    """Return number arrays of one common length, refusing anything else by name."""
    columns = [checks.vector(name, values) for name, values in arrays.items()]
    lengths = {name: column.size for name, column in zip(arrays, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InvalidParameter(f"lengths differ: {lengths}")
    return columns


def whiskers(values: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Return distances below and above for `errorbar`, refusing an interval that misses its estimate."""
    if (lows > values).any() or (highs < values).any():
        raise InvalidParameter("lows and highs: each interval must contain its estimate")
    return np.stack([values - lows, highs - values])


def _plain(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:g}"


def _label(axis: Axis, value: float) -> str:
    """Return the label of a logarithmic tick; a power of ten if the axis is too long to write digits."""
    low, high = sorted(axis.get_view_interval())
    return _plain(value) if low >= 1e-4 and high < 1e6 else power_of_ten(value)


class _RoundTicks(LogLocator):
    """Powers of ten, with other round numbers between them if the view shows fewer than three."""

    def tick_values(self, vmin: float, vmax: float) -> np.ndarray:
        low, high = sorted((vmin, vmax))
        for between in ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5), range(1, 10)):
            self.set_params(subs=between)
            ticks = super().tick_values(vmin, vmax)
            if ((low <= ticks) & (ticks <= high)).sum() >= 3:
                return ticks
        return MaxNLocator(4).tick_values(vmin, vmax)


def log_axis(axis: Axis, ticks: ArrayLike | None = None) -> None:
    """Label a logarithmic axis in plain numbers; the default labels would need the math parser."""
    axis.set_major_locator(_RoundTicks() if ticks is None else FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _label(axis, value)))


def ticks_at(axes: Axes, places: ArrayLike) -> list[float] | None:
    """Return a few round values as ticks of a logarithmic axis whose labels do not overlap, or None."""
    places = np.unique(places)
    if places.size > 12 or any(float(_plain(place)) != place for place in places):
        return None
    width = axes.get_window_extent().width / axes.figure.dpi
    inches = width * np.log(places / places[0]) / (math.log(places[-1] / places[0]) or 1)
    shown, free = [], -math.inf
    for place, inch in zip(places, inches, strict=True):
        half = 0.04 + 0.035 * len(_plain(place))
        if inch - half >= free:
            shown.append(float(place))
            free = inch + half
    return shown


def percent_axis(axis: Axis) -> None:
    """Label an axis of rates in percent."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}"))


def legend_entries(axes: Axes) -> tuple[list[Artist], list[str]]:
    """Return what a legend shows: marks without their intervals, which would hide their shapes."""
    handles, labels = axes.get_legend_handles_labels()
    return [handle[0] if isinstance(handle, ErrorbarContainer) else handle for handle in handles], labels


def legend_above(figure: Figure, axes: Axes) -> None:
    """Put the legend above the plot, in as few rows as fit its width."""
    handles, labels = legend_entries(axes)
    for rows in range(1, len(labels) + 1):
        columns = math.ceil(len(labels) / rows)
        legend = figure.legend(handles, labels, loc="outside upper center", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()
