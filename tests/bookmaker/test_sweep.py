"""A sweep is a grid of small profiles; its table has one row a measurement and one meaning a column."""

import base64
import hashlib
import io
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


def test_more_cells_than_anybody_runs_are_refused_in_a_short_line():
    assert len(_grid.cells("toy", architectures=["tiny"], seeds=range(1000))) == 1000
    for seeds in (range(1001), [0] * 100_000):
        with pytest.raises(InvalidParameter, match=r"1,000 are the most|all different") as refused:
            _grid.cells("toy", architectures=["tiny"], seeds=seeds)
        assert len(str(refused.value)) < 200


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


def test_a_bad_value_is_refused_before_anything_runs(root):
    cells = _grid.cells("toy", architectures=["mini"], seeds=[-1])
    with pytest.raises(InvalidParameter, match=r"runs/toy-mini-s-1/profile\.yml.*seed = -1"):
        _grid.files(root, cells, epsilons=[1])
    with pytest.raises(MissingArtifact, match="nobody"):
        _grid.files(root, _grid.cells("nobody", architectures=["a"], seeds=[0]), epsilons=[1])


def test_targets_are_the_measuring_runs_of_every_model(root):
    plans = written(root, _grid.cells("toy", architectures=["mini"], seeds=[0, 1]), [8])
    wanted = _grid.targets(plans)
    per_model = sum(step.per == "model" for step in chain.CHAIN if step.slug in _grid.MEASURING)
    assert len(wanted) == 2 * (4 * per_model + 1)
    assert not any(chain.STATISTICS in target or chain.REPORT in target for target in wanted)


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


def test_the_table_keeps_its_types_on_disk(tmp_path):
    row = dict.fromkeys(_results.COLUMNS)
    row |= {"profile": "a", "architecture": "tiny", "seed": 1, "model": "public", "estimate": 0.5, "n": 3}
    table = _results.as_table([row])
    _results.write(table, tmp_path / "results.parquet")
    back = pd.read_parquet(io.BytesIO((tmp_path / "results.parquet").read_bytes()))
    assert list(back.columns) == list(_results.COLUMNS)
    assert back.dtypes.astype(str).to_dict() == table.dtypes.astype(str).to_dict()
    assert back["seed"][0] == 1 and pd.isna(back["epsilon"][0]) and pd.isna(back["distinct_n"][0])


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


def test_no_page_asks_anybody_else():
    for text in pages_of(measured()).values():
        links = re.findall(r"(?:src|href)=\"([^\"#][^\"]*)\"", text)
        assert not [link for link in links if "//" in link]


def test_an_epsilon_says_what_it_is_worth_and_what_it_does_not_cover():
    pages = pages_of(measured(), measured(model="public", epsilon=None, delta=None))
    for name in ("index.html", "compare.html", "a-tiny-s0--dp-eps-8.html"):
        assert published.WORTH in pages[name], name
    private = pages["a-tiny-s0--dp-eps-8.html"]
    assert all(f"<li>{one}</li>" in private for one in published.NOT_PROTECTED)
    assert published.WORTH not in pages["a-tiny-s0--public.html"]


def test_every_page_has_a_policy_that_lets_its_own_script_run_and_no_other():
    for text in pages_of(measured()).values():
        (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
        assert text.index(policy) < text.index("<style") and not re.search(r"\son\w+=", text)
        allowed = re.findall(r"'sha256-([\w+/=]+)'", policy.partition("script-src")[2])
        scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
        assert set(hashes) <= set(allowed) and len(allowed) == 1
        assert {"default-src 'none'", "form-action 'none'", "base-uri 'none'"} <= set(policy.split("; "))
        assert "'unsafe-inline'" not in policy.partition("script-src")[2] and "<form" not in text


def test_text_is_escaped():
    text = pages_of(measured(method="<script>alert(1)</script>"))["a-tiny-s0--dp-eps-8.html"]
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text


def test_characters_that_act_are_spelled_out():
    table = _results.as_table([measured(architecture="ti\u202eny", method="boot\x1bstrap")])
    shown = "".join(text for _, text in _gallery.pages(table, "de\u200bmo"))
    assert not re.search("[\u202e\x1b\u200b]", shown)
    assert all(word in shown for word in (r"ti\u202eny", r"boot\x1bstrap", r"de\u200bmo"))


def test_names_that_differ_in_their_case_alone_can_both_be_chosen():
    page = pages_of(measured(), measured(architecture="Tiny"))["index.html"]
    assert "<option>tiny</option>" in page and "<option>Tiny</option>" in page


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


def test_a_link_that_leads_nowhere_has_the_name_of_a_cell_too(root):
    (root / "params" / "toy-mini-s0.yml").symlink_to("nowhere")
    with pytest.raises(InvalidParameter, match="has the name of a cell"):
        _grid.files(root, _grid.cells("toy", architectures=["mini"], seeds=[0]), epsilons=[1])


def test_pages_of_an_earlier_sweep_go(tmp_path):
    table = _results.as_table([measured()])
    (tmp_path / "old.html").write_text("old")
    assert _gallery.write(table, tmp_path, "demo") == tmp_path / "index.html"
    assert not (tmp_path / "old.html").exists() and (tmp_path / "compare.html").is_file()


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
