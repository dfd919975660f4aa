"""Kept results are read back as they were kept, or refused."""

import pytest

from privhelpers.artifacts import Store, sha256_of
from privhelpers.errors import DamagedArtifact, MissingArtifact
from privhelpers.results.reference import ABOUT, open_reference


def test_what_was_kept_is_read_back(tmp_path):
    kept = Store(tmp_path / "reference" / "real", "real")
    kept.write_json("real_model/experiment.json", {"weights": 3})
    kept.write_json(ABOUT, {"machine": "a toy"})
    real = open_reference("real", tmp_path)
    assert real.real_model == {"weights": 3} and real.about == {"machine": "a toy"}


def test_nothing_kept_and_a_changed_file_are_refused(tmp_path):
    with pytest.raises(MissingArtifact, match="reference --profile real"):
        open_reference("real", tmp_path).about  # noqa: B018
    kept = Store(tmp_path / "reference" / "real", "real")
    kept.write_json("real_model/experiment.json", {"weights": 3})
    kept.path("real_model/experiment.json").write_text('{"weights": 4}')
    with pytest.raises(DamagedArtifact, match=r"real_model/experiment\.json"):
        open_reference("real", tmp_path).real_model  # noqa: B018


def test_simulated_audits_are_read_by_their_names(tmp_path):
    kept = Store(tmp_path / "reference" / "audits", "audits")
    for name in ("coverage", "power"):
        kept.write_json(f"auditing/{name}.json", {"of": name})
    audits = open_reference("audits", tmp_path)
    assert (audits.coverage, audits.power) == ({"of": "coverage"}, {"of": "power"})


def test_a_kept_model_belongs_to_the_files_and_settings_that_it_was_made_with(tmp_path):
    run, best = Store(tmp_path / "run", "course"), open_reference("best", tmp_path)
    run.write_jsonl("synthetic_records/train.jsonl", [{"text": "a"}])
    assert not best.follows_from(run, {}), "nothing is kept"
    digest = sha256_of(run.path("synthetic_records/train.jsonl"))
    about = {"parameters": {"seed": 0, "epochs": 3}, "made_from": {"synthetic_records/train.jsonl": digest}}
    Store(tmp_path / "reference" / "best", "best").write_json(ABOUT, about)
    assert best.follows_from(run, {"seed": 0}) and best.follows_from(run, {"seed": 0, "epochs": 3})
    for other in ({"seed": 1}, {"seed": 0, "epochs": 4}, {"seed": 0, "new": None}):
        assert not best.follows_from(run, other), other
    run.write_jsonl("synthetic_records/train.jsonl", [{"text": "of other patients"}])
    assert not best.follows_from(run, {"seed": 0})
