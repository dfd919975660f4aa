"""The door of a step: at what rate it draws, how far one patient moves it, and what it is given."""

import torch
from faults.harness import base
from faults.harness.registry import Case, Trial, fault
from scipy.stats import binomtest
from torch import nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertLMHeadModel,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
)

from privhelpers import dpsgd
from privhelpers.accounting import PrivacySpent
from privhelpers.dpsgd import _batches

WORDS, WIDTH, LONGEST, BOUND = 60, 16, 40, 0.5
RARELY = 1e-9  # a right rate is called wrong once in as many trials


class _OverPositions(nn.Module):
    """Adds the mean over a row, its padding among it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x.mean(1, keepdim=True)


class _OverRows(nn.Module):
    """Adds the mean over a batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x.mean(0, keepdim=True)


class _Capacity(nn.Module):
    """Treats the tokens beyond a number of a batch otherwise, whosever they are."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = torch.arange(x.shape[0] * x.shape[1]).view(x.shape[:2]) < self.most
        return torch.where(kept[..., None], x, -2 * x.flip(-1))


def _gpt2() -> PreTrainedModel:
    sizes = {"n_positions": 64, "n_embd": WIDTH, "n_layer": 1, "n_head": 2, "initializer_range": 0.5}
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    return GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, bos_token_id=0, eos_token_id=0, **sizes, **rates))


def _bart() -> PreTrainedModel:
    both = {f"{side}_{part}": 1 for side in ("encoder", "decoder") for part in ("layers", "attention_heads")}
    both |= {f"{side}_ffn_dim": 32 for side in ("encoder", "decoder")}
    tokens = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"), 0)
    rates = {"dropout": 0.0, "attention_dropout": 0.0, "init_std": 0.5}
    sizes = {"vocab_size": WORDS, "d_model": WIDTH, "max_position_embeddings": 64}
    return BartForConditionalGeneration(BartConfig(**both, **tokens, **rates, **sizes))


def _bert() -> PreTrainedModel:
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.5}
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    return BertLMHeadModel(BertConfig(vocab_size=WORDS, max_position_embeddings=64, **sizes, **rates))


def _rows(t: Trial) -> list[list[list[int]]]:
    """Return notes of a few patients, short and long ones, as token ids."""

    def note() -> list[int]:
        length = 2 + int(t.rng.integers(t.rng.choice((4, LONGEST))))
        return [0, *map(int, t.rng.integers(1, WORDS, length)), 0]

    return [[note() for _ in range(1 + int(t.rng.integers(3)))] for _ in range(2 + t.below(5))]


@fault("one patient leaves, and the clipped sum moves by no more than the bound, or the model is refused")
def _(t: Trial) -> Case:
    layers = {
        "none": lambda: None,
        "over positions": _OverPositions,
        "over rows": _OverRows,
        "capacity": lambda: _Capacity(2 + t.below(120)),
    }
    family = t.choose(("gpt2", "gpt2", "bart", "bert"))
    torch.manual_seed(t.below(1000))
    model = {"gpt2": _gpt2, "bart": _bart, "bert": _bert}[family]().train()
    if family == "gpt2" and (layer := layers[t.choose(layers)]()) is not None:
        model.transformer.ln_f = nn.Sequential(model.transformer.ln_f, layer)
    rows, max_rows = _rows(t), 1 + t.below(8)
    rest = rows.copy()
    del rest[t.below(len(rows))]

    def clipped_sum(rows: list, engine: dpsgd.ClippedGradients, *, mask: bool) -> torch.Tensor:
        total = engine.room()
        for batch, unit in _batches.micro_batches(rows, max_rows, 0, attention_mask=mask):
            engine.add(batch, unit, into=total)
        return torch.cat([part.flatten().double() for part in total.values()])

    def call() -> bool:
        mask = _batches.needs_mask(model, rows, 0, public=[[*range(1, 30)], [*range(1, 9)]])
        engine = dpsgd.ClippedGradients(model, max_grad_norm=BOUND)
        moved = clipped_sum(rows, engine, mask=mask) - clipped_sum(rest, engine, mask=mask)
        return float(moved.norm()) <= BOUND * (1 + 1e-4)

    return Case(call, right=True)


@fault("patients enter at the rate that is accounted, whatever the type of torch's numbers")
def _(t: Trial) -> Case:
    rate = min(1.0, 10.0 ** -(9 * float(t.rng.random())))
    units = min(2_000_000, 10 + int(20 / rate))
    t.note((rate, units))
    torch.set_default_dtype(t.choose((torch.float32, torch.float64, torch.bfloat16, torch.float16)))
    generator = torch.Generator().manual_seed(t.below(10**6))

    def call() -> bool:
        draws = list(dpsgd.poisson_draws(generator, units=units, sample_rate=rate, steps=3))
        return bool(binomtest(sum(map(len, draws)), 3 * units, rate).pvalue > RARELY)

    return Case(call, right=True, refusal=False)


@fault("a gradient that is given and fits no table of the model")
def _(t: Trial) -> Case:
    model = _gpt2()
    given = {
        "parameter": "transformer.wte.weight",
        "row": torch.tensor([0, WORDS - 1]),
        "gradient": torch.ones(2, WIDTH),
    }
    pools = {
        "parameter": ("wte", "", None, 3, "transformer.ln_f.bias", "lm_head.weight.x", "\0", "transformer"),
        "row": tuple(
            map(torch.tensor, ([0], [0, WORDS], [-1, 0], [[0], [1]], [0.0, 1.0], [True, False], []))
        ),
        "gradient": tuple(torch.ones(*shape) for shape in ((2,), (2, 3), (1, WIDTH), (2, WIDTH, 1), (0, 0))),
    }
    which = t.choose(pools)
    at = t.below(len(pools[which]))
    engine = dpsgd.ClippedGradients(model, max_grad_norm=BOUND)
    changed = given | {which: pools[which][at]}
    return Case(lambda: engine.add(dpsgd.GivenGradients(**changed), into=engine.room()))


@fault("notes of strange length or characters", seconds=20)
def _(t: Trial) -> Case:
    """They are trained on at the epsilon of the plan, or refused."""
    texts, tokenizer, model = base.hospital()
    texts = [list(notes) for notes in texts]
    at = t.below(len(texts))
    texts[at] = t.choose(
        (
            *(
                [""],
                [" "],
                ["\n"],
                ["\0"],
                ["\u200b"],
                ["\U0001f9ea" * 9],
                ["x"],
                ["x " * 3000],
                ["ward " * 31],
            ),
            *([], ["<|endoftext|>"], ["a", "", "b"], ["\ufffd" * 40], ["\u0301" * 50], ["same"] * 300),
        )
    )

    def call() -> tuple[type, float]:
        settings = dpsgd.Settings(learning_rate=1e-2)
        chance = dpsgd.research(5)
        log = dpsgd.train(model, tokenizer, texts, base.plan(), settings, chance=chance, progress=False)
        return type(log.spent), log.spent.epsilon

    return Case(call, right=(PrivacySpent, base.plan().spent.epsilon))


@fault("another model goes on from a checkpoint", seconds=20)
def _(t: Trial) -> Case:
    folder, model = t.copy(base.kept()), base.hospital()[2]
    name, value = t.choose(
        (
            *(("resid_pdrop", 0.2), ("activation_function", "relu"), ("layer_norm_epsilon", 1e-3)),
            *(("tie_word_embeddings", False), ("scale_attn_weights", False), ("attn_pdrop", 0.1)),
        )
    )
    setattr(model.config, name, value)
    return Case(lambda: base.train(folder), watch=(folder,))
