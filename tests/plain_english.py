"""Counts what reads as translated, in the pages and in the docstrings of public names: `make -f dev.mk lint`.

The patterns are those that a program can count. Code, formulas, and quotations are left out.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[1]
MOST = 5  # of one pattern, over everything
PATTERNS = {
    "stand, for be or appear": r"\bstands?\b(?! for| alone)",
    "that of, those of": r"\b(?:that|those) of\b",
    "Where, for if": r"^Where\b(?!.*\?)",
    "somebody, nobody, everybody, anybody": r"\b(?:[Ss]ome|[Nn]o|[Ee]very|[Aa]ny)body\b",
    "for or as, for because": r", for (?:the|it|they|no|we|there|nothing) \w+ (?:is|are|was|were|has|have)\b",
    "is no X": r"(?<![Tt]here )\b(?:is|are|was) no (?!longer|more|less|fewer|better|worse|larger|smaller)\b",
    "beside": r"\b[Bb]eside\b",
    "anew, by lot, dealt, in truth, at last, for ever, all the same": (
        r"\b(?:anew|by lot|dealt|in truth|at last|for ever|all the same)\b"
    ),
    "95 %": r"\d\s%(?!\w)|`\s%",
}
CODE = re.compile(
    r"^(`{3,}).*?^\1|\$\$.*?\$\$|\$[^$\n]*\$|`[^`\n]*`|\"[^\"\n]*\"|^\s*:\w+:.*?$",
    re.MULTILINE | re.DOTALL,
)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the place and the words of each page and of each caption."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
            where = f"notebooks/{path.name} [{number}]"
            if cell.cell_type == "markdown":
                yield where, cell.source
            elif figure := cell.metadata.get("mystnb", {}).get("figure"):
                yield where, figure["caption"]
    for path in [
        ROOT / "README.md",
        *sorted((ROOT / "book").rglob("*.md")),
        *sorted((ROOT / "book").rglob("*.yml")),
    ]:
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the place and the words of the docstring of each public function and class."""
    for package in ("privhelpers", "privaudit", "bookmaker"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                named = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
                if (named or isinstance(node, ast.Module)) and (said := ast.get_docstring(node)):
                    name = getattr(node, "name", "module")
                    yield f"{path.relative_to(ROOT)}, {name}", said


def found() -> dict[str, list[str]]:
    """Return each pattern with the places where it occurs and the line."""
    places: dict[str, list[str]] = {name: [] for name in PATTERNS}
    for where, text in (*pages(), *docstrings()):
        for line in CODE.sub("x", text).splitlines():
            for name, pattern in PATTERNS.items():
                if re.search(pattern, line.strip()):
                    places[name].append(f"{where}: {line.strip()}")
    return places


if __name__ == "__main__":
    places = found()
    for name, lines in places.items():
        print(f"{len(lines):4}  {name}")
        if "-v" in sys.argv or len(lines) > MOST:
            print("\n".join(f"        {line}" for line in lines))
    sys.exit(any(len(lines) > MOST for lines in places.values()))
