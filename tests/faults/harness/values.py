"""Values that no argument should take, and values that only look unusual."""

import math

import numpy as np

NO_NUMBERS = (
    *(None, "1", "", "nan", b"1", [], [1.0], {}, (), 1j, object, True, False),
    *(math.nan, math.inf, -math.inf, np.float64("nan"), np.array([1.0, 2.0])),
    *(10**400, -(10**400)),
)
NEGATIVE = (-1, -1.0, -1e-300, -5e-324, -(10**20), -0.5)
ZERO = (0, 0.0, -0.0)
NO_COUNTS = (*NO_NUMBERS, *NEGATIVE, *ZERO, 1.5, 1.0, 1e300)
NO_TEXTS = (None, 1, 1.5, True, b"x", [], {}, object)
HOSTILE_NAMES = (
    *("", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "CON:", "a\0b", "a\nb", "-x", "_x", ".x"),
    *("x" * 64, "x" * 5000, "A", "é", "а", "a b", "a\u202eb", "a\u200bb", "\ud800", "$(id)", "`id`", "a;b"),
)
