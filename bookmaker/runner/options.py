"""Options as `make` passes them: an empty one is one that nobody gave."""

import argparse
from collections.abc import Callable
from typing import Any

from privhelpers.validate import shown


def count(text: str) -> int | None:
    """Return a whole number of 1 or more, or None for an empty text."""
    if text and int(text) < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return int(text) if text else None


def port(text: str) -> int:
    """Return a port of this machine, 8000 for an empty text."""
    if not 1 <= int(text or 8000) <= 65535:
        raise argparse.ArgumentTypeError("must be in 1 to 65535")
    return int(text or 8000)


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
