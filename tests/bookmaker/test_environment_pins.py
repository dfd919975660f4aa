"""One set of pins: pyproject.toml, requirements, locks, CI, and what is installed agree, on every Python."""

import ast
import functools
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
CUDA = ("nvidia-", "triton", "cuda-")  # of torch, by version
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lines):
    versions = {}
    for line in lines:
        requirement = Requirement(line)
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", f"{line}: pin it"
        versions[canonical(requirement.name)] = specifier.version
    return versions


def on(python):
    """Return what markers ask about, of another Python on this machine."""
    return {"python_version": python, "python_full_version": f"{python}.9", "extra": ""}


@functools.cache
def locked(python=HERE):
    """Return the version of each package of `requirements.txt` for a Python."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()[1:]
    return pins(line for line in lines if not (mark := Requirement(line).marker) or mark.evaluate(on(python)))


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def every_dependency():
    extras = project()["optional-dependencies"].values()
    lines = [*project()["dependencies"], *(line for extra in extras for line in extra)]
    return [line for line in lines if not line.startswith(f"{project()['name']}[")]


def test_the_lock_repeats_every_direct_pin():
    direct = pins(every_dependency())
    for python in PYTHONS:
        lock = locked(python)
        assert {name: lock.get(name) for name in direct} == direct
        assert not [name for name in lock if name.startswith(CUDA)]


def test_the_lock_has_what_each_package_needs_on_every_python():
    """What is installed here says what it needs elsewhere."""
    for name in locked():
        told = metadata.metadata(name)
        needs = [Requirement(line) for line in told.get_all("Requires-Dist") or ()]
        for python in PYTHONS:
            lock = locked(python)
            assert name not in lock or python in SpecifierSet(told.get("Requires-Python", "")), (name, python)
            for needed in needs if name in lock else ():
                other = canonical(needed.name)
                if not other.startswith(CUDA) and (not needed.marker or needed.marker.evaluate(on(python))):
                    assert needed.specifier.contains(lock.get(other, ""), prereleases=True), (name, python)


def test_every_place_names_the_same_pythons():
    asked = SpecifierSet(project()["requires-python"])
    assert [f"3.{minor}" for minor in range(30) if f"3.{minor}" in asked] == list(PYTHONS)
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert all(job["strategy"]["matrix"]["python"] == list(PYTHONS) for job in jobs.values())
    told = "3.11, 3.12, {} 3.13"
    for name in ("Makefile", "README.md", "book/how_to_use.md", "book/instructors.md"):
        text = (ROOT / name).read_text()
        assert any(told.format(word) in text for word in ("or", "and")), name


def test_every_direct_import_is_a_direct_pin():
    """What we import we also choose: a library that another one happens to bring may change its version."""
    chosen = pins(every_dependency())
    names = metadata.packages_distributions()
    imported = set()
    for package in ("privhelpers", "privaudit", "bookmaker", "tests"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    imported.add(node.module.split(".")[0])
    ours = {"privhelpers", "privaudit", "bookmaker"}
    outside = {name for name in imported if name in names and name not in ours}
    assert {"torch", "nbformat", "yaml"} <= outside
    assert not {name for name in outside if not {canonical(n) for n in names[name]} & chosen.keys()}


def test_what_is_installed_is_what_is_locked():
    installed = {name: metadata.version(name).split("+")[0] for name in locked()}  # torch: 2.13.0+cpu
    assert installed == locked()


def entries(*names):
    """Return the pins of locks, `name==version`, each with its hashes; it has some, and none an address."""
    text = "".join((ROOT / name).read_text() for name in names).replace("\\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all("--hash=sha256:" in line for line in lines) and "://" not in text and "--index" not in text
    return {line.split(" ")[0]: re.findall(r"--hash=sha256:([0-9a-f]{64})", line) for line in lines}


def test_the_lock_has_the_hash_of_every_file_of_every_pin():
    hashes = entries("requirements-dev.lock", "requirements-torch.lock")
    assert pins(hashes).items() == {item for python in PYTHONS for item in locked(python).items()}
    # Wheels of several systems, where a package has compiled parts; of torch also the build for processors.
    compiled = [files for name, files in hashes.items() if name.split("==")[0] in ("numpy", "torch", "scipy")]
    assert len(compiled) == 3 and all(len(files) > 8 for files in compiled)
    make = (ROOT / "dev.mk").read_text()
    (for_processors,) = re.findall(r"^TORCH_CPU := ([0-9a-f]{64})$", make, re.MULTILINE)
    assert any(for_processors in hashes[name] for name in hashes if name.startswith("torch=="))


def test_what_grades_is_locked_at_the_versions_of_the_book():
    graded = pins(entries("requirements-grading.lock"))
    named = pins(tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["grading"])
    assert "nbgrader" in named and named.items() <= graded.items()
    assert {name: locked()[name] for name in graded if name in locked()}.items() <= graded.items()


def test_each_extra_is_locked_by_itself():
    extras = project()["optional-dependencies"]
    names = ("lab", "book", "dev", "audit")
    lab, book, dev, audit = (pins(entries(f"requirements-{name}.lock")) for name in names)
    assert lab.items() < book.items() < dev.items() and audit.items() < book.items()
    for name, lock in {"lab": lab, "audit": audit}.items():
        assert pins([*project()["dependencies"], *extras[name]]).keys() - lock.keys() == {"torch"}
    assert not audit.keys() & {"jupyterlab", "papermill", "snakemake", "sphinx", "nbconvert", "ipython"}
    assert not lab.keys() & {"snakemake", "spacy"} and "playwright" in dev.keys() - book.keys()


def test_what_builds_on_a_server_is_named_by_commit_and_may_write_where_it_must():
    """A tag can be moved to other code; a commit cannot."""
    writing = []
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        flow = yaml.safe_load(path.read_text())
        assert flow["permissions"] == {"contents": "read"}, path.name
        for name, job in flow["jobs"].items():
            if "write" in job.get("permissions", {}).values():
                writing.append(name)
            for step in job.get("steps", []):
                used = step.get("uses", "")
                assert not used or re.search(r"@[0-9a-f]{40}$", used), (
                    f"{path.name}: pin {used} by its commit"
                )
                if used.startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] == (name == "launch")
                if name in writing:  # what runs our code, or what we install, cannot write
                    assert not used.startswith("actions/setup-python@")
                    assert not re.search(r"\b(make|pip|python)\b", step.get("run", "")), name
    assert writing == ["deploy", "launch"]
