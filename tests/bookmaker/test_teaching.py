"""Student copies hold no solution but what it shows; every exercise of the book has one that runs."""

import ast
import copy
import html
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bookmaker.runner import chain, notebooks
from bookmaker.site import exercises
from bookmaker.teaching import _student
from privhelpers.errors import DamagedArtifact

ROOT = Path(__file__).parents[2]
SLUGS = list(chain.SLUGS)
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


def glued(name, text):
    return new_output(
        "display_data",
        {"application/papermill.record/text/plain": text},
        metadata={"scrapbook": {"name": name, "mime_prefix": "application/papermill.record/"}},
    )


def code(source, *outputs, tags=(), count=1):
    return new_code_cell(source, outputs=list(outputs), execution_count=count, metadata={"tags": list(tags)})


def chapter(*solution_outputs):
    cells = [
        new_markdown_cell("# Coins\n\nWe throw {glue:text}`throws` of {glue:text}`kind`."),
        code("tell(throws=100, kind='copper')", glued("throws", "100"), glued("kind", "'copper'")),
        new_markdown_cell(EXERCISE),
        code("answer = 0.5", *solution_outputs, tags=("solution", "hide-input")),
        new_markdown_cell("## Summary\n\nCoins."),
    ]
    executed = new_notebook(cells=cells)
    source = copy.deepcopy(executed)
    for cell in notebooks.code_cells(source):
        cell.outputs, cell.execution_count = [], None
    return executed, source


