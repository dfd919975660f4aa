"""The end of a parameter's comment: ` in [0, 1)` for numbers, ` one of a, b, c` for text."""

import re
from dataclasses import dataclass, field
from typing import Any, Literal

_NUMBER = r"[-+]?(?:inf|\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_RANGE = re.compile(rf"\bin\s*([\[(])\s*({_NUMBER})\s*,\s*({_NUMBER})\s*([\])])\.?$")
_CHOICES = re.compile(r"\bone of\s+(\S.*)$")


@dataclass(frozen=True)
class Limits:
    """What a comment allows.

    Attributes:
        text: in words, "in (0, 1]" or "one of a, b"; empty where nothing is said.
        bounds: pydantic's gt, ge, lt, le.
        choices: the texts allowed; empty for any.
    """

    text: str = ""
    bounds: dict[str, float] = field(default_factory=dict)
    choices: tuple[str, ...] = ()


def _number(text: str, whole: bool) -> float | int:
    value = float(text)
    return int(value) if whole and value.is_integer() else value


def _range(match: re.Match[str], whole: bool) -> Limits:
    opening, low, high, closing = match.groups()
    lowest, highest = _number(low, whole), _number(high, whole)
    if not lowest <= highest:
        raise ValueError(f"the range of its comment is empty: {match.group()}")
    ends = (("gt" if opening == "(" else "ge", lowest), ("lt" if closing == ")" else "le", highest))
    # pydantic compares whole numbers with whole numbers only, and infinity bounds nothing.
    bounds = {key: value for key, value in ends if abs(value) != float("inf")}
    return Limits(f"in {opening}{low}, {high}{closing}", bounds)


def read(comment: str, type_name: str) -> Limits:
    """Return the limits that `comment` sets on a parameter of type `type_name`.

    Raises:
        ValueError: a number has no range.

    >>> read("budget, nats; in (0, 1000]", "float").bounds
    {'gt': 0.0, 'le': 1000.0}
    >>> read("accountant; one of pld, rdp", "str").choices
    ('pld', 'rdp')
    """
    if "int" in type_name or "float" in type_name:
        match = _RANGE.search(comment)
        if match is None:
            raise ValueError("the comment of a number must end with its range, such as `in [0, 1)`")
        return _range(match, whole="int" in type_name)
    if "str" in type_name and (match := _CHOICES.search(comment)):
        choices = tuple(choice.strip().strip("\"'`") for choice in match.group(1).rstrip(".").split(","))
        return Limits(f"one of {', '.join(choices)}", choices=choices)
    return Limits()


def literal(choices: tuple[str, ...]) -> Any:
    """Return the type that allows exactly these texts."""
    return Literal[choices]
