"""Canaries of an audit: units like any other, along coordinates that no note touches."""

import copy

import numpy as np
import pytest
import torch
from dpsgd_models import ragged, small
from scipy.stats import norm
from test_dpsgd_resume import Stop, stopping_before
from test_dpsgd_training import hospital, private, run, tiny_plan

from privhelpers import dpsgd, models
from privhelpers.dpsgd import _recorder
from privhelpers.dpsgd._canaries import CanaryTracker
from privhelpers.dpsgd._losses import losses_by_row
from privhelpers.errors import InvalidParameter
from privhelpers.models.adapters import with_adapters

CANARIES = dpsgd.GradientCanaries(count=200, seed=0)


@pytest.fixture(scope="module")
def start():
    return hospital()


@pytest.fixture
def planted(start):
    with CanaryTracker(CANARIES, start[2], tiny_plan()) as canaries:
        yield canaries


def trained(start, **settings):
    texts, tokenizer, model = start
    model = copy.deepcopy(model)
    return model, run(model, tokenizer, texts, settings.pop("plan", tiny_plan()), **settings)


def test_canaries_are_clipped_as_patients_are(start, planted):
    model = start[2]
    optimizer = private(model, bound=0.5, expected=1.0)
    clean = dpsgd.ClippedGradients(model, max_grad_norm=0.5)
    sums = {name: torch.zeros_like(p) for name, p in optimizer.parameters.items()}
    norms = clean.add(planted.gradients_of([0, 3, 5]), into=sums)
    assert norms.tolist() == pytest.approx([50.0] * 3)  # 100 times the bound
    table = sums["spare_rows.weight"]
    chosen = np.flatnonzero(planted.included)[[0, 3, 5]]
    assert table[planted.row[chosen], planted.column[chosen]].tolist() == pytest.approx([0.5] * 3)
    assert int((table != 0).sum()) == 3
    assert all(not sums[name].any() for name in sums if name != "spare_rows.weight")


def test_coins_are_fair_independent_and_follow_the_seed(start):
    model, plan = start[2], tiny_plan()
    coins = [
        CanaryTracker(dpsgd.GradientCanaries(count=1000, seed=s), model, plan).included for s in range(20)
    ]
    assert abs(np.mean(coins) - 0.5) < 4 * 0.5 / np.sqrt(20_000)
    assert np.var([c.sum() for c in coins]) > 50  # a fixed half would have none; coins have 250
    assert np.array_equal(coins[0], CanaryTracker(dpsgd.GradientCanaries(1000, 0), model, plan).included)


def test_one_patient_with_a_longer_note_moves_no_canary(start):
    """Canaries where notes leave room would all move: many bounds, for one patient more."""
    texts, tokenizer, model = start
    plan = tiny_plan(sample_rate=1.0, steps=1, target_epsilon=8.0)
    longer = [*texts[:-1], [" ".join(text for notes in texts for text in notes)[:400]]]
    shown = []
    for notes in (texts, longer):
        with CanaryTracker(CANARIES, copy.deepcopy(model), plan) as canaries:
            before = canaries.row, canaries.column
        log = run(copy.deepcopy(model), tokenizer, notes, plan, canaries=CANARIES)
        shown.append((*before, log.canaries.scores))
    for of_short, of_long in zip(*shown, strict=True):
        np.testing.assert_allclose(of_short, of_long, atol=1e-3)


def test_adapters_of_a_llama_are_trained_and_audited():
    """The rows are there while it trains, and go with it, as they do where it stops."""
    texts, tokenizer, _ = hospital()
    model = with_adapters(
        models.build("micro-llama", tokenizer, seed=0), rank=2, targets=["q_proj", "v_proj"], seed=0
    )
    plan = tiny_plan(sample_rate=1.0, steps=2, target_epsilon=8.0)
    names = set(model.state_dict())
    log = run(model, tokenizer, texts, plan, canaries=CANARIES)
    shown = log.canaries
    assert shown.scores[shown.included].mean() > shown.scores[~shown.included].mean() + 0.5
    assert set(model.state_dict()) == names
    with pytest.raises(Stop), stopping_before(1):
        run(model, tokenizer, texts, plan, canaries=CANARIES)
    assert set(model.state_dict()) == names


