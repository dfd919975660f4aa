"""Quantile regression: is this text known better than texts like it that nobody trained on?

Texts outside the training set teach a regression which value of the target to expect of a text, from the text
alone. No shadow model is trained. The threshold of a false positive rate of 1% is the 99% quantile: a text is
called a member if its value lies above the quantile predicted for it.

>>> known = np.arange(101.0)
>>> margins([95.0, 80.0], np.zeros((2, 1)), known, np.zeros((101, 1)), level=0.9).round(6).tolist()
[5.0, -10.0]

Source: Bertran et al. 2023, section 3. They train deep networks and boosted trees on images and tables; here
boosted trees read three numbers of a text.
"""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn.ensemble import GradientBoostingRegressor

from privhelpers import validate
from privhelpers.errors import InvalidParameter


def features(texts: Sequence[str]) -> np.ndarray:
    """Return what a text shows without a model, shape [texts, 3].

    The columns are its length in bytes, the share of it that zlib leaves, and the share of digits.

    >>> features(["2 2 2 2 "])[:, [0, 2]].tolist()
    [[8.0, 0.5]]
    """
    rows = []
    for text in texts:
        data = text.encode()
        size = max(1, len(data))
        rows.append([len(data), len(zlib.compress(data)) / size, sum(map(str.isdigit, text)) / size])
    return np.array(rows, dtype=float).reshape(-1, 3)


def margins(
    target: ArrayLike,
    features: ArrayLike,
    population_target: ArrayLike,
    population_features: ArrayLike,
    *,
    level: float,
    seed: int = 0,
) -> np.ndarray:
    """Return how far each text lies above the quantile that is predicted for it, shape [texts].

    Args:
        target: `lira.logit_statistic` of each text under the attacked model, shape [texts].
        features: of each text, shape [texts, features].
        population_target, population_features: the same of texts on which the model was not trained.
        level: of the quantile, in (0, 1): 1 minus the false positive rate.
        seed: of the regression.

    Raises:
        InvalidParameter: shapes differ, the population is empty, or the level is out of range.
    """
    sides = []
    for name, values, rows in (
        ("target", target, features),
        ("population_target", population_target, population_features),
    ):
        values, rows = validate.array(name, values, float), validate.array("features", rows, float)
        if rows.ndim != 2 or values.shape != rows.shape[:1] or not len(rows):
            raise InvalidParameter(f"{name} {values.shape}: must give one value to each of {len(rows)} texts")
        sides.append((values, rows))
    level = validate.open_unit(level=level)
    (values, rows), (known, known_rows) = sides
    model = GradientBoostingRegressor(loss="quantile", alpha=level, random_state=seed)
    return values - model.fit(known_rows, known).predict(rows)
