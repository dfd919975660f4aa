"""Memorization against the published vectors, slow versions of the same, and a model built to remember."""

import math
import re

import numpy as np
import pytest
import torch

from privhelpers import models, records, training
from privhelpers.attacks import attributes, canaries, extraction
from privhelpers.attacks import memorization as memory
from privhelpers.errors import InvalidParameter
from privhelpers.models import Sampling

SAMPLING = Sampling(temperature=0.8, top_k=20, top_p=0.95)


@pytest.fixture(scope="module")
def hospital():
    return records.make_hospital_records(
        seed=3, patients=14, validation_patients=2, heldout_patients=14, canaries_per_level=1, report_share=1
    )


@pytest.fixture(scope="module")
def net(hospital):
    """A model that was trained until it knows its notes by heart."""
    notes = [n["text"] for n in hospital.train if n["kind"] == "report"]
    tokenizer = models.train_tokenizer(notes, vocab_size=420)
    model = models.build("micro-gpt2", tokenizer, seed=0)
    plan = training.Settings(epochs=40, learning_rate=8e-3, batch_size=8)
    training.train(model, tokenizer, notes, plan, seed=0, progress=False)
    return model, tokenizer


@pytest.fixture(scope="module")
def halves(net, hospital):
    return {
        part: memory.halve(net[1], [n for n in notes if n["kind"] == "report"][:12], longest=128)
        for part, notes in (("train", hospital.train), ("heldout", hospital.heldout))
    }


# Notes.


def test_halves_are_the_note(net, hospital, halves):
    _, tokenizer = net
    text_of = {n["note_id"]: n["text"] for n in hospital.train}
    for prefix, suffix, note in zip(
        *(getattr(halves["train"], f) for f in ("prefixes", "suffixes", "note_ids")), strict=True
    ):
        assert prefix[0] == tokenizer.eos_token_id
        assert abs(len(prefix) - 1 - len(suffix)) <= 1
        assert tokenizer.decode(prefix[1:] + suffix) == text_of[note]
    note = {"text": "a b " * 400, "note_id": "x", "patient_id": "y"}
    long = memory.halve(tokenizer, [note], longest=128)
    assert len(long.prefixes[0]) + len(long.suffixes[0]) == 128


def test_one_pass_says_what_decoding_returns(net, halves):
    for part in halves.values():
        seen = memory.recall(net[0], part, SAMPLING, batch_size=5)
        guessed = memory.guess(*net, part)
        assert seen.recalled.tolist() == guessed.correct.tolist()
        truths = net[1].batch_decode(part.suffixes)
        assert [a == b for a, b in zip(truths, guessed.texts, strict=True)] == guessed.correct.tolist()


def test_the_probability_of_a_half_is_that_of_its_draws(net, halves):
    model, part = net[0], halves["train"]
    seen = memory.recall(model, part, SAMPLING)
    for n in range(4):
        ids, p_note = list(part.prefixes[n]), 1.0
        for token in part.suffixes[n]:
            logits = model(input_ids=torch.tensor([ids], device=model.device)).logits[0, -1].detach().cpu()
            tokens, p = models.kept_tokens(logits, SAMPLING)
            p_note *= float(p[tokens == token].sum())
            ids.append(token)
        assert math.exp(seen.log_p[n]) == pytest.approx(p_note, rel=1e-3)


def test_a_model_remembers_its_notes_and_no_others(net, halves):
    trained, strange = (memory.recall(net[0], halves[part], SAMPLING) for part in ("train", "heldout"))
    assert trained.recalled.sum() >= 9 and strange.recalled.sum() == 0
    # An even chance within 20 draws, and not within 10,000.
    assert np.median(trained.log_p) > math.log(0.034) and (strange.log_p < math.log(6.9e-5)).all()


# Canaries.


