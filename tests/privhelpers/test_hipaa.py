"""The 18 identifiers and the sections: data of the regulation; risk in three kinds; the sheet for readers."""

import itertools
import json

import pytest
from bs4 import BeautifulSoup

from privhelpers import hipaa
from privhelpers.errors import InvalidParameter, NotOneNumber
from privhelpers.hipaa import _risk

OURS = {"name": "A", "address": "B", "dob": "C", "phone": "D", "email": "F", "ssn": "G", "mrn": "H"}
# 45 CFR 164.514(b)(2)(i), from (A) to (R): a word that each entry must hold.
WORDS = [
    *("name", "place", "date", "telephone", "fax", "email", "social security", "medical record"),
    *("health plan", "account", "certificate", "vehicle", "device", "web", "ip address", "biometric"),
    *("photograph", "any other unique"),
]
RULE = dict(zip("ABCDEFGHIJKLMNOPQR", WORDS, strict=True))


def test_the_list_is_the_eighteen_of_the_rule():
    assert [row.letter for row in hipaa.IDENTIFIERS] == list(RULE)
    assert all(RULE[row.letter] in row.name.lower() for row in hipaa.IDENTIFIERS)
    assert hipaa.RECORD_IDENTIFIERS == OURS


def test_a_limited_data_set_removes_sixteen_kinds():
    by_word = {row.letter: row.limited_data_set for row in hipaa.IDENTIFIERS}
    assert {letter for letter, word in by_word.items() if word == "must go"} == set("ADEFGHIJKLMNOPQ")
    assert by_word["C"] == "may stay" and "the rest must go" in by_word["B"]
    assert by_word["R"] == "not on that list"


def test_a_sheet_for_readers_can_be_read_by_all_and_does_nothing():
    item = ("A <b>note</b>", "of\u202e 3 & more", "<script>alert(1)</script>")
    page = BeautifulSoup(hipaa.sheet_page([item, ("one", "two", "three")]), "html.parser")
    assert page.html["lang"] == "en" and page.title.string and page.table.caption.string
    assert all(cell["scope"] == "col" for cell in page.thead.find_all("th"))
    rows = page.tbody.find_all("tr")
    assert [row.th.get_text() for row in rows] == ["1", "2"] and all(row.th["scope"] == "row" for row in rows)
    shown = [cell.get_text() for cell in rows[0].find_all("td")]
    assert shown == ["A <b>note</b>", "of\\u202e 3 & more", "<script>alert(1)</script>", "yes / no"]
    assert not page.find_all(["script", "b", "img", "a", "link"])
    policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'") and "script" not in policy


#


SOURCE = "attack.json of extraction/baseline [0123456789ab]"
NULL = (0.0, 0.0, 0.015)
SAYS = {"by": "privacy office", "on": "2024-01-01"}


def measured(kind=hipaa.CONTENT, figure=(0.05, 0.03, 0.09), control=NULL, n=224, source=SOURCE):
    return hipaa.Finding(kind, kind, "patients", n, figure, control, source)


QUIET = [measured(kind, figure=(0.01, 0.0, 0.04)) for kind in _risk.KINDS]
FOUND = {
    hipaa.NOTHING: QUIET,
    hipaa.MEMBERSHIP: [QUIET[0], measured(hipaa.MEMBERSHIP)],
    hipaa.CONTENT: [measured(), QUIET[1]],
}


def declared(**answers):
    return [hipaa.declare(subject, answer, **SAYS) for subject, answer in answers.items()]


def everything():
    for answers in itertools.product(*_risk.ANSWERS.values()):
        yield dict(zip(_risk.ANSWERS, answers, strict=True))


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (measured, {"figure": (0.05, 0.06, 0.09)}),
        (measured, {"figure": (0.05, float("nan"), 0.09)}),
        (measured, {"control": ()}),
        (measured, {"control": (0.1, 0.0, 0.05)}),
        (measured, {"kind": "rumor"}),
        (measured, {"source": ""}),
        (hipaa.declare, {"subject": "weather", "answer": "fine", **SAYS}),
        (hipaa.declare, {"subject": "access", "answer": "no one", **SAYS}),
        (hipaa.declare, {"subject": "access", "answer": "partners", **SAYS, "by": " "}),
        (hipaa.declare, {"subject": "access", "answer": "partners", **SAYS, "on": "yesterday"}),
        (hipaa.combine, {"model": "m", "measured": QUIET, "declared": declared(access="partners") * 2}),
    ],
)
def test_a_figure_without_control_and_a_declaration_without_a_person_are_refused(make, wrong):
    with pytest.raises(InvalidParameter):
        make(**wrong)


