"""Defenses before, around and after training: scrub, deduplicate, filter, forget.

Importing this room loads no torch, spaCy, Presidio or datasketch; each is loaded when first used.

    PatternScrubber().scrub(text).text
    deduplicate(notes, threshold=0.8).kept
    OutputFilter(training_texts).apply(generated).text
    Pipeline(scrubber=NerScrubber(folder), threshold=0.8).prepare(notes).report
"""

import importlib
from typing import TYPE_CHECKING

from privhelpers.defenses._output_filter import Filtered, OutputFilter
from privhelpers.defenses._pipeline import Pipeline, read_recipe
from privhelpers.defenses._spans import Scrubbed, Span, merge, replace
from privhelpers.defenses.dedup import Deduplicated, deduplicate
from privhelpers.defenses.patterns import PatternScrubber, find_identifiers

if TYPE_CHECKING:  # a reader of the sources, such as the fingerprint of a run, finds these modules here
    from privhelpers.defenses._ensemble import Ensemble
    from privhelpers.defenses._ner import (
        NerScrubber,
        checked_folder,
        lesson,
        load_ner,
        save_ner,
        train_ner,
    )
    from privhelpers.defenses._presidio import PresidioScrubber

_LATER = {  # modules that load torch, spaCy or Presidio, opened when one of their names is first used
    "Ensemble": "_ensemble",
    "NerScrubber": "_ner",
    "PresidioScrubber": "_presidio",
    "checked_folder": "_ner",
    "lesson": "_ner",
    "load_ner": "_ner",
    "save_ner": "_ner",
    "train_ner": "_ner",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
