"""Evidence bundles: what holds is what was made; what a signature adds, and what it cannot."""

import io
import json
import os
import shutil
import subprocess
import zipfile

import pytest
import toy_site
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bookmaker.runner import cli
from privaudit import bundle
from privaudit.bundle import SIGNATURE, SUMS
from privhelpers import ledger
from privhelpers.accounting import PrivacyPlan
from privhelpers.artifacts import Store, first_difference
from privhelpers.errors import DamagedArtifact, InvalidParameter, LedgerDamaged, MissingArtifact
from privhelpers.text import rounded_up

HASH = {"data": "0" * 64, "parameters": "1" * 64, "code": "2" * 64}


def spent(folder, steps, **changes):
    """Return the bytes of a ledger of a private run."""
    plan = PrivacyPlan(
        target_epsilon=8.0, delta=1e-5, noise_multiplier=1.5, sample_rate=0.04, steps=40,
        max_grad_norm=1.0, units=500, accountant="rdp",
    )  # fmt: skip
    header = ledger.Header(run="dp-8", plan=plan, mode="release", fingerprint=HASH, **changes)
    path = folder / f"{steps}.jsonl"
    with ledger.open_ledger(path, header) as opened:
        opened.reserve(steps)
    return path.read_bytes()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return {
        "report.html": b"<p>flagged</p>" * 40,
        "report.json": json.dumps({"title": "Audit of “net”", "outcome": "undecided"}).encode(),
        "figures/1.svg": b"<svg/>",
        "ledgers/ledger.jsonl": spent(tmp_path_factory.mktemp("ledger"), 20),
    }


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


