"""The audit of a model and records that somebody brings: read, ask, test, control, conclude, report.

files = take_in("members.jsonl", "nonmembers.jsonl")          # or BadRecords: file, line and reason
found = examine(open_model("my-model"), files, seed=0)        # every attack that applies
found.verdict.outcome                                         # "flagged", "undecided", "nothing found"
page = report.html(found, pictures)                           # one page for an officer, then the details
"""

from privhelpers.own_model.examination import Found, examine
from privhelpers.own_model.intake import read_canaries, read_records
from privhelpers.own_model.loading import open_model, untrained
from privhelpers.own_model.selection import Effort, Files, take_in
from privhelpers.own_model.verdict import FLAGGED, NOTHING, UNDECIDED

__all__ = [
    "FLAGGED",
    "NOTHING",
    "UNDECIDED",
    "Effort",
    "Files",
    "Found",
    "examine",
    "open_model",
    "read_canaries",
    "read_records",
    "take_in",
    "untrained",
]
