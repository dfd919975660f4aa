"""The image of `Containerfile`: built and tried where an engine runs and the base image can be had."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import toy_audit as toy
from patience import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
IMAGE = "privai-leak-test"


def run(*command: object, **more: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, **more
    )


@pytest.fixture(scope="module")
def engine() -> str:
    """Return podman or docker, whichever runs and can get the image that ours is built on."""
    if os.environ.get("CI"):
        pytest.skip("a server's hour is for the other tests: the image takes its packages from the network")
    here = [name for name in ("podman", "docker") if shutil.which(name)]
    running = [name for name in here if run(name, "info", "--format", "{{json .}}").returncode == 0]
    if not running:
        pytest.skip(f"no container engine runs here ({', '.join(here) or 'neither podman nor docker'})")
    base = next(
        line.partition("=")[2]
        for line in (ROOT / "Containerfile").read_text().splitlines()
        if line.startswith("ARG BASE=")
    )
    if run(running[0], "pull", base).returncode:
        pytest.skip(f"{running[0]} cannot get {base}, as without a network")
    return running[0]


@pytest.fixture(scope="module")
def image(engine) -> str:
    built = run(engine, "build", "--tag", IMAGE, "--file", ROOT / "Containerfile", ROOT)
    assert built.returncode == 0, built.stderr[-4000:]
    return IMAGE


def test_a_builder_is_sent_what_the_image_copies_and_nothing_else():
    lines = (ROOT / "Containerfile").read_text().splitlines()
    copied = {word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]}
    _, everything, *sent, caches = (ROOT / ".dockerignore").read_text().splitlines()
    assert (everything, caches) == ("*", "**/__pycache__")
    assert {line.removeprefix("!") for line in sent} == copied


def test_the_image_audits_without_a_network_as_whoever_owns_the_folder(engine, image, tmp_path):
    for n, letter in enumerate("mh"):
        toy.write(tmp_path / f"{letter}.jsonl", toy.notes(letter, 50, seed=n))
    toy.write(tmp_path / "s.jsonl", [{"text": row["text"]} for row in toy.notes("m", 50, seed=0)])
    start = (engine, "run", "--rm", "--network", "none", "--volume", f"{tmp_path}:/work")
    if engine == "podman":
        start += ("--userns", "keep-id")
    start += ("--user", f"{os.getuid()}:{os.getgid()}", image)
    said = run(*start, "audit", "--help")
    assert said.returncode == 0 and "exit codes:" in said.stdout, said.stderr
    files = ("--synthetic=s.jsonl", "--records=m.jsonl", "--holdout=h.jsonl", "--effort=quick")
    done = run(*start, "audit", *files)
    assert done.returncode == 0, done.stderr
    made = {path.name for path in (tmp_path / "runs" / "audits" / "s").iterdir()}
    assert made == {"report.html", "report.pdf", "report.json", "report.schema.json"}
