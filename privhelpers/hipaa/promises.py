"""What a privacy budget buys, for somebody who decides: one row a model and one paragraph of plain words.

The formulas live in `privhelpers.mechanisms`; what they give is passed in, so that nothing is coded twice.

>>> promise = Promise("dp-eps-1", 1.0, 1e-5, 0.01, {0.01: 0.0267}, 0.027193, 0.02, 0.34, 0.015)
>>> round(promise.odds_factor, 2), round(promise.members_at_worst, 1)
(2.72, 20.0)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from privhelpers import validate
from privhelpers.errors import InvalidParameter

PEOPLE = 1000  # in whom a rate is spelled out


@dataclass(frozen=True)
class Promise:
    """What one budget allows at worst, and what an audit shows to be reached.

    Attributes:
        model: trained under the budget.
        epsilon, delta: the guarantee, for the unit, relation and sampler that the page names.
        fpr: share of strangers whom the attacker may accuse wrongly.
        posterior: largest belief by prior, by the guarantee: {prior: belief after the model}.
        cap: largest TPR at `fpr` that (epsilon, delta) alone allows.
        curve: the same by the accountant's whole curve of budgets; `cap` or less.
        certified: epsilon that an audit certifies from below, or None if there was no audit.
        reached: TPR at `fpr` that goes with it, or None.
    """

    model: str
    epsilon: float
    delta: float
    fpr: float
    posterior: Mapping[float, float]
    cap: float
    curve: float
    certified: float | None = None
    reached: float | None = None

    def __post_init__(self) -> None:
        """Refuse values that contradict each other."""
        validate.non_negative(epsilon=self.epsilon)
        validate.delta(self.delta)
        validate.probability(fpr=self.fpr, cap=self.cap, curve=self.curve)
        for prior, belief in self.posterior.items():
            if not 0 < prior <= belief <= 1:
                raise InvalidParameter(
                    f"posterior[{prior}] = {belief}: must lie between the prior and 1, worst case first"
                )
        if self.curve > self.cap + 1e-9:
            raise InvalidParameter(
                f"curve = {self.curve}: must be {self.cap} or less: (epsilon, delta) is one of its points"
            )
        if (self.certified is None) != (self.reached is None):
            raise InvalidParameter("certified and reached: give both, or neither where there was no audit")

    @property
    def odds_factor(self) -> float:
        """By how much the odds that somebody was in the data can grow at most, delta aside."""
        return math.exp(self.epsilon)

    @property
    def members_at_worst(self) -> float:
        """Of 1,000 members, how many any attacker can pick out on average, by the whole curve."""
        return PEOPLE * self.curve

    @property
    def members_by_guarantee(self) -> float:
        """The same if nothing but (epsilon, delta) is known."""
        return PEOPLE * self.cap

    @property
    def members_certified(self) -> float | None:
        """Of 1,000 worst-case members, how many the audit shows to be picked out; None without an audit."""
        return None if self.reached is None else PEOPLE * self.reached

    def budget(self, tolerated: float) -> str:
        """Return whether a declared limit on members out of 1,000 holds: an answer that `declare` knows."""
        return "tolerated" if self.members_at_worst <= tolerated else "exceeds tolerance"

    @property
    def strangers(self) -> float:
        """Of 1,000 people who were not in the data, how many are accused at the same time."""
        return PEOPLE * self.fpr


def _percent(belief: float) -> str:
    return f"{100 * belief:.1f} %" if belief < 0.9995 else "over 99.9 %"


def promise_table(promises: Sequence[Promise]) -> pd.DataFrame:
    """Return one row a promise, with the two bounds beside each other."""
    rows = {}
    for one in promises:
        beliefs = {f"{100 * prior:g} % becomes": _percent(p) for prior, p in one.posterior.items()}
        found = one.members_certified
        rows[one.model] = {
            "epsilon at most": f"{one.epsilon:.2f}",
            "at least": "not audited" if one.certified is None else f"{one.certified:.2f}",
            "odds grow at most": f"{one.odds_factor:,.1f} times",
            **beliefs,
            "of 1,000, by epsilon": f"{one.members_by_guarantee:,.1f}",
            "by the curve": f"{one.members_at_worst:,.1f}",
            "shown by the audit": "not audited" if found is None else f"{found:,.1f}",
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def promise_text(promise: Promise) -> str:
    """Return what a budget buys as a paragraph that an officer can read aloud."""
    one = promise
    prior, belief = max(one.posterior.items(), default=(0.5, 0.5))
    lines = [
        f"{one.model}: who thinks it {100 * prior:g} % likely that a patient was in the training data may be "
        f"{_percent(belief)} sure after studying the model, and no surer (delta = {one.delta:g} aside).",
        f"Of {PEOPLE:,} patients who were in the data, any attack picks out {one.members_at_worst:.1f} at "
        f"most on average, if it accuses {one.strangers:g} of {PEOPLE:,} strangers as well.",
    ]
    if one.certified is None:
        lines.append("Nobody tested from outside whether the training keeps to this.")
    else:
        lines.append(
            f"A test with planted records shows that the training reaches epsilon = {one.certified:.2f}, or "
            f"{one.members_certified:.1f} of {PEOPLE:,} on a Gaussian curve; the truth lies in between."
        )
    lines.append("What holds for everybody alike, such as that a drug treats a disease, may be learned.")
    return "\n".join(lines)
