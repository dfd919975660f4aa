"""Two arms for every attack of the factorial: who was trained on and who never was; where it must fail."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from privhelpers import stats
from privhelpers.attacks import controls
from privhelpers.attacks.scores import Arms, split
from privhelpers.defenses.factorial import Layers
from privhelpers.defenses.suite import Outcome, Suite
from privhelpers.stats import Interval


def patients(suite: Suite) -> np.ndarray:
    """Return the patient of each note of the suite."""
    return np.array([note["patient_id"] for note in suite.notes])


def membership_arms(outcome: Outcome, public: Outcome, suite: Suite, *, scrub: bool) -> dict[str, Arms]:
    """Return the scores of four attacks: by note and by patient, by loss and against the public checkpoint.

    Args:
        outcome: of the attacked model.
        public: of the public checkpoint.
        suite: whose notes are scored.
        scrub: whether the attacker scrubs the candidate first, as the notes were that the model saw.
    """
    own, reference = (one.scrubbed if scrub else one.raw for one in (outcome, public))
    arms = {}
    for name, scores in (("loss", -own), ("reference", reference - own)):
        arms[f"note, {name}"] = split(scores, patients(suite), suite.member)
        arms[f"patient, {name}"] = arms[f"note, {name}"].by_patient()
    return arms


def held_back(blocked: Callable[[str], bool], notes: Sequence[dict]) -> Interval:
    """Return the rate of notes in which a filter holds something back, with a patient-clustered interval.

    Args:
        blocked: says it of one text.
        notes: with `text` and `patient_id`.
    """
    stopped = [blocked(note["text"]) for note in notes]
    return stats.clustered_proportion(stopped, [note["patient_id"] for note in notes])


def require_nulls(
    outcomes: Mapping[Layers, Outcome], public: Outcome, suite: Suite, *, draws: int = 300, seed: int = 0
) -> pd.DataFrame:
    """Split the never-trained patients in two under every model, and refuse an attack that tells the halves.

    Returns:
        The AUC of each attack under each model, all of them null.

    Raises:
        ControlFailed: one is further from one half than chance allows.
    """
    table: dict[str, dict[str, float]] = {}
    for cell, found in outcomes.items():
        for name, arms in membership_arms(found, public, suite, scrub=cell.scrub).items():
            half = stats.auc_interval(*arms.controls_halved(seed), draws=draws, seed=seed)
            controls.require_null(f"{cell.name}: {name}", half)
            table.setdefault(name, {})[cell.name] = half.estimate
    return pd.DataFrame(table)
