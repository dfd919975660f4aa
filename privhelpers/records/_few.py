"""A few patients of the hospital and a crowd around them, for a model too large to read all notes."""

from collections.abc import Sequence
from dataclasses import dataclass

from privhelpers import validate
from privhelpers.artifacts import Store
from privhelpers.records._hospital import make_hospital_records
from privhelpers.records._store import by_patient, read_canaries, read_notes

_COPIES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Few:
    """Whom every model reads, whom none reads, and further patients.

    Attributes:
        members, controls: notes of as many patients each, without canaries.
        planted, never: canaries that are planted, and as many that are not.
        carriers: the notes of the planted canaries.
        crowd: notes of further patients, who share no identifier with the others.
    """

    members: list[dict]
    controls: list[dict]
    planted: list[dict]
    never: list[dict]
    carriers: list[dict]
    crowd: list[dict]


def _first(notes: Sequence[dict], patients: int) -> list[dict]:
    notes = [note for note in notes if note["kind"] != "canary"]
    # By number: in a shuffled list, patients with many notes would come first.
    names = set(sorted(by_patient(notes))[:patients])
    return [note for note in notes if note["patient_id"] in names]


def _identifiers(notes: Sequence[dict]) -> set[str]:
    return {span["value"] for note in notes for span in note["spans"]}


def take_few(store: Store, *, patients: int, canaries_each: int, crowd: int, seed: int) -> Few:
    """Return the first patients of the stored hospital, and a crowd that is made around them.

    Args:
        patients: members, and as many controls; 1 or more.
        canaries_each: planted canaries with each number of copies, 1 or more.
        crowd: further patients, before those are left out who share an identifier; 1 or more.
        seed: of the crowd, 0 or more.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    patients = validate.positive_int(patients=patients)
    canaries_each = validate.positive_int(canaries_each=canaries_each)
    every_note, (every_canary, _) = read_notes(store, "train"), read_canaries(store)
    planted = []
    for copies in _COPIES:
        planted += [c for c in every_canary if c["copies"] == copies][:canaries_each]
    never = [c for c in every_canary if not c["planted"]][: len(planted)]
    ids = {canary["patient_id"] for canary in planted}
    carriers = [note for note in every_note if note["patient_id"] in ids]
    members = _first(every_note, patients)
    controls = _first(read_notes(store, "heldout"), patients)

    more = make_hospital_records(
        seed=seed, patients=crowd, validation_patients=1, heldout_patients=1, canaries_per_level=1
    )
    further = [note for note in more.train if note["kind"] != "canary"]
    taken = _identifiers([*members, *controls, *carriers]) | {canary["name"] for canary in never}
    sharing = {note["patient_id"] for note in further if _identifiers([note]) & taken}
    further = [note for note in further if note["patient_id"] not in sharing]
    return Few(members, controls, planted, never, carriers, further)