def text_of(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


def test_a_copy_has_the_exercise_and_not_its_solution():
    made = _student.student_copy(*chapter())
    text = text_of(made)
    assert "secret" not in text and "answer = 0.5" not in text and "{solution}" not in text
    assert "Throw 100 coins; see {glue:text}`unknown:.2f`." in text and "They are fair." in text
    assert [cell.source for cell in notebooks.code_cells(made)][-1] == _student.YOURS
    assert not any(cell.outputs for cell in notebooks.code_cells(made))
    nbformat.validate(made)
    assert len({cell["id"] for cell in made.cells}) == len(made.cells)


def test_the_source_is_left_as_it_was():
    executed, source = chapter()
    before = nbformat.writes(source)
    _student.student_copy(executed, source)
    assert nbformat.writes(source) == before


def test_expected_text_and_picture_stay():
    shown = new_output("execute_result", {"text/plain": "has ``` in it"}, execution_count=1)
    picture = new_output("display_data", {"image/png": "aGk=", "text/plain": "<Figure>"})
    made = _student.student_copy(*chapter(shown, picture))
    cell = next(c for c in made.cells if c.source.startswith(_student.EXPECTED))
    assert "````text\nhas ``` in it\n````" in cell.source and "<Figure>" not in cell.source
    assert cell.attachments == {"expected-0.png": {"image/png": "aGk="}}
    nbformat.validate(made)


def test_numbers_are_written_out_in_the_shape_of_the_sentence():
    text = "{glue:text}`auc:.2f` of {glue:text}`name`, {glue:text}`other`"
    assert _student.with_numbers(text, {"auc": 0.966, "name": "all"}) == "0.97 of all, {glue:text}`other`"


@pytest.mark.parametrize(
    "text", ["<script>x</script>", "![x](//a)", "{ref}`a`", "*a* _b_ $c$", ":::{raw} html"]
)
def test_a_text_that_a_sentence_quotes_is_words(text):
    sentence = _student.with_numbers("It is {glue:text}`said`.", {"said": text})
    assert html.unescape(sentence) == f"It is {text}."
    assert not re.search(r"[<>`*$\[\]{}_]|:[:{]", sentence)


def test_damaged_blocks_are_named():
    with pytest.raises(DamagedArtifact, match="does not end"):
        exercises._blocks("````{exercise} A\n:label: ex-a\n```")
    with pytest.raises(DamagedArtifact, match="has no label"):
        exercises._blocks("```{exercise} A\n```")
    orphan = new_notebook(cells=[new_markdown_cell("```{solution} ex-none\n```")])
    with pytest.raises(DamagedArtifact, match="no exercise above"):
        exercises.exercises(orphan, "01_toy")
    early = new_notebook(cells=[code("1", tags=("solution",))])
    with pytest.raises(DamagedArtifact, match="before any solution"):
        exercises.exercises(early, "01_toy")


@pytest.mark.parametrize(
    "words",
    [
        "~~~{solution} ex-coin\nsecret\n~~~",
        "```{eval-rst}\n.. solution:: ex-coin\n\n   secret\n```",
        "  ```{solution} ex-coin\n  secret\n  ```",
        "- ```{solution} ex-coin\n  secret\n  ```",
        "```{solution-start} ex-coin\n```\nsecret\n```{solution-end}\n```",
        "``` {Solution} ex-coin\nsecret\n```",
        "```{ solution } ex-coin\nsecret\n```",
        "````{exercise} B\n:label: ex-b\n```{solution} ex-coin\nsecret\n```\n````",
        "```{eval-rst}\n.. solution:: ex-coin\n   secret\n```",
        "```{eval-rst}\n.. Solution :: ex-coin\n\n   secret\n```",
        "```{eval-rst}\n.. |x| solution:: ex-coin\n\n   secret\n```",
    ],
)
def test_a_solution_that_cannot_be_taken_out_is_refused(words):
    executed, source = chapter()
    source.cells[-1].source = f"## More\n\n{words}"
    with pytest.raises(DamagedArtifact, match=r"01_toy, cell 4, line [3-5]: .*is no solution"):
        _student.student_copy(executed, source, "01_toy")
    with pytest.raises(DamagedArtifact, match="01_toy, cell 4, line"):
        exercises.exercises(source, "01_toy")


@pytest.mark.parametrize(
    "words",
    [
        "```{solution} ex-coin\nsecret\u2028```\nsecret\n```",
        "```{solution} ex-coin\nsecret\n```\u00a0\nsecret\n```",
        "```{solution} ex-coin\r\nsecret\r\n```\r",
        ":::{solution} ex-coin\nsecret\n  ::::: ",
    ],
)
def test_a_solution_ends_where_myst_ends_it(words):
    assert exercises._without(f"Before.\n\n{words}\nAfter.", "solution") == "Before.\n\nAfter."


@pytest.mark.parametrize(
    ("cell", "tag"),
    [
        *((code, "Solution"), (code, "my_solutions"), (new_markdown_cell, "solution"), (code, "mySolution")),
        pytest.param(code, "solution" + 999 * "x", id="long"),
    ],
)
def test_a_tag_that_takes_nothing_out_is_refused(cell, tag):
    executed, source = chapter()
    source.cells.append(cell("secret"))
    source.cells[-1].metadata.tags = [tag]
    with pytest.raises(DamagedArtifact, match=f"01_toy, cell 5: .*{tag[:90]}.* is not") as refused:
        _student.student_copy(executed, source, "01_toy")
    assert len(str(refused.value)) < 300


def test_a_tag_about_something_else_stays():
    (kept,) = exercises.without_solutions([new_code_cell("x", metadata={"tags": ["high-resolution"]})])
    assert kept.metadata.tags == ["high-resolution"]


@pytest.mark.parametrize(
    ("shown", "name", "of_solution"),
    [
        ("![](attachment:a.png)", "a.png", "b.png"),
        ("![](attachment:data.png)", "data.png", "a.png"),
        ("![](attachment:a.png) and a.pn", "a.png", "a.pn"),
        ("![](attachment:my%20pic.png)", "my pic.png", "pic.png"),
        ("![](attachment:my%20pic.png)", "my%20pic.png", "pic.png"),
        ("![](<attachment:my pic (1).png>)", "my pic (1).png", "my pic"),
        ('<img src="attachment:a.png">', "a.png", "img"),
    ],
)
def test_the_picture_of_a_solution_goes_with_its_words(shown, name, of_solution):
    executed, source = chapter()
    source.cells[2].source = EXERCISE.replace("secret", f"![](attachment:{of_solution})") + f"\n\n{shown}"
    source.cells[2].attachments = {one: {"image/png": "aGk="} for one in (of_solution, name)}
    made = _student.student_copy(executed, source)
    assert [list(cell.attachments) for cell in made.cells if "attachments" in cell] == [[name]]


@pytest.mark.parametrize("slug", SLUGS)
def test_every_exercise_of_the_book_has_a_solution_that_runs(slug):
    chapter_exercises = exercises.exercises(notebooks.read(chain.source(ROOT, slug)), slug)
    assert len(chapter_exercises) == 3
    # One may be answered in words alone.
    assert sum(not exercise.cells for exercise in chapter_exercises) <= 1


def _names(cell, kind):
    tree = ast.parse("\n".join(line for line in cell.source.splitlines() if not line.startswith("%")))
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, kind)}


@pytest.mark.parametrize("slug", SLUGS)
def test_nothing_after_a_solution_needs_it(slug):
    given, only_solved = set(), set()
    for cell in notebooks.code_cells(notebooks.read(chain.source(ROOT, slug))):
        if exercises.is_solution(cell):
            only_solved |= _names(cell, ast.Store) - given
        else:
            assert not _names(cell, ast.Load) & only_solved, slug
            given |= _names(cell, ast.Store)
