"""No identifier of 100,000 generated patients can belong to a real person."""

import identities
import pytest

HOSPITAL = 20_000  # patients; a factory has numbers for 20,196 people


@pytest.mark.parametrize("number", range(5))
def test_no_patient_has_an_identifier_that_can_be_real(number):
    seen = identities.hospital(number, 1, HOSPITAL)
    assert not seen["real"], seen["examples"]
    assert seen["notes"] >= HOSPITAL and seen["seen"]["SSN, ITIN, ATIN or IRSN"] > 0
