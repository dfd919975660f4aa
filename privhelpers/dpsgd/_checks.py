"""The check of a model before its clipped sums count, once.

A sum of clipped gradients moves by no more than the bound when a unit leaves only if the model reads each row
apart from the others and if every use of a trained weight is recorded. So on a few rows the norms that the
engine finds are compared, parameter by parameter, with one backward pass for each row alone. A comparison
shows a model that mixes rows; it cannot show that none does at all weights: `_supported` lists for which
models an epsilon is stated.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from privhelpers.dpsgd._layers import recording
from privhelpers.dpsgd._losses import Batch, losses_by_row
from privhelpers.dpsgd._recorder import Recorder, Workspace
from privhelpers.dpsgd._units import group_rows
from privhelpers.errors import PrivHelpersError, UnsupportedModel
from privhelpers.models.precision import layers_in
from privhelpers.text import quoted

# Of the largest norm of a row, by the precision of the pass: more is another gradient. Among other rows of
# the same shape no sum has another order.
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}
_SAME_SHAPE = {torch.float64: 1e-9, torch.float32: 1e-5}
_SHORT = 0.05  # for 16 bits and fewer
LayerNorms = Callable[[Batch], dict[str, torch.Tensor]]


@contextmanager
def _gradients_aside(parameters: dict[str, nn.Parameter]) -> Iterator[None]:
    """Put every `.grad` aside for a while."""
    before = {name: p.grad for name, p in parameters.items()}
    for parameter in parameters.values():
        parameter.grad = None
    try:
        yield
    finally:
        for name, parameter in parameters.items():
            parameter.grad = before[name]


@contextmanager
def require_all_captured(parameters: dict[str, nn.Parameter]) -> Iterator[None]:
    """Refuse a pass in which autograd fills a `.grad`: some use of the weight was not recorded."""
    with _gradients_aside(parameters):
        yield
        filled = [name for name, p in parameters.items() if p.grad is not None]
        if filled:
            raise UnsupportedModel(
                f"{filled[0]}: is used outside of the layers whose per-unit gradients are known; freeze it"
            )


@contextmanager
def require_stateless(model: nn.Module) -> Iterator[None]:
    """Refuse passes that write a buffer or a weight: what is kept of the rows has no noise."""

    def held() -> dict[str, tuple[torch.Tensor, int]]:
        named = (*model.named_buffers(), *model.named_parameters())
        return {name: (value, value._version) for name, value in named}

    before = held()
    yield
    for name, (value, version) in held().items():
        if name not in before or before[name][0] is not value or before[name][1] != version:
            raise UnsupportedModel(
                f"{name}: is written while the model reads, and what it keeps of the rows is neither clipped "
                "nor covered by noise; compute it before training"
            )


class _WithoutDropout(TorchFunctionMode):
    """Lets every value through and drops no layer, so that a model in training repeats its numbers.

    A random jitter of values, such as of embeddings under NEFTune, is the middle of its range.
    """

    DROPOUTS = (functional.dropout, functional.dropout1d, functional.dropout2d, functional.alpha_dropout)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in (*self.DROPOUTS, torch.dropout):
            return args[0] if args else kwargs["input"]
        if function is torch.rand and args in (([],), ((),)):  # a layer whose number is low is dropped
            return torch.ones(())
        if function is torch.Tensor.uniform_ and len(args) == 3 and not kwargs:
            return args[0].fill_((args[1] + args[2]) / 2)
        if function is functional.scaled_dot_product_attention:
            names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
            args, kwargs = (), dict(zip(names, args, strict=False)) | kwargs | {"dropout_p": 0.0}
        return function(*args, **kwargs)


@contextmanager
def _repeatable(model: PreTrainedModel) -> Iterator[None]:
    """Run the model in training as it is, without dropout, and leave the random streams as they were.

    Layers stay in training, since some mix rows there alone. They multiply in full precision, so that what is
    compared differs by little else.
    """
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), _WithoutDropout(), layers_in("highest"):
        yield


@contextmanager
def as_unsupported(model: PreTrainedModel) -> Iterator[None]:
    """Raise errors of a pass as UnsupportedModel."""
    try:
        yield
    except (RuntimeError, LookupError, AttributeError, TypeError, ValueError) as error:
        if isinstance(error, PrivHelpersError | torch.OutOfMemoryError):
            raise
        raise UnsupportedModel(
            f"{type(model).__name__}: cannot read these rows, or has a layer whose per-unit gradients are "
            f"not known: {quoted(str(error))}"
        ) from error


@contextmanager
def checking(model: PreTrainedModel) -> Iterator[None]:
    """Run the passes of a check, and refuse a model that fails in them or keeps something of them."""
    with require_stateless(model), _repeatable(model), as_unsupported(model):
        yield


def few_rows(batch: Batch) -> Batch:
    """Return three rows of a batch, or two if it has three tokens; a batch of fewer gives them rolled.

    The numbers of rows and of tokens differ, so that a layer cannot take one for the other.
    """
    rows, made = len(batch["labels"]), {name: [] for name in batch}
    length = next((value.shape[1] for value in batch.values() if value.dim() > 1), 0)
    for row in range(2 if length == 3 else 3):
        for name, value in batch.items():
            one = value[row % rows : row % rows + 1]
            rolls = value.dim() > 1 and "mask" not in name  # a mask keeps its form
            made[name].append(one.roll(row // rows, 1) if rolls else one)
    return {name: torch.cat(values) for name, values in made.items()}


def folding_layers(model: PreTrainedModel, modules: Sequence[nn.Module], batch: Batch) -> set[int]:
    """Return the identities of the layers that read all tokens of a batch in one dimension.

    What a layer's first dimension is cannot be told from one pass: it can be the length, and be the number of
    rows by chance. So the first row is read twice and three times over.

    Raises:
        UnsupportedModel: a layer's first dimension does not follow the rows.
    """
    trials = []
    for rows in (2, 3):
        same = {k: v[:1].expand(rows, *v.shape[1:]).contiguous() for k, v in batch.items()}
        trial = Recorder(group_rows(None, rows), Workspace(), {}, folding=None)
        with torch.no_grad(), recording(modules, trial):
            losses_by_row(model, same)
        trials.append(trial.folds)
    folding = set()
    for module in modules:
        times = {folds.get(id(module), 1) for folds in trials}
        if len(times) > 1:
            raise UnsupportedModel(f"{type(module).__name__}: does not keep the rows apart")
        if times != {1}:
            folding.add(id(module))
    return folding


def compare_rows(
    model: PreTrainedModel,
    parameters: dict[str, nn.Parameter],
    layer_norms: LayerNorms,
    batch: Batch,
    alone: Sequence[Batch],
) -> bool:
    """Refuse a model if a row's gradients have other norms in a batch than alone.

    Nor may they change if all other rows are replaced by it.

    Args:
        model, parameters: as in the engine, in training.
        layer_norms: of the engine.
        batch: different rows, padded to one length.
        alone: each row as a batch of its own, with padding or without.

    Returns:
        Whether there was a row to compare: one whose gradient is finite.

    Raises:
        UnsupportedModel: a norm differs by more than rounding; the parameter is named.
    """
    compared, ours = False, layer_norms(batch)
    middle = len(alone) // 2
    crowd = {k: v if "mask" in k else v[middle : middle + 1].expand_as(v) for k, v in batch.items()}
    _require_same(model, ours, layer_norms({k: v.contiguous() for k, v in crowd.items()}), middle)
    for row, one in enumerate(alone):
        torch.clear_autocast_cache()  # the engine's passes leave weights there that have no graph
        with torch.enable_grad(), _gradients_aside(parameters):
            losses_by_row(model, one).sum().backward()
            gradients = {name: p.grad for name, p in parameters.items()}
        theirs = {n: 0.0 if g is None else float(g.double().norm()) for n, g in gradients.items()}
        if not all(map(math.isfinite, theirs.values())):
            continue
        compared, most = True, max(theirs.values(), default=0.0) * _allowed(model, TOLERANCE)
        for name, norm in theirs.items():
            recorded = float(ours[name][row]) if name in ours else 0.0  # by no layer that is known
            if not abs(recorded - norm) <= most:
                raise UnsupportedModel(
                    f"{name}: its gradient's norm for one row is {norm:.6g} by autograd for that row alone, "
                    f"and {recorded:.6g} in a batch; a layer mixes rows or reads padding, or does more with "
                    "its weight than is known: replace or freeze it"
                )
    return compared


def _require_same(
    model: nn.Module, ours: dict[str, torch.Tensor], among_copies: dict[str, torch.Tensor], row: int
) -> None:
    """Refuse a model if a row's norms depend on the other rows."""
    most = _allowed(model, _SAME_SHAPE) * max(float(norms[row]) for norms in ours.values())
    for name, norms in ours.items():
        here, there = float(norms[row]), float(among_copies[name][row])
        if math.isfinite(here) and math.isfinite(there) and not abs(here - there) <= most:
            raise UnsupportedModel(
                f"{name}: its gradient's norm for one row is {here:.9g} among the rows of a batch, and "
                f"{there:.9g} among copies of itself; a layer mixes rows: replace or freeze it"
            )


def _allowed(model: nn.Module, tolerance: Mapping[torch.dtype, float]) -> float:
    """Return by how much of itself a number of this model may differ through rounding."""
    return max(tolerance.get(dtype, _SHORT) for dtype in dtypes_of(model))


def dtypes_of(model: nn.Module) -> set[torch.dtype]:
    """Return the floating types that a model computes with, including an autocast around it."""
    dtypes = {p.dtype for p in (*model.parameters(), *model.buffers()) if p.is_floating_point()}
    kind = next(model.parameters()).device.type
    shortened = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return dtypes | ({torch.get_autocast_dtype(kind)} if shortened else set())
