"""Options as `make` passes them: an empty one is one that nobody gave."""

import argparse
import math
from collections.abc import Callable
from typing import Any

from privhelpers.validate import shown


def _whole(text: str, least: int, most: float, words: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{shown(text)}: must be {words}")
    return number


def count(text: str) -> int | None:
    """Return a whole number of 1 or more, or None for an empty text."""
    return _whole(text, 1, math.inf, "a whole number of 1 or more") if text else None


def port(text: str) -> int:
    """Return a port of this machine, 8000 for an empty text."""
    return _whole(text or "8000", 1, 65535, "a whole number in 1 to 65535")


class Words(argparse.Action):
    """Collects values of a kind that stand in one text or in several: `--seeds "0 1"` or `--seeds 0 1`."""

    def __init__(self, *args: Any, kind: Callable[[str], Any] = str, **kwargs: Any) -> None:
        """Take what converts one value, which may raise ValueError."""
        super().__init__(*args, nargs="+", **kwargs)
        self._kind = kind

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any
    ) -> None:
        """Keep the converted values; none at all leave the default."""
        try:
            found = [self._kind(word) for text in values for word in text.split()]
        except ValueError:
            parser.error(
                f"{self.option_strings[0]} {shown(' '.join(values))}: must be numbers, with blanks between"
            )
        if found:
            setattr(namespace, self.dest, found)
