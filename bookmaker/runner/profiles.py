"""Profile files `params/<profile>.yml`: what the chain runs with, checked whole before anything runs.

A chapter declares its parameters in its first code cell, one `name: type = default  # help; in [low, high]` a
line; see `privhelpers.parameters`.

extends: course              # another profile, whose values hold where this one is silent
kept: [shadow_models]        # runs that are shown from kept ones, see `keep`
shared:                      # every notebook that has the name
  seed: 0
private_training:            # one chapter, by its slug
  target_epsilon: [1, 8]     # here a list: one run per budget
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bookmaker.runner import notebooks
from bookmaker.runner.chain import (
    CHAIN,
    DP_MODEL,
    DPSGD,
    EPSILON,
    MAKERS,
    PLANNED,
    SLUGS,
    Step,
    model_name,
    slug_of,
    source,
)
from privhelpers import parameters
from privhelpers.artifacts import check_name, parse_yaml
from privhelpers.errors import InvalidParameter, MissingArtifact
from privhelpers.text import quoted

SHARED = "shared"
EXTENDS, KEPT = "extends", "kept"  # beside the sections


def declared(notebook: Path) -> dict[str, parameters.Parameter]:
    """Return the parameters that a notebook declares, by name.

    Args:
        notebook: a source notebook, with exactly one code cell tagged `parameters`.

    Raises:
        InvalidParameter: the cell is missing, doubled or has a line that is not
            `name: type = default  # help; in [low, high]`.
    """
    slug = slug_of(notebook.name)
    cells = notebooks.code_of(notebook, "parameters")
    if len(cells) != 1:
        raise InvalidParameter(
            f"{slug}: {len(cells)} cells are tagged `parameters`; there must be exactly one"
        )
    return parameters.declared_in(cells[0], slug)


@dataclass(frozen=True)
class Profile:
    """A profile whose every value was checked.

    Attributes:
        name: as in PROFILE=name.
        file: its file, relative to the repository.
        extends: the profile whose values it takes, or "".
        kept: rules of the runs that it shows from kept ones.
        given: the values of both files, by section.
        overrides: by notebook, the values that differ from its defaults, budgets left out.
        epsilons: budgets of the DP runs, ascending.
    """

    name: str
    file: str
    extends: str
    kept: tuple[str, ...]
    given: dict[str, dict[str, Any]]
    overrides: dict[str, dict[str, Any]]
    epsilons: tuple[float, ...]

    def resolve(self, root: Path, slug: str, **planned: Any) -> dict[str, Any]:
        """Return every parameter of one run: the profile's values over the notebook's defaults, all checked.

        Args:
            root: the repository.
            slug: of the chapter.
            planned: values that go to a notebook which declares their names.

        Raises:
            InvalidParameter: in one line, the file, `notebook.parameter = value` and what is allowed.
        """
        notebook = source(root, slug)
        known = declared(notebook)
        defaults = {name: parameter.default for name, parameter in known.items()}
        given = self.overrides[slug] | {name: value for name, value in planned.items() if name in known}
        values = parameters.checked(known, defaults, f"notebooks/{notebook.name}, {slug}")
        return values | parameters.checked(known, given, f"{self.file}, {slug}")


def _read(content: bytes, file: str) -> dict[str, Any]:
    """Return what a profile file says: its sections, each a mapping, and what stands beside them."""
    try:
        given = parse_yaml(content.decode("utf-8"))
    except ValueError as error:  # UnicodeDecodeError is one
        told = (
            str(error) if str(error).startswith("line ") else f"not a profile in UTF-8 YAML ({quoted(error)})"
        )
        raise InvalidParameter(f"{file}: {told}") from error
    given = {} if given is None else given
    if not isinstance(given, dict):
        raise InvalidParameter(f"{file}: must map notebook names to their parameters")
    beside = {name: given[name] for name in (EXTENDS, KEPT) if name in given}
    sections = {name: values for name, values in given.items() if name not in beside}
    for section, values in sections.items():
        if section != SHARED and section not in SLUGS:
            known = ", ".join((EXTENDS, KEPT, SHARED, *SLUGS))
            raise InvalidParameter(f"{file}, {section}: no such notebook; known: {known}")
        if values is not None and not isinstance(values, dict):
            raise InvalidParameter(f"{file}, {section} = {parameters.show(values)}: must map names to values")
        for name in values or {}:
            if name in PLANNED:
                raise InvalidParameter(f"{file}, {section}.{name}: filled in by the chain, leave it out")
    return {section: values or {} for section, values in sections.items()} | beside


def _step_of(rule: str) -> Step | None:
    """Return the chapter that a run called `rule` would be of, whatever the budgets of its model."""
    for step in CHAIN:
        if step.per == "book":
            known = rule == step.slug
        else:
            public = [f"{step.slug}_{model}" for model in MAKERS] if step.per == "model" else []
            known = rule in public or rule.startswith(f"{step.slug}_{DP_MODEL}")
        if known:
            return step
    return None


def _kept(value: Any, file: str) -> tuple[str, ...]:
    """Return the rules of the runs that a profile shows from kept ones."""
    if not isinstance(value, list):
        raise InvalidParameter(f"{file}, {KEPT} = {parameters.show(value)}: must be a list of runs")
    if wrong := next((rule for rule in value if _step_of(str(rule)) is None), None):
        raise InvalidParameter(
            f"{file}, {KEPT} = {parameters.show(wrong)}: must be a run, as {DPSGD}_{model_name(8)} or one of "
            f"{', '.join(step.slug for step in CHAIN if step.per == 'book')}"
        )
    return tuple(dict.fromkeys(value))


def _extended(root: Path, given: dict[str, Any], file: str) -> dict[str, Any]:
    """Return what a profile says over what the one that it extends says.

    The runs of a chapter whose values it changes are no longer kept, unless it says itself which ones are.
    """
    if EXTENDS not in given:
        return given
    base = given[EXTENDS]
    if not isinstance(base, str):
        raise InvalidParameter(f"{file}, {EXTENDS} = {parameters.show(base)}: must be the name of a profile")
    other = f"params/{check_name(base)}.yml"
    if not (root / other).is_file():
        raise MissingArtifact(f"{file}, {EXTENDS} = {base}: {other} does not exist")
    merged = _read((root / other).read_bytes(), other)
    if EXTENDS in merged:
        raise InvalidParameter(f"{file}, {EXTENDS} = {base}: extends {merged[EXTENDS]} itself; name that one")
    for section, values in given.items():
        merged[section] = merged.get(section, {}) | values if isinstance(values, dict) else values
    if KEPT in merged and KEPT not in given:
        merged[KEPT] = [rule for rule in _kept(merged[KEPT], other) if _step_of(rule).slug not in given]
    return merged


def _merge(root: Path, given: dict[str, dict[str, Any]], file: str) -> dict[str, dict[str, Any]]:
    """Return the overrides of each notebook: shared values it has a name for, then its own."""
    known = {slug: declared(source(root, slug)) for slug in SLUGS}
    shared = given.get(SHARED, {})
    everywhere = sorted({name for names in known.values() for name in names} - set(PLANNED))
    for name, value in shared.items():
        if name not in everywhere:
            hint = parameters.unknown_name(name, everywhere)
            raise InvalidParameter(f"{file}, {SHARED}.{name} = {parameters.show(value)}: {hint}")
    overrides = {}
    for slug in SLUGS:
        chapter = given.get(slug, {})
        taken = {name: value for name, value in shared.items() if name in known[slug].keys() - chapter.keys()}
        # The budgets of the private runs may be a list, and are checked by themselves.
        single = {name: value for name, value in taken.items() if (slug, name) != (DPSGD, EPSILON)}
        parameters.checked(known[slug], single, f"{file}, {SHARED}")
        overrides[slug] = taken | chapter
    return overrides


def _epsilons(root: Path, given: dict[str, dict[str, Any]], file: str) -> tuple[float, ...]:
    """Return the budgets, each checked against the notebook and none of them given twice."""
    known = declared(source(root, DPSGD))
    section = next((name for name in (DPSGD, SHARED) if EPSILON in given.get(name, {})), DPSGD)
    where = f"{file}, {section}"
    value = given.get(section, {}).get(EPSILON, known[EPSILON].default)
    budgets = value if isinstance(value, list) else [value]
    if not budgets:
        raise InvalidParameter(f"{where}.{EPSILON} = []: give at least one budget")
    valid = [parameters.checked(known, {EPSILON: budget}, where)[EPSILON] for budget in budgets]
    names = [check_name(model_name(budget)) for budget in valid]
    if doubled := next((n for n in names if names.count(n) > 1), None):
        raise InvalidParameter(
            f"{where}.{EPSILON} = {parameters.show(value)}: two runs would be called {doubled}"
        )
    return tuple(sorted(valid))


def derived(name: str) -> str:
    """Return the file of a profile that a sweep made from another one."""
    return f"runs/{check_name(name)}/profile.yml"


def load(root: Path, name: str) -> Profile:
    """Return the profile `params/<name>.yml` of the copy of the book at `root`, or one that a sweep made.

    Raises:
        InvalidParameter: in one line, the file, the name, the value and what is allowed.
        MissingArtifact: there is no such file.
    """
    file = f"params/{check_name(name)}.yml"
    if not (root / file).is_file() and (root / derived(name)).is_file():
        file = derived(name)
    if not (root / file).is_file():
        there = ", ".join(sorted(path.stem for path in (root / "params").glob("*.yml")))
        raise MissingArtifact(f"{file} does not exist; profiles: {there or 'none'}")
    return checked(root, name, file, (root / file).read_bytes())


def checked(root: Path, name: str, file: str, content: bytes) -> Profile:
    """Return the profile that a file would be, whether it is there or not.

    Args:
        root: the repository.
        name: of the profile.
        file: its place, relative to the repository.
        content: of the file.

    Raises:
        InvalidParameter: see `load`.
    """
    given = _extended(root, _read(content, file), file)
    extends, kept = given.pop(EXTENDS, ""), _kept(given.pop(KEPT, []), file)
    overrides = _merge(root, given, file)
    epsilons = _epsilons(root, given, file)
    overrides[DPSGD].pop(EPSILON, None)
    profile = Profile(name, file, extends, kept, given, overrides, epsilons)
    for slug in SLUGS:
        profile.resolve(root, slug)
    return profile
