"""Which cases of a grid wait for the night, see the mark `nightly`."""

from collections.abc import Collection, Iterable

import pytest


def sampled(cases: Iterable, quick: Collection) -> list:
    """Return cases as parameters of a test: the night tries those that are not in `quick`."""
    known = list(cases)
    assert all(case in known for case in quick), "a quick case that is no case"
    marks = {False: pytest.mark.nightly, True: ()}
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks[case in quick])
        for case in known
    ]
