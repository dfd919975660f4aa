"""Small audits whose truth is known: what leaks is found, what does not is not, the rest is refused.

`tests/nightly/test_audit_truth_table.py` has the whole table of architectures, tokenizers, adapters, files.
"""

import json
from dataclasses import replace

import audit_cases
import pandas as pd
import pytest
import transformers
from audit_cases import Case
from tables import parquet

import privaudit
from privaudit.verdict import FLAGGED, NOTHING_FOUND, UNDECIDED
from privhelpers.errors import BadRecords, UnsupportedModel

pytestmark = pytest.mark.wrong_numbers

# Each is tried with a model that learned the members, and with one that learned other people.
CASES = (
    Case("Llama", "Unigram", "both", file="semicolons"),
    Case("BERT", "WordPiece", "embeddings", file="parquet"),
    Case("GPT-2", "WordPiece", file="tsv"),
    Case(file="csv", spelling="NFD"),
)
QUICK = (CASES[-1], replace(CASES[-1], leaks=False), CASES[1])
PAIRS = [replace(case, leaks=leaks) for case in CASES for leaks in (True, False)]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case in QUICK else pytest.mark.nightly, id=str(case)) for case in PAIRS],
)
def test_a_model_is_flagged_if_it_learned_the_members_and_only_then(case, tmp_path):
    audit = audit_cases.audit(case, tmp_path)
    assert (audit.verdict.outcome == FLAGGED) == case.leaks, audit.verdict.reasons
    if audit.disclosures is not None:  # a causal model that learned the notes by heart recites them
        assert (audit.disclosures.by_patient.p < 0.01) == case.leaks, audit.disclosures.by_patient


NFC_FIRST, NFD_FIRST = ("NFC", "NFD"), ("NFD", "NFC")


@pytest.mark.parametrize(
    ("spellings", "leaks"),
    [
        pytest.param(NFC_FIRST, True, id="NFC-NFD, members"),
        pytest.param(NFD_FIRST, False, id="NFD-NFC, other people"),
        pytest.param(NFD_FIRST, True, id="NFD-NFC, members", marks=pytest.mark.nightly),
        pytest.param(NFC_FIRST, False, id="NFC-NFD, other people", marks=pytest.mark.nightly),
    ],
)
def test_files_in_two_spellings_of_accents_hide_no_leak_and_make_none(spellings, leaks, tmp_path):
    """A byte-level tokenizer makes other tokens of each, and one program wrote each file."""
    case = Case(leaks=leaks)
    folder, _ = audit_cases.make_model(case, tmp_path)
    files = [
        audit_cases.write(replace(case, spelling=spelling), group, tmp_path)
        for spelling, group in zip(spellings, ("members", "heldout"), strict=True)
    ]
    audit = privaudit.run_audit(
        privaudit.read_files(*files), audit_cases.LITTLE, target=privaudit.open_model(folder)
    )
    assert "NFC" in audit.lost
    assert audit.verdict.outcome == (FLAGGED if leaks else NOTHING_FOUND), audit.verdict.reasons


@pytest.mark.parametrize("group", ("members", "others"))
def test_a_tokenizer_that_learned_the_members_is_flagged_with_weights_that_learned_nothing(group, tmp_path):
    learned = audit_cases.tokenizer("BPE").train_new_from_iterator(
        [note["text"] for note in audit_cases.notes(group)], vocab_size=1000, show_progress=False
    )
    model = audit_cases.fresh(Case(), vocab_size=len(learned))
    model.save_pretrained(tmp_path)
    learned.save_pretrained(tmp_path)
    files = [audit_cases.write(Case(), group, tmp_path) for group in ("members", "heldout")]
    settings = replace(audit_cases.LITTLE, texts=4, tokens=4)
    audit = privaudit.run_audit(privaudit.read_files(*files), settings, target=privaudit.open_model(tmp_path))
    tokens = next(attack for attack in audit.attacks if attack.name == "tokens")
    assert tokens.untrained.auc.low <= 0.5 <= tokens.untrained.auc.high, "a tokenizer that learned from both"
    assert audit.verdict.outcome == (FLAGGED if group == "members" else NOTHING_FOUND), audit.verdict.reasons
    assert (tokens.patient.auc.low > 0.9) == (group == "members")
    advice = " ".join(privaudit.report_facts(audit)["next"])
    assert ("differential privacy in the training alone does not protect" in advice) == (group == "members")


def test_a_reference_that_reads_less_of_each_note_blames_no_model(tmp_path):
    """The members' notes are shorter, and the two models differ in nothing but their contexts."""
    case = Case(leaks=False)
    folder, _ = audit_cases.make_model(case, tmp_path / "long")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    positions = model.transformer.wpe
    positions.weight.data = positions.weight.data[:64].clone()
    positions.num_embeddings = model.config.n_positions = 64
    short = audit_cases.save(model, case, tmp_path / "short")
    files = []
    for group, times in (("members", 2), ("heldout", 3)):
        notes = audit_cases.notes(group)
        rows = [note | {"text": " ".join([note["text"]] * times)} for note in notes]
        path = tmp_path / f"{group}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        files.append(path)
    settings = replace(audit_cases.LITTLE, texts=4, tokens=4, control=False)
    audit = privaudit.run_audit(
        privaudit.read_files(*files),
        settings,
        target=privaudit.open_model(folder),
        reference=privaudit.open_model(short),
    )
    areas = [attack.patient.auc for attack in audit.attacks if attack.name == "reference"]
    assert all(area.low <= 0.5 <= area.high for area in areas)
    assert audit.verdict.outcome == UNDECIDED, "the two files differ, and nothing was learned"


@pytest.mark.parametrize("architecture", ("BERT, not causal", "RoBERTa, not causal"))
def test_a_model_that_reads_ahead_is_refused_as_a_causal_one(architecture, tmp_path):
    case = Case(architecture, "WordPiece")
    with pytest.raises(UnsupportedModel, match="is_decoder"):
        privaudit.open_model(audit_cases.save(audit_cases.fresh(case), case, tmp_path))


@pytest.mark.parametrize("kind", ("csv", "tsv", "jsonl", "parquet"))
def test_records_without_an_identifier_in_their_own_text_are_refused(kind, tmp_path):
    """Every identifier is another patient's."""
    files = []
    for group in ("members", "heldout"):
        frame = pd.DataFrame(audit_cases.notes(group))
        frame["identifiers"] = list(frame.identifiers)[7:] + list(frame.identifiers)[:7]
        path = tmp_path / f"{group}.{kind}"
        files.append(path)
        if kind == "parquet":
            path.write_bytes(parquet(frame))
        elif kind == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_csv(path, sep="\t" if kind == "tsv" else ",", index=False)
    with pytest.raises(BadRecords, match="identifiers"):
        privaudit.read_files(*files)
