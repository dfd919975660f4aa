"""The keys of what an audit tests, finds and tells, and the words for them.

Every decision uses the keys. The words come last, from `wording.yml`: rewording, translating or reordering
that file changes no figure and no verdict.
"""

import math
from dataclasses import dataclass
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


class Reason(StrEnum):
    """Why an audit concludes what it does; keys of `reasons`."""

    CANARIES = "canaries"
    CLAIM = "claim"
    BEYOND = "beyond"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Statement:
    """A reason or an explanation, with the values that its sentence names.

    Attributes:
        key: what is stated.
        values: in the order of the sentence's placeholders; of `Reason.BEYOND`, the last two are the clearest
            test and whether others are as clear.
    """

    key: Reason | Cause
    values: tuple = ()


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


def name_of_test(test: TestKey | str) -> str:
    """Return what was tested in plain words; a test that `wording.yml` does not know keeps its name."""
    if isinstance(test, AttackTest):
        words = WORDING["attacks"][test.attack], WORDING["attack_tests"][test.part]
        return WORDING["attack_test"].format(*words)
    return WORDING["tests"].get(test, test)


def name_of_clearest(test: TestKey | str, tied: bool) -> str:
    """Return in words which test is the clearest, or among the clearest."""
    return WORDING["reasons"]["tied" if tied else "clearest"].format(name_of_test(test))


def sentence(statement: Statement) -> str:
    """Return a reason or an explanation in words."""
    key, values = statement.key, statement.values
    if key == Reason.BEYOND:
        values = (*values[:2], name_of_clearest(*values[2:]))
    words = WORDING["explanations" if isinstance(key, Cause) else "reasons"]
    return words[key].format(*values)


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
