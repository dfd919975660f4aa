"""The simulations of audits whose numbers a chapter shows, and that one which was cut off goes on."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp

from privhelpers.results.reference import open_reference
from privhelpers.stats import clopper_pearson

FOLDER = Path(__file__).parents[2] / "benchmarks"
TARGETS = {0.5: 0.50, 1.0: 0.70, 4.0: 0.85, 8.0: 0.88, 10.0: 0.88}  # share of epsilon that is certified


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
    kept, asked = load("kept"), []

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
    coins, scores = coverage.lower_bounds.simulate_scores(canaries=3000, **run, seed=1)
    chance = np.random.default_rng(2)
    drawn_coins, drawn = coverage.drawn_at_once(epsilon, 20_000, chance)
    for side in (True, False):
        assert ks_2samp(scores[coins == side], drawn[drawn_coins == side]).pvalue > 1e-3


def test_fresh_audits_exceed_the_truth_as_often_as_they_may(coverage, monkeypatch):
    monkeypatch.setattr(coverage, "FRESH", 400)
    assert 4 <= coverage.again_above(1.0, 50) <= 38, "near 5% of 400"


@pytest.mark.wrong_numbers
def test_every_rate_is_measured_again_by_one_rule(coverage, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(coverage, "again_above", lambda *place: asked.append(place) or 0)
    second = coverage.second_look(tmp_path / "second.jsonl")
    assert asked == [(epsilon, count) for count in coverage.COUNTS for epsilon in coverage.EPSILONS]
    assert [(one["epsilon"], one["canaries"]) for one in second["rates"]] == asked
    assert second["audits"] == coverage.FRESH and second["seed"] != 0, "not the seed of the first look"


@pytest.mark.wrong_numbers
def test_no_kept_rate_is_refuted_and_all_were_measured_again(coverage):
    kept = open_reference("audits").store.read_json("auditing/coverage.json")
    assert 0 < max(one["seconds"] for one in kept["seconds"]) < 2, "of one bound"
    rows = {(one["epsilon"], one["canaries"], one["method"]): one for one in kept["rows"]}
    assert len(rows) == len(coverage.EPSILONS) * len(coverage.METHODS) * len(coverage.COUNTS)
    second = kept["second"]
    places = {(one["epsilon"], one["canaries"]) for one in second["rates"]}
    assert places == {(epsilon, canaries) for epsilon, canaries, _ in rows}
    assert (second["audits"], second["seed"]) == (coverage.FRESH, coverage.FRESH_SEED)
    assert second["commit"] and not second["commit"].endswith("-dirty")
    for one in second["rates"]:
        assert clopper_pearson(one["above"], second["audits"]).low <= 1 - coverage.CONFIDENCE
    for epsilon, least in TARGETS.items():
        assert rows[epsilon, 12_000, coverage.lower_bounds.OWN_CURVE]["median_of_first"] >= least


def test_every_bug_is_seen_and_no_gate_flags_an_honest_run(power):
    kept = open_reference("audits").store.read_json("auditing/power.json")
    assert len(kept["seen"]) == len(power.CLAIMS) * len(power.BUGS) * (len(power.GATES) + 1)
    seen = {one["fault"] for one in kept["seen"] if one["fewest"]}
    seen |= {fault for fault, checks in kept["without_canaries"].items() if any(checks.values())}
    assert seen == set(power.BUGS) - {power.HONEST}
    strict = [title for title, gate in kept["audits"].items() if gate["confidence"] == power.GATE]
    assert strict and all(kept["honest_runs"][title][0] == 0 for title in strict)
