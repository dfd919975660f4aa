"""Pages and public docstrings avoid what reads as translated."""

import plain_english
import pytest


def test_few_places_read_as_translated():
    many = {name: lines for name, lines in plain_english.found().items() if len(lines) > plain_english.MOST}
    assert many == {}


@pytest.mark.parametrize(
    "line",
    [
        "The rows of the patients stand in its file.",
        "The threshold is that of the other hospital.",
        "Where none is left, the value is unknown.",
        "Nobody was asked.",
        "A count is no proof.",
        "It is shown beside the control.",
        "The labels are dealt anew.",
        "It was 95 % of them.",
    ],
)
def test_each_pattern_is_found(line, monkeypatch):
    monkeypatch.setattr(plain_english, "pages", lambda: [("page", line)])
    monkeypatch.setattr(plain_english, "docstrings", lambda: [])
    assert sum(map(len, plain_english.found().values())) >= 1
    monkeypatch.setattr(plain_english, "pages", lambda: [("page", f"```python\n{line}\n```")])
    assert sum(map(len, plain_english.found().values())) == 0
