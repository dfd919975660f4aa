"""`python -m bookmaker sweep --profile smoke --epsilons "1 8" --seeds "0 1"`: many runs, one table.

A refusal is one line on stderr and exit code 2; a run that failed is exit code 1.
"""

import argparse
import os
import sys
import time

from bookmaker.runner import build
from bookmaker.runner.commands import count, die_with_parent, exclusive, hours, words
from privaudit.console import guarded, one_line, say
from privhelpers.artifacts import check_name, repository_root, write_atomic, write_sealed
from privhelpers.errors import InvalidParameter


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bookmaker sweep", description=__doc__)
    parser.add_argument("--profile", default="course", help="a file of params/ without its ending")
    parser.add_argument("--epsilons", type=words(float), default="", help="budgets, in nats")
    parser.add_argument("--seeds", type=words(int), default="", help="each repeats the whole experiment")
    parser.add_argument("--architectures", type=words(str), default="", help="default: that of the profile")
    parser.add_argument("--cores", type=count, help="of the whole sweep; on a cluster, jobs at once")
    parser.add_argument("--cluster", help="where the runs go: a folder of cluster/; default: here")
    parser.add_argument("--limit", type=hours, default="", help="hours that a cell may take; default: 24")
    return parser


def _sweep(options: argparse.Namespace) -> int:
    """Run what is missing of a grid, write its table and gallery, and return the exit code."""
    die_with_parent()
    clock = time.monotonic()
    root = repository_root()
    os.chdir(root)
    from bookmaker.sweep import _grid

    if not options.epsilons:
        raise InvalidParameter('name the budgets: make sweep EPSILONS="1 8" SEEDS="0 1"')
    name = check_name(options.profile)
    architectures = options.architectures or [_grid.architecture(root, options.profile)]
    cells = _grid.cells(options.profile, architectures=architectures, seeds=options.seeds or [0])
    names, folder = [cell.profile for cell in cells], root / "runs" / "sweeps" / name
    where = {"cores": options.cores, "cluster": options.cluster, "limit": options.limit}
    build.where(root, options.cluster, options.cores)  # refused before anything is written
    files = _grid.files(root, cells, epsilons=options.epsilons)
    # Beside its folder, so that a sweep that is refused or fails leaves the folder as it was.
    lock = folder.with_name(f".{name}.lock")
    with exclusive(lock, f"sweep {name}"), build.alone(root, names):
        plans = _grid.write(root, cells, files)
        if code := build.chain(root, plans, targets=_grid.targets(plans), **where):
            return code
        from bookmaker.sweep import _gallery, _results

        table = _results.collect(root, cells)
        write_sealed(folder / "results.csv", table.to_csv(index=False).encode())
        path = folder / "gallery.html"
        write_atomic(path, _gallery.page(table, name).encode())
    took = f"{time.monotonic() - clock:.0f} s"
    say(name, f"{len(table)} measurements of {len(cells)} cells in {took}: {path.relative_to(root)}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run a sweep and return its exit code."""
    return guarded(lambda: _sweep(_parser().parse_args(arguments)), one_line)


if __name__ == "__main__":
    sys.exit(main())
