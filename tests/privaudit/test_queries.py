"""A model that one can only ask: the questions keep their secret, and both sides judge the answers."""

import itertools
import json
import math
import random
from collections import Counter
from dataclasses import replace

import jsonschema
import pytest
import toy_audit as toy

import privaudit
from privaudit import audit_pictures, cli
from privaudit.probes.answers import leakage, read_answers
from privaudit.probes.questions import RUN, Knowledge, QueryTest, ladder, plan_questions
from privaudit.verdict import FLAGGED, NOTHING_FOUND, UNDECIDED
from privhelpers import spelling
from privhelpers.errors import BadRecords, InvalidParameter

PATIENTS, BUDGET = 60, 400
LITTLE = privaudit.Settings(permutations=3999, draws=60, budget=BUDGET)


def notes(letter, seed):
    """Return notes of 26 words and a number; some patients have two."""
    generator, rows = random.Random(f"{letter}{seed}"), []
    for n in range(PATIENTS):
        for _ in range(1 + (generator.random() < 0.5)):
            words = generator.choices(toy.WORDS, k=24)
            number = f"SYN-{generator.randrange(10**8):08d}"
            text = f"Seen today: {' '.join(words[:10])}. File {number}, {' '.join(words[10:])}."
            rows.append({"patient_id": f"{letter}{n}", "text": text})
    return rows


MEMBERS, HELDOUT = notes("m", 1), notes("h", 2)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("queries")
    for name, rows in (("m", MEMBERS), ("h", HELDOUT)):
        toy.write(place / f"{name}.jsonl", rows)
    return place


@pytest.fixture(scope="module")
def files(home):
    return privaudit.read_files(home / "m.jsonl", home / "h.jsonl")


@pytest.fixture(scope="module")
def plan(files):
    return plan_questions(files, LITTLE)


def answered(questions, known, *, late=0):
    """Return rows of answers by a machine that goes on with every note that it knows, and babbles otherwise.

    Args:
        questions: rows with `id`, `prompt` and `answers`.
        known: notes.
        late: how many answers to each question are babble first.
    """
    generator, texts = random.Random(5), [row["text"] for row in known]
    rows = []
    for question in questions:
        prompt = question["prompt"]
        for turn in range(question["answers"]):
            own = next((text for text in texts if prompt and prompt in text), None)
            if own is None or turn < late:
                answer = " ".join(generator.choices(toy.WORDS, k=25))
            else:
                answer = own.partition(prompt)[2]
            rows.append({"id": question["id"], "answer": answer})
    return rows


def rows_of(plan):
    return [{"id": q.id, "prompt": q.prompt, "answers": q.answers} for q in plan.questions]


@pytest.fixture(scope="module")
def audit(files, plan):
    """Return a function that audits rows of answers; the two files are compared once."""
    sides = (plan.sample.texts_by_patient(member=member) for member in (True, False))
    blind = privaudit.blind_baselines(*sides, permutations=199, draws=40)

    def run(rows, place):
        answers = read_answers(toy.write(place / "a.jsonl", rows), plan)
        with toy.compared(blind):
            return privaudit.run_audit(files, LITTLE, answers=answers)

    return run


def test_the_questions_do_not_say_which_side_they_are_about(plan):
    members = {row["patient_id"] for row in MEMBERS}
    for knowledge in list(Knowledge)[1:]:
        questions = plan.of(knowledge)
        sides = [question.note.patient in members for question in questions]
        assert sides.count(True) == sides.count(False) >= 50
        runs = 1 + sum(one != other for one, other in itertools.pairwise(sides))
        assert abs(runs - len(sides) / 2) < 4 * math.sqrt(len(sides)) / 2, "the order is random"
        assert {len(question.id) for question in questions} == {32}
        assert len({question.note.patient for question in questions}) == len(questions)
    ids = [question.id for question in plan.questions]
    assert ids == sorted(set(ids))


def test_a_prompt_has_what_the_attacker_knows_and_nothing_more(plan):
    for question in plan.questions:
        text = question.note.text if question.note else ""
        if question.knowledge == Knowledge.NAME:
            assert question.prompt.startswith("SYN-") or question.prompt.isdigit()
            assert question.prompt not in question.hidden
        elif question.knowledge == Knowledge.HALF:
            assert len(spelling.words(question.prompt)) == len(spelling.words(text)) // 2
        elif question.knowledge == Knowledge.CONTEXT:
            assert len(spelling.words(question.prompt)) == 8
        else:
            assert question.note is None and len(question.prompt.split()) <= 2
            continue
        assert question.prompt in text and (question.prompt + question.hidden == text) == (
            question.knowledge != Knowledge.NAME
        )


