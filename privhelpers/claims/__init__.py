"""The claims of five documents, as data, and the computations that check them.

Each document is a YAML file: what it prints, and its claims in our words. A claim is a *reading* (what the
document says or leaves out, with its place) or *recomputed*: a method computes values from what was printed
or with a library, and a rule in the file turns them into the verdict.

rows = audit("report")                   # every claim of the report with its values and its verdict
claim_table(rows, "accounting")          # for a page
printed("report").leaks                  # what the report prints
"""

from privhelpers.claims._documents import (
    DOCUMENTS,
    HOLDS,
    RECOMPUTED,
    VERDICTS,
    audit,
    printed,
)
from privhelpers.claims._null_model import (
    birthday_of_the_first,
    day_of_the_birthday,
    plain_english,
    report_names,
    simulated_leaks,
)
from privhelpers.claims._tables import TextTable, as_json, claim_table, tidy, verdict_counts
