"""`python -m bookmaker.runner check|verify|run|book|... --profile X`, `audit --model Y`.

A refusal is one line on stderr and exit code 2; a run that failed, and what does not verify, is exit code 1.
"""

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from bookmaker.runner import _bytecode, _evidence, _limits, _verify, processes, published
from bookmaker.runner import plan as planning
from bookmaker.runner.options import count
from privaudit import bundle, cli
from privaudit.console import duration, guarded, say
from privhelpers.artifacts import repository_root, write_atomic
from privhelpers.errors import DamagedArtifact, InvalidParameter


def _check(root: Path, options: argparse.Namespace) -> int:
    """Print the plan of a profile whose every value was checked."""
    plan = planning.jobs(root, options.profile)
    slugs, states = {job.rule: job.slug for job in plan}, _verify.states(root, plan)
    for job in plan:
        runs = Counter(slugs[rule] for rule in job.needs)
        after = [slug if count == 1 else f"{count} of {slug}" for slug, count in runs.items()]
        print(f"{job.title:<45} {states[job.rule]:<11} after {', '.join(after) or 'nothing'}")
    print(f"{len(plan)} runs, {list(states.values()).count(planning.CURRENT)} up to date")
    for told in (*_verify.of_all_runs(root, plan).values(), _verify.other_versions(root, plan)):
        print(told, end="\n" if told else "")
    return 0


def _verify_all(root: Path, options: argparse.Namespace) -> int:
    if options.key and not options.bundle:
        raise InvalidParameter("--key without --bundle: a key is that of a bundle; name it: --bundle=...")
    if options.bundle:
        return 0 if bundle.verify(options.bundle, options.key) else 1
    return 0 if _verify.verify(root, planning.jobs(root, options.profile)) else 1


def _bundle_profile(root: Path, options: argparse.Namespace) -> int:
    """Write the evidence of a profile: to a new file, or anew where it lies by default."""
    key, place = bundle.private_key(options.key), Path("runs", options.profile, "evidence.zip")
    if options.bundle:
        place = cli.require_new_path("--bundle", options.bundle)
    data = bundle.make(_evidence.of_profile(root, planning.jobs(root, options.profile)), key)
    write_atomic(place, data, new=bool(options.bundle))
    say(options.profile, f"evidence: {place}, SHA-256 {bundle.sha256(data)}")
    return 0


def _run(root: Path, options: argparse.Namespace) -> int:
    processes.die_with_parent(clean=True)
    from bookmaker.runner import _execute  # papermill takes a third of a second to load

    _limits.hand_down(options.limit)
    *before, job = planning.upto(planning.jobs(root, options.profile), options.job)
    for needed in (one for one in before if one.rule in job.needs and (root / one.sentinel).is_file()):
        if wrong := planning.damage(root, needed):
            raise DamagedArtifact(f"{job.title} reads {needed.title}: {wrong}; `make book` makes it again")
    _execute.run(root, job, threads=options.threads, needed=options.needed)
    return 0


def _collect(root: Path, options: argparse.Namespace) -> int:
    from bookmaker.runner import _manifest

    _manifest.collect(root, planning.jobs(root, options.profile))
    return 0


def _book(root: Path, options: argparse.Namespace) -> int:
    """Run what is out of date in a plan, then build the site."""
    processes.die_with_parent(clean=False)
    clock = time.monotonic()
    plan = planning.jobs(root, options.profile)
    from bookmaker.runner import build

    wanted = planning.upto(plan, options.until) if options.until else []
    targets = [job.mark for job in wanted]
    public = options.solutions == "no" and not targets  # the other site stays as it is
    if public:
        targets = [*(job.mark for job in plan), *(f"runs/{options.profile}/{name}" for name in build.FILES)]
    where = {"cores": options.cores, "cluster": options.cluster, "limit": options.limit}
    with build.alone(root, [options.profile]):
        code = build.chain(root, [plan], targets=targets, **where)
    if public and not code:
        command = [sys.executable, "-m", "bookmaker.site", "build", "--profile", options.profile]
        code = subprocess.run([*command, "--solutions", "no"], cwd=root, check=False).returncode
    if not code:
        site = published.site(Path(), options.profile, solutions=not public)
        place = wanted[-1].sentinel if wanted else site / "_build" / "html" / "index.html"
        say(options.profile, f"complete in {duration(time.monotonic() - clock)}: {place}")
    return code


def _expect(root: Path, options: argparse.Namespace) -> int:
    from bookmaker.runner import _remaining

    plan = planning.jobs(root, options.profile)
    _remaining.expect(options.profile, [planning.record(root, job) for job in plan])
    return 0


def _reference(root: Path, options: argparse.Namespace) -> int:
    from bookmaker.runner import _reference

    _reference.keep(root, options.profile)
    return 0


def _audit_yours(root: Path, options: argparse.Namespace) -> int:
    processes.die_with_parent(clean=True)
    _bytecode.trust_contents(root)
    cli.run(root, cli.read_options(options))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bookmaker.runner", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, action, text in (
        ("check", _check, "check every parameter of a profile and print its runs"),
        ("verify", _verify_all, "say whether runs, manifest, site and PDF, or a bundle, are as made"),
        ("run", _run, "run one notebook (called by Snakemake)"),
        ("collect", _collect, "write manifest.json and summary.json (called by Snakemake)"),
        ("book", _book, "run what is out of date, then build the site"),
        ("expect", _expect, "keep the seconds of a profile's runs as what a first build may expect"),
        ("reference", _reference, "keep the results of a profile's complete run in reference/"),
        ("bundle", _bundle_profile, "write the evidence of a profile's complete run as one file"),
    ):
        command = commands.add_parser(name, help=text)
        command.set_defaults(action=action)
        command.add_argument("--profile", default="course", help="a file of params/ without its ending")
        if name in ("verify", "bundle"):
            command.add_argument("--bundle", default="", help="the file of an evidence bundle, .zip")
            command.add_argument(
                "--key", default="", help="PEM: to sign with, private; to verify with, public"
            )
        if name == "run":
            command.add_argument("--job", required=True, help="name of the run, as `check` prints it")
            command.add_argument("--threads", type=count, default=1, help="cores that it may use")
            command.add_argument("--needed", action="store_true", help="unless it is up to date")
        if name in ("run", "book"):
            command.add_argument("--limit", default="", help="hours that a cell may take")
        if name == "book":
            command.add_argument("--cores", type=count, help="of the whole build; on a cluster, jobs at once")
            command.add_argument("--cluster", help="where the runs go: a folder of cluster/; default: here")
            command.add_argument("--solutions", choices=("", "yes", "no"), help="no: a site without them")
            command.add_argument("--until", help="stop after this run: neither manifest nor site")
    command = commands.add_parser("audit", help="audit a model and records of your own", epilog=cli.MAKE)
    command.set_defaults(action=_audit_yours)
    cli.add_options(command)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""

    def run() -> int:
        options, root = _parser().parse_args(arguments), repository_root()
        if options.action is not _audit_yours:  # whose files are named from where the caller stands
            os.chdir(root)
        return options.action(root, options)

    return guarded(run)
