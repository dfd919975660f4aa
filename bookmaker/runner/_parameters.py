"""The parameters of a chapter, read from its file without running it, and what a profile sets them to."""

import copy
import pickle
from pathlib import Path
from typing import Any

from bookmaker.runner import notebooks
from bookmaker.runner.chain import slug_of
from privhelpers.errors import InvalidParameter
from privhelpers.parameters import Parameter, checked, declared_in

# What was checked: one plan asks for the same values several times, and every run for the plan of its build.
_seen: dict[bytes, dict[str, Any]] = {}


def _checked(known: dict[str, Parameter], values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return values as their declared types, as `checked` does."""
    lines = [(parameter.name, parameter.type_name, parameter.help) for parameter in known.values()]
    key = pickle.dumps((lines, values, where))
    if key not in _seen:
        _seen[key] = checked(known, values, where)
    return copy.deepcopy(_seen[key])


def declared(notebook: Path) -> dict[str, Parameter]:
    """Return the parameters that a notebook declares, by name.

    Args:
        notebook: a source notebook, with exactly one code cell tagged `parameters`.

    Raises:
        InvalidParameter: the cell is missing, doubled or has a line that is not
            `name: type = default  # help; in [lo, hi]`.
    """
    slug = slug_of(notebook.name)
    cells = notebooks.code_of(notebook, "parameters")
    if len(cells) != 1:
        raise InvalidParameter(
            f"{slug}: {len(cells)} cells are tagged `parameters`; there must be exactly one"
        )
    return declared_in(cells[0], slug)


def check(notebook: Path, values: dict[str, Any], *, where: str) -> dict[str, Any]:
    """Return values as the types that a notebook declares for them.

    Args:
        notebook: a source notebook.
        values: by name.
        where: file and section that the values come from, for the message.

    Raises:
        InvalidParameter: in one line, `where.parameter = value` and what is allowed.
    """
    return _checked(declared(notebook), values, where)


def resolve(notebook: Path, overrides: dict[str, Any], *, where: str = "command line") -> dict[str, Any]:
    """Return every parameter of a notebook: the overrides, checked, over its defaults, checked too.

    Args:
        notebook: a source notebook.
        overrides: values by name.
        where: the file or command that the overrides come from, for the message.

    Raises:
        InvalidParameter: in one line, the file, `notebook.parameter = value` and what is allowed.
    """
    known, slug = declared(notebook), slug_of(notebook.name)
    defaults = {name: parameter.default for name, parameter in known.items()}
    values = _checked(known, defaults, f"notebooks/{notebook.name}, {slug}")
    return values | _checked(known, overrides, f"{where}, {slug}")
