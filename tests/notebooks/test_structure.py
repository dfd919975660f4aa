"""The notebooks as pages: what protects a reader, one notebook at a time."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
import yaml

from bookmaker.runner import chain
from bookmaker.site import exercises

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FORBIDDEN = {
    r"^\s*[!%]": "shell commands and magics",
    r"sys\.path|os\.chdir": "changing where Python looks",
    r"filterwarnings\(": "hiding warnings",
    r"manual_seed|np\.random\.seed|random\.seed": "global seeding (use rng)",
    r"savefig|open\(|read_csv|to_csv": "files outside artifacts",
    r"\bbookmaker\b": "what makes the book",
    r"if profile": "asking which profile runs",
    r"\bchoose\(": "a sentence that the run chooses (claims go into the list at the end)",
}
ENDING = ("## What this run shows", "## Exercises", exercises.HEADING, "Next, ")
GLUED = r"\{glue:text\}`(\w+)"


@pytest.fixture(params=NOTEBOOKS, ids=lambda p: p.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def code_of(notebook):
    return [c for c in notebook.cells if c.cell_type == "code"]


def test_the_order_of_the_files_is_the_order_of_the_book():
    assert sorted(chain.slug_of(p.name) for p in NOTEBOOKS) == sorted(chain.SLUGS)
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    listed = [entry["file"] for part in parts for entry in part["chapters"]]
    chapters = [name.removeprefix("notebooks/") for name in listed if name.startswith("notebooks/")]
    assert chapters == [path.stem for path in NOTEBOOKS]
    assert all(re.fullmatch(r"\d\d_[a-z_]+", name) for name in chapters)


def test_bookkeeping_is_folded(notebook):
    """What a cell tells the prose is no algorithm: it lies in a cell that the site and JupyterLab fold."""
    for cell in code_of(notebook):
        tags = cell.metadata.get("tags", [])
        assert ("bookkeeping" in tags) == bool(cell.metadata.get("jupyter", {}).get("source_hidden"))
        assert "bookkeeping" not in tags or "hide-input" in tags
        if not {"bookkeeping", "solution"} & set(tags):
            assert not re.search(r"\btell\(", cell.source), cell.source


def test_the_opening_has_a_label_a_question_and_what_a_reader_needs(notebook):
    first = notebook.cells[0].source
    assert re.match(r"\(nb-[a-z-]+\)=\n# [^\n]+\n", first), "label and title first"
    asked = re.search(r"^.+\?$", first, re.M)
    assert asked and not re.search(r"[{}`$*]", asked[0]), "in plain words: the page before shows it too"
    assert len(asked[0].split()) <= 15, asked[0]
    assert ":::{admonition} You will" in first and ":::{admonition} Before you start" in first


def test_the_parts_of_a_chapter_are_there_and_in_order(notebook):
    """One picture opens it; its claims come last, then exercises, solutions, and what is next."""
    tags = [cell.metadata.get("tags", []) for cell in notebook.cells]
    assert sum("opening" in one for one in tags) == 1 and sum("setup" in one for one in tags) >= 1
    (claims,) = (k for k, one in enumerate(tags) if "claims" in one)
    opening = next(cell for cell in notebook.cells if "opening" in cell.metadata.get("tags", []))
    assert "figure" in opening.metadata.mystnb and re.search(r"\bclaims\(", notebook.cells[claims].source)
    said = [cell.source for cell in notebook.cells]
    places = [next(k for k, one in enumerate(said) if one.startswith(part)) for part in ENDING]
    assert places == sorted(places) and places[0] < claims < places[1] and places[-1] == len(said) - 1


def test_figures_have_caption_name_and_alt(notebook):
    for cell in code_of(notebook):
        draws = re.search(r"^figures\.(?!use_style)|plt\.subplots\(", cell.source, flags=re.M)
        meta = cell.metadata.get("mystnb", {})
        assert bool(draws) == ("figure" in meta), cell.source
        if draws:
            assert len(meta["figure"]["caption"]) > 30 and meta["figure"]["name"].startswith("fig-")
            assert len(meta["image"]["alt"]) > 30
            assert not cell.source.rstrip().endswith(";"), "the figure is the value of the cell"


def test_nothing_forbidden(notebook):
    for cell in code_of(notebook):
        for pattern, fault in FORBIDDEN.items():
            assert not re.search(pattern, cell.source, flags=re.M), f"{fault}: {cell.source}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_only_results_knows_where_another_chapters_files_lie(path):
    """A page names the files that it writes; what others left it reads through `privhelpers.results`."""
    others = "|".join(set(chain.SLUGS) - {chain.slug_of(path.name)})
    paths = re.compile(rf"(?:{others})/")
    for cell in code_of(nbformat.read(path, as_version=4)):
        tree = ast.parse(cell.source)
        streams = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and ast.unparse(n.func) == "rng.make"]
        labels = {id(part) for call in streams for part in ast.walk(call)}  # of random streams, no paths
        constants = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in labels]
        texts = [n.value for n in constants if isinstance(n.value, str)]
        assert not [text for text in texts if paths.match(text)], cell.source


def test_every_told_number_exists(notebook):
    quoted = set()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            quoted |= set(re.findall(r"\{glue:text\}`([a-z_0-9]+)(?::[^`]*)?`", cell.source))
    told = set()
    for cell in code_of(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tell":
                told |= {keyword.arg for keyword in node.keywords}
    assert quoted <= told, f"never told: {quoted - told}"


def test_what_only_a_solution_says_is_computed_in_the_solution(notebook):
    """A site and copies without solutions drop their cells; what another cell tells for them would stay."""
    told = {
        keyword.arg
        for cell in code_of(notebook)
        if not exercises.is_solution(cell)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "tell"
        for keyword in node.keywords
    }
    shown = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    kept = exercises.without_solutions([nbformat.NotebookNode(cell) for cell in notebook.cells])
    rest = "\n".join(cell.source for cell in kept if cell.cell_type == "markdown")
    told_to_solutions = set(re.findall(GLUED, shown)) - set(re.findall(GLUED, rest))
    assert not told & told_to_solutions


def test_a_chapter_checks_its_parameters_before_it_does_anything(notebook):
    """Papermill and Jupyter start a chapter without asking the runner what it allows."""
    code = code_of(notebook)
    cells = [k for k, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])]
    statements = ast.parse(code[cells[0] + 1].source).body
    first = next(node for node in statements if not isinstance(node, ast.Import | ast.ImportFrom))
    assert ast.unparse(first) == "parameters.check()"
