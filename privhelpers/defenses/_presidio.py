"""Microsoft Presidio on the recognizer that the build trains: nothing is downloaded or looked up online.

Presidio's defaults have three problems here. Its mail recognizer asks the public suffix list over the
network. It knows no top domain `.test` or `.example`. Its social security recognizer throws away numbers
of the areas 000 and 666, because no authority assigns them: the only ones that a book may print. So the
project's own patterns replace its pattern recognizers.

Source: Presidio 2.2 (analyzer and anonymizer).
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from presidio_analyzer import AnalyzerEngine, LocalRecognizer, RecognizerRegistry, RecognizerResult
from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine, NlpEngineProvider
from presidio_analyzer.predefined_recognizers import SpacyRecognizer
from presidio_anonymizer import AnonymizerEngine
from presidio_anonymizer.entities import OperatorConfig
from presidio_anonymizer.entities import RecognizerResult as Found

from privhelpers.defenses._spans import Scrubbed, Span, merge
from privhelpers.defenses.patterns import find_identifiers

logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)  # else a warning for each foreign recognizer
NER_KINDS = ("name", "date", "mrn", "ssn", "phone", "email", "address")
PATTERN_KINDS = ("ssn", "phone", "card", "ip", "mrn", "number", "date", "address", "age", "url", "email")


class _ProjectPatterns(LocalRecognizer):
    """The patterns of this room as a recognizer of Presidio."""

    def __init__(self) -> None:
        """Declare the entities."""
        super().__init__(supported_entities=[kind.upper() for kind in PATTERN_KINDS], name="ProjectPatterns")

    def load(self) -> None:
        """Load nothing: the patterns are there already."""

    def analyze(
        self, text: str, entities: list[str], nlp_artifacts: NlpArtifacts | None = None
    ) -> list[RecognizerResult]:
        """Return what the patterns find, as certain."""
        return [
            RecognizerResult(span.kind.upper(), span.start, span.end, 1.0)
            for span in find_identifiers(text)
            if span.kind.upper() in entities
        ]


def _nlp_engine(folder: Path, mapping: dict[str, str]) -> NlpEngine:
    configuration = {
        "nlp_engine_name": "spacy",
        "models": [{"lang_code": "en", "model_name": str(folder)}],
        "ner_model_configuration": {
            "model_to_presidio_entity_mapping": mapping,
            "labels_to_ignore": [kind for kind in NER_KINDS if kind not in mapping],
            "low_score_entity_names": [],
        },
    }
    return NlpEngineProvider(nlp_configuration=configuration).create_engine()


class PresidioScrubber:
    """Replaces what Presidio finds on the recognizer of the build."""

    def __init__(self, model_folder: Path) -> None:
        """Load the recognizer and set up the engines.

        Args:
            model_folder: a folder that `save_ner` wrote; see `checked_folder`.
        """
        mapping = {kind: kind.upper() for kind in NER_KINDS}
        engine = _nlp_engine(Path(model_folder), mapping)
        registry = RecognizerRegistry(supported_languages=["en"])
        registry.add_recognizer(SpacyRecognizer(supported_entities=list(mapping.values())))
        registry.add_recognizer(_ProjectPatterns())
        self._analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])
        self._anonymizer = AnonymizerEngine()

    def find_all(self, texts: Iterable[str]) -> list[list[Span]]:
        """Return the identifiers of each text, merged, in order."""
        results = (self._analyzer.analyze(text=text, language="en") for text in texts)
        return [merge(Span(r.start, r.end, r.entity_type.lower()) for r in entities) for entities in results]

    def scrub(self, text: str) -> Scrubbed:
        """Return the text with a typed placeholder for each identifier."""
        spans = self.find_all([text])[0]  # merged: the anonymizer leaves parts of overlapping results
        done = self._anonymizer.anonymize(
            text=text,
            analyzer_results=[Found(s.kind, s.start, s.end, 1.0) for s in spans],
            operators={s.kind: OperatorConfig("replace", {"new_value": s.placeholder}) for s in spans},
        )
        return Scrubbed(done.text, tuple(spans))
