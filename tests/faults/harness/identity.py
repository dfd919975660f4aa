"""The door of privacy units: spellings of one person, values that stand in texts, text that acts."""

import unicodedata

from faults.harness import values
from faults.harness.registry import Case, Trial, fault

from privhelpers import text

NAMES = ("Ann Hill", "O'Brien-Hill", "José Núñez", "Zoë Straße", "Łukasz", "SYN-00123456")
HIDDEN = ("\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\u2066")


@fault("another spelling of one person")
def _(t: Trial) -> Case:
    name = t.choose(NAMES)
    other = name
    for _ in range(1 + t.below(3)):
        how = t.choose(("upper", "lower", "wide", "hidden", "space", "decomposed", "dash", "edges"))
        if how in ("upper", "lower"):
            other = getattr(other, how)()
        elif how == "wide":
            other = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in other)
        elif how == "hidden":
            at = t.below(len(other))
            other = other[:at] + t.choose(HIDDEN) + other[at:]
        elif how == "space":
            other = other.replace(" ", t.choose(("  ", "\t", "\u00a0", "\u3000", "\n")))
        elif how == "decomposed":
            other = unicodedata.normalize("NFD", other)
        elif how == "dash":
            other = other.replace("-", t.choose(("\u2010", "\u2013", "\u2212")))
        else:
            other = f" {other}\n"
    return Case(lambda: text.normalize(other), right=text.normalize(name), refusal=False)


@fault("two people stay two")
def _(t: Trial) -> Case:
    name = t.choose(NAMES)
    at = t.below(len(name))
    while not name[at].isalnum():
        at = t.below(len(name))
    letter = t.choose("qxz789")
    other = name[:at] + letter + name[at + 1 :]
    same = name[at].casefold() == letter
    return Case(lambda: text.normalize(name) == text.normalize(other), right=same, refusal=False)


@fault("a value in a text is found, in part of another it is not")
def _(t: Trial) -> Case:
    name = t.choose(NAMES)
    before, after = t.choose(("", "seen ", "(", "\n", "x")), t.choose(("", ", 44", ")", ".", "x"))
    apart = "x" not in (before, after)
    return Case(lambda: text.stands_in(name, f"{before}{name}{after}"), right=apart, refusal=False)


@fault("random characters do nothing on a page")
def _(t: Trial) -> Case:
    points = [int(p) for p in t.rng.integers(0, 0x110000, 1 + t.below(60))]
    wild = "".join(map(chr, points)) + t.choose(("<script>", "\x1b[2J", "\u202e", "\0", "&#x3c;", "\ud800"))

    def call():
        shown = text.inert(wild, html=True)
        bad = [c for c in shown if c != " " and unicodedata.category(c)[0] in "CZ"]
        return not bad and "<" not in shown and ">" not in shown and shown.isprintable()

    return Case(call, right=True, refusal=False)


@fault("a text that is none")
def _(t: Trial) -> Case:
    value = t.choose(values.NO_TEXTS)
    return Case(lambda: text.inert(value))


@fault("a long text is read in time")
def _(t: Trial) -> Case:
    piece = t.choose(("1", "1 ", "-1", "a", "555-", "(", "\u0301", "é", "Ann ", "0.0/"))
    value, wild = t.choose(("000-00-6789", "Ann Hill", "1" * 40)), piece * (20_000 + t.below(50_000))
    return Case(lambda: text.stands_in(value, wild) in (True, False), right=True, refusal=False)
