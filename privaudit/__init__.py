"""Audit a user's model or synthetic texts: score, test, control, conclude, report.

Importing this package does not load torch, so invalid files are refused first.

files = read_files("members.jsonl", "nonmembers.jsonl")       # or BadRecords: file, line and reason
audit = run_audit(files, target=open_model("my-model"))       # every probe that applies
audit.verdict.outcome                                         # "flagged", "undecided", "nothing found"
page = report_page(report_facts(audit))                       # one page for an officer, then the details
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for readers of the source, such as the fingerprint of a run
    from privaudit.audit import Audit, dry_run, run_audit
    from privaudit.encode import Sample, draw_sample
    from privaudit.loading import open_model, untrained
    from privaudit.membership import BlindBaseline, blind_baselines, text_kernels
    from privaudit.model import Target
    from privaudit.queries import plan_questions, read_answers
    from privaudit.reach import CanaryCheck
    from privaudit.records import Files, Settings, read_files
    from privaudit.report import audit_pictures, report_facts, report_page, report_schema

_MODULES = {  # each is loaded when first used, because some load torch
    "audit": ("Audit", "dry_run", "run_audit"),
    "encode": ("Sample", "draw_sample"),
    "loading": ("open_model", "untrained"),
    "membership": ("BlindBaseline", "blind_baselines", "text_kernels"),
    "model": ("Target",),
    "queries": ("plan_questions", "read_answers"),
    "reach": ("CanaryCheck",),
    "records": ("Files", "Settings", "read_files"),
    "report": ("audit_pictures", "report_facts", "report_page", "report_schema"),
}
_LATER = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


__all__ = sorted(_LATER)
