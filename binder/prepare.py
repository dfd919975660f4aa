"""Makes a fresh computer in the cloud ready for one chapter: packages first, then what the chapter reads.

    python binder/prepare.py --packages           into the Python that runs this, if they are missing
    python binder/prepare.py --results SLUG       the runs of the smoke profile that this chapter reads
    python binder/prepare.py --results all        every run, for an image that many readers start from

Standard library only, because nothing else is there yet. The first cell of the copies that
`python -m bookmaker launch` writes calls it; on a laptop `make book` does all this, and more.
"""

import argparse
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROFILE = "smoke"
# Taken in any version: exchanging the kernel's own would take the notebook away from under its reader, and
# torch is gigabytes that such computers have already.
ANY_VERSION = {"ipykernel", "jupyter-client", "torch"}


def missing(pins: list[str]) -> list[str]:
    """Return the pins, `name==version`, that have to be installed into this Python."""
    wanted = []
    for pin in pins:
        name, version = pin.split("==")
        try:
            # A build for some hardware, 2.13.0+cpu, is the same version.
            there = metadata.version(name).split("+")[0]
        except metadata.PackageNotFoundError:
            there = None
        if there is None or (there != version and name not in ANY_VERSION):
            wanted.append(pin)
    return wanted


def packages() -> None:
    """Install what the book needs and this Python lacks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        tested = "The book is tested with Python 3.11, 3.12, and 3.13"
        print(f"{tested}; this is {sys.version.split()[0]}.", file=sys.stderr)
    extras = project["optional-dependencies"]
    pins = [*project["dependencies"], *extras["audit"], *extras["lab"], *extras["book"]]
    if wanted := missing([pin for pin in pins if "==" in pin]):
        print(f"Installing {len(wanted)} packages, once ...")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wanted], cwd=ROOT, check=True)


def results(slug: str) -> None:
    """Run what a chapter reads, at the smoke profile; what is there already is not run again."""
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    from bookmaker.runner import build, plan

    jobs = plan.jobs(ROOT, PROFILE)
    own = [job for job in jobs if slug in (job.slug, "all")]
    if not own:
        sys.exit(f"{slug}: no chapter of this book")
    before = {job.rule for one in own for job in plan.upto(jobs, one.rule)} - {one.rule for one in own}
    wanted = own if slug == "all" else [job for job in jobs if job.rule in before]
    if any(plan.stale(ROOT, job) for job in wanted):
        targets = [job.mark for job in wanted]
        sys.exit(build.chain(ROOT, [jobs], cores=os.cpu_count() or 1, targets=targets))


def main() -> None:
    """Do what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--packages", action="store_true", help="install what is missing")
    parser.add_argument("--results", metavar="SLUG", help="a chapter, such as extraction, or all")
    options = parser.parse_args()
    if options.packages:
        packages()
    if options.results:
        results(options.results)


if __name__ == "__main__":
    main()
