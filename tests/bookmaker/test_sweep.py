"""A sweep is a grid of small profiles; its table has one row a measurement and one meaning a column."""

import re

import pandas as pd
import pytest
import toy_chain
import toy_site
import yaml

from bookmaker.runner import build, chain, cli, plan, profiles, published
from bookmaker.sweep import __main__ as sweep
from bookmaker.sweep import _gallery, _grid, _results
from privhelpers import artifacts
from privhelpers.errors import InvalidParameter, MissingArtifact


@pytest.fixture
def root(tmp_path):
    made = toy_chain.build(tmp_path / "toy")
    path = made / "notebooks" / f"{chain.PRETRAINING}.ipynb"
    toy_chain.write_notebook(path, toy_chain.HEAD + 'architecture: str = "tiny"  # which model\n', ["1"])
    return made


def written(root, cells, epsilons):
    return _grid.write(root, cells, _grid.files(root, cells, epsilons=epsilons))


def test_cells_are_the_product_and_have_names_of_their_own():
    cells = _grid.cells("toy", architectures=["tiny", "mini"], seeds=[0, 5])
    assert [cell.profile for cell in cells] == ["toy-tiny-s0", "toy-tiny-s5", "toy-mini-s0", "toy-mini-s5"]


@pytest.mark.parametrize(("architectures", "seeds"), [([], [0]), (["tiny"], []), (["tiny"], [1, 1])])
def test_an_axis_needs_different_values(architectures, seeds):
    with pytest.raises(InvalidParameter, match="all different"):
        _grid.cells("toy", architectures=architectures, seeds=seeds)


def test_a_cell_changes_three_values_and_keeps_the_rest(root):
    before = plan.jobs(root, "toy")
    cells = _grid.cells("toy", architectures=["mini"], seeds=[4])
    (jobs,) = written(root, cells, [1, 8])
    assert profiles.derived("toy-mini-s4") == "runs/toy-mini-s4/profile.yml"
    by_rule = {job.rule: job for job in jobs}
    assert {f"{chain.DPSGD}_dp-eps-1", f"{chain.DPSGD}_dp-eps-8"} <= set(by_rule)
    assert by_rule[chain.PRETRAINING].parameters == {
        "profile": "toy-mini-s4",
        "seed": 4,
        "architecture": "mini",
    }
    assert by_rule[chain.RECORDS].parameters["patients"] == 4
    assert plan.jobs(root, "toy") == before


def test_a_profile_that_is_missing_is_named(root):
    with pytest.raises(MissingArtifact, match="nobody"):
        _grid.files(root, _grid.cells("nobody", architectures=["a"], seeds=[0]), epsilons=[1])


def test_two_cells_run_in_one_schedule(root):
    plans = written(root, _grid.cells("toy", architectures=["mini"], seeds=[0, 1]), [8])
    names = [jobs[0].profile for jobs in plans]
    wanted = [job.mark for jobs in plans for job in jobs if job.slug == chain.DPSGD]
    script = (
        "from pathlib import Path\nfrom bookmaker.runner import build, plan\n"
        f"plans = [plan.jobs(Path('.'), name) for name in {names}]\n"
        f"raise SystemExit(build.chain(Path('.').resolve(), plans, cores=2, targets={wanted}))\n"
    )
    done = toy_chain.python(root, script)
    assert done.returncode == 0, done.stderr
    assert all((root / target).is_file() for target in wanted)
    seeds = [yaml.safe_load((root / profiles.derived(name)).read_text())["shared"]["seed"] for name in names]
    assert seeds == [0, 1]
    again = toy_chain.python(root, script)
    assert again.returncode == 0 and "started" not in again.stderr


def measured(**changes):
    row = dict.fromkeys(_results.COLUMNS)
    row |= {"profile": "a-tiny-s0", "architecture": "tiny", "seed": 0, "model": "dp-eps-8", "epsilon": 7.9}
    row |= {"delta": 1e-5, "family": "membership", "measure": "AUC, loss", "arm": "member", "n": 40}
    row |= {"estimate": 0.53, "low": 0.5, "high": 0.56, "level": 0.95, "method": "bootstrap"}
    return row | {"unit": "note", "cluster": "patient", "clusters": 20} | changes


def pages_of(*rows):
    return dict(_gallery.pages(_results.as_table(rows), "demo"))


def test_the_gallery_has_a_row_and_a_page_for_each_run():
    cells = [
        measured(seed=s, profile=f"a-tiny-s{s}", arm=arm) for s in (0, 1) for arm in ("member", "control")
    ]
    pages = pages_of(*cells, measured(model="public", epsilon=None, delta=None))
    assert set(pages) == {
        "index.html",
        "compare.html",
        "a-tiny-s0--dp-eps-8.html",
        "a-tiny-s1--dp-eps-8.html",
        "a-tiny-s0--public.html",
    }
    assert pages["index.html"].count("<tr data-architecture") == 3
    assert "0.530" in pages["index.html"] and ">nan<" not in pages["index.html"]
    assert "No formal guarantee." in pages["a-tiny-s0--public.html"]
    assert "ε = 7.900 at δ = 1e-05" in pages["a-tiny-s1--dp-eps-8.html"]
    assert pages["compare.html"].count("<svg") == 1


