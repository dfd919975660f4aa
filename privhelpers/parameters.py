"""The parameters cell of a chapter: names, types and ranges, however the chapter is started.

Papermill runs on with the default when a name is misspelled, accepts "8" for 8, and pastes whatever it
is given; in Jupyter anyone edits the cell. Here a line such as

    target_epsilon: float = 8.0  # privacy budget of the run, nats; in (0, 1000]

says what is allowed: the annotation is the type, the end of the comment the range (a round bracket
excludes the end) or, for text, the choices (`one of pld, rdp`). `make` checks a profile against it before
anything runs; each chapter calls `check` for those who start it by hand.
"""

import ast
import difflib
import functools
import io
import math
import re
import reprlib
import tokenize
from dataclasses import dataclass
from typing import Any

from privhelpers.errors import InvalidParameter
from privhelpers.text import inert, quoted

_NUMBER = r"[-+]?(?:inf|\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_RANGE = re.compile(rf"\bin\s*([\[(])\s*({_NUMBER})\s*,\s*({_NUMBER})\s*([\])])\.?$")
_CHOICES = re.compile(r"\bone of\s+(\S.*)$")
_VISIBLE = "on one line, every character of it visible"
_WORDS = {
    "int": ("a whole number", "whole numbers"),
    "float": ("a number", "numbers"),
    "str": (f"text {_VISIBLE}", f"texts, each {_VISIBLE}"),
    "bool": ("true or false", "true or false"),
}
_ACCEPTED = {"int": int, "float": (int, float), "str": str, "bool": bool}
TYPES = (*_WORDS, "list[float]", "list[int]", "list[str]")
_INJECTED = "# Parameters\n"  # how papermill begins the cell that it puts after the declared one
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell.

    Attributes:
        name: as in the notebook.
        type_name: one of `TYPES`.
        default: value in the notebook.
        help: the comment.
        limits: opening bracket, lowest, highest, and closing bracket of the range of a number.
        choices: the texts allowed; empty for any.
    """

    name: str
    type_name: str
    default: Any
    help: str
    limits: tuple[str, str, str, str] | tuple[()] = ()
    choices: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The type, or the type of a list's elements."""
        return self.type_name.removeprefix("list[").removesuffix("]")

    @property
    def allowed(self) -> str:
        """What a value must be, in words."""
        one, many = _WORDS[self.kind]
        limits = "in {}{}, {}{}".format(*self.limits) if self.limits else ""
        limits = f"one of {', '.join(self.choices)}" if self.choices else limits
        if self.type_name != self.kind:
            return f"a list of {many}, each {limits}".removesuffix(", each ")
        return limits if self.choices else f"{one} {limits}".strip()

    def _in_range(self, value: float) -> bool:
        opening, low, high, closing = self.limits
        above = value > float(low) or (opening == "[" and value == float(low))
        below = value < float(high) or (closing == "]" and value == float(high))
        return above and below and (isinstance(value, int) or math.isfinite(value))

    def _one(self, value: Any) -> Any:
        """Return a value, or an element of a list, as its type; raise ValueError if it is not allowed."""
        if not isinstance(value, _ACCEPTED[self.kind]) or isinstance(value, bool) != (self.kind == "bool"):
            raise ValueError
        if self.limits and not self._in_range(value):
            raise ValueError
        if self.kind == "str" and self.choices and value not in self.choices:
            raise ValueError
        if self.kind == "str" and not self.choices:
            _require_visible(value)
        return float(value) if self.kind == "float" else value

    def read(self, value: Any) -> Any:
        """Return a value as the declared type.

        Raises:
            ValueError: it is not allowed; the message may say more than `allowed` does.
        """
        if self.type_name == self.kind:
            return self._one(value)
        if not isinstance(value, list):
            raise ValueError
        return [self._one(element) for element in value]


def _require_visible(text: str) -> None:
    """Refuse what a page or a file would take for something else than a character that a reader sees."""
    for place, character in enumerate(text, 1):
        if (shown := inert(character)) != character:
            raise ValueError(f"character {place} is {shown}")
    if inert(text) != text:
        raise ValueError("one letter has too many marks")


def _limits(comment: str, kind: str) -> dict[str, Any]:
    """Return the range, or the choices, that a comment ends with.

    Raises:
        ValueError: a number has no range, or an empty one.
    """
    if kind in ("int", "float"):
        match = _RANGE.search(comment)
        if match is None:
            raise ValueError("the comment of a number must end with its range, such as `in [0, 1)`")
        if not float(match[2]) <= float(match[3]):
            raise ValueError(f"the range of its comment is empty: {match.group()}")
        return {"limits": match.groups()}
    if kind == "str" and (match := _CHOICES.search(comment)):
        choices = match.group(1).rstrip(".").split(",")
        return {"choices": tuple(choice.strip().strip("\"'`") for choice in choices)}
    return {}


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0]: t.string.lstrip("# ").strip() for t in tokens if t.type == tokenize.COMMENT}


