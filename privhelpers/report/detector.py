"""The report's detector and canaries: what the printed code looks for, and what the tables say it found."""

from privhelpers import hipaa
from privhelpers.report import published
from privhelpers.report.claims import CONTRADICTS, HOLDS, UNMEASURED, UNSUPPORTED, WRONG, Finding, Topic

TOPIC = Topic("detector", document="the report")


@TOPIC.claim(
    "fields-checked",
    where="5.4.2 against 7.2.1",
    says="The printed detector is the one whose counts are printed.",
    published="6 kinds in the code, 8 in the results",
    severity="B",
)
def fields_checked() -> Finding:
    """The results count what the code cannot find."""
    extra = [kind for kind in published.COUNTED if kind not in published.CHECKED]
    hits = sum(published.CATEGORIES["baseline"].get(kind, 0) for kind in extra)
    return Finding(
        f"no code for {' and '.join(extra)}",
        CONTRADICTS if extra else HOLDS,
        f"{hits} of the baseline's hits come from rules that nobody can read.",
        {"extra": len(extra)},
    )


@TOPIC.claim(
    "fields-of-a-record",
    where="5.1.3, 14.1.2",
    says="Every private text carries 13 fields.",
    published=f"{published.FIELDS_PER_RECORD}",
    severity="B",
)
def fields_of_a_record() -> Finding:
    """The templates hold six or seven."""
    sizes = [len(fields) for fields in published.TEMPLATES]
    most = max(sizes)
    return Finding(
        ", ".join(map(str, sizes)) + " by template",
        HOLDS if min(sizes) == published.FIELDS_PER_RECORD else WRONG,
        "What stands in no text cannot leak, and zero leaks of it mean nothing.",
        {"most": most},
    )


@TOPIC.claim(
    "ssn-never-leaks",
    where="7.2, 19.1",
    says="Social security numbers leak in 0 of 1400 attempts.",
    published="0 of 1400",
    severity="B",
)
def ssn_never_leaks() -> Finding:
    """Most attempts looked for a number that was in no text."""
    share = sum("ssn" in fields for fields in published.TEMPLATES) / len(published.TEMPLATES)
    could = published.ATTEMPTS * share
    return Finding(
        f"about {could:.0f} attempts could have leaked one",
        WRONG,
        "Only one template in six holds the number; the right denominator is a sixth.",
        {"could": could},
    )


@TOPIC.claim(
    "geographic-zero",
    where="19.1",
    says="Addresses were generated and none leaked.",
    published="0 instances",
    severity="B",
)
def geographic_zero() -> Finding:
    """The detector has no rule for addresses."""
    checked = "address" in published.CHECKED
    return Finding(
        "the detector never looks for an address",
        HOLDS if checked else UNMEASURED,
        "A zero that was not measured reads like one that was; an example text does show an address.",
    )


@TOPIC.claim(
    "case-one",
    where="8.1 against 16.3",
    says="The first example leaks a name and a record number.",
    published="name, record number, diagnosis, drug; elsewhere diagnosis, drug",
    severity="B",
)
def case_one() -> Finding:
    """The same text has two verdicts."""
    shown = {"name", "record number", "diagnosis", "medication"}
    logged = {"diagnosis", "medication"}
    return Finding(
        f"{len(shown - logged)} of {len(shown)} kinds stand in one list only",
        CONTRADICTS if shown != logged else HOLDS,
        "By the report's own log the name in the showcase is nobody's.",
    )


@TOPIC.claim(
    "false-alarms",
    where="16.3",
    says="The hits shown for ε = 10 follow the printed rule.",
    published="a year fires 'dob', the word 'anxiety' fires 'diagnosis'",
    severity="B",
)
def false_alarms() -> Finding:
    """The printed rule compares whole strings."""
    anxious = [c for c in published.CONDITIONS if "anxiety" in c.lower()]
    fires = any(c.lower() in "anxiety" for c in anxious)
    return Finding(
        f"'{anxious[0]}' is not in 'anxiety'; there is no rule for dates",
        HOLDS if fires else CONTRADICTS,
        "The code that ran was looser than the printed one; the report itself calls these hits false.",
    )


@TOPIC.claim(
    "canary-design",
    where="5.1.2 against 6.1.3",
    says="One design of canaries is planted.",
    published="two domains, two forms of names and numbers",
    severity="B",
)
def canary_design() -> Finding:
    """Two designs are printed."""
    first, second = "TestPatient000", "CANARY_PATIENT_4"
    return Finding(
        "two different designs",
        HOLDS if first == second else CONTRADICTS,
        "It cannot be known which canaries were searched for.",
    )


@TOPIC.claim(
    "canary-numbers",
    where="5.1.2",
    says="Canaries are unique, so that extracting one shows memory.",
    published="numbered 0, 1, 2, ...",
    severity="A",
)
def canary_numbers() -> Finding:
    """Secrets that can be counted through have no exposure."""
    train, test = set(range(15)), set(range(5))
    shared = len(train & test)
    return Finding(
        f"no random space; {shared} numbers serve for training and for test",
        UNSUPPORTED,
        "Exposure needs secrets drawn from a space, half of which is never planted.",
        {"shared": shared},
    )


@TOPIC.claim(
    "eighteen",
    where="19.1",
    says="The record number is counted under identifier 18, and the 18 are what makes data protected.",
    published="8 and again 18",
    severity="B",
)
def eighteen() -> Finding:
    """The record number has a line of its own."""
    letter = hipaa.RECORD_IDENTIFIERS["mrn"]
    place = [row.letter for row in hipaa.IDENTIFIERS].index(letter) + 1
    return Finding(
        f"identifier {place} of {len(hipaa.IDENTIFIERS)}; the list belongs to Safe Harbor",
        WRONG,
        "The list says what to remove; health data about a person is protected without it.",
        {"place": place},
    )