def zipped(files):
    """Return a zip of some (name, bytes), whatever they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files:
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture
def verified(tmp_path, capsys):
    """Return a function that verifies bytes, or files to pack: whether they hold, and the line."""

    def call(data, key=""):
        path = tmp_path / "out.zip"
        path.write_bytes(data if isinstance(data, bytes) else zipped(data.items()))
        holds, line = bundle.verify(str(path), key), capsys.readouterr().out
        assert line.count("\n") == 1 and (": holds: " in line) == holds
        return holds, line

    return call


def test_the_line_says_what_holds_and_who_signed(verified, files, key, tmp_path):
    _, public = pem(tmp_path, key)
    data = bundle.make(files)
    holds, line = verified(data)
    epsilon = ledger.verify(files["ledgers/ledger.jsonl"], "x").epsilon
    assert holds and "Audit of “net”; undecided; " in line
    assert (
        f"dp-8 epsilon {rounded_up(epsilon):g} at delta 1e-05" in line and bundle.WORDS["user_ledger"] in line
    )
    assert "unsigned, so it shows damage" in line and bundle.sha256(data) in line
    assert not verified(data, public)[0], "a key was named, and no one signed"
    signed = bundle.make(files, key)
    assert "the signer was not checked" in verified(signed)[1]
    assert "signed by the key that was named" in verified(signed, public)[1]
    assert bundle.make(files, key) == signed, "the same files give the same bytes"


@pytest.mark.parametrize("name", ["report.html", "figures/1.svg", "ledgers/ledger.jsonl"])
def test_a_file_that_changed_is_missing_or_was_added_is_named(verified, files, key, tmp_path, name):
    _, public = pem(tmp_path, key)
    made = bundle.unpack(bundle.make(files, key))
    others = made | {name: made[name] + b" "}, {n: made[n] for n in made if n != name}
    for changed in (*others, made | {"new.txt": b"x"}):
        holds, line = verified(changed, public)
        assert not holds and (name if "new.txt" not in changed else "new.txt") in line


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_is_not_a_bundle_does_not_hold(verified, files):
    good = bundle.make(files)
    twice = zipped([*bundle.unpack(good).items(), ("report.html", b"other")])
    for data in (b"", b"x", good[:-30], twice, zipped([("report.html", b"x")])):
        assert not verified(data)[0]


def test_files_that_would_grow_are_not_read(monkeypatch, files):
    monkeypatch.setattr(bundle, "MOST", 100)
    with pytest.raises(DamagedArtifact):
        bundle.unpack(bundle.make(files))


def test_without_the_key_no_one_can_replace_a_signed_bundle(verified, files, key, tmp_path):
    _, public = pem(tmp_path, key)
    mallory = Ed25519PrivateKey.generate()
    lie = {**files, "report.html": b"<p>nothing found</p>"}
    assert verified(bundle.make(lie))[0], "no hash in a file can prevent this"
    signature = bundle.unpack(bundle.make(files, key))[SIGNATURE]
    copied = bundle.unpack(bundle.make(lie)) | {SIGNATURE: signature}
    for forged in (bundle.make(lie), bundle.make(lie, mallory), copied):
        assert not verified(forged, public)[0]


def test_other_programs_check_the_same(files, key, tmp_path):
    _, public = pem(tmp_path, key)
    with zipfile.ZipFile(io.BytesIO(bundle.make(files, key))) as archive:
        archive.extractall(tmp_path / "out")
    openssl = ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", public, "-in", SUMS]
    for command in (["sha256sum", "-c", "--strict", SUMS], [*openssl, "-sigfile", SIGNATURE]):
        subprocess.run(command, cwd=tmp_path / "out", check=True, capture_output=True)


def test_a_ledger_that_is_damaged_or_states_no_guarantee_is_refused(verified, files, tmp_path):
    broken = files["ledgers/ledger.jsonl"].replace(b"0.04", b"0.05")
    with pytest.raises(LedgerDamaged):
        bundle.make(files | {"ledgers/ledger.jsonl": broken})
    studied = spent(tmp_path, 10, not_counted=("a sampler under study",))
    with pytest.raises(InvalidParameter):
        bundle.make(files | {"ledgers/ledger.jsonl": studied})
    sums = "".join(f"{bundle.sha256(data)}  {name}\n" for name, data in {"ledgers/l.jsonl": broken}.items())
    assert not verified({"ledgers/l.jsonl": broken, SUMS: sums.encode()})[0]


def test_control_characters_are_spelled_out(verified, files):
    name = "\x1b[2J\0\n"
    assert first_difference({name: "1"}, {}) == r"\x1b[2J\x00\n is gone"
    assert first_difference({}, {name: "1"}) == r"\x1b[2J\x00\n was added"
    title = json.dumps({"title": "\x1b[2J\n" * 500}).encode()
    line = verified(bundle.make(files | {"report.json": title}))[1]
    assert "\x1b" not in line and len(line) < 2500


def test_keys_of_another_kind_are_refused(tmp_path, key):
    private, public = pem(tmp_path, key)
    assert bundle.private_key("") is None
    assert bundle.private_key(private).public_key() == key.public_key()
    (tmp_path / "no").write_text("x")
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    )
    (tmp_path / "locked").write_bytes(locked)
    for path in (public, tmp_path / "no", tmp_path / "locked"):
        with pytest.raises(InvalidParameter, match=r"^key "):
            bundle.private_key(str(path))
    with pytest.raises(InvalidParameter, match=r"^key "):
        bundle.verify("x.zip", private)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"x" * 10**5)
    for name in ("pipe", "long", "gone"):
        with pytest.raises(MissingArtifact, match=r"^key "):
            bundle.private_key(str(tmp_path / name))
    for name in ("pipe", "gone"):
        with pytest.raises(MissingArtifact, match=r"^bundle "):
            bundle.verify(str(tmp_path / name))


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
    assert cli.main(["bundle", "--profile=toy", "--bundle=", "--key="]) == 0
    path = book / "runs" / "toy" / "evidence.zip"
    assert cli.main(["verify", f"--bundle={path}"]) == 0
    line = capsys.readouterr().out
    assert "toy; dp-8 epsilon" in line and "unsigned" in line
    assert bundle.WORDS["user_ledger"] not in line, "its ledgers are those of its own runs"
    names = bundle.unpack(path.read_bytes()).keys()
    assert {"manifest.json", "summary.json", "measurements.jsonl", "figures/fig-bars.png"} <= names
    assert len([name for name in names if name.startswith("ledgers/dp-eps-")]) == 3
    before = path.read_bytes()
    assert cli.main(["bundle", "--profile=toy"]) == 0 and path.read_bytes() == before
    mine = tmp_path / "mine.zip"
    assert cli.main(["bundle", "--profile=toy", f"--bundle={mine}", f"--key={private}"]) == 0
    assert cli.main(["verify", f"--bundle={mine}", f"--key={public}"]) == 0
    assert cli.main(["bundle", "--profile=toy", f"--bundle={mine}"]) == 2, "it is there already"
    assert cli.main(["verify", f"--bundle={tmp_path / 'gone.zip'}"]) == 2
    mine.write_bytes(mine.read_bytes()[:-30])
    assert cli.main(["verify", f"--bundle={mine}"]) == 1


def test_a_profile_whose_files_changed_has_none(book, tmp_path, monkeypatch, capsys):
    root = shutil.copytree(book, tmp_path / "book", ignore=shutil.ignore_patterns("evidence.zip"))
    monkeypatch.chdir(root)
    path = root / "runs" / "toy" / "artifacts" / "comparison" / "measurements.jsonl"
    path.write_bytes(path.read_bytes().replace(b"0.5", b"0.4"))
    assert cli.main(["bundle", "--profile=toy"]) == 2
    assert "measurements.jsonl" in capsys.readouterr().err
    assert not (root / "runs" / "toy" / "evidence.zip").exists()
