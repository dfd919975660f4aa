"""A canary kit: the folder that `privai-leak canaries` writes before a training, and the audit reads.

    train.jsonl     the records to train on, with the inserted canaries among them
    canaries.jsonl  all canaries: patient_id, text, secret, copies, and whether the coin inserted it
    manifest.json   hashes of both, the seed, the counts, the unit of a claim, and what the kit can refute

Whoever trains gets train.jsonl. The other two files say which canaries were inserted.
"""

from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from privhelpers.artifacts import is_there, parse_json, sha256_of
from privhelpers.errors import BadRecords, DamagedArtifact

TRAIN, CANARIES, MANIFEST = "train.jsonl", "canaries.jsonl", "manifest.json"
SCHEMA = "privai-leak/canary-kit/1"


class Unit(StrEnum):
    """What a claimed epsilon protects: what one step of add/remove adds or removes; keys of `units`."""

    RECORD = "record"
    PATIENT = "patient"


class Refutes(BaseModel, frozen=True):
    """The largest epsilon that perfect guesses about a kit's canaries certify.

    Attributes:
        gaussian: in nats, of a training with Gaussian noise, such as DP-SGD.
        any_mechanism: in nats, whatever the mechanism.
        delta: of both.
        confidence: of both, the one that the audit uses.
    """

    gaussian: float
    any_mechanism: float
    delta: float
    confidence: float


class Manifest(BaseModel):
    """What a kit is, without its texts.

    Attributes:
        files: SHA-256 of train.jsonl and canaries.jsonl, by name.
        records: SHA-256 of the file that the kit was made from.
        seed: of all randomness, the coins included.
        unit: that the claim of the training protects.
        canaries, inserted: how many there are, and how many the coins inserted, by number of copies.
        lines: of train.jsonl that are canaries.
        refutes: what the kit can refute at most.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
    form: Literal["privai-leak/canary-kit/1"] = Field(SCHEMA, alias="schema")
    files: dict[str, str]
    records: str
    seed: int
    unit: Unit
    canaries: dict[int, int]
    inserted: dict[int, int]
    lines: int
    refutes: Refutes


def kit_of(path: str | Path) -> Path | None:
    """Return the folder of the kit that a path names, or in which a file lies; None if there is no kit."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    return folder if is_there(folder / MANIFEST) and is_there(folder / CANARIES) else None


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a kit.

    Raises:
        BadRecords: it is damaged, or a file of the kit has changed.
    """
    try:
        manifest = Manifest.model_validate(parse_json((folder / MANIFEST).read_bytes(), MANIFEST))
    except (ValidationError, DamagedArtifact, OSError):
        raise BadRecords(f"{MANIFEST}: not the manifest of a canary kit; restore it from a copy") from None
    for name in (TRAIN, CANARIES):
        path = folder / name
        if not path.is_file() or sha256_of(path) != manifest.files.get(name):
            raise BadRecords(
                f"{name}: not the file that {MANIFEST} describes; restore it from a copy of the kit"
            )
    return manifest
