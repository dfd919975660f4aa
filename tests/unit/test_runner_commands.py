"""Every command by hand: whatever a terminal can show, it ends with its words and no traceback."""

import io
import os
import sys

from bookmaker.site import __main__ as site
from bookmaker.teaching import __main__ as teaching
from bookmaker.teaching import _launch


def test_what_a_terminal_lacks_is_printed_by_its_number(tmp_path, monkeypatch):
    for name, word in (("old", "ε"), ("new", "δ")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(f"<article>{word}</article>", encoding="utf-8")
    monkeypatch.setattr(_launch, "write_copies", lambda root, folder: [root / "ε" / "chapter"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.setenv("PYTHONINSPECT", "1")
    for main, given, code in (
        (site.main, ["compare", str(tmp_path / "old"), str(tmp_path / "new")], 1),
        (teaching.main, ["launch"], 0),
    ):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(given) == code
        stream.flush()
        assert rb"\u03b5" in stream.buffer.getvalue()
    assert "PYTHONIOENCODING" not in os.environ, "what a command starts may print every character, too"
    assert "PYTHONINSPECT" not in os.environ, "and ends with its own exit code"
