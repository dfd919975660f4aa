"""The arithmetic of the tables about audits, and that a measurement which was cut off goes on."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from patience import LIMIT_SECONDS

from privhelpers.defenses.dedup import shingles

FOLDER = Path(__file__).parents[2] / "benchmarks"


def load(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        spec = importlib.util.spec_from_file_location(f"benchmarked_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        patch.setitem(importlib.sys.modules, spec.name, module)  # dataclasses look it up
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def coverage():
    return load("audit_coverage")


@pytest.fixture(scope="module")
def power():
    return load("audit_power")


def test_what_was_measured_is_not_measured_again(tmp_path):
    kept, asked = load("audit_kept"), []

    def measure(key):
        asked.append(key)
        return {"value": key[1]}

    path = tmp_path / "build" / "rows.jsonl"
    first = kept.go_on(path, [(1.0, 0), (1.0, 1)], measure, "rows")
    with path.open("a") as file:
        file.write('[[1.0, 2], {"val')  # the process was killed here
    again = kept.go_on(path, [(1.0, number) for number in range(4)], measure, "rows")
    assert asked == [(1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3)]
    assert again == {**first, (1.0, 2): {"value": 2}, (1.0, 3): {"value": 3}}
    assert kept.rows_of(path) == again


@pytest.mark.parametrize(("above", "verdict"), [(0, "yes"), (50, "yes"), (62, "yes"), (70, "NO")])
def test_coverage_is_judged_by_its_interval(coverage, above, verdict):
    truth = coverage.truth_of(1.0)
    bounds = np.where(np.arange(1000) < above, 1.1, 0.8) * truth
    row = coverage.row_of(1.0, "own", bounds)
    assert row["above the truth"] == f"{above} of 1000" and row["at most 5 %"] == verdict
    assert row["median share of ε"] == "0.800"


def test_what_is_remembered_is_what_the_helpers_return(coverage):
    run = {"noise_multiplier": coverage.sigma_of(4.0), **coverage.RUN}
    coins, scores = coverage.audit.simulate_scores(canaries=500, **run, seed=0)
    for method in coverage.METHODS:
        once = coverage.remembered(method, coins, scores)
        assert once == coverage.remembered(method, coins, scores) == coverage.in_full(method, coins, scores)


def test_the_fewest_canaries_are_those_from_which_on_all_runs_are_flagged(power):
    def flags(*shares):
        return {
            count: [True] * share + [False] * (2 - share)
            for count, share in zip((100, 1000), shares, strict=True)
        }

    assert power.fewest(flags(2, 2)) == "100"
    assert power.fewest(flags(0, 2)) == "1,000"
    assert power.fewest(flags(2, 1)) == "- (1 of 2)"


def test_every_bug_but_none_is_seen_by_a_check_without_canaries(power):
    seen = {
        name: [title for title, check in power.CHECKS.items() if check(bug)]
        for name, bug in power.BUGS.items()
    }
    assert seen.pop(power.HONEST) == []
    assert all(len(titles) == 1 for titles in seen.values()), seen


def test_a_rate_above_what_may_be_is_measured_again(coverage, monkeypatch):
    monkeypatch.setattr(coverage, "EPSILONS", (1.0,))
    monkeypatch.setattr(coverage, "COUNTS", (200, 300))
    monkeypatch.setattr(coverage, "FRESH", 400)
    truth = coverage.truth_of(1.0)
    results = {
        (1.0, seed): {coverage.audit.OWN_CURVE: [(1.1 if seed < 80 else 0.9) * truth, 0.0]}
        for seed in range(1000)
    }
    (row,) = coverage.second_look(results, 1000)
    assert (row["canaries"], row["first"], row["at most 5 %"]) == ("200", "80 of 1000", "yes")
    again = int(row["new seeds"].split()[0])
    assert 4 <= again <= 38, "near 5 % of 400"


def test_the_committed_pages_have_every_row_and_no_refuted_coverage(coverage, power):
    page = (FOLDER / "audit_coverage.md").read_text(encoding="utf-8")
    table = page.partition("## A second look")[0]
    assert table.count("of 1000 |") == len(coverage.EPSILONS) * len(coverage.METHODS) * len(coverage.COUNTS)
    wanted, second = page[: page.index("## 3,000")], page.partition("## A second look")[2]
    assert "| NO |" not in wanted and "| NO |" not in second
    page = (FOLDER / "audit_power.md").read_text(encoding="utf-8")
    assert all(page.count(f"\n| {bug} |") == len(power.CLAIMS) + 1 for bug in power.BUGS)


@pytest.fixture(scope="module")
def sets():
    return load("synthetic_sets")


def test_a_maker_with_memory_repeats_runs_of_notes_and_one_without_shuffles_them(sets):
    members, heldout, others = sets.groups(0)
    people = [{note.patient for note in side} for side in (members, heldout, others)]
    assert not people[0] & people[1] and not people[0] & people[2] and min(map(len, people)) > 90
    runs = set().union(*(shingles(note.text, 5) for note in members))
    known = []
    for order in (sets.REMEMBERS, sets.SHUFFLES):
        written = [shingles(text, 5) for text in sets.chain(members, order=order, texts=50, seed=0)]
        known.append(np.mean([len(run & runs) / len(run) for run in written]))
    assert known[0] == 1 and known[1] < 0.7


def test_false_alarms_are_counted_by_the_corrected_p(sets):
    risk = {name: [0.1, 0.02, 0.2] for name in ("singling_out", "linkability", "inference")}
    least = (0.0005, 0.02, 0.2, 1.0)
    rows = [{"outcome": "undecided" if p == 1 else "x", "least": p, "risks": risk} for p in least]
    row = sets.row_of(sets.OTHERS, 4, rows)
    assert row[2:7] == ["4", "2 (6.8 to 93.2 %)", "1 (0.6 to 80.6 %)", "1", "1"]
    assert row[7] == "0.100; 4 of 4"


def test_the_table_of_synthetic_sets_meets_what_is_asked(sets):
    page = (FOLDER / "synthetic_sets.md").read_text(encoding="utf-8")
    lines = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")][1:]
    for cells, ((source, order), count) in zip(lines[1:], sets.SETS.items(), strict=True):
        assert [cell.strip() for cell in cells[:3]] == [source, str(order), str(count)]
        flagged = [int(cell.split()[0]) for cell in cells[3:6]]
        if source == sets.MEMBERS:
            assert flagged == [count] * 3
        else:
            assert flagged[0] <= 0.05 * count and flagged[1] <= 0.01 * count


@pytest.fixture(scope="module")
def size():
    return load("audit_size")


def test_memory_is_that_of_all_processes(size):
    """A process that starts another one, each with 60 MB of its own."""
    hold = "x = bytearray(range(250)) * 240_000; import subprocess, sys, time"
    child = f"{hold}; time.sleep(1)"
    result = size.measured(
        [sys.executable, "-c", f"{hold}; subprocess.run([sys.executable, '-c', {child!r}])"]
    )
    assert 120e6 < result["bytes"] < 200e6 and 1 < result["seconds"] < LIMIT_SECONDS
    with pytest.raises(RuntimeError, match="exit code 3"):
        size.measured([sys.executable, "-c", "raise SystemExit(3)"])


def test_audits_of_many_records_take_no_more_than_is_asked(size):
    page = (FOLDER / "audit_size.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "|" in line
    ]
    assert rows[0] == list(size.HEAD) and len(rows) == 2 + len(size.KINDS)
    for kind, (what, count, seconds, memory) in zip(size.KINDS, rows[2:], strict=True):
        weights = int(re.sub(r"\D", "", what))
        again = {"seconds": float(seconds), "bytes": 1e9 * float(memory)}
        assert size.row_of(kind, weights, again) == [what, count, seconds, memory]
        assert float(seconds) <= size.SECONDS and float(memory) <= size.GIGABYTES, what
