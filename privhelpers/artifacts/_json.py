"""Strict JSON: what is written is read back, and what other programs read otherwise is refused."""

import json
import math
import re

from privhelpers.errors import DamagedArtifact, InvalidParameter

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def to_json(value: object, indent: int | None = 1) -> bytes:
    """Return `value` as UTF-8 JSON with sorted keys and a line end; on one line if `indent` is None.

    Raises:
        InvalidParameter: JSON cannot represent it, such as NaN, infinity, a lone surrogate, or a cycle.
    """
    try:
        text = json.dumps(value, allow_nan=False, indent=indent, sort_keys=True, ensure_ascii=False)
        return f"{text}\n".encode()
    except (TypeError, ValueError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        why = " ".join(str(error).split())[:200]
        raise InvalidParameter(
            f"a value cannot be written as JSON ({why}); store plain, finite values"
        ) from None


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):  # Python reads 1e400 as infinity
        raise ValueError("a number is too large for a float64")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_no_duplicates, parse_constant=_refuse_constant, parse_float=_finite
)


def parse_json(text: str | bytes, where: str) -> object:
    """Return parsed JSON.

    Args:
        text: one JSON value.
        where: its place, for the message.

    Raises:
        DamagedArtifact: bad syntax, a duplicate key, NaN, infinity or a number too large for a float64, bytes
            that are not UTF-8, or half of a character (a lone surrogate).
    """
    try:
        text = text if isinstance(text, str) else text.decode("utf-8")
        if text.startswith("\ufeff"):
            raise ValueError("begins with a byte order mark; save it as UTF-8 without one")
        value = _DECODER.decode(text)
        if _SURROGATE.search(text):  # perhaps half of a character, which cannot be printed or written again
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        raise DamagedArtifact(f"{where}: {error}") from error
