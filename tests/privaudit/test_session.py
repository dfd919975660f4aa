"""A whole audit of small models: one that remembers, one that never trained, and other kinds."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import toy_audit as toy
from tokenizers import Tokenizer, pre_tokenizers, processors, trainers
from tokenizers import models as token_models
from transformers import (
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
)

import privaudit
from privaudit.encode import _drawn_notes, draw_sample, read_as_trained
from privaudit.loading import TextTokenizer, rng
from privaudit.probes.membership import AttackTest, Part
from privaudit.probes.memorization import openings, write_texts
from privaudit.records import FEWEST_PATIENTS, Canary, CanaryFile, Note
from privaudit.verdict import FLAGGED, NOTHING_FOUND, UNDECIDED, Cause, p_values_by_test
from privaudit.words import WORDING
from privhelpers.errors import BadRecords, InvalidParameter, UnsupportedModel
from privhelpers.stats import auc

LITTLE = privaudit.Settings(texts=24, tokens=24, permutations=2199, draws=60)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module")
def tok():
    return toy.tokenizer([row["text"] for row in toy.notes("x", 60, seed=9)])


@pytest.fixture(scope="module")
def members():
    return toy.notes("m", 60, seed=1)


@pytest.fixture(scope="module")
def files(home, members):
    rows = toy.notes("h", 60, seed=2)
    return privaudit.read_files(toy.write(home / "m.jsonl", members), toy.write(home / "h.jsonl", rows))


@pytest.fixture(scope="module")
def remembers(home, tok, members):
    texts = [row["text"] for row in members]
    return toy.save(toy.memorize(toy.causal(tok), tok, texts, epochs=14), tok, home / "remembers")


@pytest.fixture(scope="module")
def fresh(home, tok):
    return toy.save(toy.causal(tok, seed=5), tok, home / "fresh")


@pytest.fixture(scope="module")
def flagged(remembers, files):
    return privaudit.run_audit(files, LITTLE, target=privaudit.open_model(remembers))


def test_a_model_that_remembers_is_flagged(flagged):
    assert flagged.verdict.outcome == FLAGGED and not flagged.verdict.explanations
    loss = flagged.attacks[0]
    assert loss.name == "loss" and loss.patient.auc.low > 0.7
    assert loss.untrained.auc.low < 0.5 < loss.untrained.auc.high
    assert 0.5 in loss.nulls["permuted"] and len(flagged.texts) <= LITTLE.texts
    assert len(flagged.verdict.tests) == 2 * len(flagged.attacks) + 5


def test_a_model_that_never_trained_is_not(fresh, files):
    audit = privaudit.run_audit(files, LITTLE, target=privaudit.open_model(fresh))
    assert audit.verdict.outcome == NOTHING_FOUND
    assert all(shares.difference.low <= 0 for shares in audit.risks.values())
    assert "not proof" in WORDING["headlines"][audit.verdict.outcome]


@pytest.mark.nightly
def test_a_reference_of_the_same_tokens_brings_ezmia_and_wbc(home, tok, remembers, files):
    settings = replace(LITTLE, texts=4, tokens=8, lower_case=False)
    elsewhere = [row["text"] for row in toy.notes("x", 60, seed=9)]
    public = toy.memorize(toy.causal(tok, seed=5), tok, elsewhere, epochs=12)
    folder = toy.save(public, tok, home / "public")
    opened, reference = privaudit.open_model(remembers), privaudit.open_model(folder)
    audit = privaudit.run_audit(files, settings, target=opened, reference=reference)
    by_name = {attack.name: attack for attack in audit.attacks}
    assert {"reference", "ez_mia", "wbc"} <= set(by_name)
    for name in ("ez_mia", "wbc"):
        area = by_name[name].untrained.auc
        assert by_name[name].patient.auc.low > 0.6 and area.low <= 0.5 <= area.high, name
        assert WORDING["attacks"][name] in str(privaudit.report_facts(audit))
    facts = privaudit.report_facts(audit)
    assert facts["model"]["reference_files"] == dict(reference.files) != dict(opened.files)
    page, weights = privaudit.report_page(facts), reference.files["model.safetensors"]
    assert f"reference model: model.safetensors</td><td><code>{weights}</code>" in page
    assert "what does not apply here" not in page
    # Fresh weights beat the reference nowhere, so WBC tells no note from another.
    assert by_name["wbc"].untrained.auc.estimate == 0.5 and by_name["wbc"].untrained_p is None


def test_canaries_are_scored_against_the_reference(remembers, fresh, files, deaf, members):
    """By the gain over the reference, in nats a byte; members' notes are the canaries that were inserted."""
    others = [row["text"] for row in toy.notes("c", 40, seed=7)[:40]]
    texts = [*(row["text"] for row in members[:40]), *others]
    canaries = tuple(Canary(n, text, n < 40) for n, text in enumerate(texts))
    submitted = replace(files, canaries=CanaryFile("c.jsonl", "0" * 64, canaries))
    settings = replace(LITTLE, texts=4, tokens=8, lower_case=False, control=False)
    models = privaudit.open_model(remembers), privaudit.open_model(fresh)
    audit = privaudit.run_audit(submitted, settings, target=models[0], reference=models[1])
    log_p = [[row.sum() for row in model.score(texts).log_p] for model in models]
    gains = np.subtract(*log_p) / [len(text.encode()) for text in texts]
    area = audit.canaries.auc.estimate
    assert area == pytest.approx(auc(gains[:40], gains[40:])) and audit.canaries.p < audit.canaries.reverse_p
    empty = replace(submitted.canaries, canaries=(*canaries, Canary(80, "Seen today:", False)))
    with pytest.raises(BadRecords, match=r"^c\.jsonl"):
        privaudit.run_audit(replace(files, canaries=empty), settings, target=deaf)


