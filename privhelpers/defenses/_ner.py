"""A named-entity recognizer that the build trains itself, on public text, in seconds, the same every time.

No model is downloaded. What it learns is the public corpus: names after `Patient:`, dates after `DOB`, and
the habits of its templates. What it is worth on other notes is measured in the chapter, not assumed.

Source: spaCy 3, transition-based NER over hashed embeddings (Honnibal and others).
"""

import contextlib
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import spacy
from spacy.language import Language
from spacy.training import Example

from privhelpers import rng, validate
from privhelpers.artifacts import Store, parse_yaml
from privhelpers.defenses._spans import Scrubbed, Span, merge, replace
from privhelpers.defenses.patterns import find_identifiers
from privhelpers.errors import InvalidParameter, TrainingFailed

_BATCH = 16  # documents of a step
KINDS = {"dob": "date"}  # a recognizer sees a date, not whose birthday it is; the others keep their names
_MODEL = parse_yaml(Path(__file__).with_name("recognizer.yml").read_text(encoding="utf-8"))


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Fix the global generators that spaCy draws from, and give them back as they were."""
    plain, numpy_state = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpy_state)


def _example(nlp: Language, note: dict) -> Example:
    doc = nlp.make_doc(note["text"])
    entities = []
    for span in note["spans"]:
        kind = KINDS.get(span["identifier"], span["identifier"])
        piece = doc.char_span(span["start"], span["end"], label=kind, alignment_mode="expand")
        entities.append((piece.start_char, piece.end_char, kind))
    return Example.from_dict(doc, {"entities": entities})


def lesson(notes: Sequence[dict]) -> list[dict]:
    """Return the documents to learn from: those with identifiers, and a quarter as many without."""
    full = [note for note in notes if note["spans"]]
    return full + [note for note in notes if not note["spans"]][: len(full) // 4]


def train_ner(notes: Sequence[dict], *, seed: int, epochs: int = 5) -> Language:
    """Train a recognizer from random weights on annotated public documents.

    Args:
        notes: documents with `text` and `spans`, as `annotate_public` returns them; public ones, because the
            recognizer itself is a model that can leak what it was trained on.
        seed: of initial weights, order and dropout; the same seed gives the same weights.
        epochs: passes over the documents.

    Raises:
        InvalidParameter: no document contains an identifier.
        TrainingFailed: the loss is not a finite number.
    """
    epochs = validate.positive_int(epochs=epochs)
    if not any(note["spans"] for note in notes):
        raise InvalidParameter("notes: none contains an identifier to learn")
    order = rng.plain(seed, "ner/order")
    with _seeded(rng.derive(seed, "ner/weights")):
        nlp = spacy.blank("en")
        nlp.add_pipe("ner", config={"model": _MODEL})
        examples = [_example(nlp, note) for note in notes]
        optimizer = nlp.initialize(lambda: examples)
        for _ in range(epochs):
            order.shuffle(examples)
            losses: dict[str, float] = {}
            for start in range(0, len(examples), _BATCH):
                nlp.update(examples[start : start + _BATCH], sgd=optimizer, drop=0.1, losses=losses)
            if not np.isfinite(losses["ner"]):
                raise TrainingFailed(f"recognizer: the loss is {losses['ner']}; train with another seed")
        with nlp.use_params(optimizer.averages):  # averaged over the steps: steadier than the last ones
            trained = nlp.to_bytes()
    return nlp.from_bytes(trained)


def save_ner(store: Store, nlp: Language, name: str) -> None:
    """Write a recognizer as a folder of the store, each file with its hash.

    spaCy writes JSON, msgpack and its own configuration; nothing in it is a pickle.
    """
    nlp.to_disk(store.folder(name))
    store.seal_folder(name)


def checked_folder(store: Store, name: str) -> Path:
    """Return the folder of a recognizer whose files all are as they were written.

    Raises:
        MissingArtifact: a file is not there; the message names the command that makes it.
        DamagedArtifact: a file changed.
    """
    return store.sealed_folder(name, "config.cfg")


def load_ner(store: Store, name: str) -> Language:
    """Read a recognizer whose files all are as they were written."""
    return spacy.load(checked_folder(store, name))


class NerScrubber:
    """Replaces what a recognizer finds, and what patterns find if wanted."""

    def __init__(self, recognizer: Language | Path, *, patterns: bool = False) -> None:
        """Take a trained recognizer, or the folder of one.

        Args:
            recognizer: what `train_ner` or `load_ner` returned, or a folder that `save_ner` wrote.
            patterns: replace what `find_identifiers` finds too.
        """
        self.nlp = recognizer if isinstance(recognizer, Language) else spacy.load(recognizer)
        self.patterns = patterns

    def find_all(self, texts: Iterable[str]) -> list[list[Span]]:
        """Return the identifiers of each text, merged, in order."""
        spans_by_text = []
        for doc in self.nlp.pipe(texts):
            spans = [Span(e.start_char, e.end_char, e.label_) for e in doc.ents]
            spans_by_text.append(merge([*spans, *(find_identifiers(doc.text) if self.patterns else ())]))
        return spans_by_text

    def scrub(self, text: str) -> Scrubbed:
        """Return the text with a typed placeholder for each identifier."""
        return replace(text, self.find_all([text])[0])
