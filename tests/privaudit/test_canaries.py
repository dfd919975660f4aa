"""A kit of canaries: safe notes, fair coins, the right unit, and a check that they reach the loss."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
import toy_audit as toy
from scipy.optimize import brentq
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast, Trainer, TrainingArguments

from privaudit import CanaryCheck, Settings, cli, kit, read_files
from privaudit.kit import Unit
from privaudit.planting import fewest_canaries, make_canaries, refutes
from privaudit.probes.canaries import audit_canaries
from privaudit.reach import Loss, lost_canaries
from privaudit.records import Canary, read_canaries, read_records
from privhelpers import rng
from privhelpers.errors import BadRecords, InvalidParameter, TrainingFailed
from privhelpers.mechanisms import gdp_epsilon
from privhelpers.records._identifiers import refuse_unsafe

CLAIM = Settings(epsilon=8.0, delta=1e-5, permutations=9, draws=9)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with records that name their patients, held-out records, and a kit."""
    place, rows = tmp_path_factory.mktemp("kit"), toy.notes("m", 60, seed=1)
    for number, row in enumerate(rows):
        name = f"Ada{number} Zyxwv"
        row |= {"text": f"{name} (aged 44, call 617-222-{number:04d}): {row['text']}", "identifiers": [name]}
    toy.write(place / "m.jsonl", rows)
    toy.write(place / "h.jsonl", toy.notes("h", 60, seed=2))
    assert make(place, "kit") == 0
    return place


def make(home, name, *more):
    given = [f"--records={home / 'm.jsonl'}", f"--out={home / name}", "--seed=1", "--canaries=40", *more]
    return cli.main(["canaries", *given])


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_canary_looks_like_a_note_and_repeats_no_person(home):
    records, canaries = read_records(home / "m.jsonl"), read_canaries(home / "kit").canaries
    known = {word for note in records.notes for word in note.text.split()}
    for canary in canaries:
        refuse_unsafe(canary.text, "a canary")
        assert canary.secret in canary.text and "Zyxwv" not in canary.text
        rest = canary.text.replace(canary.secret, "").split()
        assert sum(word in known for word in rest) > len(rest) / 2
        assert not any(word in known for word in rest if sum(map(str.isdigit, word)) > 2)
    assert len({canary.secret for canary in canaries}) == len(canaries) == 80
    assert not {canary.patient for canary in canaries} & set(records.patients)


def test_the_training_file_has_every_record_and_each_inserted_copy(home):
    rows, records = lines_of(home / "kit" / "train.jsonl"), lines_of(home / "m.jsonl")
    canaries, manifest = read_canaries(home / "kit").canaries, kit.read_manifest(home / "kit")
    expected = [row["text"] for row in records]
    expected += [one.text for one in canaries for _ in range(one.copies * one.inserted)]
    assert sorted(row["text"] for row in rows) == sorted(expected)
    assert len(rows) == len(records) + manifest.lines
    assert manifest.canaries == {1: 40, 4: 20, 16: 20}
    assert manifest.refutes == refutes(40, 1e-5)


def test_coins_are_fair_and_do_not_follow_the_number_of_copies(home):
    canaries = make_canaries(read_records(home / "m.jsonl").notes, single=100, seed=4)
    for copies in (1, 4, 16):
        coins = [one.inserted for one in canaries if one.copies == copies]
        assert abs(np.mean(coins) - 0.5) < 4 * 0.5 / len(coins) ** 0.5


def test_the_audit_leaves_the_canaries_out_of_the_members(home):
    plain = read_files(home / "m.jsonl", home / "h.jsonl")
    for records in (home / "kit" / "train.jsonl", home / "m.jsonl"):
        files = read_files(records, home / "h.jsonl", home / "kit")
        assert sorted(note.text for note in files.members.notes) == sorted(
            note.text for note in plain.members.notes
        )
        assert files.members.lines == plain.members.lines
    with pytest.raises(BadRecords, match="trained on"):
        read_files(home / "h.jsonl", home / "m.jsonl", home / "kit")


def test_the_audit_finds_the_kit_of_its_records(home, monkeypatch):
    seen = []
    monkeypatch.setattr("privaudit.cli.run", lambda root, options: seen.append(options))
    (home / "net").mkdir(exist_ok=True)
    given = [f"--records={home / 'kit' / 'train.jsonl'}", f"--holdout={home / 'h.jsonl'}"]
    assert cli.main(["audit", *given, f"--model={home / 'net'}", "--epsilon=8", "--delta=1e-5"]) == 0
    assert seen[0].canaries == str(home / "kit")


@pytest.mark.parametrize("name", [kit.TRAIN, kit.CANARIES, kit.MANIFEST])
def test_a_kit_that_has_changed_is_refused(home, tmp_path, name):
    for path in (home / "kit").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes() + b" " * (path.name == name))
    if name == kit.MANIFEST:
        (tmp_path / name).write_text((home / "kit" / name).read_text().replace("record", "recordz", 1))
    with pytest.raises(BadRecords, match=name):
        read_canaries(tmp_path)


def test_a_kit_is_made_whole_or_not_at_all(home, capsys):
    assert make(home, "kit") == 2 and "is there already" in capsys.readouterr().err
    assert make(home, "few", "--canaries=3") == 2 and not (home / "few").exists()
    assert cli.main(["canaries", "--check=kit"]) == 2


def judged(unit, copies, coins, scores):
    canaries = [
        Canary(n, f"c{n}", bool(coin), copies=int(number))
        for n, (coin, number) in enumerate(zip(coins, copies, strict=True))
    ]
    manifest = kit.Manifest(
        files={}, records="", seed=0, unit=unit, canaries={}, inserted={}, lines=0, refutes=refutes(20, 1e-5)
    )
    return audit_canaries(canaries, scores, replace(CLAIM, epsilon=2.0), manifest)


