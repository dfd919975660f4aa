"""Leakage over size: what is measured of a model, and how it is kept."""

import numpy as np
import pytest
import toy_size
import yaml

from privhelpers.results.reference import open_reference


@pytest.fixture(scope="module")
def size():
    return toy_size.program()


def check(model):
    """What holds for every model, whatever it learned."""
    for said in model["states"].values():
        for measure in ("auc", "perplexity"):
            estimate, low, high = said[measure]
            assert low <= estimate <= high
        assert all(0 <= hits <= count for hits, count in said["recited"].values())
        assert all(0 < distinct <= count for count, distinct in said["notes"].values())
    log = model["training"]
    assert log["best_epoch"] == 1 + int(np.argmin(log["validation_loss"]))
    assert set(model["states"]) == {"public", "lowest validation loss", "last epoch"}


def test_a_model_is_measured_in_three_states_and_kept_as_it_was_measured(size, tmp_path, monkeypatch):
    (tmp_path / "toy.yml").write_text(yaml.safe_dump(toy_size.SETTINGS))
    monkeypatch.setattr(size, "PARAMS", tmp_path)
    row = size.measure(("toy", "micro-gpt2", 3))
    check(row)
    public, last = row["states"]["public"], row["states"]["last epoch"]
    assert last["perplexity"][0] < public["perplexity"][0], "it read notes of this hospital"
    made, _ = size.hospital(toy_size.SETTINGS["synthetic_records"], 3)
    assert public["recited"]["planted"][1] == sum(c.copies >= size.MANY for c in made.canaries) > 0
    assert public["recited"]["control"][1] == sum(not c.planted for c in made.canaries) > 0
    size.keep({("toy", "micro-gpt2", 3): row}, "toy", tmp_path)
    kept = open_reference("size", tmp_path)
    assert kept.store.read_json("private_utility/size.json") == [{"size": "micro-gpt2", "seed": 3} | row]
    assert kept.about["command"] == "python benchmarks/size.py" and kept.about["runs"] == 1
    assert kept.about["parameters"]["fine_tuning"] == toy_size.SETTINGS["fine_tuning"]
    assert kept.about["parameters"]["canaries"] == {"least_copies": size.MANY}
    assert "extraction" not in kept.about["parameters"]
