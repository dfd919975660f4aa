"""Evidence bundles: what holds is what was made, to the byte; what a signature adds, and what none can."""

import base64
import dataclasses
import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import zipfile

import pytest
import toy_site
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bookmaker.runner import _archive, _bundle, _cli, _evidence, _seals
from bookmaker.runner._bundle import CRATE, ENVELOPE, STATEMENT
from privhelpers import ledger
from privhelpers.artifacts import Store
from privhelpers.errors import DamagedArtifact, InvalidParameter, LedgerDamaged, MissingArtifact
from privhelpers.text import rounded_up

HASH = {"data": "0" * 64, "parameters": "1" * 64, "code": "2" * 64}
CLAIM = {"epsilon": 4.0, "delta": 1e-5, "certified": 0.5, "refuted": False}


def spent(folder, steps, **changes):
    """Return the bytes of a ledger of a private run."""
    terms = ledger.Terms(
        run="dp-8", target_epsilon=8.0, delta=1e-5, noise_multiplier=1.5, sample_rate=0.04, steps=40,
        max_grad_norm=1.0, accountant="rdp", mode="release", fingerprint=HASH,
        **changes,
    )  # fmt: skip
    path = folder / f"{steps}.jsonl"
    with ledger.open_ledger(path, terms) as opened:
        opened.reserve(steps)
    return path.read_bytes()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    report = {"outcome": "undecided", "canaries": {"claim": CLAIM}}
    return {
        "report.html": b"<p>flagged</p>" * 40,
        "report.json": json.dumps(report).encode(),
        "figures/1.svg": b"<svg/>",
        "ledgers/ledger.jsonl": spent(tmp_path_factory.mktemp("ledger"), 20),
    }


@pytest.fixture(scope="module")
def about():
    inputs = [{"name": "m.jsonl", "sha256": "3" * 64, "role": "trained on"}]
    return _bundle.Evidence(
        "audit", "Audit of “net”", "2026-01-01T00:00:00Z", inputs, {"seed": 0}, {"torch": "2"},
        {"figures/1.svg": "Areas."},
    )  # fmt: skip


@pytest.fixture(scope="module")
def key():
    return Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def pem(folder, key, name="key"):
    """Write both halves of a key and return their names."""
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    paths = folder / f"{name}.pem", folder / f"{name}.pub"
    for path, data in zip(paths, (private, public), strict=True):
        path.write_bytes(data)
    return tuple(map(str, paths))


@pytest.fixture
def verified(tmp_path, capsys):
    """Return a function that verifies bytes, or files to pack: whether they hold, and the line."""

    def call(data, key=""):
        path = tmp_path / "out.zip"
        path.write_bytes(data if isinstance(data, bytes) else _archive.pack(data))
        holds, line = _bundle.verify(str(path), key), capsys.readouterr().out
        assert line.count("\n") == 1 and (": holds: " in line) == holds
        return holds, line

    return call


def test_the_line_says_what_holds(verified, about, files, key, tmp_path):
    _, public = pem(tmp_path, key)
    data = _bundle.make(about, files)
    holds, line = verified(data)
    epsilon = ledger.verify(files["ledgers/ledger.jsonl"], "x").epsilon
    assert holds and "every byte of its files is as stated: Audit of “net”; undecided; " in line
    beside = f"dp-8 epsilon {rounded_up(epsilon):g} ({_bundle.WORDS['brought']}); claim epsilon 4; "
    assert f"; undecided; {beside}" in line and "nothing ties the two" in line
    assert "unsigned, so it shows damage, not who made it" in line and _bundle.sha256(data) in line
    assert verified(data, public) == (False, "out.zip: does not hold: is not signed, and a key was named\n")
    data = _bundle.make(about, files, key)
    assert "that was not checked" in verified(data)[1]
    assert "signed by the key that was named" in verified(data, public)[1]
    assert _bundle.make(about, files, key) == data, "the same evidence gives the same bytes"


