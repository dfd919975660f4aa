"""Who is exposed: the attacks of all models side by side, within groups of notes and patients.

rows = collect({"baseline": attack}, {"baseline": None})
by_bucket = within(scores, patients, member, rarity)
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from privhelpers.attacks import groups
from privhelpers.attacks import scores as scoring
from privhelpers.attacks.scores import Measured
from privhelpers.mechanisms import largest_advantage


def within(
    scores: ArrayLike,
    patients: ArrayLike,
    member: ArrayLike,
    buckets: ArrayLike,
    *,
    draws: int = 500,
    seed: int = 0,
    least: int = 10,
) -> dict[str, Measured]:
    """Measure an attack within each bucket: members of the bucket against non-members of the same bucket.

    Against everybody else, rare notes would stand out by their difficulty alone.

    Args:
        scores: one a note or patient; NaN is left out.
        patients: whose it is.
        member: whether it was trained on.
        buckets: bucket of each.
        draws: bootstrap resamples of patients.
        seed: of the resampling.
        least: a bucket with fewer patients on either side is left out.

    Source: Jagannatha, Rawat and Yu 2021, section 6, who discard buckets of fewer than 10 patients.
    """
    scores, buckets, found = np.asarray(scores, dtype=float), np.asarray(buckets), {}
    patients, member = np.asarray(patients), np.asarray(member, dtype=bool)
    for bucket in pd.unique(buckets):
        here = (buckets == bucket) & np.isfinite(scores)
        sides = [len(set(patients[here & side])) for side in (member, ~member)]
        if min(sides) >= max(2, least):
            arms = scoring.split(scores[here], patients[here], member[here])
            found[str(bucket)] = scoring.measure(arms, draws=draws, seed=seed)
    return found


def _row(attack: Mapping, spent: Mapping | None) -> dict:
    budget = {"epsilon": np.nan, "delta": np.nan, "largest advantage": 1.0}
    if spent is not None:
        limit = largest_advantage(epsilon=spent["epsilon"], delta=spent["delta"])
        budget = {"epsilon": spent["epsilon"], "delta": spent["delta"], "largest advantage": limit}
    tries = {
        f"{name}/{level}": found["auc"]
        for name, levels in attack["attacks"].items()
        for level, found in levels.items()
        if level != "admission" or found != levels["sample"]
    }
    highest = max(tries, key=lambda name: tries[name][2])
    return {
        **budget,
        "loss note": attack["attacks"]["loss"]["sample"]["auc"],
        "loss patient": attack["patient_auc"],
        "leakage note": attack["leakage_percent"]["sample"]["leakage in %"],
        "leakage patient": attack["leakage_percent"]["patient"]["leakage in %"],
        "best": attack["best_attack"],
        "best auc": attack["best_attack_auc"],
        "best tpr": attack["best_attack_tpr_at_1pct_fpr"],
        "advance": attack["attacks"][attack["advance_attack"]]["sample"]["auc"],
        "advance patient": attack["attacks"][attack["advance_attack"]]["patient"]["auc"],
        "highest end": tries[highest][2],
        "of": highest,
        "intervals above": sum(low > 0.5 for _, low, _ in tries.values()),
        "tries": len(tries),
    }


def collect(attacks: Mapping[str, Mapping], spent: Mapping[str, Mapping | None]) -> pd.DataFrame:
    """Return one row a model: budget, leakage at both levels, the chosen attack, and the worst interval.

    Intervals stand as [estimate, low, high]. `largest advantage` is what the guarantee allows any attack on
    one patient, 1 without a guarantee; `highest end` is the highest upper end over all attacks and levels.

    Args:
        attacks: saved figures of the attacks on membership, by model.
        spent: epsilon and delta of each model's budget, None without one.
    """
    rows = {model: _row(attack, spent[model]) for model, attack in attacks.items()}
    return pd.DataFrame.from_dict(rows, orient="index")


def column(rows: pd.DataFrame, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return estimates, lower and upper ends of a column of intervals."""
    return tuple(np.array(rows[name].tolist(), dtype=float).T)


