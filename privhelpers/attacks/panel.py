"""Every attack with shadow models on one target, from signals that were computed once.

scores = panel.shadow_scores(target_signals, bank, references)      # of the bank's notes
turns = panel.in_turn(bank, references)                             # each shadow model as the target
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from privhelpers.attacks import lira
from privhelpers.attacks.bank import Bank
from privhelpers.attacks.shadow import KEPT, classifier
from privhelpers.errors import InvalidParameter
from privhelpers.stats import roc

Signals = Mapping[str, np.ndarray]


def features(signals: Signals, references: Mapping[str, ArrayLike]) -> np.ndarray:
    """Stack what the attack model of Shokri sees of each text: signals, and losses against references.

    Args:
        signals: `loss`, `min_k` and `min_k_plus_plus`, each of shape [..., texts].
        references: losses of the texts under models that did not train on them, shape [texts] each.

    Returns:
        Shape [..., texts, features].
    """
    own = [np.asarray(signals[name], dtype=float) for name in KEPT]
    against = [np.asarray(losses, dtype=float) - own[0] for losses in references.values()]
    return np.stack([*own, *against], axis=-1)


def shadow_scores(target: Signals, bank: Bank, references: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """Return the scores of the bank's notes under each attack that uses shadow models.

    Args:
        target: signals of the bank's notes under the attacked model, shape [notes] each.
        bank: of the shadow models, which do not include the target.
        references: losses of the bank's notes under reference models.

    Returns:
        Scores by attack: `reference_shadows`, against the mean loss over all shadow models, whether or not
        they trained with the note; `shadow_classifier`; and the four forms of `lira`.

    Raises:
        InvalidParameter: the target does not give one value a note.
    """
    if np.shape(target["loss"]) != (len(bank.notes),):
        raise InvalidParameter(f"target: must give one loss to each of {len(bank.notes)} notes")
    model = classifier(features(bank.signals, references), bank.inside)
    ratios = lira.all_forms(lira.logit_statistic(target["loss"]), bank.statistic, bank.inside)
    return {
        "reference_shadows": bank.signals["loss"].mean(0) - np.asarray(target["loss"], dtype=float),
        "shadow_classifier": model.decision_function(features(target, references)),
        **ratios,
    }


def in_turn(
    bank: Bank, references: Mapping[str, ArrayLike], *, targets: Sequence[int] | None = None
) -> dict[str, np.ndarray]:
    """Attack each shadow model in turn, with all others as the attacker's shadow models.

    Args:
        bank: of three models or more.
        references: losses of the bank's notes under reference models.
        targets: models to attack; default all.

    Returns:
        Scores by attack, each of shape [targets, notes].
    """
    if len(bank.inside) < 3:
        raise InvalidParameter("bank: one target and two shadow models are the least there is")
    rows = []
    for target in range(len(bank.inside)) if targets is None else targets:
        own = {name: values[target] for name, values in bank.signals.items()}
        others = bank.only(models=[m for m in range(len(bank.inside)) if m != target])
        plain = {"loss": -own["loss"], **{name: own[name] for name in KEPT[1:]}}
        calibrated = {
            f"reference_{name}": np.asarray(losses) - own["loss"] for name, losses in references.items()
        }
        rows.append({**plain, **calibrated, **shadow_scores(own, others, references)})
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def area_and_rate(scores: ArrayLike, inside: ArrayLike, *, fpr: float = 0.01) -> tuple[float, float]:
    """Return the AUC and the true-positive rate at one false-positive rate, without intervals.

    Args:
        scores: of the texts, higher is more member-like.
        inside: whether each is a member's.
        fpr: false-positive rate, in (0, 1].
    """
    scores, inside = np.asarray(scores, dtype=float), np.asarray(inside, dtype=bool)
    equal = roc.PooledScores(scores[inside], scores[~inside]).equal()
    return float(roc.areas(*equal)[0]), float(roc.curve_heights(*equal, np.array([fpr]))[0, 0])


def over_targets(turns: Mapping[str, np.ndarray], inside: np.ndarray) -> pd.DataFrame:
    """Return each attack's mean AUC and true-positive rate over the targets, and the span of its AUC.

    Args:
        turns: scores by attack, shape [targets, notes], as of `in_turn`.
        inside: whose notes each target is judged by, same shape.
    """
    rows = {}
    for attack, scores in turns.items():
        found = np.array([area_and_rate(s, i) for s, i in zip(scores, inside, strict=True)])
        rows[attack] = [*found.mean(0), found[:, 0].min(), found[:, 0].max()]
    columns = ["AUC", "TPR at 1 % FPR", "lowest AUC", "highest AUC"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("attack")


def by_count(
    bank: Bank, references: Mapping[str, ArrayLike], counts: Sequence[int], *, targets: Sequence[int] = (0,)
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Attack with so many shadow models and no more; return AUC and true-positive rate at 1 %.

    Args:
        bank: of more models than the largest count.
        references: losses of the bank's notes under reference models.
        counts: how many shadow models, 2 or more each; those that follow the target are taken.
        targets: models to attack; figures are means over them.

    Returns:
        Two tables, one row a count, one column for each attack with shadow models.
    """
    total, areas, rates = len(bank.inside), {}, {}
    for count in counts:
        rows = []
        for target in targets:
            part = bank.only(models=[(target + step) % total for step in range(count + 1)])
            scores = in_turn(part, references, targets=[0])
            rows.append({name: area_and_rate(own[0], part.inside[0]) for name, own in scores.items()})
        ours = [name for name in rows[0] if name.startswith(("lira", "shadow", "reference_shadows"))]
        areas[count] = {name: np.mean([row[name][0] for row in rows]) for name in ours}
        rates[count] = {name: np.mean([row[name][1] for row in rows]) for name in ours}
    tables = [pd.DataFrame.from_dict(found, orient="index") for found in (areas, rates)]
    return tuple(table.rename_axis("shadow models") for table in tables)
