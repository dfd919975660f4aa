"""Audit a user's model or synthetic texts: ask, test, control, conclude, report.

Importing this package loads no torch: files that are refused are refused before that.

files = read_files("members.jsonl", "nonmembers.jsonl")       # or BadRecords: file, line and reason
audit = examine(open_model("my-model"), files)                # every attack that applies
audit.verdict.outcome                                         # "flagged", "undecided", "nothing found"
page = report_page(report_facts(audit))                       # one page for an officer, then the details
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who reads the sources, as the fingerprint of a run does, finds these modules here
    from privaudit._blind import BlindBaseline, blind_baselines, text_kernels
    from privaudit._examine import Audit, examine
    from privaudit._facts import report_facts, report_schema
    from privaudit._files import Files, read_files
    from privaudit._open import open_model, untrained
    from privaudit._outlook import outlook
    from privaudit._page import report_page
    from privaudit._pictures import audit_pictures
    from privaudit._places import find_model, is_adapter
    from privaudit._sample import Sample, draw_sample
    from privaudit._settings import Settings
    from privaudit._synthetic import SyntheticAudit, examine_synthetic
    from privaudit._target import Target

_LATER = {  # a module is loaded when a name of its own is first asked for: some load torch
    **dict.fromkeys(("Files", "read_files"), "_files"),
    **dict.fromkeys(("find_model", "is_adapter"), "_places"),
    "Settings": "_settings",
    **dict.fromkeys(("BlindBaseline", "blind_baselines", "text_kernels"), "_blind"),
    **dict.fromkeys(("Audit", "examine"), "_examine"),
    **dict.fromkeys(("report_facts", "report_schema"), "_facts"),
    **dict.fromkeys(("open_model", "untrained"), "_open"),
    "outlook": "_outlook",
    "report_page": "_page",
    "audit_pictures": "_pictures",
    **dict.fromkeys(("Sample", "draw_sample"), "_sample"),
    **dict.fromkeys(("SyntheticAudit", "examine_synthetic"), "_synthetic"),
    "Target": "_target",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


__all__ = [
    "Audit",
    "BlindBaseline",
    "Files",
    "Sample",
    "Settings",
    "SyntheticAudit",
    "Target",
    "audit_pictures",
    "blind_baselines",
    "draw_sample",
    "examine",
    "examine_synthetic",
    "find_model",
    "is_adapter",
    "open_model",
    "outlook",
    "read_files",
    "report_facts",
    "report_page",
    "report_schema",
    "text_kernels",
    "untrained",
]
