"""The typed cell and values checked against it."""

import ast
import difflib
import functools
import io
import reprlib
import tokenize
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, create_model

from privhelpers.errors import InvalidParameter
from privhelpers.parameters import _grammar
from privhelpers.text import inert, quoted

_SHOWN = "on one line, every character of it visible"
WORDS = {
    "int": ("a whole number", "whole numbers"),
    "float": ("a number", "numbers"),
    "str": (f"text {_SHOWN}", f"texts, each {_SHOWN}"),
    "bool": ("true or false", "true or false"),
}
TYPES = (*WORDS, "list[float]", "list[int]", "list[str]")
PYTHON = {"int": int, "float": float, "str": str, "bool": bool}
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
        allowed: what a value must be, in words.
        annotation: the same for pydantic.
    """

    name: str
    type_name: str
    default: Any
    help: str
    allowed: str
    annotation: Any


def _visible(text: str) -> str:
    """Refuse what a page or a file would take for something else than a character that a reader sees."""
    for place, character in enumerate(text, 1):
        if (shown := inert(character)) != character:
            raise ValueError(f"character {place} is {shown}")
    if inert(text) != text:
        raise ValueError("more marks stand on one letter than it can bear")
    return text


def _annotation(type_name: str, limits: _grammar.Limits) -> tuple[Any, str]:
    """Return the pydantic annotation of a type under its limits, and the same in words."""
    element = type_name.removeprefix("list[").removesuffix("]")
    field: dict[str, Any] = {"strict": True, **limits.bounds}
    if element == "float":
        field["allow_inf_nan"] = False
    single = Annotated[PYTHON[element], Field(**field)]
    if element == "str":
        single = Annotated[str, Field(strict=True), AfterValidator(_visible)]
    if limits.choices:
        single = Annotated[_grammar.literal(limits.choices), Field()]
    one, many = WORDS[element]
    if type_name == element:
        return single, limits.text if limits.choices else f"{one} {limits.text}".strip()
    words = f"a list of {many}, each {limits.text}".removesuffix(", each ")
    return Annotated[list[single], Field(strict=True)], words


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
        raise InvalidParameter(f"{at}: its line must end with a comment that says what it is")
    try:
        default = ast.literal_eval(node.value)
        limits = _grammar.read(comment, type_name)
    except ValueError as error:
        raise InvalidParameter(f"{at}: {quoted(error)}") from error
    annotation, allowed = _annotation(type_name, limits)
    return Parameter(name, type_name, default, comment, allowed, annotation)


@functools.cache
def declared_in(cell: str, where: str) -> dict[str, Parameter]:
    """Return the parameters that a cell declares, by name.

    Args:
        cell: its source, one `name: type = default  # help; in [lo, hi]` a line.
        where: the chapter, for the message.

    Raises:
        InvalidParameter: a line is something else, or declares what another one declared.
    """
    try:
        tree, comments = ast.parse(cell), _comments(cell)
        parameters = [_parameter(node, comments, where) for node in tree.body]
    except (SyntaxError, tokenize.TokenError) as error:
        raise InvalidParameter(f"{where}, parameters cell: {quoted(error)}") from error
    except (MemoryError, RecursionError) as error:  # of Python's parser, which holds a hundred levels or so
        raise InvalidParameter(f"{where}, parameters cell: nested too deep; write plain values") from error
    names = [p.name for p in parameters]
    if doubled := next((n for n in names if names.count(n) > 1), None):
        raise InvalidParameter(f"{where}.{quoted(doubled)}: declared twice")
    return {p.name: p for p in parameters}


def unknown_name(name: object, known: list[str]) -> str:
    """Return what to say about a name that nobody declares: the close matches, then all of them."""
    close = difflib.get_close_matches(str(name), known, n=2)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return f"no such parameter; {hint}known: {', '.join(known) or 'none'}"


def checked(known: dict[str, Parameter], values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return values as their declared types.

    Args:
        known: what is declared, by name.
        values: any of them, by name.
        where: what the values stand in, for the message.

    Raises:
        InvalidParameter: the first that is unknown, of another type or out of its range: in one line where
            it stands, what it is and what is allowed.
    """
    for name, value in values.items():
        if name not in known:
            raise InvalidParameter(
                f"{where}.{quoted(name)} = {show(value)}: {unknown_name(name, list(known))}"
            )
    fields = {name: (known[name].annotation, ...) for name in values}
    # Underscored because a parameter may be called like a method of BaseModel ("copy", "json").
    renamed = {f"p_{name}": field for name, field in fields.items()}
    model = create_model("Parameters", __config__=ConfigDict(extra="forbid", strict=True), **renamed)
    try:
        checked = model.model_validate({f"p_{name}": value for name, value in values.items()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]).removeprefix("p_")
        why = f"; {first['ctx']['error']}" if first["type"] == "value_error" else ""
        raise InvalidParameter(
            f"{where}.{name} = {show(values[name])}: must be {known[name].allowed}{why}"
        ) from error
    return {name.removeprefix("p_"): value for name, value in checked.model_dump().items()}


def show(value: object) -> str:
    """Return a value as one short line of visible characters."""
    try:
        text = inert(_short.repr(value))
    except ValueError:  # a whole number too long to print
        return type(value).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."
