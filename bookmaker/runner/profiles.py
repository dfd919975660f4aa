"""Profile files `params/<profile>.yml`: what the chain runs with, checked whole before anything runs.

shared:                      # every notebook that has the name
  seed: 0
private_training:            # one chapter, by its slug
  target_epsilon: [1, 8]     # here a list: one run per budget
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import yaml

from bookmaker.runner import _parameters
from bookmaker.runner.chain import DPSGD, EPSILON, PLANNED, SLUGS, model_name, source
from privhelpers import parameters
from privhelpers.artifacts import check_name
from privhelpers.errors import InvalidParameter, MissingArtifact
from privhelpers.text import quoted

SHARED = "shared"
MOST_BYTES = 10_000  # of a file: five times our longest
DEEPEST = 10
MOST_BUDGETS = 50  # a plan has some nine runs for each
_WORD = re.compile(r"\w{1,63}", re.ASCII)


class _Loader(yaml.SafeLoader):
    """YAML in which nothing is read as something else than it looks like.

    Numbers are decimal: 017 and 1:30, which YAML 1.1 reads as 15 and 90, are text, and so are yes and dates.
    Tags, doubled keys and keys that are no words are refused.
    """

    yaml_implicit_resolvers: ClassVar = {}

    def fetch_tag(self) -> None:
        self._refuse("a tag, such as !!float, is not read; write the value as it is")

    def fetch_flow_collection_start(self, token: type) -> None:
        if self.flow_level == DEEPEST:
            self._refuse(f"more than {DEEPEST} brackets inside each other")
        super().fetch_flow_collection_start(token)

    def _refuse(self, problem: str) -> NoReturn:
        raise yaml.scanner.ScannerError(None, None, problem, self.get_mark())

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen: set[str] = set()
        for key, _ in node.value:
            # What a list says in full can be longer than any memory, where its parts name each other.
            name, problem = key.value if isinstance(key, yaml.ScalarNode) else "", ""
            if not _WORD.fullmatch(name):
                told = parameters.show(name) if isinstance(key, yaml.ScalarNode) else "a list or a mapping"
                problem = f"{told}: a name is a word of letters, digits and _"
            elif name in seen:
                problem = f"{name} is given twice"
            if problem:
                raise yaml.constructor.ConstructorError(
                    None, None, f"line {key.start_mark.line + 1}: {problem}"
                )
            seen.add(name)
        return super().construct_mapping(node, deep)


for _kind, _look in {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)",
    "float": r"[-+]?(([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.inf)|\.nan",
}.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"^(?:{_look})\Z"), None)


@dataclass(frozen=True)
class Profile:
    """A profile whose every value was checked.

    Attributes:
        name: as in PROFILE=name.
        file: its file, relative to the repository.
        given: what the file says.
        overrides: by notebook, the values that differ from its defaults, budgets left out.
        epsilons: budgets of the DP runs, ascending.
    """

    name: str
    file: str
    given: dict[str, dict[str, Any]]
    overrides: dict[str, dict[str, Any]]
    epsilons: tuple[float, ...]

    def resolve(self, root: Path, slug: str, **planned: Any) -> dict[str, Any]:
        """Return all parameters of one run; `planned` values go to a notebook that declares their names."""
        notebook = source(root, slug)
        known = _parameters.declared(notebook)
        values = self.overrides[slug] | {k: v for k, v in planned.items() if k in known}
        return _parameters.resolve(notebook, values, where=self.file)


def _read(content: bytes, file: str) -> dict[str, dict[str, Any]]:
    """Return the mapping of mappings in a profile file."""
    try:
        if len(content) > MOST_BYTES:
            raise InvalidParameter(f"{file}: longer than {MOST_BYTES:,} bytes; a profile is a few lines")
        given = yaml.load(content.decode("utf-8"), Loader=_Loader)  # a SafeLoader
    except yaml.YAMLError as error:
        raise InvalidParameter(f"{file}: {_one_line(error)}") from error
    except InvalidParameter:
        raise
    # UnicodeDecodeError is a ValueError, and \UFFFFFFFF an OverflowError.
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidParameter(f"{file}: not a profile in UTF-8 YAML ({_one_line(error)})") from error
    given = {} if given is None else given
    if not isinstance(given, dict):
        raise InvalidParameter(f"{file}: must map notebook names to their parameters")
    for section, values in given.items():
        if section != SHARED and section not in SLUGS:
            raise InvalidParameter(
                f"{file}, {section}: no such notebook; known: {', '.join((SHARED, *SLUGS))}"
            )
        if values is not None and not isinstance(values, dict):
            raise InvalidParameter(f"{file}, {section} = {parameters.show(values)}: must map names to values")
        for name in values or {}:
            if name in PLANNED:
                raise InvalidParameter(f"{file}, {section}.{name}: filled in by the chain, leave it out")
    return {section: values or {} for section, values in given.items()}


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    text = quoted(getattr(error, "problem", None) or error)
    return f"line {mark.line + 1}: {text}" if mark else text


def _merge(root: Path, given: dict[str, dict[str, Any]], file: str) -> dict[str, dict[str, Any]]:
    """Return the overrides of each notebook: shared values it has a name for, then its own."""
    known = {slug: _parameters.declared(source(root, slug)) for slug in SLUGS}
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
        _parameters.check(source(root, slug), single, where=f"{file}, {SHARED}")
        overrides[slug] = taken | chapter
    return overrides


def _epsilons(root: Path, given: dict[str, dict[str, Any]], file: str) -> tuple[float, ...]:
    """Return the budgets, each checked against the notebook and none of them given twice."""
    notebook = source(root, DPSGD)
    known = _parameters.declared(notebook)
    if EPSILON not in known:
        raise InvalidParameter(f"{DPSGD}: its parameters cell must declare {EPSILON}")
    section = next((name for name in (DPSGD, SHARED) if EPSILON in given.get(name, {})), DPSGD)
    where = f"{file}, {section}"
    value = given.get(section, {}).get(EPSILON, known[EPSILON].default)
    budgets = value if isinstance(value, list) else [value]
    if not budgets:
        raise InvalidParameter(f"{where}.{EPSILON} = []: give at least one budget")
    if len(budgets) > MOST_BUDGETS:
        raise InvalidParameter(f"{where}.{EPSILON}: {len(budgets)} budgets; give {MOST_BUDGETS} at most")
    checked = [_parameters.check(notebook, {EPSILON: budget}, where=where)[EPSILON] for budget in budgets]
    names = [check_name(model_name(budget)) for budget in checked]
    if doubled := next((n for n in names if names.count(n) > 1), None):
        raise InvalidParameter(
            f"{where}.{EPSILON} = {parameters.show(value)}: two runs would be called {doubled}"
        )
    return tuple(sorted(checked))


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
    with open(root / file, "rb") as handle:
        return checked(root, name, file, handle.read(MOST_BYTES + 1))


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
    given = _read(content, file)
    overrides = _merge(root, given, file)
    epsilons = _epsilons(root, given, file)
    overrides[DPSGD].pop(EPSILON, None)
    profile = Profile(name, file, given, overrides, epsilons)
    for slug in SLUGS:
        profile.resolve(root, slug)
    return profile