def test_an_epsilon_says_what_it_is_worth_and_what_it_does_not_cover():
    pages = pages_of(measured(), measured(model="public", epsilon=None, delta=None))
    for name in ("index.html", "compare.html", "a-tiny-s0--dp-eps-8.html"):
        assert published.WORTH in pages[name], name
    private = pages["a-tiny-s0--dp-eps-8.html"]
    assert all(f"<li>{one}</li>" in private for one in published.NOT_PROTECTED)
    assert published.WORTH not in pages["a-tiny-s0--public.html"]


def test_no_text_acts_and_no_page_asks_another_host_for_anything():
    hostile = measured(architecture="ti\u202eny", method="<script>alert(1)</script>\x1b")
    pages = dict(_gallery.pages(_results.as_table([hostile]), "de\u200bmo"))
    for text in pages.values():
        assert not re.search("[\u202e\x1b\u200b]", text) and "<script>alert" not in text
        assert not [link for link in re.findall(r"(?:src|href)=\"([^\"#][^\"]*)\"", text) if "//" in link]
        assert "default-src 'none'" in text.partition("<style")[0] and not re.search(r"\son\w+=", text)
    assert "&lt;script&gt;alert" in pages["a-tiny-s0--dp-eps-8.html"] and r"ti\u202eny" in pages["index.html"]


def test_a_sweep_is_sealed_when_it_is_finished_and_not_before(root, monkeypatch, capsys):
    def made(root, plans, *, targets, **_):
        for job in (job for jobs in plans for job in jobs if job.mark in targets):
            toy_site.write_run(root, job, toy_site.executed(toy_site.source(job.slug), job))
            (root / job.mark).touch()
        return 0

    monkeypatch.chdir(root)
    monkeypatch.setattr(sweep, "repository_root", lambda: root)
    monkeypatch.setattr(sweep, "die_with_parent", lambda: None)
    monkeypatch.setattr(sweep.build, "chain", made)
    monkeypatch.setattr(_results, "collect", lambda root, grid: _results.as_table([measured()]))
    asked = ["--profile=toy", "--epsilons=8", "--seeds=0 1", "--architectures=mini"]
    assert sweep.main(asked) == 0
    assert cli.main(["verify", "--profile=toy"]) == 0
    assert re.search(r"sweep toy: holds: every file is as it was made: \d\d runs", capsys.readouterr().out)
    page = root / "runs" / "sweeps" / "toy" / "gallery" / "index.html"
    page.write_text(page.read_text().replace("0.530", "0.123"))
    assert cli.main(["verify", "--profile=toy"]) == 1
    assert "gallery/index.html changed after it was made" in capsys.readouterr().out
    monkeypatch.setattr(sweep.build, "chain", lambda *_, **__: 1)
    assert sweep.main(asked) == 1 and cli.main(["verify", "--profile=toy"]) == 1
    assert "sweep toy: does not hold: .complete is gone" in capsys.readouterr().out


REFUSED = [
    (["--epsilons=1", "--cluster=zz"], "CLUSTER='zz'"),
    (["--epsilons=nan"], "target_epsilon"),
    (["--epsilons=1", "--seeds=0 -1"], "seed = -1"),
    (["--epsilons=1", "--seeds=0 1"], "params/toy-mini-s1.yml has the name of a cell"),
    (["--epsilons=1", "--seeds=0 2"], "profile toy-mini-s2 is in use"),
]


@pytest.mark.parametrize("arguments, words", REFUSED)
def test_what_is_refused_leaves_a_finished_sweep_as_it_is(root, monkeypatch, capsys, arguments, words):
    monkeypatch.chdir(root)
    monkeypatch.setattr(sweep, "repository_root", lambda: root)
    monkeypatch.setattr(sweep, "die_with_parent", lambda: None)
    mark = root / "runs" / "sweeps" / "toy" / ".complete"
    artifacts.write_atomic(mark, b"sealed")
    cell = root / "runs" / "toy-mini-s0" / "profile.yml"
    artifacts.write_atomic(cell, b"shared: {seed: 0}")
    (root / "params" / "toy-mini-s1.yml").write_text("shared: {seed: 9}")
    with build.alone(root, ["toy-mini-s2"]):
        assert sweep.main(["--profile=toy", "--name=new", "--architectures=mini", *arguments]) > 0
        assert not (root / "runs" / "sweeps" / "new").exists(), "what is no sweep is not verified as one"
        capsys.readouterr()
        code = sweep.main(["--profile=toy", "--architectures=mini", *arguments])
    message = capsys.readouterr().err
    assert (code, message.partition(":")[0]) == ((1, "failed") if "in use" in words else (2, "refused"))
    assert words in message and message.count("\n") == 1
    assert mark.read_bytes() == b"sealed" and cell.read_bytes() == b"shared: {seed: 0}"
    assert not (root / "runs" / "toy-mini-s1").exists() and not list(root.glob("runs/toy-mini-s-*"))


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
