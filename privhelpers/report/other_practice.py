"""Claims of the textbook chapter on attacks, audits and scrubbing."""

import re
import subprocess
import sys

from privhelpers import stats
from privhelpers.report.claims import CONTRADICTS, HOLDS, UNMEASURED, UNSUPPORTED, WRONG, Finding, Topic

TOPIC = Topic("textbook, attacks", document="the textbook chapter")


def scrub(text: str) -> str:
    """Replace card and telephone numbers from the right, one pattern after the other, without merging.

    This is the fault on display: spans that overlap are replaced at places that no longer exist.
    """
    patterns = {"PHONE_US": r"\d{3}[-.]?\d{3}[-.]?\d{4}", "CREDIT_CARD": r"\b(?:\d{4}[- ]?){3}\d{4}\b"}
    found = [(m.start(), m.end(), kind) for kind, form in patterns.items() for m in re.finditer(form, text)]
    for start, end, kind in sorted(found, key=lambda span: span[0], reverse=True):
        text = f"{text[:start]}[{kind}_REDACTED]{text[end:]}"
    return text


@TOPIC.claim(
    "eidetic",
    where="50.1.1",
    says="Eidetic memorization is reproduction from the right prefix.",
    published="exactly, given the prefix",
    severity="B",
)
def eidetic() -> Finding:
    """The definition is about how rarely the string stands in the data."""
    return Finding(
        "k-eidetic: extractable, and in at most k training examples",
        WRONG,
        "The number of examples is the point: it tells memory from common phrases.",
    )


@TOPIC.claim(
    "ten-copies",
    where="50.1.1",
    says="Ten copies make a text ten times as extractable.",
    published="10 times",
    severity="B",
)
def ten_copies() -> Finding:
    """The literature reports about a thousand."""
    measured, claimed = 1000, 10
    return Finding(
        f"about {measured:,} times (Kandpal 2022), {measured // claimed} times the claim",
        WRONG,
        "Deduplication is worth far more than the chapter says; from the literature.",
        {"measured": measured},
    )


@TOPIC.claim(
    "auc-threshold",
    where="50.1.2",
    says="A threshold at the median loss reaches an AUC of 0.60 to 0.75.",
    published="0.60 to 0.75",
    severity="C",
)
def auc_threshold() -> Finding:
    """An area has no threshold."""
    return Finding(
        "one threshold is one point of the curve", UNMEASURED, "A rate and an area are different measures."
    )


@TOPIC.claim(
    "audit-proves",
    where="50.1.3.1",
    says="An audit by membership inference confirmed that nothing can be extracted.",
    published="confirmed",
    severity="A",
)
def audit_proves() -> Finding:
    """Another attack, and no attack proves an absence."""
    high = stats.clopper_pearson(0, 300).high
    return Finding(
        f"0 of 300 still allow a rate of {100 * high:.1f} %",
        UNSUPPORTED,
        "The attack tests another question, and a failed attack is a lower bound.",
        {"high": high},
    )


@TOPIC.claim(
    "canary-results",
    where="lab and exercise",
    says="Canaries come out without privacy and hardly with ε = 8.",
    published="30 to 80 or 60 to 80 %; near zero or 10 to 20 %",
    severity="B",
)
def canary_results() -> Finding:
    """Two places, two results."""
    lab, exercise = (30, 80), (60, 80)
    return Finding(
        "two ranges for one experiment, under two numbers of one exercise",
        CONTRADICTS if lab != exercise else HOLDS,
        "Neither range is shown with a run behind it.",
    )


@TOPIC.claim(
    "scrubber",
    where="50.1.4.1",
    says="Replacing from the right keeps positions, so that card numbers vanish.",
    published="[..._REDACTED]",
    severity="A",
)
def scrubber() -> Finding:
    """Overlapping matches leave digits behind."""
    left = scrub("4111111111111111")
    digits = sum(c.isdigit() for c in left)
    return Finding(
        f"{digits} digits of a test card number survive, as …{left[-10:]}",
        WRONG if digits else HOLDS,
        "Overlapping spans must be merged before anything is replaced.",
        {"digits": digits},
    )


@TOPIC.claim(
    "phone-pattern",
    where="50.1.4.1",
    says="The pattern finds American telephone numbers.",
    published="one pattern",
    severity="B",
)
def phone_pattern() -> Finding:
    """Spaces are not foreseen."""
    form = re.compile(r"(?:\+1[-.])?\(?\d{3}\)?[-.]?\d{3}[-.]?\d{4}")
    ways = ("(555) 555-0123", "555 555 0123", "+1 555 555 0123")
    missed = sum(form.search(way) is None for way in ways)
    return Finding(
        f"{missed} of {len(ways)} common spellings are missed; any ten digits are a hit",
        WRONG if missed else HOLDS,
        "Recall on the page's own example is not recall.",
        {"missed": missed},
    )


@TOPIC.claim(
    "set-order",
    where="50.1.1, lab",
    says="Removing duplicates through a set keeps the run reproducible.",
    published="global seed",
    severity="C",
)
def set_order() -> Finding:
    """The order of a set of strings changes with the process."""
    code = "print(list(set('the quick brown fox jumps over a lazy dog'.split())))"
    orders = {
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": s}, capture_output=True).stdout
        for s in ("1", "2", "3")
    }
    return Finding(
        f"{len(orders)} orders in 3 processes",
        WRONG if len(orders) > 1 else HOLDS,
        "`dict.fromkeys` removes duplicates and keeps the order.",
        {"orders": len(orders)},
    )


@TOPIC.claim(
    "made-up-numbers",
    where="lab",
    says="The lab's made-up social security numbers are safe to print.",
    published="three random numbers, first from 100 to 999",
    severity="B",
)
def made_up_numbers() -> Finding:
    """Most of them could be somebody's."""
    areas = range(100, 1000)
    issued = sum(area < 900 and area != 666 for area in areas)
    return Finding(
        f"{100 * issued / len(areas):.0f} % of the first parts are issued ones",
        WRONG,
        "And without a seed nobody can say afterwards which were printed.",
        {"issued": issued / len(areas)},
    )


@TOPIC.claim(
    "one-token",
    where="50.1.1, 50.1.2",
    says="The loss of any text can be taken.",
    published="mean over tokens",
    severity="C",
)
def one_token() -> Finding:
    """A text of one token predicts nothing."""
    targets = 1 - 1
    return Finding(
        f"{targets} predictions for one token: the mean is 0/0",
        WRONG,
        "One such text makes every average NaN; it must be refused or counted.",
    )
