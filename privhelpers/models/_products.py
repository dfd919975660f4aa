"""Matrix products by oneDNN where PyTorch's own library leaves half of the processor unused.

PyTorch multiplies float32 matrices on a CPU with MKL, which gives an AMD processor with AVX-512 the kernels
of one without: about 90 GFLOP/s a core where oneDNN, which PyTorch has on board too, reaches 200. There,
products that are large enough go to oneDNN, for whoever asks for them: layers, autograd and the private
engine. They are the same to rounding. Every other processor, type and size is left alone.
"""

import os
import platform
import warnings
from pathlib import Path

import torch

_LEAST = 2**20  # multiplications of one product: below, a call costs more than the kernel saves
_LEAST_IN_BATCH = 2**23  # of each product of a batch, which is multiplied one by one
_ATEN = torch.ops.aten
_library: torch.library.Library | None = None  # while it lives, its kernels are in use


def _vendor() -> str:
    """Return who made the processor, as far as the system says."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:  # not Linux
        return platform.processor()


def slow_by_default(vendor: str, capability: str) -> bool:
    """Return whether PyTorch's own products leave half of such a processor unused.

    >>> slow_by_default("vendor_id : AuthenticAMD", "AVX512")
    True
    >>> slow_by_default("vendor_id : GenuineIntel", "AVX512")
    False
    """
    return "AuthenticAMD" in vendor and capability == "AVX512"


def _dense(matrix: torch.Tensor) -> torch.Tensor:
    """Return the matrix in a layout that oneDNN reads: rows or columns that lie side by side."""
    (rows, columns), (down, across) = matrix.shape, matrix.stride()
    by_row, by_column = across == 1 and down >= columns, down == 1 and across >= rows
    return matrix if by_row or by_column else matrix.contiguous()


def _fits(left: torch.Tensor, right: torch.Tensor, dimensions: int, least: int) -> bool:
    """Return whether oneDNN may take a product: float32, shapes that match, enough to do."""
    return (
        left.dtype == right.dtype == torch.float32
        and left.dim() == right.dim() == dimensions
        and left.shape[-1] == right.shape[-2]
        and left.shape[-2] * left.shape[-1] * right.shape[-1] >= least
    )


def _product(left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    # oneDNN copies a left side that lies in columns; where the right side is much smaller, it copies that.
    if bias is None and left.stride(1) != 1 and left.shape[0] > 2 * right.shape[1]:
        return _product(right.t(), left.t()).t().contiguous()
    left, turned = _dense(left), _dense(right.t())
    return torch.ops.mkldnn._linear_pointwise(left, turned, bias, "none", [], "")


def mm(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the product of two matrices, as `torch.mm` does."""
    if _fits(left, right, 2, _LEAST):
        return _product(left, right)
    return _ATEN.mm.out(left, right, out=left.new_empty(0))


def addmm(
    added: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    """Return a product plus a bias, as `torch.addmm` does."""
    is_bias = added.dtype == torch.float32 and added.shape == right.shape[-1:] and added.is_contiguous()
    if is_bias and beta == alpha == 1 and _fits(left, right, 2, _LEAST):
        return _product(left, right, added)
    return _ATEN.addmm.out(added, left, right, beta=beta, alpha=alpha, out=left.new_empty(0))


def bmm_out(left: torch.Tensor, right: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
    """Write the products of a batch of matrices to `out`, as `torch.bmm` does."""
    shape = (len(left), left.shape[-2], right.shape[-1])
    if _fits(left, right, 3, _LEAST_IN_BATCH) and len(left) == len(right) and out.shape == shape:
        for product, one, other in zip(out, left, right, strict=True):
            product.copy_(_product(one, other))
        return out
    nothing = left.new_zeros(())
    return _ATEN.baddbmm.out(nothing, left, right, beta=0, out=out)


_KERNELS = {"mm": mm, "addmm": addmm, "bmm.out": bmm_out}


def use_onednn() -> bool:
    """Send float32 products to oneDNN where it is worth it; return whether they go there now."""
    global _library
    capability = torch.backends.cpu.get_cpu_capability()
    if _library is None and torch.backends.mkldnn.is_available() and slow_by_default(_vendor(), capability):
        # Each size of a product keeps 0.7 MiB of code; read when the first one is made.
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "512")
        _library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel was replaced, which is the purpose
            for name, kernel in _KERNELS.items():
                _library.impl(name, kernel, "CPU", allow_override=True)
    return _library is not None


def use_torch() -> None:
    """Give all products back to PyTorch."""
    global _library
    if _library is not None:
        _library._destroy()
    _library = None
