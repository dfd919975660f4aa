"""Attacks on models that were built to leak, and on models that cannot."""

import copy
import math

import numpy as np
import pytest
import torch

from privhelpers import models, records, training
from privhelpers.attacks import (
    asking,
    attributes,
    canaries,
    case_studies,
    extraction,
    groups,
    inversion,
    lira,
    memorization,
    panel,
    ranking,
    scores,
    shadow,
    signals,
    white_box,
)
from privhelpers.attacks.bank import Bank
from privhelpers.attacks.extraction import Generation, Profile
from privhelpers.attacks.signals import Signals
from privhelpers.errors import InvalidParameter


def person(patient="p1", **identifiers):
    given = {name: (value,) for name, value in identifiers.items()}
    return Profile(patient, given, ("Asthma",), ("Albuterol",))


ANNA = {
    "name": "Anna K. Hill",
    "email": "a.hill0001@mail.example.org",
    "phone": "(212) 555-0123",
    "dob": "1990-02-03",
}


def strict(text, *people):
    return extraction.strict_match([Generation("", text)], people or (person(**ANNA),))


@pytest.mark.parametrize(
    ("text", "leaks"),
    [
        ("write to A.Hill0001@mail.example.org now", 1),  # 20 bits or more: alone enough, in any case
        ("seen: anna  k. HILL.", 1),
        ("Anna Hill", 0),
        ("call (212) 555-0123", 0),  # a small space: someone has this number
        ("born 1990-02-03, call (212) 555-0123", 1),  # two of one patient
        ("Asthma, Albuterol, Anna", 0),
    ],
)
def test_strict_rule(text, leaks):
    assert strict(text).leaks == leaks


def test_two_small_identifiers_of_two_patients_are_no_leak():
    people = person("p1", phone="(212) 555-0123"), person("p2", dob="1990-02-03")
    match = strict("born 1990-02-03, call (212) 555-0123", *people)
    assert match.leaks == 0 and match.by_identifier["phone"] == match.by_identifier["dob"] == 1


@pytest.mark.parametrize(
    ("rank", "references", "bits"),
    [(1, 10**6 - 1, 19.931569), (1, 10**9 - 1, 29.897353), (8, 15, 1.0), (16, 15, 0.0)],
)
def test_exposure_vectors(rank, references, bits):
    assert canaries._exposure(rank=rank, references=references) == pytest.approx(bits, abs=1e-6)


def test_references_are_different_secrets_of_the_space():
    drawn = canaries.draw_references(7, 2000, seed=0)
    assert len(set(drawn)) == 2000 and all(len(s) == 7 and s.isdigit() for s in drawn)
    first = np.bincount([int(s[0]) for s in drawn], minlength=10)
    assert ((first - 200) ** 2 / 200).sum() < 27.9  # chi-squared, 9 degrees of freedom, p = 0.001


@pytest.fixture(scope="module")
def hospital():
    return records.make_hospital_records(
        seed=1, patients=25, validation_patients=5, heldout_patients=25, canaries_per_level=2
    )


@pytest.fixture(scope="module")
def leaky(hospital):
    """A model trained until it knows its notes by heart."""
    texts = [n["text"] for n in hospital.train]
    tokenizer = models.train_tokenizer(texts, vocab_size=600)
    model = models.build("micro-gpt2", tokenizer, seed=0)
    settings = training.Settings(epochs=60, learning_rate=8e-3, batch_size=16)
    training.train(model, tokenizer, texts, settings, seed=0, progress=False)
    return model, tokenizer


@pytest.fixture(scope="module")
def fresh(leaky):
    return models.build("micro-gpt2", leaky[1], seed=0), leaky[1]


def measured(net, hospital):
    rows = [c.as_dict() for c in hospital.canaries]
    return canaries.measure(*net, rows, digits=7, references=127, seed=0, progress=False)


def test_a_leaky_model_gives_up_its_canaries_and_no_control(leaky, hospital):
    results = measured(leaky, hospital)
    often = [r for r in results if r.copies >= 4]
    controls = [r for r in results if not r.planted]
    assert len(often) == 6 and len(controls) == 10
    assert sum(r.extracted for r in often) >= 5
    assert not any(r.extracted for r in controls)
    assert np.mean([r.exposure_bits for r in often]) > 6.5
    assert np.mean([r.exposure_bits for r in controls]) < 4


def test_an_untrained_model_gives_up_nothing(fresh, hospital):
    results = measured(fresh, hospital)
    assert not any(r.extracted for r in results)
    assert np.mean([r.exposure_bits for r in results]) == pytest.approx(math.log2(math.e), abs=1.2)


def test_strict_extraction_finds_members_only(leaky, hospital):
    members, controls = extraction.equal_groups(
        extraction.profiles(hospital.train), extraction.profiles(hospital.heldout), seed=0
    )
    openings = ("Patient:", "Medical Record -", "Patient Profile:", "Clinical Note:", "Chart Review -")
    generations = [
        Generation(start, text)
        for start in openings
        for text in models.generate(*leaky, start, samples=20, seed=0)
    ]
    assert extraction.strict_match(generations, members).leaks > 10
    assert extraction.strict_match(generations, controls).leaks == 0