@pytest.mark.parametrize("signed", [False, True])
def test_a_thousand_changed_bytes_are_a_thousand_refusals(about, files, key, tmp_path, capsys, signed):
    _, public = pem(tmp_path, key)
    data, chance = _bundle.make(about, files, key if signed else None), random.Random(20 + signed)
    path, refused = tmp_path / "out.zip", 0
    for _ in range(1000):
        place, spoiled = chance.randrange(len(data)), bytearray(data)
        spoiled[place] ^= chance.randrange(1, 256)
        path.write_bytes(spoiled)
        refused += not _bundle.verify(str(path), public if signed else "")
    assert refused == 1000
    assert capsys.readouterr().out.count("does not hold") == 1000


def test_every_byte_around_the_files_counts():
    """Local headers, the list of files and the end: each byte, with each of its bits changed."""
    data = _archive.pack({"a": b"1", "b/c": b"23"})
    for place in range(len(data)):
        for bit in range(8):
            spoiled = bytearray(data)
            spoiled[place] ^= 1 << bit
            with pytest.raises(DamagedArtifact):
                _archive.unpack(bytes(spoiled))
    assert _archive.unpack(data) == {"a": b"1", "b/c": b"23"}
    for end in range(len(data)):
        with pytest.raises(DamagedArtifact):
            _archive.unpack(data[:end])


def test_what_is_missing_added_changed_or_swapped_is_named(verified, about, files, tmp_path):
    good = _archive.unpack(_bundle.make(about, files))
    other = spent(tmp_path, 21)
    cases = {
        "report.html is gone": {n: d for n, d in good.items() if n != "report.html"},
        "more.txt was added": good | {"more.txt": b""},
        "report.html changed": good | {"report.html": b"<p>nothing found</p>"},
        "ledgers/ledger.jsonl changed": good | {"ledgers/ledger.jsonl": other},
        f"{CRATE} is gone": {n: d for n, d in good.items() if n != CRATE},
        "has no statement.json": {n: d for n, d in good.items() if n != STATEMENT},
        f"{ENVELOPE} was added": good | {ENVELOPE: b"{}"},
    }
    for words, spoiled in cases.items():
        holds, line = verified(spoiled)
        assert not holds and words in line, line


def restated(files, **changes):
    """Return files with a statement whose hashes are theirs, as somebody who edits by hand would make it."""
    statement = json.loads(files[STATEMENT])
    every = {name: data for name, data in files.items() if name not in (STATEMENT, ENVELOPE)}
    statement["subject"] = [
        {"name": name, "digest": {"sha256": _bundle.sha256(every[name])}} for name in sorted(every)
    ]
    statement["predicate"] |= changes
    return files | {STATEMENT: _bundle.to_json(statement)}


def swapped(files, other):
    """Return files with another ledger, whose hash the description has."""
    name = "ledgers/ledger.jsonl"
    old, new = (_bundle.sha256(data).encode() for data in (files[name], other))
    return files | {name: other, CRATE: files[CRATE].replace(old, new)}


def test_another_ledger_is_refused_although_its_hash_was_entered(verified, about, files, tmp_path):
    good = _archive.unpack(_bundle.make(about, files))
    assert restated(good) == good
    holds, line = verified(restated(swapped(good, spent(tmp_path, 21))))
    assert not holds and "its guarantees are not those of its ledgers and its report" in line
    registry = json.loads(good[STATEMENT])["predicate"]["registry"]
    registry["guarantees"][0]["epsilon"] /= 2
    assert not verified(restated(good, registry=registry))[0]
    crate = good[CRATE].replace(b"3" * 64, b"4" * 64)
    assert "does not describe these files and inputs" in verified(restated(good | {CRATE: crate}))[1]
    other = good[STATEMENT].replace(b"evidence:1", b"evidence:2")
    assert "is of another kind" in verified(good | {STATEMENT: other})[1]
    spaced = good[STATEMENT].replace(b'"subject": [', b'"subject":  [')
    assert "is not written as such statements are" in verified(good | {STATEMENT: spaced})[1]
    broken = files["ledgers/ledger.jsonl"].replace(b'"delta":1e-05', b'"delta":1e-06')
    holds, line = verified(restated(swapped(good, broken)))
    assert not holds and "ledgers/ledger.jsonl, line 1" in line
    with pytest.raises(LedgerDamaged):
        _bundle.make(about, files | {"ledgers/ledger.jsonl": broken})


