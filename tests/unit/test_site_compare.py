"""Two sites that read the same have no difference; a changed word, picture or page is named."""

import pytest

from bookmaker.site.__main__ import main
from bookmaker.site._compare import differences
from privhelpers.errors import MissingArtifact

PAGE = (
    "<html><head><style>p{{}}</style></head><body><nav>menu {menu}</nav>"
    "<main><p>One {word}.</p>{more}</main></body></html>"
)


def site(folder, word="two", menu="a", picture=b"x", extra=()):
    folder.mkdir()
    (folder / "index.html").write_text("<html></html>")
    more = '<img src="pictures/f.png" alt="f"><p>Last &amp; least.</p>'
    (folder / "a.html").write_text(PAGE.format(word=word, menu=menu, more=more))
    (folder / "pictures").mkdir()
    (folder / "pictures" / "f.png").write_bytes(picture)
    for name in extra:
        (folder / name).write_text("<html></html>")
    return folder


def test_the_same_words_under_another_menu_are_the_same(tmp_path):
    assert list(differences(site(tmp_path / "a"), site(tmp_path / "b", menu="other"))) == []
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0


def test_a_changed_word_is_shown_with_its_line(tmp_path, capsys):
    assert main(["compare", str(site(tmp_path / "a")), str(site(tmp_path / "b", word="three"))]) == 1
    shown = capsys.readouterr().out
    assert "~ a.html: 0 of 1 pictures differ" in shown
    assert "-One two." in shown and "+One three." in shown and "Last" not in shown


def test_a_changed_picture_and_pages_that_come_and_go_are_named(tmp_path):
    old = site(tmp_path / "a", extra=["gone.html"])
    lines = list(differences(old, site(tmp_path / "b", picture=b"y", extra=["new.html"])))
    assert lines == ["~ a.html: 1 of 1 pictures differ", "- gone.html: gone", "+ new.html: new"]


def test_a_folder_without_a_site_is_refused(tmp_path, capsys):
    with pytest.raises(MissingArtifact, match="not a built site"):
        list(differences(tmp_path, tmp_path))
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 2
    assert "not a built site" in capsys.readouterr().err
