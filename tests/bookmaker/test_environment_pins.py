"""One set of pins: pyproject.toml, requirements, locks, Binder, conda and what is installed agree."""

import ast
import re
import tomllib
from importlib import metadata
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


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


def locked():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return pins(line for line in lines if line.strip() and not line.startswith("#"))


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def every_dependency():
    extras = project()["optional-dependencies"].values()
    lines = [*project()["dependencies"], *(line for extra in extras for line in extra)]
    return [line for line in lines if not line.startswith(f"{project()['name']}[")]


def test_the_lock_repeats_every_direct_pin():
    direct = pins(every_dependency())
    lock = locked()
    assert {name: lock.get(name) for name in direct} == direct
    assert not [name for name in lock if name.startswith(("nvidia-", "triton", "cuda-"))]


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
    """Return the lines of locks, continued ones as one; every one has a hash, and none an address."""
    text = "".join((ROOT / name).read_text() for name in names).replace("\\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all("--hash=sha256:" in line for line in lines) and "://" not in text and "--index" not in text
    return lines


def test_the_lock_has_the_hash_of_every_file_of_every_pin():
    lines = entries("requirements.lock", "requirements-torch.lock")
    hashes = {line.split(" ")[0]: re.findall(r"--hash=sha256:([0-9a-f]{64})", line) for line in lines}
    assert pins(hashes) == locked()
    # Wheels of several systems, where a package has compiled parts; of torch also the build for processors.
    compiled = [
        files for name, files in hashes.items() if name.split("==")[0] in ("numpy", "torch", "pyarrow")
    ]
    assert len(compiled) == 3 and all(len(files) > 8 for files in compiled)
    make = (ROOT / "dev.mk").read_text()
    (for_processors,) = re.findall(r"^TORCH_CPU := ([0-9a-f]{64})$", make, re.MULTILINE)
    assert any(for_processors in hashes[name] for name in hashes if name.startswith("torch=="))


def test_what_grades_and_the_audit_are_locked_at_the_versions_of_the_book():
    graded = pins(line.split(" ")[0] for line in entries("requirements-grading.lock"))
    named = pins(tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["grading"])
    assert "nbgrader" in named and named.items() <= graded.items()
    assert {name: locked()[name] for name in graded if name in locked()}.items() <= graded.items()
    audit = pins(line.split(" ")[0] for line in entries("requirements-audit.lock"))
    direct = pins([*project()["dependencies"], *project()["optional-dependencies"]["audit"]])
    assert direct.keys() - audit.keys() == {"torch"} and audit.items() <= locked().items()
    assert not audit.keys() & {"jupyterlab", "papermill", "snakemake", "sphinx", "nbconvert", "ipython"}


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
