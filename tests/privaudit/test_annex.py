"""The annex of a report: each answer is made of the report's facts, and each row says what it leaves open."""

import copy
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from privaudit import bundle
from privaudit.annex import ANNEX, annex
from privaudit.report import report_page

SAMPLE = Path(__file__).parents[2] / "reference" / "report" / "evidence.zip"
SCRIPT = "<script>alert(1)</script>{who.__class__}"
CLAIM = {"epsilon": 4.0, "delta": 1e-5, "most_certifiable": 3.2, "refuted": False, "certified": 1.238}
CLAIM |= {"confidence": 0.975, "method": "one run", "refuted_for_any": False}
CLAIM |= {"certified_gaussian": 2.469, "most_gaussian": 4.1}
REFUTED = CLAIM | {"certified": 5.2369, "most_certifiable": 6.1, "refuted": True, "refuted_for_any": True}
GAUSSIAN = CLAIM | {"certified_gaussian": 5.2369, "refuted": True}
QUERIES = {"file": "answers.jsonl", "sha256": "0" * 64, "wanted": 1000, "given": 990, "leakage": []}
TEXTS = {"file": "texts.jsonl", "sha256": "0" * 64, "texts": 900, "distinct": 880}
NOTHING = dict.fromkeys(("canaries", "canary_file", "completed", "named")) | {"risks": {}}


@pytest.fixture(scope="module")
def sample():
    return json.loads(bundle.unpack(SAMPLE.read_bytes())["report.json"])


@pytest.fixture(
    params=[
        *("sample", "claim", "refuted", "gaussian", "no epsilon", "nothing applies"),
        *("synthetic", "queries", "undecided"),
    ]
)
def facts(request, sample):
    """Every kind of report: what it lacks, its canaries, its verdict, and texts instead of a model."""
    canaries = sample["canaries"]
    changed = {
        "sample": {},
        "claim": {"canaries": canaries | {"claim": CLAIM}},
        "refuted": {"canaries": canaries | {"claim": REFUTED}},
        "gaussian": {"canaries": canaries | {"claim": GAUSSIAN}},
        "queries": {"kind": "queries", "model": None, "queries": QUERIES, **NOTHING},
        "no epsilon": {"canaries": canaries | {"claim": None}},
        "nothing applies": NOTHING,
        "synthetic": {
            "kind": "synthetic",
            "model": None,
            "completed": None,
            "copies": {"by_patient": sample["completed"]["by_patient"]},
            "synthetic": TEXTS,
            "who": "source",
        },
        "undecided": {"outcome": "undecided"},
    }
    return copy.deepcopy({**sample, **changed[request.param]})


def test_every_row_has_a_source_a_question_an_answer_and_a_limit_with_who_must_meet_it(facts):
    rows = annex(facts)["rows"]
    assert len(rows) == len(ANNEX["rows"]) >= 15
    for row in rows:
        assert row.keys() == {"source", "question", "answer", "limit", "who"}
        assert all(value.strip() for value in row.values()), row
        assert row["question"].endswith("?") and row["answer"].endswith("."), row
        assert not re.search(r"[{}]|None|nan", row["answer"]), row


def test_a_sentence_has_no_figure_of_its_own():
    """All but "of 100" and the name of a hash are placeholders, and each sentence has one."""
    for choices in ANNEX["figures"].values():
        assert "if" not in choices[-1] and all("if" in choice for choice in choices[:-1])
        for choice in choices:
            pieces = list(Formatter().parse(choice["say"]))
            assert any(field for _, field, _, _ in pieces), choice
            assert set(re.findall(r"\d+", " ".join(text for text, *_ in pieces))) <= {"100", "256"}, choice
    assert {name for row in ANNEX["rows"] for name in row["answer"]} == ANNEX["figures"].keys()


def leaves(facts: dict | list) -> Iterator[tuple[dict | list, str | int]]:
    """Yield each place of a figure or a text in nested facts, as a holder and a key."""
    for key, value in list(facts.items() if isinstance(facts, dict) else enumerate(facts)):
        if isinstance(value, dict | list):
            yield from leaves(value)
        elif value is not None and not isinstance(value, bool):
            yield facts, key


def test_each_row_changes_with_a_fact(facts):
    """Unless it says that nothing was tested; then another report has the fact."""
    before = [row["answer"] for row in annex(facts)["rows"]]
    changed = {n for n, text in enumerate(before) if re.search("not tested|[Nn]o epsilon", text)}
    facts["completed"] = facts["completed"] and facts["completed"] | {"lines": []}  # hundreds, in no sentence
    for holder, key in leaves(facts):
        old = holder[key]
        holder[key] = f"{old}~" if isinstance(old, str) else 3 * old + 1
        changed |= {n for n, row in enumerate(annex(facts)["rows"]) if row["answer"] != before[n]}
        holder[key] = old
    assert changed == set(range(len(before)))


def answer(facts: dict, source: str) -> str:
    return next(row["answer"] for row in annex(facts)["rows"] if row["source"].startswith(source))


def test_an_answer_has_the_figure_of_the_report(sample):
    facts = copy.deepcopy(sample)
    (hits, asked), control = (facts["named"]["by_patient"][side][:2] for side in ("members", "held_out"))
    told = f"{hits} of {asked} trained and {control[0]} of {control[1]} held-out"
    assert hits != 47 and told in answer(facts, "45 CFR 164.514(b)(1)(i)")
    facts["named"]["by_patient"]["members"][0] = 47
    assert f"47 of {asked} trained" in answer(facts, "45 CFR 164.514(b)(1)(i)")
    assert f"47 of {asked} trained" in answer(facts, "EDPB 28/2024, paras 34, 43")
    facts["sensitivity"]["auc"] = 0.7321
    assert "right in 74 of 100 pairs" in answer(facts, "EDPB 28/2024, para 55"), "a limit is rounded up"
    epsilon = "NIST SP 800-226, Sections 2"
    facts["canaries"]["claim"] = REFUTED
    assert "at least 5.23 (" in answer(facts, epsilon), "no more than is certified"
    facts["canaries"]["claim"] = CLAIM
    assert "Not refuted" in answer(facts, epsilon) and "at least 2.46," in answer(facts, epsilon)
    facts["canaries"] = None
    assert "without canaries" in answer(facts, epsilon)


def test_an_undecided_report_says_that_its_comparisons_judge_nothing(sample):
    assert "judges" not in annex(sample)["lead"]
    assert "held-out patients below judges the model" in annex({**sample, "outcome": "undecided"})["lead"]


def test_no_text_of_a_fact_becomes_markup_or_a_placeholder(sample):
    facts = copy.deepcopy(sample)
    facts["headline"] = facts["answers"]["found"] = facts["model"]["type"] = SCRIPT
    facts["first_page"]["severity"][0][0] = facts["key_figures"][0]["value"] = SCRIPT
    shown = report_page(facts).partition('<div class="annex">')[2]
    assert "<script" not in shown and shown.count(html.escape(SCRIPT)) == 5
