"""How far a build is, and how long the rest of it may take."""

import json
from types import SimpleNamespace

import pytest
import yaml

from bookmaker.runner import _remaining, chain
from privaudit import console


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
    assert console.duration(seconds) == words


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
    runs = [("a", 10.0), ("a", 31.0), ("b", 4.4)]
    _remaining.expect("toy", [{"notebook": slug, "seconds": took} for slug, took in runs])
    known = yaml.safe_load(_remaining.EXPECTED.read_text())
    assert known["seconds"] == {"full": {"a": 3}, "toy": {"a": 20, "b": 4}}
    assert known["machine"] != "old"
