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
from privhelpers.dpsgd._canaries import Planted
from privhelpers.dpsgd._losses import losses_by_row
from privhelpers.errors import InvalidParameter, ResumeRefused, UnsupportedModel
from privhelpers.models.adapters import with_adapters

CANARIES = dpsgd.GradientCanaries(count=200, seed=0)


@pytest.fixture(scope="module")
def start():
    return hospital()


@pytest.fixture
def planted(start):
    return Planted(CANARIES, start[2], 20, tiny_plan())


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
    table = sums["transformer.wpe.weight"]
    chosen = np.flatnonzero(planted.included)[[0, 3, 5]]
    assert table[planted.row[chosen], planted.column[chosen]].tolist() == pytest.approx([0.5] * 3)
    assert int((table != 0).sum()) == 3
    assert all(not sums[name].any() for name in sums if name != "transformer.wpe.weight")


def test_coins_are_fair_independent_and_follow_the_seed(start):
    model, plan = start[2], tiny_plan()
    coins = [Planted(dpsgd.GradientCanaries(count=1000, seed=s), model, 20, plan).included for s in range(20)]
    assert abs(np.mean(coins) - 0.5) < 4 * 0.5 / np.sqrt(20_000)
    assert np.var([c.sum() for c in coins]) > 50  # a fixed half would have none; coins have 250
    assert np.array_equal(coins[0], Planted(dpsgd.GradientCanaries(1000, 0), model, 20, plan).included)


def test_each_canary_owns_a_coordinate_beyond_the_longest_note(start, planted):
    places = set(zip(planted.row.tolist(), planted.column.tolist(), strict=True))
    assert len(places) == 200 and min(row for row, _ in places) == 20
    width = start[2].config.n_embd
    assert dpsgd.free_coordinates(start[2], 20) == ("transformer.wpe.weight", 20, (128 - 20) * width)
    with pytest.raises(InvalidParameter, match="ask for at most so many"):
        Planted(dpsgd.GradientCanaries(count=10_000_000, seed=0), start[2], 20, tiny_plan())


def test_a_model_without_positions_is_refused():
    with pytest.raises(InvalidParameter, match="position embedding"):
        dpsgd.free_coordinates(torch.nn.Linear(2, 2), 1)


def test_a_frozen_model_has_no_room(start):
    with pytest.raises(UnsupportedModel, match="frozen"):
        dpsgd.make_room(copy.deepcopy(start[2]).requires_grad_(False), 20, wanted=1)


def test_spare_rows_make_room_in_a_model_without_positions():
    tokenizer = hospital()[1]
    model = models.build("micro-llama", tokenizer, seed=0)
    with pytest.raises(InvalidParameter, match="make_room"):
        dpsgd.free_coordinates(model, 20)
    assert dpsgd.make_room(model, 20, wanted=200) == 256  # in whole rows of 64
    assert dpsgd.make_room(model, 20, wanted=200) == 256  # asked twice, given once
    assert dpsgd.free_coordinates(model, 20) == ("spare_rows.weight", 0, 256)
    with pytest.raises(InvalidParameter, match=r"spare_rows\.weight has 256 coordinates"):
        Planted(dpsgd.GradientCanaries(count=257, seed=0), model, 20, tiny_plan())


def test_a_table_of_positions_is_used_as_far_as_it_goes(start):
    """More canaries than it has room for get rows of their own, all of them, and go with them."""
    texts, tokenizer, model = start
    model = copy.deepcopy(model)
    name, row, room = dpsgd.free_coordinates(model, 20)
    assert dpsgd.make_room(model, 20, wanted=room) == room
    assert dpsgd.free_coordinates(model, 20) == (name, row, room)
    assert dpsgd.make_room(model, 20, wanted=room + 1) > room
    assert dpsgd.free_coordinates(model, 20)[:2] == ("spare_rows.weight", 0)
    many = dpsgd.GradientCanaries(count=room + 1, seed=0)
    plan = tiny_plan(sample_rate=1.0, steps=1, target_epsilon=8.0)
    shown = run(model, tokenizer, texts, plan, canaries=many).canaries
    assert shown.scores.shape == (room + 1,)
    assert shown.scores[shown.included].mean() > shown.scores[~shown.included].mean() + 0.5
    assert dpsgd.make_room(model, 20, wanted=5) == room  # once there is room enough
    assert not any("spare" in name for name in model.state_dict())


