"""A sweep is a grid of small profiles; its table has one row a measurement and one meaning a column."""

import re

import pandas as pd
import pytest
import toy_chain

from bookmaker.runner import build, chain, plan, profiles, published
from bookmaker.sweep import __main__ as sweep
from bookmaker.sweep import _gallery, _grid, _results
from privhelpers import artifacts
from privhelpers.errors import InvalidParameter


@pytest.fixture
def root(tmp_path):
    made = toy_chain.build(tmp_path / "toy")
    path = made / "notebooks" / f"{chain.PRETRAINING}.ipynb"
    toy_chain.write_notebook(path, toy_chain.HEAD + 'architecture: str = "tiny"  # which model\n', ["1"])
    return made


def test_a_cell_changes_three_values_and_keeps_the_rest(root):
    before = plan.jobs(root, "toy")
    cells = _grid.cells("toy", architectures=["tiny", "mini"], seeds=[0, 4])
    assert [cell.profile for cell in cells] == ["toy-tiny-s0", "toy-tiny-s4", "toy-mini-s0", "toy-mini-s4"]
    *_, jobs = _grid.write(root, cells, _grid.files(root, cells, epsilons=[1, 8]))
    assert profiles.derived("toy-mini-s4") == "runs/toy-mini-s4/profile.yml"
    by_rule = {job.rule: job for job in jobs}
    assert {f"{chain.DPSGD}_dp-eps-1", f"{chain.DPSGD}_dp-eps-8"} <= set(by_rule)
    changed = {"profile": "toy-mini-s4", "seed": 4, "architecture": "mini"}
    assert by_rule[chain.PRETRAINING].parameters == changed
    assert by_rule[chain.RECORDS].parameters["patients"] == 4
    assert plan.jobs(root, "toy") == before


@pytest.mark.parametrize(("architectures", "seeds"), [([], [0]), (["tiny"], []), (["tiny"], [1, 1])])
def test_an_axis_needs_different_values(architectures, seeds):
    with pytest.raises(InvalidParameter):
        _grid.cells("toy", architectures=architectures, seeds=seeds)


def measured(**changes):
    row = dict.fromkeys(_results.COLUMNS)
    row |= {"profile": "a-tiny-s0", "architecture": "tiny", "seed": 0, "model": "dp-eps-8", "epsilon": 7.9}
    row |= {"delta": 1e-5, "family": "membership", "measure": "AUC, loss", "arm": "member", "n": 40}
    row |= {"estimate": 0.53, "low": 0.5, "high": 0.56, "level": 0.95, "method": "bootstrap"}
    return row | {"unit": "note", "cluster": "patient", "clusters": 20} | changes


def page_of(*rows, name="demo"):
    return _gallery.page(_results.as_table(rows), name)


def test_the_page_has_a_row_for_each_run_with_intervals_and_what_an_epsilon_is_worth():
    control = {"arm": "control", "estimate": 0.41, "low": 0.4, "high": 0.42}
    bound = {"measure": "epsilon, lower bound", "estimate": 1.25, "low": 1.25, "high": None}
    cells = [
        measured(seed=s, profile=f"a-tiny-s{s}", **more) for s in (0, 1) for more in ({}, control, bound)
    ]
    page = page_of(*cells, measured(model="public", epsilon=None, delta=None))
    rows = re.findall(r"<tr data-architecture.*?</tr>", page, re.DOTALL)
    assert len(rows) == 3 and ">7.90<" in rows[0] and ">none<" in rows[2] and "nan" not in page
    assert all(f">{said}<" in rows[0] for said in ("0.530 [0.500, 0.560]", "0.410 [0.400, 0.420]", "1.25"))
    assert page.count("<svg") == 2
    assert published.WORTH in page and all(f"<li>{one}</li>" in page for one in published.NOT_PROTECTED)


def test_no_text_acts_and_no_page_asks_another_host_for_anything():
    page = page_of(measured(architecture="ti\u202eny<script>alert(1)</script>\x1b"), name="de\u200bmo")
    assert not re.search("[\u202e\x1b\u200b]", page) and "<script>alert" not in page
    assert "&lt;script&gt;alert" in page and r"ti\u202eny" in page
    assert not [link for link in re.findall(r"(?:src|href)=\"([^\"#][^\"]*)\"", page) if "//" in link]
    assert "default-src 'none'" in page.partition("<style")[0] and not re.search(r"\son\w+=", page)


REFUSED = [
    (["--epsilons="], "EPSILONS"),
    (["--epsilons=1", "--cluster=zz"], "CLUSTER='zz'"),
    (["--epsilons=nan"], "target_epsilon"),
    (["--epsilons=1", "--seeds=0 -1"], "seed = -1"),
    (["--epsilons=1", "--seeds=0 1"], "params/toy-mini-s1.yml"),
    (["--epsilons=1", "--seeds=0 2"], "toy-mini-s2 is in use"),
]


@pytest.mark.parametrize("arguments, named", REFUSED)
def test_what_is_refused_is_named_and_writes_nothing(root, monkeypatch, capsys, arguments, named):
    monkeypatch.chdir(root)
    monkeypatch.setattr(sweep, "repository_root", lambda: root)
    monkeypatch.setattr(sweep, "die_with_parent", lambda: None)
    cell = root / "runs" / "toy-mini-s0" / "profile.yml"
    artifacts.write_atomic(cell, b"shared: {seed: 0}")
    (root / "params" / "toy-mini-s1.yml").write_text("shared: {seed: 9}")
    with build.alone(root, ["toy-mini-s2"]):
        code = sweep.main(["--profile=toy", "--architectures=mini", *arguments])
    message = capsys.readouterr().err
    assert code == (1 if "in use" in named else 2) and named in message and message.count("\n") == 1
    assert cell.read_bytes() == b"shared: {seed: 0}" and not (root / "runs" / "toy-mini-s1").exists()
    assert not (root / "runs" / "sweeps" / "toy").exists()


def test_the_picture_has_a_mean_over_seeds_beside_its_control():
    rows = [
        {"model": "dp-eps-8", "architecture": "tiny", "arm": arm, "estimate": base + seed / 10}
        for arm, base in (("member", 0.6), ("control", 0.5))
        for seed in (0, 1, 2)
    ]
    axes = _gallery._comparison(pd.DataFrame(rows), "member", "Area").axes[0]
    points = [line.get_xdata() for line in axes.lines if line.get_marker() not in ("", "None", "|", None)]
    assert sorted(x[0] for x in points) == pytest.approx([0.6, 0.7])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["tiny, ε = 8"]
    assert _gallery._over_seeds(pd.Series([0.5])) == (0.5, 0.5, 0.5)
    low, high = 0.7 - 4.302653 * 0.1 / 3**0.5, 0.7 + 4.302653 * 0.1 / 3**0.5  # Student, 2 degrees
    assert _gallery._over_seeds(pd.Series([0.6, 0.7, 0.8])) == pytest.approx((0.7, low, high), rel=1e-6)
