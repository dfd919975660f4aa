"""What every figure of the book must be: named, of one size, readable, and without side effects."""

import io
import itertools
from collections.abc import Callable

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.text import Text

from privhelpers.figures import _style as style


def hidden_ticks(figure: Figure) -> set[Text]:
    """Labels that exist but are not drawn: of ticks beyond the view, and of spare ticks."""
    labels = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        shown = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        spare = [tick for tick in (*axis.majorTicks, *axis.minorTicks) if tick not in shown]
        labels |= {label for tick in spare for label in (tick.label1, tick.label2)}
    return labels


def check(make: Callable[[], Figure], shows: str | None = None) -> None:
    """Assert that a figure is one of the book, and that it shows the text `shows` as it is."""
    before = dict(mpl.rcParams)
    figure = make()
    assert isinstance(figure, Figure) and dict(mpl.rcParams) == before
    assert figure.get_figwidth() == style.WIDTH
    assert figure.get_figheight() in (style.SHORT, style.TALL)
    assert all(axes.get_xlabel() for axes in figure.axes) and figure.axes[0].get_ylabel()
    assert figure._repr_png_() == make()._repr_png_()
    check_text(figure)
    assert shows is None or any(text.get_text() == shows for text in figure.findobj(Text))


def check_text(figure: Figure) -> None:
    """Assert that no text is parsed as math or cut off, and that no labels of one axis overlap."""
    figure.savefig(io.BytesIO(), format="png")
    width, height = figure.canvas.get_width_height()
    hidden = hidden_ticks(figure)
    for text in figure.findobj(Text):
        assert not text.get_parse_math()
        free = text.get_visible() and text.get_text() and text.get_clip_box() is None and text not in hidden
        if free:
            box = text.get_window_extent()
            assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1, text
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        labels = [label for label in axis.get_ticklabels() if label.get_text() and label not in hidden]
        boxes = [label.get_window_extent() for label in labels if label.get_visible()]
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
