"""The quiz at the end of a chapter: one bank of questions, filled with the numbers of the run that is shown.

`book/quizzes/<slug>.yml` maps the name of a question to what it `asks`, the heading that it is about (`see`),
the `right` choice and two to four `wrong` ones, each with what it `says` and `why`. Numbers are quoted as in
a chapter, and an entry `numbers` may compute further ones from those that the run keeps:

    two-answers:
      asks: What do two answers with $\\varepsilon$ = 1 each cost by the sum?
      see: The sum
      numbers: {sum: 1 + 1}
      right: {says: "{glue:text}`sum:.0f`", why: Budgets of answers about the same people add up.}
      wrong: [...]
"""

import ast
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from bookmaker.runner import files, notebooks
from bookmaker.site._markdown import words
from privhelpers import text
from privhelpers.errors import InvalidParameter
from privhelpers.validate import shown

RECORD = "application/papermill.record/"
QUOTE = re.compile(r"\{glue:text\}`([A-Za-z_]\w*)(?::([^`]*))?`")
FOLDER = "book/quizzes"
TITLE = "Quiz"
KEYS = ("asks", "see", "right", "wrong")  # and, where something is computed, "numbers"
CHOICE = ("says", "why")
WRONG = range(2, 5)  # how many wrong choices a question may have
NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
HEADING = re.compile(r"^#{2,3} (.+?)\s*$", re.MULTILINE)  # those that a link can name, see `_config.yml`
# Numbers, names, operations and calls of functions: neither attributes nor texts.
EXPRESSION = re.compile(r"(?:[\w +*/()-]|(?<=\d)\.(?=\d))+")
FUNCTIONS = {"exp": math.exp, "log": math.log, "sqrt": math.sqrt}
NOT_COMPUTED = SyntaxError, NameError, TypeError, ValueError, ArithmeticError, RecursionError, MemoryError
INTRO = "Choose an answer and check it; nothing is sent anywhere, and nothing is kept."


@dataclass(frozen=True)
class Choice:
    """One answer to choose: whether it is right, what it says and why it is right or wrong, as Markdown."""

    right: bool
    says: str
    why: str


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        name: unique in its chapter.
        asks: the question, one paragraph of Markdown.
        see: the heading of the chapter that answers it.
        numbers: expressions over the numbers that a run keeps, by name.
        choices: two or more, one of them right, in the order in which they are shown.
    """

    name: str
    asks: str
    see: str
    numbers: dict[str, str]
    choices: tuple[Choice, ...]


def quoted(notebook: NotebookNode) -> dict[str, int | float | str]:
    """Return what a page quotes, by name: numbers, and the wordings that its run chose.

    Args:
        notebook: executed.
    """
    values: dict[str, int | float | str] = {}
    for output in (output for cell in notebooks.code_cells(notebook) for output in cell.outputs):
        name = output.get("metadata", {}).get("scrapbook", {}).get("name")
        value = output.get("data", {}).get(f"{RECORD}text/plain")
        if name and value is not None and f"{RECORD}text/html" not in output["data"]:
            try:
                values[name] = ast.literal_eval(value)
            except (SyntaxError, ValueError):  # infinity and not-a-number print as names
                values[name] = value
    return values


def with_numbers(source: str, numbers: Mapping[str, object], where: str = "page") -> str:
    """Return a sentence of Markdown with what it quotes, texts as words; a name that is not known stays.

    Raises:
        InvalidParameter: a value cannot be written in the form that a quote asks for.

    >>> with_numbers("The AUC is {glue:text}`auc:.2f`.", {"auc": 0.9634})
    'The AUC is 0.96.'
    """

    def value(match: re.Match) -> str:
        name, shape = match.groups()
        if name not in numbers:
            return match[0]
        given = numbers[name]
        try:  # infinity and not-a-number are kept as names
            quote = format(float(given) if shape and given in ("inf", "-inf", "nan") else given, shape or "")
        except (TypeError, ValueError) as error:
            quote = f"{text.quoted(match[0])}: {str(given)[:60]!a}"
            raise InvalidParameter(f"{where}: {quote} cannot be shown so") from error
        return words(quote) if isinstance(numbers[name], str) else quote

    return QUOTE.sub(value, source)


def _paragraph(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip() or "\n\n" in value.strip():
        raise InvalidParameter(f"{where}: must be one paragraph of text, not {shown(value)}")
    return " ".join(value.split())


def _table(value: Any, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() - {"numbers"} != set(keys):
        found = text.quoted(", ".join(map(str, value))) if isinstance(value, dict) else shown(value)
        raise InvalidParameter(f"{where}: must have {', '.join(keys)} and nothing else, not {found}")
    return value


def _question(name: str, entry: Any, where: str) -> Question:
    """Return one entry of a bank, checked; the order of its choices hangs on their words alone."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidParameter(f"{where}: a name has lower-case words with hyphens between them")
    given = _table(entry, KEYS, where)
    if not isinstance(given["wrong"], list) or len(given["wrong"]) not in WRONG:
        raise InvalidParameter(f"{where}: needs a list of {WRONG[0]} to {WRONG[-1]} wrong choices")
    choices = []
    for number, one in enumerate([given["right"], *given["wrong"]]):
        place = f"{where}, {f'wrong choice {number}' if number else 'right choice'}"
        said = _table(one, CHOICE, place)
        choices.append(Choice(number == 0, *(_paragraph(said[key], f"{place}, {key}") for key in CHOICE)))
    choices.sort(key=lambda choice: hashlib.sha256(f"{name} {choice.says}".encode()).digest())
    numbers = given.get("numbers", {})
    if not isinstance(numbers, dict) or not all(isinstance(key, str) for key in numbers):
        raise InvalidParameter(f"{where}, numbers: must map names to expressions")
    if odd := {type(value).__name__ for value in numbers.values()} - {"str", "int", "float"}:
        raise InvalidParameter(f"{where}, numbers: must be text and numbers, not {', '.join(sorted(odd))}")
    asks, see = (_paragraph(given[key], f"{where}, {key}") for key in ("asks", "see"))
    numbers = {key: value if isinstance(value, str) else shown(value) for key, value in numbers.items()}
    return Question(name, asks, see, numbers, tuple(choices))


