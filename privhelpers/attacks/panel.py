"""Every attack with shadow models on one target, from signals that were computed once.

scores = panel.shadow_scores(target_signals, bank, references)      # of the bank's notes

Sources: Shokri et al. 2017, section V-C, for the classifier; Carlini et al. 2022 for the likelihood ratio.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from privhelpers.attacks import lira
from privhelpers.attacks.bank import Bank
from privhelpers.attacks.shadow import KEPT
from privhelpers.errors import InvalidParameter

Signals = Mapping[str, np.ndarray]


def _features(signals: Signals, references: Mapping[str, ArrayLike]) -> np.ndarray:
    """Stack signals and losses against references, shape [..., texts, features]."""
    signal_values = [np.asarray(signals[name], dtype=float) for name in KEPT]
    against = [np.asarray(losses, dtype=float) - signal_values[0] for losses in references.values()]
    return np.stack([*signal_values, *against], axis=-1)


def _classifier(features: np.ndarray, inside: np.ndarray) -> Pipeline:
    """Learn from all shadow models at once what membership looks like."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return model.fit(features.reshape(-1, features.shape[-1]), inside.ravel())


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
    model = _classifier(_features(bank.signals, references), bank.inside)
    ratios = lira.all_forms(lira.logit_statistic(target["loss"]), bank.statistic, bank.inside)
    return {
        "reference_shadows": bank.signals["loss"].mean(0) - np.asarray(target["loss"], dtype=float),
        "shadow_classifier": model.decision_function(_features(target, references)),
        **ratios,
    }
