"""The best of many attacks, chosen on some patients and measured on others.

best = choose({"loss/sample": arms, "loss/patient": arms.by_patient()})
best.name, best.flattered, best.measured.auc
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privhelpers import stats
from privhelpers.attacks import controls
from privhelpers.attacks.membership import Arms, Measured, measure
from privhelpers.errors import InvalidParameter


@dataclass(frozen=True)
class Choice:
    """The attack that won on one half of the patients, measured on the other half.

    Attributes:
        name: of the winner.
        flattered: its AUC on the half that it was chosen on, too high on average.
        measured: what it achieves on patients who had no part in the choice.
    """

    name: str
    flattered: float
    measured: Measured


def choose(attacks: Mapping[str, Arms], *, draws: int = 1000, seed: int = 0, level: float = 0.95) -> Choice:
    """Choose the attack with the highest AUC on half of the patients and measure it on the other half.

    The best of many is chosen partly for its luck: measured where it was chosen, it looks better than it
    is, and on a model that leaks nothing the winner still seems to find something.

    Args:
        attacks: arms by name, one or more.
        draws, seed, level: as of `measure`; the seed also splits the patients.
    """
    if not attacks:
        raise InvalidParameter("attacks: there is nothing to choose from")
    halves = []
    for side in ("member_patients", "other_patients"):
        names = np.unique(np.concatenate([getattr(arms, side) for arms in attacks.values()]))
        halves.append(names[controls.split_by_patient(names, seed)])
    choosing = np.concatenate(halves)
    first = {name: arms.only(choosing) for name, arms in attacks.items()}
    found = {name: stats.auc(arms.member_scores, arms.other_scores) for name, arms in first.items()}
    winner = max(found, key=found.__getitem__)
    everyone = np.concatenate([attacks[winner].member_patients, attacks[winner].other_patients])
    rest = attacks[winner].only(np.setdiff1d(everyone, choosing))
    return Choice(winner, found[winner], measure(rest, draws=draws, seed=seed, level=level))