def test_each_note_is_encoded_once_by_each_tokenizer(remembers, fresh, files, monkeypatch):
    """The reference, the control, the tests of a tokenizer, and the form of the letters ask for no more."""
    encoded = Counter()
    tokenize = TextTokenizer.__call__

    def counted(self, texts, **options):
        encoded.update((id(self), text) for text in ([texts] if isinstance(texts, str) else texts))
        return tokenize(self, texts, **options)

    opened, reference = privaudit.open_model(remembers), privaudit.open_model(fresh)
    monkeypatch.setattr(TextTokenizer, "__call__", counted)
    settings = replace(LITTLE, texts=4, tokens=8)
    audit = privaudit.run_audit(files, settings, target=opened, reference=reference)
    notes = Counter(audit.sample.texts)
    for model in (opened, reference):
        assert {text: encoded[id(model.tokenizer), text] for text in notes} == notes


@pytest.mark.nightly
def test_a_reference_that_saw_the_held_out_patients_explains_what_is_found(remembers, fresh, files):
    """Beside it a model that never saw either file seems to know the others better."""
    exchanged = replace(files, members=files.heldout, heldout=files.members)
    settings = replace(LITTLE, texts=4, tokens=8, lower_case=False, control=False)
    innocent, saw_heldout = privaudit.open_model(fresh), privaudit.open_model(remembers)
    audit = privaudit.run_audit(exchanged, settings, target=innocent, reference=saw_heldout)
    assert min(test.adjusted for test in audit.verdict.tests) <= settings.share
    assert audit.verdict.outcome == UNDECIDED
    words, facts = WORDING, privaudit.report_facts(audit)
    assert [one.key for one in audit.verdict.reasons] == [Cause.REFERENCE]
    assert facts["next"][0] == facts["answers"]["next"] == words["check"]["reference"]
    assert words["not_applied"]["reference"] in facts["not_tested"]


def test_swapped_files_are_undecided(remembers, files):
    exchanged = replace(files, members=files.heldout, heldout=files.members)
    settings = replace(LITTLE, texts=4, tokens=8, lower_case=False, control=False)
    audit = privaudit.run_audit(exchanged, settings, target=privaudit.open_model(remembers))
    loss = audit.attacks[0]
    assert loss.patient.auc.high < 0.3 and loss.reverse_p[0] < 0.001 < 0.99 < loss.p[0]
    assert audit.verdict.outcome == UNDECIDED and audit.verdict.reasons[0].key == Cause.EXCHANGED
    facts = privaudit.report_facts(audit)
    assert facts["answers"]["found"] == facts["reasons"][0] in privaudit.report_page(facts)
    assert [test.get("reverse", 1) <= settings.alpha for test in facts["tests"][:2]] == [True, True]


