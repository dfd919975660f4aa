"""What an author edits and breaks is refused by its name; a folder that a command makes keeps other files."""

import pytest

from bookmaker.runner import files, notebooks
from privhelpers.errors import DamagedArtifact, InvalidParameter


@pytest.mark.parametrize(
    "file, data, words",
    [
        ("_config.yml", b"", "_config.yml: must be YAML that maps"),
        ("_config.yml", b"a: [", "_config.yml: must be YAML"),
        ("_config.yml", b"a: 1\na: 2", "_config.yml: must be YAML (line 2: a is given twice"),
        ("_config.yml", b"a: !!timestamp x", "_config.yml: must be YAML"),
        ("_config.yml", b"a: !!bool x", "_config.yml: must be YAML"),
        ("_config.yml", b'a: ["\\ud800"]', "_config.yml: must be YAML (line 1: contains half of a character"),
        ("_toc.yml", b'{"\\udc00": b}', "_toc.yml: must be YAML (line 1: "),
        ("_config.yml", b"repository: https://x", "_config.yml, repository: must map"),
        ("_config.yml", b"title: \xe9", "_config.yml: must be text in UTF-8; byte 8"),
        ("_toc.yml", b"- a", "_toc.yml: must be YAML that maps"),
        ("_toc.yml", b"root: a", "_toc.yml: must have a root, and parts"),
        ("_toc.yml", b"{root: a, parts: [{caption: b, chapters: [{file: 7}]}]}", "_toc.yml: must have"),
        ("_toc.yml", b"{root: a, parts: [b]}", "_toc.yml: must have"),
        ("_toc.yml", b"{root: a, parts: []}", "_toc.yml: must have"),
        ("_toc.yml", b"{root: a, parts: ''}", "_toc.yml: must have"),
    ],
)
def test_a_broken_file_is_named(tmp_path, file, data, words):
    (tmp_path / file).write_bytes(data)
    read = files.config if file == "_config.yml" else files.contents
    with pytest.raises(InvalidParameter) as refused:
        read(tmp_path)
    assert str(refused.value).startswith(words) and "\n" not in str(refused.value)


def test_what_is_missing_in_a_configuration_is_empty(tmp_path):
    (tmp_path / "_config.yml").write_text("title: A\nhtml:\n")
    assert files.config(tmp_path) == {"title": "A", "html": {}, "repository": {}}


HALF = '{"cell_type": "markdown", "id": "a", "metadata": {}, "source": "\\ud800"}'


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": "x"}',
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": NaN}',
        f'{{"cells": [{HALF}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}',
    ],
    ids=["brackets without end", "text for a number", "no number", "half of a character"],
)
def test_a_notebook_that_cannot_be_read_or_written_is_refused(tmp_path, text):
    """By its place in the copy of the book, with what helps."""
    for folder in ("privhelpers", "notebooks"):
        (tmp_path / folder).mkdir()
    (tmp_path / "_toc.yml").touch()
    (tmp_path / "notebooks" / "a.ipynb").write_text(text)
    told = r"^notebooks/a\.ipynb: not a notebook of format 4 \(.+\); save it from Jupyter, or restore it$"
    with pytest.raises(DamagedArtifact, match=told):
        notebooks.read(tmp_path / "notebooks" / "a.ipynb")


@pytest.mark.parametrize("name", ["book/Bild 1.23\u202fPM.png", "book/ä\u200dε.png", "book/a\\b.png"])
def test_names_that_systems_give_are_names(name):
    files.check_name(name)


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
