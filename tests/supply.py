"""`make supply`: what the environment consists of, as a bill of materials and as a list of licenses.

    python tests/supply.py                build/supply: sbom.cdx.json (CycloneDX 1.6) and licenses.md
    python tests/supply.py --keep         reference/supply/licenses.md too
    python tests/supply.py ignored FILE   options of pip-audit for the vulnerabilities that FILE allows

Names, versions and hashes are those of the two locks, licenses those of what is installed; reveal.js, which
the repository carries, stands among them.
"""

import datetime
import functools
import hashlib
import json
import re
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-torch.lock")
REVEAL = ROOT / "bookmaker" / "teaching" / "reveal" / "reveal.js"
TARGET, KEPT = ROOT / "build" / "supply", ROOT / "reference" / "supply" / "licenses.md"
HEAD = """# Licenses of what is installed

Made by `make supply` from the packages of the two locks: what each says of its license.
Where its metadata say nothing, it is the first line of the license that it carries.

| package | version | license |
|---|---|---|
"""
LONGEST = 366  # days that a vulnerability may be allowed for


def locked() -> dict[str, tuple[str, list[str]]]:
    """Return version and hashes of every package of the locks, by name."""
    text = "".join((ROOT / name).read_text() for name in LOCKS).replace("\\\n", "")
    entries = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    pinned = [entry.split(" ")[0].split("==") for entry in entries]
    hashes = [re.findall(r"--hash=sha256:([0-9a-f]{64})", entry) for entry in entries]
    return {name: (version, found) for (name, version), found in sorted(zip(pinned, hashes, strict=True))}


def carried() -> tuple[str, str]:
    """Return version and hash of reveal.js."""
    data = REVEAL.read_bytes()
    return re.search(rb"reveal.js ([\d.]+)", data)[1].decode(), hashlib.sha256(data).hexdigest()


@functools.cache
def license_of(name: str) -> str:
    """Return the license of an installed package: as it says, or as the file of its license begins."""
    package = metadata.distribution(name)
    said, field = package.metadata.get("License-Expression"), package.metadata.get("License")
    classes = [one for one in package.metadata.get_all("Classifier") or [] if one.startswith("License ::")]
    named = [one.rpartition(" :: ")[2] for one in classes]
    first = (field or "").strip().splitlines()[:1]
    files = [one for one in package.files or [] if re.fullmatch(r"LICEN[CS]E.*", one.name)]
    begins = [one.read_text().strip().splitlines()[0] for one in files[:1]]
    return said or ", ".join(named or first or begins)


def _license(said: str) -> dict[str, object]:
    """Return a license as CycloneDX has it: an SPDX expression where it is one, else a name."""
    try:
        return {"expression": str(canonicalize_license_expression(said))}
    except InvalidLicenseExpression:
        return {"license": {"name": said}}


def _needs(name: str, known: Iterable[str]) -> list[str]:
    """Return which locked packages a package needs here."""
    asked = [Requirement(line) for line in metadata.requires(name) or []]
    here = [one for one in asked if not one.marker or one.marker.evaluate({"extra": ""})]
    return sorted({canonicalize_name(one.name) for one in here} & set(known))


def sbom() -> dict[str, object]:
    """Return the bill of materials, CycloneDX 1.6; the same locks give the same one."""
    packages, components, needs = locked(), [], []
    for name, (version, hashes) in packages.items():
        files = [{"alg": "SHA-256", "content": digest} for digest in hashes]
        place = {"type": "distribution", "url": f"https://pypi.org/simple/{name}/"}
        one = {"type": "library", "bom-ref": name, "name": name, "version": version}
        one |= {"purl": f"pkg:pypi/{name}@{version}", "licenses": [_license(license_of(name))]}
        components.append(one | {"externalReferences": [place | {"hashes": [file]} for file in files]})
        needs.append({"ref": name, "dependsOn": _needs(name, packages)})
    version, digest = carried()
    one = {"type": "library", "bom-ref": "reveal.js", "name": "reveal.js", "version": version}
    one |= {"purl": f"pkg:npm/reveal.js@{version}", "licenses": [{"expression": "MIT"}]}
    components.append(one | {"hashes": [{"alg": "SHA-256", "content": digest}]})
    itself = {"type": "application", "bom-ref": "privai-leak", "name": "privai-leak"}
    made = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": itself}}
    needs.append({"ref": "privai-leak", "dependsOn": [*packages, "reveal.js"]})
    return made | {"components": components, "dependencies": needs}


def licenses() -> str:
    """Return the list of licenses, in Markdown."""
    rows = (f"| {name} | {version} | {license_of(name)} |\n" for name, (version, _) in locked().items())
    return HEAD + "".join(rows) + f"| reveal.js (in `bookmaker/teaching`) | {carried()[0]} | MIT |\n"


def allowed(text: str, today: datetime.date) -> list[str]:
    """Return the vulnerabilities that a list allows.

    Args:
        text: a line each: the identifier, the last day on which it is allowed, and why.
        today: the day on which the list is read.

    Raises:
        ValueError: a line is none, its day is over, or it is more than a year away.
    """
    found = []
    for line in (line for line in text.splitlines() if line.strip() and not line.startswith("#")):
        parts = re.fullmatch(r"((?:CVE|GHSA|PYSEC)-[\w-]+) (\d{4}-\d\d-\d\d) (\S.{9,})", line)
        if not parts:
            raise ValueError(f"{line!r}: must be an identifier, a last day (2027-01-31), and why in words")
        left = (datetime.date.fromisoformat(parts[2]) - today).days
        if not 0 <= left <= LONGEST:
            raise ValueError(f"{line!r}: its last day is over, or more than {LONGEST} days away; look again")
        found.append(parts[1])
    return found


def main(arguments: list[str]) -> None:
    """Write the files, or print options."""
    if arguments[:1] == ["ignored"]:
        text = Path(arguments[1]).read_text(encoding="utf-8")
        print(*(f"--ignore-vuln {one}" for one in allowed(text, datetime.date.today())))
        return
    TARGET.mkdir(parents=True, exist_ok=True)
    (TARGET / "sbom.cdx.json").write_text(json.dumps(sbom(), indent=1) + "\n", encoding="utf-8")
    for place in (TARGET / "licenses.md", *[KEPT] * ("--keep" in arguments)):
        place.write_text(licenses(), encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {len(locked())} packages")


if __name__ == "__main__":
    main(sys.argv[1:])
