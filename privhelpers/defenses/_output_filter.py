"""A filter on what a model writes: identifiers, and word runs of the training notes.

It sees copies, not knowledge: what changes the words of a text and keeps its meaning passes (another
language, other words, words put in between, letters apart, no blanks), and a filter that withholds training
text tells everyone what was trained on.

>>> filter_ = OutputFilter(["Kept one night to watch and then home with a green slip."], ngram=6)
>>> filter_.apply("She was KEPT one night to watch and then left.").text
'She was [VERBATIM] left.'

Sources: Ippolito et al. 2023 (filters and style transfer); Debenedetti et al. 2024 (filters as oracles).
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from privhelpers import validate
from privhelpers.defenses._spans import Span, merge, replace
from privhelpers.defenses.folding import fold
from privhelpers.defenses.patterns import find_identifiers
from privhelpers.spelling import LINE_END, UNSPACED, Spelled, bare, says_a_word, units

_EXACT = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")


@dataclass(frozen=True)
class Filtered:
    """What the filter lets through.

    Attributes:
        text: the text, with placeholders for what was withheld.
        blocked: whether anything was withheld.
        reasons: what was withheld, such as "ssn" and "verbatim, 9 words", in the order of the text.
    """

    text: str
    blocked: bool
    reasons: tuple[str, ...]


def _hashed(words: Iterable[str]) -> bytes:
    return hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=8).digest()


class OutputFilter:
    """Withholds identifiers, and runs of words of protected texts, in what a model writes."""

    def __init__(
        self,
        protected_texts: Iterable[str],
        *,
        ngram: int = 6,
        identifiers: bool = True,
        normalize: bool = True,
        allowed_texts: Iterable[str] = (),
    ) -> None:
        """Hash every run of `ngram` words of the protected texts.

        Args:
            protected_texts: the notes that a model was trained on.
            ngram: words of a run; a shorter copy passes. In a script without blanks a character of Chinese
                counts as a word, and a letter, as of Thai or kana, as half of one.
            identifiers: also withhold anything in the form of an identifier.
            normalize: compare words as `spelling.words` gives them, and read digit words as digits; False
                compares the text between blanks, and characters of scripts without blanks, as written.
            allowed_texts: public texts, whose runs pass.

        Raises:
            InvalidParameter: `ngram` is below 1.
        """
        ngram = validate.positive_int(ngram=ngram)
        self.ngram, self.identifiers, self.normalize = ngram, identifiers, normalize
        allowed = {run for text in allowed_texts for run, _, _ in self._runs(text)}
        self._protected = {run for text in protected_texts for run, _, _ in self._runs(text)} - allowed

    @property
    def runs(self) -> int:
        """Number of different protected runs."""
        return len(self._protected)

    def _readings(self, text: str) -> list[Spelled]:
        """Return the spellings in which a text is compared: two if a line ends with a hyphen."""
        if not self.normalize:
            return [Spelled(text)]
        ways = (False, True) if LINE_END.search(text) else (True,)
        return [fold(bare(text, join_lines=way), spelled=True) for way in ways]

    def _words(self, spelled: Spelled) -> list[re.Match]:
        return list((units if self.normalize else _EXACT.finditer)(spelled.text))

    def _runs(self, text: str) -> list[tuple[bytes, int, int]]:
        """Return hash, start and end, in the original text, of every run of words."""
        return [run for spelled in self._readings(text) for run in self._runs_of(spelled)]

    def _runs_of(self, spelled: Spelled) -> list[tuple[bytes, int, int]]:
        words = self._words(spelled)
        halves = [1 + says_a_word(word[0]) for word in words]
        runs, end, held = [], 0, 0
        for first, word in enumerate(words):
            while held < 2 * self.ngram and end < len(words):
                held += halves[end]
                end += 1
            if held < 2 * self.ngram:
                break
            run = _hashed(one[0] for one in words[first:end])
            runs.append((run, *spelled.place(word.start(), words[end - 1].end())))
            held -= halves[first]
        return runs

    def find(self, text: str) -> list[Span]:
        """Return what is to be withheld, merged, in order; the kind of a copied run is "verbatim"."""
        runs = [
            Span(start, end, "verbatim") for run, start, end in self._runs(text) if run in self._protected
        ]
        if not self.identifiers:
            return merge(runs)
        # A copied run that contains an identifier is reported as copied: it is the longer of the two.
        return merge([*runs, *find_identifiers(text, spelled=self.normalize)])

    def _length(self, text: str) -> int:
        """Return how many words long a copy is, as `ngram` counts them."""
        return sum(1 + says_a_word(word[0]) for word in self._words(self._readings(text)[-1])) // 2

    def apply(self, text: str) -> Filtered:
        """Return the text without the withheld parts."""
        scrubbed = replace(text, self.find(text))
        reasons = tuple(
            f"verbatim, {self._length(text[span.start : span.end])} words"
            if span.kind == "verbatim"
            else span.kind
            for span in scrubbed.spans
        )
        return Filtered(scrubbed.text, bool(scrubbed.spans), reasons)
