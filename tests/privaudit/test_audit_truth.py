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

import privaudit
from privaudit.verdict import FLAGGED, NOTHING_FOUND, UNDECIDED
from privhelpers.errors import BadRecords, UnsupportedModel

pytestmark = pytest.mark.wrong_numbers

LEAKS = (
    Case(file="csv", spelling="NFD"),
    Case("Llama", "Unigram", "both", file="semicolons"),
    Case("BERT", "WordPiece", "embeddings", file="parquet"),
    Case("GPT-2", "WordPiece", file="tsv"),
)


@pytest.mark.parametrize("case", LEAKS, ids=str)
@pytest.mark.parametrize("leaks", (True, False), ids=("members", "other people"))
def test_a_model_is_flagged_if_it_learned_the_members_and_only_then(case, leaks, tmp_path):
    audit = audit_cases.audit(replace(case, leaks=leaks), tmp_path)
    assert (audit.verdict.outcome == FLAGGED) == leaks, audit.verdict.reasons
    if audit.disclosures is not None:  # a causal model that learned the notes by heart recites them
        assert (audit.disclosures.by_patient.p < 0.01) == leaks, audit.disclosures.by_patient


@pytest.mark.parametrize("spellings", (("NFC", "NFD"), ("NFD", "NFC")), ids="-".join)
@pytest.mark.parametrize("leaks", (True, False), ids=("members", "other people"))
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
            frame.to_parquet(path)
        elif kind == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_csv(path, sep="\t" if kind == "tsv" else ",", index=False)
    with pytest.raises(BadRecords, match="identifiers"):
        privaudit.read_files(*files)
