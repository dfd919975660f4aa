"""How often the audit of a synthetic data set is right: sets by makers that remember, and that cannot.

A maker is a chain of words: it writes on by what followed the last words in the notes that it learned from.
With four words of memory it repeats whole notes; with one it shuffles phrases. It learns from the members, or
from other patients of the same hospital, whom the audit never sees: what is "found" then is a false alarm.

`python benchmarks/synthetic_sets.py` prints the table; results are kept line by line in `build/`, so that a
run which was cut off goes on where it stopped.
"""

import argparse
import platform
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from audit_kept import Key, go_on

import privaudit
from privaudit._files import Files, Note, RecordFile, TextFile
from privhelpers import records, rng, stats

MEMBERS, OTHERS = "members", "other patients"
PATIENTS = 100  # of each group
TEXTS = 300
REMEMBERS, SHUFFLES = 4, 1  # words that the next one hangs on
SETS = {(MEMBERS, REMEMBERS): 20, (MEMBERS, SHUFFLES): 20, (OTHERS, REMEMBERS): 200}
LEVELS = (0.05, 0.01)
DEALINGS = 19_999


def hospital(seed: int) -> records.Records:
    """Return the records that the three groups are taken from."""
    return records.make_hospital_records(
        seed=seed, patients=3 * PATIENTS, validation_patients=1, heldout_patients=1, canaries_per_level=1
    )


@lru_cache(maxsize=1)
def groups(seed: int) -> list[list[Note]]:
    """Return the notes of members, of held-out patients and of others, three groups drawn by one lot."""
    notes = [note for note in hospital(seed).train if note["kind"] != "canary"]
    people = sorted({note["patient_id"] for note in notes})
    lot = rng.make(seed, "synthetic sets/groups").permutation(len(people))
    side = {person: place % 3 for person, place in zip(people, lot.tolist(), strict=True)}
    sides: list[list[Note]] = [[], [], []]
    for line, note in enumerate(notes, 1):
        values = tuple(span["value"] for span in note["spans"])
        sides[side[note["patient_id"]]].append(Note(line, note["patient_id"], note["text"], values))
    return sides


def chain(notes: Sequence[Note], *, order: int, texts: int, seed: int) -> list[str]:
    """Return texts of a maker that learned from these notes which word follows the last `order` words."""
    follow: dict[tuple[str, ...], list[str]] = {}
    for note in notes:
        words = [*[""] * order, *note.text.split(" "), "\0"]
        for end in range(order, len(words)):
            follow.setdefault(tuple(words[end - order : end]), []).append(words[end])
    generator, written = rng.plain(seed, "synthetic sets/chain"), []
    for _ in range(texts):
        words = [""] * order
        while words[-1] != "\0" and len(words) < 400:
            words.append(generator.choice(follow[tuple(words[-order:])]))
        written.append(" ".join(word for word in words[order:] if word != "\0"))
    return written


def audited(texts: Sequence[str], seed: int) -> dict:
    """Audit a set with the members and the held-out patients of a hospital, and return what came out."""
    members, heldout, _ = groups(seed)
    sides = (
        RecordFile(name, "0" * 64, len(notes), tuple(notes))
        for name, notes in (("members", members), ("held out", heldout))
    )
    settings = privaudit.Settings(permutations=DEALINGS, draws=100, seed=seed)
    audit = privaudit.examine_synthetic(
        Files(*sides, None, TextFile("set", "0" * 64, tuple(texts))), settings
    )
    return {
        "outcome": audit.verdict.outcome,
        "least": min(test.adjusted for test in audit.verdict.tests),
        "closest": next(a.patient.auc.estimate for a in audit.attacks if a.name == "closest"),
        "copied": [side.hits for side in (audit.copies.by_patient.members, audit.copies.by_patient.heldout)],
        "risks": {
            name: [shares.difference.estimate, shares.difference.low, shares.difference.high]
            for name, shares in audit.risks.items()
        },
    }


def measure(key: Key) -> dict:
    """Audit the set of one chain, and return what came out."""
    source, order, seed = key
    members, _, others = groups(seed)
    learned = members if source == MEMBERS else others
    return audited(chain(learned, order=order, texts=TEXTS, seed=seed), seed)


def row_of(source: str, order: int, rows: Sequence[dict]) -> list[str]:
    """Return one row of the table."""
    least, n = np.array([row["least"] for row in rows]), len(rows)
    cells = [source, str(order), str(n)]
    for level in LEVELS:
        share = stats.clopper_pearson(int((least <= level).sum()), n)
        low, high = 100 * share.low, 100 * share.high
        cells.append(f"{(least <= level).sum()} ({low:.1f} to {high:.1f} %)")
    cells.append(str(int((least < 0.001).sum())))
    cells.append(str(sum(row["outcome"] == "undecided" for row in rows)))
    for name in ("singling_out", "linkability", "inference"):
        figures = [row["risks"][name] for row in rows if name in row["risks"]]
        above = sum(low > 0 for _, low, _ in figures)
        cells.append(f"{np.median([figure[0] for figure in figures]):.3f}; {above} of {len(figures)}")
    return cells


HEAD = (
    "learned from",
    "words of memory",
    "sets",
    *(f"corrected p ≤ {level:g}" for level in LEVELS),
    "corrected p < 0.001",
    "files differ",
    *(f"{name}: median; interval above 0" for name in ("singling out", "linkability", "inference")),
)


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", default="build/synthetic_sets.jsonl", type=Path)
    keys = [(*kind, seed) for kind, count in SETS.items() for seed in range(count)]
    rows = go_on(parser.parse_args().kept, keys, measure, "synthetic sets")
    print("# How often the audit of a synthetic data set is right\n")
    print(
        f"{len(rows)} sets of {TEXTS} texts by `benchmarks/synthetic_sets.py`, about {PATIENTS} patients a "
        f"group of the book's hospital, {DEALINGS:,} dealings of whole patients, Holm over tests of a set. "
        '"Files differ" counts sets whose files blind programs tell apart at 1 % each. The risks are '
        "differences of shares of patients, members minus held-out, with 95 % intervals.\n"
    )
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}.\n")
    print(f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}")
    for source, order in SETS:
        of_kind = [row for key, row in rows.items() if key[:2] == (source, order)]
        print(f"| {' | '.join(row_of(source, order, of_kind))} |")


if __name__ == "__main__":
    main()
