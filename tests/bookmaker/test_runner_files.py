"""What an author edits and breaks is refused by its name; a folder that a command makes keeps other files."""

import pytest

from bookmaker.runner import files, notebooks
from privhelpers.errors import DamagedArtifact, InvalidParameter

BROKEN = [
    *(("_config.yml", data) for data in (b"", b"a: [", b"a: 1\na: 2", b"a: !!bool x", b'a: ["\\ud800"]')),
    *(("_config.yml", data) for data in (b"repository: https://x", b"title: \xe9")),
    *(("_toc.yml", data) for data in (b"- a", b"root: a", b"{root: a, parts: [b]}", b"{root: a, parts: []}")),
    ("_toc.yml", b"{root: a, parts: [{caption: b, chapters: [{file: 7}]}]}"),
]


@pytest.mark.parametrize("file, data", BROKEN)
def test_a_broken_file_is_named(tmp_path, file, data):
    (tmp_path / file).write_bytes(data)
    read = files.config if file == "_config.yml" else files.contents
    with pytest.raises(InvalidParameter) as refused:
        read(tmp_path)
    assert str(refused.value).startswith(file) and "\n" not in str(refused.value)


def test_what_is_missing_in_a_configuration_is_empty(tmp_path):
    (tmp_path / "_config.yml").write_text("title: A\nhtml:\n")
    assert files.config(tmp_path) == {"title": "A", "discussion": {}, "html": {}, "repository": {}}


HALF = '{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "\\ud800"}'


@pytest.mark.parametrize(
    "text",
    [
        "<html>",
        "[" * 100_000,
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": "x"}',
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": NaN}',
        f'{{"cells": [{HALF}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}',
    ],
    ids=["HTML", "brackets without end", "text for a number", "no number", "half of a character"],
)
def test_a_notebook_that_cannot_be_read_or_written_is_refused_by_its_name(tmp_path, text):
    (tmp_path / "a.ipynb").write_text(text)
    with pytest.raises(DamagedArtifact, match=r"^a\.ipynb: not a notebook"):
        notebooks.read(tmp_path / "a.ipynb")


def test_a_folder_gets_what_a_command_made_and_keeps_what_a_user_put_there(tmp_path):
    place = tmp_path / "deeper" / "made"
    for again in range(2):
        with files.replacing(place, "[ab]*") as new:
            (new / f"a{again}").write_text("made")
            (new / "sub").mkdir()
            (new / "sub" / str(again)).write_text("made")
        (place / "own").write_text("of a user")
    assert {path.relative_to(place).as_posix() for path in place.rglob("*")} == {"a1", "own", "sub", "sub/1"}
    with pytest.raises(ZeroDivisionError), files.replacing(place, "*") as new:
        (new / "own").write_text("lost")
        1 / 0  # noqa: B018
    assert (place / "own").read_text() == "of a user" and [*place.parent.iterdir()] == [place]
