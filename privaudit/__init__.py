"""Audit a user's model, its answers, or synthetic texts: score, test, control, conclude, report.

Importing this package does not load torch, so invalid files are refused first.

files = read_files("members.jsonl", "nonmembers.jsonl")       # or BadRecords: file, line and reason
audit = run_audit(files, target=open_model("my-model"))       # every probe that applies
audit.verdict.outcome                                         # "flagged", "undecided", "nothing found"
page = report_page(report_facts(audit))                       # one page for an officer, then the details

Where it happens, in the order of an audit:

    cli, gate, console, output      the command, its options and exit codes; where it writes
    rows, records, settings         the files, row by row and as records; the settings
    loading, model, encode          the model, read once; each note, encoded once
    subjects, probes/               what is audited, and the tests: one module each
    audit, verdict                  all of it together, and what it concludes
    words, report, annex, bundle    the words, the page, the questionnaires, the evidence
    canaries, kit, planting, reach  canaries before a training
    prompts, residual, demo         other commands
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for readers of the source, such as the fingerprint of a run
    from privaudit.audit import Audit, dry_run, run_audit
    from privaudit.encode import Sample, draw_sample, read_as_trained
    from privaudit.loading import open_model, untrained
    from privaudit.model import Target
    from privaudit.probes.answers import read_answers
    from privaudit.probes.blind import BlindBaseline, blind_baselines, text_kernels
    from privaudit.probes.questions import plan_questions
    from privaudit.reach import CanaryCheck
    from privaudit.records import Files, read_files
    from privaudit.report import audit_pictures, report_facts, report_page, report_schema
    from privaudit.settings import Settings

_MODULES = {  # each is loaded when first used, because some load torch
    "audit": ("Audit", "dry_run", "run_audit"),
    "encode": ("Sample", "draw_sample", "read_as_trained"),
    "loading": ("open_model", "untrained"),
    "model": ("Target",),
    "probes.answers": ("read_answers",),
    "probes.blind": ("BlindBaseline", "blind_baselines", "text_kernels"),
    "probes.questions": ("plan_questions",),
    "reach": ("CanaryCheck",),
    "records": ("Files", "read_files"),
    "report": ("audit_pictures", "report_facts", "report_page", "report_schema"),
    "settings": ("Settings",),
}
_LATER = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


__all__ = sorted(_LATER)
