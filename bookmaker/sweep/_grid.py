"""The cells of a sweep: one profile for each architecture and seed, with every budget in it.

A seed repeats the whole experiment, patients included, so that the spread over seeds holds every kind of
luck. Budgets of one cell share records, public checkpoint and shadow models, as in the book. No cell takes
a chapter from kept runs: they would fit one seed alone, and may have other sizes.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import yaml

from bookmaker.runner import chain, plan, profiles
from bookmaker.runner.plan import Job
from privhelpers.artifacts import check_name
from privhelpers.errors import InvalidParameter
from privhelpers.validate import shown

# What measures a model; the chapters that only explain or compare are left to the book.
MEASURING = (chain.EXTRACTION, chain.MEMORIZATION, chain.MEMBERSHIP, chain.AUDITING)


@dataclass(frozen=True)
class Cell:
    """One profile of a sweep.

    Attributes:
        base: the profile that it varies.
        architecture: of every model in it.
        seed: of everything in it, the patients included.
    """

    base: str
    architecture: str
    seed: int

    @property
    def profile(self) -> str:
        """Its name, the name of its folder, too, under `runs/`."""
        return check_name(f"{self.base}-{self.architecture}-s{self.seed}")


def _different(name: str, values: Iterable) -> list:
    listed = list(values)
    if not listed or len(set(listed)) != len(listed):
        raise InvalidParameter(f"{name} = {shown(listed)}: give one value or more, all different")
    return listed


def cells(base: str, *, architectures: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
    """Return the cells of a grid.

    Args:
        base: a profile of `params/`.
        architectures: names of `models.ARCHITECTURES`, a hub name, or a folder; all different.
        seeds: 0 or more, all different.

    Raises:
        InvalidParameter: an axis has no value, or one twice.
    """
    axes = _different("architectures", architectures), _different("seeds", seeds)
    return [Cell(base, architecture, seed) for architecture, seed in product(*axes)]


def architecture(root: Path, base: str) -> str:
    """Return the architecture of a profile."""
    return profiles.load(root, base).resolve(root, chain.PRETRAINING)["architecture"]


def _given(root: Path, cell: Cell, epsilons: Sequence[float]) -> dict[str, dict]:
    given = {section: dict(values) for section, values in profiles.load(root, cell.base).given.items()}
    for section, name, value in (
        (profiles.SHARED, "seed", cell.seed),
        (chain.PRETRAINING, "architecture", cell.architecture),
        (chain.DPSGD, chain.EPSILON, list(epsilons)),
    ):
        given.setdefault(section, {})[name] = value
    return given


def files(root: Path, grid: Sequence[Cell], *, epsilons: Sequence[float]) -> dict[str, bytes]:
    """Return the profile of every cell, checked, by its file `runs/<cell>/profile.yml`.

    Args:
        root: the repository.
        grid: from `cells`.
        epsilons: budgets, in nats, all different.

    Raises:
        PrivHelpersError: a value is not one that the notebooks take, or a profile of `params/` has the name
            of a cell.
    """
    budgets, contents = _different("epsilons", epsilons), {}
    for cell in grid:
        namesake, file = f"params/{cell.profile}.yml", profiles.derived(cell.profile)
        if os.path.lexists(root / namesake):
            raise InvalidParameter(f"{namesake} has the name of a cell and would run in its place; rename it")
        text = yaml.safe_dump(_given(root, cell, budgets), sort_keys=False, allow_unicode=True)
        contents[file] = text.encode()
        profiles.checked(root, cell.profile, file, contents[file])
    return contents


def write(root: Path, grid: Sequence[Cell], contents: Mapping[str, bytes]) -> list[list[Job]]:
    """Write the profiles that `files` returned for a grid, and return the plan of every cell.

    A build of a cell reads its profile until it ends: hold the cells for this process (`build.alone`).
    """
    for file, data in contents.items():
        plan.write_if_new(root / file, data)
    return [plan.jobs(root, cell.profile) for cell in grid]


def targets(plans: Iterable[list[Job]]) -> list[str]:
    """Return the files that exist when every model of every plan has been measured."""
    return [job.mark for jobs in plans for job in jobs if job.slug in MEASURING]
