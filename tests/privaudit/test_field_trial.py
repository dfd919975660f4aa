"""The field trial: its cases, and how texts are cut; the trial itself takes hours."""

import ast
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from privaudit import cli
from privhelpers.artifacts import Store
from privhelpers.results.field import PLAN, read_trial

FOLDER = Path(__file__).parents[2] / "benchmarks" / "field"
OURS = {"privaudit", "privhelpers", "bookmaker"}


@pytest.fixture
def field(monkeypatch):
    """The modules `run` and `texts` of the trial."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("run", "texts"):  # another program may have modules of these names
        monkeypatch.delitem(sys.modules, name, raising=False)
    import run
    import texts

    yield run, texts
    for name in ("run", "texts"):
        del sys.modules[name]


def test_truth_is_known_for_twenty_leaks_and_twenty_nulls(field):
    cases = field[0].cases()
    assert Counter(case.truth for case in cases) == {"leak": 20, "null": 20}
    assert len({case.name for case in cases}) == len({case.seed for case in cases}) == 40
    for case in cases:
        trained = "members" in case.train and "epsilon" not in case.model
        assert (trained or case.tokenizer == "members") == (case.truth == "leak")
        assert ("flagged" in case.expected) == (case.truth == "leak")
        assert {case.records, case.holdout} == {"members", "heldout"}


def test_every_audit_of_the_trial_has_options_that_exist(field):
    for case in field[0].cases():
        given = cli._parser().parse_args(case.commands["audit"][2:])
        assert given.records.endswith(f"{case.records}.jsonl")
        assert bool(given.base) == ("lora" in case.model)


def test_leaks_and_nulls_run_in_turn_and_neighbors_differ(field):
    every = field[0].cases()
    order = field[0].in_turn(every)
    assert sorted(case.name for case in order) == sorted(case.name for case in every)
    assert [case.truth for case in order] == ["leak", "null"] * 20
    assert {case.kind for case in order[:12]} == {case.kind for case in every}
    assert {case.text for case in order[:12]} == set(field[1].TEXTS)


def test_a_case_runs_again_only_if_its_settings_or_the_code_changed(field, monkeypatch, tmp_path):
    run, _ = field
    monkeypatch.setattr(run, "KEPT", Store(tmp_path, "field"))
    cases, code = run.cases()[:4], [["texts.py", "0" * 64]]
    run.KEPT.write_json(PLAN, [case.facts for case in cases])
    for case in cases[:3]:
        run.KEPT.write_json(case.result, {"name": case.name, "made_from": run.mark(case, code)})
    assert run.left(cases, code) == [cases[3]]
    shorter = replace(cases[1], model=cases[1].model | {"epochs": 1})
    assert run.left([cases[0], shorter, cases[3]], code) == [cases[3], shorter]
    assert run.left(cases, [["texts.py", "1" * 64]]) == [cases[3], *cases[:3]]


def test_results_and_cases_without_one_are_told_apart(field, tmp_path):
    store, cases = Store(tmp_path, "field"), field[0].cases()
    store.write_json(PLAN, [case.facts for case in cases])
    store.write_json(cases[1].result, cases[1].facts | {"right": True})
    ran, left = read_trial(store)
    assert [one["name"] for one in ran if one["right"]] == [cases[1].name]
    assert [one["name"] for one in left] == [case.name for case in cases if case != cases[1]]


def test_a_stretch_that_two_owners_share_is_in_no_record(field):
    _, texts = field
    license_text = " ".join(f"clause{n}" for n in range(50))
    people = [(f"owner-{n}", f"{license_text} {' '.join([f'word{n}'] * 60)}") for n in range(3)]
    records = texts.records_of(iter(people), 50)
    assert [len(some) for some in records.values()] == [1, 1, 1]
    assert not any("clause" in record for some in records.values() for record in some)


def test_groups_share_no_owner_and_another_seed_draws_others(field, monkeypatch, tmp_path):
    _, texts = field
    people = [(f"owner-{n}", " ".join(f"{n}-{word}" for word in range(200))) for n in range(30)]
    monkeypatch.setitem(texts.TEXTS, "descriptions", lambda _: iter(people))
    sizes = dict.fromkeys(texts.GROUPS, 10)
    first, again, other = (
        texts.cut("descriptions", tmp_path, notes=3, words=50, sizes=sizes, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again != other
    owners = [row["patient_id"] for rows in first.values() for row in rows]
    assert Counter(Counter(owners).values()) == {3: 30}
    with pytest.raises(SystemExit, match="31 needed"):
        texts.cut("descriptions", tmp_path, notes=3, words=50, sizes=sizes | {"others": 11}, seed=0)


@pytest.mark.parametrize("name", ["train.py", "texts.py"])
def test_what_makes_the_material_imports_nothing_of_ours(name):
    tree = ast.parse((FOLDER / name).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not OURS & {module.split(".")[0] for module in imported}
