"""`python -m bookmaker check|verify|run|book|... --profile X`.

A refusal is one line on stderr and exit code 2; a run that failed, and what does not verify, is exit code 1.
"""

import argparse
import os
import time
from collections import Counter
from pathlib import Path

from bookmaker.runner import build, commands, published, verify
from bookmaker.runner import plan as planning
from privaudit import bundle, output
from privaudit.console import duration, guarded, say
from privhelpers.artifacts import repository_root, write_atomic
from privhelpers.errors import InvalidParameter


def _check(root: Path, options: argparse.Namespace) -> None:
    """Print the plan of a profile whose every value was checked."""
    plan = planning.jobs(root, options.profile)
    slugs = {job.rule: job.slug for job in plan}
    states = {job.rule: planning.stale(root, job) for job in plan}
    for job in plan:
        runs = Counter(slugs[rule] for rule in job.needs)
        after = [slug if count == 1 else f"{count} of {slug}" for slug, count in runs.items()]
        state = "kept" if job.kept else states[job.rule] or "up to date"
        print(f"{job.title:<45} {state:<11} after {', '.join(after) or 'nothing'}")
    print(f"{len(plan)} runs, {list(states.values()).count('')} up to date")
    for told in (*verify.damaged(root, plan).values(), verify.other_versions(root, plan)):
        print(told, end="\n" if told else "")


def _verify(root: Path, options: argparse.Namespace) -> int:
    if options.key and not options.bundle:
        raise InvalidParameter("--key without --bundle: a key is that of a bundle; name it: --bundle=...")
    if options.bundle:
        return 0 if bundle.verify(options.bundle, options.key) else 1
    return 0 if verify.verify(root, planning.jobs(root, options.profile)) else 1


def _bundle(root: Path, options: argparse.Namespace) -> None:
    """Write the evidence of a profile: to a new file, or again to the place where it lies by default."""
    from bookmaker.runner import keep

    key, place = bundle.private_key(options.key), Path("runs", options.profile, "evidence.zip")
    if options.bundle:
        place = output.require_new_path("--bundle", options.bundle)
    data = bundle.make(keep.evidence(root, planning.jobs(root, options.profile)), key)
    write_atomic(place, data, new=bool(options.bundle))
    say(options.profile, f"evidence: {place}, SHA-256 {bundle.sha256(data)}")


def _run(root: Path, options: argparse.Namespace) -> None:
    commands.die_with_parent()
    from bookmaker.runner import run  # papermill takes a third of a second to load

    plan = planning.jobs(root, options.profile, only=options.job)
    run.run(root, [planning.upto(plan, rule)[-1] for rule in options.job], hours=options.limit)


def _collect(root: Path, options: argparse.Namespace) -> None:
    published.collect(root, planning.jobs(root, options.profile))


def _book(root: Path, options: argparse.Namespace) -> int:
    """Run what is out of date in a plan, then build the site."""
    commands.die_with_parent()
    clock, solutions = time.monotonic(), options.solutions != "no"
    plan = planning.jobs(root, options.profile)
    if options.until:
        plan = planning.upto(plan, options.until)
        targets, place = [plan[-1].mark], plan[-1].sentinel
    else:
        site = build.site_mark(options.profile, solutions=solutions)
        # Every run by name: a missing file between two that are up to date is not made again otherwise.
        targets, place = [*(job.mark for job in plan), site], Path(site).parent / "_build/html/index.html"
    given = {name: getattr(options, name) for name in ("cores", "cluster", "limit", "until")}
    with build.alone(root, [options.profile]):
        code = build.chain(root, [plan], targets=targets, **given)
    if code:
        return code
    say(options.profile, f"complete in {duration(time.monotonic() - clock)}: {place}")
    false = verify.false_claims(root, plan)
    for title, sentences in false.items():
        say(options.profile, f"not shown by {title}: {' '.join(sentences)}")
    if false:
        say(
            options.profile,
            "the pages mark these sentences with a cross. Find out why, or change the sentence and the text "
            "that says the same; on another kind of processor, training ends with slightly other figures",
        )
    return 1 if false else 0


def _reference(root: Path, options: argparse.Namespace) -> None:
    from bookmaker.runner import keep

    keep.reference(root, options.profile)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bookmaker", description=__doc__)
    names = parser.add_subparsers(dest="command", required=True)
    for name, action, text in (
        ("check", _check, "check every parameter of a profile and print its runs"),
        ("verify", _verify, "say whether runs, manifest and site, or a bundle, are as made"),
        ("run", _run, "run a chapter's notebook where it is not up to date (called by Snakemake)"),
        ("collect", _collect, "write manifest.json and summary.json (called by Snakemake)"),
        ("book", _book, "run what is out of date, then build the site"),
        ("reference", _reference, "keep the results of a profile's complete run in reference/"),
        ("bundle", _bundle, "write the evidence of a profile's complete run as one file"),
    ):
        command = names.add_parser(name, help=text)
        command.set_defaults(action=action)
        command.add_argument("--profile", default="course", help="a file of params/ without its ending")
        if name in ("verify", "bundle"):
            command.add_argument("--bundle", default="", help="the file of an evidence bundle, .zip")
            command.add_argument(
                "--key", default="", help="PEM: to sign with, private; to verify with, public"
            )
        if name == "run":
            command.add_argument("--job", required=True, nargs="+", help="names of runs of one chapter")
        if name in ("run", "book"):
            command.add_argument("--limit", type=commands.hours, default="", help="hours of a cell, or 24")
        if name == "book":
            command.add_argument("--cores", type=commands.count, help="of all runs; on a cluster, jobs")
            command.add_argument("--cluster", help="where the runs go: a folder of cluster/; default: here")
            command.add_argument("--solutions", choices=("", "yes", "no"), help="no: a site without them")
            command.add_argument("--until", help="make this run and what it needs, and no site")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""

    def run() -> int:
        options, root = _parser().parse_args(arguments), repository_root()
        os.chdir(root)
        return options.action(root, options) or 0

    return guarded(run)
