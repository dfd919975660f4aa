"""Tokenizer, scoring and generation against slow, obvious versions; the path to other people's models."""

import math

import numpy as np
import pytest
import torch
from torch.func import grad, vmap
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel

from privhelpers import artifacts, models
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact, UnsupportedModel
from privhelpers.models import precision
from privhelpers.models.activation import SLOW_ACTIVATIONS, TanhGELU, tanh_gelu
from privhelpers.models.adapters import with_adapters, with_cores
from privhelpers.models.repeatable import repeatable_on

TEXTS = [f"Patient {i}: pressure 1{i % 10}0/80, note {'long ' * (i % 7)}end." for i in range(60)]


@pytest.fixture(scope="module")
def tokenizer():
    return models.train_tokenizer(TEXTS, vocab_size=320)


@pytest.fixture(scope="module")
def model(tokenizer):
    return models.build("micro-gpt2", tokenizer, seed=0)


def test_every_text_survives_the_tokenizer(tokenizer):
    for text in (*TEXTS, "naïve ☤ \t\n 日本", "<|endoftext", "(212) 555-0123"):
        assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text
    assert tokenizer.tokenize("SYN-1234567")[-7:] == list("1234567"), "a token for each digit"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_fast_activation_is_the_librarys_in_value_and_slope(dtype):
    value = torch.linspace(-12, 12, 2001, dtype=dtype, requires_grad=True)
    weight = torch.randn(2001, dtype=dtype)
    ours, theirs = tanh_gelu(value), functional.gelu(value, approximate="tanh")
    slopes = [torch.autograd.grad((weight * each).sum(), value)[0] for each in (ours, theirs)]
    with torch.no_grad():
        torch.testing.assert_close(tanh_gelu(value), ours)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=2e-5)


def test_the_fast_activation_is_differentiated_twice_and_row_by_row():
    value = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(tanh_gelu, value)
    assert torch.autograd.gradgradcheck(tanh_gelu, value)
    whole = torch.autograd.grad(tanh_gelu(value).square().sum(), value)[0]
    rows = vmap(grad(lambda row: tanh_gelu(row).square().sum()))(value.detach())
    torch.testing.assert_close(rows, whole)
    mapped = vmap(tanh_gelu)(value).square().sum()
    torch.testing.assert_close(torch.autograd.grad(mapped, value)[0], whole)


def test_models_that_are_built_or_loaded_have_the_fast_activation(tokenizer, tmp_path):
    own = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2))
    models.save(own, tokenizer, tmp_path / "own")
    for net in (models.build("micro-gpt2", tokenizer, seed=0), models.load(tmp_path / "own")[0]):
        kinds = [type(module) for module in net.modules()]
        assert kinds.count(TanhGELU) == 2
        assert not set(kinds) & set(SLOW_ACTIVATIONS)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_loss_of_a_token_that_is_all_but_impossible_keeps_its_digits(dtype):
    logits = (60 * torch.randn(4, 9, 50, dtype=dtype)).requires_grad_()
    labels = torch.randint(50, (4, 9))
    ours = models.row_losses(logits, labels, shift=False)
    theirs = functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none").mean(1)
    assert theirs.max() > 100
    torch.testing.assert_close(ours, theirs)
    slopes = [torch.autograd.grad(each.sum(), logits)[0] for each in (ours, theirs)]
    torch.testing.assert_close(*slopes)
    logits.data[0, 0, 0] = torch.nan
    assert models.row_losses(logits, labels, shift=False).isnan().tolist() == [True, False, False, False]


