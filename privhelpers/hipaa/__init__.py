"""HIPAA's Privacy Rule, applied to a trained model: identifiers, sections, risk in three kinds.

    combine("dp-eps-1", [Finding(...), ...], [declare("access", "named staff", by="...", on="2024-01-01")])

Nothing here is legal advice, and nothing here says that a model fulfills the law.
"""

from privhelpers.hipaa._identifiers import IDENTIFIERS, RECORD_IDENTIFIERS, SECTIONS
from privhelpers.hipaa._risk import (
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
    Finding,
    combine,
    declare,
    findings_table,
    reading_table,
)
from privhelpers.hipaa._sheet import sheet_page
