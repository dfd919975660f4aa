"""Near-duplicate notes: found with MinHash, confirmed exactly, removed in an order that never changes.

What occurs ten times in the training notes is memorized far more than ten times as well (`memorization`), so
copies go before training. Hashing only proposes pairs; each is confirmed by its exact Jaccard similarity,
and the first note of a group is the one that stays. `list(set(notes))`, often seen, keeps another order in
every process, and with it another training run.

>>> notes = [{"patient_id": p, "text": t} for p, t in (("p1", "Seen at noon."), ("p2", "seen  at noon"))]
>>> deduplicate(notes).groups
((0, 1),)

Sources: Broder 1997 (resemblance and MinHash); Leskovec, Rajaraman and Ullman, Mining of Massive
Datasets, section 3.4 (bands); Lee et al. 2022 (deduplication of training data).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.spelling import words
from privhelpers.text import normalize

PERMUTATIONS = 128  # hash functions of MinHash
SURE = 0.999  # probability that a pair exactly at the threshold is proposed


@dataclass(frozen=True)
class Deduplicated:
    """Notes without near-duplicates.

    Attributes:
        kept: the notes that stay, in their order.
        groups: for each kept note that had copies, the places of the note and its copies in the old list.
    """

    kept: list
    groups: tuple[tuple[int, ...], ...]

    @property
    def removed(self) -> int:
        """Number of notes that were taken out."""
        return sum(len(group) - 1 for group in self.groups)


def shingles(text: str, size: int = 3) -> frozenset[str]:
    """Return the runs of `size` words of a text, as `spelling.words` gives them.

    A text of fewer words is one shingle; so is one without a word, as it is written.

    >>> sorted(shingles("Seen at noon, by Dr Vale."))
    ['at noon by', 'by dr vale', 'noon by dr', 'seen at noon']
    """
    units = words(text)
    if len(units) <= size:
        return frozenset([" ".join(units) or normalize(text)])
    return frozenset(" ".join(units[i : i + size]) for i in range(len(units) - size + 1))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the share of common elements, |a and b| / |a or b|, in [0, 1]."""
    return len(a & b) / len(a | b)


def _proposal_probability(similarity: float, bands: int, rows: int) -> float:
    """Return the probability that MinHash proposes a pair: 1 - (1 - similarity ** rows) ** bands.

    >>> round(_proposal_probability(0.8, 25, 5), 4)
    1.0
    """
    return 1 - (1 - similarity**rows) ** bands


def band_shape(threshold: float) -> tuple[int, int]:
    """Return the bands and rows that propose a pair at the threshold with probability `SURE` or more.

    More rows a band propose fewer pairs in vain; the most that are still sure enough are taken, and two
    bands at least.

    >>> band_shape(0.8)
    (25, 5)
    """
    shapes = [(PERMUTATIONS // rows, rows) for rows in range(PERMUTATIONS // 2, 0, -1)]
    return next((s for s in shapes if _proposal_probability(threshold, *s) >= SURE), (PERMUTATIONS, 1))


class _Index:
    """The different texts, by number; those near to another one are found without comparing all pairs.

    Attributes:
        places: of each text in the list, one or more.
    """

    def __init__(self, texts: Sequence[str], threshold: float) -> None:
        """Sketch the set of shingles of every text, each set once, in the order of first appearance."""
        from datasketch import MinHash, MinHashLSH

        self._threshold = validate.probability(threshold=threshold)
        by_text: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            by_text.setdefault(text, []).append(place)
        by_set: dict[frozenset[str], list[int]] = {}
        for text, places in by_text.items():
            by_set.setdefault(shingles(text), []).extend(places)
        self._sets, self.places = list(by_set), [sorted(places) for places in by_set.values()]
        self._lsh = MinHashLSH(num_perm=PERMUTATIONS, params=band_shape(threshold))
        encoded = [sorted(map(str.encode, one)) for one in self._sets]
        self._sketches = MinHash.bulk(encoded, num_perm=PERMUTATIONS, seed=1)

    def add(self, number: int) -> None:
        """Let a set be found from now on."""
        self._lsh.insert(number, self._sketches[number], check_duplication=False)

    def near(self, number: int) -> dict[int, float]:
        """Return the added sets that are near to a set, with their exact similarity, in order."""
        proposed = sorted(self._lsh.query(self._sketches[number]))
        exact = {other: jaccard(self._sets[number], self._sets[other]) for other in proposed}
        return {other: similarity for other, similarity in exact.items() if similarity >= self._threshold}


def deduplicate(
    notes: Sequence[Mapping], *, threshold: float = 0.8, within: str | None = None
) -> Deduplicated:
    """Keep a note unless an earlier kept note nearly repeats it.

    No two kept notes are as similar as the threshold, and every removed note is that similar to the kept
    note of its group; chains of ever less similar notes are not pulled together.

    Args:
        notes: mappings with a `text`.
        threshold: least Jaccard similarity of two copies, in (0, 1], over runs of three words.
        within: a field, such as "patient_id", whose value two notes must share to be copies. Before
            training with differential privacy this must be the privacy unit: a note that is removed because
            of another patient's depends on that patient in a way that the accountant does not count.

    Raises:
        InvalidParameter: the threshold is out of its range, or a note has no text or no field `within`.

    Sources: Lee et al. 2022; Debenedetti et al. 2024 (deduplication and differential privacy).
    """
    for number, note in enumerate(notes):
        if not isinstance(note, Mapping) or not isinstance(note.get("text"), str):
            raise InvalidParameter(f"note {number}: must be a mapping with a `text`")
        if within is not None and not (within in note and isinstance(note[within], Hashable)):
            raise InvalidParameter(
                f"note {number}: has no field {validate.shown(within)} of one value to look within"
            )
    among: dict[object, list[int]] = {}
    for place, note in enumerate(notes):
        among.setdefault(within and note[within], []).append(place)
    groups: dict[int, list[int]] = {}
    for places in among.values():
        for group in _groups(_Index([notes[place]["text"] for place in places], threshold)):
            groups[places[group[0]]] = [places[n] for n in group]
    kept = [notes[place] for place in sorted(groups)]
    return Deduplicated(kept, tuple(tuple(groups[n]) for n in sorted(groups) if len(groups[n]) > 1))


def _groups(index: _Index) -> list[list[int]]:
    """Return the places of each kept text and of its copies; a text is compared with kept ones alone."""
    groups: dict[int, list[int]] = {}
    for number, copies in enumerate(index.places):
        home = next(iter(index.near(number)), None)
        if home is None:
            index.add(number)
        groups.setdefault(number if home is None else home, []).extend(copies)
    return [sorted(group) for group in groups.values()]
