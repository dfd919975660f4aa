"""No generated patient carries what can be a real identifier, by rules that the generator does not know."""

import identities
import pytest

# Only in pieces: no file of this project contains a string that looks like a person's number.
REAL = {
    "SSN, ITIN, ATIN or IRSN": (
        *("-".join(("123", "45", "6789")), "-".join(("912", "70", "1234")), "-".join(("900", "93", "0001"))),
        *("-".join(("950", "17", "1111")), "123" + "456789"),
    ),
    "telephone number": (
        "(212) " + "-".join(("736", "5000")),
        "-".join(("212", "555", "2368")),
        "212736" + "5000",
    ),
    "local telephone number": ("-".join(("736", "5000")),),
    "mail address": ("jane.doe@" + "gmail.com", "a@" + "myexample.com"),
    "host name": ("https://" + "hospital.org/p", "see clinic." + "care now"),
    "IP address": (".".join(("8", "8", "4", "4")),),
    "provider number (NPI)": ("123456" + "7893",),
    "ZIP code": ("ZIP 10" + "001", "NY 10" + "001"),
    "payment card": ("4111 1111 " + "1111 1111",),
    "record number": ("MRN: " + "48291034",),
}
SAFE = (
    "000-12-0000 and 666-00-0001, call (212) 555-0199 or 555-0100; BP 120/80 on 1961-02-03, 192.0.2.7",
    "a.b0001@mail.example.org, https://www.example.com, MRN: SYN-12345670, ZIP 00017, NPI 1234567890",
    "989-00-1234, 5.5 mg of x.y, 2.5 to 3.0",
)


@pytest.mark.parametrize("kind", identities.RULES)
def test_identifiers_that_can_be_real_are_found(kind):
    for text in REAL[kind]:
        kinds = {name for name, _, possible in identities.found(f"seen {text}, today") if possible}
        assert kind in kinds, text


@pytest.mark.parametrize("text", SAFE)
def test_identifiers_of_no_person_pass(text):
    assert not [one for one in identities.found(text) if one[2]]


def test_generated_patients_have_no_identifier_that_can_be_real():
    for number in range(4):  # both hospitals, with few and with only report notes
        seen = identities.hospital(number, 2026, 250)
        assert not seen["real"], seen["examples"]
        assert seen["notes"] >= 250 and {"SSN, ITIN, ATIN or IRSN", "telephone number"} <= {*seen["seen"]}


def test_no_file_of_the_project_shows_an_identifier_that_can_be_real():
    files, values = identities.repository()
    assert files > 500 and values == []


def test_identifiers_on_a_page_are_found_and_quotations_and_counts_are_not(tmp_path):
    number, words = REAL["telephone number"][0], "of 2362498705 rows, by ZIP code 13068, from https://w3.org"
    (tmp_path / "_static").mkdir()
    for name in ("_static/x.html", "page.html"):
        (tmp_path / name).write_text(
            f"<p>{words}, call <b>{number[:5]}</b>{number[5:]}<script>{number}</script>"
        )
    pages, values = identities.site(tmp_path)
    assert pages == 1 and ("page.html", "telephone number", number) in values
    assert {value for _, _, value in values} <= {number, number.partition(" ")[2]}
