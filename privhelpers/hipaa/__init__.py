"""HIPAA's Privacy Rule where it meets a trained model: identifiers, a ledger, risk in three kinds, promises.

    frame = ledger(planted, searched, leaked, leaked_control, carriers=..., control_carriers=...)
    combine("dp-eps-1", [Measured(...), ...], [declare("access", "named staff", by="...", on="2024-01-01")])

Nothing here is legal advice, and nothing here says that a model fulfills the law.
"""

from privhelpers.hipaa.identifiers import (
    IDENTIFIERS,
    RECORD_IDENTIFIERS,
    SECTIONS,
    SafeHarborIdentifier,
    Section,
)
from privhelpers.hipaa.ledger import (
    CAVEAT,
    COUNTS,
    MEASURED,
    NOT_IN_DATA,
    NOT_MEASURED,
    identifier_share,
    ledger,
    ledger_matrix,
    ledger_records,
    ledger_table,
    patient_ledger,
)
from privhelpers.hipaa.penalties import (
    ENFORCEMENT_DISCRETION_2019,
    SCHEDULES,
    PenaltySchedule,
    PenaltyTier,
    penalty_table,
    schedule_of,
)
from privhelpers.hipaa.promises import Promise, promise_table, promise_text
from privhelpers.hipaa.risk import (
    ANSWERS,
    CATEGORIES,
    CONTENT,
    FIRST,
    KEEP,
    LIMIT,
    MATRIX,
    MEMBERSHIP,
    NOTHING,
    REACH,
    STOP,
    Combined,
    Declared,
    Measured,
    combine,
    declare,
    measured_table,
    reading_table,
)
from privhelpers.hipaa.spans import came_out, carriers, touched, without_identifiers

__all__ = [
    "ANSWERS",
    "CATEGORIES",
    "CAVEAT",
    "CONTENT",
    "COUNTS",
    "ENFORCEMENT_DISCRETION_2019",
    "FIRST",
    "IDENTIFIERS",
    "KEEP",
    "LIMIT",
    "MATRIX",
    "MEASURED",
    "MEMBERSHIP",
    "NOTHING",
    "NOT_IN_DATA",
    "NOT_MEASURED",
    "REACH",
    "RECORD_IDENTIFIERS",
    "SCHEDULES",
    "SECTIONS",
    "STOP",
    "Combined",
    "Declared",
    "Measured",
    "PenaltySchedule",
    "PenaltyTier",
    "Promise",
    "SafeHarborIdentifier",
    "Section",
    "came_out",
    "carriers",
    "combine",
    "declare",
    "identifier_share",
    "ledger",
    "ledger_matrix",
    "ledger_records",
    "ledger_table",
    "measured_table",
    "patient_ledger",
    "penalty_table",
    "promise_table",
    "promise_text",
    "reading_table",
    "schedule_of",
    "touched",
    "without_identifiers",
]
