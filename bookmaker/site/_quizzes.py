"""The quiz at the end of a chapter: one bank of questions, filled with the numbers of the run that is shown.

A page asks the first five; a teacher gets all of them (`bookmaker.teaching`).

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
from typing import Annotated, Any

import pydantic
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
ON_PAGE = 5  # the first questions of a bank
HEADING = re.compile(r"^#{2,3} (.+?)\s*$", re.MULTILINE)  # those that a link can name, see `_config.yml`
FUNCTIONS = {"exp": math.exp, "log": math.log, "sqrt": math.sqrt}
INTRO = "Choose an answer and check it; nothing is sent anywhere, and nothing is kept."


def _one_paragraph(text: str) -> str:
    if not text.strip() or "\n\n" in text.strip():
        raise ValueError("must be one paragraph of text")
    return " ".join(text.split())


Paragraph = Annotated[str, pydantic.AfterValidator(_one_paragraph)]
Name = Annotated[str, pydantic.StringConstraints(pattern="^[a-z][a-z0-9]*(-[a-z0-9]+)*$")]
Number = pydantic.StrictStr | pydantic.StrictInt | pydantic.StrictFloat


class _Entry(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class Choice(_Entry):
    """One answer to choose: what it says and why it is right or wrong, as Markdown."""

    says: Paragraph
    why: Paragraph


class Question(_Entry):
    """One question.

    Attributes:
        name: unique in its chapter; lower-case words with hyphens between them.
        asks: the question, one paragraph of Markdown.
        see: the heading of the chapter that answers it.
        numbers: expressions over the numbers that a run keeps, by name.
        right, wrong: the choices.
    """

    name: Name
    asks: Paragraph
    see: Paragraph
    numbers: dict[str, Number] = {}
    right: Choice
    wrong: list[Choice] = pydantic.Field(min_length=2, max_length=4)

    @property
    def choices(self) -> list[Choice]:
        """All choices in the order in which they are shown, which depends on the words of the file alone."""
        return sorted([self.right, *self.wrong], key=self._place)

    def _place(self, choice: Choice) -> bytes:
        return hashlib.sha256(f"{self.name} {choice.says}".encode()).digest()


@dataclass(frozen=True)
class Asked:
    """One question with the numbers of a run; see `Question`."""

    name: str
    asks: str
    see: str
    right: Choice
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


def bank(root: Path, slug: str) -> list[Question]:
    """Return the questions of a chapter as they are written, none where it has no file.

    Raises:
        InvalidParameter: the file is not a bank of questions; the message names the entry and its field.
    """
    file, made = f"{FOLDER}/{slug}.yml", []
    if not (root / file).is_file():
        return []
    for name, entry in files.mapping(root, file).items():
        try:
            made.append(Question.model_validate({"name": name, **entry}))
        except (pydantic.ValidationError, TypeError) as error:
            wrong = error.errors()[0] if isinstance(error, pydantic.ValidationError) else {}
            field = ", ".join(map(str, wrong.get("loc", ())))
            why = wrong.get("msg", "must be a mapping")
            raise InvalidParameter(f"{file}, {text.quoted(name)}, {text.quoted(field)}: {why}") from error
    return made


def _filled(question: Question, values: Mapping[str, Any], where: str) -> Asked:
    """Return a question with its numbers; a wrong choice that then reads as another one is left out.

    Raises:
        InvalidParameter: it quotes what the run does not keep, or nothing is left to choose between.
    """
    known = dict(values)
    try:
        for name, expression in question.numbers.items():
            known[name] = float(eval(str(expression), {"__builtins__": {}}, FUNCTIONS | known))
    except Exception as error:  # whatever an expression of the file raises
        raise InvalidParameter(f"{where}, numbers: {text.quoted(error)}") from error

    def fill(text: str) -> str:
        text = with_numbers(text, known, where)
        if missing := QUOTE.search(text):
            raise InvalidParameter(f"{where}: quotes {missing[1]}, which the run does not keep")
        return text

    def filled(choice: Choice) -> Choice:
        return Choice(says=fill(choice.says), why=fill(choice.why))

    right = filled(question.right)
    choices = [right if one is question.right else filled(one) for one in question.choices]
    kept = {one.says: one for one in choices if one is right or one.says != right.says}
    if len(kept) == 1:
        raise InvalidParameter(f"{where}: all its choices read {shown(right.says)}")
    return Asked(question.name, fill(question.asks), question.see, right, tuple(kept.values()))


def questions(root: Path, slug: str, page: NotebookNode) -> list[Asked]:
    """Return the questions of a chapter with the numbers of a run.

    Args:
        root: the repository.
        slug: of the chapter.
        page: its run, with today's words.

    Raises:
        InvalidParameter: the file is not a bank, quotes what the run does not keep, or names a heading that
            the chapter does not have.
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


def _written(number: int, question: Asked) -> str:
    """Return a question as MyST: choices, and folded the answer with a reason for each of them."""
    lines = [f":::::{{container}} quiz-question\n**{number}.** {question.asks}\n"]
    lines += [f"{i}. {choice.says}" for i, choice in enumerate(question.choices, 1)]
    lines.append("\n::::{dropdown} Answer and reasons")
    for letter, choice in zip("ABCDE", question.choices, strict=False):
        verdict = f"{letter} is {'right' if choice is question.right else 'wrong'}."
        link = f"[{question.see}](#{_anchor(question.see)})"
        kind = "quiz-why quiz-right" if choice is question.right else "quiz-why"
        lines.append(f":::{{container}} {kind}\n**{verdict}** {choice.why} See {link}.\n:::")
    return "\n".join([*lines, "::::\n:::::"])


def add(root: Path, slug: str, page: NotebookNode) -> None:
    """Put the quiz of a chapter at the end of its page, in place, above the words on what is next.

    Raises what `questions` raises.
    """
    if asked := questions(root, slug, page)[:ON_PAGE]:
        parts = [_written(number, question) for number, question in enumerate(asked, 1)]
        text = "\n\n".join([f"(quiz-{slug.replace('_', '-')})=\n## {TITLE}\n\n{INTRO}", *parts])
        leads_on = page.cells[-1].source.startswith("Next, ")
        page.cells.insert(len(page.cells) - leads_on, new_markdown_cell(text, id="quiz"))
