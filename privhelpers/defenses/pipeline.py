"""Scrub and deduplicate somebody's own notes before training, and report what was done and what was not.

>>> notes = [
...     {"patient_id": "p1", "text": "Call (212) 555-0123 after the visit."},
...     {"patient_id": "p2", "text": "Call (305) 555-0199 after the visit."},
... ]
>>> result = PrivacyPipeline().run(notes)
>>> [note["text"] for note in result.notes]
['Call [PHONE] after the visit.']
>>> result.report.identifiers, result.report.duplicates_removed
({'phone': 2}, 1)
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from privhelpers import validate
from privhelpers.defenses.dedup import deduplicate
from privhelpers.defenses.patterns import PatternScrubber
from privhelpers.defenses.spans import Scrubbed
from privhelpers.errors import InvalidParameter

NEVER_CHECKED = (
    "what the notes say besides identifiers: condition, age, ward and events can single a patient out",
    "identifiers of relatives, staff and employers, unless the scrubber was made for them",
    "images, attachments, file names and columns other than `text`",
    "whether a model trained on these notes leaks: attack it",
)
ACROSS = (
    "differential privacy per patient: a note removed for another patient's sake breaks its guarantee; "
    "use within_patients=True before such training"
)
WITHOUT_NAMES = "names, and addresses in free words: patterns cannot find them, use an NER scrubber"


class Scrubber(Protocol):
    """Anything with a `scrub`: a `PatternScrubber`, `NerScrubber` or `PresidioScrubber`."""

    def scrub(self, text: str) -> Scrubbed:
        """Return the text without identifiers."""
        ...


@dataclass(frozen=True)
class PipelineReport:
    """What a pipeline did.

    Attributes:
        notes_read, notes_kept, patients_read, patients_kept: counts.
        identifiers: how many spans of each kind were replaced.
        notes_touched: notes in which something was replaced.
        duplicates_removed: notes that nearly repeated an earlier one.
        of_other_patients: those of them whose earlier note is another patient's.
        not_checked: what nobody looked at, in words.
    """

    notes_read: int
    notes_kept: int
    patients_read: int
    patients_kept: int
    identifiers: dict[str, int]
    notes_touched: int
    duplicates_removed: int
    of_other_patients: int
    not_checked: tuple[str, ...]


@dataclass(frozen=True)
class PipelineResult:
    """Notes to train on, in order, with all their fields but `spans`, and the report."""

    notes: list[dict]
    report: PipelineReport


def _checked(note: object, number: int) -> dict:
    where = f"note {number}"
    if not isinstance(note, Mapping):
        raise InvalidParameter(
            f"{where}: is a {type(note).__name__}; must be a mapping with patient_id and text"
        )
    for name in ("patient_id", "text"):
        value = note.get(name)
        if not isinstance(value, str) or not value.strip():
            raise InvalidParameter(f"{where}: {name} = {value!r}; must be a text that is not empty")
        where = f"note {number} (patient {note['patient_id']!r})"
    if "\0" in note["text"]:
        raise InvalidParameter(f"{where}: text holds a NUL character; the file is not text or is damaged")
    try:
        note["text"].encode()
    except UnicodeEncodeError as error:
        raise InvalidParameter(
            f"{where}: text holds half a surrogate pair at character {error.start}; read the file as UTF-8"
        ) from error
    # Places of identifiers name places in the old text, and their values are what is to be taken out.
    return {name: value for name, value in note.items() if name != "spans"}


@dataclass(frozen=True)
class PrivacyPipeline:
    """Scrubs, then removes near-duplicates of what is left: a model sees the scrubbed text.

    Attributes:
        scrubber: takes identifiers out; None leaves the texts as they are.
        deduplicate: remove near-duplicates.
        threshold: Jaccard similarity from which two notes are duplicates, in (0, 1].
        within_patients: only look for copies among the notes of one patient, as training with
            differential privacy per patient needs it.
    """

    scrubber: Scrubber | None = field(default_factory=PatternScrubber)
    deduplicate: bool = True
    threshold: float = 0.8
    within_patients: bool = False

    def _not_checked(self) -> tuple[str, ...]:
        skipped = []
        if self.scrubber is None:
            skipped.append("identifiers of every kind: no scrubber was given")
        elif isinstance(self.scrubber, PatternScrubber):
            skipped.append(WITHOUT_NAMES)
        if not self.deduplicate:
            skipped.append("copies: deduplication is off")
        elif self.within_patients:
            skipped.append("copies in the notes of different patients")
        else:
            skipped.append(ACROSS)
        return (*skipped, *NEVER_CHECKED)

    def run(self, notes: Iterable[Mapping]) -> PipelineResult:
        """Return the notes to train on, and the report.

        Args:
            notes: mappings with `patient_id` and `text`; other fields are carried along unread.

        Raises:
            InvalidParameter: there is no note, or a note is not as it must be; the message names it.
        """
        validate.probability(threshold=self.threshold)
        read = [_checked(note, number) for number, note in enumerate(notes)]
        if not read:
            raise InvalidParameter("notes: there are none")
        counts: Counter[str] = Counter()
        scrubbed, touched = [], 0
        for note in read:
            done = Scrubbed(note["text"], ()) if self.scrubber is None else self.scrubber.scrub(note["text"])
            counts.update(span.kind for span in done.spans)
            touched += bool(done.spans)
            scrubbed.append({**note, "text": done.text})
        kept, groups = scrubbed, ()
        if self.deduplicate:
            within = "patient_id" if self.within_patients else None
            result = deduplicate(scrubbed, threshold=self.threshold, within=within)
            kept, groups = result.kept, result.groups
        owners = [note["patient_id"] for note in read]
        report = PipelineReport(
            notes_read=len(read),
            notes_kept=len(kept),
            patients_read=len(set(owners)),
            patients_kept=len({note["patient_id"] for note in kept}),
            identifiers=dict(sorted(counts.items())),
            notes_touched=touched,
            duplicates_removed=len(read) - len(kept),
            of_other_patients=sum(owners[g] != owners[group[0]] for group in groups for g in group[1:]),
            not_checked=self._not_checked(),
        )
        return PipelineResult(kept, report)