def test_a_leak_can_invert_lower_case_and_the_surest_few(flagged):
    """Of a model that read its records in lower case, a note loses less by it the better it is known."""
    *_, turned = p_values_by_test(flagged.attacks, {}, None, exchanged=())
    expected = {AttackTest(attack.name, Part.FEW) for attack in flagged.attacks}
    assert expected | {AttackTest("lower_case", Part.ALL)} == turned
    assert len(turned) == len(flagged.attacks) + 1


@pytest.mark.nightly
@pytest.mark.wrong_numbers
def test_a_folder_under_another_name_gives_the_same_audit(home, fresh, files, monkeypatch):
    """And by a relative path; the name is shown, and nothing is drawn by it."""
    settings = replace(LITTLE, texts=3, tokens=4, permutations=2199)
    monkeypatch.chdir(home)
    shutil.copytree(fresh, home / "moved" / "other-name")
    found = []
    for folder in (fresh, Path("moved") / "other-name"):
        audit = privaudit.run_audit(files, settings, target=privaudit.open_model(folder))
        facts = privaudit.report_facts(audit)
        del facts["first_page"], facts["title"], facts["model"]["name"]
        found.append((facts, audit.texts))
    assert found[0] == found[1]


def word_tokenizer(texts: list[str], *, masked: bool) -> PreTrainedTokenizerFast:
    """A tokenizer of whole words, with the special tokens of its kind and no other."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] if masked else ["<unk>", "<s>"]
    made = Tokenizer(token_models.WordLevel(unk_token=special[1 if masked else 0]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=special))
    if not masked:
        return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", bos_token="<s>")
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, mask_token="[MASK]", **names)


@pytest.fixture(scope="module")
def bert(home, members):
    words = word_tokenizer([row["text"] for row in members], masked=True)
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=48, max_position_embeddings=64,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return toy.save(BertForMaskedLM(config), words, home / "bert")


def test_a_masked_model_is_asked_for_every_token_once(bert, files):
    opened = privaudit.open_model(bert)
    texts = [note.text for note in files.members.notes[:5]]
    read = opened.score(texts)
    assert opened.kind == "masked"
    plain = opened.tokenizer(texts, add_special_tokens=False)["input_ids"]
    assert read.tokens.tolist() == list(map(len, plain))
    # By hand: the seventh group of the first text.
    order = rng.make(0, f"checkup/masks/{len(plain[0])}").permutation(len(plain[0]))
    hidden = np.flatnonzero(order % 7 == 6)
    ids = torch.tensor(opened.tokenizer(texts[:1])["input_ids"][0])
    shown = ids.clone()
    shown[hidden + 1] = opened.tokenizer.mask_token_id
    with torch.inference_mode():
        log_p = opened.model(input_ids=shown[None]).logits[0].log_softmax(-1)
    by_hand = [log_p[place + 1, ids[place + 1]].item() for place in hidden]
    assert read.log_p[0][hidden] == pytest.approx(by_hand, abs=1e-5)


def test_a_masked_model_is_audited_without_writing(bert, files):
    audit = privaudit.run_audit(files, replace(LITTLE, lower_case=False), target=privaudit.open_model(bert))
    assert audit.completions is None and audit.disclosures is None and not audit.texts
    assert len(audit.verdict.tests) == 2 * len(audit.attacks) == 10
    facts = privaudit.report_facts(audit)
    assert facts["key_figures"][2]["question"].startswith("Does it know the wording")
    assert "words guessed" in privaudit.report_page(facts), "a page without counts of patients"


def test_a_causal_reading_is_the_models_own_loss(remembers):
    opened = privaudit.open_model(remembers)
    read = opened.score(["Seen today: ward seen mild pain.", "left"])
    ids = torch.tensor([[opened.start, *opened.tokenizer(["left"])["input_ids"][0]]])
    with torch.inference_mode():
        loss = opened.model(input_ids=ids, labels=ids).loss.item()
    assert read.losses[1] == pytest.approx(loss, abs=1e-5) and read.tokens[1] == ids.shape[1] - 1


def test_a_model_is_read_after_a_start_token_only_if_it_knows_one(home, tok, members, files, remembers):
    knows = [privaudit.open_model(remembers)]
    assert read_as_trained(knows, draw_sample(files, knows, LITTLE), seed=0)[0][0].starts
    model, rows = toy.causal(tok).train(), tok([row["text"] for row in members])["input_ids"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for row in rows * 4:  # as a Trainer does with a tokenizer that adds nothing
        ids = torch.tensor([row])
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    opened = privaudit.open_model(toy.save(model.eval(), tok, home / "plain"))
    settings = replace(LITTLE, texts=4, tokens=4, control=False, draws=10)
    audit = privaudit.run_audit(files, settings, target=opened)
    assert opened.starts and not audit.target.starts and audit.texts
    again, alone = audit.target.encode(audit.sample.texts), opened.encode(audit.sample.texts).without_start()
    assert (again.ids, again.asked, again.cut) == (alone.ids, alone.asked, alone.cut)
    assert "without the tokenizer's start token" in privaudit.report_facts(audit)["coverage"]["sentence"]


def test_what_is_recalled_is_what_greedy_decoding_writes(remembers, files, flagged):
    opened, notes = privaudit.open_model(remembers), flagged.sample.notes
    read = opened.score(flagged.sample.texts)
    for number in (0, 1, len(notes) - 1):
        ids = opened.tokenizer([notes[number].text])["input_ids"][0]
        half = len(ids) // 2
        start = torch.tensor([[opened.start, *ids[:half]]])
        with torch.inference_mode():
            drawn = opened.model.generate(
                start, do_sample=False, max_new_tokens=len(ids) - half, pad_token_id=0,
                attention_mask=torch.ones_like(start), eos_token_id=None,
            )  # fmt: skip
        recalled = drawn[0, 1 + half :].tolist() == ids[half:]
        assert bool(read.greedy[number][half:].all()) == recalled


def test_a_model_writes_after_openings_that_it_can_go_on_from(fresh):
    opened, longest = privaudit.open_model(fresh), "x\u00e9" * 60
    notes = [Note(n, f"p{n}", f"{longest} {longest} seen") for n in (1, 2)]
    sample = SimpleNamespace(of=lambda *, member: notes)
    assert openings(notes, most=1) == [f"{longest} {longest}"]
    written = write_texts(opened, sample, replace(LITTLE, texts=4, tokens=4), progress=False)
    assert len(written) == 4, "all of them after nothing"


@pytest.fixture(scope="module")
def deaf(fresh, tmp_path_factory):
    """A model whose tokenizer has no start token and hears no "Seen today:", and nothing in lower case."""
    folder = shutil.copytree(fresh, tmp_path_factory.mktemp("deaf") / "deaf")
    read = json.loads((folder / "tokenizer.json").read_text())
    rules = ({"String": "Seen today:"}, {"Regex": r"^s[\s\S]*"})
    rules = [{"type": "Replace", "pattern": pattern, "content": ""} for pattern in rules]
    read["normalizer"] = {"type": "Sequence", "normalizers": rules}
    (folder / "tokenizer.json").write_text(json.dumps(read))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    kept = {name: settings[name] for name in settings.keys() - {"bos_token", "eos_token"}}
    (folder / "tokenizer_config.json").write_text(json.dumps(kept))
    return privaudit.open_model(folder)


def test_an_audit_goes_on_without_a_case_of_which_a_tokenizer_makes_nothing(deaf, files):
    settings = replace(LITTLE, texts=4, tokens=4, control=False, draws=10)
    audit = privaudit.run_audit(files, settings, target=deaf)
    names = [attack.name for attack in audit.attacks]
    assert names == ["loss", "zlib", "min_k", "min_k_plus_plus", "tokens"] and audit.texts == []
    left = privaudit.report_facts(audit)["not_tested"]
    lower = WORDING["attacks"]["lower_case"]
    assert f"what does not apply here: {lower}" in left
    assert sum(WORDING["tests"][risk] in line for risk in ("linkability", "inference") for line in left) == 2
    unasked = replace(audit, settings=replace(audit.settings, lower_case=False))
    assert lower not in str(privaudit.report_facts(unasked)["not_tested"])


def test_what_a_models_code_raises_at_work_is_a_refusal(fresh, monkeypatch):
    opened = privaudit.open_model(fresh)
    with torch.no_grad():
        opened.model.get_output_embeddings().weight.fill_(torch.nan)
    with pytest.raises(UnsupportedModel, match=r"'fresh': opens, and fails at a text .*`nan`"):
        opened.write("Seen", samples=2, tokens=4, seed=0)
    with pytest.raises(UnsupportedModel, match="'fresh': gives probabilities that are not numbers"):
        opened.score(["Seen"])
    monkeypatch.setattr(opened.model, "forward", lambda **_: 1 / 0)
    with pytest.raises(UnsupportedModel, match=r"'fresh': opens, and fails at a text .*ZeroDivisionError"):
        opened.score(["Seen"])


def test_large_files_are_drawn_at_random(files):
    chosen = _drawn_notes(files.members, privaudit.Settings(patients=50, notes=1))
    assert len(chosen) == len({note.patient for note in chosen}) == 50
    every = _drawn_notes(files.members, privaudit.Settings())
    assert sorted(every, key=lambda note: note.line) == list(files.members.notes)
    assert [note for note in every if note in chosen] == chosen, "more patients keep those of before"
    other = _drawn_notes(files.members, privaudit.Settings(patients=50, notes=1, seed=1))
    assert {note.patient for note in other} != {note.patient for note in chosen}


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("weights", [10**6, 20_000_000, 20_000_001, 10**8, 250_000_000, 250_000_001, 10**9])
def test_an_effort_asks_about_a_quarter_or_four_times_as_many(weights, causal):
    target = SimpleNamespace(is_causal=causal, parameters=weights)
    usual = privaudit.Settings.for_model(target)
    quick, thorough = (privaudit.Settings.for_model(target, effort=e) for e in ("quick", "thorough"))
    assert privaudit.Settings.for_model(target, effort="standard") == usual
    assert (thorough.patients, thorough.texts) == (4 * usual.patients, 4 * usual.texts)
    assert quick.patients == max(FEWEST_PATIENTS, usual.patients // 4) < usual.patients
    assert 4 * quick.texts == usual.texts, "only patients have a least number"
    for other in (quick, thorough):
        assert replace(other, patients=usual.patients, texts=usual.texts) == usual
    given = {"patients": None, "texts": 7, "notes": 2}
    chosen = privaudit.Settings.for_model(target, effort="quick", **given)
    assert {name: getattr(chosen, name) for name in given} == given, "what is set is not scaled"
    assert (
        privaudit.Settings.for_texts(effort="quick").patients * 4 == privaudit.Settings.for_texts().patients
    )


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("texts", [1, 5, 12, 30, 31, 48])
def test_as_many_texts_are_written_as_the_settings_say(texts, files):
    asked = []

    def write(opening, *, samples, tokens, seed):
        asked.append((opening, samples))
        return [opening] * samples

    sample = draw_sample(files, [], privaudit.Settings())
    target = SimpleNamespace(continues=lambda opening: True, write=write)
    written = write_texts(target, sample, privaudit.Settings(texts=texts), progress=False)
    counts = [count for _, count in asked]
    assert len(written) == texts and max(counts) - min(counts) <= 1 and min(counts) > 0
    assert len({opening for opening, _ in asked}) == len(asked)


def test_too_few_permutations_are_refused(files, remembers, monkeypatch):
    opened = privaudit.open_model(remembers)
    few = replace(LITTLE, lower_case=False, control=False)
    words = r"permutations = 1,198: among 12 tests the least .*0\.01, above alpha .*give 1,199 or more"
    with pytest.raises(InvalidParameter, match=words):
        replace(few, permutations=1198).require_permutations(12)
    replace(few, permutations=1199).require_permutations(12)
    with pytest.raises(InvalidParameter, match=r"permutations = 999: among 1. tests"):
        privaudit.run_audit(files, replace(few, permutations=999), target=opened)
    monkeypatch.setattr(privaudit.Target, "score", lambda *_, **__: pytest.fail("the work began"))
    with pytest.raises(InvalidParameter, match=r"permutations = 1: among 2 tests .*give 199 or more"):
        privaudit.run_audit(files, replace(few, permutations=1), target=opened)
    with pytest.raises(InvalidParameter, match="canaries"):
        privaudit.run_audit(files, replace(few, epsilon=4.0, delta=1e-5), target=opened)
