"""Each figure against its never-trained control: test, equivalence, and what could have been seen.

pairs = [pair for model in models for pair in compare(source, model)]
table = frame(pairs, margins={"membership": 0.05, "extraction": 0.05, "canaries": 1.0})
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from privhelpers import stats
from privhelpers.attacks import measurements
from privhelpers.attacks.measurements import ATTACKS, Source
from privhelpers.errors import InvalidParameter
from privhelpers.stats import Equivalence, Estimate

NEVER_TRAINED, PUBLIC = "never trained", "public checkpoint"


@dataclass(frozen=True)
class Comparison:
    """One test of a figure on what was trained on against its never-trained control.

    Attributes:
        model, family, measure: what was compared, as in the rows of `measurements`.
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


def _areas(source: Source, model: str) -> Iterable[Comparison]:
    for attack in ATTACKS:
        found = measurements.read_scores(source, model, attack)
        named = (model, "membership", measurements.attack_name(attack))
        yield Comparison(*named, NEVER_TRAINED, null=0.5, estimate=stats.clustered_auc(*found.arms))
        if model == "public":
            continue
        public = measurements.read_scores(source, "public", attack)
        if public.ids != found.ids:
            raise InvalidParameter(f"{model}, {attack}: its notes are not those of the public checkpoint")
        members, others = ((found.arms[k], public.arms[k]) for k in (0, 2))
        gap = stats.paired_auc_difference(members, others, found.arms[1], found.arms[3])
        yield Comparison(*named, PUBLIC, estimate=gap)


def _exposure(source: Source, model: str) -> Comparison:
    arms = measurements.canaries(source, model, "exposure_bits")
    member, control = arms["member"], arms["control"]
    labels = [f"m{k}" for k in range(member.size)], [f"c{k}" for k in range(control.size)]
    # Each canary is a unit of its own, and then this is Welch's test.
    gap = stats.clustered_difference(member, labels[0], control, labels[1])
    return Comparison(model, "canaries", "exposure (bits)", NEVER_TRAINED, estimate=gap)


def compare(source: Source, model: str) -> list[Comparison]:
    """Return every test of one model: each attack on membership, on patients and on canaries.

    Raises:
        MissingArtifact: a run on this model, or on the public checkpoint, has not been made.
    """
    member, control, prompts = measurements.attempts(source, model, "loose")
    loose = stats.paired_difference(member, control, prompts)
    extracted = measurements.canaries(source, model, "extracted")
    arms = (extracted[arm] for arm in measurements.ARMS)
    planted = tuple(value for arm in arms for value in (int(arm.sum()), arm.size))
    return [
        *_areas(source, model),
        Comparison(model, "extraction", "loose leaks", NEVER_TRAINED, estimate=loose),
        *(
            Comparison(model, "extraction", measure, NEVER_TRAINED, counts=counts)
            for measure, counts in measurements.found_patients(source, model).items()
        ),
        _exposure(source, model),
        Comparison(model, "canaries", "canaries extracted", NEVER_TRAINED, counts=planted),
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
