"""The 18 kinds of identifiers of Safe Harbor, and the sections of the Privacy Rule that this book names.

The list is 45 CFR 164.514(b)(2)(i)(A) to (R), all texts are in our own words, and the letters are the
regulation's: a medical record number is (H), not "any other unique number" (R).

>>> [row.letter for row in IDENTIFIERS if row.record_identifier == "mrn"]
['H']
>>> sum(row.limited_data_set == REMOVED for row in IDENTIFIERS)
15
"""

from dataclasses import dataclass

REMOVED, MAY_STAY, UNLISTED = "must go", "may stay", "not on that list"


@dataclass(frozen=True)
class SafeHarborIdentifier:
    """One entry of the Safe Harbor list.

    Attributes:
        letter: its place in 45 CFR 164.514(b)(2)(i), A to R.
        name: what it covers, in our words.
        record_identifier: the identifier of our notes that falls under it, or None.
        limited_data_set: what 45 CFR 164.514(e)(2) requires for a limited data set.
    """

    letter: str
    name: str
    record_identifier: str | None = None
    limited_data_set: str = REMOVED


IDENTIFIERS = (
    SafeHarborIdentifier("A", "Names", "name"),
    SafeHarborIdentifier(
        "B", "Places smaller than a state", "address", "town, state and ZIP code may stay, the rest must go"
    ),
    SafeHarborIdentifier("C", "Dates but for the year, ages over 89", "dob", MAY_STAY),
    SafeHarborIdentifier("D", "Telephone numbers", "phone"),
    SafeHarborIdentifier("E", "Fax numbers"),
    SafeHarborIdentifier("F", "Email addresses", "email"),
    SafeHarborIdentifier("G", "Social security numbers", "ssn"),
    SafeHarborIdentifier("H", "Medical record numbers", "mrn"),
    SafeHarborIdentifier("I", "Health plan numbers"),
    SafeHarborIdentifier("J", "Account numbers"),
    SafeHarborIdentifier("K", "Certificate and license numbers"),
    SafeHarborIdentifier("L", "Vehicle identifiers and plates"),
    SafeHarborIdentifier("M", "Devices and serial numbers"),
    SafeHarborIdentifier("N", "Web addresses"),
    SafeHarborIdentifier("O", "IP addresses"),
    SafeHarborIdentifier("P", "Biometric identifiers"),
    SafeHarborIdentifier("Q", "Full-face photographs"),
    SafeHarborIdentifier("R", "Any other unique trait or code", limited_data_set=UNLISTED),
)
RECORD_IDENTIFIERS = {row.record_identifier: row.letter for row in IDENTIFIERS if row.record_identifier}


@dataclass(frozen=True)
class Section:
    """A section of title 45 of the Code of Federal Regulations.

    Attributes:
        number: of the section.
        subject: what it is about.
        asks: the requirement, in our words.
    """

    number: str
    subject: str
    asks: str


SECTIONS = (
    Section(
        "164.514(a)",
        "de-identified information",
        "it does not identify a person, and there is no reasonable basis to believe that it can",
    ),
    Section(
        "164.514(b)(1)",
        "Expert Determination",
        "a person who knows generally accepted statistical methods finds, and documents, that the risk is "
        "very small that an anticipated recipient could identify a person, alone or with other information "
        "that is reasonably available",
    ),
    Section(
        "164.514(b)(2)",
        "Safe Harbor",
        "18 kinds of identifiers of the person and of relatives, employers and household members are "
        "removed, and the holder has no actual knowledge that the rest could identify a person",
    ),
    Section(
        "164.514(e)",
        "limited data set",
        "16 kinds of direct identifiers are removed; what remains is still protected, may serve research, "
        "public health and health care operations only, and needs a data use agreement",
    ),
    Section(
        "164.502(b)",
        "minimum necessary",
        "reasonable efforts to use, disclose and request no more than the purpose needs; treatment, the "
        "patient and an authorization are among the exceptions",
    ),
    Section(
        "164.514(d)",
        "minimum necessary, how",
        "who needs access is identified, to which categories of information and under which conditions",
    ),
    Section(
        "160.103",
        "business associate",
        "a party outside the workforce who creates, receives, maintains or transmits protected information "
        "on behalf of a covered entity",
    ),
    Section(
        "164.504(e)",
        "business associate contract",
        "what the associate may do with the information, and what must happen to it at the end",
    ),
)
