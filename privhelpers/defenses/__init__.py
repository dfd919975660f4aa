"""What can be done before, around and after training: scrub, deduplicate, filter, forget.

Importing this room loads no torch, spaCy, Presidio or datasketch; each is loaded when first used.

    PatternScrubber().scrub(text).text
    deduplicate(notes, threshold=0.8).kept
    OutputFilter(training_texts).apply(generated).text
    Pipeline(scrubber=NerScrubber(folder), threshold=0.8).prepare(notes).report
"""

import importlib

from privhelpers.defenses.dedup import Deduplicated, Pair, deduplicate, near_duplicates
from privhelpers.defenses.output_filter import Filtered, OutputFilter
from privhelpers.defenses.patterns import PatternScrubber, find_identifiers
from privhelpers.defenses.pipeline import Pipeline
from privhelpers.defenses.spans import Scrubbed, Span, merge, replace

_LATER = {  # modules that load torch, spaCy or Presidio, opened when a name of theirs is first asked for
    "Ensemble": "ensemble",
    "NerScrubber": "ner",
    "PresidioScrubber": "presidio",
    "checked_folder": "ner",
    "lesson": "ner",
    "load_ner": "ner",
    "save_ner": "ner",
    "train_ner": "ner",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)


__all__ = [
    "Deduplicated",
    "Filtered",
    "OutputFilter",
    "Pair",
    "PatternScrubber",
    "Pipeline",
    "Scrubbed",
    "Span",
    "deduplicate",
    "find_identifiers",
    "merge",
    "near_duplicates",
    "replace",
]
