"""Files that survive crashes, damage and bad names."""

import errno
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from killed import Killed, killed_at

from privhelpers import artifacts
from privhelpers.errors import ArtifactUnavailable, DamagedArtifact, InvalidParameter, MissingArtifact


@pytest.fixture
def store(tmp_path):
    return artifacts.Store(tmp_path / "artifacts", "course")


def test_what_was_written_is_read(store):
    store.write_json("05_x/a.json", {"ε": [1, None, 0.5]})
    assert store.read_json("05_x/a.json") == {"ε": [1, None, 0.5]}
    store.write_jsonl("05_x/b.jsonl", [{"a": 1}, {"a": 2}])
    assert store.read_jsonl("05_x/b.jsonl") == [{"a": 1}, {"a": 2}]


def test_a_run_by_hand_reads_the_profile_and_writes_beside_it(store, tmp_path):
    store.write_json("05_x/a.json", {"a": 1})
    by_hand = artifacts.Store(store.root, "course", tmp_path / "by_hand" / "now")
    assert by_hand.read_json("05_x/a.json") == {"a": 1}
    by_hand.write_json("05_x/a.json", {"a": 2})
    assert (by_hand.read_json("05_x/a.json"), store.read_json("05_x/a.json")) == ({"a": 2}, {"a": 1})
    (by_hand.folder("05_x/m") / "w").write_text("w")
    by_hand.seal("05_x/m/w")
    assert by_hand.existing("05_x/m/w").is_relative_to(tmp_path / "by_hand")
    assert by_hand.unfinished("05_x").is_relative_to(tmp_path / "by_hand")
    assert sorted(p.name for p in store.root.rglob("*") if p.is_file()) == ["a.json", "a.json.sha256"]


def test_only_the_runner_may_change_a_profile(monkeypatch, capsys):
    monkeypatch.delenv(artifacts.RUNNER, raising=False)
    by_hand = artifacts.open_store("smoke")
    assert by_hand == artifacts.open_store("smoke") and by_hand.by_hand.parent.name == "by_hand"
    assert "started by hand" in capsys.readouterr().out
    monkeypatch.setenv(artifacts.RUNNER, "1")
    assert artifacts.open_store("smoke") == artifacts.Store(by_hand.root, "smoke")
    assert not capsys.readouterr().out


def test_one_flipped_bit_is_noticed(store):
    path = store.write_bytes("x.safetensors", bytes(1000))
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedArtifact, match=r"x\.safetensors"):
        store.existing("x.safetensors")


def test_a_missing_file_names_the_command_that_makes_it(store):
    with pytest.raises(MissingArtifact, match="`make book`"):
        store.read_json("05_x/nothing.json")
    with pytest.raises(MissingArtifact, match="PROFILE=smoke"):
        artifacts.Store(store.root, "smoke").read_json("nothing.json")


@pytest.mark.parametrize("name", ["../up", "/abs", "a/../../b", "A", "", "x" * 64, ".hidden", "a//b", None])
def test_names_that_could_leave_the_store_are_refused(store, name):
    for call in (store.read_json, store.folder, store.unfinished, store.forget):
        with pytest.raises(InvalidParameter):
            call(name)
    with pytest.raises(InvalidParameter):
        store.write_bytes(name, b"")
    assert not list(store.root.parent.rglob("*"))


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1', "[" * 100_000, "\ufeff{}"])
def test_json_that_only_a_lenient_parser_takes_is_refused(store, text):
    store.write_bytes("bad.json", text.encode())
    with pytest.raises(DamagedArtifact, match=r"bad\.json"):
        store.read_json("bad.json")


def test_a_broken_line_is_named(store):
    store.write_bytes("b.jsonl", b'{"a": 1}\n{"a": \n')
    with pytest.raises(DamagedArtifact, match="line 2"):
        store.read_jsonl("b.jsonl")


# Every end of a line that `str.splitlines` knows.
ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\u0085\u2028\u2029"


def test_lines_hold_any_character(store):
    rows = [{"text": f"a{end}b"} for end in ENDS] + [{"text": ENDS}]
    store.write_jsonl("b.jsonl", rows)
    assert store.read_jsonl("b.jsonl") == rows
    store.write_jsonl("none.jsonl", [])
    assert store.read_jsonl("none.jsonl") == []


def test_a_file_is_read_up_to_its_bound(tmp_path):
    (tmp_path / "file").write_bytes(b"abcd")
    assert artifacts.read_bounded(tmp_path / "file", 4) == b"abcd"
    os.mkfifo(tmp_path / "pipe")
    for name in ("file", "pipe", ""):
        with pytest.raises(OSError):
            artifacts.read_bounded(tmp_path / name, 3)


