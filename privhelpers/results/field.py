"""The field trial, kept in `reference/field`: audits of models and texts that nobody here made.

kept = read_trial(open_reference("field").store)   # made by `python benchmarks/field/run.py`
[case["found"]["outcome"] for case in kept if case["right"]]
"""

from privhelpers.artifacts import Store

TRIAL = "field_trial"
PLAN = f"{TRIAL}/plan.json"  # what is known of each case before it runs


def result_of(name: str) -> str:
    """Return the file of a case's result."""
    return f"{TRIAL}/{name}.json"


def read_trial(store: Store) -> tuple[list[dict], list[dict]]:
    """Return the results so far, in the order of the plan, and the cases that have none.

    Each has `name`, `truth` ("leak" or "null"), `strength`, `expected`, `text`, and `kind` of the model. A
    result also has `found`, `right`, `steps`, `date`, `commit`, and `machine`.

    Args:
        store: of `open_reference("field")`.

    Raises:
        MissingArtifact: the plan is not kept.
        DamagedArtifact: a file was changed.
    """
    ran, left = [], []
    for case in store.read_json(PLAN):
        file = result_of(case["name"])
        if store.path(file).exists():
            ran.append(store.read_json(file))
        else:
            left.append(case)
    return ran, left
