"""Reading a note off the linear algebra of its gradient: a division, and the span check."""

import copy

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from privhelpers import validate
from privhelpers.attacks.inversion.gradients import POSITIONS, TOKENS, Gradient, attention_weight

_MARGIN = 1.1  # over the edge of the noise's singular values, below which a direction is taken for noise
_ROUNDING = 3e-6  # a direction weaker than this share of the strongest is float32 rounding
PASSES = 1e-2  # distance of a unit vector from the span below which a candidate passes


def divide(gradient: Gradient, *, length: int, noise: float = 0.0) -> list[int]:
    """Return the token at each position from the gradients of the two embedding tables alone.

    The row of a position is the gradient at that position's input, and the row of a token is the sum over its
    positions: one table is the other times the note's one-hot matrix, so that dividing gives the note. Exact
    for one note on a model whose output matrix is not the token table.

    Args:
        gradient: of one note, by name.
        length: tokens of the note, end tokens left out; 1 or more.
        noise: standard deviation of the noise on each entry, which is kept from blowing up; 0 or more.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    validate.positive_int(length=length)
    validate.non_negative(noise=noise)
    by_token = gradient[TOKENS].double()
    by_position = gradient[POSITIONS][: length + 1].double()
    left, values, right = torch.linalg.svd(by_position, full_matrices=False)
    ridge = noise**2 * sum(by_position.shape)  # what noise alone adds to a squared singular value, or less
    keep = values > _ROUNDING * values[0]
    inverse = (right[keep].T * (values / (values**2 + ridge))[keep]) @ left[:, keep].T
    return (by_token @ inverse)[:, 1:].argmax(0).tolist()


def input_span(weight_gradient: torch.Tensor, *, noise: float = 0.0) -> torch.Tensor:
    """Return an orthonormal basis of what a layer read, from the gradient of its weight; shape [width, rank].

    Args:
        weight_gradient: of a Conv1D, shape [width, outputs].
        noise: standard deviation of the noise on each entry; directions that it explains are left out.

    Source: Petrov et al. 2024, without noise; with noise, the largest singular value of an m by n matrix of
    unit normals is close to sqrt(m) + sqrt(n).
    """
    validate.non_negative(noise=noise)
    width, outputs = weight_gradient.shape
    left, values, _ = torch.linalg.svd(weight_gradient.double(), full_matrices=False)
    edge = max(_MARGIN * noise * (width**0.5 + outputs**0.5), _ROUNDING * float(values[0]))
    # Inputs have mean zero, so width - 1 directions are all there are: a span of all accepts everything.
    rank = min(max(int((values > edge).sum()), 1), width - 2)
    return left[:, :rank]


def span_distances(inputs: torch.Tensor, basis: torch.Tensor) -> torch.Tensor:
    """Return how far each vector, scaled to length 1, lies from the span; in [0, 1].

    Args:
        inputs: shape [..., width].
        basis: orthonormal columns, shape [width, rank].
    """
    unit = functional.normalize(inputs.double(), dim=-1)
    return (unit - (unit @ basis) @ basis.T).norm(dim=-1)


@torch.no_grad()
def first_inputs(model: PreTrainedModel, *, length: int) -> torch.Tensor:
    """Return what the first attention layer reads for every token at every position of a note.

    Returns:
        Shape [length, vocabulary, width]; entry [t] belongs to position t + 1, after the first end token.
    """
    inner = model.transformer
    places = inner.wpe.weight[1 : length + 1, None, :]
    return inner.h[0].ln_1(inner.wte.weight[None] + places)


@torch.no_grad()
def _first_distances(model: PreTrainedModel, basis: torch.Tensor, *, length: int) -> torch.Tensor:
    """Return `span_distances(first_inputs(model), basis)`, shape [length, vocabulary], in less time.

    The norm takes the mean away and scales, so that a candidate is (token + position) / scale + shift: its
    length follows from products of tokens with positions, and no vector of a pair is ever formed.
    """
    inner, norm = model.transformer, model.transformer.h[0].ln_1
    tables = (inner.wte.weight.double(), inner.wpe.weight[1 : length + 1].double())
    tokens, places = (table - table.mean(-1, keepdim=True) for table in tables)
    shift = norm.bias.double()

    def squares(of_tokens: torch.Tensor, of_places: torch.Tensor) -> torch.Tensor:
        products = 2 * of_places @ of_tokens.T
        return products + of_places.square().sum(-1)[:, None] + of_tokens.square().sum(-1)

    scale = (squares(tokens, places) / tokens.shape[1] + norm.eps).sqrt()

    def lengths(of_tokens: torch.Tensor, of_places: torch.Tensor, of_shift: torch.Tensor) -> torch.Tensor:
        along = (of_places @ of_shift)[:, None] + of_tokens @ of_shift
        return squares(of_tokens, of_places) / scale**2 + 2 * along / scale + of_shift @ of_shift

    tokens, places = norm.weight.double() * tokens, norm.weight.double() * places
    inside = lengths(tokens @ basis, places @ basis, shift @ basis)
    return (1 - inside / lengths(tokens, places, shift)).clamp_min(0).sqrt()


def check_span(
    model: PreTrainedModel, gradient: Gradient, *, length: int, noise: float = 0.0
) -> tuple[list[int], torch.Tensor]:
    """Return the token at each position whose input lies closest to the span of the first layer's gradient.

    Args:
        model: the weights that the gradient was taken at; tied or not.
        gradient: of one note, by name.
        length: tokens of the note, end tokens left out.
        noise: standard deviation of the noise on each entry of the gradient, which the attacker knows.

    Returns:
        (token ids, distances of every candidate, shape [length, vocabulary]).

    Source: Petrov et al. 2024.
    """
    validate.positive_int(length=length)
    basis = input_span(gradient[attention_weight(0)], noise=noise)
    distances = _first_distances(model, basis, length=length)
    return distances.argmin(1).tolist(), distances


def _up_to_second_block(model: PreTrainedModel) -> nn.Module:
    """Return a model whose last hidden state is what the second attention layer reads."""
    front = copy.deepcopy(model.transformer)
    front.ln_f = front.h[1].ln_1
    front.h = front.h[:1]
    return front


@torch.no_grad()
def check_batch(
    model: PreTrainedModel, gradient: Gradient, *, rows: int, length: int, end: int
) -> torch.Tensor:
    """Return the notes of a batch, built token by token.

    The first layer says which tokens may stand at a position; what the second layer reads depends on the
    whole text before, so its span says which of them continues which note. Where the second layer's span is
    full, the tokens closest to the first layer's span are returned position by position.

    Args:
        model: the weights that the gradient was taken at, with two blocks or more.
        gradient: of the mean loss of the batch, by name.
        rows: notes in the batch.
        length: tokens of each note, end tokens left out.
        end: id of the end token.

    Returns:
        Token ids, shape [notes found, length]; fewer than `rows` where notes are equal.

    Source: Petrov et al. 2024, for decoders.
    """
    validate.positive_int(rows=rows, length=length)
    _, first = check_span(model, gradient, length=length)
    weight_gradient = gradient[attention_weight(1)]
    basis = input_span(weight_gradient)
    if basis.shape[1] == len(weight_gradient) - 2:  # a full span: nothing says which token follows which
        return first.argsort(1)[:, :rows].T
    front = _up_to_second_block(model)
    beam = torch.full((1, 1), end)
    cache = front(input_ids=beam, use_cache=True).past_key_values
    for distances in first:
        close = distances.argsort()[: max(int((distances < PASSES).sum()), rows)]
        grown = torch.cat([beam.repeat_interleave(len(close), 0), close.repeat(len(beam))[:, None]], 1)
        cache.batch_repeat_interleave(len(close))
        read = front(input_ids=grown[:, -1:], past_key_values=cache).last_hidden_state[:, -1]
        found = span_distances(read, basis)
        kept = found.argsort()[: min(rows, max(int((found < PASSES).sum()), 1))]
        cache.batch_select_indices(kept)
        beam = grown[kept]
    return beam[:, 1:]
