"""The pictures of one private step: what they show, in the style of the book, and what they refuse."""

import figure_checks
import numpy as np
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
GRADIENTS = np.array([[1.0, 0.2], [0.8, 0.4], [-3.0, 4.0]])
CLIPPED = GRADIENTS * np.minimum(1, 1 / np.linalg.norm(GRADIENTS, axis=1, keepdims=True))
CLOUD = CLIPPED.mean(0) + np.array([[0.1, 0.2], [-0.3, 0.1], [0.2, -0.2]])
BOUNDS = np.array([0.1, 1.0, 10.0])
PATHS = np.stack([np.outer(np.linspace(1, 0, 5), [4.0, -2.0]) + run for run in (0.0, 0.3)], axis=1)


def clipped(**changes):
    given = {"gradients": GRADIENTS, "clipped": CLIPPED, "noisy_means": CLOUD, "max_grad_norm": 1.0}
    return figures.clipped_gradients(**{**given, **changes})


def errors(**changes):
    given = {
        "parts": {"clipping bias": [1.0, 0.2, 0.0], HOSTILE: [0.01, 0.1, 4.0]},
        "measured": ([1.0, 0.3, 4.1], [0.9, 0.25, 3.9], [1.1, 0.35, 4.3]),
    }
    return figures.errors_by_bound(**{"bounds": BOUNDS, **given, **changes})


def paths(**changes):
    given = {
        "paths": {"C = 1": PATHS, HOSTILE: PATHS + 0.5},
        "records": GRADIENTS,
        "optimum": [0.0, 1.0],
        "rests": {"C = 1": [0.5, 0.5], HOSTILE: [0.0, 1.0]},
    }
    return figures.private_paths(**{**given, **changes})


def pulls(**changes):
    given = {"lengths": [8, 16, 32], "pulls": {"loss of each row": [2, 2, 2], HOSTILE: [3, 2, 1]}}
    return figures.pull_of_one_record(**{**given, **changes})


MAKERS = {
    "clipped_gradients": clipped,
    "errors_by_bound": errors,
    "private_paths": paths,
    "pull_of_one_record": pulls,
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=None if name == "clipped_gradients" else HOSTILE)


@pytest.mark.parametrize("name", ["errors_by_bound", "pull_of_one_record"])
def test_lines_differ_without_color(name):
    (axes,) = MAKERS[name]().axes
    unnamed = ("_child", "_nolegend_")
    named = [line for line in axes.lines if not str(line.get_label()).startswith(unnamed)]
    looks = {(str(line._dash_pattern), line.get_marker(), line.get_linewidth()) for line in named}
    assert len(looks) == len(named)


def marked(axes, label):
    (line,) = [line for line in axes.lines if line.get_label() == label]
    return np.column_stack(line.get_data())


def test_clipped_gradients_marks_both_means_in_both_panels():
    figure = clipped()
    for axes in figure.axes:
        assert marked(axes, "mean of the gradients") == pytest.approx(GRADIENTS.mean(0)[None])
        assert marked(axes, "mean of the clipped ones") == pytest.approx(CLIPPED.mean(0)[None])
        assert np.linalg.norm(marked(axes, "norm C"), axis=1) == pytest.approx(np.ones(181))
    assert marked(figure.axes[1], "released by a step") == pytest.approx(CLOUD)


def test_every_arrow_and_every_release_is_in_view():
    for axes, points in zip(clipped().axes, (GRADIENTS, np.concatenate([CLIPPED, CLOUD])), strict=True):
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        assert left <= points[:, 0].min() and points[:, 0].max() <= right
        assert low <= points[:, 1].min() and points[:, 1].max() <= high
        assert axes.get_aspect() == 1.0


def test_errors_add_up_and_the_least_is_marked():
    (axes,) = errors().axes
    assert marked(axes, "all together")[:, 1] == pytest.approx([1.01, 0.3, 4.0])
    assert marked(axes, "best of these C")[0, 0] == 1.0
    assert np.isnan(marked(axes, "clipping bias")[-1, 1])  # zero has no place on a logarithmic axis


def test_paths_show_one_run_and_the_ends_of_all():
    first = paths().axes[0]
    assert marked(first, "one run") == pytest.approx(PATHS[:, 0])
    assert marked(first, "ends of all runs") == pytest.approx(PATHS[-1])
    assert marked(first, "clipped, no noise") == pytest.approx(np.array([[0.5, 0.5]]))
    assert marked(first, "optimum") == pytest.approx(np.array([[0.0, 1.0]]))


@pytest.mark.parametrize(
    "call",
    [
        lambda: clipped(clipped=GRADIENTS),  # longer than C
        lambda: clipped(max_grad_norm=0.0),
        lambda: clipped(max_grad_norm=float("nan")),
        lambda: clipped(gradients=GRADIENTS[:, :1]),
        lambda: clipped(noisy_means=np.full((2, 2), np.nan)),
        lambda: errors(bounds=[0.0, 1.0, 2.0]),
        lambda: errors(parts={}),
        lambda: errors(parts={"a": [1.0, 2.0]}),
        lambda: errors(measured=([1.0] * 3, [2.0] * 3, [3.0] * 3)),  # an interval that misses its mean
        lambda: paths(rests={"C = 1": [0, 0]}),
        lambda: paths(paths={"C = 1": PATHS[0], HOSTILE: PATHS}),
        lambda: paths(paths={str(i): PATHS for i in range(4)}, rests={str(i): [0, 0] for i in range(4)}),
        lambda: paths(records=[[1.0, float("inf")]]),
        lambda: pulls(pulls={"a": [1.0]}),
        lambda: pulls(pulls={}),
    ],
)
def test_bad_input_is_refused_with_a_typed_error(call):
    with pytest.raises(InvalidParameter):
        call()
