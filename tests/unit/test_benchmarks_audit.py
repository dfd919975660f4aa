"""The arithmetic of the tables about audits, and that a measurement which was cut off goes on."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from patience import LIMIT_SECONDS
from scipy.stats import ks_2samp

from privhelpers.defenses.dedup import shingles
from privhelpers.results.reference import open_reference

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
    row = coverage.shown(coverage.row_of(1.0, 3000, "own", bounds), 1000)
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

    assert power.seen_by(flags(2, 2)) == {"fewest": 100, "flagged": 2}
    assert power.seen_by(flags(0, 2)) == {"fewest": 1000, "flagged": 2}
    assert power.seen_by(flags(2, 1)) == {"fewest": None, "flagged": 1}


def test_every_bug_but_none_is_seen_by_a_check_without_canaries(power):
    seen = {
        name: [title for title, check in power.CHECKS.items() if check(bug)]
        for name, bug in power.BUGS.items()
    }
    assert seen.pop(power.HONEST) == []
    assert all(len(titles) == 1 for titles in seen.values()), seen


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 10.0])
def test_scores_drawn_at_once_are_those_of_the_steps(coverage, epsilon):
    run = {"noise_multiplier": coverage.sigma_of(epsilon), **coverage.RUN}
    _, outside, inside = coverage.distribution_of_sums(epsilon)
    distance = coverage.accounting.delta_at(epsilon=0.0, **run)
    assert (outside - inside).max() == pytest.approx(distance, rel=2e-3)
    assert outside[-1] == pytest.approx(1) and inside[-1] == pytest.approx(1)
    coins, scores = coverage.audit.simulate_scores(canaries=3000, **run, seed=1)
    chance = np.random.default_rng(2)
    drawn_coins, drawn = coverage.drawn_at_once(epsilon, 20_000, chance)
    for side in (True, False):
        assert ks_2samp(scores[coins == side], drawn[drawn_coins == side]).pvalue > 1e-3


def test_fresh_audits_exceed_the_truth_as_often_as_they_may(coverage, monkeypatch):
    monkeypatch.setattr(coverage, "FRESH", 400)
    assert 4 <= coverage.again_above(1.0, 50) <= 38, "near 5 % of 400"


@pytest.mark.wrong_numbers
def test_every_rate_is_measured_again_by_one_rule(coverage, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(coverage, "again_above", lambda *place: asked.append(place) or 0)
    second = coverage.second_look(tmp_path / "second.jsonl")
    assert asked == [(epsilon, count) for count in coverage.COUNTS for epsilon in coverage.EPSILONS]
    assert [(one["epsilon"], one["canaries"]) for one in second["rates"]] == asked
    assert second["audits"] == coverage.FRESH and second["seed"] != 0, "not the seed of the first look"


def test_numbers_and_page_are_kept_where_a_chapter_reads_them(tmp_path):
    (tmp_path / "benchmarks").mkdir()
    load("audit_kept").keep("power", {"runs": 20}, "# A page\n", tmp_path)
    assert open_reference("audits", tmp_path).store.read_json("auditing/power.json") == {"runs": 20}
    assert (tmp_path / "benchmarks" / "audit_power.md").read_text() == "# A page\n"


@pytest.mark.parametrize("name", ["coverage", "power"])
def test_the_committed_page_is_that_of_the_kept_numbers(name, request):
    kept = open_reference("audits").store.read_json(f"auditing/{name}.json")
    page = (FOLDER / f"audit_{name}.md").read_text(encoding="utf-8")
    assert page == request.getfixturevalue(name).report(kept)


@pytest.mark.wrong_numbers
def test_no_kept_rate_is_refuted_and_all_were_measured_again(coverage):
    kept = open_reference("audits").store.read_json("auditing/coverage.json")
    rows = {(one["epsilon"], one["canaries"], one["method"]): one for one in kept["rows"]}
    assert len(rows) == len(coverage.EPSILONS) * len(coverage.METHODS) * len(coverage.COUNTS)
    second = kept["second"]
    places = {(one["epsilon"], one["canaries"]) for one in second["rates"]}
    assert places == {(epsilon, canaries) for epsilon, canaries, _ in rows}
    assert (second["audits"], second["seed"]) == (coverage.FRESH, coverage.FRESH_SEED)
    assert second["commit"] and not second["commit"].endswith("-dirty")
    for one in second["rates"]:
        assert coverage.rate(one["above"], second["audits"])["at most 5 %"] == "yes"
    for epsilon, least in coverage.TARGETS.items():
        assert rows[epsilon, 12_000, coverage.audit.OWN_CURVE]["median_of_first"] >= least


def test_no_bound_that_is_timed_is_looked_up(coverage, monkeypatch):
    bound, known, in_full = coverage.audit._own_curve._searched, [], coverage.in_full

    def watched(*given):
        known.append(bound.cache_info().currsize)
        return in_full(*given)

    monkeypatch.setattr(coverage, "EPSILONS", (1.0,))
    monkeypatch.setattr(coverage, "in_full", watched)
    assert coverage.seconds_of(coverage.audit.OWN_CURVE, 50, times=2) > 0
    assert known == [0, 0] and bound.cache_info().currsize == 1


def test_a_bound_takes_less_than_two_seconds(coverage):
    kept = open_reference("audits").store.read_json("auditing/coverage.json")
    seconds = {(one["method"], one["canaries"]): one["seconds"] for one in kept["seconds"]}
    assert set(seconds) == {(m, count) for m in coverage.METHODS for count in coverage.COUNTS}
    assert 0 < max(seconds.values()) < 2


def test_every_bug_is_seen_and_no_gate_flags_an_honest_run(power):
    kept = open_reference("audits").store.read_json("auditing/power.json")
    assert len(kept["seen"]) == len(power.CLAIMS) * len(power.BUGS) * (len(power.GATES) + 1)
    seen = {one["fault"] for one in kept["seen"] if one["fewest"]}
    seen |= {fault for fault, checks in kept["without_canaries"].items() if any(checks.values())}
    assert seen == set(power.BUGS) - {power.HONEST}
    strict = [title for title, gate in kept["audits"].items() if gate["confidence"] == power.GATE]
    assert strict and all(kept["honest_runs"][title][0] == 0 for title in strict)


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
        above = [int(cell.split(";")[1].split()[0]) for cell in cells[7:10]]
        if (source, order) == (sets.MEMBERS, sets.REMEMBERS):
            assert above == [count] * 3, "whoever copies shows all three risks"
        elif source == sets.OTHERS:
            assert max(above) <= 0.05 * count
        if source == sets.MEMBERS:
            assert flagged == [count] * 3
        else:
            assert flagged[0] <= 0.05 * count and flagged[1] <= 0.01 * count


@pytest.fixture(scope="module")
def size():
    return load("audit_size")


def test_memory_is_that_of_all_processes(size, monkeypatch, tmp_path):
    """A process that starts another one, each with 60 MB of its own, which stays until both were seen."""
    seen, usual = tmp_path / "seen", size.memory_of

    def noted(process):
        if (total := usual(process)) > 120e6:
            seen.touch()
        return total

    monkeypatch.setattr(size, "memory_of", noted)
    hold = "x = bytearray(range(250)) * 240_000; import os, subprocess, sys, time"
    wait = f"while not os.path.exists({str(seen)!r}) and time.monotonic() < end: time.sleep(0.01)"
    child = f"{hold}; end = time.monotonic() + {LIMIT_SECONDS}\n{wait}"
    result = size.measured(
        [sys.executable, "-c", f"{hold}; subprocess.run([sys.executable, '-c', {child!r}])"]
    )
    assert 120e6 < result["bytes"] < 200e6 and 0 < result["seconds"] < LIMIT_SECONDS
    with pytest.raises(RuntimeError, match="exit code 3"):
        size.measured([sys.executable, "-c", "raise SystemExit(3)"])


def test_audits_of_many_records_take_no_more_time_and_memory_than_is_asked(size):
    page = (FOLDER / "audit_size.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "|" in line
    ]
    assert rows[0] == list(size.HEAD) and len(rows) == 2 + len(size.KINDS)
    for kind, (what, count, seconds, load, memory) in zip(size.KINDS, rows[2:], strict=True):
        weights = int(re.sub(r"\D", "", what))
        again = {"seconds": float(seconds), "load": float(load), "bytes": 1e9 * float(memory)}
        assert size.row_of(kind, weights, again) == [what, count, seconds, load, memory]
        assert float(memory) <= size.GIGABYTES and float(seconds) <= size.SECONDS, what


@pytest.fixture(scope="module")
def written():
    return load("synthetic_models")


def test_a_row_of_models_counts_verdicts_and_where_zero_lies(written):
    risks = ([0.2, 0.1, 0.3], [0.1, -0.1, 0.2], [-0.2, -0.3, -0.1])
    outcomes = ("flagged", "flagged", "nothing found")
    rows = [
        {"outcome": outcome, "least": p, "closest": area, "risks": dict.fromkeys(written.RISKS, risk)}
        for outcome, p, area, risk in zip(outcomes, (0.0005, 0.005, 1.0), (0.8, 0.7, 0.5), risks, strict=True)
    ]
    row = written.row_of(written.BASELINE, rows)
    assert row[1:8] == ["3", "0.700 (0.500 to 0.800)", "2", "0", "1", "1", "0.0005"]
    assert row[8].startswith("+0.033 [-0.484, +0.550]; 1; 1")


def test_a_set_is_written_once_and_by_its_own_model(written, tmp_path, monkeypatch):
    monkeypatch.setattr(written, "KEPT", tmp_path / "kept")
    asked = []
    monkeypatch.setattr(written, "write", lambda *key: asked.append(key) or [str(key)])
    sets = [written.texts_of(maker, 3) for maker in (*written.MAKERS, written.BASELINE)]
    assert asked == [(maker, 3) for maker in written.MAKERS] and sets[0] == sets[-1]
    assert len({text for (text,) in sets}) == len(written.MAKERS)


def test_the_tables_of_models_meet_what_is_asked(written):
    """In every seed the baseline is flagged, and no private model nor one of other people."""
    page = (FOLDER / "synthetic_models.md").read_text(encoding="utf-8")
    tables = [
        [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
        for part in page.split("## Seeds ")[1:]
    ]
    assert f"{written.SEEDS} of {written.SEEDS} seeds" in page
    assert sum(int(lines[2][1]) for lines in tables) == written.SEEDS
    for lines in tables:
        assert tuple(lines[0]) == written.HEAD and [cells[0] for cells in lines[2:]] == list(written.MAKERS)
        (sets,) = {int(cells[1]) for cells in lines[2:]}
        for maker, _, _, flagged, _, _, beyond, _, *risks in lines[2:]:
            asked = sets if maker == written.BASELINE else 0
            assert (int(flagged), int(beyond)) == (asked, asked)
            for mean, above, contains in (risk.split("; ") for risk in risks):
                low, high = map(float, mean.partition("[")[2].strip("]").split(", "))
                if maker == written.BASELINE:
                    assert low > 0 and int(above) >= 0.9 * sets and int(above) + int(contains) == sets
                elif maker in written.PRIVATE:
                    assert low <= 0 <= high and (int(above), int(contains)) == (0, sets)
