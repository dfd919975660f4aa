"""Names of what an audit tests, finds and tells.

Whatever is decided is decided on these. Words come last, from `wording.yml`, whose keys they are: rewording,
translating or reordering that file changes no figure and no verdict.
"""

from enum import StrEnum
from typing import NamedTuple


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
