"""Runs that a profile shows from kept ones: which of them fit, and how they come into `runs/<profile>/`.

A run is kept whole below `reference/study`: its record, its executed notebook, and its artifacts. It
takes the place of a run if the models that it attacked are the plan's, and the plan goes on as if
it had run. `keep.reference` writes these folders.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookmaker.runner import files
from bookmaker.runner.chain import DPSGD, MAKERS, RECORDS
from bookmaker.runner.fingerprint import KEPT_RESULTS, PAGE, RECORD, STUDY
from privhelpers.artifacts import Store, first_difference, parse_json, read_sealed, seal_of, sha256_of
from privhelpers.errors import DamagedArtifact

ABOUT = "about/about.json"  # of all that was kept together
TRAINED = (RECORDS, DPSGD, *MAKERS.values())  # what makes the patients and the models
NOT_COMPARED = ("profile", "pretrain", "train_best", "first_steps")  # they change no patient and no result
NOTES = {
    "notes_sha256": f"{RECORDS}/heldout.jsonl",
    "train_notes_sha256": f"{RECORDS}/train.jsonl",
}  # what `about` says of them, and their files


@dataclass(frozen=True)
class Kept:
    """A kept run.

    Attributes:
        folder: where it lies, relative to the repository.
        record: what the run recorded, as in `plan.record`; its artifacts are those that are kept.
        about: of all runs that were kept with it, see `results.reference.Reference.about`.
    """

    folder: str
    record: dict[str, Any]
    about: dict[str, Any]

    @property
    def source(self) -> dict[str, Any]:
        """What a page says about where its results come from."""
        return {
            "profile": STUDY,
            "fingerprint": self.record["fingerprint"],
            "seed": self.record["parameters"]["seed"],
            "date": self.record["started"][:10],
            "commit": self.about["commit"] or "unknown",
            "machine": self.about["machine"],
        }


def find(root: Path, artifacts: str) -> Kept | None:
    """Return what is kept of a run, by the folder of its artifacts, or None.

    Raises:
        DamagedArtifact: its record is not as it was kept.
    """
    folder = f"{KEPT_RESULTS}/{STUDY}/{artifacts}"
    name = f"{folder}/{RECORD}"
    if not (root / name).is_file():
        return None
    record = parse_json(read_sealed(root / name, name, files.MOST_BYTES), name)
    return Kept(folder, record, Store(root / KEPT_RESULTS / STUDY, STUDY).read_json(ABOUT))


def settings_of(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return those parameters of a run that its results follow from."""
    return {name: value for name, value in parameters.items() if name not in NOT_COMPARED}


def fits(kept: Kept, planned: dict[str, Any], trained: dict[str, dict[str, Any]]) -> bool:
    """Return whether a kept run read the patients and the models of a plan.

    Args:
        kept: the run.
        planned: the parameters that the run has in the plan.
        trained: `settings_of` each run of `TRAINED` in the plan, by rule.
    """
    read = {rule: given for rule, given in kept.about["models"].items() if rule in kept.record["inputs"]}
    same = all(trained.get(rule) == given for rule, given in read.items())
    return same and kept.record["parameters"].get("models") == planned.get("models")


def notes_of(store: Store) -> dict[str, str]:
    """Return the SHA-256 of the notes of a run, by the name that `about` gives it."""
    return {name: sha256_of(store.existing(file)) for name, file in NOTES.items()}


def copy(root: Path, kept: Kept, folder: Path, page: Path) -> None:
    """Copy the kept artifacts to `folder`, which is empty, and the executed notebook to `page`.

    Raises:
        DamagedArtifact: a file is not as it was kept, or was added.
    """
    place = root / kept.folder
    there = files.hashes(place, RECORD)
    if wrong := first_difference(kept.record["artifacts"] | {PAGE: kept.record["page"]}, there):
        raise DamagedArtifact(
            f"{kept.folder}: {wrong} after it was kept; restore the folder with git, or remove it: the "
            "chapter then runs live"
        )
    for name in kept.record["artifacts"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for source in (place / name, seal_of(place / name)):
            shutil.copyfile(source, (folder / name).with_name(source.name))
    page.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(place / PAGE, page)