@pytest.mark.parametrize("wrong", [{"count": 0}, {"count": 5, "raw_norm": 0.0}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        dpsgd.GradientCanaries(seed=0, **wrong)


def test_canaries_are_drawn_by_the_sampler_of_the_patients(start):
    """Their numbers follow on those of the patients, and each step draws a Poisson share of them."""
    sizes, plan = [], tiny_plan(sample_rate=0.3, steps=60, target_epsilon=50.0)

    class Counting(dpsgd.PrivateOptimizer):
        def step(self, draw):
            given = [batch for batch, unit in draw if unit is None]
            sizes.append(len(given[0].row) if given else 0)
            next(iter(self.parameters.values())).data.add_(1e-3)
            for gradient in self.gradients.values():
                gradient.zero_()
            return torch.ones(sum(int(unit.max()) + 1 for _, unit in draw if unit is not None))

    _, log = trained(start, plan=plan, canaries=CANARIES, optimizer=Counting)
    taking_part = int(log.canaries.included.sum())
    mean, variance = 0.3 * taking_part, 0.3 * 0.7 * taking_part
    assert abs(np.mean(sizes) - mean) < 4 * np.sqrt(variance / 60)
    assert 0.5 * variance < np.var(sizes) < 2 * variance
    assert abs(log.batch_sizes.mean() - 12) < 4 * np.sqrt(8.4 / 60)  # of patients alone


def test_canaries_that_stayed_out_show_noise_and_the_others_the_mechanism(start):
    """The score of one step at sample rate 1 is a shifted normal, exactly."""
    plan = tiny_plan(sample_rate=1.0, steps=1, target_epsilon=8.0)
    canaries = dpsgd.GradientCanaries(count=4000, seed=1)
    _, log = trained(start, plan=plan, canaries=canaries)
    sigma, logged = plan.noise_multiplier, log.canaries
    seen = logged.scores * sigma**2 + 0.5  # invert the likelihood ratio of one Gaussian
    out, into = seen[~logged.included], seen[logged.included]
    assert abs(out.mean()) < 4 * sigma / np.sqrt(len(out)) and abs(into.mean() - 1) < 0.1 * sigma
    assert out.std() == pytest.approx(sigma, rel=0.08)
    share = np.mean(out > sigma * norm.isf(0.05))
    assert share == pytest.approx(0.05, abs=0.02)


# Norms by layer, for attacks that see the weights.


@pytest.mark.parametrize("family", ["gpt2", "bert", "distilbert"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("most_bytes", [1 << 30, 0])
def test_layer_norms_equal_one_backward_pass_for_each_row(family, tied, most_bytes, monkeypatch):
    monkeypatch.setattr(_recorder, "_MOST_BYTES", most_bytes)
    model, batch = small(family, tied=tied), ragged(family)
    engine = dpsgd.ClippedGradients(model, max_grad_norm=1.0)
    norms = engine.layer_norms(batch)
    for row in range(len(batch["labels"])):
        model.zero_grad()
        losses_by_row(model, {name: value[row : row + 1] for name, value in batch.items()}).sum().backward()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                expected = float(parameter.grad.norm())
                assert float(norms[name][row]) == pytest.approx(expected, rel=1e-9, abs=1e-12), name
    model.zero_grad()
    sums = {name: torch.zeros_like(p) for name, p in engine.parameters.items()}
    whole = engine.add(batch, into=sums)
    together = torch.stack([value.square() for value in norms.values()]).sum(0).sqrt()
    torch.testing.assert_close(together, whole, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"parameter": "wte"}, "parameter = 'wte': no trained table"),
        ({"parameter": "transformer.ln_f.bias"}, "no trained table"),
        ({"parameter": ["wte"]}, r"parameter = \['wte'\]: no trained table"),
        ({"row": torch.tensor(0)}, "row: must be whole numbers from 0 to"),
        ({"row": torch.tensor([], dtype=torch.long)}, "row: must be whole numbers from 0 to"),
        ({"row": torch.tensor([0, 10**6])}, "row: must be whole numbers from 0 to"),
        ({"row": torch.tensor([0])}, r"gradient: its shape must be \(1, "),
        ({"gradient": torch.ones(2, 32, dtype=torch.cfloat)}, "gradient: must be of a floating type"),
        ({"gradient": torch.ones(2, 3)}, r"gradient: its shape must be .*, not \(2, 3\)"),
    ],
)
def test_a_given_gradient_that_does_not_fit_the_model_is_refused(changes, words):
    model = small("gpt2", tied=True, dtype=torch.float32)
    name, width = "transformer.wte.weight", model.config.n_embd
    given = {"parameter": name, "row": torch.tensor([0, 1]), "gradient": torch.ones(2, width)}
    engine = dpsgd.ClippedGradients(model, max_grad_norm=1.0)
    norms = engine.add(dpsgd.GivenGradients(**given), into=engine.zero_sums())
    assert norms.tolist() == pytest.approx([width**0.5] * 2)
    with pytest.raises(InvalidParameter, match=words):
        engine.add(dpsgd.GivenGradients(**given | changes), into=engine.zero_sums())
