"""What is counted as shape: code lines, public names, who uses them; and the page made of it."""

from pathlib import Path

import pytest

from bookmaker import shape
from bookmaker.runner import chain
from bookmaker.site._architecture import architecture

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path):
    """Two rooms and a chapter: `a` is used by the chapter, `b` by nobody, `C` is what `a` returns."""
    (tmp_path / "privhelpers" / "high").mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "privhelpers" / "low.py").write_text(
        '"""Low things.\n\nMore."""\n\n\nclass C:\n    """C."""\n\n\n'
        'def a() -> "list[C]":\n    """A."""\n\n\ndef b():\n    """B."""\n\n\ndef _c():\n    pass\n'
    )
    (tmp_path / "privhelpers" / "high" / "__init__.py").write_text('"""High things."""\n')
    (tmp_path / "privhelpers" / "high" / "own.py").write_text("def d():\n    pass\n\n\nd()\n")
    (tmp_path / "privhelpers" / "high" / "more.py").write_text("def e():\n    pass\n")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "page.md").write_text(
        "Call d:\n\n```python\nfrom privhelpers.high.more import e\n```\n\n```bash\nls `d`\n```\n"
    )
    notebook = (
        '{"cells": [{"cell_type": "code", "id": "x", "metadata": {}, "outputs": [], "execution_count": null,'
        ' "source": "%time\\nfrom privhelpers import low\\nlow.a()"}],'
        ' "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    (tmp_path / "notebooks" / "01_chapter.ipynb").write_text(notebook)
    return tmp_path


def test_a_name_is_used_where_another_room_or_a_chapter_names_it(tree):
    rooms = shape.rooms(tree)
    low, high = rooms["privhelpers.low"], rooms["privhelpers.high"]
    assert low.users["a"] == {"chapter"} and low.unused() == ["b"], "C is what a returns"
    assert high.unused() == ["d"], "its own room does not count"
    assert (low.about, low.says["a"]) == ("Low things.", "A.")
    assert high.users["e"] == {"book/page.md"}, "a program on a page of the book uses what it names"
    assert low.lines == 5 and high.lines == 5


def test_a_module_for_its_room_alone_shows_only_what_the_room_exports(tree):
    high = tree / "privhelpers" / "high"
    (high / "_inner.py").write_text("def f():\n    pass\n\n\ndef g():\n    pass\n")
    (high / "__main__.py").write_text("def main():\n    pass\n")
    (high / "__init__.py").write_text("from privhelpers.high._inner import f\n")
    (tree / "binder").mkdir()
    (tree / "binder" / "start.py").write_text("from privhelpers import low\nlow.b()\n")
    (tree / "Snakefile").write_text("from privhelpers.high import f\nf()\n\nrule all:\n    input: 1\n")
    rooms = shape.rooms(tree)
    assert set(rooms["privhelpers.high"].names) == {"d", "e", "f"}, "neither g nor a program's main"
    assert rooms["privhelpers.high"].users["f"] == {"Snakefile"}
    assert (
        rooms["privhelpers.low"].users["b"] == {"binder/start.py"} and not rooms["privhelpers.low"].unused()
    )


def test_every_public_name_has_a_user_outside_its_room():
    rooms = shape.rooms(ROOT)
    unused = {name: room.unused() for name, room in rooms.items() if room.unused()}
    assert not unused, "give it an underscore, move it into a module _name.py, or delete it"


def test_the_page_for_maintainers_names_every_chapter_room_and_public_helper():
    page, rooms = architecture(ROOT), shape.rooms(ROOT)
    missing = [slug for slug in chain.SLUGS if f"</notebooks/{slug}>" not in page]
    packages = (name.split(".") for name in rooms if rooms[name].names)
    missing += [
        room for package, room in packages if package == "privhelpers" and f"| `{room}` |" not in page
    ]
    missing += [name for room in rooms.values() for name in room.names if f"| `{name}` |" not in page]
    assert not missing