def test_copies_refute_a_claim_for_a_patient_and_none_for_a_record():
    generator = rng.make(0, "copies")
    coins, copies = generator.random(400) < 0.5, np.repeat([1, 16], 200)
    scores = generator.normal(size=400) + 100 * coins * (copies == 16)
    assert judged(Unit.PATIENT, copies, coins, scores).claim.refuted
    by_record = judged(Unit.RECORD, copies, coins, scores)
    assert not by_record.claim.refuted and by_record.claim.gaussian.canaries == 200
    assert by_record.tiers[1].auc.estimate == 1 > by_record.tiers[0].auc.estimate


def test_coins_of_a_kit_that_split_evenly_are_no_pairs():
    coins = rng.make(0, "even").permutation(np.arange(200) % 2 == 0)
    claim = judged(Unit.RECORD, np.ones(200), coins, 1.0 * coins).claim
    assert claim.gaussian.canaries == 200 and claim.refuted_for_any


def test_the_usual_kit_refutes_eight_without_noise_and_no_honest_run():
    few = fewest_canaries(8.0, 1e-5)
    assert refutes(few, 1e-5).gaussian > 8 > refutes(few - 10, 1e-5).gaussian
    mu = brentq(lambda mu: gdp_epsilon(mu=mu, delta=1e-5) - 8, 0, 10)
    generator = rng.make(0, "honest")
    coins = generator.random(2 * few) < 0.5
    canaries = [Canary(n, f"c{n}", bool(coin)) for n, coin in enumerate(coins)]
    honest, exact = mu * coins + generator.normal(size=coins.size), 1.0 * coins
    exact[np.flatnonzero(coins)[0]] = -1  # one wrong guess
    refuted = [audit_canaries(canaries, scores, CLAIM).claim.refuted for scores in (honest, exact)]
    assert refuted == [False, True]


def test_the_sentence_about_gaussian_noise_is_not_said_of_every_mechanism():
    """Randomized response with epsilon 4 is honest, and its guesses are better than Gaussian noise allows."""
    generator = rng.make(0, "response")
    coins = generator.random(2000) < 0.5
    answers = np.where(generator.random(2000) < 1 / (1 + np.exp(-4)), coins, ~coins)
    canaries = [Canary(n, f"c{n}", bool(coin)) for n, coin in enumerate(coins)]
    claim = audit_canaries(canaries, 1.0 * answers, replace(CLAIM, epsilon=4.0)).claim
    assert not claim.refuted_for_any


@pytest.fixture(scope="module")
def tok(home):
    return toy.tokenizer([row["text"] for row in lines_of(home / "kit" / "train.jsonl")])


def test_canaries_that_never_reach_the_loss_are_named_with_the_reason(home, tok):
    canaries = read_canaries(home / "kit").canaries
    assert lost_canaries(tok, canaries, limit=200) == {}
    every = [canary.line for canary in canaries]
    assert lost_canaries(tok, canaries, limit=8) == {Loss.LENGTH: every}
    asked = [replace(canary, text=f"{canary.text} Answer: yes") for canary in canaries]
    assert lost_canaries(tok, asked, limit=200, mask_before="Answer:") == {Loss.MASK: every}
    asked = [replace(canary, text=f"Answer: {canary.text}") for canary in canaries]
    assert lost_canaries(tok, asked, limit=200, mask_before="Answer:") == {}
    assert lost_canaries(tok, canaries, limit=200, mask_before="no such text") == {Loss.MASK: every}
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "ward": 1}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    deaf = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    assert lost_canaries(deaf, canaries, limit=200) == {Loss.TOKENIZER: every}


def test_the_check_exits_with_three_if_a_canary_is_lost(home, tok, capsys):
    folder = toy.save(toy.causal(tok), tok, home / "read")
    given = ["canaries", f"--check={home / 'kit'}", f"--model={folder}"]
    assert cli.main([*given, "--max-length=96"]) == 0 and "all 80" in capsys.readouterr().err
    assert cli.main([*given, "--max-length=8"]) == 3
    assert "lines 1, 2, 3" in capsys.readouterr().err


def trained(home, tok, callbacks, *, cut=96, reader=True):
    texts = [row["text"] for row in lines_of(home / "kit" / "train.jsonl")]
    rows = [tok(text, truncation=True, max_length=cut) for text in texts]
    options = TrainingArguments(
        output_dir=str(home / "run"), num_train_epochs=1, per_device_train_batch_size=32, save_strategy="no",
        report_to=[], use_cpu=True, disable_tqdm=True, seed=3,
    )  # fmt: skip
    model = toy.causal(tok)
    collate = DataCollatorForLanguageModeling(tok, mlm=False)
    Trainer(
        model=model, args=options, train_dataset=rows, data_collator=collate, callbacks=callbacks,
        processing_class=tok if reader else None,
    ).train()  # fmt: skip
    return model.state_dict()


def test_the_callback_warns_of_what_was_never_seen_and_changes_no_training(home, tok):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        looked = trained(home, tok, [CanaryCheck(home / "kit", strict=True)])
    plain = trained(home, tok, [])
    assert all(torch.equal(looked[name], plain[name]) for name in plain)
    with pytest.warns(UserWarning, match="inserted canaries were in no labels"):
        trained(home, tok, [CanaryCheck(home / "kit")], cut=8)
    with pytest.raises(TrainingFailed, match=r"canaries\.jsonl"):
        trained(home, tok, [CanaryCheck(home / "kit", strict=True)], cut=8)
    with pytest.raises(InvalidParameter, match="processing_class"):
        trained(home, tok, [CanaryCheck(home / "kit")], reader=False)
