"""Training that repeats to the bit: what is asked of a GPU is asked for, and taken back."""

import pytest
import torch
from torch.utils import deterministic

from privhelpers.models.repeatable import repeatable_on


def state():
    return torch.get_deterministic_debug_mode(), deterministic.fill_uninitialized_memory


@pytest.fixture(params=["default", "warn", "error"])
def before(request, monkeypatch):
    """Return the state that the caller had, whatever it is; the environment is put back afterwards."""
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    torch.set_deterministic_debug_mode(request.param)
    yield state()
    torch.set_deterministic_debug_mode("default")


def test_a_gpu_is_asked_for_it_meanwhile_and_a_failure_takes_it_back(before):
    with pytest.raises(KeyError), repeatable_on(torch.device("cuda")):
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert not deterministic.fill_uninitialized_memory
        raise KeyError
    assert state() == before
    with repeatable_on(torch.device("cpu")):
        assert state() == before
