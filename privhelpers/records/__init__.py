"""Patients, notes, canaries and public text, all synthetic, with the place of every identifier known.

records = make_hospital_records(seed=0, patients=1000, ...)
public = make_public_corpus(seed=0, documents=6000, excluded_names=records.names)
write_records(store, records, public)
"""

from privhelpers.records._canaries import Canary
from privhelpers.records._domain import Domain, as_domain, read_domain
from privhelpers.records._few import Few, take_few
from privhelpers.records._hospital import Records, Stays, make_hospital_records
from privhelpers.records._identifiers import (
    NEVER_ISSUED,
    SPACE_BITS,
    PeopleFactory,
    Person,
    mask_unsafe,
    refuse_unsafe,
)
from privhelpers.records._notes import Field, render
from privhelpers.records._public import annotate_public, make_public_corpus
from privhelpers.records._store import (
    by_patient,
    drug_questions,
    read_canaries,
    read_notes,
    read_public,
    write_records,
)
from privhelpers.records._vocabulary import (
    ALL_CONDITIONS,
    CLINICAL,
    CONDITIONS,
    MEDICATIONS,
    PROCEDURES,
    RARE_CONDITIONS,
    REPORT_TEMPLATES,
    zipf_probabilities,
)
