"""Results of a long run that was made once and is kept with the book, in `reference/<profile>`.

longer = open_reference("study")
longer.measurements                  # the tidy table of all its models
longer.results.audits                # any artifact that was kept, read as from a run
longer.about["machine"], longer.about["cpu_seconds"]
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from privhelpers.artifacts import Store, check_name, repository_root, sha256_of
from privhelpers.errors import MissingArtifact
from privhelpers.results.reading import Results

FOLDER = "reference"
NOTES = "synthetic_records/heldout.jsonl"
ABOUT = "about.json"
LONG_RUN = (
    *("comparison/measurements.jsonl", "comparison/tests.jsonl", "comparison/summary.json"),
    *("private_utility/utility.json", "shadow_models/summary.json", "auditing/audit.json"),
    *("attention_and_gradients/white_box.json", "defenses/summary.json"),
    *("membership_inference/baseline/attack.json", "unlearning/unlearning.json"),
    "who_is_exposed/exposed.json",
)
_REAL_MODEL = "real_model/experiment.json"
KEPT = {"real": (_REAL_MODEL,)}  # by profile; for any other, the files of a long run


def kept_of(profile: str) -> tuple[str, ...]:
    """Return the names of the artifacts that are kept of a profile's runs."""
    return KEPT.get(profile, LONG_RUN)


@dataclass(frozen=True)
class Reference:
    """What is kept of one profile's runs.

    Attributes:
        store: the kept artifacts, under the names that they have in a run.
    """

    store: Store

    @cached_property
    def about(self) -> dict:
        """How the runs were made.

        Its keys: `command`, `commit`, `date`, `machine`, `runs`, `cpu_seconds` (of a run that was
        stopped, those since it last went on), `versions`, `parameters`, and, of a profile's runs,
        `notes_sha256` of the held-out notes.
        """
        return self.store.read_json(f"about/{ABOUT}")

    def read_the_notes_of(self, store: Store) -> bool:
        """Return whether these runs read the notes of `store`: the same hospital, patient by patient."""
        return sha256_of(store.existing(NOTES)) == self.about["notes_sha256"]

    @cached_property
    def results(self) -> Results:
        """The kept artifacts, read like a run's."""
        return Results(self.store)

    @cached_property
    def measurements(self) -> pd.DataFrame:
        """The tidy table: one row a model, measure and arm, with the columns of `results.COLUMNS`."""
        return pd.DataFrame(self.store.read_jsonl("comparison/measurements.jsonl"))

    @cached_property
    def tests(self) -> pd.DataFrame:
        """One row a comparison of a model with a control, with its verdict in words."""
        return pd.DataFrame(self.store.read_jsonl("comparison/tests.jsonl"))

    @cached_property
    def real_model(self) -> dict:
        """The results of the model pretrained by others, of `real`: `weights`, `patients`, `models`, ..."""
        return self.store.read_json(_REAL_MODEL)


def open_reference(profile: str, root: Path | None = None) -> Reference:
    """Return what is kept of the runs of `profile`.

    Args:
        profile: a folder of `reference/`; `size` and `audits` are not profiles: programs of `benchmarks/`
            fill them.
        root: a copy of the book; default: the one around us.

    Raises:
        MissingArtifact: nothing of this profile is kept.
        DamagedArtifact: when a file is read whose bytes are not those that were kept.
    """
    folder = (root or repository_root()) / FOLDER / check_name(profile)
    if not folder.is_dir():
        raise MissingArtifact(
            f"{FOLDER}/{profile}: nothing is kept; "
            f"`python -m bookmaker reference --profile {profile}` keeps a complete run"
        )
    return Reference(Store(folder, profile, made_by="python -m bookmaker reference --profile {profile}"))
