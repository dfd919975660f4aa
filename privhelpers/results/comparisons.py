"""Each figure against its never-trained control: test, equivalence, and what could have been seen.

pairs = [pair for model in models for pair in compare(source, model)]
table = frame(pairs, margins={"membership": 0.05, "extraction": 0.05, "canaries": 1.0})
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from privhelpers import stats
from privhelpers.errors import InvalidParameter
from privhelpers.results.reading import Results
from privhelpers.results.tidy import ATTACKS, attack_name
from privhelpers.stats import Equivalence, Estimate

NEVER_TRAINED, PUBLIC = "never trained", "public checkpoint"


@dataclass(frozen=True)
class Comparison:
    """One test of a figure on what was trained on against its never-trained control.

    Attributes:
        model, family, measure: what was compared, as in the tidy rows.
        against: the control: `never trained`, or `public checkpoint` for the same notes under that model.
        null: value of no difference, 0.5 for an AUC.
        estimate: with its clustered standard error, or None where independent units are counted.
        counts: hits and units of member and control, or None where there is a standard error.
    """

    model: str
    family: str
    measure: str
    against: str
    null: float = 0.0
    estimate: Estimate | None = None
    counts: tuple[int, int, int, int] | None = None

    @property
    def name(self) -> str:
        """Model, measure and control in one string, different for every comparison."""
        return f"{self.model}: {self.measure}, {self.against}"

    def equivalence(self, margin: float) -> Equivalence:
        """Return the two one-sided tests against a margin, and the two-sided one of no difference."""
        if self.estimate is not None:
            return stats.tost(self.estimate, margin=margin, null=self.null)
        return stats.tost_rates(*self.counts, margin=margin)

    def detectable(self, power: float = 0.8, alpha: float = 0.05) -> float | None:
        """Return the smallest true difference found with that power; None where nothing varied."""
        if self.estimate is not None:
            if self.estimate.standard_error == 0:
                return None
            return stats.detectable(self.estimate.standard_error, power=power, alpha=alpha)
        _, member_units, control_hits, control_units = self.counts
        control = control_hits / control_units
        units = min(member_units, control_units)
        return stats.detectable_rate(units, control=control, power=power, alpha=alpha) - control


def _arms(notes: pd.DataFrame) -> tuple[pd.Series, pd.Series, pd.Series, pd.Series]:
    member, other = notes[notes["member"]], notes[~notes["member"]]
    return member["score"], member["patient"], other["score"], other["patient"]


def _areas(runs: Results, model: str) -> Iterable[Comparison]:
    for attack in ATTACKS:
        notes = runs.of(model).scores(attack)
        arms = _arms(notes)
        named = (model, "membership", attack_name(attack))
        yield Comparison(*named, NEVER_TRAINED, null=0.5, estimate=stats.clustered_auc(*arms))
        if model == "public":
            continue
        same = runs.of("public").scores(attack)
        if not same.index.equals(notes.index):
            raise InvalidParameter(f"{model}, {attack}: its notes are not those of the public checkpoint")
        public = _arms(same)
        gap = stats.paired_auc_difference((arms[0], public[0]), (arms[2], public[2]), arms[1], arms[3])
        yield Comparison(*named, PUBLIC, estimate=gap)


def compare(runs: Results, model: str) -> list[Comparison]:
    """Return every test of one model: each attack on membership, on patients and on canaries.

    Raises:
        MissingArtifact: a run on this model, or on the public checkpoint, has not been made.
    """
    found = runs.of(model)
    texts = found.attempts()
    loose = stats.paired_difference(texts["loose"], texts["loose_control"], texts["prompt"])
    planted, control = (found.canaries[found.canaries["planted"] == side] for side in (True, False))
    # Each canary is a unit of its own, and then this is Welch's test.
    labels = [f"m{k}" for k in range(len(planted))], [f"c{k}" for k in range(len(control))]
    exposure = stats.clustered_difference(
        planted["exposure_bits"], labels[0], control["exposure_bits"], labels[1]
    )
    extracted = (int(planted["extracted"].sum()), len(planted))
    extracted += (int(control["extracted"].sum()), len(control))
    counts = {name: tuple(map(int, row)) for name, row in found.patients_found().iterrows()}
    return [
        *_areas(runs, model),
        Comparison(model, "extraction", "loose leaks", NEVER_TRAINED, estimate=loose),
        *(
            Comparison(model, "extraction", measure, NEVER_TRAINED, counts=row)
            for measure, row in counts.items()
        ),
        Comparison(model, "canaries", "exposure (bits)", NEVER_TRAINED, estimate=exposure),
        Comparison(model, "canaries", "canaries extracted", NEVER_TRAINED, counts=extracted),
    ]


def frame(
    pairs: Iterable[Comparison],
    *,
    margins: Mapping[str, float],
    power: float = 0.8,
) -> pd.DataFrame:
    """Return one row a comparison: difference, tests with Holm's correction, verdict, what could be seen.

    Args:
        pairs: comparisons, each named once.
        margins: smallest difference that would matter, by measure or else by family.
        power: of the smallest difference that could have been found, in (0, 1).

    Raises:
        InvalidParameter: a comparison stands twice, or a family has no margin.
    """
    pairs = list(pairs)
    tested = {}
    for pair in pairs:
        margin = margins.get(pair.measure, margins.get(pair.family))
        if margin is None:
            raise InvalidParameter(f"margins: none for {pair.measure!r} or its family {pair.family!r}")
        tested[pair.name] = pair.equivalence(margin)
    if len(tested) != len(pairs):
        raise InvalidParameter("pairs: a comparison stands twice")
    # Both questions are asked of every row, so both are paid for.
    holm = stats.adjust({name: both.p_difference for name, both in tested.items()})
    holm_equal = stats.adjust({name: both.p_value for name, both in tested.items()})
    rows = []
    for pair, both in zip(pairs, tested.values(), strict=True):
        row = {"model": pair.model, "family": pair.family, "measure": pair.measure}
        row |= {"against": pair.against, "difference": both.difference, "low_90": both.low}
        row |= {"high_90": both.high, "p": both.p_difference, "holm_p": holm[pair.name]}
        row |= {"margin": both.margin, "equivalence_p": both.p_value}
        row |= {"holm_equivalence_p": holm_equal[pair.name], "detectable": pair.detectable(power)}
        paid = replace(both, p_difference=holm[pair.name], p_value=holm_equal[pair.name])
        rows.append(row | {"verdict_alone": both.verdict, "verdict": paid.verdict})
    return pd.DataFrame(rows).astype({"detectable": float})


def as_rows(tested: pd.DataFrame) -> list[dict]:
    """Return a frame of comparisons as rows for a file of JSON lines, None where there is no number."""
    return tested.astype(object).where(tested.notna(), None).to_dict("records")
