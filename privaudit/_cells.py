"""The strings in one cell of a table, whatever program wrote the list.

>>> strings_of("['Anna Hill', 'Old Anna Hill']")
['Anna Hill', 'Old Anna Hill']
>>> strings_of("Anna Hill; 617-555-0123", "Anna Hill called from 617-555-0123.")
['Anna Hill', '617-555-0123']
>>> strings_of("Hill, Anna"), strings_of("NA")
(['Hill, Anna'], [])
"""

import ast
import json
import re

from privhelpers.text import blank, stands_in

# What programs write for a missing value: R, pandas, spreadsheets, MySQL, Oracle and SPSS.
MISSING = frozenset(("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT", "None", "NULL", "null", r"\N"))
MISSING |= {"(null)", "(NULL)", "#NULL!"}
# And what people write, or programs for an empty list.
NOTHING = MISSING | {"none", "NONE", "nil", "n.a.", "N.A.", ".", "-", "--", "–", "—"}
NOTHING |= {"[]", "()", "{}", "set()", "c()", "list()", "character(0)"}
_STRING = r"""[bu]?'(?:[^'\\]|\\.)*'|[bu]?"(?:[^"\\]|\\.)*"|“[^”]*”|‘[^’]*’"""
_BEFORE = r"(?:np\.|numpy\.)?[A-Za-z_]\w*\("  # array([...]), c(...), np.str_('...')
_AFTER = r"dtype\s*=\s*[^,()\]]+"  # of numpy's array
_BARE = r"[^\s,;|\[\](){}'\"“‘]+"  # a number, or what stands for a missing one
_PART = re.compile(
    rf"(?P<string>{_STRING})|{_BEFORE}|{_AFTER}|[\s,;|\[\](){{}}]+|(?P<bare>{_BARE})", re.DOTALL
)
_NUMBER = re.compile(r"[-+]?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?")
_LIST = re.compile(rf"(?:{_BEFORE})?\s*[\[({{].*[\])}}]|{_BEFORE}.*\)", re.DOTALL)
_ITEM = r'(?:\s*"((?:[^"\\]|\\.)*)"|([^",:{}]+))'
_ARRAY = re.compile(rf"\{{{_ITEM}(?:,{_ITEM})*\}}", re.DOTALL)  # of PostgreSQL, which quotes what it must
_BETWEEN = re.compile(r"[;；\r\n\t]+")


def _read(string: str) -> str:
    """Return what a string in quotes says."""
    inner = string.lstrip("bu")[1:-1]
    for read in (json.loads, ast.literal_eval):
        try:
            said = read(string)
        except (ValueError, SyntaxError, RecursionError):
            continue
        return said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return inner


def _listed(cell: str) -> list[str] | None:
    """Return the items of a list in quotes or brackets; None if a cell is not one."""
    items, at = [], 0
    is_list = bool(_LIST.fullmatch(cell)) and not (
        cell[0] == "(" and "," not in cell
    )  # "(617) 5550123 (home)"
    while at < len(cell):
        part = _PART.match(cell, at)
        bare = part and part["bare"]
        if part is None or (bare and not (is_list and (bare in NOTHING or _NUMBER.fullmatch(bare)))):
            break
        if part["string"]:
            items.append(_read(part["string"]))
        elif bare:
            items.append(bare)
        at = part.end()
    else:
        return items if is_list or items else None
    if _ARRAY.fullmatch(cell):
        parts = re.findall(_ITEM, cell[1:-1], re.DOTALL)
        return [re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) or plain for quoted, plain in parts]
    return None


def strings_of(cell: str, text: str = "") -> list[str]:
    """Return the strings that a cell holds.

    They are a list as Python, JSON, numpy, R or PostgreSQL writes it, or are divided by bars, semicolons or
    line breaks. A comma divides only a list in quotes or brackets, because it may be part of a name; what is
    written in the text with its semicolon is one string. A cell for a missing value holds none.

    Args:
        cell: of a table.
        text: the note of the same row.
    """
    items = [] if cell.strip() in NOTHING else _listed(cell.strip())
    if items is None:
        items = []
        for piece in cell.split("|"):
            whole = not _BETWEEN.search(piece.strip()) or stands_in(piece, text)
            items += [piece] if whole else _BETWEEN.split(piece)
    return [item.strip() for item in items if not blank(item) and item.strip() not in NOTHING]
