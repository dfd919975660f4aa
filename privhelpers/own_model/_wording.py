"""The words of an audit, which stand in `wording.yml`, for somebody who reads no statistics."""

from pathlib import Path

import yaml

WORDING = yaml.safe_load(Path(__file__).with_name("wording.yml").read_text(encoding="utf-8"))


def of_100(value: float) -> str:
    """Return a share as a number out of 100; small ones keep a decimal.

    >>> of_100(0.974), of_100(0.004), of_100(0.0)
    ('97', '0.4', '0')
    """
    return f"{100 * value:.0f}" if value >= 0.095 or value == 0 else f"{100 * value:.1f}"
