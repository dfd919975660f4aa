"""Two builds beside each other: which numbers and which wordings of their pages differ."""

import nbformat
import pytest
from nbformat import v4

from bookmaker.site import __main__ as command
from bookmaker.site._quoted import differences, quoted, with_numbers
from privhelpers.errors import InvalidParameter, MissingArtifact


def page(**values):
    """Return an executed notebook that keeps these values, as `pages.tell` does, and shows a table."""
    prefix = "application/papermill.record/"
    outputs = [
        v4.new_output(
            "display_data",
            {f"{prefix}text/plain": repr(value)},
            metadata={"scrapbook": {"mime_prefix": prefix, "name": name}},
        )
        for name, value in values.items()
    ]
    table = {f"{prefix}text/plain": "a 1", f"{prefix}text/html": "<table></table>"}
    outputs.append(v4.new_output("display_data", table, metadata={"scrapbook": {"name": "table"}}))
    return v4.new_notebook(cells=[v4.new_markdown_cell("# A"), v4.new_code_cell("tell()", outputs=outputs)])


@pytest.fixture
def root(tmp_path):
    """Two profiles of two pages; one page is the same in both."""
    reading = {"one": "members leak more", "other": "no difference shows"}
    for profile, auc in (("one", 0.9), ("other", 0.5)):
        folder = tmp_path / "runs" / profile / "notebooks"
        (folder / "extraction").mkdir(parents=True)
        nbformat.write(page(patients=3), folder / "records.ipynb")
        made = page(auc=auc, reading=reading[profile], patients=3, bound=float("inf"))
        nbformat.write(made, folder / "extraction" / "baseline.ipynb")
    return tmp_path


def test_numbers_and_wordings_are_read_and_tables_are_not():
    made = page(auc=0.9, reading="it's more", bound=float("inf"))
    assert quoted(made) == {"auc": 0.9, "reading": "it's more", "bound": "inf"}


def test_what_differs_is_named_wordings_first(root):
    assert list(differences(root, "one", "other")) == [
        "~ extraction/baseline: 1 wordings and 1 numbers differ, of 4 quoted",
        "    reading",
        "      - members leak more",
        "      + no difference shows",
        "    auc: 0.9 -> 0.5",
    ]
    assert list(differences(root, "one", "one")) == []


def test_a_page_that_one_build_lacks_and_a_profile_without_runs_are_named(root):
    (root / "runs/other/notebooks/records.ipynb").unlink()
    assert "~ records: only in one" in list(differences(root, "one", "other"))
    with pytest.raises(MissingArtifact, match="make book PROFILE=third"):
        list(differences(root, "one", "third"))


def test_the_command_ends_as_diff_does(root, monkeypatch, capsys):
    monkeypatch.setattr(command, "repository_root", lambda: root)
    assert command.main(["quoted", "one", "one"]) == 0 and "read the same" in capsys.readouterr().out
    assert command.main(["quoted", "one", "other"]) == 1 and "auc: 0.9 -> 0.5" in capsys.readouterr().out
    assert command.main(["quoted", "one", "third"]) == 2 and "refused" in capsys.readouterr().err

    def lost():
        raise MissingArtifact("elsewhere: not inside a copy of the book")

    for name in ("x\x1b[31m", "x" * 9000, "../runs/one", "one\n"):
        assert command.main(["quoted", "one", name]) == 2
        told = capsys.readouterr().err
        assert "use 1 to 63 of a-z" in told and "\x1b" not in told and len(told) < 300
    monkeypatch.setattr(command, "repository_root", lost)
    assert command.main(["quoted", "one", "other"]) == 2 and "not inside a copy" in capsys.readouterr().err


def test_what_a_run_quoted_does_nothing_to_the_terminal(root, monkeypatch, capsys):
    nbformat.write(page(reading="\x1b[31mred"), root / "runs/other/notebooks/records.ipynb")
    monkeypatch.setattr(command, "repository_root", lambda: root)
    assert command.main(["quoted", "one", "other"]) == 1
    assert "\n      + \\x1b[31mred\n" in capsys.readouterr().out


def test_a_number_that_cannot_be_shown_as_asked_is_refused_and_infinity_is_a_number():
    asked = "{glue:text}`x:.2f` and {glue:text}`x`"
    assert with_numbers(asked, {"x": "inf"}) == "inf and inf"
    assert with_numbers(asked, {"x": "nan"}) == "nan and nan"
    long = "{glue:text}`x:" + "\x1b[31m" * 999 + "`"
    for source, value in ((asked, "many"), ("{glue:text}`x:.2q`", 0.5), (long, 0.5)):
        with pytest.raises(InvalidParameter, match=r"extraction: \{glue:text\}`x:.*shown so") as refused:
            with_numbers(source, {"x": value}, "extraction")
        assert len(str(refused.value)) < 300 and "\x1b" not in str(refused.value)
