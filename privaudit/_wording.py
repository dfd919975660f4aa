"""The words of an audit, which stand in `wording.yml`, for somebody who reads no statistics."""

import math
from pathlib import Path

from privhelpers.artifacts import parse_yaml

WORDING = parse_yaml(Path(__file__).with_name("wording.yml").read_text(encoding="utf-8"))


def in_time(seconds: float) -> str:
    """Return an estimate of time as somebody says it.

    >>> in_time(0.2), in_time(47), in_time(190), in_time(9000)
    ('1 s', '50 s', '3 min', '2.5 h')
    """
    if seconds < 95:
        return f"{max(1, round(seconds) if seconds < 10 else 10 * round(seconds / 10))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5700 else f"{seconds / 3600:.1f} h"


def of_100(value: float, *, up: bool = False) -> str:
    """Return a share as a number out of 100; small ones keep a decimal.

    Args:
        value: in [0, 1].
        up: whether to round up, for what may have been missed.

    >>> of_100(0.974), of_100(0.004), of_100(0.0), of_100(0.732), of_100(0.732, up=True)
    ('97', '0.4', '0', '73', '74')
    """
    places = 0 if value >= 0.095 or value == 0 else 1
    if up:
        value = math.ceil(round(value * 10 ** (2 + places), 6)) / 10 ** (2 + places)
    return f"{100 * value:.{places}f}"


def small(p: float) -> str:
    """Return a p-value with two digits.

    >>> small(0.0312), small(0.00031)
    ('0.031', '3.1e-04')
    """
    return f"{p:.2g}" if p >= 0.001 else f"{p:.1e}"