def test_a_ledger_of_a_part_under_study_is_no_guarantee(about, files, tmp_path):
    studied = spent(tmp_path, 20, not_counted=["make_draws: everybody"])
    words = r"ledger.jsonl: states no guarantee, .*not counted \(make_draws: everybody\)"
    with pytest.raises(InvalidParameter, match=words):
        _bundle.make(about, files | {"ledgers/ledger.jsonl": studied})


def test_only_a_key_tells_who_made_it(verified, about, files, key, tmp_path):
    """Whoever can write a bundle can write another one: without a key that one holds, with it none does."""
    _, public = pem(tmp_path, key)
    mallory = Ed25519PrivateKey.from_private_bytes(bytes(32))
    signed = _archive.unpack(_bundle.make(about, files, key))
    lie = files | {"report.html": b"<p>nothing found</p>"}
    assert verified(_bundle.make(about, lie))[0], "no hash in a file can prevent this"
    forgeries = {
        "is not signed": _bundle.make(about, lie),
        "is not signed by this key": _bundle.make(about, lie, mallory),
        f"{ENVELOPE} is not about": _archive.unpack(_bundle.make(about, lie, key))
        | {ENVELOPE: signed[ENVELOPE]},
        f"{ENVELOPE} is gone": {name: data for name, data in signed.items() if name != ENVELOPE},
    }
    for words, forged in forgeries.items():
        holds, line = verified(forged, public)
        assert not holds and words in line, line
    # The name of the right key over another one's signature, and the right signature under another name.
    stated = _archive.unpack(_bundle.make(about, lie, key))[STATEMENT]
    right, wrong = (
        json.loads(data)["predicate"]["key"] for data in (stated, forgeries_of(mallory, about, lie))
    )
    forged = _bundle._envelope(stated, right, mallory.sign(_bundle._encoded(stated)))
    every = _archive.unpack(_bundle.make(about, lie, key)) | {ENVELOPE: forged}
    assert "is not signed by this key" in verified(every, public)[1]
    stated = forgeries_of(mallory, about, lie)
    forged = _bundle._envelope(stated, wrong, key.sign(_bundle._encoded(stated)))
    every = _archive.unpack(_bundle.make(about, lie, mallory)) | {ENVELOPE: forged}
    assert "names another key" in verified(every, public)[1]


def forgeries_of(key, about, files):
    return _archive.unpack(_bundle.make(about, files, key))[STATEMENT]


def test_the_envelope_is_what_other_tools_check(about, files, key):
    """DSSE 1.0 with an in-toto statement 1: what is signed holds the type, the statement and both lengths."""
    made = _archive.unpack(_bundle.make(about, files, key))
    envelope = json.loads(made[ENVELOPE])
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    payload = base64.b64decode(envelope["payload"])
    assert payload == made[STATEMENT] and json.loads(payload)["_type"] == "https://in-toto.io/Statement/v1"
    signed = b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(payload), payload)
    key.public_key().verify(base64.b64decode(envelope["signatures"][0]["sig"]), signed)


