"""The part on size of the chapter on private utility: whatever is kept, it says that and no more."""

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
    """A copy of the book with nothing in it but the answers of a real model, and we are in it."""
    (tmp_path / "_toc.yml").touch()
    (tmp_path / "privhelpers").mkdir()
    toy_size.keep_real(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def page(root):
    """Run the cells on size, after the page's imports; return its variables and what it told."""
    source = notebooks.read(chain.source(ROOT, "luck_and_size"))
    code = [cell for cell in source.cells if cell.cell_type == "code"]
    chosen = [*code[:2], *(c for c in code if c.id.startswith(("size-", "kept-size")))]
    assert len(chosen) == 9

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
    ("last", "lowest", "half", "words"),
    [
        ([RISING, STEEPER], [LEVEL, LEVEL], 0.02, "less than half of the difference is left"),
        ([RISING, STEEPER], [RISING, RISING], 0.02, "at both epochs, and over-training alone"),
        ([RISING, STEEPER], [LEVEL, RISING], 0.02, "settle whether it does at the lowest"),
        ([RISING, STEEPER], [(0.5, 0.6, 0.65)] * 2, 0.09, "settle whether it does at the lowest"),
        ([RISING, LEVEL], [LEVEL, LEVEL], 0.02, "do not settle whether the largest model leaks"),
        ([FALLING, FALLING], [LEVEL, LEVEL], 0.02, "do not show at either epoch"),
    ],
)
def test_the_conclusion_is_the_one_that_the_seeds_share(size, root, page, last, lowest, half, words):
    kept(size, root, last, lowest, half=half)
    _, told = page()
    assert words in told["size_reading"]


def test_rises_and_places_are_counted_over_seeds(size, root, page):
    kept(size, root, [RISING, FALLING], [LEVEL, (0.5, 0.51, 0.52)])
    space, told = page()
    assert told["size_rises_last"] == told["size_rises_lowest"] == "in 1 of 2 seeds"
    assert told["size_place_last"] == (
        "lies above that of the smallest in 1 of 2 seeds and below that of the smallest in 1 of 2 seeds"
    )
    assert told["size_place_lowest"] == "overlaps that of the smallest in every seed"
    assert told["size_change_last"] == "+0.200 (seed 0) and -0.200 (seed 1)"
    table = space["change_table"]
    assert table.loc[("AUC of the loss", LAST, 0), "pairs apart"] == "3 of 3"
    assert table.loc[("AUC of the loss", LOWEST, 0), "pairs apart"] == "0 of 3"
    assert table.loc[("AUC of the loss", "public checkpoint", 1), "largest"] == "overlaps"
    assert table.loc[("AUC of the loss", LAST, 1), "rises with every size"] == "no"


def test_every_figure_stands_beside_its_control_with_its_source(size, root, page):
    kept(size, root, [RISING, STEEPER], [LEVEL, LEVEL], public=0.535)
    space, told = page()
    for words in ("trained 6 models", "seeds 0 and 1", "2026-11-25", "commit 0123456789ab"):
        assert words in told["size_source"]
    table = space["size_table"]
    assert len(table) == 6 * 3 + 2
    assert table.loc[("400,000", "seed 1", LAST), "AUC of the loss"] == "0.900 [0.880, 0.920]"
    assert table.loc[("400,000", "seed 1", "public checkpoint"), "AUC of the loss"] == "0.535 [0.515, 0.555]"
    assert table.loc[("1,000,000", "seed 0", LOWEST), "epoch"] == BEST_EPOCHS[2]
    assert table.loc[("1,000,000", "seed 0", LAST), "epoch"] == toy_size.EPOCHS
    assert told["size_best_epochs"] == "4, 3 and 2 (seed 0) and 4, 3 and 2 (seed 1)"
    assert told["size_null"] == 0 and told["size_above"] == 4, "the largest of each seed is not told apart"
    assert told["size_gap_rises"] == "in every seed"
    assert told["size_planted"] == 9
    assert told["size_recited_last"] == "9, 9 and 9 (seed 0) and 9, 9 and 9 (seed 1)"
    assert told["size_recited_lowest"] == "3, 3 and 3 (seed 0) and 3, 3 and 3 (seed 1)"
    assert told["size_recites_more"] == told["size_recites_fewer"] == "in no seed"
    assert told["size_recited_reading"].startswith("So these canaries show no difference")
    assert told["size_recited_control"] == "0 of 90"


@pytest.mark.parametrize(
    ("lowest", "words"),
    [
        (LEVEL, "So in 1 of 2 seeds the two differ in secrets although their intervals of the loss overlap"),
        (RISING, "So the two differ in secrets, too"),
    ],
)
def test_what_the_loss_does_not_show_the_canaries_may(size, root, page, lowest, words):
    rows = kept(size, root, [RISING, STEEPER], [lowest, lowest])
    recited = {seed: rows["course", "mini-gpt2", seed]["states"][LOWEST]["recited"] for seed in (0, 1)}
    recited[0]["planted"][0], recited[1]["planted"][0] = 9, 1
    size.keep(rows, "course", root)
    _, told = page()
    assert told["size_recited_lowest"] == "3, 3 and 9 (seed 0) and 3, 3 and 1 (seed 1)"
    assert told["size_recites_more"] == "in 1 of 2 seeds", "p = 0.009 and 0.58"
    assert told["size_recites_fewer"] == "in no seed" and words in told["size_recited_reading"]


def test_the_real_model_stands_apart(size, root, page):
    kept(size, root, [RISING, STEEPER], [LEVEL, LEVEL])
    space, told = page()
    last, public = space["real_states"][LAST], space["real_states"]["public"]
    assert last["auc"][0] == 1 and public["auc"][0] == pytest.approx(7 / 12)
    assert last["perplexity"][0] == pytest.approx(np.exp((10 * 1.0 + 10 * 1.5 + 20 * 2.0) / 40))
    assert last["recited"] == {"planted": [2, 2], "control": [0, 2]}, "two copies are too few to count"
    assert told["size_real_patients"] == 3 and told["size_real_notes"] == 4
    assert told["size_real_auc"].startswith("1.000")
    table = space["size_table"]
    assert table.loc[("100,000,000", "other training", LAST), "epoch"] == 3
    left, right = space["panels"]
    lengths = [len(line.get_xdata()) for axes in (left, right) for line in axes.lines]
    assert lengths.count(3) == 2 * 3 + 2 * 2, "a line for each seed and state; public perplexities stay away"
    ends = [max(line.get_xdata()) for line in left.lines if len(line.get_xdata()) == 3]
    assert max(ends) == 1.0, "no line leads to the real model"
    assert left.get_xlim()[1] > 100 > right.get_xlim()[1]


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
    with pytest.raises(MissingArtifact, match="reference/size: nothing is kept"):
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
    space, told = page()
    shown = space["size_table"].rename(index={"public checkpoint": "public"})["AUC of the loss"]
    for row in rows.values():
        check(row, size)
        for state in ("public", LOWEST, LAST):
            area = row["states"][state]["auc"][0]
            assert shown.loc[(f"{row['weights']:,}", "seed 3", state)].startswith(f"{area:.3f} [")
    assert told["size_epochs"] == toy_size.SETTINGS["fine_tuning"]["epochs"] and told["size_models"] == 2
