"""Files that survive crashes, damage and bad names."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from privhelpers import artifacts
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact


@pytest.fixture
def store(tmp_path):
    return artifacts.Store(tmp_path / "artifacts", "course")


def test_what_was_written_is_read(store):
    store.write_json("05_x/a.json", {"ε": [1, None, 0.5]})
    assert store.read_json("05_x/a.json") == {"ε": [1, None, 0.5]}
    store.write_jsonl("05_x/b.jsonl", [{"a": 1}, {"a": 2}])
    assert store.read_jsonl("05_x/b.jsonl") == [{"a": 1}, {"a": 2}]


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


@pytest.mark.parametrize("name", ["../up", "/abs", "a/../../b", "A", "", "x" * 64, "nul\0", "a b", "é"])
def test_names_that_could_leave_the_store_are_refused(store, name):
    with pytest.raises(InvalidParameter):
        store.write_bytes(name, b"")
    assert not store.root.exists() or not list(store.root.rglob("*"))


def test_links_out_of_the_store_are_refused(store, tmp_path):
    store.root.mkdir()
    (tmp_path / "outside").mkdir()
    (store.root / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidParameter, match="link"):
        store.write_bytes("link/file", b"x")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1', "[" * 100_000])
def test_json_that_only_a_lenient_parser_takes_is_refused(store, text):
    store.write_bytes("bad.json", text.encode())
    with pytest.raises(DamagedArtifact, match=r"bad\.json"):
        store.read_json("bad.json")


def test_a_broken_line_is_named(store):
    store.write_bytes("b.jsonl", b'{"a": 1}\n{"a": \n')
    with pytest.raises(DamagedArtifact, match="line 2"):
        store.read_jsonl("b.jsonl")


def test_values_that_are_not_json_are_never_written(store):
    with pytest.raises(ValueError):
        store.write_json("nan.json", {"a": float("nan")})
    assert not store.path("nan.json").exists()


def _write_forever(path: str) -> None:
    number = 0
    while True:
        number += 1
        artifacts.write_atomic(Path(path), str(number % 10).encode() * 300_000)


def test_a_kill_leaves_whole_files(tmp_path):
    path = tmp_path / "f"
    artifacts.write_atomic(path, b"0" * 300_000)
    for attempt in range(8):
        writer = multiprocessing.get_context("spawn").Process(target=_write_forever, args=(str(path),))
        writer.start()
        time.sleep(0.3 + 0.037 * attempt)
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        data = path.read_bytes()
        assert len(data) == 300_000 and len(set(data)) == 1, "half of one write and half of another"