def _parameter(node: ast.stmt, comments: dict[int, str], where: str) -> Parameter:
    """Return what one statement of the cell declares, or refuse it."""
    if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None):
        raise InvalidParameter(
            f"{where}, parameters cell, line {node.lineno}: must be `name: type = value  # help`"
        )
    name, type_name = node.target.id, ast.unparse(node.annotation)
    comment, at = comments.get(node.end_lineno or node.lineno, ""), f"{where}.{quoted(name)}"
    if type_name not in TYPES:
        raise InvalidParameter(f"{at}: type {quoted(type_name)!r} must be one of {', '.join(TYPES)}")
    if not comment:
        raise InvalidParameter(f"{at}: its line must end with a comment that describes it")
    try:
        default = ast.literal_eval(node.value)
        limits = _limits(comment, type_name.removeprefix("list[").removesuffix("]"))
    except ValueError as error:
        raise InvalidParameter(f"{at}: {quoted(error)}") from error
    return Parameter(name, type_name, default, comment, **limits)


@functools.cache
def declared_in(cell: str, where: str) -> dict[str, Parameter]:
    """Return the parameters that a cell declares, by name.

    Args:
        cell: its source, one `name: type = default  # help; in [low, high]` a line.
        where: the chapter, for the message.

    Raises:
        InvalidParameter: a line is something else, or declares what another one declared.
    """
    try:
        tree, comments = ast.parse(cell), _comments(cell)
        parameters = [_parameter(node, comments, where) for node in tree.body]
    except (SyntaxError, tokenize.TokenError) as error:
        raise InvalidParameter(f"{where}, parameters cell: {quoted(error)}") from error
    except (MemoryError, RecursionError) as error:  # of Python's parser, of about a hundred levels
        raise InvalidParameter(f"{where}, parameters cell: nested too deep; write plain values") from error
    names = [p.name for p in parameters]
    if doubled := next((n for n in names if names.count(n) > 1), None):
        raise InvalidParameter(f"{where}.{quoted(doubled)}: declared twice")
    return {p.name: p for p in parameters}


def unknown_name(name: object, known: list[str]) -> str:
    """Return what to say about an undeclared name: the close matches, then all that are declared."""
    close = difflib.get_close_matches(str(name), known, n=2)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return f"no such parameter; {hint}known: {', '.join(known) or 'none'}"


def checked(known: dict[str, Parameter], values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return values as their declared types.

    Args:
        known: what is declared, by name.
        values: any of them, by name.
        where: the source of the values, for the message.

    Raises:
        InvalidParameter: the first that is unknown, of another type or out of its range: in one line its
            place, its value, and what is allowed.
    """
    found = {}
    for name, value in values.items():
        at = f"{where}.{quoted(name)} = {show(value)}"
        if name not in known:
            raise InvalidParameter(f"{at}: {unknown_name(name, list(known))}")
        try:
            found[name] = known[name].read(value)
        except (ValueError, OverflowError) as error:
            why = f"; {error}" if isinstance(error, ValueError) and str(error) else ""
            raise InvalidParameter(f"{at}: must be {known[name].allowed}{why}") from error
    return found


def show(value: object) -> str:
    """Return a value as one short line of visible characters."""
    try:
        return quoted(_short.repr(value))
    except ValueError:  # a whole number too long to print
        return type(value).__name__


def _assigned(source: str) -> set[str]:
    nodes = ast.walk(ast.parse(source))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _declaration(cells: list[str]) -> int | None:
    """Return the place of the parameters cell among the cells that ran: the last one, if it ran twice."""
    for place in reversed(range(len(cells))):
        try:
            if "profile" in declared_in(cells[place], "parameters"):
                return place
        except InvalidParameter:
            continue
    return None


def check() -> None:
    """Check the parameters of the notebook that runs, and give each value its declared type.

    Reads the declarations from the cell that ran, and the values from the notebook's own variables, so that
    papermill's, an edited cell's and a sweep's go through the same gate. Outside of a notebook it does
    nothing.

    Raises:
        InvalidParameter: papermill set a name that the cell does not declare, or a value has another type
            or lies out of its range.
    """
    from IPython import get_ipython  # the runner, which reads cells too, does without it

    shell = get_ipython()
    cells = [] if shell is None else list(shell.history_manager.input_hist_raw)
    place = _declaration(cells)
    if place is None:
        return
    known = declared_in(cells[place], "parameters")
    for cell in cells[place + 1 :]:
        if cell.startswith(_INJECTED) and (unknown := sorted(_assigned(cell) - set(known))):
            raise InvalidParameter(
                f"parameters.{quoted(unknown[0])}: {unknown_name(unknown[0], list(known))}"
            )
    values = {name: shell.user_ns[name] for name in known}
    shell.user_ns.update(checked(known, values, "parameters"))
