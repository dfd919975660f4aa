"""What a run costs: read off the stack, recorded, shown while a build goes on, and printed."""

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from patience import LIMIT_SECONDS

from bookmaker.runner import _activity, _profile, _remaining, chain, progress

ROOT = Path(__file__).parents[2]


def stack(*modules):
    """Return the innermost frame of a stack whose modules are named from the outside in."""
    frame = None
    for name in modules:
        frame = SimpleNamespace(f_globals={"__name__": name}, f_back=frame)
    return frame


@pytest.mark.parametrize(
    ("modules", "kind"),
    [
        (["__main__"], "rest"),
        (["__main__", "privhelpers.training", "torch.nn.modules.module"], "training"),
        (["__main__", "privhelpers.training", "privhelpers.models.scoring", "torch"], "scoring"),
        (["__main__", "torch.autograd.graph"], "training"),
        (["__main__", "privhelpers.stats._estimates", "numpy"], "bootstrap and tests"),
        (["__main__", "importlib._bootstrap", "torch.optim.adam"], "start-up"),
        (["__main__", "matplotlibrary"], "rest"),
    ],
)
def test_the_innermost_known_frame_says_what_a_stack_is_busy_with(modules, kind):
    assert _activity.kind(stack(*modules)) == kind


def test_every_kind_of_ours_names_a_module_that_exists():
    ours = [ROOT.joinpath(*name.split(".")) for name in _activity.KINDS if name.startswith("privhelpers")]
    assert [path for path in ours if not path.is_dir() and not path.with_suffix(".py").is_file()] == []


def test_seconds_are_counted_only_while_a_cell_runs(tmp_path):
    sampler = _activity.Sampler(tmp_path / "a.json", threading.get_ident())
    threading.Thread(target=sampler.watch, daemon=True).start()
    time.sleep(3 * _activity.PERIOD)
    sampler.start()
    end = time.monotonic() + LIMIT_SECONDS
    while not sampler.seconds and time.monotonic() < end:
        time.sleep(_activity.PERIOD / 10)
    sampler.stop()
    counted = _activity.read(tmp_path / "a.json", 100.0)
    assert set(counted) == {"rest", "start-up"} and sum(counted.values()) == pytest.approx(100, abs=0.2)
    assert _activity.read(tmp_path / "none.json", 2.0) == {"start-up": 2.0}


def job(rule, profile="toy", threads=1):
    return SimpleNamespace(
        rule=rule, slug=rule, profile=profile, threads=threads, mark=f"runs/{profile}/{rule}/.made"
    )


def finish(root, job):
    (root / job.mark).parent.mkdir(parents=True)
    (root / job.mark).touch()


def test_a_line_says_how_far_a_build_is_and_how_long_it_may_take(tmp_path, monkeypatch):
    expected = tmp_path / "expected.yml"
    expected.write_text("machine: m\nseconds: {toy: {a: 40, b: 100, c: 20}}")
    monkeypatch.setattr(_remaining, "EXPECTED", expected)
    assert _remaining.place(tmp_path, "toy") == ""  # nobody builds
    clock = SimpleNamespace(time=lambda: clock.now, now=1000.0)
    monkeypatch.setattr(_remaining, "time", clock)
    jobs = [job("a"), job("b", threads=2), job("c")]
    _remaining.begin(tmp_path, ["toy"], jobs, cores=2)
    clock.now += 5
    # Work of 40 + 200 + 20 core seconds on two cores.
    assert _remaining.place(tmp_path, "toy") == " (0 of 3; 5.0 s so far, about 2 min 10 s left)"
    finish(tmp_path, jobs[1])
    clock.now = 1200.0  # what should take 100 seconds took 200
    assert _remaining.place(tmp_path, "toy") == " (1 of 3; 3 min 20 s so far, about 1 min 20 s left)"
    finish(tmp_path, jobs[0])
    finish(tmp_path, jobs[2])
    assert _remaining.place(tmp_path, "toy") == " (3 of 3; 3 min 20 s so far)"
    _remaining.end(tmp_path, ["toy"])
    assert _remaining.place(tmp_path, "toy") == ""
    _remaining.begin(tmp_path, ["toy"], [job("d")], cores=None)  # a cluster: nobody knows how many at once
    assert _remaining.place(tmp_path, "toy") == " (0 of 1; 0.0 s so far)"