@pytest.mark.parametrize("spoiled", [b"", b"\xff\xfe\x00", b"a" * 64, b"a" * 10**6])
def test_a_spoiled_seal_is_damage(store, spoiled):
    path = store.write_bytes("a.json", b"{}")
    artifacts.seal_of(path).write_bytes(spoiled)
    with pytest.raises(DamagedArtifact, match=r"a\.json"):
        store.existing("a.json")


def test_a_kill_while_a_file_is_replaced_leaves_the_old_one_the_new_one_or_none(store):
    """Never a file under the hash of another."""
    for moment in range(1, 20):
        store.write_json("a.json", {"value": "old"})
        try:
            with killed_at(moment):
                store.write_json("a.json", {"value": "new"})
            break
        except Killed:
            with suppress(MissingArtifact):
                assert store.read_json("a.json")["value"] in ("old", "new")
    assert moment > 5 and store.read_json("a.json") == {"value": "new"}


@pytest.mark.parametrize("call", ["open", "fsync", "chmod", "replace"])
def test_a_full_disk_is_refused_by_name_and_the_old_bytes_stay(store, monkeypatch, call):
    path = store.write_bytes("slug/a.bin", b"old")
    files = sorted(path.parent.iterdir())

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched, pytest.raises(ArtifactUnavailable) as refusal:
        patched.setattr(os, call, full)
        artifacts.write_atomic(path, b"new")
    assert refusal.value.errno == errno.ENOSPC and "a.bin" in str(refusal.value)
    assert path.read_bytes() == b"old" and sorted(path.parent.iterdir()) == files


def test_an_unfinished_run_finds_its_files_again_until_it_is_forgotten(store):
    kept = store.unfinished("08_x/dp-eps-8")
    assert kept.is_dir() and not kept.is_relative_to(store.root)
    assert kept.relative_to(store.root.parent).as_posix() == "unfinished/08_x/dp-eps-8"
    (kept / "ledger.jsonl").write_bytes(b"spent")
    assert (store.unfinished("08_x/dp-eps-8") / "ledger.jsonl").read_bytes() == b"spent"
    assert not store.root.exists()
    store.write_json("08_x/dp-eps-8/metrics.json", {})
    other = store.unfinished("08_x/dp-eps-1")
    for _ in range(2):  # the second time, nothing is there any more
        store.forget("08_x/dp-eps-8")
    assert [path.name for path in other.parent.iterdir()] == ["dp-eps-1"]
    assert store.read_json("08_x/dp-eps-8/metrics.json") == {}


@pytest.mark.parametrize("method", ["unfinished", "forget"])
def test_no_link_is_followed_out_of_the_store(store, method):
    target = store.folder("08_x/dp-eps-8")  # within the same profile: still not ours to remove
    (target / "model.safetensors").write_bytes(b"x")
    place = store.root.parent / "unfinished" / "08_x"
    place.parent.mkdir(parents=True)
    place.symlink_to(store.root / "08_x")
    (store.root / "link").symlink_to(place.parent)
    for call in (lambda: getattr(store, method)("08_x/dp-eps-8"), lambda: store.write_bytes("link/x", b"")):
        with pytest.raises(InvalidParameter, match="link"):
            call()
    assert (target / "model.safetensors").read_bytes() == b"x"


def test_a_chapter_whose_claims_are_not_checked_writes_nothing():
    code = "from privhelpers import artifacts; artifacts.open_store('smoke')"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-O", "-c", code], env=environment, capture_output=True, text=True)
    assert (
        done.returncode == 1 and "InvalidParameter: PYTHONOPTIMIZE, or python -O: leaves out" in done.stderr
    )


@pytest.mark.parametrize("value", [float("nan"), {(1, 2): 3}, object(), "\ud800", {1, 2}])
def test_a_value_that_json_cannot_hold_is_refused_and_the_old_one_stays(tmp_path, value):
    held = artifacts.Store(tmp_path, "toy")
    held.write_json("a.json", 1)
    held.write_jsonl("a.jsonl", [{"a": 1}])
    for call in (
        lambda: held.write_json("a.json", value),
        lambda: held.write_jsonl("a.jsonl", [{"a": value}]),
    ):
        with pytest.raises(InvalidParameter, match="JSON"):
            call()
    assert held.read_json("a.json") == 1 and held.read_jsonl("a.jsonl") == [{"a": 1}]


