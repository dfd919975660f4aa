"""The quizzes of the book for Moodle, with the numbers of a run, in GIFT.

GIFT gives a meaning to `~ = # { } :` and, before some letters, to the backslash; each of them gets a
backslash in front. A text is HTML, in which formulas are between `\\(` and `\\)`, as Moodle reads them.
"""

import html
import re
from pathlib import Path

from bookmaker.runner import files
from bookmaker.runner.plan import Job
from bookmaker.site import page_of, pages, questions
from privhelpers.artifacts import write_atomic
from privhelpers.errors import MissingArtifact

SPECIAL = re.compile(r"[\\~=#{}:]")
FORMULA, CODE, STRESS = re.compile(r"\$([^$]+)\$"), re.compile(r"`([^`]+)`"), re.compile(r"\*([^*]+)\*")


def _text(markdown: str) -> str:
    r"""Return a paragraph of a quiz as GIFT.

    >>> _text("Is $x$ a `set`: *yes*?")
    'Is \\\\(x\\\\) a <code>set</code>\\: <em>yes</em>?'
    """
    parts = FORMULA.split(html.escape(markdown, quote=False))
    parts[::2] = [STRESS.sub(r"<em>\1</em>", CODE.sub(r"<code>\1</code>", words)) for words in parts[::2]]
    parts[1::2] = [rf"\({formula}\)" for formula in parts[1::2]]
    return SPECIAL.sub(r"\\\g<0>", "".join(parts))


def write(root: Path, plan: list[Job]) -> list[Path]:
    """Write the quiz of every chapter that has one to `build/quizzes` and return the files.

    No other GIFT file stays there, and other files do.

    Args:
        root: the repository.
        plan: every run of a profile, complete.

    Raises:
        PrivHelpersError: a run is missing or damaged, or `bookmaker.site.questions` refuses a bank.
        MissingArtifact: no chapter has a quiz.
    """
    folder, quizzes = root / "build" / "quizzes", {}
    for page in (page for page in pages(plan) if page.is_chapter):
        slug, lines = page.job.slug, []
        for asked in questions(root, page.job.slug, page_of(root, page.job)):
            lines.append(f"::{slug} {asked.name}::[html]{_text(asked.asks)} {{")
            for choice in asked.choices:
                why = _text(f"{choice.why} See “{asked.see}”.")
                lines.append(f"{'=' if choice is asked.right else '~'}{_text(choice.says)}#{why}")
            lines.append("}\n")
        if lines:
            text = "\n".join([f"$CATEGORY: $course$/PrivAI-Leak/{slug}\n", *lines])
            quizzes[f"{slug}.gift"] = text.encode()
    if not quizzes:
        raise MissingArtifact("book/quizzes holds no quiz of any chapter")
    with files.replacing(folder, "*.gift") as new:
        for name, data in quizzes.items():
            write_atomic(new / name, data)
    return [folder / name for name in quizzes]
