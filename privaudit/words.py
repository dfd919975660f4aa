"""The keys of what an audit tests, finds and tells, and the words for them.

Every decision uses the keys. The words come last, from `wording.yml`: rewording, translating or reordering
that file changes no figure and no verdict.
"""

import math
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from privhelpers.artifacts import parse_yaml


class AttackName(StrEnum):
    """An attack on membership; keys of `attacks`."""

    LOSS = "loss"
    ZLIB = "zlib"
    MIN_K = "min_k"
    MIN_K_PLUS_PLUS = "min_k_plus_plus"
    LOWER_CASE = "lower_case"
    REFERENCE = "reference"
    EZ_MIA = "ez_mia"
    WBC = "wbc"
    WORDS = "words"
    CLOSEST = "closest"
    COVERED = "covered"


class Part(StrEnum):
    """The two tests of an attack, in the order of its p-values; keys of `attack_tests`."""

    ALL = "all"
    FEW = "few"


class Check(StrEnum):
    """A test that is not of an attack on membership; keys of `tests`."""

    COMPLETIONS = "completions"
    DISCLOSURES = "disclosures"
    CANARIES = "canaries"
    COPIES = "copies"
    SINGLING_OUT = "singling_out"
    LINKABILITY = "linkability"
    INFERENCE = "inference"


class AttackTest(NamedTuple):
    """One test of an attack."""

    attack: str
    part: Part


TestKey = AttackTest | Check


class Cause(StrEnum):
    """What else than training may explain a difference; keys of `explanations`."""

    WORDS = "words"
    SHAPE = "shape"
    RARITY = "rarity"
    UNTRAINED = "untrained"
    REFERENCE = "reference"
    TOOLS = "tools"
    EXCHANGED = "exchanged"
    INVERTED = "inverted"


class Recipient(StrEnum):
    """Who may receive what was audited, in the order of the report; keys of `recipients`."""

    READERS = "readers"
    CONTRACT = "contract"
    ANYONE = "anyone"


class Limit(StrEnum):
    """Why not all patients were asked about; keys of `coverage.short` and of `details.coverage.why`."""

    MINUTES = "minutes"
    OPTIONS = "options"


WORDING = parse_yaml(Path(__file__).with_name("wording.yml").read_text(encoding="utf-8"))


def in_time(seconds: float) -> str:
    """Return an estimate of time in words.

    >>> in_time(0.2), in_time(47), in_time(190), in_time(9000)
    ('1 s', '50 s', '3 min', '2.5 h')
    """
    if seconds < 95:
        return f"{max(1, round(seconds) if seconds < 10 else 10 * round(seconds / 10))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5700 else f"{seconds / 3600:.1f} h"


def format_percent(value: float, *, up: bool = False) -> str:
    """Return a share as a number out of 100; small ones keep a decimal.

    Args:
        value: in [0, 1].
        up: whether to round up, for what may have been missed.

    >>> [format_percent(share) for share in (0.974, 0.004, 0.0, 0.732)], format_percent(0.732, up=True)
    (['97', '0.4', '0', '73'], '74')
    """
    places = 0 if value >= 0.095 or value == 0 else 1
    if up:
        value = math.ceil(round(value * 10 ** (2 + places), 6)) / 10 ** (2 + places)
    return f"{100 * value:.{places}f}"


def format_p(p: float) -> str:
    """Return a p-value with two digits.

    >>> format_p(0.0312), format_p(0.00031)
    ('0.031', '3.1e-04')
    """
    return f"{p:.2g}" if p >= 0.001 else f"{p:.1e}"