def lines(
    found: Mapping[str, Mapping[str, Measured]], order: Sequence[str] | None = None
) -> dict[str, tuple]:
    """Return (areas, lows, highs) of each model over the buckets that all of them have, for a figure.

    Args:
        found: by model and bucket, as of `within`.
        order: of the buckets; default sorted.
    """
    kept = common_buckets(found, order)
    return {
        name: tuple(np.array([own[bucket].as_json()["auc"] for bucket in kept]).reshape(-1, 3).T)
        for name, own in found.items()
    }


def common_buckets(
    found: Mapping[str, Mapping[str, Measured]], order: Sequence[str] | None = None
) -> list[str]:
    """Return the buckets that every model has, in `order` or sorted."""
    shared = set.intersection(*(set(own) for own in found.values()))
    return sorted(shared) if order is None else [bucket for bucket in order if bucket in shared]


def estimates(
    found: Mapping[str, Mapping[str, Measured]], order: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return a table of areas under the ROC curve, one row a bucket, one column a model."""
    kept = common_buckets(found, order)
    return pd.DataFrame({name: rows[0] for name, rows in lines(found, order).items()}, index=kept)


def people(notes: Sequence[dict], member: ArrayLike) -> pd.DataFrame:
    """Return one row a patient, sorted by name: member, number of notes, log-probability of the profile.

    Args:
        notes: with `patient_id` and `condition`.
        member: whether each note was trained on.
    """
    owners = groups.patients(notes)
    share, names = groups.group_means(np.asarray(member, dtype=float), owners)
    log_p = groups.profile_log_probability(groups.disease_profiles(notes))
    counts = pd.Series(owners).value_counts()
    columns = {
        "member": share == 1,
        "notes": counts[names].to_numpy(),
        "log_p": [log_p[name] for name in names],
    }
    return pd.DataFrame(columns, index=pd.Index(names, name="patient"))


def published(rows: pd.DataFrame, *, rare_gain: float, epoch_gain: float) -> pd.DataFrame:
    """Return the claims of Jagannatha et al. beside what these models show.

    Args:
        rows: as of `collect`, with the baseline and the best non-private model.
        rare_gain: AUC on rare minus AUC on common conditions, baseline.
        epoch_gain: AUC after the last minus AUC after the first epoch, shadow models.

    Source: Jagannatha, Rawat and Yu 2021, sections 5 and 6.
    """
    base, best = rows.loc["baseline"], rows.loc["best_nonprivate"]
    private = rows.loc[rows["epsilon"].notna(), "leakage note"].astype(float)
    gains = base["loss patient"][0] - base["loss note"][0], base["leakage patient"] - base["leakage note"]
    claims = [
        ("one threshold, baseline, leakage in %", "up to 7, best attack", f"{base['leakage note']:.1f}"),
        (
            "one threshold, best non-private, leakage in %",
            "up to 7, best attack",
            f"{best['leakage note']:.1f}",
        ),
        ("one threshold, private models, leakage in %", "mostly below 1", _span(private)),
        ("patients over notes, one threshold, gain in %", "positive", f"{gains[1]:+.1f}"),
        ("patients over notes, all thresholds, gain in AUC", "not reported", f"{gains[0]:+.3f}"),
        ("rare over common conditions, gain in AUC", "positive", f"{rare_gain:+.3f}"),
        ("last over first epoch, gain in AUC", "positive", f"{epoch_gain:+.3f}"),
    ]
    return pd.DataFrame(claims, columns=["claim", "published", "here"]).set_index("claim")


def _span(values: pd.Series) -> str:
    return f"{values.min():.1f} to {values.max():.1f}" if len(values) else "no private model"


def verdicts(rows: pd.DataFrame, sketch: Mapping[str, tuple[float, float]]) -> pd.DataFrame:
    """Return whether the loss AUC of each model lies inside the range that somebody expects of it.

    Args:
        rows: as of `collect`.
        sketch: lowest and highest AUC expected, by model.
    """
    table = {}
    for model, (low, high) in sketch.items():
        auc = rows.loc[model, "loss note"]
        place = "inside" if low <= auc[0] <= high else "below" if auc[0] < low else "above"
        table[model] = [*auc, low, high, place]
    columns = ["AUC", "AUC low", "AUC high", "from", "to", "verdict"]
    return pd.DataFrame.from_dict(table, orient="index", columns=columns)
