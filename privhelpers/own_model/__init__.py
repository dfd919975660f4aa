"""The audit of a model and records that somebody brings: read, ask, test, control, conclude, report.

files = read_files("members.jsonl", "nonmembers.jsonl")       # or BadRecords: file, line and reason
audit = examine(open_model("my-model"), files, seed=0)        # every attack that applies
audit.verdict.outcome                                         # "flagged", "undecided", "nothing found"
page = report_page(report_facts(audit))                       # one page for an officer, then the details
"""

from privhelpers.own_model._blind import BlindBaseline, blind_baselines
from privhelpers.own_model._canaries import check_claim
from privhelpers.own_model._chance import Sensitivity, sensitivity
from privhelpers.own_model._examine import Audit, examine
from privhelpers.own_model._open import file_hashes, open_model, untrained
from privhelpers.own_model._pdf import pdf, require_chromium
from privhelpers.own_model._report import report_facts, report_page
from privhelpers.own_model._sample import Effort, Files, read_files
from privhelpers.own_model._target import Target
from privhelpers.own_model._verdict import alternative_explanations
from privhelpers.own_model._wording import primary

__all__ = [
    "Audit",
    "BlindBaseline",
    "Effort",
    "Files",
    "Sensitivity",
    "Target",
    "alternative_explanations",
    "blind_baselines",
    "check_claim",
    "examine",
    "file_hashes",
    "open_model",
    "pdf",
    "primary",
    "read_files",
    "report_facts",
    "report_page",
    "require_chromium",
    "sensitivity",
    "untrained",
]
