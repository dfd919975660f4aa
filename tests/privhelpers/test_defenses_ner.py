"""The recognizer of the build: same bytes for the same seed, no pickle, no network, merged spans."""

import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privhelpers import artifacts, defenses
from privhelpers.errors import DamagedArtifact, MissingArtifact
from privhelpers.records import make_hospital_records, make_public_corpus
from privhelpers.records._public import annotate_public

ROOT = Path(__file__).parents[2]
FOLDER = "scrubbing/ner"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something asked the network")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.fixture(scope="module")
def corpus():
    return annotate_public(make_public_corpus(seed=0, documents=500), seed=0)


@pytest.fixture(scope="module")
def recognizer(corpus):
    return defenses.train_ner(defenses.lesson(corpus), seed=0, epochs=4)


@pytest.fixture(scope="module")
def store(recognizer, tmp_path_factory):
    store = artifacts.Store(tmp_path_factory.mktemp("artifacts"), "test")
    defenses.save_ner(store, recognizer, FOLDER)
    return store


def files(store):
    return [p for p in sorted(store.path(FOLDER).rglob("*")) if p.is_file()]


@pytest.mark.nightly
def test_the_same_seed_gives_the_same_bytes_in_another_process(corpus, tmp_path):
    code = (
        "import sys; from pathlib import Path; from privhelpers import artifacts, defenses\n"
        "from privhelpers.records import make_public_corpus\n"
        "from privhelpers.records._public import annotate_public\n"
        "notes = annotate_public(make_public_corpus(seed=0, documents=40), seed=0)\n"
        "nlp = defenses.train_ner(notes, seed=3, epochs=1)\n"
        f"defenses.save_ner(artifacts.Store(Path(sys.argv[1]), 'test'), nlp, '{FOLDER}')\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "3", "PYTHONPATH": str(ROOT), "LANG": "C"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=True, env=environment, cwd=ROOT)
    here, there = (artifacts.Store(tmp_path / name, "test") for name in "ba")
    train = defenses.train_ner  # loads spaCy, whose import draws from the global generator
    before = random.getstate(), np.random.get_state()[1].tolist()
    recognizer = train(corpus[:40], seed=3, epochs=1)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    defenses.save_ner(here, recognizer, FOLDER)
    assert [p.name for p in files(here)] == [p.name for p in files(there)]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(files(here), files(there), strict=True))
    other = defenses.train_ner(corpus[:40], seed=4, epochs=1)
    assert other.to_bytes() != recognizer.to_bytes()


def test_a_changed_or_missing_file_is_refused(store, recognizer, tmp_path):
    copy = artifacts.Store(tmp_path, "test")
    defenses.save_ner(copy, recognizer, FOLDER)
    model = copy.path(FOLDER) / "ner" / "model"
    data = bytearray(model.read_bytes())
    data[len(data) // 2] ^= 1
    model.write_bytes(data)
    with pytest.raises(DamagedArtifact, match="model"):
        defenses.load_ner(copy, FOLDER)
    model.unlink()
    with pytest.raises(MissingArtifact, match="make book"):
        defenses.load_ner(copy, FOLDER)


def taken_out(notes, all_spans, identifiers):
    """Return the share of places that lie in a found span, and how many there are."""
    whole = [
        any(s.start <= place["start"] and place["end"] <= s.end for s in spans)
        for note, spans in zip(notes, all_spans, strict=True)
        for place in note["spans"]
        if place["identifier"] in identifiers
    ]
    return sum(whole) / len(whole), len(whole)


def test_the_recognizer_finds_names_in_notes_of_another_hospital(store):
    records = make_hospital_records(
        seed=4,
        patients=150,
        validation_patients=1,
        heldout_patients=1,
        canaries_per_level=1,
        report_share=1.0,
    )
    notes = [note for note in records.train if note["kind"] == "report"]
    texts = [note["text"] for note in notes]
    alone = defenses.NerScrubber(defenses.load_ner(store, FOLDER)).find_all(texts)
    names, _ = taken_out(notes, alone, {"name"})
    assert names > 0.5  # far from zero, where patterns stay
    both = defenses.NerScrubber(store.path(FOLDER), patterns=True)
    all_spans = both.find_all(texts)
    assert taken_out(notes, all_spans, {"name"})[0] >= names
    assert taken_out(notes, all_spans, {"ssn", "phone", "email", "mrn"})[0] == 1
    assert list(both.scrub(texts[0]).spans) == all_spans[0]


def test_presidio_merges_before_it_replaces(store):
    scrubber = defenses.PresidioScrubber(defenses.checked_folder(store, FOLDER))
    text = "SSN 000-12-0000, (212) 555-0123, card 4111111111111111, j.doe@mail.example.org"
    done = scrubber.scrub(text)
    assert all(f"[{kind}]" in done.text for kind in ("SSN", "PHONE", "CARD", "EMAIL"))
    assert not [c for c in done.text if c.isdigit()]
    assert done.text == defenses.replace(text, done.spans).text