def test_the_questions_depend_on_records_budget_and_seed_alone(files, plan, home):
    toy.write(home / "m2.jsonl", [dict(reversed(row.items())) for row in MEMBERS[::-1]])
    again = plan_questions(
        privaudit.read_files(home / "m2.jsonl", home / "h.jsonl"), replace(LITTLE, draws=9)
    )
    assert rows_of(again) == rows_of(plan)
    for other in (replace(LITTLE, seed=1), replace(LITTLE, budget=BUDGET + 4)):
        assert not {q.id for q in plan.questions} & {q.id for q in plan_questions(files, other).questions}


def test_a_step_of_the_ladder_has_fifty_patients_a_side():
    assert ladder(100, 999) == [(1, 50)]
    assert ladder(10**6, 60) == [(1, 60), (10, 60), (100, 60), (1000, 60)]
    for share in (100, 250, 1799, 1800, 40_000):
        steps = ladder(share, 10**6)
        spent = [(queries - queries // 10) * 2 * patients for queries, patients in steps]
        assert sum(spent) <= share and min(patients for _, patients in steps) >= 50


def test_a_model_that_knows_its_notes_is_flagged(audit, plan, tmp_path):
    found = audit(answered(rows_of(plan), MEMBERS), tmp_path)
    assert found.verdict.outcome == FLAGGED
    for test, shares in found.leakage.items():
        known = test.knowledge != Knowledge.NOTHING
        assert shares.heldout.hits == 0 and shares.members.of >= 50, test
        assert shares.members.hits == shares.members.of if known else shares.members.hits <= 1, test
    assert found.attacks[0].patient.auc.low > 0.9


@pytest.mark.parametrize("known", [[], [*MEMBERS, *HELDOUT]])
def test_a_model_that_knows_nobody_or_everybody_is_not(audit, plan, tmp_path, known):
    assert audit(answered(rows_of(plan), known), tmp_path).verdict.outcome == NOTHING_FOUND


def test_swapped_files_are_not_called_a_leak_of_the_members(audit, plan, tmp_path):
    assert audit(answered(rows_of(plan), HELDOUT), tmp_path).verdict.outcome == UNDECIDED


def test_an_echo_of_the_prompt_gives_nothing_away(plan, tmp_path):
    rows = [
        {"id": q["id"], "answer": q["prompt"] + " and"} for q in rows_of(plan) for _ in range(q["answers"])
    ]
    answers = read_answers(toy.write(tmp_path / "a.jsonl", rows), plan)
    assert all(one.members.hits == one.heldout.hits == 0 for one in leakage(answers).values())


def test_more_queries_find_what_comes_late(files, tmp_path):
    settings = replace(LITTLE, budget=4 * 1800)
    plan = plan_questions(files, settings)
    assert QueryTest(Knowledge.HALF, 10) in plan.tests
    rows = answered(rows_of(plan), MEMBERS, late=6)
    cells = leakage(read_answers(toy.write(tmp_path / "a.jsonl", rows), plan))
    assert cells[Knowledge.HALF, 1].members.hits == 0
    assert cells[Knowledge.HALF, 10].members.hits == cells[Knowledge.HALF, 10].members.of >= 50
    rows = answered(rows_of(plan), MEMBERS[:1])
    spilled = [{**row, "answer": MEMBERS[0]["text"]} for row in rows]
    cells = leakage(read_answers(toy.write(tmp_path / "b.jsonl", spilled), plan))
    assert cells[Knowledge.NOTHING, 1].members.hits == 1 < cells[Knowledge.NOTHING, 1].members.of
    assert cells[Knowledge.HALF, 1].members.hits == 1, "a question is about its own patient"


def test_a_run_that_two_patients_share_names_neither(home, tmp_path):
    shared = " ".join(toy.WORDS[:RUN])
    both = [[{**row, "text": f"{row['text']} {shared}"} for row in rows] for rows in (MEMBERS, HELDOUT)]
    paths = [toy.write(tmp_path / f"{n}.jsonl", rows) for n, rows in enumerate(both)]
    plan = plan_questions(privaudit.read_files(*paths), LITTLE)
    ids = [q["id"] for q in rows_of(plan) for _ in range(q["answers"])]
    rows = [{"id": one, "answer": f"{shared} {n}"} for n, one in enumerate(ids)]
    cells = leakage(read_answers(toy.write(tmp_path / "a.jsonl", rows), plan))
    assert all(one.members.hits == one.heldout.hits == 0 for one in cells.values())


def test_answers_that_are_missing_are_counted_and_said(audit, plan, tmp_path):
    rows = answered(rows_of(plan), MEMBERS)
    random.Random(0).shuffle(rows)
    some = [*rows[: len(rows) * 3 // 4], *rows[:2]]
    found = audit(some, tmp_path)
    facts = privaudit.report_facts(found)
    wanted = sum(question.answers for question in plan.questions)
    extra = sum(
        (Counter(row["id"] for row in some) - Counter({q.id: q.answers for q in plan.questions})).values()
    )
    assert facts["queries"]["given"] == len(some) - extra and facts["queries"]["left_out"] == extra
    assert f"{wanted - len(some) + extra} of {wanted} answers are missing" in facts["queries"]["sentence"]
    assert found.leakage[Knowledge.HALF, 1].members.of == len(plan.of(Knowledge.HALF)) / 2
    empty = [row | {"answer": " "} for row in rows]
    for too_few in (rows[: len(rows) // 3], empty):
        with pytest.raises(BadRecords, match="at least half"):
            audit(too_few, tmp_path)


def test_answers_that_are_one_refusal_are_refused(audit, plan, tmp_path):
    refusal = "I cannot share what is known about a person."
    rows = [row | {"answer": refusal} for row in answered(rows_of(plan), MEMBERS)]
    with pytest.raises(BadRecords, match=f"are one text, {refusal}, .* finding nothing means nothing"):
        audit(rows, tmp_path)


def test_answers_to_other_questions_are_refused(audit, files, tmp_path):
    rows = answered(rows_of(plan_questions(files, replace(LITTLE, seed=3))), [])
    with pytest.raises(BadRecords, match=r"a\.jsonl, line 1: .*budget.*seed"):
        audit(rows, tmp_path)
    with pytest.raises(InvalidParameter, match="budget = 399"):
        plan_questions(files, replace(LITTLE, budget=399))


def test_the_report_has_the_table_and_no_text_of_a_record_or_an_answer(audit, plan, tmp_path):
    rows = answered(rows_of(plan), MEMBERS)
    found = audit(rows, tmp_path)
    facts = privaudit.report_facts(found, made="today")
    jsonschema.validate(facts, json.loads(privaudit.report_schema()))
    page = privaudit.report_page(facts, audit_pictures(found))
    for cell in facts["queries"]["leakage"]:
        assert f"{cell['words']} ({cell['queries']:,})" in page and cell["members"][1] >= 50
    for row in (*MEMBERS, *HELDOUT):
        assert row["text"][20:60] not in page and row["text"].partition("SYN-")[2][:8] not in page
    assert len(toy.first_page(page).split()) and facts["kind"] == "queries"
    assert any("no audit can refute" in line for line in facts["not_tested"])


@pytest.mark.browser
@pytest.mark.parametrize("outcome", [FLAGGED, UNDECIDED, NOTHING_FOUND])
def test_the_first_page_fits_a_sheet(audit, plan, tmp_path, outcome):
    found = audit(answered(rows_of(plan), MEMBERS), tmp_path)
    facts, page = toy.longest_page(found, outcome)
    toy.check_first_sheet(facts, page)


def test_the_commands_lead_from_questions_to_a_report(home, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = [f"--records={home / 'm.jsonl'}", f"--holdout={home / 'h.jsonl'}", f"--budget={BUDGET}"]
    assert cli.main(["prompts", *given, "--out=prompts.jsonl"]) == 0
    assert "400 answers wanted" in capsys.readouterr().err
    assert cli.main(["prompts", *given, "--out=prompts.jsonl"]) == 2, "a file is never overwritten"
    questions = [json.loads(line) for line in (tmp_path / "prompts.jsonl").read_text().splitlines()]
    assert {frozenset(question) for question in questions} == {frozenset(("id", "prompt", "answers"))}
    rows = [{"key": row["id"], "said": row["answer"]} for row in answered(questions, MEMBERS)]
    toy.write(tmp_path / "answers.jsonl", rows)
    more = ["--answers=answers.jsonl", "--columns=id=key answer=said", "--pdf=no", "--out=made"]
    assert cli.main(["audit", *given, *more, "--model=."]) == 2
    assert "leave out --model" in capsys.readouterr().err
    assert cli.main(["audit", *given, *more]) == 0
    facts = json.loads((tmp_path / "made" / "report.json").read_text())
    assert facts["outcome"] == FLAGGED and facts["queries"]["budget"] == BUDGET
