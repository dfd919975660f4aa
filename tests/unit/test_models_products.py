"""Products by oneDNN: those of PyTorch to rounding, whatever lies how in memory, or PyTorch's own."""

import subprocess
import sys

import pytest
import torch

from privhelpers.models import _products

SIZES = [(200, 64, 96), (96, 300, 40), (1500, 64, 24), (130, 96, 2000)]
LAYOUTS = {
    "rows": lambda m: m.contiguous(),
    "columns": lambda m: m.t().contiguous().t(),
    "a part of a wider matrix": lambda m: torch.cat([m, m], 1)[:, : m.shape[1]],
    "a part of a wider matrix in columns": lambda m: torch.cat([m.t(), m.t()], 1)[:, : m.shape[0]].t(),
    "every second column": lambda m: m.repeat_interleave(2, 1)[:, ::2],
    "one row for all": lambda m: m[:1].expand_as(m),
    "one column for all": lambda m: m[:, :1].expand_as(m),
    "one value for all": lambda m: m[:1, :1].expand_as(m),
}


@pytest.fixture
def sent(monkeypatch):
    """Count the products that go to oneDNN, from a size that every test here has."""
    counted, product = [], _products._product
    monkeypatch.setattr(_products, "_LEAST", 1000)
    monkeypatch.setattr(_products, "_LEAST_IN_BATCH", 1000)
    monkeypatch.setattr(_products, "_product", lambda *sides: counted.append(sides) or product(*sides))
    return counted


def drawn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def same(ours, left, right, added=0.0):
    expected = left.double() @ right.double() + added
    torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=1e-4)
    assert ours.is_contiguous()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", LAYOUTS)
def test_a_product_is_the_same_however_its_sides_lie_in_memory(size, first, second, sent):
    rows, inner, columns = size
    left, right = LAYOUTS[first](drawn(rows, inner)), LAYOUTS[second](drawn(inner, columns))
    same(_products.mm(left, right), left, right)
    bias = drawn(columns)
    same(_products.addmm(bias, left, right), left, right, bias.double())
    assert sent


def test_a_batch_of_products(sent):
    left, right = drawn(5, 30, 40).transpose(1, 2), drawn(5, 30, 20)
    place = torch.full((7, 40, 20), torch.nan)
    assert _products.bmm_out(left, right, out=place[1:6]) is not None and len(sent) == 5
    torch.testing.assert_close(place[1:6], torch.einsum("bij,bjk->bik", left, right), rtol=1e-5, atol=1e-5)
    assert place[0].isnan().all() and place[6].isnan().all()
    fresh = _products.bmm_out(left, right, out=left.new_empty(0))  # PyTorch gives it its size
    torch.testing.assert_close(fresh, place[1:6], rtol=1e-5, atol=1e-5)


def test_everything_else_is_left_to_pytorch(sent):
    left, right = drawn(40, 50), drawn(50, 60)
    whole = (10 * left).round(), (10 * right).round()
    expected = whole[0].double() @ whole[1].double()
    for kind in (torch.float64, torch.int64):
        sides = (side.to(kind) for side in whole)
        assert torch.equal(_products.mm(*sides).double(), expected)
    scaled = _products.addmm(drawn(40, 60), left, right, beta=0.5, alpha=2)
    expected = 0.5 * drawn(40, 60) + 2 * left.double() @ right.double()
    torch.testing.assert_close(scaled.double(), expected, rtol=1e-5, atol=1e-4)
    assert _products.mm(drawn(0, 50), right).shape == (0, 60)
    assert not _products.mm(drawn(40, 0), drawn(0, 60)).any()
    assert not sent
    with pytest.raises(RuntimeError, match="same dtype"):
        _products.mm(left, right.double())
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        _products.mm(left, left)


def test_what_is_not_finite_stays_so(sent):
    left, right = drawn(40, 50), drawn(50, 60)
    left[3, 4], left[5, 6] = torch.inf, torch.nan
    product = _products.mm(left, right)
    assert product[5].isnan().all() and not product[3].isfinite().any()
    assert product[[0, 1, 2, 4]].isfinite().all()


TRAIN = """
import torch
from privhelpers.models import _products
_products.use_torch()  # oneDNN may be in use since the import
_products.slow_by_default = lambda vendor, capability: {forced}
used = _products.use_onednn()
x = torch.randn(512, 96, generator=torch.Generator().manual_seed(0))
layer = torch.nn.Linear(96, 64).requires_grad_(True)
with torch.no_grad():
    layer.weight.copy_(torch.arange(96 * 64).view(64, 96).sin())
    layer.bias.fill_(0.1)
loss = layer(x).square().mean() + torch.func.vmap(lambda row: layer(row).sum())(x).mean()
first = torch.autograd.grad(loss, layer.weight, create_graph=True)[0]
second = torch.autograd.grad(first.square().sum(), layer.weight)[0]
print(used, float(first.double().norm()), float(second.double().norm()))
"""


def test_gradients_of_both_orders_go_the_same_way():
    """In a process of its own, since a kernel is replaced for all that a process does."""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", TRAIN.format(forced=forced)], check=True, capture_output=True, text=True
        ).stdout.split()
        for forced in (True, False)
    ]
    assert [used for used, *_ in outputs] == [str(torch.backends.mkldnn.is_available()), "False"]
    for ours, theirs in zip(outputs[0][1:], outputs[1][1:], strict=True):
        assert float(ours) == pytest.approx(float(theirs), rel=1e-5)
