"""A book of toy notebooks with the names of the real ones and with runs made up in milliseconds.

The pages of `book/`, the configuration and the table of contents are the real ones.
"""

import base64
import functools
import json
import shutil
import struct
import zlib
from pathlib import Path

import nbformat
from nbformat import v4

from bookmaker.runner import chain, files, fingerprint, plan, published
from bookmaker.runner.plan import Job
from privhelpers.artifacts import Store, seal_of, sha256_of, to_json

ROOT = Path(__file__).parents[1]
HEAD = 'profile: str = "toy"  # profile of the run\n'
PER_MODEL = HEAD + 'model: str = "baseline"  # which model\n'
PARAMETERS = {step.slug: HEAD if step.per == "book" else PER_MODEL for step in chain.CHAIN}
PARAMETERS[chain.DPSGD] += "target_epsilon: float = 8.0  # budget, nats; in (0, 1000]\n"
NUMBERED = {"composition": "03"}  # the others do without, as a chapter whose number is free
PROFILE = "private_training:\n  target_epsilon: [0.5, 7, 12]\n"
OPENING = """({slug})=
({label})=
# Toy {slug}

What is it?

:::{{admonition}} You will
:class: tip
- see a picture,
- add two numbers.
:::

:::{{admonition}} Before you start
:class: note
Needed: nothing.
Reading 3 minutes.
:::

See {{eq}}`eq-{slug}`, {{ref}}`{slug}` and {{numref}}`fig-{slug}`; {{term}}`epsilon` is a budget.
The formula $x^2 + y^2$ is drawn.

$$
\\sigma = \\frac{{1}}{{\\varepsilon}}
$$ (eq-{slug})
"""
EXERCISES = """## Exercises

```{{exercise}} A sum
:label: ex-{slug}
Add two numbers.
```

```{{solution}} ex-{slug}
:class: dropdown
One and one make two.
Quodlibet says so.
```"""
TABLE = """<div>
<style scoped>.dataframe thead th {text-align: right;}</style>
<table border="1" class="dataframe"><tr><th>model</th></tr><tr><td>baseline $x$</td></tr></table>
</div>"""  # as pandas writes it
QUIZ = """two-scores:
  asks: Is an AUC of {glue:text}`baseline_auc:.2f`, with $x^2$ and `code`, better than guessing?
  see: What this run shows
  numbers: {guess: 1 / 2, better: baseline_auc - guess}
  right: {says: "Yes, by {glue:text}`better:.2f`.", why: Guessing has one half.}
  wrong:
    - {says: "No: it is {glue:text}`guess:.1f`.", why: That is guessing.}
    - {says: "It cannot be *said*.", why: It can.}
second:
  asks: Is one and one two?
  see: Exercises
  right: {says: It is two., why: It is.}
  wrong: [{says: It is three., why: It is.}, {says: It hangs on the day., why: It always is.}]
"""
# A page that is no part of the book: its policy lets it load and run nothing.
REPORT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; img-src data:; style-src 'sha256-AbC+/9='">
<meta name="robots" content="noindex"><title>Toy report</title></head><body><main><h1>Quokka report</h1>
<table><tr><th></th></tr></table></main></body></html>
"""
SHEET = REPORT.replace("Toy report", "Toy sheet").replace("Quokka report", "Wombat sheet")
HEADLINES = {
    "baseline_auc": 0.91,
    "dp8_auc": 0.51,
    "dp8_epsilon": 7.99,
    "baseline_canaries": 9,
    "planted_canaries": 11,
    "best_canaries": 3,
    "dp8_f1": 0.41,
    "best_f1": 0.63,
    "floor_f1": 0.04,
}


def png(width: int = 40, height: int = 20) -> str:
    """Return a small blue picture, base64."""
    rows = b"".join(b"\0" + b"\x14\x50\x7a" * width for _ in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


def show(**data: str) -> nbformat.NotebookNode:
    """Return a display output; `text_plain="x"` is its text/plain."""
    return v4.new_output("display_data", {k.replace("_", "/", 1): v for k, v in data.items()})


def glued(name: str, **data: str) -> nbformat.NotebookNode:
    """Return the output of `glue(name, ..., display=False)`."""
    prefix = "application/papermill.record/"
    output = show(**data)
    output.data = nbformat.NotebookNode({prefix + mime: value for mime, value in output.data.items()})
    output.metadata = nbformat.NotebookNode(scrapbook={"name": name, "mime_prefix": prefix})
    return output


@functools.cache
def label(slug: str) -> str:
    """Return the label of the real chapter, which pages of `book/` refer to."""
    opening = nbformat.read(chain.source(ROOT, slug), 4).cells[0].source
    return opening.splitlines()[0].strip("()=")


def source(slug: str) -> nbformat.NotebookNode:
    """Return the stripped toy notebook `slug`."""
    figure = {
        "mystnb": {
            "figure": {"caption": "A toy figure.", "name": f"fig-{slug}"},
            "image": {"alt": "A blue rectangle."},
        }
    }
    cells = [
        v4.new_markdown_cell(OPENING.format(slug=slug, label=label(slug)), id="opening"),
        v4.new_code_cell(PARAMETERS[slug].rstrip(), id="parameters", metadata={"tags": ["parameters"]}),
        v4.new_markdown_cell("A sentence that can change:", id="prose"),
        v4.new_code_cell("print('exposure')", id="text"),
        v4.new_code_cell("draw()", id="picture", metadata=figure),
        v4.new_markdown_cell(EXERCISES.format(slug=slug), id="exercises"),
        v4.new_code_cell("one_and_one = 1 + 1\none_and_one", id="solution", metadata={"tags": ["solution"]}),
        v4.new_markdown_cell("## What this run shows\n\nA toy.", id="summary"),
        v4.new_code_cell("claims([('It adds.', True)])", id="claims", metadata={"tags": ["claims"]}),
        v4.new_markdown_cell("Next, nothing.", id="next"),
    ]
    cells[4].metadata["tags"] = ["opening"]
    cells[2].metadata["tags"] = {"your_model": ["report"], "hipaa": ["sheet"]}.get(slug, [])
    if slug == "comparison":
        shown = {"figure": {"caption": "Bars.", "name": "fig-bars"}, "image": {"alt": "Bars."}}
        cells.insert(5, v4.new_code_cell("draw_bars()", id="bars", metadata={"mystnb": shown}))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return v4.new_notebook(cells=cells, metadata=kernel)


def executed(notebook: nbformat.NotebookNode, job: Job) -> nbformat.NotebookNode:
    """Return the notebook as papermill leaves it, with made-up outputs."""
    run = nbformat.from_dict(notebook)
    lines = [f"{name} = {value!r}" for name, value in job.parameters.items()]
    injected = v4.new_code_cell(
        "# Parameters\n" + "\n".join(lines) + "\n", id="injected", metadata={"tags": ["injected-parameters"]}
    )
    run.cells.insert(2, injected)
    outputs = {
        "text": [
            v4.new_output("stream", text="exposure of 5.2 bits\n"),
            v4.new_output("stream", name="stderr", text="100%|#####| 3/3\n"),
            show(text_plain="a table", text_html=TABLE),
        ],
        "picture": [show(text_plain="<Figure>", image_png=png())],
        "bars": [show(text_plain="<Figure>", image_png=png(60, 30))],
        "claims": [show(text_plain="✓ It adds.", text_html='<ul class="claims"><li>✓ It adds.</li></ul>')],
        "solution": [v4.new_output("execute_result", {"text/plain": "the sum: 2"}, execution_count=5)],
    }
    if job.slug == "comparison":
        outputs["text"].append(glued("headline_table", text_plain="a table", text_html=TABLE))
        outputs["text"] += [glued(name, text_plain=repr(value)) for name, value in HEADLINES.items()]
    for number, cell in enumerate((c for c in run.cells if c.cell_type == "code"), 1):
        cell.execution_count, cell.outputs = number, outputs.get(cell.id, [])
        cell.metadata.setdefault("papermill", {})["exception"] = False
    run.metadata["papermill"] = {"input_path": f"{ROOT}/notebooks/{job.slug}.ipynb"}
    return run


def write_source(root: Path, slug: str, notebook: nbformat.NotebookNode) -> None:
    """Write a source notebook."""
    (root / "notebooks").mkdir(exist_ok=True)
    nbformat.write(notebook, root / "notebooks" / f"{slug}.ipynb")


def write_run(root: Path, job: Job, run: nbformat.NotebookNode) -> None:
    """Write an executed notebook and the sentinel that says its run was complete."""
    (root / job.notebook).parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(run, root / job.notebook)
    versions = {name: fingerprint.versions()[name] for name in ("python", "privhelpers")}
    record = {"rule": job.rule, "notebook": job.slug, "model": job.model, "parameters": job.parameters}
    record |= {
        "cpu_seconds": 80.0,
        "peak_memory_mib": 512,
    }
    record |= {"seconds": 61.0, "versions": versions, "fingerprint": job.fingerprint}
    record |= {"started": "2026-01-01T00:00:00+00:00"}
    (root / job.sentinel).parent.mkdir(parents=True, exist_ok=True)
    keep_record(root, job, record)


def keep_record(root: Path, job: Job, record: dict) -> None:
    """Write the record of a run, with the hashes of the files, and of what it reads, that lie there now."""
    artifacts = files.hashes((root / job.sentinel).parent, plan.RECORD)
    now = {"page": sha256_of(root / job.notebook), "artifacts": artifacts, "inputs": plan.reads(root, job)}
    path = root / job.sentinel
    path.write_bytes(to_json(record | now))
    (root / job.mark).write_text(f"{fingerprint.digest(artifacts)}\n")
    # Not by `artifacts.seal`, which waits for the disk: a busy one takes a second, and there are many runs.
    seal_of(path).write_text(f"{sha256_of(path)}  {path.name}\n")


def record_files(root: Path) -> None:
    """Let every sentinel record the files that lie there now, as if the run had written them."""
    for job in jobs(root):
        keep_record(root, job, json.loads((root / job.sentinel).read_text(encoding="utf-8")))
    published.collect(root, jobs(root))


def jobs(root: Path) -> list[Job]:
    """Return the plan of the toy profile."""
    return plan.jobs(root, "toy")


def build(root: Path) -> Path:
    """Make the toy book, its runs complete, at `root` and return it."""
    for name in ("_config.yml", "_toc.yml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name)
    shutil.copytree(ROOT / "book", root / "book", ignore=shutil.ignore_patterns("quizzes"))
    (root / "book" / "quizzes").mkdir()
    (root / "book" / "quizzes" / "comparison.yml").write_text(QUIZ)
    (root / "privhelpers").mkdir()
    (root / "params").mkdir()
    (root / "params" / "toy.yml").write_text(PROFILE)
    for slug in PARAMETERS:
        write_source(root, f"{NUMBERED.get(slug, '')}_{slug}".lstrip("_"), source(slug))
    store = Store(root / "runs" / "toy" / "artifacts", "toy")
    store.write_json("comparison/summary.json", {"models": {}})
    store.write_bytes("your_model/report.html", REPORT.encode())
    store.write_bytes("hipaa/sheet.html", SHEET.encode())
    store.write_json("hipaa/sheet_key.json", {"1": "Numbat"})
    for job in jobs(root):
        write_run(root, job, executed(source(job.slug), job))
    published.collect(root, jobs(root))
    return root
