"""Domains other than the hospital, a file each: `NAME.yml` here is the domain of that name.

    bank = domains.take("letters")
    letters = records.make_hospital_records(domain=bank, seed=0, ...)

The files have the form of the hospital's own, `privhelpers/records/clinical.yml`.
"""

from pathlib import Path

from privhelpers import validate
from privhelpers.records import Domain, read_domain

FOLDER = Path(__file__).parent


def take(name: str) -> Domain:
    """Return the domain of a name, such as "letters".

    Raises:
        InvalidParameter: there is no such domain, or its file is not as `records.read_domain` needs it.
        UnsafeIdentifier: its file contains a number or an address that could be someone's.
    """
    validate.one_of(sorted(path.stem for path in FOLDER.glob("*.yml")), domain=name)
    return read_domain(FOLDER / f"{name}.yml")
