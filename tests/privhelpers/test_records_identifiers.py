"""Generated identifiers lie where no authority assigns any, and the check at the door finds real ones."""

import random
import re

import pytest

from privhelpers.errors import InvalidParameter, UnsafeIdentifier
from privhelpers.records import SPACE_BITS, _identifiers, mask_unsafe, refuse_unsafe
from privhelpers.records._identifiers import PeopleFactory

PEOPLE = 20_000
SHAPES = {
    "name": r"[A-Z][A-Za-z]+ [A-Z]\. [A-Z][A-Za-z]+",
    "dob": r"(19[3-9]\d|200[0-6])-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])",
    "mrn": r"SYN-\d{8}",
    "email": r"[a-z]\.[a-z]+\d{4}@[a-z]+\.example\.(org|com|net)",
    "phone": r"\([2-9]\d\d\) 555-01\d\d",
    "ssn": r"(000|666)-(00-(?!0000)\d{4}|(?!00)\d\d-0000)",
    "address": r"\d{1,3} [A-Z][A-Za-z]+ [A-Z][a-z]+, [A-Z][a-z]+, ZIP 000\d\d",
}
# Only in pieces: no file of this project contains a string that looks like a person's number.
SSN, PHONE = ("123", "45", "6789"), ("212", "736", "5000")
REAL = {
    "SSN, ITIN, ATIN or IRSN": (
        *("-".join(SSN), " ".join(SSN), "-".join(("SSN", *SSN)), "SSN: " + "".join(SSN)),
        *("-".join(("912", "70", "1234")), "-".join(("900", "93", "0001")), "-".join(("950", "17", "1111"))),
    ),
    "telephone number": (
        *("-".join(PHONE), "(212) " + "-".join(PHONE[1:]), "+1." + ".".join(PHONE)),
        *("-".join(("Tel", *PHONE)), "".join(PHONE), "-".join(("212", "555", "2368"))),
    ),
    "mail address": ("jane.doe@" + "gmail.com", "a@" + "myexample.com"),
    "host name": ("https://" + "hospital.org/p/1",),
    "IP address": (".".join(("8", "8", "4", "4")),),
    "provider number (NPI)": ("123456" + "7893",),
    "ZIP code": ("ZIP 10" + "001",),
    "record number": ("MRN: " + "48291034",),
    "account number": ("Account: " + "48291034", "IBAN GB00-" + "48291034"),
    "account number (IBAN)": (" ".join(("DE89", "3704", "0044", "0532", "0130", "00")),),
}
SAFE = (
    "000-12-0000 and 666-00-0001, call (212) 555-0199 or +1 415-555-0100",
    "a.b0001@mail.example.org, https://www.example.com, 192.0.2.7",
    "MRN: SYN-12345670, BP 120/80, DOB 1961-02-03, ZIP 00017, 1234567890",
    "Account: ZZ00-12345670, " + " ".join(("DE88", "3704", "0044", "0532", "0130", "00")),
)


@pytest.fixture(scope="module")
def factory():
    return PeopleFactory(random.Random(7))


@pytest.fixture(scope="module")
def people(factory):
    return [factory.person() for _ in range(PEOPLE)]


@pytest.mark.parametrize("kind", SPACE_BITS)
def test_generated_identifiers_are_safe_and_unique(people, kind):
    values = [getattr(person, kind) for person in people]
    shape = re.compile(SHAPES[kind])
    assert not [value for value in values if not shape.fullmatch(value)]
    refuse_unsafe("\n".join(values), kind)
    refuse_unsafe(f"MRN: {values[0]}", kind)
    if kind != "dob":  # two people may share a birthday
        assert len(set(values)) == PEOPLE


def test_ages_and_birthdays_fit_the_reference_date(people):
    reference = _identifiers.REFERENCE_DATE
    for person in people[:2000]:
        year, month, day = map(int, person.dob.split("-"))
        birthdays = reference.year - year - ((reference.month, reference.day) < (month, day))
        assert abs(birthdays - person.age) <= 1 and person.age < 90


@pytest.mark.parametrize(
    "value", [*(value for values in REAL.values() for value in values), "-".join(("666", "12", "3456"))]
)
def test_identifiers_that_could_be_real_are_refused_and_shown_as_dots(value):
    text = f"Before, {value} and {value}. After."
    with pytest.raises(UnsafeIdentifier, match=r"train\.jsonl, line 3"):
        refuse_unsafe(text, "train.jsonl, line 3")
    shown = mask_unsafe(text)
    refuse_unsafe(shown, "a page")
    assert len(shown) == len(text) and "•" in shown
    assert all(new in (old, "•") for old, new in zip(text, shown, strict=True))
    assert shown.startswith("Before, ") and shown.endswith(". After.")


@pytest.mark.parametrize("text", SAFE)
def test_safe_ranges_pass(text):
    refuse_unsafe(text, "a note")
    assert mask_unsafe(text) == text


def test_an_exhausted_space_is_refused_instead_of_searched_forever(factory, people):
    with pytest.raises(InvalidParameter, match=r"20,?196"):
        for _ in range(20_197 - len(people)):
            factory.person()