def test_the_description_is_an_ro_crate_whose_links_lead_somewhere(about, files, key):
    made = _archive.unpack(_bundle.make(about, files, key))
    crate = json.loads(made[CRATE])
    assert crate["@context"] == "https://w3id.org/ro/crate/1.2/context"
    nodes = {node["@id"]: node for node in crate["@graph"]}
    assert len(nodes) == len(crate["@graph"]) and nodes[CRATE]["about"] == {"@id": "./"}
    assert {"name", "description", "datePublished", "license"} <= nodes["./"].keys()
    assert {part["@id"] for part in nodes["./"]["hasPart"]} == made.keys() - {CRATE}
    links = [
        link
        for node in nodes.values()
        for value in node.values()
        if isinstance(value, list)
        for link in value
    ]
    assert {link["@id"] for link in links} <= nodes.keys()
    assert nodes["#input-1"]["sha256"] == "3" * 64 and nodes["figures/1.svg"]["name"] == "Areas."
    assert all(nodes[name]["sha256"] == _bundle.sha256(data) for name, data in files.items())


def test_a_registry_finds_its_fields_and_every_topic_an_answer(about, files):
    predicate = json.loads(_archive.unpack(_bundle.make(about, files))[STATEMENT])["predicate"]
    counted, claimed = predicate["registry"]["guarantees"]
    record = ledger.verify(files["ledgers/ledger.jsonl"], "x")
    assert [counted[n] for n in ("unit", "adjacency", "sampler", "accountant", "delta", "epsilon")] == [
        "patient", "add/remove", "Poisson", "rdp", 1e-5, record.epsilon
    ]  # fmt: skip
    assert counted["mode"] == "release" and "one copy of the ledger" in counted["holds"]
    assert counted["holds"].endswith(_bundle.WORDS["brought"]) and "nothing ties" not in claimed["holds"]
    assert claimed["unit"] == "record" and claimed["accountant"] is claimed["sampler"] is None
    assert predicate["registry"]["not_protected"] and "Neither the model" in predicate["registry"]["released"]
    answers = {one["topic"]: one["answer"] for one in predicate["nist_sp_800_226"]}
    assert len(answers) == len(_bundle.WORDS["nist"]) and all(answers.values())
    assert (
        f"dp-8: epsilon {rounded_up(record.epsilon):g} at delta 1e-05; claim: epsilon 4"
        in answers["privacy parameters"]
    )
    assert "sampler Poisson; accountant rdp; claim: mechanism" in answers["algorithm and accounting"]
    bare = _archive.unpack(_bundle.make(about, {"report.html": b""}))
    answers = json.loads(bare[STATEMENT])["predicate"]["nist_sp_800_226"]
    assert answers[1]["answer"] == "No guarantee is counted or claimed here."


def test_a_bundle_of_another_version_holds_by_what_does_not_depend_on_words(
    verified, about, files, key, tmp_path, monkeypatch
):
    _, public = pem(tmp_path, key)
    with monkeypatch.context() as patch:
        patch.setattr(_bundle, "FORM", "5" * 64)
        patch.setattr(_bundle, "WORDS", _bundle.WORDS | {"not_protected": ["other words"]})
        old, signed = _bundle.make(about, files), _bundle.make(about, files, key)
    holds, line = verified(old)
    assert holds and "made by another version, so its words were not compared" in line
    assert "signed by the key that was named" in verified(signed, public)[1]
    good = _archive.unpack(old)
    assert not verified(restated(swapped(good, spent(tmp_path, 21))))[0]
    assert "its outcome is not that" in verified(restated(good, outcome="nothing found"))[1]
    assert "does not say which form" in verified(restated(good, form="x"))[1]
    assert "statement.json does not follow" in verified(restated(good, form=_bundle.FORM))[1]


