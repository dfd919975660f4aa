"""`privai-leak prompts`: write the questions to a model of which one has only an interface."""

import argparse
import functools

from privaudit.console import say
from privaudit.output import require_new_path
from privaudit.rows import columns_option
from privhelpers.artifacts import to_json, write_atomic

ABOUT = """Write questions to a model that you can only ask, about equally many patients of both files.

Each line of the new file has an id, a prompt, and how many answers are wanted. Let the model go on with the
prompt, at least as far as your notes go: take its most probable text (temperature 0) if one answer is wanted,
and samples if more are. Write a line {"id": ..., "answer": ...} for each answer. Then: privai-leak audit
--answers=answers.jsonl, with the same files, columns, budget and seed.

The prompts contain parts of the notes: send them only to those who may have the records. If a model is
trained on them, its held-out records are spoiled."""
BUDGET = 1000  # answers by default

_told = functools.partial(say, "prompts")


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "prompts",
        help="write questions to a model that you can only ask",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--records", required=True, help="what it was trained on, JSONL, CSV, or Parquet: patient_id, text")
    add("--holdout", required=True, help="records of other patients, which it never saw")
    add("--out", required=True, help="new file for the questions, JSONL: id, prompt, answers")
    add("--budget", type=int, default=BUDGET, help=f"answers that are wanted, in all; default {BUDGET:,}")
    add("--columns", help="the files' names of the columns: 'patient_id=mrn text=note'")
    add("--seed", type=int, default=0, help="of all randomness, a whole number; default 0")


def run(given: argparse.Namespace) -> int:
    """Write the questions to a new file, and return the exit code.

    Raises:
        PrivHelpersError: an option or a file is refused, and nothing was made.
    """
    from privaudit.probes.questions import plan_questions  # late: it loads torch
    from privaudit.records import read_files
    from privaudit.settings import Settings

    place = require_new_path("--out", given.out)
    columns = columns_option(given.columns)
    settings = Settings.for_texts(budget=given.budget, seed=given.seed)
    plan = plan_questions(read_files(given.records, given.holdout, columns=columns), settings)
    rows = [{"id": one.id, "prompt": one.prompt, "answers": one.answers} for one in plan.questions]
    write_atomic(place, b"".join(to_json(row, indent=None) for row in rows), new=True)
    members, heldout = plan.asked.sizes
    wanted = sum(question.answers for question in plan.questions)
    _told(
        f"{len(rows):,} questions about {members:,} members and {heldout:,} held-out patients, {wanted:,} "
        "answers wanted; the questions contain parts of their notes"
    )
    steps = {}
    for test in plan.tests:
        steps.setdefault(test.knowledge, []).append(f"{test.queries:,}")
    _told("queries: " + "; ".join(f"{knowledge}: {', '.join(some)}" for knowledge, some in steps.items()))
    return 0