def bank(root: Path, slug: str) -> list[Question]:
    """Return the questions of a chapter as they are written, none where it has no file.

    Raises:
        InvalidParameter: the file is no bank of questions; the message names the entry.
    """
    path = root / FOLDER / f"{slug}.yml"
    if not path.is_file():
        return []
    file = f"{FOLDER}/{path.name}"
    entries = files.mapping(root, file).items()
    return [_question(name, entry, f"{file}, {text.quoted(name)}") for name, entry in entries]


def _computed(expression: str, known: Mapping[str, Any]) -> float:
    """Return the value of an expression, in which all numbers are floats: whole ones, and texts, can grow."""
    tree = ast.parse(expression, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = float(node.value)
    numbers = {name: float(value) for name, value in known.items() if isinstance(value, int | float)}
    return float(eval(compile(tree, "<numbers>", "eval"), {"__builtins__": {}}, FUNCTIONS | numbers))


def _filled(question: Question, values: Mapping[str, Any], where: str) -> Question:
    """Return a question with its numbers; a wrong choice that then reads as another one is left out.

    Raises:
        InvalidParameter: it quotes what the run does not keep, or nothing is left to choose between.
    """
    known = dict(values)
    try:
        for name, expression in question.numbers.items():
            if not EXPRESSION.fullmatch(expression):
                raise ValueError(f"cannot compute {expression}")
            known[name] = _computed(expression, known)
    except NOT_COMPUTED as error:
        raise InvalidParameter(f"{where}, numbers: {text.quoted(error)}") from error

    def fill(text: str) -> str:
        text = with_numbers(text, known, where)
        if missing := QUOTE.search(text):
            raise InvalidParameter(f"{where}: quotes {missing[1]}, which the run does not keep")
        return text

    choices = [Choice(one.right, fill(one.says), fill(one.why)) for one in question.choices]
    right = next(one.says for one in choices if one.right)
    kept = {one.says: one for one in choices if one.right or one.says != right}
    if len(kept) == 1:
        raise InvalidParameter(f"{where}: all its choices read {shown(right)}")
    return Question(question.name, fill(question.asks), question.see, {}, tuple(kept.values()))


def questions(root: Path, slug: str, page: NotebookNode) -> list[Question]:
    """Return the questions of a chapter with the numbers of a run.

    Args:
        root: the repository.
        slug: of the chapter.
        page: its run, with today's words.

    Raises:
        InvalidParameter: the bank is none, quotes what the run does not keep, or names a heading that the
            chapter does not have.
    """
    prose = "\n\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
    headings, values, filled = HEADING.findall(prose), quoted(page), []
    for question in bank(root, slug):
        where = f"{FOLDER}/{slug}.yml, {question.name}"
        if question.see not in headings:
            raise InvalidParameter(
                f"{where}: there is no heading {shown(question.see)}; there are {headings}"
            )
        filled.append(_filled(question, values, where))
    return filled


def _anchor(heading: str) -> str:
    """Return what MyST calls a heading in a link."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _written(number: int, question: Question) -> str:
    """Return a question as MyST: choices, and folded the answer with a reason for each of them."""
    lines = [f":::::{{container}} quiz-question\n**{number}.** {question.asks}\n"]
    lines += [f"{i}. {choice.says}" for i, choice in enumerate(question.choices, 1)]
    lines.append("\n::::{dropdown} Answer and reasons")
    for letter, choice in zip("ABCDE", question.choices, strict=False):
        verdict = f"{letter} is {'right' if choice.right else 'wrong'}."
        link = f"[{question.see}](#{_anchor(question.see)})"
        kind = "quiz-why quiz-right" if choice.right else "quiz-why"
        lines.append(f":::{{container}} {kind}\n**{verdict}** {choice.why} See {link}.\n:::")
    return "\n".join([*lines, "::::\n:::::"])


def add(root: Path, slug: str, page: NotebookNode) -> None:
    """Put the quiz of a chapter at the end of its page, in place; raises what `questions` raises."""
    if asked := questions(root, slug, page):
        parts = [_written(number, question) for number, question in enumerate(asked, 1)]
        text = "\n\n".join([f"(quiz-{slug.replace('_', '-')})=\n## {TITLE}\n\n{INTRO}", *parts])
        page.cells.append(new_markdown_cell(text, id="quiz"))
