"""The section on size of the chapter on other seeds and sizes: what is kept is what it shows."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import toy_size
import yaml

from bookmaker.runner import chain, notebooks
from privhelpers.errors import DamagedArtifact, MissingArtifact

ROOT = Path(__file__).parents[2]
LAST, LOWEST = "last epoch", "lowest validation loss"
RISING, STEEPER, LEVEL = (0.7, 0.8, 0.9), (0.75, 0.9, 0.99), (0.58, 0.58, 0.57)
FALLING = (0.9, 0.8, 0.7)
BEST_EPOCHS = (4, 3, 2)


@pytest.fixture
def size(monkeypatch):
    module = toy_size.program()
    monkeypatch.setitem(module.about.__globals__, "commit", lambda root: "0123456789ab")
    return module


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A copy of the book with nothing in it, and we are in it."""
    (tmp_path / "_toc.yml").touch()
    (tmp_path / "privhelpers").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def page(root):
    """Run the cells on size, after the page's imports; return its variables and what it told."""
    source = notebooks.read(chain.source(ROOT, "luck_and_size"))
    code = [cell for cell in source.cells if cell.cell_type == "code"]
    chosen = [*code[:2], *(c for c in code if c.id.startswith(("size-", "kept-size")))]
    assert len(chosen) == 7

    def run():
        told, space = {}, {}
        with mpl.rc_context({"backend": "agg"}):
            for cell in chosen:
                exec(compile(cell.source, cell.id, "exec"), space)
                space["tell"] = lambda **values: told.update(values)
            plt.close("all")
        return space, told

    return run


def kept(size, root, last, lowest, *, half=0.02, public=0.5, names=tuple(toy_size.WEIGHTS)):
    """Keep made-up models by the program: for each seed the areas of each size in both states."""
    rows = {}
    for seed, (of_last, of_lowest) in enumerate(zip(last, lowest, strict=True)):
        for k, name in enumerate(names):
            areas = {"public": public, LAST: of_last[k], LOWEST: of_lowest[k]}
            row = toy_size.model(toy_size.WEIGHTS[name], areas, best_epoch=BEST_EPOCHS[k], half=half)
            rows["course", name, seed] = row
    size.keep(rows, "course", root)
    return rows


@pytest.mark.parametrize(
    ("last", "lowest", "half", "above"),
    [
        ([RISING, STEEPER], [LEVEL, LEVEL], 0.02, (2, 0)),
        ([RISING, STEEPER], [RISING, RISING], 0.02, (2, 2)),
        ([RISING, STEEPER], [LEVEL, RISING], 0.02, (2, 1)),
        ([RISING, STEEPER], [(0.5, 0.6, 0.65)] * 2, 0.09, (2, 0)),
        ([RISING, LEVEL], [LEVEL, LEVEL], 0.02, (1, 0)),
        ([FALLING, FALLING], [LEVEL, LEVEL], 0.02, (0, 0)),
    ],
)
def test_the_seeds_in_which_the_largest_lies_above_are_counted(size, root, page, last, lowest, half, above):
    kept(size, root, last, lowest, half=half)
    space, _ = page()
    counted = space["leaks_more"]
    assert (counted[LAST], counted[LOWEST], counted["public"]) == (*above, 0)


def test_changes_are_from_the_smallest_size_to_the_largest(size, root, page):
    kept(size, root, [RISING, FALLING], [LEVEL, (0.5, 0.51, 0.52)])
    space, _ = page()
    assert space["last_change"] == pytest.approx([0.2, -0.2])
    assert space["best_change"] == pytest.approx([-0.01, 0.02])


def test_every_figure_stands_beside_its_control(size, root, page):
    kept(size, root, [RISING, STEEPER], [LEVEL, LEVEL])
    space, told = page()
    table = space["size_rows"]
    assert len(table) == 6 * 3
    row = table["400,000", "seed 1", LAST]
    assert row == {"perplexity": "2.09", "recited, planted": "9 of 9", "recited, control": "0 of 5"}
    assert table["1,000,000", "seed 0", "public checkpoint"]["recited, planted"] == "0 of 9"
    assert list(space["planted"]) == [6 * 9, 6 * 9] and list(space["control"]) == [0, 6 * 5]
    assert told["size_copies"] == size.MANY


def test_a_line_for_each_seed_and_state_is_drawn(size, root, page):
    kept(size, root, [RISING, STEEPER], [LEVEL, LEVEL])
    space, _ = page()
    lengths = [len(line.get_xdata()) for line in space["axes"].lines]
    assert lengths.count(3) == 2 * 3


def test_what_is_no_equal_training_stops_the_page(size, root, page):
    rows = kept(size, root, [RISING, STEEPER], [LEVEL, LEVEL])
    rows["course", "mini-gpt2", 1]["training"]["validation_loss"].append(9.0)
    size.keep(rows, "course", root)
    with pytest.raises(AssertionError):
        page()
    del rows["course", "mini-gpt2", 1]
    size.keep(rows, "course", root)
    with pytest.raises(AssertionError):
        page()


def test_without_the_kept_run_or_with_other_bytes_the_page_stops(size, root, page):
    with pytest.raises(MissingArtifact, match=r"luck_and_size/size\.json of profile .size. is missing"):
        page()
    kept(size, root, [RISING, STEEPER], [LEVEL, LEVEL])
    file = root / "reference" / "size" / "luck_and_size" / "size.json"
    file.write_bytes(file.read_bytes().replace(b"0.58", b"0.85"))
    with pytest.raises(DamagedArtifact, match=r"luck_and_size/size\.json"):
        page()


def check(model, size):
    """Assert what holds of every model, whatever it learned."""
    made, _ = size.hospital(toy_size.SETTINGS["synthetic_records"], 3)
    assert set(model["states"]) == {"public", LOWEST, LAST}
    for said in model["states"].values():
        assert all(low <= estimate <= high for estimate, low, high in (said["auc"], said["perplexity"]))
        assert all(0 < distinct <= count for count, distinct in said["notes"].values())
        counts = {arm: count for arm, (_, count) in said["recited"].items()}
        assert counts["planted"] == sum(c.copies >= size.MANY for c in made.canaries) > 0
        assert counts["control"] == sum(not c.planted for c in made.canaries) > 0
    public, last = model["states"]["public"], model["states"][LAST]
    assert last["perplexity"][0] < public["perplexity"][0], "it read notes of this hospital"
    log = model["training"]
    assert log["best_epoch"] == 1 + int(np.argmin(log["validation_loss"]))


def test_the_page_reads_what_the_program_measures(size, root, page, tmp_path_factory, monkeypatch):
    params = tmp_path_factory.mktemp("params")
    (params / "toy.yml").write_text(yaml.safe_dump(toy_size.SETTINGS))
    monkeypatch.setattr(size, "PARAMS", params)
    rows = {("toy", name, 3): size.measure(("toy", name, 3)) for name in ("micro-gpt2", "tiny-gpt2")}
    size.keep(rows, "toy", root)
    space, _ = page()
    for number, row in enumerate(sorted(rows.values(), key=lambda row: row["weights"])):
        check(row, size)
        for state in ("public", LOWEST, LAST):
            assert space["over_size"](state, "auc", 3)[number].tolist() == row["states"][state]["auc"]
        assert len(row["training"]["validation_loss"]) == toy_size.SETTINGS["fine_tuning"]["epochs"]
