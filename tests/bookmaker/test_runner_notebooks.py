"""Executed notebooks: complete or refused, free of this machine, and shown under today's prose."""

import base64
import io
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from nbformat import v4
from PIL import Image

from bookmaker.runner import files, notebooks, run
from privhelpers.artifacts import Store
from privhelpers.errors import DamagedArtifact, RunFailed


def executed():
    cells = [
        v4.new_markdown_cell("# Old words"),
        v4.new_code_cell("seed: int = 0", metadata={"tags": ["parameters"]}, execution_count=1),
        v4.new_code_cell("seed = 3", metadata={"tags": ["injected-parameters"]}, execution_count=2),
        v4.new_code_cell("6 * 7", execution_count=3),
        v4.new_code_cell("   "),
    ]
    cells[3].outputs = [v4.new_output("execute_result", {"text/plain": "42"}, execution_count=3)]
    return v4.new_notebook(cells=cells)


def test_every_cell_must_have_run_without_an_error():
    notebook = executed()
    notebooks.check_complete(notebook, "toy")
    notebook.cells[3].execution_count = None
    with pytest.raises(RunFailed, match="toy: code cell 3"):
        notebooks.check_complete(notebook, "toy")
    notebook.cells[3].execution_count = 3
    notebook.cells[3].outputs = [v4.new_output("error", ename="ValueError", evalue="no", traceback=[])]
    with pytest.raises(RunFailed, match=r"code cell 3 .*ValueError: no"):
        notebooks.check_complete(notebook, "toy")


def test_the_same_run_leaves_the_same_bytes(tmp_path):
    """Papermill draws the id of the cell that it injects."""
    pages = []
    for drawn in ("e5b1a0c2", "0d3f77aa"):
        notebook = executed()
        for number, cell in enumerate(notebook.cells):
            cell.id = drawn if "injected-parameters" in notebooks.tags(cell) else f"cell-{number}"
        notebooks.clean(notebook, tmp_path)
        assert drawn not in nbformat.writes(notebook)
        pages.append(nbformat.writes(notebook))
    assert pages[0] == pages[1]


def test_what_is_printed_is_whole_wherever_the_kernel_cut_it(tmp_path):
    def piece(name, text):
        return v4.new_output("stream", name=name, text=text)

    picture = v4.new_output("display_data", {"text/plain": "a"})
    last = piece("stdout", "three\n")
    for cut in (
        [piece("stderr", "careful\n"), piece("stdout", "one\ntw"), piece("stdout", "o\n")],
        [
            piece(*one)
            for one in (("stdout", "one\n"), ("stderr", "care"), ("stdout", "two\n"), ("stderr", "ful\n"))
        ],
    ):
        notebook = executed()
        notebook.cells[3].outputs = [*cut, picture, last]
        notebooks.clean(notebook, tmp_path)
        whole = [piece("stdout", "one\ntwo\n"), piece("stderr", "careful\n"), picture, last]
        assert notebook.cells[3].outputs == whole


def test_paths_and_times_are_left_out(tmp_path):
    notebook = executed()
    notebook.metadata["papermill"] = {"input_path": str(tmp_path)}
    notebook.cells[3].metadata["papermill"] = {"start_time": "now"}
    shown = [
        v4.new_output("stream", text=f"{tmp_path}/privhelpers/x.py:3: hm\n/tmp/ipykernel_12/345.py:1: hm\n"),
        v4.new_output("display_data", {"text/plain": f"PosixPath('{tmp_path}/runs')", "image/png": "00"}),
        v4.new_output("display_data", {"text/html": f"<td>{tmp_path}\rtwo</td>"}),
        v4.new_output("stream", name="stderr", text="\r 0%\r 50%\r100%\nnext\r\nlast"),
    ]
    notebook.cells[3].outputs = shown
    notebooks.clean(notebook, tmp_path)
    assert [o.text if "text" in o else o.data for o in notebook.cells[3].outputs] == [
        "privhelpers/x.py:3: hm\n<cell>:1: hm\n",
        {"text/plain": "PosixPath('runs')", "image/png": "00"},
        {"text/html": "<td>.\rtwo</td>"},  # only what is printed is drawn over
        "100%\nnext\r\nlast",
    ]
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert "papermill" not in notebook.cells[3].metadata


