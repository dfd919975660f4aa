"""Identifiers that cannot belong to a person, and the check that every written text passes.

Each format lies in a range that its authority never assigns: social security numbers in area 000 or 666
with group 00 or serial 0000, telephone numbers 555-0100 to 555-0199, e-mail under sub-domains of the
reserved example domains (RFC 2606), ZIP codes 000xx, record and account numbers with a prefix of
`NEVER_ISSUED` and their own check digit. Names come from Faker; with identifiers that are all impossible
they name no one.
"""

import datetime
import ipaddress
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from faker import Faker

from privhelpers.errors import InvalidParameter, UnsafeIdentifier
from privhelpers.text import has_check_digit

REFERENCE_DATE = datetime.date(2024, 1, 1)  # "today" of every record: the clock must not change the data
OLDEST, YOUNGEST = 89, 18  # ages above 89 are an identifier of their own
TOWNS = tuple(
    a + b
    for a in ("Alder", "Bram", "Corn", "Dun", "Elm", "Fenn", "Gorse", "Hazel", "Ivel", "Kest", "Lorn", "Mere")
    for b in ("wick", "holt", "mouth", "stead", "combe", "thorpe")
    if a + b not in ("Alderholt", "Elmstead")  # these two exist
)
# Ordinary area codes: service and toll-free ones (211, 800, 888, 900) end in two equal digits.
AREA_CODES = tuple(code for code in range(200, 1000) if code // 10 % 10 != code % 10)
STREETS = ("Lane", "Street", "Road", "Close", "Walk", "Rise", "Court", "Row")
MAIL_HOSTS = ("mail.example.org", "post.example.com", "home.example.net")
INITIALS = "ABCDEFGHJKLMNPRSTVW"
_FAKER_FIRST, _FAKER_LAST = 690, 1000  # distinct names that Faker's en_US lists offer, rounded down

MOST_PEOPLE = 2 * (9999 + 99)  # as many as there are impossible social security numbers

# What a person's record or account number begins with, and why no one has such a number.
NEVER_ISSUED = {
    "SYN-": "a visible prefix, for synthetic, that is part of no numbering scheme",
    "ZZ00-": "a bank account number (IBAN) begins with a country and two check digits; ZZ is the code of no "
    "country (ISO 3166-1, user-assigned), and check digits lie between 02 and 98 (ISO 13616)",
}

# Size of each identifier's space in bits: what a guess has to get right.
SPACE_BITS = {
    "name": math.log2(_FAKER_FIRST * _FAKER_LAST * len(INITIALS)),
    "dob": math.log2((OLDEST - YOUNGEST + 1) * 365.25),
    "mrn": math.log2(10**7),
    "email": math.log2(_FAKER_LAST * 26 * 10**4 * len(MAIL_HOSTS)),
    "phone": math.log2(len(AREA_CODES) * 100),
    "ssn": math.log2(MOST_PEOPLE),
    "address": math.log2(999 * _FAKER_LAST * len(STREETS) * len(TOWNS) * 100),
}


@dataclass(frozen=True)
class Person:
    """Name and identifiers of an invented person, all as written in notes."""

    name: str
    dob: str
    mrn: str
    email: str
    phone: str
    ssn: str
    address: str
    age: int
    sex: str


def check_digit(digits: str) -> int:
    """Return the check digit of a synthetic record number: the weighted digit sum modulo 10.

    >>> check_digit("1234567")
    0
    """
    return sum((place + 1) * int(digit) for place, digit in enumerate(digits)) % 10


class PeopleFactory:
    """Draws people whose identifiers are unique within the factory and impossible outside it."""

    def __init__(self, generator: random.Random, number_prefix: str = "SYN-") -> None:
        """Start a factory from one random stream; the prefix is one of `NEVER_ISSUED`."""
        self._random, self.number_prefix = generator, number_prefix
        self._faker = Faker("en_US", use_weighting=False)
        self._faker.seed_instance(generator.getrandbits(63))
        self._used: set[str] = set()
        self._people = 0

    @property
    def used(self) -> frozenset[str]:
        """Every value that this factory has given out and must not repeat."""
        return frozenset(self._used)

    def _unique(self, draw) -> str:  # a zero-argument function
        while (value := draw()) in self._used:
            pass
        self._used.add(value)
        return value

    def _record_number(self) -> str:
        digits = f"{self._random.randrange(10**7):07d}"
        return f"{self.number_prefix}{digits}{check_digit(digits)}"

    def _ssn(self) -> str:
        area = self._random.choice(("000", "666"))
        group_or_serial = self._random.randrange(9999 + 99)
        if group_or_serial < 9999:
            return f"{area}-00-{group_or_serial + 1:04d}"
        return f"{area}-{group_or_serial - 9998:02d}-0000"

    def _phone(self) -> str:
        return f"({self._random.choice(AREA_CODES)}) 555-01{self._random.randrange(100):02d}"

    def _address(self) -> str:
        street = f"{self._random.randint(1, 999)} {self._faker.last_name()} {self._random.choice(STREETS)}"
        return f"{street}, {self._random.choice(TOWNS)}, ZIP 000{self._random.randrange(100):02d}"

    def _email(self, name: str) -> str:
        first, *_, last = name.lower().split()
        return f"{first[0]}.{last}{self._random.randrange(10**4):04d}@{self._random.choice(MAIL_HOSTS)}"

    def _name(self, sex: str) -> str:
        first = self._faker.first_name_female() if sex == "woman" else self._faker.first_name_male()
        return f"{first} {self._random.choice(INITIALS)}. {self._faker.last_name()}"

    def name(self) -> str:
        """Return a full name that this factory has not given out."""
        return self._unique(lambda: self._name(self._random.choice(("woman", "man"))))

    def person(self) -> Person:
        """Return a new person.

        Raises:
            InvalidParameter: every number of the smallest unique space is taken.
        """
        if self._people == MOST_PEOPLE:
            raise InvalidParameter(
                f"people: at most {MOST_PEOPLE}, because no more social security numbers are sure to be "
                "unassigned; ask for fewer patients"
            )
        self._people += 1
        sex = self._random.choice(("woman", "man"))
        name = self._unique(lambda: self._name(sex))
        days = self._random.randint(math.ceil(365.25 * YOUNGEST), math.floor(365.25 * (OLDEST + 1)) - 1)
        birth = REFERENCE_DATE - datetime.timedelta(days=days)
        return Person(
            name=name,
            dob=birth.isoformat(),
            mrn=self._unique(self._record_number),
            email=self._unique(lambda: self._email(name)),
            phone=self._unique(self._phone),
            ssn=self._unique(self._ssn),
            address=self._unique(self._address),
            age=int(days / 365.25),
            sex=sex,
        )


# A hyphen may precede a number (`SSN-...`), but not a digit: it would be part of a longer number.
_SSN = re.compile(r"(?<!\d)(?<!\d-)(\d{3})([- ]?)(\d{2})\2(\d{4})(?!\d|-\d)")
_PHONE = re.compile(r"(?<!\d)(?<!\d-)(?:\+?1[ .-]?)?\(?([2-9]\d{2})\)?[ .-]?([2-9]\d{2})[ .-]?(\d{4})(?!\d)")
_HOST = re.compile(r"(?:@|https?://|www\.)([a-z0-9.-]+\.[a-z]{2,})", re.IGNORECASE)
_IP = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?!\d|\.\d)")
_NPI = re.compile(r"(?<!\d)([12]\d{9})(?!\d)")
_ZIP = re.compile(r"\bZIP(?: code)?:? (\d{5})(?!\d)")
_MRN = re.compile(r"\bMRN[-:# ]*([A-Z]*-?\d{5,})", re.IGNORECASE)
_ACCOUNT = re.compile(r"\b(?:account|IBAN)(?: number| no\.?)?[-:# ]*([A-Z]*\d*-?\d{5,})", re.IGNORECASE)
_IBAN = re.compile(r"\b([A-Z]{2})(\d{2})((?:[ -]?[A-Z0-9]){11,30})\b")
_SAFE_HOSTS = re.compile(r"(?:^|\.)(?:example\.(?:com|net|org)|example|test|invalid)$", re.IGNORECASE)
_SAFE_NETS = tuple(map(ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))


