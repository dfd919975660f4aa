"""The results of every attack in each of the 16 cells, with the same for people whom no model was trained on.

    rows = measure(outcomes, public, suite, output_filter, known=public_text)
    store.write_jsonl("defenses/factorial.jsonl", [row.as_dict() for row in rows])

The filter is between the model and a reader of its texts. It changes what was extracted and leaves what
was read from probabilities, so membership, exposure and perplexity of a cell depend on its training alone.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from privhelpers import stats
from privhelpers.attacks import extraction
from privhelpers.attacks.scores import Arms, split
from privhelpers.defenses._resampling import (
    Resampled,
    resampled_auc,
    resampled_difference,
    resampled_mean,
)
from privhelpers.defenses.factorial import Layers, cells
from privhelpers.defenses.suite import Outcome, Suite
from privhelpers.stats import Interval

Filter = Callable[[str], str]  # what is left of a text
TRAINED, NEVER, DIFFERENCE = "trained", "never trained", "difference"
AGAINST = "trained against never trained"  # of an AUC, which has both arms in it
HELD_BACK = "held back by the filter"
IN_TEXT = ("canaries extracted", "second halves recalled", "prompts that leaked")


@dataclass(frozen=True)
class Row:
    """One measure of one cell.

    Attributes:
        cell: of the factorial.
        measure: name of the attack or cost.
        arm: `TRAINED`, `NEVER`, their `DIFFERENCE`, or `AGAINST`.
        interval: of the estimate.
        n: observations of the arm.
        distinct_n: distinct texts among them, if texts were generated.
        estimate: with its replicates, for contrasts of cells; None for an arm alone.
    """

    cell: Layers
    measure: str
    arm: str
    interval: Interval
    n: int
    distinct_n: int | None = None
    estimate: Resampled | None = None

    def as_dict(self) -> dict:
        """Return the row as plain values, as the files of the chapter contain it."""
        ends = {name: round(float(getattr(self.interval, name)), 6) for name in ("estimate", "low", "high")}
        counts = {"n": int(self.n), "distinct_n": self.distinct_n}
        return {"cell": self.cell.name, "measure": self.measure, "arm": self.arm, **ends, **counts}


def membership_arms(outcome: Outcome, public: Outcome, suite: Suite, *, scrub: bool) -> dict[str, Arms]:
    """Return the scores of four attacks: by note and by patient, by loss and against the public checkpoint.

    Args:
        outcome: of the attacked model.
        public: of the public checkpoint.
        suite: whose notes are scored.
        scrub: whether the attacker scrubs the candidate first, as the notes were that the model saw.
    """
    losses, reference = (one.scrubbed if scrub else one.raw for one in (outcome, public))
    arms = {}
    for name, scores in (("loss", -losses), ("reference", reference - losses)):
        arms[f"note, {name}"] = split(scores, suite.patients, suite.member)
        arms[f"patient, {name}"] = arms[f"note, {name}"].by_patient()
    return arms


@dataclass(frozen=True)
class _Cell:
    """One cell, and what its rows are computed from; every method returns rows."""

    cell: Layers
    outcome: Outcome
    public: Outcome
    suite: Suite
    let_through: Filter
    known: str
    resampling: dict = field(default_factory=dict)

    def _row(
        self, measure: str, estimate: Resampled, interval: Interval | None = None, arm: str = DIFFERENCE
    ) -> Row:
        ends = interval or estimate.interval()
        return Row(self.cell, measure, arm, ends, estimate.n, estimate=estimate)

    def _rates(self, measure: str, arms: Sequence[tuple], distinct_n: int | None = None) -> list[Row]:
        """Return a rate of hits: each arm with its clustered interval, and their difference."""
        rates = [stats.clustered_proportion(hits, clusters) for hits, clusters in arms]
        rows = [
            Row(self.cell, measure, arm, rate, len(hits), distinct_n)
            for arm, rate, (hits, _) in zip((TRAINED, NEVER), rates, arms, strict=True)
        ]
        estimate = resampled_difference(*arms[0], *arms[1], **self.resampling)
        # Joining the intervals of the arms keeps the end open if nothing was hit.
        return [*rows, self._row(measure, estimate, stats.newcombe_difference(*rates))]

    def _by_arm(self, hits: np.ndarray) -> list[tuple]:
        """Return hits and patients of the members' notes and of the others'."""
        sides = (self.suite.member, ~self.suite.member)
        return [(hits[side].astype(float), self.suite.patients[side]) for side in sides]

    def membership(self, stranger: Outcome | None = None) -> list[Row]:
        """Return AUCs, and how far they are above the AUCs of a model of other people."""
        scrub, rows = self.cell.scrub, []
        theirs = membership_arms(stranger, self.public, self.suite, scrub=scrub) if stranger else {}
        for name, arms in membership_arms(self.outcome, self.public, self.suite, scrub=scrub).items():
            ours = resampled_auc(*arms, **self.resampling)
            rows.append(self._row(f"membership, {name}", ours, arm=AGAINST))
            if name in theirs:
                null = resampled_auc(*theirs[name], **self.resampling)
                gap = Resampled(ours.estimate - null.estimate, ours.replicates - null.replicates, ours.n)
                rows.append(self._row(f"above control, {name}", gap))
        return rows

    def canaries(self) -> list[Row]:
        """Return exposure above controls, and which secrets come out."""
        by_id = {canary["canary_id"]: canary for canary in self.suite.canaries}
        results = self.outcome.canaries
        planted = np.array([result.planted for result in results])
        names = np.array([result.canary_id for result in results])
        bits = np.array([result.exposure_bits for result in results])
        out = []
        for result in results:
            secret = by_id[result.canary_id]["secret"]
            written = by_id[result.canary_id]["prefix"] + secret
            out.append(float(result.extracted and secret in self.let_through(written)))
        gap = stats.mean_difference(bits[planted], bits[~planted])
        exposure = resampled_difference(
            bits[planted], names[planted], bits[~planted], names[~planted], **self.resampling
        )
        arms = [(np.array(out)[side], names[side]) for side in (planted, ~planted)]
        return [self._row("canary exposure", exposure, gap), *self._rates(IN_TEXT[0], arms)]

    def recall(self) -> list[Row]:
        """Return how many second halves are completed and pass the filter whole."""
        texts = [note["text"] for note in self.suite.notes]
        passes = [
            hit and self.let_through(text) == text
            for hit, text in zip(self.outcome.recalled, texts, strict=True)
        ]
        return self._rates(IN_TEXT[1], self._by_arm(np.array(passes)))

    def prompts(self) -> list[Row]:
        """Return leaks after the prompts: the same attempts, compared with members and with controls."""
        written = [
            replace(attempt, text=self.let_through(attempt.text)) for attempt in self.outcome.generations
        ]
        both_groups = [*self.suite.people[0], *self.suite.people[1]]
        public = extraction.public_values(written, both_groups, [self.known])
        prompts = [attempt.prompt for attempt in written]
        arms = [
            (extraction.strict_match(written, group, public=public).hits.astype(float), prompts)
            for group in self.suite.people
        ]
        return self._rates(IN_TEXT[2], arms, distinct_n=len({attempt.text for attempt in written}))

    def diagnoses(self) -> list[Row]:
        """Return how often the most probable diagnosis after the name is right."""
        arms = [
            (hits.astype(float), [person.patient_id for person in group])
            for hits, group in zip(self.outcome.first_guess, self.suite.people, strict=True)
        ]
        return self._rates("diagnosis by name", arms)

    def utility(self) -> list[Row]:
        """Return the loss of never-trained notes, as written and after scrubbing."""
        others, rows = ~self.suite.member, []
        for form in ("raw", "scrubbed"):
            losses, tokens = getattr(self.outcome, form), getattr(self.outcome, f"{form}_tokens")
            mean = resampled_mean(
                losses[others], tokens[others], self.suite.patients[others], **self.resampling
            )
            rows.append(self._row(f"loss, {form}", mean, arm=NEVER))
        return rows

    def held_back(self) -> list[Row]:
        """Return how often the filter withholds a part of the notes, which reveals who is in it."""
        texts = [note["text"] for note in self.suite.notes]
        return self._rates(HELD_BACK, self._by_arm(np.array([self.let_through(t) != t for t in texts])))

    def all_but_membership(self) -> list[Row]:
        """Return what does not need a model of other people."""
        parts = (self.canaries, self.recall, self.prompts, self.diagnoses, self.utility)
        return [row for part in parts for row in part()]


def measure(
    outcomes: Mapping[Layers, Outcome],
    public: Outcome,
    suite: Suite,
    output_filter: Filter,
    *,
    known: str,
    strangers: Mapping[Layers, Outcome] | None = None,
    draws: int = 300,
    seed: int = 0,
) -> list[Row]:
    """Return every measure of the 16 cells.

    Args:
        outcomes: of the eight trainings.
        public: of the public checkpoint, the reference of two attacks.
        suite: what the models were asked.
        output_filter: returns what is left of a text; applied in the cells with the filter.
        known: public text; an identifier in it reveals nothing.
        strangers: models trained in the same way on other people of the hospital, by scrubbing and DP: what
            an attack finds on them is a difference between the groups of patients, and no memory of them.
        draws: resamples of people, the same in every cell.
        seed: of the resampling.
    """
    resampling, rows = {"draws": draws, "seed": seed}, []
    output_filter = functools.cache(output_filter)  # the same notes pass it in eight cells
    for cell in cells():
        let_through = output_filter if cell.filter else str
        cell_data = _Cell(cell, outcomes[cell.training], public, suite, let_through, known, resampling)
        rows += cell_data.membership((strangers or {}).get(Layers(scrub=cell.scrub, dp=cell.dp)))
        rows += cell_data.all_but_membership()
        if cell.filter:
            rows += cell_data.held_back()
    return rows


def measure_public(
    public: Outcome, suite: Suite, *, known: str, draws: int = 300, seed: int = 0
) -> list[Row]:
    """Return the same for the public checkpoint, which was trained on no patient: all must be null.

    Its rows have the cell `none`; do not mix them with the rows of `measure`.
    """
    cell_data = _Cell(Layers(), public, public, suite, str, known, {"draws": draws, "seed": seed})
    # Against itself as the reference every score is zero.
    membership = [row for row in cell_data.membership() if row.measure.endswith("loss")]
    return membership + cell_data.all_but_membership()
