"""The one dialect of YAML in which every file is read, without the surprises of version 1.1."""

import math
import re
from typing import ClassVar, NoReturn

import yaml

from privhelpers.text import inert, quoted

_DEEPEST = 10  # brackets inside each other
_DIGITS, _POWER = r"[0-9]+(?:_[0-9]+)*", r"[eE][-+]?[0-9]+"


class _Loader(yaml.SafeLoader):
    """YAML in which nothing is read as something other than it looks like.

    Numbers are decimal: 017 and 1:30, which YAML 1.1 reads as 15 and 90, are text, and so are yes, off and
    dates; 1e-5, which it reads as text, is a number. Tags, names that are given twice and merged mappings
    are refused.
    """

    yaml_implicit_resolvers: ClassVar = {}

    def fetch_tag(self) -> None:
        self._refuse("a tag, such as !!float, is not read; write the value as it is", self.get_mark())

    def fetch_flow_collection_start(self, token: type) -> None:
        if self.flow_level == _DEEPEST:
            self._refuse(f"more than {_DEEPEST} brackets inside each other", self.get_mark())
        super().fetch_flow_collection_start(token)

    def _refuse(self, problem: str, mark: yaml.Mark) -> NoReturn:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen: set[object] = set()
        for key, _ in node.value:
            # Showing a whole list can take more memory than there is, if its parts are aliases of each other.
            told = quoted(ascii(key.value)) if isinstance(key, yaml.ScalarNode) else "a list or a mapping"
            if told == "a list or a mapping" or key.value in ("", "<<") or inert(key.value) != key.value:
                self._refuse(f"{told}: a name is a word or a few words", key.start_mark)
            name = self.construct_object(key)
            if name in seen:
                self._refuse(f"{quoted(name)} is given twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.Node) -> object:
        value = super().construct_scalar(node)
        if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            self._refuse("contains half of a character (a lone surrogate)", node.start_mark)
        return value

    def construct_yaml_float(self, node: yaml.Node) -> float:
        value, written = super().construct_yaml_float(node), node.value.lower()
        digits = written.partition("e")[0]
        if (math.isinf(value) and "inf" not in written) or (not value and re.search("[1-9]", digits)):
            self._refuse("a number is too large or too small for a float64", node.start_mark)
        return value


_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
for _kind, _look in {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)",
    "float": rf"[-+]?(({_DIGITS}\.[0-9]*|\.[0-9]+)({_POWER})?|{_DIGITS}{_POWER}|\.inf|\.Inf|\.INF)"
    r"|\.nan|\.NaN|\.NAN",
}.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"^(?:{_look})\Z"), None)


def parse_yaml(text: str) -> object:
    """Return parsed YAML in the one dialect of every file that we read.

    It is YAML without the surprises of version 1.1. A number is decimal, perhaps with an exponent (`1e-5`);
    `yes`, `off`, `017`, `1:30` and dates are text. Names that are given twice, merged mappings (`<<`), tags,
    and numbers beyond a float64 are refused.

    Raises:
        ValueError: it is not such YAML, or contains half of a character; the message is one short line, which
            begins with the number of the line at fault if that is known.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{line}{quoted(error.problem or error)}") from error
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:  # \UFFFFFFFF overflows
        raise ValueError(quoted(error)) from error
