"""Two builds of the same profiles: the second one is refused."""

import pytest

from bookmaker.runner import build
from privhelpers.errors import RunFailed


def test_builds_that_name_their_profiles_in_another_order_do_not_refuse_each_other(tmp_path):
    """One that finds the first of them held has taken none that the other one still wants."""
    with build.alone(tmp_path, ["first"]):
        for names in (["second", "first"], ["first", "second"]):
            with pytest.raises(RunFailed, match="profile first is in use"), build.alone(tmp_path, names):
                raise AssertionError
            assert not (tmp_path / "runs" / "second").exists()
