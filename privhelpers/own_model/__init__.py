"""The audit of a model, or of synthetic texts, that somebody brings: ask, test, control, conclude, report.

Importing this room loads no torch: files that are refused are refused before that.

files = read_files("members.jsonl", "nonmembers.jsonl")       # or BadRecords: file, line and reason
audit = examine(open_model("my-model"), files)                # every attack that applies
audit.verdict.outcome                                         # "flagged", "undecided", "nothing found"
page = report_page(report_facts(audit))                       # one page for an officer, then the details
"""

import importlib
from typing import TYPE_CHECKING

from privhelpers.own_model._files import Files, read_files
from privhelpers.own_model._places import find_model, is_adapter
from privhelpers.own_model._settings import Settings

if TYPE_CHECKING:  # who reads the sources, as the fingerprint of a run does, finds these modules here
    from privhelpers.own_model._blind import BlindBaseline, blind_baselines, text_kernels
    from privhelpers.own_model._examine import Audit, examine
    from privhelpers.own_model._facts import report_facts, report_schema
    from privhelpers.own_model._open import open_model, untrained
    from privhelpers.own_model._outlook import outlook
    from privhelpers.own_model._page import report_page
    from privhelpers.own_model._sample import Sample, draw_sample
    from privhelpers.own_model._synthetic import SyntheticAudit, examine_synthetic
    from privhelpers.own_model._target import Target

_LATER = {  # modules that load torch or scikit-learn, opened when a name of theirs is first asked for
    **dict.fromkeys(("BlindBaseline", "blind_baselines", "text_kernels"), "_blind"),
    **dict.fromkeys(("Audit", "examine"), "_examine"),
    **dict.fromkeys(("report_facts", "report_schema"), "_facts"),
    **dict.fromkeys(("open_model", "untrained"), "_open"),
    "outlook": "_outlook",
    "report_page": "_page",
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
