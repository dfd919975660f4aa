import dataclasses
import datetime
import itertools
import json

import pytest

from privhelpers import hipaa
from privhelpers.errors import InvalidParameter, NotOneNumber
from privhelpers.hipaa import _risk

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


def test_a_figure_needs_an_interval_and_a_control():
    assert measured().above_control and not QUIET[0].above_control
    for broken in (
        {"figure": (0.05, 0.06, 0.09)},
        {"figure": (0.05, float("nan"), 0.09)},
        {"control": ()},
        {"control": (0.1, 0.0, 0.05)},
        {"n": 0},
        {"kind": "rumor"},
        {"source": ""},
    ):
        with pytest.raises(InvalidParameter):
            measured(**broken)


def test_a_declaration_needs_a_person_a_date_and_a_known_answer():
    declaration = hipaa.declare("access", "partners", **SAYS)
    assert declaration.on == datetime.date(2024, 1, 1) and declaration.source == ""
    for broken in (
        {"subject": "weather", "answer": "fine"},
        {"subject": "access", "answer": "nobody ever"},
        {"subject": "access", "answer": "partners", "by": " "},
        {"subject": "access", "answer": "partners", "on": "yesterday"},
    ):
        with pytest.raises(InvalidParameter):
            hipaa.declare(**{**SAYS, **broken})


def test_a_subject_is_declared_once():
    with pytest.raises(InvalidParameter, match="declared twice: access"):
        hipaa.combine("m", QUIET, declared(access="partners") * 2)


@pytest.mark.parametrize("evidence", FOUND)
def test_the_worst_finding_decides_the_row(evidence):
    assert hipaa.combine("m", FOUND[evidence], []).evidence == evidence


@pytest.mark.parametrize(
    ("answers", "reach"),
    [
        ({"access": "named staff", "form": "queries", "queries": "logged"}, "inside"),
        ({"access": "named staff", "form": "queries", "queries": "unlimited"}, "bound"),
        ({"access": "named staff", "form": "weights", "queries": "limited"}, "bound"),
        ({"access": "partners", "form": "queries", "queries": "logged", "agreement": "in force"}, "bound"),
        ({"access": "partners", "form": "queries", "queries": "logged", "agreement": "none"}, "open"),
        ({"access": "partners", "form": "weights", "queries": "logged", "agreement": "in force"}, "open"),
        ({"access": "anyone", "form": "queries", "queries": "limited", "agreement": "in force"}, "open"),
        ({}, "open"),
    ],
)
def test_what_is_declared_decides_the_column(answers, reach):
    assert hipaa.combine("m", QUIET, declared(**answers)).reach == reach


def test_a_wider_answer_never_makes_a_reading_milder_and_silence_is_the_widest():
    order = (*hipaa.CATEGORIES, hipaa.FIRST)
    for evidence, answers in itertools.product(FOUND, everything()):
        before = order.index(hipaa.combine("m", FOUND[evidence], declared(**answers)).category)
        for subject, options in _risk.ANSWERS.items():
            for wider in options[options.index(answers[subject]) :]:
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
def test_what_nobody_measured_comes_first_unless_something_was_found(missing):
    rest = [finding for finding in QUIET if finding.kind != missing]
    reading = hipaa.combine("m", rest, declared(access="named staff", budget="tolerated"))
    assert reading.category == hipaa.FIRST and f"nobody measured {missing}" in reading.reasons[1]
    loud = hipaa.combine("m", [measured()], [])
    assert loud.category == hipaa.STOP and loud.evidence == hipaa.CONTENT


def test_every_reason_is_listed_with_its_source():
    budget = hipaa.declare("budget", "tolerated", **SAYS, source=SOURCE, note="20 of 1,000")
    reading = hipaa.combine("m", QUIET, [*declared(access="partners"), budget])
    text = "\n".join(reading.reasons)
    assert text.count("[0123456789ab]") == 3
    assert "access: partners; says privacy office, 2024-01-01" in text and "20 of 1,000" in text
    silent = set(_risk.ANSWERS) - {"access", "budget"}
    assert all(
        f"{subject}: nobody declared it, read as {_risk.ANSWERS[subject][-1]!r}" in text for subject in silent
    )


def test_a_risk_is_not_one_number():
    reading = hipaa.combine("m", QUIET, [])
    for ask in (
        float,
        int,
        round,
        lambda risk: risk.score,
        lambda risk: risk + risk,
        lambda risk: risk * 0.5,
        sorted,
    ):
        with pytest.raises(TypeError):
            ask(reading)
    with pytest.raises(NotOneNumber, match="m: a risk is not one number"):
        float(reading)
    assert not {field.name for field in dataclasses.fields(reading)} & {"score", "weight", "weights"}


def test_a_reading_becomes_json_with_every_source():
    reading = hipaa.combine("m", QUIET, declared(access="partners"))
    stored = json.loads(json.dumps(reading.as_json()))
    assert stored["declared"][0]["on"] == "2024-01-01"
    assert [entry["source"] for entry in stored["measured"]] == [SOURCE] * 2


def test_measurements_as_a_table_name_the_control():
    table = hipaa.findings_table([measured()])
    assert table.loc["content", "control"] == "0.000 [0.000, 0.015]"
    assert table.loc["content", "above control"] == "yes"
