"""Near-duplicate notes: found with MinHash, confirmed exactly, removed in an order that never changes.

What stands in the training notes ten times is memorized far more than ten times as well (`memorization`), so
copies go before training. Hashing only proposes pairs; each is confirmed by its exact Jaccard similarity,
and the first note of a group is the one that stays. `list(set(notes))`, often seen, keeps another order in
every process, and with it another training run.

>>> notes = [{"patient_id": p, "text": t} for p, t in (("p1", "Seen at noon."), ("p2", "seen  at noon"))]
>>> deduplicate(notes).groups
((0, 1),)

Sources: Broder 1997 (resemblance and MinHash); Leskovec, Rajaraman and Ullman, Mining of Massive
Datasets, section 3.4 (bands); Lee et al. 2022 (deduplication of training data).
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from privhelpers import validate
from privhelpers.errors import InvalidParameter

_WORD = re.compile(r"\w+")
_MOST_PERMUTATIONS = 100_000
SURE = 0.999  # probability that a pair exactly at the threshold is proposed


@dataclass(frozen=True, order=True)
class Pair:
    """Two texts that nearly repeat each other.

    Attributes:
        first, second: places in the list, first < second.
        similarity: exact Jaccard similarity of their shingles, in [0, 1].
    """

    first: int
    second: int
    similarity: float


@dataclass(frozen=True)
class Deduplicated:
    """Notes without near-duplicates.

    Attributes:
        kept: the notes that stay, in their order.
        groups: for each kept note that had copies, its place and those of its copies in the old list.
    """

    kept: list
    groups: tuple[tuple[int, ...], ...]

    @property
    def removed(self) -> int:
        """Number of notes that were taken out."""
        return sum(len(group) - 1 for group in self.groups)


def shingles(text: str, size: int = 3) -> frozenset[str]:
    """Return the runs of `size` words of a text, in lower case and without punctuation.

    A text of fewer words is one shingle.

    >>> sorted(shingles("Seen at noon, by Dr Vale."))
    ['at noon by', 'by dr vale', 'noon by dr', 'seen at noon']
    """
    words = _WORD.findall(text.casefold())
    if len(words) <= size:
        return frozenset([" ".join(words)])
    return frozenset(" ".join(words[i : i + size]) for i in range(len(words) - size + 1))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the share of common elements, |a and b| / |a or b|, in [0, 1]."""
    return len(a & b) / len(a | b)


def _proposal_probability(similarity: float, bands: int, rows: int) -> float:
    """Return the probability that MinHash proposes a pair: 1 - (1 - similarity ** rows) ** bands.

    >>> round(_proposal_probability(0.8, 25, 5), 4)
    1.0
    """
    return 1 - (1 - similarity**rows) ** bands


def band_shape(threshold: float, permutations: int = 128) -> tuple[int, int]:
    """Return the bands and rows that propose a pair at the threshold with probability `SURE` or more.

    More rows a band propose fewer pairs in vain; the most that are still sure enough are taken, and two
    bands at least.

    >>> band_shape(0.8)
    (25, 5)
    """
    shapes = [(permutations // rows, rows) for rows in range(permutations // 2, 0, -1)]
    return next((s for s in shapes if _proposal_probability(threshold, *s) >= SURE), (permutations, 1))


def near_duplicates(
    texts: Sequence[str], *, threshold: float = 0.8, shingle: int = 3, permutations: int = 128, seed: int = 1
) -> list[Pair]:
    """Return all proposed pairs whose exact similarity reaches the threshold, sorted by place.

    Args:
        texts: the texts.
        threshold: least Jaccard similarity of a pair, in (0, 1].
        shingle: words of a shingle.
        permutations: hash functions of MinHash, 2 to 100,000.
        seed: of the hash functions.
    """
    from datasketch import MinHash, MinHashLSH

    threshold = validate.probability(threshold=threshold)
    shingle = validate.positive_int(shingle=shingle)
    permutations = validate.positive_int(_MOST_PERMUTATIONS, permutations=permutations)
    if permutations < 2:
        raise InvalidParameter(f"permutations = {permutations}: must be 2 or more")
    sets = [shingles(text, shingle) for text in texts]
    index = MinHashLSH(num_perm=permutations, params=band_shape(threshold, permutations))
    distinct: dict[frozenset[str], list[int]] = {}
    for place, shingle_set in enumerate(sets):
        distinct.setdefault(shingle_set, []).append(place)
    sketches = MinHash.bulk(
        [sorted(map(str.encode, shingle_set)) for shingle_set in distinct], num_perm=permutations, seed=seed
    )
    pairs = []
    members = list(distinct.values())
    for number, (shingle_set, sketch) in enumerate(zip(distinct, sketches, strict=True)):
        copies = members[number]
        pairs += [Pair(a, b, 1.0) for i, a in enumerate(copies) for b in copies[i + 1 :]]
        for other in index.query(sketch):
            similarity = jaccard(shingle_set, sets[members[other][0]])
            if similarity >= threshold:
                pairs += [Pair(min(a, b), max(a, b), similarity) for a in copies for b in members[other]]
        index.insert(number, sketch, check_duplication=False)
    return sorted(pairs)


def deduplicate(
    notes: Sequence[Mapping],
    *,
    threshold: float = 0.8,
    shingle: int = 3,
    permutations: int = 128,
    within: str | None = None,
) -> Deduplicated:
    """Keep a note unless an earlier kept note nearly repeats it.

    No two kept notes are as similar as the threshold, and every removed note is that similar to the kept
    note of its group; chains of ever less similar notes are not pulled together.

    Args:
        notes: mappings with a `text`.
        threshold, shingle, permutations: as in `near_duplicates`.
        within: a field, such as "patient_id", whose value two notes must share to be copies. Before
            training with differential privacy this must be the privacy unit: a note that is removed because
            of somebody else's is a trace of somebody else that the accountant does not count.

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
    earlier: dict[int, list[int]] = {}
    settings = {"threshold": threshold, "shingle": shingle, "permutations": permutations}
    for places in among.values():
        for pair in near_duplicates([notes[place]["text"] for place in places], **settings):
            earlier.setdefault(places[pair.second], []).append(places[pair.first])
    groups: dict[int, list[int]] = {}
    for place in range(len(notes)):
        home = next((first for first in earlier.get(place, ()) if first in groups), None)
        groups.setdefault(place if home is None else home, []).append(place)
    kept = [notes[place] for place in groups]
    return Deduplicated(kept, tuple(tuple(group) for group in groups.values() if len(group) > 1))
