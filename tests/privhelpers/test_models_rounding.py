"""A copy in fewer bits: few values a row, each near its own, and the original as it was."""

import pytest
import torch

from privhelpers import models


@pytest.fixture
def model():
    torch.manual_seed(0)
    tied = torch.nn.Linear(64, 12)
    return torch.nn.ModuleDict({"first": tied, "again": tied, "last": torch.nn.Linear(12, 3)})


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_each_row_takes_few_values_each_near_its_own(model, bits):
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    copied = models.rounded(model, bits)
    for name, weight in copied.named_parameters():
        assert torch.equal(dict(model.named_parameters())[name], before[name])
        if weight.ndim == 1:
            assert torch.equal(weight, before[name])
            continue
        unit = before[name].abs().amax(1) / (2 ** (bits - 1) - 1)
        assert (weight - before[name]).abs().amax(1).le(unit / 2 * 1.0001).all()
        assert all(len(row.unique()) <= 2**bits - 1 for row in weight)
        assert not torch.equal(weight, before[name])


def test_tied_matrices_stay_tied(model):
    copied = models.rounded(model, 4)
    assert copied["first"].weight is copied["again"].weight
    assert copied["first"].weight is not model["first"].weight
