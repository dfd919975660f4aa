"""One set of pins: pyproject.toml, requirements, locks, Binder, conda and what is installed agree."""

import ast
import importlib
import re
import shlex
import subprocess
import tomllib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
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


def every_dependency():
    extras = project()["optional-dependencies"].values()
    lines = [*project()["dependencies"], *(line for extra in extras for line in extra)]
    return [line for line in lines if not line.startswith(f"{project()['name']}[")]


def test_the_lock_repeats_every_direct_pin():
    direct = pins(every_dependency())
    lock = locked()
    assert {name: lock.get(name) for name in direct} == direct


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
    make = (ROOT / "dev.mk").read_text()
    (for_processors,) = re.findall(r"^TORCH_CPU := ([0-9a-f]{64})$", make, re.MULTILINE)
    assert any(for_processors in hashes[name] for name in hashes if name.startswith("torch=="))
    make = (ROOT / "Makefile").read_text()
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
    asked = runs["supply"]
    assert "schedule" in flows["supply"][True]  # YAML 1.1 reads the key `on` as true
    assert all(f"-r {lock}" in asked for lock in ("requirements.lock", "requirements-torch.lock"))
    assert "--require-hashes -r .github/supply.lock" in asked
    text = (ROOT / ".github" / "supply.lock").read_text().replace("\\\n", "")
    entries = [line for line in text.splitlines() if not line.startswith("#")]
    tools = pins(entry.split(" ")[0] for entry in entries)
    assert {"pip-audit", "cyclonedx-bom", "pip-licenses"} <= set(tools)
    assert all("--hash=sha256:" in entry for entry in entries)


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("# why", ""),
        ("GHSA-ab12-cd34-ef56 2999-01-31 it is never called here", "--ignore-vuln GHSA-ab12-cd34-ef56"),
        ("GHSA-ab12-cd34-ef56 2026-01-31 its day is over", None),
        ("GHSA-ab12-cd34-ef56 2999-01-31", None),
        ("GHSA-ab12-cd34-ef56 soon it is never called here", None),
    ],
)
def test_a_vulnerability_is_allowed_for_a_time_and_with_a_reason(tmp_path, line, options):
    flow = yaml.safe_load((ROOT / ".github" / "workflows" / "supply.yml").read_text())
    script = next(run for step in flow["jobs"]["supply"]["steps"] if "awk" in (run := step.get("run", "")))
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "known-vulnerabilities.txt").write_text(f"{line}\n")
    asked = script.partition("build/tools/bin/pip-audit")[0] + 'echo "$ignored"'
    done = subprocess.run(["bash", "-ec", asked], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode == 0, done.stdout.strip()) == (options is not None, options or "")


def test_a_wheel_holds_every_file_that_the_packages_read_and_the_command():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = tool["tool"]["setuptools"]["package-data"]["*"]
    packages = ("privhelpers", "privaudit", "bookmaker")
    files = [path for name in packages for path in (ROOT / name).rglob("*.*")]
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