@pytest.mark.parametrize("name", ["micro-gpt2", "micro-llama"])
def test_seed_decides_the_weights(tokenizer, name):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, same, other = (models.build(name, tokenizer, seed=s).state_dict() for s in (0, 0, 1))
    assert torch.equal(torch.rand(1), expected), "the global generator is left alone"
    assert all(torch.equal(first[key], same[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_adapters_start_from_the_seed_and_change_nothing_yet(tokenizer):
    plain, ids = models.build("micro-llama", tokenizer, seed=0), torch.tensor([[1, 2, 3, 4]])
    nets = [
        with_adapters(models.build("micro-llama", tokenizer, seed=0), rank=2, targets=["q_proj"], seed=seed)
        for seed in (0, 0, 1)
    ]
    down = [{n: p for n, p in net.named_parameters() if p.requires_grad and "lora_A" in n} for net in nets]
    assert all(torch.equal(down[0][name], down[1][name]) for name in down[0])
    assert not any(torch.equal(down[0][name], down[2][name]) for name in down[0])
    for net in nets:
        torch.testing.assert_close(net(ids.to(net.device)).logits, plain(ids.to(plain.device)).logits)


def test_cores_alone_are_trained_between_the_directions_of_a_change(tokenizer):
    plain, ids = models.build("micro-llama", tokenizer, seed=0), torch.tensor([[1, 2, 3, 4]])
    name, rank = "model.layers.0.self_attn.q_proj", 2
    before = plain.get_submodule(name).weight.detach().clone()
    left, right = torch.randn(len(before), rank), torch.randn(rank, before.shape[1])
    changes = {name: (left @ right).to(before.device)}
    net = with_cores(models.build("micro-llama", tokenizer, seed=0), changes, rank=rank, seed=0)
    torch.testing.assert_close(net(ids.to(net.device)).logits, plain(ids.to(plain.device)).logits)
    (core,) = (weight for weight in net.parameters() if weight.requires_grad)
    assert core.shape == (rank, rank)
    core.data.normal_()
    layer = net.base_model.model.get_submodule(name)
    one = torch.eye(before.shape[1], device=before.device)
    moved = (layer(one) - one @ before.T).detach().T.cpu()
    assert moved.norm() > 0.1
    for basis, matrix in ((left, moved), (right.T, moved.T)):
        inside = torch.linalg.qr(basis)[0]
        torch.testing.assert_close(inside @ (inside.T @ matrix), matrix, rtol=1e-3, atol=1e-4)


def test_batched_losses_equal_the_library_loss_of_each_text_alone(model, tokenizer):
    scores = models.score(model, tokenizer, TEXTS, batch_size=7)
    for text, loss in zip(TEXTS, scores.losses, strict=True):
        row = [0, *tokenizer(text, add_special_tokens=False)["input_ids"], 0]
        row = torch.tensor([row], device=model.device)
        assert tokenizer.eos_token_id == 0
        assert loss == pytest.approx(model(input_ids=row, labels=row).loss.item(), rel=1e-5)
    weighted = models.Scores(np.array([1.0, 3.0]), np.array([30, 10]), 0)
    assert weighted.perplexity == pytest.approx(math.exp(1.5)), "by tokens, not by texts"


def test_generation_starts_with_its_prompt_and_repeats_with_its_seed(model, tokenizer):
    first = models.generate(model, tokenizer, "Patient", samples=5, seed=1)
    assert all(text.startswith("Patient") for text in first) and len(set(first)) > 1
    assert first == models.generate(model, tokenizer, "Patient", samples=5, seed=1)
    assert first != models.generate(model, tokenizer, "Patient", samples=5, seed=2)
    limit = models.Sampling(max_length=12)
    short = models.generate(model, tokenizer, "Patient", samples=5, seed=1, sampling=limit)
    # The cut may fall within a character of several bytes, which then reads as U+FFFD.
    assert all(long.startswith(cut.rstrip("\ufffd")) for long, cut in zip(first, short, strict=True))
    assert sum(map(len, short)) < sum(map(len, first)) / 2


@pytest.fixture
def store(tmp_path):
    return artifacts.Store(tmp_path, "smoke")


def test_the_shelf_gives_back_the_same_model(store, model, tokenizer):
    models.put(store, "dp-eps-8", model, tokenizer)
    back, back_tokenizer = models.take(store, "dp-eps-8")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), back.parameters(), strict=True))
    np.testing.assert_allclose(
        models.score(back, back_tokenizer, TEXTS[:5]).losses, models.score(model, tokenizer, TEXTS[:5]).losses
    )
    assert models.take(store, "dp-eps-8", dropout=0.25)[0].config.resid_pdrop == 0.25
    weights = store.path("private_training/dp-eps-8/model/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(DamagedArtifact, match=r"model\.safetensors"):
        models.take(store, "dp-eps-8")
    with pytest.raises(MissingArtifact, match="make book PROFILE=smoke"):
        models.take(store, "baseline")


NAME = "dp-eps-8"


@pytest.fixture
def asked(store, model, tokenizer, monkeypatch):
    """What is asked of a model after its chapter scored the first 20 texts; one list of texts a time."""
    models.put(store, NAME, model, tokenizer)
    models.keep_scores(store, NAME, model, tokenizer, TEXTS[:20])
    asked = []

    def score_tokens(net, its_tokenizer, texts):
        asked.append(list(texts))
        return models.score_tokens(net, its_tokenizer, texts)

    monkeypatch.setattr(models.shelf, "score_tokens", score_tokens)
    return asked


def test_kept_scores_are_those_of_the_model_to_the_bit(asked, store, model, tokenizer):
    fresh = models.score_tokens(model, tokenizer, TEXTS[:20])
    kept = models.scores_of(store, NAME, TEXTS[19::-1])
    assert asked == []
    for name in ("log_p", "mean", "deviation", "greedy"):
        pairs = zip(getattr(fresh, name), reversed(getattr(kept, name)), strict=True)
        assert all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)
    np.testing.assert_allclose(fresh.losses, models.score(model, tokenizer, TEXTS[:20]).losses, rtol=1e-5)