def zipped(*entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return buffer.getvalue()


def info(name, mode=_archive.PLAIN, compression=zipfile.ZIP_STORED):
    entry = zipfile.ZipInfo(name, _archive.DATE)
    entry.create_system, entry.external_attr, entry.compress_type = 3, mode << 16, compression
    return entry


def end(size, at, count=1):
    return _archive.END.pack(b"PK\x05\x06", 0, 0, count, count, size, at, 0)


TRICKS = {
    "name of a file": zipped((info("../../etc/passwd"), b"x")),
    "is no name": zipped((info("/etc/passwd"), b"x")),
    "c:": zipped((info("c:\\x"), b"x")),
    "is a link": zipped((info("report.html", 0o120777), b"/etc/passwd")),
    "or no plain file": zipped((info("report.html", 0o100755), b"x")),
    "is compressed": zipped((info("bomb", compression=zipfile.ZIP_DEFLATED), b"\0" * 10_000_000)),
    "is no archive": b"",
    "was cut": b"PK\x05\x06",
    "after its end": _archive.pack({"a": b"1"}) + b"\n",
    "belong to none": b"#!/bin/sh\n" + _archive.pack({"a": b"1"}),
    "more than any bundle": bytes(_archive.MOST + 1),
    "something stands": bytes(_archive.DIRECTORY + 100) + end(_archive.DIRECTORY + 1, 0),
    "no archive, was": _archive.END_64 + bytes(16) + end(46, 0),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_tricks_of_archives_are_refused(verified):
    for words, data in TRICKS.items():
        holds, line = verified(data)
        assert not holds and words in line, (words, line)
    assert "one name" in verified(zipped((info("a"), b"1"), (info("a"), b"2")))[1]
    locked = bytearray(_archive.pack({"a": b"1"}))
    for start in (locked.find(b"PK\x03\x04") + 6, locked.find(b"PK\x01\x02") + 8):
        struct.pack_into("<H", locked, start, 1)  # the bit of an encrypted file
    assert "is damaged" in verified(bytes(locked))[1]


def test_files_that_overlap_are_refused():
    """Thousands of entries that all point at the same bytes would be read again and again."""
    data = _archive.pack({"a": b"x" * 1000})
    at = data.find(b"PK\x01\x02")
    local, entry = data[:at], data[at : -_archive.END.size]
    entries = b"".join(entry[:46] + b"%c" % letter + entry[47:] for letter in b"abcdefgh")
    with pytest.raises(DamagedArtifact, match=r"overlap|damaged"):
        _archive.unpack(local + entries + end(len(entries), at, count=8))


@pytest.mark.parametrize(
    "statement",
    [
        b"", b"[]", b"{}", b"null", b'{"predicate": 1, "subject": []}', b"[" * 9999, b'{"a": 1, "a": 2}',
        b'{"subject": [], "predicate": {"key": null}}', b"\xff",
        b'{"subject": [], "predicate": {"key": null, "about": {}}}',
    ],
)  # fmt: skip
def test_a_statement_that_is_none_is_refused_in_one_line(verified, statement):
    holds, line = verified({STATEMENT: statement})
    assert not holds and line.startswith("out.zip: does not hold: ")


@pytest.mark.parametrize(
    ("title", "outcome", "epsilon"),
    [(3, "a", 1.0), ("t", ["a"], 1.0), ("t", "a", "8"), ("t", "a", 10**400), ("t", "a", None)],
    ids=["title", "outcome", "text", "huge", "none"],
)
def test_words_and_numbers_of_the_wrong_kind_are_refused_in_one_line(
    verified, about, files, monkeypatch, title, outcome, epsilon
):
    report = {"outcome": outcome, "canaries": {"claim": CLAIM | {"epsilon": epsilon}}}
    forged = files | {"report.json": json.dumps(report).encode()}
    with monkeypatch.context() as other:  # by a version whose words are not compared
        other.setattr(_bundle, "FORM", "a" * 64)
        other.setattr(_bundle, "_answer", lambda *_: "")
        data = _bundle.make(dataclasses.replace(about, title=title), forged)
    holds, line = verified(data)
    assert not holds and "does not hold: it has no statement.json, or one that is not ours" in line


def test_a_terminal_that_lacks_a_character_gets_its_number(about, files, tmp_path):
    (tmp_path / "out.zip").write_bytes(_bundle.make(about, files))
    command = [sys.executable, "-m", "bookmaker.runner", "verify", f"--bundle={tmp_path / 'out.zip'}"]
    narrow = os.environ | {"PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(command, env=narrow, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and r"Audit of \u201cnet\u201d" in ended.stdout


def test_a_ledger_is_counted_once(verified, about, files, monkeypatch):
    data, counted, count = _bundle.make(about, files), [], ledger.verify

    def watched(*given):
        counted.append(given[-1])
        return count(*given)

    monkeypatch.setattr(ledger, "verify", watched)
    assert verified(data)[0] and counted == ["ledgers/ledger.jsonl"]


def test_a_bundle_of_more_ledgers_than_can_be_counted_is_refused(verified, about, files, monkeypatch):
    many = {f"ledgers/{n}.jsonl": files["ledgers/ledger.jsonl"] for n in range(4)}
    monkeypatch.setattr(_bundle, "MOST_LEDGERS", 3)
    with pytest.raises(InvalidParameter, match="has 4 ledgers; 3 at most are counted"):
        _bundle.make(about, many)
    monkeypatch.undo()
    data = _bundle.make(about, many)
    assert verified(data)[0]
    monkeypatch.setattr(_bundle, "MOST_LEDGERS", 3)
    monkeypatch.setattr(ledger, "verify", lambda *_: pytest.fail("one was counted"))
    holds, line = verified(data)
    assert not holds and "does not hold: has 4 ledgers; 3 at most are counted" in line


def test_a_name_in_a_statement_moves_no_cursor(verified, about, files):
    good = _archive.unpack(_bundle.make(about, files))
    statement = json.loads(good[STATEMENT])
    statement["subject"][0]["name"] = "\x1b[2J\n"
    line = verified(good | {STATEMENT: _bundle.to_json(statement)})[1]
    assert "does not hold" in line and "\x1b" not in line


def test_a_name_in_a_list_of_hashes_moves_no_cursor_either():
    name = "\x1b[2J\0\n"
    assert _seals.difference({name: "1"}, {}) == r"\x1b[2J\x00\n is gone"
    assert _seals.difference({}, {name: "1"}) == r"\x1b[2J\x00\n was added"
    assert _seals.difference({name: "2"}, {name: "1"}) == r"\x1b[2J\x00\n changed"


def test_what_is_too_large_for_a_bundle_is_refused(monkeypatch, about, files):
    monkeypatch.setattr(_archive, "MOST", 1000)
    with pytest.raises(InvalidParameter, match="leave out the PDF"):
        _bundle.make(about, files)


def test_keys_that_are_none_are_refused(tmp_path, key):
    private, public = pem(tmp_path, key)
    assert _bundle.private_key("") is None
    assert _bundle.private_key(private).public_key() == key.public_key()
    (tmp_path / "no").write_text("x")
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    )
    (tmp_path / "locked").write_bytes(locked)
    for path in (public, tmp_path / "no", tmp_path / "locked"):
        with pytest.raises(InvalidParameter, match="is no private Ed25519 key in PEM without a passphrase"):
            _bundle.private_key(str(path))
    with pytest.raises(InvalidParameter, match="is no public Ed25519 key"):
        _bundle.verify("x.zip", private)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"x" * 10**5)
    for name, words in (("pipe", "it is no regular file"), ("long", "it has more than 10,000 bytes")):
        with pytest.raises(MissingArtifact, match=f"KEY=.*: cannot be read .{words}"):
            _bundle.private_key(str(tmp_path / name))
    with pytest.raises(MissingArtifact, match=r"BUNDLE=.*: cannot be read .it is no regular file"):
        _bundle.verify(str(tmp_path / "pipe"))
    with pytest.raises(MissingArtifact, match="cannot be read"):
        _bundle.private_key(str(tmp_path / "gone"))


@pytest.fixture(scope="module")
def book(tmp_path_factory, files):
    """A toy book, whose private runs left ledgers."""
    root = toy_site.build(tmp_path_factory.mktemp("toy") / "book")
    store = Store(root / "runs" / "toy" / "artifacts", "toy")
    for job in toy_site.jobs(root):
        if job.slug == "private_training":
            store.write_bytes(f"{job.artifacts}/ledger.jsonl", files["ledgers/ledger.jsonl"])
    store.write_jsonl("comparison/measurements.jsonl", [{"auc": 0.5}])
    toy_site.record_files(root)
    return root


def test_a_profile_has_a_bundle(book, tmp_path, monkeypatch, capsys, key):
    monkeypatch.chdir(book)
    private, public = pem(tmp_path, key)
    assert _cli.main(["bundle", "--profile=toy", "--bundle=", "--key="]) == 0
    path = book / "runs" / "toy" / "evidence.zip"
    assert _cli.main(["verify", f"--bundle={path}"]) == 0
    line = capsys.readouterr().out
    assert "Results of the profile “toy”; dp-8 epsilon" in line and "unsigned" in line
    assert "nothing ties" not in line, "its ledgers are those of its own runs"
    names = _archive.unpack(path.read_bytes()).keys()
    assert {"manifest.json", "summary.json", "measurements.jsonl", "figures/fig-bars.png"} <= names
    assert len([name for name in names if name.startswith("ledgers/dp-eps-")]) == 3
    before = path.read_bytes()
    assert _cli.main(["bundle", "--profile=toy"]) == 0 and path.read_bytes() == before
    mine = tmp_path / "mine.zip"
    assert _cli.main(["bundle", "--profile=toy", f"--bundle={mine}", f"--key={private}"]) == 0
    assert _cli.main(["verify", f"--bundle={mine}", f"--key={public}"]) == 0
    assert _cli.main(["bundle", "--profile=toy", f"--bundle={mine}"]) == 2, "it is there already"
    assert _cli.main(["verify", f"--bundle={tmp_path / 'gone.zip'}"]) == 2
    mine.write_bytes(mine.read_bytes() + b" ")
    assert _cli.main(["verify", f"--bundle={mine}"]) == 1


def test_a_profile_whose_files_changed_has_none(book, tmp_path, monkeypatch, capsys):
    root = shutil.copytree(book, tmp_path / "book", ignore=shutil.ignore_patterns("evidence.zip"))
    monkeypatch.chdir(root)
    path = root / "runs" / "toy" / "artifacts" / "comparison" / "measurements.jsonl"
    path.write_bytes(path.read_bytes().replace(b"0.5", b"0.4"))
    assert _cli.main(["bundle", "--profile=toy"]) == 2
    assert "measurements.jsonl" in capsys.readouterr().err
    assert not (root / "runs" / "toy" / "evidence.zip").exists()


def test_evidence_names_every_input_of_an_audit():
    facts = {
        "title": "t", "settings": {}, "versions": {},
        "model": {
            "files": {"config.json": "1" * 64}, "reference_files": {"model.safetensors": "4" * 64},
        },
        "data": [{"file": "m.jsonl", "sha256": "2" * 64, "role": "trained on"}],
        "canary_file": {"file": "c.jsonl", "sha256": "3" * 64}, "synthetic": None,
    }  # fmt: skip
    about, files = _evidence.of_audit(
        facts, {"report.html": b""}, {"Areas.": b"<svg/>"}, made="now", ledger=None
    )
    assert [(one["name"], one["sha256"][0], one["role"]) for one in about.inputs] == [
        ("m.jsonl", "2", "trained on"), ("c.jsonl", "3", "canary"), ("config.json", "1", "model"),
        ("model.safetensors", "4", "reference model"),
    ]  # fmt: skip
    assert files.keys() == {"report.html", "figures/1.svg"} and about.captions == {"figures/1.svg": "Areas."}
    about, files = _evidence.of_audit(facts, {}, {}, made="now", ledger=b"{}")
    assert files.keys() == about.captions.keys() == {"ledgers/ledger.jsonl"}
    assert "nothing ties the two" in about.captions["ledgers/ledger.jsonl"]