def written_out(net, prefix, secret):
    """Return the log probability of a secret after a prefix from a pass of its own."""
    model, tokenizer = net
    first, ids = ([*tokenizer(t, add_special_tokens=False)["input_ids"]] for t in (prefix, secret))
    start = [tokenizer.eos_token_id, *first]
    with torch.no_grad():
        row = torch.tensor([start + ids], device=model.device)
        log_p = model.eval()(input_ids=row).logits[0].log_softmax(-1)
    return sum(log_p[len(start) - 1 + i, token].item() for i, token in enumerate(ids))


@pytest.mark.parametrize("digits", [1, 7])
def test_secrets_are_scored_as_if_each_were_written_out(net, digits):
    secrets, prefix = (
        canaries.draw_references(digits, 5 if digits == 1 else 50, seed=0),
        "Patient 1 (MRN: SYN-",
    )
    ours = canaries.secret_log_probabilities(*net, prefix, secrets, batch_size=16)
    np.testing.assert_allclose(ours, [written_out(net, prefix, secret) for secret in secrets], atol=1e-4)


@pytest.mark.parametrize("secret", ["0", "7", "123", "999"])
def test_a_rank_in_the_space_is_that_of_scoring_every_secret(net, secret):
    prefix, every = "Patient 1 (MRN: SYN-", [f"{n:0{len(secret)}d}" for n in range(10 ** len(secret))]
    log_p = canaries.secret_log_probabilities(*net, prefix, every)
    better = int((log_p > log_p[int(secret)] + 1e-4).sum())
    assert canaries.rank_in_space(*net, prefix, secret) == 1 + better
    assert canaries.rank_in_space(*net, prefix, secret, most=1) in (None, 1)


def test_only_digits_have_a_rank_in_the_space(net):
    for secret in ("", "12a", "\u0663"):
        with pytest.raises(InvalidParameter, match="digits"):
            canaries.rank_in_space(*net, "Patient 1 (MRN: SYN-", secret)


# Definitions.


def test_each_definition_counts_its_own_strings(net, hospital):
    form = re.compile(r"SYN-\d+")
    notes = [n for n in hospital.train if n["kind"] == "report" and form.search(n["text"])]
    number = form.search(notes[0]["text"])[0]
    table = memory.definitions_met(*net, [*notes, notes[0]], form, {number, "SYN-0"})
    assert table.index.is_unique and set(table.index) == {s for n in notes for s in form.findall(n["text"])}
    assert table.index[table["extractable"]].tolist() == [number]
    times = sum(number in form.findall(n["text"]) for n in [*notes, notes[0]])
    assert table.loc[number, "notes"] == times and table.loc[number, "patient"] == notes[0]["patient_id"]
    strange = [n for n in hospital.heldout if n["kind"] == "report" and form.search(n["text"])]
    unknown = memory.definitions_met(*net, strange, form, ())
    assert table["discoverable"].mean() > 0.5 and not unknown[["discoverable", "extractable"]].any(axis=None)
    with pytest.raises(InvalidParameter, match="none contains"):
        memory.definitions_met(*net, notes, re.compile("absent"), ())


# Attributes.


def test_candidates_of_any_length_are_scored_as_if_written_out(net):
    prefixes = ["Patient Ann B. Hill, diagnosed with", "note:", "Chart of Jo"]
    candidates = ["Asthma", "Huntington Disease", "GERD", "Wilson Disease"]
    table = attributes.candidate_table(*net, prefixes, candidates, batch_size=2)
    slow = [[written_out(net, prefix, f" {name}") for name in candidates] for prefix in prefixes]
    np.testing.assert_allclose(table, slow, atol=1e-3)


def test_a_model_that_remembers_knows_diagnoses_in_context(net, hospital):
    conditions = sorted({n["condition"] for n in hospital.train + hospital.heldout})
    first = {}
    for part, notes in (("train", hospital.train), ("heldout", hospital.heldout)):
        asked = attributes.questions(notes, extraction.profiles(notes))
        table = attributes.candidate_table(*net, [q.in_context for q in asked], conditions)
        first[part] = np.mean(attributes.ranks(table, conditions, [q.conditions for q in asked]) == 1)
    assert first["train"] > 0.85 and first["heldout"] < first["train"] - 0.3
