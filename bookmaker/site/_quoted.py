"""What two builds say differently: every number and every wording that their pages quote, page by page.

    python -m bookmaker.site quoted smoke smoke-micro-gpt2-s1

Sentences are the same in every build; what a run chose or measured is not. Where two builds of other seeds
chose the same wording, the words do not hang on luck; where they did not, both must be true of their pages.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from nbformat import NotebookNode

from bookmaker.runner import notebooks, published
from bookmaker.site._markdown import words
from privhelpers import text
from privhelpers.artifacts import check_name
from privhelpers.errors import InvalidParameter, MissingArtifact

RECORD = "application/papermill.record/"
QUOTE = re.compile(r"\{glue:text\}`([A-Za-z_]\w*)(?::([^`]*))?`")


def quoted(notebook: NotebookNode) -> dict[str, int | float | str]:
    """Return what a page quotes, by name: numbers, and the wordings that its run chose.

    Args:
        notebook: executed.
    """
    values: dict[str, int | float | str] = {}
    for output in (output for cell in notebooks.code_cells(notebook) for output in cell.outputs):
        name = output.get("metadata", {}).get("scrapbook", {}).get("name")
        text = output.get("data", {}).get(f"{RECORD}text/plain")
        if name and text is not None and f"{RECORD}text/html" not in output["data"]:
            try:
                values[name] = ast.literal_eval(text)
            except (SyntaxError, ValueError):  # infinity and not-a-number print as names
                values[name] = text
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


def _pages(root: Path, profile: str) -> dict[str, Path]:
    folder = root / "runs" / check_name(profile) / "notebooks"
    pages = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.ipynb")}
    if not pages:
        cure = published.site_command("book", profile, solutions=True)
        raise MissingArtifact(f"profile {profile} has no runs: {cure} makes them")
    return pages


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def differences(root: Path, one: str, other: str) -> Iterator[str]:
    """Yield, for each page that both builds have, what they quote differently: wordings, then numbers.

    Args:
        root: the repository.
        one, other: profiles that ran.

    Raises:
        InvalidParameter: one of them is no name of a profile.
        MissingArtifact: one of them has no runs.
    """
    before, after = _pages(root, one), _pages(root, other)
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            yield f"~ {name}: only in {one if name in before else other}"
            continue
        old, new = (quoted(notebooks.read(pages[name])) for pages in (before, after))
        differ = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        if not differ:
            continue
        words = [key for key in differ if str in (type(old.get(key)), type(new.get(key)))]
        count = f"{len(words)} wordings and {len(differ) - len(words)} numbers differ"
        yield f"~ {name}: {count}, of {len(old.keys() | new.keys())} quoted"
        for key in words:
            yield f"    {key}"
            yield f"      - {_shown(old.get(key, 'nothing'))}"
            yield f"      + {_shown(new.get(key, 'nothing'))}"
        for key in (key for key in differ if key not in words):
            yield f"    {key}: {_shown(old.get(key, 'nothing'))} -> {_shown(new.get(key, 'nothing'))}"
