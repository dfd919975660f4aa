"""`results.csv`: one row a measurement, the same columns for every sweep.

profile, architecture, seed: the cell; patients, training and noise all follow the seed.
model: public, baseline, best_nonprivate, equal_use or dp-eps-<budget>.
epsilon, delta: what the run spent (one patient added or removed, Poisson sampling, PLD); empty without DP.
family, measure, arm: what was measured, on people trained on (member) or never (control).
estimate, low, high, level, method: the estimate with its interval, clustered by `cluster`.
unit, n, distinct_n, cluster, clusters: the trials, how many of them differ, and what varies together.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from bookmaker.runner import plan, profiles
from bookmaker.sweep._grid import Cell
from privhelpers.artifacts import Store
from privhelpers.results import COLUMNS as MEASURED
from privhelpers.results import ModelResults, Results, measurements

CELL = ("profile", "architecture", "seed", "model", "epsilon", "delta")
COLUMNS = (*CELL, *(name for name in MEASURED if name != "model"))


def _audit(model_results: ModelResults) -> Iterator[dict]:
    """Yield the certified lower bound of a private model as a row; it has no control and no upper end."""
    audit = model_results.runs.audits[model_results.model]
    lower, size = audit["audit_epsilon_lower"], audit["canaries"]
    if lower is not None:
        row = {"family": "audit", "measure": "epsilon, lower bound", "arm": "member", "estimate": lower}
        row |= {"low": lower, "high": None, "level": 0.95, "method": "one-run audit, f-DP"}
        yield row | {"unit": "canary", "n": size, "distinct_n": None, "cluster": "canary", "clusters": size}


def rows(root: Path, cell: Cell) -> list[dict]:
    """Return every measurement of a cell, with the keys of `COLUMNS`.

    Raises:
        MissingArtifact: a run of the cell has not been made.
    """
    store = Store(root / "runs" / cell.profile / "artifacts", cell.profile)
    runs, table_rows = Results(store), []
    known = {"profile": cell.profile, "architecture": cell.architecture, "seed": cell.seed}
    for model in plan.models(profiles.load(root, cell.profile)):
        model_results = runs.of(model)
        spent = model_results.spent or {"epsilon": None, "delta": None}
        cell_of = known | {"model": model, "epsilon": spent["epsilon"], "delta": spent["delta"]}
        table_rows += [row | cell_of for row in (*measurements(runs, model), *_audit(model_results))]
    return table_rows


def as_table(table_rows: Iterable[dict]) -> pd.DataFrame:
    """Return rows as a table with the columns of `COLUMNS`, each of one type."""
    table = pd.DataFrame(list(table_rows), columns=list(COLUMNS))
    whole = ("n", "distinct_n", "clusters", "seed")
    numbers = ("epsilon", "delta", "estimate", "low", "high", "level")
    return table.astype({**dict.fromkeys(whole, "Int64"), **dict.fromkeys(numbers, "float64")})


def collect(root: Path, grid: Sequence[Cell]) -> pd.DataFrame:
    """Return the measurements of all cells as one table.

    Raises:
        MissingArtifact: a run of a cell has not been made.
    """
    return as_table(row for cell in grid for row in rows(root, cell))
