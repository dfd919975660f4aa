"""No generated patient carries what can be a real identifier, by rules that the generator does not know."""

import identities
import pytest
from test_records_identifiers import REAL, SAFE

# What these rules find besides; in pieces, as all that looks like a person's.
MORE = {
    "local telephone number": ("-".join(("736", "5000")),),
    "host name": ("see clinic." + "care now",),
    "ZIP code": ("NY 10" + "001",),
    "payment card": ("4111 1111 " + "1111 1111",),
}


@pytest.mark.parametrize("kind", identities.RULES)
def test_identifiers_that_can_be_real_are_found(kind):
    for text in (*REAL.get(kind, ()), *MORE.get(kind, ())):
        kinds = {name for name, _, possible in identities.found(f"seen {text}, today") if possible}
        assert kind in kinds, text


@pytest.mark.parametrize("text", [*SAFE, "989-00-1234, 5.5 mg of x.y, 2.5 to 3.0"])
def test_identifiers_of_no_person_pass(text):
    assert not [one for one in identities.found(text) if one[2]]


def test_generated_patients_have_no_identifier_that_can_be_real():
    for number in (1, 2):  # both hospitals, with few and with only report notes
        seen = identities.hospital(number, 2026, 250)
        assert not seen["real"], seen["examples"]
        assert seen["notes"] >= 250 and {"SSN, ITIN, ATIN or IRSN", "telephone number"} <= {*seen["seen"]}


def test_no_file_of_the_project_shows_an_identifier_that_can_be_real():
    files, values = identities.repository()
    assert files > 500 and values == []
