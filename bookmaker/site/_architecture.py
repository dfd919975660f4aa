"""The page for maintainers: which helper serves which chapter, read from the imports of the sources."""

import ast
import hashlib
from pathlib import Path

from bookmaker import shape
from bookmaker.runner import chain, notebooks, written
from privhelpers.artifacts import sha256_of

INTRO = """(architecture)=
# Where things live

This page is made from the sources of this copy of the book, so it cannot be out of date.
A chapter holds the lesson and the algorithm that it is about.
A helper is what several chapters need, or what would only be in a reader's way.
`make shape` prints the same in a terminal.

- `notebooks/NN_slug.ipynb` is the only source of a chapter.
  The number stands in the file's name and in `_toc.yml`; parameters, artifacts and addresses use the slug.
- `privhelpers/` is what a notebook imports, and nothing else.
  Each module or folder in it is a room, and a room has one topic.
- `bookmaker/` makes the book: it runs notebooks, builds the site, sweeps, and copies chapters for courses.
- `params/` has a file for each profile; `runs/` is generated; `tests/` and `benchmarks/` are what they say.

One chapter hands files to another, under `runs/<profile>/artifacts/<slug>/`.
The table of which chapter waits for which is `bookmaker/runner/chain.py`.

To find what a chapter uses, go to its row under "The chapters".
To find who uses a helper, and where it stands, open its room under "Every public helper".
"""
ROOMS = "A room imports rooms of lower levels, never of higher ones; a test reads the imports.\n\n"
MANY = 10  # chapters that a table's cell lists; more are counted


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n"


def _plain(text: str) -> str:
    """Return a docstring's line as text that a table cell can hold.

    >>> print(_plain("``a < b`` where a < b | c"))
    `a < b` where a \\< b / c
    """
    parts = text.replace("|", "/").replace("``", "`").split("`")  # every second one is code
    parts[::2] = [part.replace("<", "\\<") for part in parts[::2]]
    return "`".join(parts)


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _pages(slugs: list[str]) -> str:
    return ", ".join(f"{{doc}}`{slug} </notebooks/{slug}>`" for slug in slugs)


def _users(users: set[str], slugs: list[str]) -> str:
    """Return who uses a helper: chapters in the order of the book, then rooms, then programs."""
    others = sorted(user.removeprefix("privhelpers.") for user in users - set(slugs))
    return _code([slug for slug in slugs if slug in users] + others) or "its own room"


def _rooms(all_rooms: dict[str, shape.Room], slugs: list[str]) -> str:
    parts = []
    for level, rooms in enumerate(shape.LEVELS):
        rows = []
        for name in (room for room in rooms if f"privhelpers.{room}" in all_rooms):
            room = all_rooms[f"privhelpers.{name}"]
            used = set().union(*room.users.values()) if room.users else set()
            chapters = [slug for slug in slugs if slug in used]
            named = f"{len(chapters)} of {len(slugs)}" if len(chapters) > MANY else _code(chapters)
            rows.append((f"`{name}`", _plain(room.about), f"{room.lines:,}", named or "other rooms"))
        if rows:
            header = ("room", "what it holds", "code lines", "chapters that use it")
            parts.append(f"### Level {level}\n\n{_table(header, rows)}")
    return "\n".join(parts)


def _chapters(root: Path, all_rooms: dict[str, shape.Room], slugs: list[str]) -> str:
    rows = []
    for slug in slugs:
        tree = ast.parse(shape.chapter_code(chain.source(root, slug)))
        defined = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        called = {
            name.removeprefix("privhelpers."): sorted(h for h in room.names if slug in room.users[h])
            for name, room in sorted(all_rooms.items())
        }
        by_room = "; ".join(f"**{name}** {_code(helpers)}" for name, helpers in called.items() if helpers)
        defined = [name for name in dict.fromkeys(defined) if not name.startswith("_")]
        rows.append(
            (_pages([slug]), f"{_code(defined) or 'plain cells'}. It calls {by_room or 'no helper'}.")
        )
    return _table(("chapter", "what is written on its page, and the helpers that it calls, by room"), rows)


def _helpers(all_rooms: dict[str, shape.Room], slugs: list[str]) -> str:
    parts = []
    for name in sorted(all_rooms, key=lambda name: (shape.PACKAGES.index(name.split(".")[0]), name)):
        room = all_rooms[name]
        folder = f"{name.replace('.', '/')}/"
        rows = [
            (
                f"`{helper}`",
                f"`{place.removeprefix(folder)}`",
                _plain(room.says[helper]),
                _users(room.users[helper], slugs),
            )
            for helper, place in sorted(room.names.items())
        ]
        if rows:
            table = _table(("name", "file:line", "what it does", "used by"), rows)
            parts.append(f"````{{dropdown}} {name}: {len(rows)} public names\n{table}````\n")
    return "\n".join(parts)


def sources(root: Path) -> str:
    """Return name and SHA-256 of all that the page is made from; of a chapter, of its code alone."""
    files = [*shape.modules(root), *root.glob("Snakefile")]
    files += written.files(root / "book", "*.md") + written.files(root / "binder", "*.py")
    lines = [f"{path.relative_to(root).as_posix()} {sha256_of(path)}" for path in sorted(files)]
    for path in written.files(root / "notebooks", "*.ipynb"):
        code = "\0".join(notebooks.code_of(path))
        lines.append(f"{path.name} {hashlib.sha256(code.encode()).hexdigest()}")
    return "\n".join(lines)


def architecture(root: Path) -> str:
    """Return the page `book/architecture.md`.

    Args:
        root: the repository.

    Raises:
        InvalidParameter, MissingArtifact: a chapter has no file, or two.
    """
    all_rooms = shape.rooms(root)
    slugs = sorted(chain.SLUGS, key=lambda slug: chain.source(root, slug).name)
    sections = {
        "The rooms, from the ground up": ROOMS + _rooms(all_rooms, slugs),
        "The chapters": _chapters(root, all_rooms, slugs),
        "Every public helper": _helpers(all_rooms, slugs),
    }
    return INTRO + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())