def test_parts_outlive_a_kill_and_not_a_change(tmp_path, monkeypatch):
    monkeypatch.setenv(artifacts.RUNNER, "of this code")
    store = artifacts.Store(tmp_path / "artifacts", "toy")
    made = []

    def make():
        made.append(1)
        return {"auc": 0.5, "of": len(made)}

    assert artifacts.Parts(store, "long/parts", [1]).keep("baseline", make) == {"auc": 0.5, "of": 1}
    assert artifacts.Parts(store, "long/parts", [1]).keep("baseline", make)["of"] == 1  # read, not made
    assert artifacts.Parts(store, "long/parts", [2]).keep("baseline", make)["of"] == 2  # other values
    file = tmp_path / "unfinished" / "long" / "parts" / "baseline.json"
    file.write_bytes(file.read_bytes().replace(b"0.5", b"0.9"))
    assert artifacts.Parts(store, "long/parts", [2]).keep("baseline", make)["of"] == 3  # damaged
    monkeypatch.setenv(artifacts.RUNNER, "of other code, or other inputs")
    assert artifacts.Parts(store, "long/parts", [2]).keep("baseline", make)["of"] == 4
    monkeypatch.delenv(artifacts.RUNNER)
    by_hand = artifacts.Parts(store, "long/parts", [2])
    assert [by_hand.keep("baseline", make)["of"] for _ in range(2)] == [5, 6], "a cell may have changed"


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("7", 7), ("+7", 7), ("1_000", 1000), ("1e3", 1000.0), ("-.5", -0.5), ("6.e-3", 0.006)]
    + [("1e-5", 1e-5), ("1E-5", 1e-5), ("1.0e-5", 1e-5), ("1.5e5", 1.5e5), ("-2e+3", -2000.0), ("0e0", 0.0)]
    + [("1_000.5", 1000.5), (".Inf", float("inf")), ("-.INF", float("-inf")), ("1_000e3", 1e6)]
    + [("TRUE", True), ("false", False), ("~", None), ("", None), (".inf", float("inf"))]
    + [(text, text) for text in ("017", "08", "0o17", "0b1", "0x1F", "1:30", "12:30:45", "1:30.5")]
    + [(text, text) for text in ("1_", "_1", "1,000", "1e", "=", ".", "nan", "inf")]
    + [(text, text) for text in ("yes", "No", "on", "off", "y", "n", "2024-01-01", "2024-13-45", "1 000")],
)  # fmt: skip
def test_a_value_in_yaml_is_what_it_looks_like(text, value):
    read = artifacts.parse_yaml(f"a: {text}")["a"]
    assert read == value and type(read) is type(value)
    quoted = artifacts.parse_yaml(f"a: '{text}'")["a"]
    assert quoted == text and type(quoted) is str


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3", r"line 3: a is given twice"),
        ("dp: {target_epsilon: 1,\n  target_epsilon: 8}", "line 2: target_epsilon is given twice"),
        ("1: a\n1.0: b", "line 2: 1.0 is given twice"),
        ("a: &b {c: 1}\nd: {<<: *b, c: 2}", "line 2: '<<'"),
        ("a: !!float 1", "line 1: a tag"),
        ("a: !!python/name:os.system", "line 1: a tag"),
        ("a:\n\tb: 1", "line 2: "),
        ("a: 1e400", "line 1: a number is too large"),
        ("a: 1\n--- \na: 2", ""),
        ("? [a]\n: 1", "line 1: a list or a mapping"),
        ('"a\\e[31m": 1', r"line 1: 'a\\x1b\[31m'"),
        ('a: "\\ud800"', "line 1: contains half of a character"),
        ("[" * 5000, "line 1: more than 10 brackets"),
        ("a: 1\nb", "line "),
        ("a: " + "1" * 5000, ""),
    ],
)  # fmt: skip
def test_yaml_that_other_programs_read_otherwise_is_refused_by_its_line(text, words):
    with pytest.raises(ValueError, match=f"^{words}") as refused:
        artifacts.parse_yaml(text)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300


def test_a_folder_or_a_circle_of_links_in_the_place_of_a_file_is_refused(store):
    store.write_json("a.json", 1)
    store.path("a.json").unlink()
    store.path("a.json").mkdir()
    with pytest.raises(DamagedArtifact, match=r"a\.json"):
        store.read_json("a.json")
    store.path("b.json").symlink_to(store.path("b.json"))  # a link to itself
    with pytest.raises(InvalidParameter, match="link"):
        store.read_json("b.json")
