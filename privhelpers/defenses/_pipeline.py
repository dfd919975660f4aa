"""Four layers around a model, each on or off: scrub, deduplicate, train with or without DP, filter.

>>> notes = [
...     {"patient_id": "p1", "text": "Call (212) 555-0123 after the visit."},
...     {"patient_id": "p2", "text": "Call (305) 555-0199 after the visit."},
... ]
>>> prepared = Pipeline(scrubber=PatternScrubber(), threshold=0.8).prepare(notes)
>>> [note["text"] for note in prepared.notes]
['Call [PHONE] after the visit.']
>>> prepared.report.identifiers, prepared.report.duplicates_removed
({'phone': 2}, 1)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from privhelpers import validate
from privhelpers.artifacts import parse_yaml
from privhelpers.defenses._output_filter import OutputFilter
from privhelpers.defenses._spans import Span, replace
from privhelpers.defenses.dedup import deduplicate
from privhelpers.defenses.patterns import PatternScrubber
from privhelpers.errors import InvalidParameter
from privhelpers.records import by_patient
from privhelpers.text import blank

if TYPE_CHECKING:  # torch is loaded when something is trained
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from privhelpers import dpsgd, training

_NEVER_CHECKED = (
    "what the notes say besides identifiers: condition, age, ward and events can single a patient out",
    "identifiers of relatives, staff and employers, unless the scrubber was made for them",
    "images, attachments, file names and columns other than `text`",
    "whether a model trained on these notes leaks: attack it",
)
_ACROSS = (
    "differential privacy per patient: a note removed because of another patient's breaks its guarantee; "
    "use within_patients=True before such training"
)
_BUDGET = ("target_epsilon", "target_delta", "sample_rate", "max_grad_norm")
_WITHOUT_NAMES = "names, and addresses in free words: patterns cannot find them, use an NER scrubber"


def read_recipe(path: Path) -> dict[str, object]:
    """Return the layers that a YAML file switches on, each with its setting; a layer without an entry is off.

    The entries, all optional, are `scrub: true`; `dedup`, the Jaccard similarity of two copies, in (0, 1];
    `dp`, with `target_epsilon` (nats), `target_delta`, `sample_rate` and `max_grad_norm`; and `filter`, the
    words of a run that is withheld, 1 or more.

    Raises:
        InvalidParameter: the file cannot be read, or an entry is unknown or out of its range; the message
            names the file, the entry and the value.
    """
    try:
        recipe = parse_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidParameter(f"{path}: cannot be read as YAML: {why}") from error
    if not isinstance(recipe, dict):
        raise InvalidParameter(f"{path}: must have a line for each layer")
    try:
        _check_recipe(recipe)
    except InvalidParameter as error:
        raise InvalidParameter(f"{path}: {error}") from error
    return recipe


def _check_recipe(recipe: Mapping) -> None:
    """Refuse an entry that is unknown or out of its range."""
    budget = recipe.get("dp", dict.fromkeys(_BUDGET, 0.5))
    for given, known in ((recipe, ("scrub", "dedup", "dp", "filter")), (budget, _BUDGET)):
        if not isinstance(given, Mapping):
            raise InvalidParameter(f"dp = {validate.shown(given)}: must have the entries {', '.join(known)}")
        if unknown := [name for name in given if name not in known]:
            raise InvalidParameter(
                f"{validate.shown(unknown[0])}: is not an entry; known here are {', '.join(known)}"
            )
    if missing := [name for name in _BUDGET if name not in budget]:
        raise InvalidParameter(f"dp: lacks {', '.join(missing)}")
    if not isinstance(recipe.get("scrub", True), bool):
        raise InvalidParameter(f"scrub = {validate.shown(recipe['scrub'])}: must be true or false")
    validate.probability(dedup=recipe.get("dedup", 1), sample_rate=budget["sample_rate"])
    validate.positive(**{name: budget[name] for name in ("target_epsilon", "max_grad_norm")})
    validate.delta(budget["target_delta"])
    validate.positive_int(filter=recipe.get("filter", 1))


class Scrubber(Protocol):
    """Anything that finds identifiers: a `PatternScrubber`, `NerScrubber` or `PresidioScrubber`."""

    def find_all(self, texts: Iterable[str]) -> list[list[Span]]:
        """Return the identifiers of each text."""
        ...


@dataclass(frozen=True)
class PipelineReport:
    """What a pipeline did.

    Attributes:
        notes_read, notes_kept: counts.
        identifiers: how many spans of each kind were replaced.
        notes_touched: notes in which something was replaced.
        duplicates_removed: notes that nearly repeated an earlier one.
        not_checked: what was not examined, in words.
    """

    notes_read: int
    notes_kept: int
    identifiers: dict[str, int]
    notes_touched: int
    duplicates_removed: int
    not_checked: tuple[str, ...]


def _checked_note(note: object, number: int) -> dict:
    if not isinstance(note, Mapping):
        raise InvalidParameter(f"note {number}: must be a mapping with patient_id and text")
    for name in ("patient_id", "text"):
        value = note.get(name)
        if not isinstance(value, str) or blank(value):
            raise InvalidParameter(
                f"note {number}: {name} = {validate.shown(value)}; must be a text that is not empty"
            )
    # Places of identifiers name places in the old text, and their values are what is to be taken out.
    return {name: value for name, value in note.items() if name != "spans"}


@dataclass(frozen=True)
class Prepared:
    """Notes to train on, in order, with all their fields but `spans`, and the report."""

    notes: list[dict]
    report: PipelineReport

    def by_patient(self) -> dict[str, list[str]]:
        """Return the texts of each patient (`records.by_patient`)."""
        return by_patient(self.notes)


@dataclass(frozen=True)
class Pipeline:
    """Scrubs, then removes near-duplicates of what is left, then trains, then filters what the model writes.

    Attributes:
        scrubber: takes identifiers out; None leaves the texts as they are.
        threshold: Jaccard similarity from which two notes are duplicates, in (0, 1]; None keeps copies.
        within_patients: only look for copies among the notes of one patient, as training with
            differential privacy per patient needs it.
        plan: the sealed budget of DP-SGD; None trains without.
        ngram: words of a run that the output filter withholds; None lets every answer pass.
    """

    scrubber: Scrubber | None = None
    threshold: float | None = None
    within_patients: bool = False
    plan: "dpsgd.PrivacyPlan | None" = None
    ngram: int | None = None

    def __post_init__(self) -> None:
        """Refuse a combination whose guarantee would not hold."""
        if self.threshold is not None:
            validate.fields(self, validate.probability, "threshold")
        if self.plan and self.threshold and not self.within_patients:
            raise InvalidParameter("within_patients: must be True if a plan per patient follows")

    @classmethod
    def of(
        cls, recipe: Mapping, *, scrubber: Scrubber | None = None, plan: "dpsgd.PrivacyPlan | None" = None
    ) -> "Pipeline":
        """Return the pipeline of a recipe; copies are looked for among the notes of one patient.

        Args:
            recipe: as `read_recipe` returns it.
            scrubber: for `scrub`; without one, the patterns.
            plan: for `dp`: its budget, sealed for the number of patients (`dpsgd.plan_privacy`).

        Raises:
            InvalidParameter: the recipe is not as `read_recipe` describes, or the plan is not for its dp.
        """
        _check_recipe(recipe)
        budget = recipe.get("dp")
        if (budget is None) != (plan is None):
            raise InvalidParameter("plan: must be given exactly if the recipe has dp")
        if plan:
            sealed = (plan.target_epsilon, plan.delta, plan.sample_rate, plan.max_grad_norm)
            if sealed != tuple(budget[name] for name in _BUDGET):
                raise InvalidParameter("plan: is sealed for other values than the recipe's dp")
        return cls(
            scrubber=(scrubber or PatternScrubber()) if recipe.get("scrub") else None,
            threshold=recipe.get("dedup"),
            within_patients=True,
            plan=plan,
            ngram=recipe.get("filter"),
        )

    def _not_checked(self) -> tuple[str, ...]:
        skipped = []
        if self.scrubber is None:
            skipped.append("identifiers of every kind: no scrubber was given")
        elif isinstance(self.scrubber, PatternScrubber):
            skipped.append(_WITHOUT_NAMES)
        if self.threshold is None:
            skipped.append("copies: deduplication is off")
        elif self.within_patients:
            skipped.append("copies in the notes of different patients")
        else:
            skipped.append(_ACROSS)
        return (*skipped, *_NEVER_CHECKED)

    def prepare(self, notes: Iterable[Mapping]) -> Prepared:
        """Return the notes to train on, and the report.

        Args:
            notes: mappings with `patient_id` and `text`; other fields are carried along unread.

        Raises:
            InvalidParameter: there is no note, or a note is not as it must be; the message names it.
        """
        read = [_checked_note(note, number) for number, note in enumerate(notes)]
        if not read:
            raise InvalidParameter("notes: give one or more")
        texts = [note["text"] for note in read]
        spans_by_text = self.scrubber.find_all(texts) if self.scrubber else [[] for _ in texts]
        clean = [replace(text, spans).text for text, spans in zip(texts, spans_by_text, strict=True)]
        kept = [{**note, "text": text} for note, text in zip(read, clean, strict=True)]
        if self.threshold is not None:
            within = "patient_id" if self.within_patients else None
            kept = deduplicate(kept, threshold=self.threshold, within=within).kept
        report = PipelineReport(
            notes_read=len(read),
            notes_kept=len(kept),
            identifiers=dict(sorted(Counter(span.kind for spans in spans_by_text for span in spans).items())),
            notes_touched=sum(map(bool, spans_by_text)),
            duplicates_removed=len(read) - len(kept),
            not_checked=self._not_checked(),
        )
        return Prepared(kept, report)

    def train(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        texts: Mapping[str, Sequence[str]],
        settings: "training.Settings | dpsgd.Settings",
        *,
        seed: int,
    ) -> float | None:
        """Train `model` in place on the texts of each patient and return the epsilon spent, None without DP.

        Args:
            settings: of `dpsgd` if there is a plan, else of `training`.
            seed: of shuffling, or of draws and noise: a guarantee made with it is illustrative.
        """
        from privhelpers import dpsgd, training

        if self.plan is None:
            flat = [text for patient_texts in texts.values() for text in patient_texts]
            training.train(model, tokenizer, flat, settings, seed=seed, progress=False)
            return None
        chance = dpsgd.research(seed)
        patients = list(texts.values())
        log = dpsgd.train(model, tokenizer, patients, self.plan, settings, chance=chance, progress=False)
        return log.spent.epsilon

    def guard(self, notes: Iterable[Mapping], allowed_texts: Iterable[str] = ()) -> Callable[[str], str]:
        """Return the filter between the model and a reader: a function from a text to what is let through.

        Args:
            notes: what the model was trained on, as it was written.
            allowed_texts: public texts, whose runs pass.
        """
        if self.ngram is None:
            return str
        protected = [note["text"] for note in notes]
        held_back = OutputFilter(protected, ngram=self.ngram, allowed_texts=allowed_texts)
        return lambda text: held_back.apply(text).text
