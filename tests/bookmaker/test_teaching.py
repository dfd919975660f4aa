"""Student copies contain no solution but what it shows; every exercise of the book has one that runs."""

import ast
import copy
import html
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from toy_site import ROOT, glued

from bookmaker.runner import chain, notebooks
from bookmaker.site import exercises
from bookmaker.teaching import _student
from privhelpers.errors import DamagedArtifact

EXERCISE = """## Exercises

````{exercise} A coin
:label: ex-coin
Throw {glue:text}`throws` coins; see {glue:text}`unknown:.2f`.
```{note}
They are fair.
```
````

````{solution} ex-coin
:class: dropdown
The secret answer is {glue:text}`rate:.2f`.
```python
1
```
````"""


def code(source, *outputs, tags=()):
    return new_code_cell(source, outputs=list(outputs), execution_count=1, metadata={"tags": list(tags)})


def chapter(*solution_outputs):
    cells = [
        new_markdown_cell("# Coins\n\nWe throw {glue:text}`throws` of {glue:text}`kind`."),
        code("tell()", glued("throws", text_plain="100"), glued("kind", text_plain="'copper'")),
        new_markdown_cell(EXERCISE),
        code("answer = 0.5", *solution_outputs, tags=("solution", "hide-input")),
        new_markdown_cell("## What this run shows\n\nCoins."),
    ]
    executed = new_notebook(cells=cells)
    source = copy.deepcopy(executed)
    for cell in notebooks.code_cells(source):
        cell.outputs, cell.execution_count = [], None
    return executed, source


def test_a_copy_has_the_exercise_and_what_its_solution_shows_and_not_the_solution():
    shown = new_output("execute_result", {"text/plain": "has ``` in it"}, execution_count=1)
    picture = new_output("display_data", {"image/png": "aGk=", "text/plain": "<Figure>"})
    executed, source = chapter(shown, picture)
    before = nbformat.writes(source)
    made = _student.student_copy(executed, source)
    text = "\n".join(cell.source for cell in made.cells)
    assert "secret" not in text and "answer = 0.5" not in text and "{solution}" not in text
    assert "Throw 100 coins; see {glue:text}`unknown:.2f`." in text and "They are fair." in text
    assert [cell.source for cell in notebooks.code_cells(made)][-1] == _student.YOURS
    assert not any(cell.outputs for cell in notebooks.code_cells(made))
    (expected,) = [cell for cell in made.cells if cell.source.startswith(_student.EXPECTED)]
    assert "````text\nhas ``` in it\n````" in expected.source and "<Figure>" not in expected.source
    assert expected.attachments == {"expected-0.png": {"image/png": "aGk="}}
    nbformat.validate(made)
    assert len({cell["id"] for cell in made.cells}) == len(made.cells)
    assert nbformat.writes(source) == before, "the source is left as it was"


@pytest.mark.parametrize("text", ["<script>x</script>", "![x](//a)", "{ref}`a`", "*a* _b_ $c$", ":::{raw} h"])
def test_a_text_that_a_sentence_quotes_is_words(text):
    sentence = _student.with_numbers("It is {glue:text}`said`.", {"said": text})
    assert html.unescape(sentence) == f"It is {text}."
    assert not re.search(r"[<>`*$\[\]{}_]|:[:{]", sentence)


def with_cell(cell):
    executed, source = chapter()
    source.cells.append(cell)
    executed.cells.append(cell)
    return executed, source


DAMAGED = [
    *("````{exercise} A\n:label: ex-a\n```", "```{exercise} A\n```"),
    "~~~{solution} ex-coin\nsecret\n~~~",
    "- ```{solution} ex-coin\n  secret\n  ```",
    "```{solution-start} ex-coin\n```\nsecret\n```{solution-end}\n```",
    "``` {Solution} ex-coin\nsecret\n```",
    "````{exercise} B\n:label: ex-b\n```{solution} ex-coin\nsecret\n```\n````",
    "```{eval-rst}\n.. |x| solution:: ex-coin\n\n   secret\n```",
]


@pytest.mark.parametrize("words", DAMAGED)
def test_a_solution_that_cannot_be_taken_out_is_refused(words):
    executed, source = with_cell(new_markdown_cell(f"## More\n\n{words}"))
    with pytest.raises(DamagedArtifact, match=r"01_toy, cell 5, line [3-6]"):
        _student.student_copy(executed, source, "01_toy")
    with pytest.raises(DamagedArtifact, match="01_toy, cell 5, line"):
        exercises.exercises(source, "01_toy")


@pytest.mark.parametrize(
    "cell", [new_markdown_cell("```{solution} ex-none\n```"), code("1", tags=("solution",))]
)
def test_a_solution_without_an_exercise_above_it_is_refused(cell):
    with pytest.raises(DamagedArtifact, match="01_toy"):
        exercises.exercises(new_notebook(cells=[cell]), "01_toy")


@pytest.mark.parametrize(
    "words",
    [
        "```{solution} ex-coin\nsecret\u2028```\nsecret\n```",
        "```{solution} ex-coin\r\nsecret\r\n```\r",
        ":::{solution} ex-coin\nsecret\n  ::::: ",
    ],
)
def test_a_solution_ends_where_myst_ends_it(words):
    (kept,) = exercises.without_solutions([new_markdown_cell(f"Before.\n\n{words}\nAfter.")])
    assert kept.source == "Before.\n\nAfter."


@pytest.mark.parametrize("tag", ["Solution", "my_solutions", "mySolution"])
def test_a_tag_that_takes_nothing_out_is_refused(tag):
    with pytest.raises(DamagedArtifact, match=f"01_toy, cell 5: .*{tag}"):
        _student.student_copy(*with_cell(new_code_cell("secret", metadata={"tags": [tag]})), "01_toy")
    (kept,) = exercises.without_solutions([new_code_cell("x", metadata={"tags": ["high-resolution"]})])
    assert kept.metadata.tags == ["high-resolution"]


def _names(cell, kind):
    tree = ast.parse("\n".join(line for line in cell.source.splitlines() if not line.startswith("%")))
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, kind)}


@pytest.mark.parametrize("slug", chain.SLUGS)
def test_a_chapter_has_four_exercises_and_nothing_else_needs_their_solutions(slug):
    """A warm-up with its answer, two that are solved at the end, in words or in code, and a hard one."""
    source = notebooks.read(chain.source(ROOT, slug))
    asked = exercises.exercises(source, slug)
    assert [asked[0].title.startswith("Warm-up: "), asked[-1].title.startswith("★ "), len(asked)] == [
        True,
        True,
        4,
    ]
    assert any(exercise.cells for exercise in asked[1:]), "not all in words"
    assert [cell.source for cell in source.cells].count(exercises.HEADING) == 1
    given, only_solved = set(), set()
    for cell in notebooks.code_cells(source):
        if exercises.is_solution(cell):
            only_solved |= _names(cell, ast.Store) - given
        else:
            assert not _names(cell, ast.Load) & only_solved, slug
            given |= _names(cell, ast.Store)