def test_a_number_that_was_learned_by_heart_is_completed_and_no_other(fresh):
    model, tokenizer = copy.deepcopy(fresh[0]), fresh[1]
    known, value = "Ann B. Hill", "000-12-3456"
    note = asking.FORMS["ssn"][0].format(known) + value
    training.train(model, tokenizer, [note], training.Settings(80, 5e-3, warm_up=0.0), seed=0, progress=False)
    true, changed = (
        Profile("p0", {"name": (known,), "ssn": (number,)}, (), ()) for number in (value, "000-12-3457")
    )
    unnamed = Profile("p2", {"name": ("No Number",)}, (), ())
    [answer] = [row for _, row in asking.ask(model, tokenizer, "ssn", [true, unnamed]).iterrows()]
    assert answer["completed"] and answer["probability"] > 0.5
    assert not asking.ask(model, tokenizer, "ssn", [changed])["completed"].any()
    untrained = asking.ask(*fresh, "ssn", [true]).iloc[0]
    assert not untrained["completed"] and untrained["probability"] < 1e-6


# Refusals of the whole room: what is wrong, and the field that the error names.

SIGNALS = Signals(*np.ones((3, 2)), np.array([1, 1]), np.ones(2), None, (np.ones(1),) * 2, (np.ones(1),) * 2)
ARM = scores.split([1.0, 2.0, 3.0, 4.0], list("abcd"), [True, True, False, False])
BANK = Bank(("a", "b"), np.eye(2, dtype=bool), {name: np.eye(2) for name in shadow.KEPT})
HALVES = np.zeros((2, 3)), np.ones((3, 2))


def ids_of(*rows):
    """A tokenizer that answers with these rows."""
    return lambda texts, **options: {"input_ids": list(rows)}


def canary(secret, name="a", planted=True):
    return {"canary_id": name, "prefix": "x", "secret": secret, "planted": planted, "copies": 1}


def measure(*rows):
    return canaries.measure(None, None, rows, digits=1, references=4, seed=0)


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("profiles", lambda: extraction.equal_groups([], [1], seed=0)),
        ("kind", lambda: asking.ask(None, None, "shoe size", [])),
        ("group", lambda: asking.ask(None, None, "dob", [])),
        ("notes", lambda: memorization.halve(None, [], longest=9)),
        ("notes", lambda: memorization.halve(ids_of([1]), [{"text": "x"}], longest=9)),
        ("rank", lambda: canaries._exposure(rank=9, references=7)),
        ("values", lambda: signals._min_k([])),
        ("secrets", lambda: canaries.secret_log_probabilities(None, ids_of([1], [1, 2]), "", ["1", "12"])),
        ("count", lambda: canaries.draw_references(1, 6, seed=0)),
        ("'a'", lambda: measure(canary("12"))),
        ("'a'", lambda: measure(canary("x"))),
        ("'b'", lambda: measure(canary("1"), canary("1", "b", planted=False))),
        ("count", lambda: measure(*(canary(str(n), f"n{n}") for n in range(8)))),
        ("digits", lambda: canaries.draw_references(19, 1, seed=0)),
        ("batch_size", lambda: attributes.candidate_table(None, None, [], [], batch_size=0)),
        ("begins with 'y'", lambda: attributes.candidate_table(None, ids_of([1, 2], [1]), ["x"], ["x", "y"])),
        ("candidates", lambda: attributes.candidate_table(None, ids_of([1]), ["x"], ["x"])),
        ("scores", lambda: attributes.ranks([[0.1, math.nan]], ["a", "b"], [["a"]])),
        ("table", lambda: attributes.ranks([[0.1, 0.2]], ["a", "a"], [["a"]])),
        ("truths", lambda: attributes.ranks([[0.1, 0.2]], ["a", "b"], [["c"]])),
        ("right", lambda: attributes.ranks([[0.1, 0.2]], ["a", "b"], [[]])),
        ("groups", lambda: groups.group_means([1.0], [])),
        ("scores", lambda: ranking.first([[1, 2], [3]], 1, seed=0)),
        ("level", lambda: scores.measure(ARM, level=1.5)),
        ("target", lambda: lira.online("x", *HALVES, fixed_variance=True)),
        ("member", lambda: scores.split([1.0], ["a"], [True, False])),
        ("attacks", lambda: scores.select_attack({})),
        ("fpr", lambda: scores.select_attack({"a": ARM}, fpr=2)),
        ("short", lambda: signals.scores(SIGNALS, {"short": [1.0]})),
        ("reference_log_p", lambda: signals.scores(SIGNALS, reference_log_p=[np.ones(1), np.ones(2)])),
        ("losses", lambda: lira.logit_statistic([-0.1])),
        ("both", lambda: lira._fit(*HALVES, fixed_variance=True)),
        ("no value counts", lambda: lira._fit(HALVES[0], HALVES[0], fixed_variance=True)),
        ("'x'", lambda: BANK.only(notes=["x"])),
        ("bank", lambda: Bank(("a",), BANK.inside, BANK.signals)),
        ("bank", lambda: Bank(BANK.notes, BANK.inside, {"min_k": np.eye(2)})),
        ("target", lambda: panel.shadow_scores({"loss": np.zeros(3)}, BANK, {})),
        ("tasks", lambda: shadow.train_all(None, "x", [shadow.Task("a", (), (), None, 0)] * 2, train=None)),
        ("spans", lambda: case_studies.side_by_side({"a": "x"}, {})),
        ("texts", lambda: next(white_box.batches(None, None, []))),
        ("noise", lambda: inversion.input_span(torch.eye(3), noise=-1.0)),
        ("guesses", lambda: inversion.score([[1]], [])),
    ],
)
def test_invalid_input_is_refused(field, call):
    with pytest.raises(InvalidParameter, match=field):
        call()
