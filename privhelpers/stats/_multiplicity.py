"""Many tests at once: p-values raised by what it costs to have looked so often.

>>> adjusted = adjust({"a": 0.01, "b": 0.04, "c": 0.03})
>>> {name: round(p, 3) for name, p in adjusted.items()}
{'a': 0.03, 'b': 0.06, 'c': 0.06}
"""

from collections.abc import Mapping

from statsmodels.stats.multitest import multipletests

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.stats import _checks

METHODS = {"holm": "holm", "bonferroni": "bonferroni", "none": None}


def adjust(p_values: Mapping[str, float], method: str = "holm") -> dict:
    """Return p-values that may be compared with 5 % one by one, whatever the number of tests.

    Holm's keeps the probability of any false alarm at 5 % under every dependence between the tests, as
    Bonferroni's does, and never raises a p-value by more.

    Args:
        p_values: by name, each in [0, 1]; one or more.
        method: `holm`, `bonferroni` or `none`.

    Raises:
        InvalidParameter: there is no p-value, one is outside [0, 1], or the method is unknown.

    Source: Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    validate.one_of(METHODS, method=method)
    if not isinstance(p_values, Mapping) or not p_values:
        raise InvalidParameter(f"p_values = {validate.shown(p_values)}: give one or more, by name")
    values = _checks.rates("p_values", list(p_values.values()))
    if METHODS[method] is not None:
        values = multipletests(values, method=METHODS[method])[1]
    return dict(zip(p_values, map(float, values), strict=True))