def test_adapters_of_a_llama_are_trained_and_audited_with_spare_rows():
    """The rows move by noise alone but for the canaries, and the log shows what an audit needs."""
    texts, tokenizer, _ = hospital()
    model = with_adapters(
        models.build("micro-llama", tokenizer, seed=0), rank=2, targets=["q_proj", "v_proj"], seed=0
    )
    dpsgd.make_room(model, 20, wanted=200)
    plan = tiny_plan(sample_rate=1.0, steps=1, target_epsilon=8.0)
    log = run(model, tokenizer, texts, plan, canaries=CANARIES)
    shown = log.canaries
    assert shown.scores[shown.included].mean() > shown.scores[~shown.included].mean() + 0.5
    assert model.spare_rows.weight.abs().min() > 0
    dpsgd.drop_spare_rows(model)
    assert not any("spare" in name for name in model.state_dict())


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

    _, log = trained(start, plan=plan, canaries=CANARIES, make_optimizer=Counting)
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
    sigma, logged = plan.spent.noise_multiplier, log.canaries
    seen = logged.scores * sigma**2 + 0.5  # invert the likelihood ratio of one Gaussian
    out, into = seen[~logged.included], seen[logged.included]
    assert abs(out.mean()) < 4 * sigma / np.sqrt(len(out)) and abs(into.mean() - 1) < 0.1 * sigma
    assert out.std() == pytest.approx(sigma, rel=0.08)
    share = np.mean(out > sigma * norm.isf(0.05))
    assert share == pytest.approx(0.05, abs=0.02)


def test_canaries_leave_the_use_of_text_alone(start):
    """Rows that a note reads get gradients of patients and noise, as without canaries."""
    plan = tiny_plan(sample_rate=1.0, steps=1)
    gradients = []

    class Keeping(dpsgd.PrivateOptimizer):
        def step(self, draw):
            norms = super().step(draw)
            gradients.append({name: g.clone() for name, g in self.gradients.items()})
            return norms

    trained(start, plan=plan, make_optimizer=Keeping)
    trained(start, plan=plan, make_optimizer=Keeping, canaries=CANARIES)
    longest = max(
        len(r) for r in models.encode(start[1], [t for o in start[0] for t in o], max_length=128).ids
    )
    for name in gradients[0]:
        kept = slice(longest) if name == "transformer.wpe.weight" else slice(None)
        torch.testing.assert_close(gradients[0][name][kept], gradients[1][name][kept], rtol=1e-4, atol=1e-6)


def test_an_interrupted_run_keeps_the_scores(start, tmp_path):
    plan = tiny_plan(steps=12, accountant="rdp")
    settings = {"plan": plan, "canaries": CANARIES, "seed": 5}
    model, whole = trained(start, **settings)
    kept = {"keep": tmp_path, "checkpoint_every": 5}
    with pytest.raises(Stop), stopping_before(7):
        trained(start, **settings, **kept)
    again, log = trained(start, **settings, **kept)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    assert np.array_equal(log.canaries.scores, whole.canaries.scores)
    with pytest.raises(ResumeRefused):
        trained(start, **{**settings, "canaries": None}, **kept)


def test_a_run_without_canaries_has_none(start):
    assert trained(start)[1].canaries is None


# Norms by layer, for attacks that see the weights.


@pytest.mark.parametrize("family", ["gpt2", "bert", "distilbert"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("memory", ["fast", "low"])
def test_layer_norms_equal_one_backward_pass_for_each_row(family, tied, memory):
    model, batch = small(family, tied=tied), ragged(family)
    engine = dpsgd.ClippedGradients(model, max_grad_norm=1.0, memory=memory)
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
        ({"row": torch.tensor([-1, 0])}, "row: must be whole numbers from 0 to"),
        ({"row": torch.tensor([0.0, 1.0])}, "row: must be whole numbers from 0 to"),
        ({"row": torch.tensor([0])}, r"gradient: its shape must be \(1, "),
        ({"row": torch.tensor([[0], [1]])}, "row: must be whole numbers from 0 to"),
        ({"gradient": torch.ones(2, 32, dtype=torch.cfloat)}, "gradient: must be of a floating type"),
        ({"gradient": torch.ones(2, 3)}, r"gradient: its shape must be .*, not \(2, 3\)"),
    ],
)
def test_a_given_gradient_that_does_not_fit_the_model_is_refused(changes, words):
    model = small("gpt2", tied=True, dtype=torch.float32)
    name, width = "transformer.wte.weight", model.config.n_embd
    given = {"parameter": name, "row": torch.tensor([0, 1]), "gradient": torch.ones(2, width)}
    engine = dpsgd.ClippedGradients(model, max_grad_norm=1.0)
    norms = engine.add(dpsgd.GivenGradients(**given), into=engine.room())
    assert norms.tolist() == pytest.approx([width**0.5] * 2)
    with pytest.raises(InvalidParameter, match=words):
        engine.add(dpsgd.GivenGradients(**given | changes), into=engine.room())