@pytest.mark.parametrize("root", ["/b", "/code", "/p", "/work", "/srv/a+b"])
def test_where_the_copy_lies_changes_no_other_words(root):
    """A path is told from words and tags that hold the name of its folder."""
    notebook, name = executed(), root.rpartition("/")[2]
    others = f"of extraction{root}aseline, a{root}, <{name}>x</{name}>, &lt;/{name}&gt;, (1){root} .{root}/x"
    others += f" {root}-2 {root}.old https://elsewhere.example{root} {root}s"
    paths = f"{root}/x '{root}' \"{root}/x\" <i>{root}</i> file://{root}/x \x1b[31m{root}/x ={root}. ({root})"
    notebook.cells[3].outputs = [v4.new_output("display_data", {"text/html": f"{others}\n{paths}"})]
    notebooks.clean(notebook, Path(root))
    cleaned = "x '.' \"x\" <i>.</i> file://x \x1b[31mx =.. (.)"
    assert notebook.cells[3].outputs[0].data["text/html"].split("\n") == [others, cleaned]


def test_a_page_has_the_words_of_the_source_and_the_outputs_of_the_run():
    ran = executed()
    source = v4.new_notebook(
        cells=[
            v4.new_markdown_cell("# New words"),
            v4.new_code_cell("seed: int = 0", metadata={"tags": ["parameters"]}),
            v4.new_markdown_cell("A sentence more."),
            v4.new_code_cell("6 * 7", metadata={"mystnb": {"image": {"alt": "new"}}}),
            v4.new_code_cell("   "),
        ]
    )
    page = notebooks.refresh_prose(ran, source)
    sources = ["# New words", "seed: int = 0", "seed = 3", "A sentence more.", "6 * 7", "   "]
    assert [cell.source for cell in page.cells] == sources
    assert page.cells[4].outputs == ran.cells[3].outputs and page.cells[4].execution_count == 3
    assert page.cells[4].metadata["mystnb"] == {"image": {"alt": "new"}}
    assert not source.cells[3].outputs, "the source stays as it is"
    source.cells[3].source = "6 * 8"
    with pytest.raises(RunFailed):
        notebooks.refresh_prose(ran, source)


def test_artifacts_are_hashed_and_must_be_files_that_carry_their_bytes(tmp_path):
    store = Store(tmp_path, "toy")
    store.write_json("05_toy/a.json", {"x": 1})
    store.write_json("05_toy/deeper/b.json", {"x": 2})
    digests = files.hashes(tmp_path / "05_toy", "run.json")
    assert set(digests) == {"a.json", "deeper/b.json"} and all(len(h) == 64 for h in digests.values())
    for name, make in (
        ("a.json", lambda file: file.write_text("{}")),
        ("past_the_store.csv", lambda file: file.write_text("x")),
        ("link.csv", lambda file: file.symlink_to(tmp_path / "05_toy" / "deeper" / "b.json")),
    ):
        make(tmp_path / "05_toy" / name)
        with pytest.raises(DamagedArtifact, match=name):
            files.hashes(tmp_path / "05_toy", "run.json")
        (tmp_path / "05_toy" / name).unlink()
        (tmp_path / "05_toy" / f"{name}.sha256").unlink(missing_ok=True)


@pytest.mark.parametrize("transparent", [False, True])
def test_a_figure_becomes_less_than_half_as_large_and_looks_the_same(transparent):
    figure, axes = plt.subplots()
    axes.plot([1, 2, 3], [0.1, 0.2, 0.3])
    figure.savefig(white := io.BytesIO(), format="png", dpi=200)
    figure.savefig(place := io.BytesIO(), format="png", dpi=200, transparent=transparent)
    plt.close(figure)
    notebook, encoded = executed(), base64.b64encode(place.getvalue()).decode()
    notebook.cells[3].outputs = [v4.new_output("display_data", {run.PNG: encoded})]
    run.lighten(notebook)
    new = io.BytesIO(base64.b64decode(notebook.cells[3].outputs[0].data[run.PNG]))
    with Image.open(white) as before, Image.open(new) as after:
        assert before.size == after.size and before.info["dpi"] == after.info["dpi"]
        apart = np.abs(np.asarray(before.convert("RGB")) - np.asarray(after.convert("RGB")).astype(int))
    assert (
        len(new.getvalue()) < 0.6 * len(place.getvalue())
        and apart.mean() < 0.1
        and (apart > 32).mean() < 0.001
    )


def test_a_claim_that_a_run_does_not_show_is_found():
    notebook = executed()
    assert notebooks.crosses(notebook) == []
    notebook.cells[3].metadata["tags"] = ["claims"]
    notebook.cells[3].outputs[0]["data"]["text/plain"] = "✓ It adds.\n✗ It leaks ✓ no one."
    assert notebooks.crosses(notebook) == ["It leaks ✓ no one."]