def test_a_text_that_was_not_kept_is_scored_and_no_other(asked, store, model, tokenizer):
    texts = [TEXTS[3], TEXTS[3] + " more", TEXTS[50]]
    losses = models.scores_of(store, NAME, texts).losses
    assert asked == [texts[1:]]
    np.testing.assert_allclose(losses, models.score(model, tokenizer, texts).losses, rtol=1e-5)
    with pytest.raises(InvalidParameter, match="nothing to score"):
        models.scores_of(store, NAME, [])


def test_another_model_of_the_name_is_asked_anew(asked, store, tokenizer):
    other = models.build("micro-gpt2", tokenizer, seed=1)
    models.put(store, NAME, other, tokenizer)
    losses = models.scores_of(store, NAME, TEXTS[:20]).losses
    assert asked == [TEXTS[:20]]
    np.testing.assert_allclose(losses, models.score(other, tokenizer, TEXTS[:20]).losses, rtol=1e-5)


def foreign_folder(folder, tokenizer):
    """A GPT-2 as someone else would save it: other settings, the library's own format."""
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=48, n_embd=24, n_layer=1, n_head=3)
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_local_hugging_face_folder_is_a_model_like_any_other(tmp_path, tokenizer):
    folder = foreign_folder(tmp_path / "theirs", tokenizer)
    model, loaded_tokenizer = models.start(str(folder), TEXTS, vocab_size=999, seed=0)
    assert model.config.n_embd == 24 and len(loaded_tokenizer) == len(tokenizer)
    scores = models.score(model, loaded_tokenizer, [*TEXTS, "word " * 200])
    assert np.isfinite(scores.losses).all() and scores.truncated == 1
    assert models.generate(model, loaded_tokenizer, "Patient", samples=2, seed=0)


def test_pickles_code_and_missing_folders_are_refused(tmp_path, tokenizer):
    folder = foreign_folder(tmp_path / "theirs", tokenizer)
    (folder / "modeling_theirs.py").write_text("raise SystemExit('ran')")
    with pytest.raises(UnsupportedModel, match="never run"):
        models.load(folder)
    (folder / "modeling_theirs.py").unlink()
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UnsupportedModel, match=r"pytorch_model\.bin"):
        models.load(folder)
    with pytest.raises(MissingArtifact, match="nowhere"):
        models.load(tmp_path / "nowhere")
    for name in ("enormous", ["enormous"]):
        with pytest.raises(UnsupportedModel, match="enormous"):
            models.build(name, tokenizer, seed=0)


def test_a_hub_model_without_a_network_is_a_clear_refusal(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    try:
        model, tokenizer = models.load("distilgpt2")
    except MissingArtifact as error:
        assert "distilgpt2" in str(error)
    else:  # on a machine that has it cached the same call must give the model
        assert models.count_parameters(model) == 81_912_576 and len(tokenizer) == 50_257


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("temperature", lambda net: models.Sampling(temperature=0.0)),
        ("top_k", lambda net: models.Sampling(top_k=-1)),
        ("text 1", lambda net: models.score(*net, ["a", ""])),
        ("surrogate", lambda net: models.score(*net, ["\ud800"])),
        ("max_length", lambda net: models.encode(net[1], ["a"], max_length=2)),
        ("max_length", lambda net: models.generate(*net, "long " * 200, samples=1, seed=0)),
        ("vocab_size", lambda net: models.train_tokenizer([], vocab_size=256)),
        ("tokens", lambda net: models.greedy_guesses(*net, [[0]], tokens=0)),
        ("batch_size", lambda net: models.score(*net, ["a"], batch_size=-1)),
        ("samples", lambda net: models.generate(*net, "a", samples=10**18, seed=0)),
        ("bits", lambda net: models.rounded(net[0], 1)),
        ("targets", lambda net: with_adapters(net[0], rank=2, targets=["q_proj"], seed=0)),
        ("with_mask", lambda net: models.build_masked("micro-bert", net[1], seed=0)),
        ("with_mask", lambda net: models.Masking.of(net[1])),
        ("hidden", lambda net: models.Masking(1, frozenset([0, 1]), 9)([0, 0], np.random.default_rng(0))),
        ("texts", lambda net: models.losses_by_mask(*net, [])),
        ("matmul_precision", lambda net: precision.check_precision("low")),
    ],
)
def test_invalid_input_is_refused(model, tokenizer, field, call):
    with pytest.raises(InvalidParameter, match=field):
        call((model, tokenizer))
    with pytest.raises(UnsupportedModel, match="micro-gpt2"):
        models.build_masked("micro-gpt2", tokenizer, seed=0)


