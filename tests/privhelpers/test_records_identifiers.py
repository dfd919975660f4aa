"""Generated identifiers lie where no authority assigns any, and the check at the door finds real ones."""

import random
import re

import pytest

from privhelpers.errors import InvalidParameter, UnsafeIdentifier
from privhelpers.records import SPACE_BITS, _identifiers, mask_unsafe, refuse_unsafe
from privhelpers.records._identifiers import PeopleFactory, check_digit

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
REAL = {
    "issuable SSN": "-".join(("123", "45", "6789")),
    "SSN after a hyphen": "-".join(("SSN", "123", "45", "6789")),
    "SSN with spaces": " ".join(("123", "45", "6789")),
    "SSN without separators": "SSN: " + "123456" + "789",
    "ITIN": "-".join(("912", "70", "1234")),
    "area 666 with a live group and serial": "-".join(("666", "12", "3456")),
    "phone": "-".join(("212", "736", "5000")),
    "phone with brackets": "(212) " + "-".join(("736", "5000")),
    "phone with dots and country": "+1." + ".".join(("212", "736", "5000")),
    "phone after a hyphen": "-".join(("Tel", "212", "736", "5000")),
    "phone without separators": "212736" + "5000",
    "assignable 555 number": "-".join(("212", "555", "2368")),
    "mail": "jane.doe@" + "gmail.com",
    "look-alike of a reserved domain": "a@" + "myexample.com",
    "web address": "https://" + "hospital.org/p/1",
    "routable IP": ".".join(("8", "8", "4", "4")),
    "NPI with a right check digit": "123456" + "7893",
    "ZIP code that was given out": "ZIP 10" + "001",
    "record number of a hospital": "MRN: " + "48291034",
}
SAFE = (
    "000-12-0000 and 666-00-0001, call (212) 555-0199 or +1 415-555-0100",
    "a.b0001@mail.example.org, https://www.example.com, 192.0.2.7",
    "MRN: SYN-12345670, BP 120/80, DOB 1961-02-03, ZIP 00017, 1234567890",
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


def test_record_numbers_carry_their_check_digit(people):
    for person in people:
        digits = person.mrn.removeprefix("SYN-")
        assert int(digits[-1]) == check_digit(digits[:-1])


def test_ages_and_birthdays_fit_the_reference_date(people):
    reference = _identifiers.REFERENCE_DATE
    for person in people[:2000]:
        year, month, day = map(int, person.dob.split("-"))
        birthdays = reference.year - year - ((reference.month, reference.day) < (month, day))
        assert abs(birthdays - person.age) <= 1 and person.age < 90


def test_declared_spaces_are_not_smaller_than_what_is_seen(people):
    for kind, bits in SPACE_BITS.items():
        assert len({getattr(person, kind) for person in people}) <= 2**bits
    single = {kind for kind, bits in SPACE_BITS.items() if bits >= 20}
    assert single == {"name", "mrn", "email", "address"}


def test_names_spread_over_their_declared_space():
    """Collisions among n uniform draws from 2**bits values: n(n-1)/2**(bits+1); weighted lists give more."""
    factory, n = PeopleFactory(random.Random(3)), 20_000
    names = [factory._name("woman" if i % 2 else "man") for i in range(n)]
    expected = n * (n - 1) / 2 ** (SPACE_BITS["name"] + 1)
    assert n - len(set(names)) < 3 * expected


@pytest.mark.parametrize("kind", REAL)
def test_identifiers_that_could_be_real_are_refused_and_shown_as_dots(kind):
    text = f"Before, {REAL[kind]} and {REAL[kind]}. After."
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
