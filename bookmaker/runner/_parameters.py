"""The typed `parameters` cell of a notebook, read without running it, and values checked against it.

Papermill runs on with the default when a name is misspelled, accepts "8" for 8, and pastes whatever it
is given. Here a cell such as

    target_epsilon: float = 8.0  # privacy budget of the run, nats; in (0, 1000]

becomes a strict field: the annotation is the type, the end of the comment the range (a round bracket
excludes the end) or, for text, the choices (`one of pld, rdp`).
"""

import ast
import difflib
import functools
import io
import reprlib
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, create_model

from bookmaker.runner import _grammar, notebooks
from bookmaker.runner.chain import slug_of
from privhelpers.errors import InvalidParameter

WORDS = {
    "int": ("a whole number", "whole numbers"),
    "float": ("a number", "numbers"),
    "str": ("text", "texts"),
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


def _encodable(text: str) -> str:
    text.encode("utf-8")  # half a surrogate pair is text to Python, and to no file
    return text


def _annotation(type_name: str, limits: _grammar.Limits) -> tuple[Any, str]:
    """Return the pydantic annotation of a type under its limits, and the same in words."""
    element = type_name.removeprefix("list[").removesuffix("]")
    field: dict[str, Any] = {"strict": True, **limits.bounds}
    if element == "float":
        field["allow_inf_nan"] = False
    single = Annotated[PYTHON[element], Field(**field)]
    if element == "str":
        single = Annotated[str, Field(strict=True), AfterValidator(_encodable)]
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
    comment = comments.get(node.end_lineno or node.lineno, "")
    if type_name not in TYPES:
        raise InvalidParameter(f"{where}.{name}: type {type_name!r} must be one of {', '.join(TYPES)}")
    if not comment:
        raise InvalidParameter(f"{where}.{name}: its line must end with a comment that says what it is")
    try:
        default = ast.literal_eval(node.value)
        limits = _grammar.read(comment, type_name)
    except ValueError as error:
        raise InvalidParameter(f"{where}.{name}: {error}") from error
    annotation, allowed = _annotation(type_name, limits)
    return Parameter(name, type_name, default, comment, allowed, annotation)


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
    return _declared_in(cells[0], slug)


@functools.cache
def _declared_in(cell: str, slug: str) -> dict[str, Parameter]:
    """Return the parameters of one cell; a plan asks for each notebook's six times."""
    try:
        tree, comments = ast.parse(cell), _comments(cell)
    except (SyntaxError, tokenize.TokenError) as error:
        raise InvalidParameter(f"{slug}, parameters cell: {error}") from error
    found = [_parameter(node, comments, slug) for node in tree.body]
    names = [p.name for p in found]
    if doubled := next((n for n in names if names.count(n) > 1), None):
        raise InvalidParameter(f"{slug}.{doubled}: declared twice")
    return {p.name: p for p in found}


def unknown_name(name: object, known: list[str]) -> str:
    """Return what to say about a name that nobody declares: the close matches, then all of them."""
    close = difflib.get_close_matches(str(name), known, n=2)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return f"no such parameter; {hint}known: {', '.join(known) or 'none'}"


def check(slug: str, known: dict[str, Parameter], values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return `values` as their declared types, or refuse the first that is not allowed."""
    for name, value in values.items():
        if name not in known:
            raise InvalidParameter(
                f"{where}, {slug}.{name} = {show(value)}: {unknown_name(name, list(known))}"
            )
    fields = {name: (known[name].annotation, ...) for name in values}
    # Underscored because a parameter may be called like a method of BaseModel ("copy", "json").
    renamed = {f"p_{name}": field for name, field in fields.items()}
    model = create_model("Parameters", __config__=ConfigDict(extra="forbid", strict=True), **renamed)
    try:
        checked = model.model_validate({f"p_{name}": value for name, value in values.items()})
    except ValidationError as error:
        path = error.errors(include_url=False)[0]["loc"]
        name = str(path[0]).removeprefix("p_")
        raise InvalidParameter(
            f"{where}, {slug}.{name} = {show(values[name])}: must be {known[name].allowed}"
        ) from error
    return {name.removeprefix("p_"): value for name, value in checked.model_dump().items()}


def show(value: object) -> str:
    """Return a value as one short line."""
    try:
        return _short.repr(value)
    except ValueError:  # a whole number too long to print
        return type(value).__name__


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
    values = check(slug, known, {n: p.default for n, p in known.items()}, f"notebooks/{notebook.name}")
    return values | check(slug, known, overrides, where)
