"""One set of pins: pyproject.toml, requirements, locks, Binder, conda and what is installed agree."""

import ast
import datetime
import importlib
import re
import shlex
import tomllib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
import supply
import yaml
from packaging.requirements import Requirement

from bookmaker import precompile

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


def test_the_lock_repeats_every_direct_pin():
    direct = pins(project()["dependencies"] + project()["optional-dependencies"]["dev"])
    lock = locked()
    assert {name: lock.get(name) for name in direct} == direct


def test_every_direct_import_is_a_direct_pin():
    """What we import we also choose: a library that another one happens to bring may change its version."""
    chosen = pins(project()["dependencies"] + project()["optional-dependencies"]["dev"])
    names = metadata.packages_distributions()
    imported = set()
    for package in ("privhelpers", "bookmaker", "tests"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    imported.add(node.module.split(".")[0])
    outside = {name for name in imported if name in names and name not in ("privhelpers", "bookmaker")}
    assert {"torch", "nbformat", "yaml"} <= outside
    assert not {name for name in outside if not {canonical(n) for n in names[name]} & chosen.keys()}


def test_what_is_installed_is_what_is_locked():
    installed = {name: metadata.version(name).split("+")[0] for name in locked()}  # torch: 2.13.0+cpu
    assert installed == locked()


def test_the_lock_has_the_hash_of_every_file_of_every_pin():
    text = "".join((ROOT / name).read_text() for name in ("requirements.lock", "requirements-torch.lock"))
    entries = [line for line in text.replace("\\\n", "").splitlines() if not line.startswith("#")]
    hashes = {entry.split(" ")[0]: re.findall(r"--hash=sha256:([0-9a-f]{64})", entry) for entry in entries}
    assert pins(hashes) == locked() and all(hashes.values())
    assert "://" not in text and "--index" not in text
    # Wheels of several systems, where a package has compiled parts; of torch also the build for processors.
    assert all(
        len(hashes[name]) > 8 for name in hashes if name.split("==")[0] in ("numpy", "torch", "pyarrow")
    )
    make = (ROOT / "Makefile").read_text()
    (for_processors,) = re.findall(r"^TORCH_CPU := ([0-9a-f]{64})$", make, re.MULTILINE)
    assert any(for_processors in hashes[name] for name in hashes if name.startswith("torch=="))
    for lock in ("--find-links build/torch -r requirements-torch.lock", "-r requirements.lock"):
        assert re.search(rf"--no-deps --require-hashes .*{lock}$", make, re.MULTILINE), lock


def test_what_grades_is_locked_by_hash_at_the_versions_of_the_book():
    text = (ROOT / "requirements-grading.lock").read_text()
    entries = [line for line in text.replace("\\\n", "").splitlines() if not line.startswith("#")]
    graded = pins(entry.split(" ")[0] for entry in entries)
    assert all("--hash=sha256:" in entry for entry in entries) and "://" not in text
    named = pins(tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["grading"])
    assert "nbgrader" in named and named.items() <= graded.items()
    assert {name: locked()[name] for name in graded if name in locked()}.items() <= graded.items()


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


def test_a_server_asks_for_known_vulnerabilities():
    flows = {
        path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")
    }
    runs = {
        name: "\n".join(step.get("run", "") for job in flow["jobs"].values() for step in job.get("steps", []))
        for name, flow in flows.items()
    }
    assert "make supply" in runs["supply"] and "pip-audit --disable-pip --require-hashes" in runs["supply"]
    assert "schedule" in flows["supply"][True]  # YAML 1.1 reads the key `on` as true
    assert all(f"-r {lock}" in runs["supply"] for lock in supply.LOCKS)
    assert "--require-hashes -r .github/pip-audit.lock" in runs["supply"]
    text = (ROOT / ".github" / "pip-audit.lock").read_text().replace("\\\n", "")
    entries = [line for line in text.splitlines() if not line.startswith("#")]
    assert "pip-audit" in pins(entry.split(" ")[0] for entry in entries)
    assert all("--hash=sha256:" in entry for entry in entries)
    known = (ROOT / ".github" / "known-vulnerabilities.txt").read_text()
    days = re.findall(r"^[^#\n]\S* (\d{4}-\d\d-\d\d)", known, re.MULTILINE)
    # Whether a day is over is for the workflow to say: no test fails by the clock.
    supply.allowed(known, datetime.date.fromisoformat(min(days, default="2026-01-01")))


def test_a_vulnerability_is_allowed_for_a_time_and_with_a_reason():
    today = datetime.date(2027, 1, 31)
    line = "GHSA-ab12-cd34-ef56 2027-01-31 the function is never called here"
    assert supply.allowed(f"# why\n\n{line}\n", today) == ["GHSA-ab12-cd34-ef56"]
    for wrong, words in (
        (line.replace("2027", "2026"), "its last day is over"),
        (line.replace("2027", "2029"), "more than 366 days away"),
        (line[:32], "must be an identifier, a last day"),
        (line.replace("2027-01-31", "soon"), "must be an identifier, a last day"),
        ("x; rm -rf / 2027-01-31 a reason that is long", "must be an identifier, a last day"),
    ):
        with pytest.raises(ValueError, match=words):
            supply.allowed(wrong, today)


# A license of another family is looked at before it comes in. Docutils names the GPL for one file, for an
# editor, which no wheel of it holds.
LICENSES = r"MIT(-0|-CMU)?|BSD|0BSD|ISC|Apache|MPL|Mozilla|PSF|Python Software Foundation|CNRI|CC0|Zlib|BSL"


def test_every_package_has_a_license_that_lets_it_be_used():
    assert supply.KEPT.read_text() == supply.licenses(), "run python tests/supply.py --keep"
    said = {name: supply.license_of(name) for name in locked()}
    assert all(re.search(rf"\b({LICENSES})\b", text) for text in said.values())
    assert {name for name, text in said.items() if re.search(r"GPL|GNU|proprietary", text)} == {"docutils"}


def test_the_bill_of_materials_names_every_file_of_the_locks():
    bill, packages = supply.sbom(), supply.locked()
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    components = {one["name"]: one for one in bill["components"]}
    assert components.keys() == locked().keys() | {"reveal.js"} and len(components) == len(bill["components"])
    for name, version in locked().items():
        one = components[name]
        assert one["version"] == version and one["purl"] == f"pkg:pypi/{name}@{version}"
        hashes = [file["content"] for place in one["externalReferences"] for file in place["hashes"]]
        assert hashes == packages[name][1] and len(one["licenses"]) == 1
    refs = [row["ref"] for row in bill["dependencies"]]
    assert sorted(refs) == sorted({*locked(), "privai-leak"})
    assert all(set(row["dependsOn"]) <= components.keys() for row in bill["dependencies"])
    needs = {row["ref"]: row["dependsOn"] for row in bill["dependencies"]}
    assert "torch" in needs["opacus"] and "numpy" in needs["pandas"]


def test_a_wheel_holds_every_file_that_the_packages_read_and_the_command():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = tool["tool"]["setuptools"]["package-data"]["*"]
    files = [path for name in ("privhelpers", "bookmaker") for path in (ROOT / name).rglob("*.*")]
    left = {path.name for path in files if not any(path.match(one) for one in ("*.py", "*.pyc", *patterns))}
    assert len(files) > 200 and not left
    module, _, function = tool["project"]["scripts"]["privai-leak"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("name", ["Makefile", "Containerfile", "binder/postBuild"])
def test_nothing_is_built_before_its_hash_was_looked_at(name):
    fetched = re.findall(r"(?:pip|\(PIP\)) download (.*)", (ROOT / name).read_text())
    assert [options.split()[:2] for options in fetched] == [["--only-binary", "torch"]]


def test_the_image_installs_what_is_locked_by_hash_and_copies_what_is_there():
    lines = (ROOT / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    installs = [part for line in lines for part in line.split("&&") if "pip install" in part]
    assert [("--require-hashes" in part) or ("--no-index ." in part) for part in installs] == [True] * 3
    assert all("--no-deps" in part for part in installs)


def test_the_image_is_run_by_whoever_owns_the_folder_that_it_writes_to():
    image = (ROOT / "Containerfile").read_text()
    assert re.search(r"^USER 65534:65534$", image, re.MULTILINE), "nobody, unless somebody is named"
    for text in (image, (ROOT / "book" / "how_to_use.md").read_text()):
        (command,) = re.findall(r"podman run(?:[^\n]*\\\n)*[^\n]*", text)
        options = shlex.split(command.replace("\\\n#", " ").replace("\\\n", " "))
        assert options[options.index("--user") + 1] == "$(id -u):$(id -g)"
        assert {"--userns=keep-id", "$PWD:/work"} <= set(options)


def test_binder_installs_what_is_locked_by_hash():
    files = {path.name for path in (ROOT / "binder").iterdir()}
    assert not files & {"requirements.txt", "environment.yml", "Pipfile", "setup.py"}, "without hashes"
    assert (ROOT / "binder" / "runtime.txt").read_text() == "python-3.11\n"
    lines = (ROOT / "binder" / "postBuild").read_text().replace("\\\n", " ").splitlines()
    installs = [shlex.split(line) for line in lines if line.startswith("pip install ")]
    assert all({"--no-deps", "--require-hashes"} <= set(words) for words in installs)
    assert [words[-1] for words in installs] == ["requirements-torch.lock", "requirements.lock"]
    assert all((ROOT / words[-1]).is_file() for words in installs)


def test_conda_brings_python_and_make_the_locked_packages():
    text = (ROOT / "environment.yml").read_text()
    environment = yaml.safe_load(text)
    assert environment["dependencies"] == ["python=3.11", "pip"], "packages come from the locks"
    assert 'export VENV="$CONDA_PREFIX" && make env' in text
    assert "VENV    ?= .venv" in (ROOT / "Makefile").read_text(), "what the shell exports is kept"
    assert project()["requires-python"] == ">=3.11,<3.12"


def test_the_lock_names_no_index_and_no_cuda_package():
    text = (ROOT / "requirements.txt").read_text()
    assert "://" not in text and "--" not in text
    assert not [name for name in locked() if name.startswith(("nvidia-", "triton", "cuda-"))]


def test_the_environment_keeps_the_byte_code_of_what_every_process_imports():
    assert {name for name in precompile.TOOLS if find_spec(name) is None} == set()
    site = Path(yaml.__file__).parents[1]
    for library in ("torch", "transformers", "pandas", "snakemake", "sphinx", "docutils"):
        assert list((site / library / "__pycache__").glob("__init__.*.pyc")), (
            f"{library}: run python -m bookmaker.precompile"
        )
