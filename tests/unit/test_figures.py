import functools
import re
from pathlib import Path

import figure_checks
import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.text import Text

from privhelpers import figures, stats
from privhelpers.errors import InvalidParameter
from privhelpers.figures import style

# Unbalanced TeX: the math parser would raise on it, HTML would vanish, a leading _ would leave the legend.
HOSTILE = r"_x $\frac{1}$ <b>&amp;"
MODELS = ["public", "baseline", "best_nonprivate", "dp-eps-0.5", "dp-eps-1", "dp-eps-8", "dp-eps-10", HOSTILE]


@functools.cache
def curve(shift):
    generator = np.random.default_rng(0)
    scores, labels = generator.normal(size=(2, 120)), np.arange(120)
    return stats.roc_curve(scores[0] + shift, labels, scores[1], labels, draws=40)


LENGTHS = np.random.default_rng(0).integers(20, 120, 300)
AREAS, LOWS, HIGHS = np.linspace(0.5, 0.9, 8), np.linspace(0.45, 0.85, 8), np.linspace(0.55, 0.95, 8)
MAKERS = {
    "loss_curves": lambda: figures.loss_curves(
        {"train_loss": [3, 2, 1], "validation_loss": [3, 2.5, 2.6], "best_epoch": 2},
        validation_error=[0.1] * 3,
    ),
    "perplexity_by_epsilon": lambda: figures.perplexity_by_epsilon(
        [8, 1], [3, 9], {"public": 25.0, HOSTILE: 2.0}, lows=[2.8, 8.5], highs=[3.2, 9.6]
    ),
    "epsilon_spent": lambda: figures.epsilon_spent([1, 2, 3], [0.5, 0.8, 1.0], 1.0),
    "roc": lambda: figures.roc({"baseline": curve(1.0), HOSTILE: curve(0.0)}),
    "trade_off": lambda: figures.trade_off(np.linspace(2, 30, 8), AREAS, MODELS, LOWS, HIGHS),
    "layers_tradeoff": lambda: figures.layers_tradeoff(
        MODELS, np.linspace(2, 30, 8), AREAS, LOWS, HIGHS, [False] * 3 + [True] * 5, public=(25.0, 0.5)
    ),
    "condition_counts": lambda: figures.condition_counts([HOSTILE, "b", "c"], [90, 20, 3], rare=[0, 0, 1]),
    "note_lengths": lambda: figures.note_lengths(LENGTHS, limit=100),
}
SHOWS_MODEL_TEXT = {
    "layers_tradeoff",
    "perplexity_by_epsilon",
    "roc",
    "trade_off",
    "condition_counts",
}


def texts(figure):
    return [text for text in figure.findobj(Text) if text.get_text()]


def test_every_public_figure_is_tested():
    functions = {name for name in figures.__all__ if callable(getattr(figures, name))}
    files = Path(__file__).parent.glob("test_figures*.py")
    drawn = set(re.findall(r"\bfigures\.(\w+)\(", "".join(file.read_text() for file in files)))
    assert functions - {"use_style", "dp_color"} <= drawn


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE if name in SHOWS_MODEL_TEXT else None)


def test_a_figure_shows_itself_without_pyplot_and_twice_alike():
    one, two = (MAKERS["epsilon_spent"]()._repr_png_() for _ in range(2))
    assert one[:8] == b"\x89PNG\r\n\x1a\n" and one == two


def lightness(color):
    """CIE L*: how light a color looks on a grey printer, 0 to 100."""
    rgb = np.array(mpl.colors.to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16


def test_mechanisms_differ_in_grey():
    values = sorted(lightness(color) for color in figures.MECHANISM_COLORS.values())
    assert min(np.diff(values)) >= 10
    assert values[-1] <= 80  # still visible on white


def test_blue_darkens_with_epsilon():
    values = [lightness(figures.dp_color(epsilon)) for epsilon in (0.25, 0.5, 1, 4, 8, 16)]
    assert all(np.diff(values) < -4) and values[0] <= 80
    assert figures.dp_color(1000) == figures.dp_color(16)


def test_models_differ_by_marker_where_colors_are_close():
    looks = style.model_looks(MODELS)
    assert len({look["marker"] for look in looks.values()}) == len(MODELS)
    assert looks["dp-eps-8"]["label"] == "DP, ε = 8" and looks[HOSTILE]["label"] == HOSTILE
    assert looks["dp-eps-8"]["color"] == figures.dp_color(8)


def test_control_characters_become_visible_escapes():
    assert style.literal("a\u202eb\x1b[31m\n") == "a\\u202eb\\x1b[31m\\n"
    assert len(style.literal("x" * 500)) == 48


def test_uncertainty_is_drawn():
    for name in ("trade_off", "perplexity_by_epsilon"):
        axes = MAKERS[name]().axes[0]
        assert any(isinstance(box, mpl.container.ErrorbarContainer) for box in axes.containers), name
    assert len(MAKERS["roc"]().axes[0].collections) >= 2


def test_early_stop_epoch_is_the_lowest_held_out_loss():
    axes = MAKERS["loss_curves"]().axes[0]
    (line,) = [line for line in axes.lines if "lowest" in str(line.get_label())]
    assert list(line.get_xdata()) == [2, 2]


def test_use_style_changes_the_settings_only_when_called():
    with mpl.rc_context():
        figures.use_style()
        assert mpl.rcParams["figure.figsize"] == [figures.WIDTH, figures.SHORT]


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.roc({}),
        lambda: figures.trade_off([1, 2], [0.5, 0.6], ["a", "a"], [0.4, 0.5], [0.6, 0.7]),
        lambda: figures.trade_off([1], [0.5], ["a"], [0.6], [0.7]),
        lambda: figures.trade_off([1], [0.5, 0.6], ["a"], [0.4, 0.5], [0.6, 0.7]),
        lambda: figures.perplexity_by_epsilon([0.0], [3.0], {}),
        lambda: figures.epsilon_spent([1, 2], [float("nan"), 1], 1.0),
        lambda: figures.condition_counts(["a"], [0]),
    ],
)
def test_bad_input_is_refused_with_a_typed_error(call):
    with pytest.raises(InvalidParameter):
        call()
