"""The claims of a published report, and of four other documents, recomputed.

rows = audit(REPORT_CLAIMS)              # every claim of the report with its finding
claim_table(rows, "accounting")          # for a page
null_model.vocabulary_null(...)          # what the report's rule counts without any memory
"""

from privhelpers.report import (
    accounting,
    design,
    detector,
    leakage,
    memorization,
    noise,
    null_model,
    other_clinical,
    other_lecture,
    other_practice,
    other_slides,
    other_textbook,
    published,
    risk,
    statistics,
)
from privhelpers.report.claims import (
    CONTRADICTS,
    HOLDS,
    SEVERITIES,
    UNMEASURED,
    UNSUPPORTED,
    VERDICTS,
    WRONG,
    Audited,
    Claim,
    Finding,
    Topic,
    audit,
)
from privhelpers.report.tables import (
    TextTable,
    as_json,
    claim_table,
    model_row,
    tidy,
    verdict_counts,
)

REPORT_CLAIMS = tuple(
    claim
    for topic in (leakage, memorization, detector, risk, statistics, accounting, noise, design)
    for claim in topic.TOPIC.claims
)
OTHER_CLAIMS = tuple(
    claim
    for topic in (other_slides, other_lecture, other_textbook, other_practice, other_clinical)
    for claim in topic.TOPIC.claims
)

__all__ = [
    "CONTRADICTS",
    "HOLDS",
    "OTHER_CLAIMS",
    "REPORT_CLAIMS",
    "SEVERITIES",
    "UNMEASURED",
    "UNSUPPORTED",
    "VERDICTS",
    "WRONG",
    "Audited",
    "Claim",
    "Finding",
    "TextTable",
    "Topic",
    "accounting",
    "as_json",
    "audit",
    "claim_table",
    "leakage",
    "model_row",
    "noise",
    "null_model",
    "published",
    "risk",
    "statistics",
    "tidy",
    "verdict_counts",
]
