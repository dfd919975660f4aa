"""Every attack of the book on the membership of one model's notes, for the tables of later chapters.

scores = battery.all_scores(found, note_ids, references, start_log_p, bank)    # one row a note
tries = battery.arms_by_name(scores, notes, member)                            # "loss/sample" -> Arms
measured = {name: measure(arms) for name, arms in tries.items()}
battery.write(store, model, scores, notes, member, measured, nulls, best, more)
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from privhelpers.artifacts import Store
from privhelpers.attacks import groups, panel, signals
from privhelpers.attacks.bank import Bank
from privhelpers.attacks.scores import Arms, Choice, Measured, as_plain, levels, select_attack, split
from privhelpers.attacks.shadow import KEPT
from privhelpers.attacks.signals import Signals
from privhelpers.errors import InvalidParameter
from privhelpers.stats import roc

HOME = "membership_inference"
ON_TOKENS = ("ez_mia", "wbc")  # attacks that compare a note's tokens under the model and under its start
_SAVED = ("reference", "lira_offline")  # attacks whose scores later chapters read, note by note


def all_scores(
    found: Signals,
    note_ids: Sequence[str],
    references: Mapping[str, Mapping[str, float]],
    start_log_p: Sequence[ArrayLike],
    bank: Bank,
) -> pd.DataFrame:
    """Return the score of every note under every attack: a row a note, a column an attack.

    Args:
        found: signals of the notes under the attacked model.
        note_ids: of the notes, in the same order.
        references: loss of each note under models that were not trained on it, by name and note.
        start_log_p: log-probability of each token under the model that training started from.
        bank: of the shadow models; notes that it does not know get NaN in the attacks that use it.
    """
    losses = {name: np.array([by_note[i] for i in note_ids]) for name, by_note in references.items()}
    table = pd.DataFrame(signals.scores(found, losses, reference_log_p=start_log_p), index=list(note_ids))
    known = bank.rows(note_ids)
    mine = {name: getattr(found, name)[known] for name in KEPT}
    theirs = {name: values[known] for name, values in losses.items()}
    shadowed = panel.shadow_scores(mine, bank.only(notes=table.index[known]), theirs)
    return table.join(pd.DataFrame(shadowed, index=table.index[known]))


def arms_by_name(scores: pd.DataFrame, notes: Sequence[dict], member: ArrayLike) -> dict[str, Arms]:
    """Return the arms of every attack on notes and patients, and on admissions if one has several notes.

    Args:
        scores: as of `all_scores`.
        notes: in the order of its rows, with `patient_id` and `admission`.
        member: whether each note was trained on.

    Returns:
        Arms by the attack and the level, such as "loss/patient".
    """
    member, found = np.asarray(member, dtype=bool), {}
    for name, values in scores.items():
        known = values.notna().to_numpy()
        kept = [note for note, is_known in zip(notes, known, strict=True) if is_known]
        by_level = levels(values[known], kept, member[known])
        if len(by_level["admission"].member_scores) == len(by_level["sample"].member_scores):
            del by_level["admission"]
        found |= {f"{name}/{level}": arms for level, arms in by_level.items()}
    return found


def by_attack(measured: Mapping[str, Measured]) -> dict[str, dict[str, dict]]:
    """Return plain values by attack and level; without admissions of several notes, those are the notes'."""
    tables: dict[str, dict[str, dict]] = {}
    for name, one in measured.items():
        attack, _, level = name.partition("/")
        tables.setdefault(attack, {})[level] = one.as_json()
    return {attack: {"admission": rows["sample"]} | rows for attack, rows in tables.items()}


def _redrawn_rates(arms: Arms, rate: float, draws: int, seed: int) -> np.ndarray:
    """Return the true-positive rate at a rate of false alarms: as measured, then of redrawn patients."""
    pooled = roc.PooledScores(arms.member_scores, arms.control_scores)

    def height(member: np.ndarray, control: np.ndarray) -> np.ndarray:
        return roc.curve_heights(member, control, np.array([rate]))[:, 0]

    owners = arms.member_patients, arms.control_patients
    return np.append(height(*pooled.equal()), roc.replicates(height, pooled, owners, draws, seed))