# Products of matrices, by whatever library is faster here.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("k", "m", "n"), [(512, 130, 70), (96, 300, 257), (3, 2, 1)])
def test_a_product_is_torchs_up_to_rounding(dtype, k, m, n):
    draw = torch.Generator().manual_seed(0)
    left, right, bias = (torch.randn(*shape, generator=draw, dtype=dtype) for shape in ((k, m), (k, n), (n,)))
    truth, close = left.double().t() @ right.double(), {"rtol": 1e-5, "atol": 1e-4, "check_dtype": False}
    for rows, weight in ((left.t(), right.t()), (left.t().contiguous(), right.t().contiguous())):
        torch.testing.assert_close(precision.product(rows, weight, bias), truth + bias, **close)
    total = torch.ones(m, n, dtype=dtype)
    precision.add_product(total, left, right)
    torch.testing.assert_close(total, truth + 1, **close)
    each = precision.products(left.t().repeat(2, 1, 1), torch.stack([right.t(), -right.t()]))
    torch.testing.assert_close(each, torch.stack([truth, -truth]), **close)


def test_a_product_takes_the_digits_that_are_asked_for():
    """Autocast shortens it, as it does a Linear, and a value that is not a number is never hidden."""
    rows, weight = torch.full((256, 512), torch.nan), torch.ones(64, 512)
    assert precision.product(rows, weight).isnan().all()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert precision.product(rows, weight).dtype == torch.bfloat16


# A copy in fewer bits: few values a row, each near its own, and the original as it was.


@pytest.fixture
def layers():
    torch.manual_seed(0)
    tied = torch.nn.Linear(64, 12)
    return torch.nn.ModuleDict({"first": tied, "again": tied, "last": torch.nn.Linear(12, 3)})


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_each_row_takes_few_values_each_near_its_own(layers, bits):
    before = {name: weight.detach().clone() for name, weight in layers.named_parameters()}
    copied = models.rounded(layers, bits)
    for name, weight in copied.named_parameters():
        assert torch.equal(dict(layers.named_parameters())[name], before[name])
        if weight.ndim == 1:
            assert torch.equal(weight, before[name])
            continue
        unit = before[name].abs().amax(1) / (2 ** (bits - 1) - 1)
        assert (weight - before[name]).abs().amax(1).le(unit / 2 * 1.0001).all()
        assert all(len(row.unique()) <= 2**bits - 1 for row in weight)
        assert not torch.equal(weight, before[name])


def test_tied_matrices_stay_tied(layers):
    copied = models.rounded(layers, 4)
    assert copied["first"].weight is copied["again"].weight
    assert copied["first"].weight is not layers["first"].weight


def test_texts_that_were_cut_are_not_kept(asked, store, model, tokenizer):
    texts = ["long " * 200, TEXTS[0]]
    models.put(store, "twin", model, tokenizer)
    models.keep_scores(store, "twin", model, tokenizer, texts)
    asked.clear()
    assert models.scores_of(store, "twin", texts).truncated == 1
    assert asked == [texts]


@pytest.mark.parametrize("mode", ["default", "warn", "error"])
def test_a_gpu_is_asked_to_repeat_and_a_failure_takes_it_back(mode, monkeypatch):
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    torch.set_deterministic_debug_mode(mode)
    before = torch.get_deterministic_debug_mode()
    with pytest.raises(KeyError), repeatable_on(torch.device("cuda")):
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        raise KeyError
    assert torch.get_deterministic_debug_mode() == before
    torch.set_deterministic_debug_mode("default")