def _real_ip(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not any(address in net for net in _SAFE_NETS)


def _real_iban(country: str, check: str, rest: str) -> bool:
    """Return whether a bank may have issued this number: its remainder modulo 97 is 1."""
    letters = re.sub("[ -]", "", rest) + country + check
    return country != "ZZ" and int("".join(str(int(letter, 36)) for letter in letters)) % 97 == 1


def _unsafe(text: str) -> list[tuple[str, str, tuple[int, int]]]:
    """Return the identifiers in a text that could be real, by kind: its name, the value, and its place."""

    def of(kind: str, form: re.Pattern, possible: Callable[[re.Match], bool], group: int = 0) -> list:
        return [(kind, m[group], m.span(group)) for m in form.finditer(text) if possible(m)]

    return [
        *of(
            "social security number",
            _SSN,
            lambda m: not (m[1] in ("000", "666") and (m[3] == "00" or m[4] == "0000")),
        ),
        *of("telephone number", _PHONE, lambda m: m[2] != "555" or m[3][:2] != "01"),
        *of("host name", _HOST, lambda m: not _SAFE_HOSTS.search(m[1].rstrip(".")), group=1),
        *of("IP address", _IP, lambda m: _real_ip(m[0])),
        *of("provider number", _NPI, lambda m: has_check_digit("80840" + m[1])),
        *of("ZIP code", _ZIP, lambda m: int(m[1]) > 500),  # the first that was given out is 00501
        *of("record number", _MRN, lambda m: not m[1].upper().startswith("SYN-"), group=1),
        *of("account number", _ACCOUNT, lambda m: not m[1].upper().startswith(tuple(NEVER_ISSUED)), group=1),
        *of("account number (IBAN)", _IBAN, lambda m: _real_iban(*m.groups())),
    ]


def refuse_unsafe(text: str, where: str) -> None:
    """Refuse a text with an identifier that an authority may have assigned to a person.

    Args:
        text: what is about to be written.
        where: name of the file and line, for the message.

    Raises:
        UnsafeIdentifier: naming the kind, the value and the place.

    Source: SSA rules on unassigned numbers; NANP 555-01XX; RFC 2606; RFC 5737; CMS NPI check digit; USPS
        on ZIP codes; ISO 13616 and ISO 3166-1 on IBANs.
    """
    if unsafe := _unsafe(text):
        kind, value, _ = unsafe[0]
        raise UnsafeIdentifier(
            f"{where}: the {kind} {value!r} could be real; use those that `privhelpers.records` draws"
        )


def mask_unsafe(text: str) -> str:
    """Return a text as a page may show it: every identifier that could be real is a row of dots.

    Notes contain none, but a model that learned from them writes others when it errs.

    Args:
        text: what a model wrote.
    """
    shown = list(text)
    for _, value, (start, end) in _unsafe(text):
        shown[start:end] = "•" * len(value)
    return "".join(shown)