def token_gain(
    scores: pd.DataFrame,
    notes: Sequence[dict],
    member: ArrayLike,
    *,
    rate: float = 0.001,
    draws: int = 1000,
    seed: int = 0,
) -> dict:
    """Return how much more the attacks on tokens find than all others at a low rate of false alarms.

    The best of the two on tokens and the best of the others are each selected on half of the patients, among
    the notes that every attack scores. On the other half their rates are subtracted, patients paired.

    Returns:
        `attacks`, the two selected; `tpr` of each; `difference` with its 95% ends; and `controls`, how many.

    Raises:
        InvalidParameter: one of the two sets of attacks is empty.
    """
    known = scores.notna().all(axis=1).to_numpy()
    owners = groups.patients([note for note, is_known in zip(notes, known, strict=True) if is_known])
    side = np.asarray(member, dtype=bool)[known]
    arms = {name: split(values[known], owners, side) for name, values in scores.items()}
    on_tokens = {name: one for name, one in arms.items() if name in ON_TOKENS}
    sets = [on_tokens, {name: one for name, one in arms.items() if name not in on_tokens}]
    if not all(sets):
        raise InvalidParameter("scores: give attacks on tokens and others")
    won = [select_attack(one, fpr=rate, draws=draws, seed=seed) for one in sets]
    rates = [_redrawn_rates(one.measured.arms, rate, draws, seed) for one in won]
    gaps = rates[0] - rates[1]
    return {
        "attacks": [one.name for one in won],
        "tpr": [float(one[0]) for one in rates],
        "difference": [float(gaps[0]), *np.quantile(gaps[1:], (0.025, 0.975)).tolist()],
        "controls": won[0].measured.n[1],
    }


def write(
    store: Store,
    model: str,
    scores: pd.DataFrame,
    notes: Sequence[dict],
    member: ArrayLike,
    measured: Mapping[str, Measured],
    nulls: Mapping[str, Mapping[str, list[float]]],
    best: Choice,
    more: Mapping[str, object],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> None:
    """Write what `results` reads of one model: figures of all attacks, and losses and scores of the notes.

    Args:
        store: of the profile.
        model: by its name.
        scores, notes, member: as of `token_gain`.
        measured: by the attack and the level, as of `arms_by_name`.
        nulls: of the same attacks, as of `controls.check_nulls`.
        best: the attack selected on half of the patients.
        more: figures that only the chapter knows, under names of their own.
        draws, seed: as of `token_gain`.
    """
    member, loss = np.asarray(member, dtype=bool), measured["loss/sample"].as_json()
    patients = groups.patients(notes)
    figures = {
        "notes": [int(side.sum()) for side in (member, ~member)],
        "patients": [len(np.unique(patients[side])) for side in (member, ~member)],
        "auc": loss["auc"],
        "tpr_at_1pct_fpr": loss["tpr_at_1pct_fpr"],
        "membership_advantage": loss["advantage"],
        "null_auc": nulls["loss/sample"]["held_out"],
        "patient_auc": as_plain(measured["loss/patient"].auc),
        "attacks": by_attack(measured),
        "nulls": nulls,
        "best_attack": best.name,
        "best_attack_flattered_auc": best.flattered,
        **{f"best_attack_{name}": value for name, value in best.measured.as_json().items()},
        "token_attacks": {"sample at 0.001": token_gain(scores, notes, member, draws=draws, seed=seed)},
    }
    store.write_json(f"{HOME}/{model}/attack.json", figures | dict(more))
    sides = {"members": scores["loss"][member], "others": scores["loss"][~member]}
    losses = {side: (-values).to_dict() for side, values in sides.items()}
    store.write_json(f"{HOME}/{model}/losses.json", losses)
    kept = {name: values.dropna().round(6).to_dict() for name, values in scores.items()}
    saved = {name: values for name, values in kept.items() if str(name).startswith(_SAVED)}
    store.write_json(f"{HOME}/{model}/scores.json", saved)