def test_the_last_complete_build_is_believed_before_the_table(tmp_path):
    runs = {"runs": {"a": {"seconds": 7.0}}}
    (tmp_path / "runs/toy").mkdir(parents=True)
    (tmp_path / "runs/toy/manifest.json").write_text(json.dumps(runs))
    assert _remaining.expected(tmp_path, "toy") == {"a": 7.0}
    (tmp_path / "runs/toy/manifest.json").write_text("{broken")
    assert _remaining.expected(tmp_path, "toy") == {}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.6, "1 min 00 s"), (3725, "1 h 02 min")],
)
def test_durations_read_as_words(seconds, words):
    assert progress.duration(seconds) == words


def run(notebook, start, seconds, **more):
    cost = {"started": f"2026-01-01T00:{start:02d}:00+00:00", "seconds": seconds, "threads": 1}
    cost |= {"notebook": notebook, "cpu_seconds": seconds / 2, "peak_memory_mib": 700, "model": None}
    return cost | {"activities": {"training": seconds}} | more


def test_cores_are_idle_only_while_others_work():
    runs = [run("a", 0, 120.0), run("b", 0, 60.0), run("c", 30, 60.0, threads=2)]
    assert _profile.idle_seconds(runs, 2) == pytest.approx(60.0)
    assert _profile.idle_seconds(runs, 4) == pytest.approx(60 * 2 + 60 * 3 + 60 * 2)


def test_the_table_adds_the_runs_of_a_chapter_and_keeps_the_largest_memory():
    table = _profile.table([run("a", 0, 10.0), run("b", 0, 60.0), run("a", 0, 30.0, peak_memory_mib=900)])
    assert list(table.index) == ["b", "a"]
    row = table.loc["a", ["runs", "wall s", "CPU s", "peak MiB", "training", "rest"]]
    assert row.tolist() == [2, 40, 20, 900, 40, 0]


COST = {"seconds": 7.0, "cpu_seconds": 5.0, "peak_memory_mib": 80}


@pytest.mark.parametrize(
    "cost", [COST, {}, [], 3, *(COST | {"seconds": odd} for odd in ("7", None, 1e300, True, -1))]
)
def test_what_a_site_cost_has_a_row_where_it_is_known(tmp_path, monkeypatch, capsys, cost):
    """The file has no seal: what it says is believed only if it can be."""
    monkeypatch.setattr(_profile.planning, "jobs", lambda root, profile: [])
    monkeypatch.setattr(_profile, "records", lambda root, plan: [run("a", 0, 10.0)])
    path = tmp_path / "runs/toy/site/.cost.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(cost))
    _profile.tell(tmp_path, "toy", cores=1, keep=False)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("site")]
    assert rows == ([["site", "7", "5", "80"]] if cost is COST else [])


def test_runs_on_several_models_have_rows_of_their_own():
    table = _profile.table([run("a", 0, 10.0, model="x"), run("a", 0, 30.0, model="y")], by="run")
    assert table["wall s"].to_dict() == {"a y": 30, "a x": 10}


def test_every_chapter_has_an_expected_time():
    known = yaml.safe_load(_remaining.EXPECTED.read_text(encoding="utf-8"))["seconds"]
    for profile in ("course", "smoke"):
        assert sorted(known[profile]) == sorted(chain.SLUGS), profile


def test_a_chapter_without_a_time_is_taken_for_a_mean_one(tmp_path, monkeypatch):
    expected = tmp_path / "expected.yml"
    expected.write_text("seconds: {toy: {a: 10, b: 50}}")
    monkeypatch.setattr(_remaining, "EXPECTED", expected)
    assert _remaining.begin(tmp_path, ["toy"], [job("a"), job("b"), job("new")], cores=1) == 90


def test_what_to_expect_is_kept_by_profile(tmp_path, monkeypatch):
    monkeypatch.setattr(_remaining, "EXPECTED", tmp_path / "expected.yml")
    _remaining.EXPECTED.write_text("machine: old\nseconds: {full: {a: 3}}")
    _profile.expect("toy", [run("a", 0, 10.0), run("a", 0, 31.0), run("b", 0, 4.4)])
    known = yaml.safe_load(_remaining.EXPECTED.read_text())
    assert known["seconds"] == {"full": {"a": 3}, "toy": {"a": 20, "b": 4}}
    assert known["machine"] != "old"
