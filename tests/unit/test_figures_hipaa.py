import functools

import figure_checks
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from privhelpers import figures, hipaa
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"
MODELS = [
    "public",
    "baseline",
    "best_nonprivate",
    "dp-eps-0.5",
    "dp-eps-1",
    "dp-eps-4",
    "dp-eps-8",
    "dp-eps-10",
]


@functools.cache
def frame(leaked=11):
    return hipaa.ledger(
        {"name": 224, "email": 160, "ssn": 0, "mrn": None},
        {"name": 1400, "email": 1400},
        {"name": leaked, "email": 0},
        {"name": 0, "email": 0},
        carriers={"name": 224, "email": 160},
        control_carriers={"name": 243, "email": 167},
    )


@functools.cache
def promises():
    audited = hipaa.Promise("dp-eps-8", 8.0, 1e-5, 0.01, {0.1: 0.997}, 0.999, 0.2, 3.4, 0.06)
    return [hipaa.Promise("dp-eps-1", 1.0, 1e-5, 0.01, {0.1: 0.24}, 0.027, 0.02), audited]


def parts():
    rows = {"baseline": [7.1, 30.0, 0.5, 0.0], HOSTILE: [0.4, 30.0, 0.0, 0.0]}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["prompt", "canary", "exact", HOSTILE])


MAKERS = {
    "ledger_by_model": lambda: figures.ledger_by_model({model: frame() for model in MODELS}),
    "belief_by_epsilon": lambda: figures.belief_by_epsilon(promises()),
    "score_parts": lambda: figures.score_parts(parts()),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_for_the_officer(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE if name == "score_parts" else None)


def test_the_ledger_by_patient_names_its_unit_and_draws_both_arms():
    figure_checks.check(lambda: figures.identifier_ledger(frame()))
    axes = figures.identifier_ledger(frame()).axes[0]
    assert axes.get_xlabel() == "patients whose value came out (%)"
    assert len(axes.containers) == 4  # two identifiers, two arms


def test_only_cells_above_their_control_are_filled():
    axes = figures.ledger_by_model({"baseline": frame(), "public": frame(0)}).axes[0]
    cells = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    attack = figures.MECHANISM_COLORS["attack"]
    orange = [cell for cell in cells if to_hex(cell.get_facecolor()) == attack]
    assert len(cells) == 36 and len(orange) == 1 and orange[0].get_x() == -0.5
    assert sorted(cell.get_hatch() for cell in cells if cell.get_hatch()) == ["...."] * 2 + ["////"] * 30
    assert {text.get_text() for text in axes.texts} == {"11 | 0", "0 | 0"}


def test_a_budget_reaches_the_belief_that_its_curve_gives():
    axes = figures.belief_by_epsilon(promises(), priors=(0.1,)).axes[0]
    curve = next(line for line in axes.lines if line.get_linestyle() == "-" and line.get_lw() == 1)
    marks = [line for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata()) == 1]
    assert len(marks) == 3  # two budgets, one of them audited
    for mark in marks:
        height = np.interp(np.log(mark.get_xdata()[0]), np.log(curve.get_xdata()), curve.get_ydata())
        assert height == pytest.approx(mark.get_ydata()[0], abs=1e-3)


def test_bars_end_at_the_score():
    axes = figures.score_parts(parts()).axes[0]
    assert [text.get_text() for text in axes.texts] == ["37.60", "30.40"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.ledger_by_model({}),
        lambda: figures.belief_by_epsilon([]),
        lambda: figures.belief_by_epsilon(promises(), priors=(0.1,) * 5),
        lambda: figures.score_parts(pd.DataFrame({"a": [-1.0]})),
        lambda: figures.score_parts(pd.DataFrame()),
    ],
)
def test_nothing_to_draw_is_refused(call):
    with pytest.raises(InvalidParameter):
        call()