def test_a_wider_answer_never_makes_a_reading_milder_and_silence_is_the_widest():
    order = (*hipaa.CATEGORIES, hipaa.FIRST)
    for evidence, answers in itertools.product(FOUND, everything()):
        before = order.index(hipaa.combine("m", FOUND[evidence], declared(**answers)).category)
        for subject, options in _risk.ANSWERS.items():
            for wider in options[options.index(answers[subject]) + 1 :][:1]:  # the next wider one
                declarations = declared(**(answers | {subject: wider}))
                after = order.index(hipaa.combine("m", FOUND[evidence], declarations).category)
                assert after >= before, (evidence, answers, subject, wider)
            silent = {key: value for key, value in answers.items() if key != subject}
            last = answers | {subject: options[-1]}
            readings = [
                hipaa.combine("m", FOUND[evidence], declared(**changed)) for changed in (silent, last)
            ]
            assert readings[0].category == readings[1].category


def test_a_worse_finding_never_makes_a_reading_milder():
    order = hipaa.CATEGORIES
    for answers in everything():
        declarations = declared(**answers)
        places = [
            order.index(hipaa.combine("m", findings, declarations).category) for findings in FOUND.values()
        ]
        assert places == sorted(places)


def test_a_tolerated_budget_excuses_no_finding():
    for evidence in (hipaa.MEMBERSHIP, hipaa.CONTENT):
        for answers in everything():
            readings = {
                hipaa.combine("m", FOUND[evidence], declared(**(answers | {"budget": budget}))).category
                for budget in _risk.ANSWERS["budget"]
            }
            assert len(readings) == 1 and hipaa.KEEP not in readings


@pytest.mark.parametrize("missing", _risk.KINDS)
def test_what_is_not_measured_comes_first_unless_something_was_found(missing):
    rest = [finding for finding in QUIET if finding.kind != missing]
    reading = hipaa.combine("m", rest, declared(access="named staff", budget="tolerated"))
    assert reading.category == hipaa.FIRST and f"not measured: {missing}" in reading.reasons[1]
    loud = hipaa.combine("m", [measured()], [])
    assert loud.category == hipaa.STOP and loud.evidence == hipaa.CONTENT


def test_a_risk_is_not_one_number():
    with pytest.raises(NotOneNumber):
        float(hipaa.combine("m", QUIET, []))


def test_tables_name_the_control_and_what_is_not_declared():
    table = hipaa.findings_table([measured()])
    assert table.loc["content", "control"] == "0.000 [0.000, 0.015]"
    assert table.loc["content", "above control"] == "yes"
    readings = [hipaa.combine("a", QUIET, declared(budget="tolerated")), hipaa.combine("b", QUIET, [])]
    assert hipaa.reading_table(readings)["budget"].tolist() == ["tolerated", "not declared"]


def test_every_reason_is_listed_with_its_source_and_becomes_json():
    budget = hipaa.declare("budget", "tolerated", **SAYS, source=SOURCE, note="20 of 1,000")
    reading = hipaa.combine("m", QUIET, [*declared(access="partners"), budget])
    text = "\n".join(reading.reasons)
    assert text.count("[0123456789ab]") == 3 and "privacy office" in text and "20 of 1,000" in text
    assert all(subject in text for subject in _risk.ANSWERS), "what is not declared is listed too"
    stored = json.loads(json.dumps(reading.as_json()))
    assert stored["declared"][0]["on"] == "2024-01-01"
    assert [entry["source"] for entry in stored["measured"]] == [SOURCE] * 2
