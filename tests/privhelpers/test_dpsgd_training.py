"""The private loop: what it draws, what it adds, what it counts, and what it refuses."""

import copy
import dataclasses
from unittest import mock

import numpy as np
import pytest
import torch
from dpsgd_models import distance, ragged, row_of, small
from opacus.accountants import RDPAccountant

from privhelpers import dpsgd, models
from privhelpers.accounting import Claimed
from privhelpers.dpsgd import _chance
from privhelpers.dpsgd._batches import bounded, micro_batches
from privhelpers.dpsgd._chance import grid_step, secret_normals
from privhelpers.dpsgd._losses import losses_by_row
from privhelpers.errors import (
    BudgetExceeded,
    DamagedArtifact,
    InvalidParameter,
    TrainingFailed,
    UnsupportedModel,
)
from privhelpers.lower_bounds import broken


def private(model, *, sigma=1.0, bound=1.0, expected=4.0, seed=0, optimizer=None, chance=None):
    return dpsgd.PrivateOptimizer(
        optimizer or torch.optim.SGD(model.parameters(), lr=1.0),
        model,
        noise_multiplier=sigma,
        max_grad_norm=bound,
        expected_batch_size=expected,
        chance=chance or dpsgd.research(seed),
    )


# One step.


def test_a_step_is_the_clipped_sum_plus_noise_over_the_expected_size():
    model, batch = small(), ragged()
    bound, expected = 2.0, 5.5  # 7 rows were drawn: the size drawn is private and must not appear
    clean, norms = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=bound)
    noisy, noise = (
        private(model, bound=bound, expected=expected),
        private(model, bound=bound, expected=expected),
    )
    assert noisy.noisy_mean([(batch, None)]).tolist() == norms.tolist()
    assert len(noise.noisy_mean([])) == 0  # the same stream with no one drawn
    rest = {name: (noisy.gradients[name] - noise.gradients[name]) * expected for name in clean}
    assert distance(rest, clean) < 1e-12
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    private(model, bound=bound, expected=expected).step([(batch, None)])
    moved = {name: before[name] - p.detach() for name, p in model.named_parameters()}
    assert distance(moved, noisy.gradients) < 1e-12
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("mode", ["research", "release"])
def test_noise_has_the_standard_deviation_of_the_definition(mode):
    """sigma C / expected batch size on the mean; the report's rule, sigma C on the mean, must not pass."""
    chance = dpsgd.research(0) if mode == "research" else dpsgd.release()
    model = models.build("mini-gpt2", hospital()[1], seed=0)
    optimizer = private(model, sigma=2.2829, bound=1.0, expected=4.0, chance=chance)
    optimizer.noisy_mean([])
    values = torch.cat([g.reshape(-1) for g in optimizer.gradients.values()]).double()
    assert values.numel() > 700_000
    assert float(values.std()) == pytest.approx(2.2829 / 4, rel=0.01)
    assert abs(float(values.mean())) < 5 * (2.2829 / 4) / values.numel() ** 0.5


def test_every_parameter_gets_its_own_noise_the_tied_matrix_once():
    model = small(dtype=torch.float32)
    optimizer = private(model, sigma=3.0, bound=0.5, expected=2.0)
    optimizer.noisy_mean([])
    assert set(optimizer.gradients) == {name for name, _ in model.named_parameters()}
    assert "lm_head.weight" not in optimizer.gradients
    pooled = torch.cat([g.reshape(-1) / 0.75 for g in optimizer.gradients.values()])
    assert float(pooled.std()) == pytest.approx(1.0, abs=0.05)
    for name, gradient in optimizer.gradients.items():
        assert gradient.abs().min() > 0, name
    assert len(pooled.unique()) > 0.999 * len(pooled)  # no stream was used twice


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_noise_in_pieces_is_the_noise_in_one(dtype):
    """A seed gives the noise that one draw of torch gives, whatever of it fits the cache."""
    piece = _chance._CACHED
    for size in (0, 1, 15, 16, 17, piece - 1, piece, piece + 1, piece + 15, piece + 16, 2 * piece + 7):
        chance, other = dpsgd.research(3), dpsgd.research(3)
        ours, whole = torch.empty(size, dtype=dtype), torch.empty(size, dtype=dtype)
        chance.fill_with_noise(ours, 2.0)
        whole.normal_(0.0, 2.0, generator=other.noise)
        assert torch.equal(ours, whole), size
        assert torch.equal(chance.noise.get_state(), other.noise.get_state()), size


def test_one_unit_moves_the_sum_by_no_more_than_the_bound():
    model, batch = small(), ragged()
    sums = []
    for rows in (slice(0, 7), slice(0, 6)):
        optimizer = private(model, bound=0.7, expected=1.0)
        optimizer.noisy_mean([({n: v[rows] for n, v in batch.items()}, None)])
        sums.append({n: g.clone() for n, g in optimizer.gradients.items()})
    gap = sum(float((sums[0][n] - sums[1][n]).square().sum()) for n in sums[0]) ** 0.5
    assert gap == pytest.approx(0.7, rel=1e-9)  # every row is longer than that


def test_the_noise_multiplier_is_sealed():
    optimizer = private(small())
    with pytest.raises(AttributeError):
        optimizer.noise_multiplier = 0.1
    with pytest.raises(AttributeError):
        optimizer.max_grad_norm = 10.0
    with pytest.raises(AttributeError):
        optimizer.engine.max_grad_norm = 10.0
    with pytest.raises(AttributeError):
        optimizer.expected_batch_size = 100.0


def test_a_gradient_from_elsewhere_moves_no_weight():
    """One that was there before, of a frozen weight, or of one that was frozen at the beginning."""
    model, batch = small(), ragged()
    losses_by_row(model, batch).sum().backward()
    tables = model.transformer.wpe.weight, model.transformer.h[0].ln_1.weight
    for table in tables:
        table.requires_grad_(False)
    optimizer = private(model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0))
    before = [table.detach().clone() for table in tables]
    optimizer.step([(batch, None)])
    tables[0].requires_grad_(True)
    optimizer.step([(batch, None)])
    assert all(torch.equal(*pair) for pair in zip(tables, before, strict=True))


def test_opacus_accountants_attach():
    optimizer, accountant = private(small()), RDPAccountant()
    optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(sample_rate=0.25))
    for _ in range(3):
        optimizer.step([])
    assert accountant.history == [(1.0, 0.25, 3)]


@pytest.mark.parametrize("name", ["noise_multiplier", "max_grad_norm", "expected_batch_size"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_settings_of_a_step_are_refused(name, value):
    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 1.0, name: value}
    with pytest.raises(InvalidParameter, match=name):
        dpsgd.PrivateOptimizer(None, small(), chance=dpsgd.research(0), **settings)


# Chance.


def test_release_mode_repeats_nothing_and_keeps_nothing():
    first, second = dpsgd.release(), dpsgd.release()
    a, b = torch.empty(1000), torch.empty(1000)
    first.fill_with_noise(a, 1.0)
    second.fill_with_noise(b, 1.0)
    assert not torch.equal(a, b) and abs(float(torch.corrcoef(torch.stack([a, b]))[0, 1])) < 0.2
    assert first.state() == {} and first.public() == {"mode": "release"}
    assert first.dropout_seed() != first.dropout_seed()
    assert not torch.equal(first.sampling.get_state(), second.sampling.get_state())


@pytest.mark.parametrize("ratio", [0.73, 0.0007])
def test_a_release_shows_nothing_that_is_impossible_without_a_unit(ratio):
    """Noise that is rounded before it meets the sum leaves values that only one of two sums can reach."""
    deviation, chance = 0.37, dpsgd.release()
    for value in (0.0, ratio * deviation):
        total = {"a": torch.full((40_000,), value)}
        chance.before_sum(total, deviation)
        total["a"] += value
        chance.after_sum(total, deviation, sensitivity=1.0)
        steps = total["a"].double() / grid_step(deviation)
        assert torch.equal(steps, steps.round())
        # The two sums are whole steps themselves, so both reach every whole number of steps alike.
        assert float(total["a"].mean()) == pytest.approx(value, abs=5 * deviation / 200)
        assert float(total["a"].std()) == pytest.approx(deviation, rel=0.03)


def test_a_release_rounds_and_widens_by_what_rounding_can_add():
    """Two sums a step apart at most in each coordinate: with 10^12 coordinates that would be seen."""
    chance, deviation, noise = dpsgd.release(), 1.0, np.zeros(0)
    step, widths = grid_step(deviation), []
    assert 2.0**-31 < step / deviation <= 2.0**-30
    with mock.patch("privhelpers.dpsgd._chance.secret_normals", lambda count: noise[:count] + 1.0):
        noise = np.zeros(100)
        for sensitivity in (1.0, 1e-6):
            total = {"a": torch.zeros(100, dtype=torch.float64)}
            chance.after_sum(total, deviation, sensitivity)
            widths.append(float(total["a"][0]))
    assert widths == pytest.approx([1 + 10 * step, 1 + 10 * step / 1e-6], abs=step)


def test_secret_normals_are_standard_normals():
    from scipy import stats

    values = secret_normals(200_000)
    assert values.shape == (200_000,) and values.dtype == np.float64
    assert stats.kstest(values, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.02


def test_streams_of_a_gpu_that_is_not_here_are_refused_by_its_name():
    chance = dpsgd.research(4)
    state = chance.state()
    for streams in ("noise_on", "dropout_on"):
        with pytest.raises(DamagedArtifact, match="cuda:7, which this machine lacks"):
            chance.restore(state | {streams: {"cuda:7": state["noise"]}})


# Batches.


def test_micro_batches_hold_whole_patients():
    drawn = [[[1, 2, 3]] * n for n in (1, 2, 3, 5, 2)]
    batches = list(micro_batches(drawn, 4, 0))
    assert sum(int(unit.max()) + 1 for _, unit in batches) == 5
    assert sum(len(b["input_ids"]) for b, _ in batches) == 13
    assert all(len(b["input_ids"]) <= 4 or int(unit.max()) == 0 for b, unit in batches)
    assert list(micro_batches([], 4, 0)) == []


def test_contributions_are_bounded_and_chosen_anew():
    rows, generator = [[i] for i in range(10)], np.random.default_rng(0)
    picks = {tuple(row[0] for row in bounded(rows, 4, generator)) for _ in range(20)}
    assert len(picks) > 10 and all(len(set(pick)) == 4 for pick in picks)
    assert bounded(rows, 10, generator) == rows


# A run.


def hospital(patients=40):
    texts = [[f"note {i} of ward {i % 3}"] * (1 + i % 3) for i in range(patients)]
    tokenizer = models.train_tokenizer([t for notes in texts for t in notes], vocab_size=300)
    model = models.build("tiny-gpt2", tokenizer, seed=0)
    return texts, tokenizer, model


def tiny_plan(**changes):
    settings = {
        "target_epsilon": 8.0,
        "target_delta": 1e-3,
        "sample_rate": 0.2,
        "steps": 6,
        "max_grad_norm": 0.5,
        "units": 40,
    }
    return dpsgd.plan_privacy(**{**settings, **changes})


def run(model, tokenizer, texts, plan, *, seed=0, **settings):
    """Train; `optimizer` and `draws` make a variant under study."""
    chance = settings.pop("chance", dpsgd.research(seed))
    names = {"run": "run", "checkpoint_every": "every", "on_change": "on_change"}
    kept = {names[key]: settings.pop(key) for key in list(settings) if key in names}
    folder = settings.pop("keep", None)
    how = {"keep": dpsgd.Keep(folder, **kept) if folder else None, "snapshots": settings.pop("snapshots", ())}
    changed = {key: settings.pop(key) for key in ("optimizer", "draws") if key in settings}
    settings = dpsgd.Settings(**{"learning_rate": 1e-3, **settings})
    if not changed:
        return dpsgd.train(model, tokenizer, texts, plan, settings, chance=chance, progress=False, **how)
    changed = {key: staticmethod(one) if key == "draws" else one for key, one in changed.items()}
    variant = type("Variant", (dpsgd.Training,), changed)
    return variant(model, tokenizer, texts, plan, settings, chance).run(progress=False, **how)


def test_rows_of_a_micro_batch_change_nothing():
    texts, tokenizer, model = hospital()
    plan, other = tiny_plan(), copy.deepcopy(model)
    run(model, tokenizer, texts, plan, seed=3, max_rows=3)
    run(other, tokenizer, texts, plan, seed=3, max_rows=500)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_an_empty_draw_is_a_step_of_noise():
    texts, tokenizer, model = hospital()
    plan = tiny_plan(sample_rate=0.01, steps=12)
    seen, step = [], dpsgd.PrivateOptimizer.step

    def watched(self, draw):
        before = self.parameters["transformer.wte.weight"].detach().clone()
        norms = step(self, draw)
        seen.append((len(norms), not torch.equal(self.parameters["transformer.wte.weight"], before)))
        return norms

    with mock.patch.object(dpsgd.PrivateOptimizer, "step", watched):
        log = run(model, tokenizer, texts, plan)
    assert log.empty_steps == [norms for norms, _ in seen].count(0) > 0
    assert len(log.batch_sizes) == log.spent.steps == 12 and all(moved for _, moved in seen)
    expected = RDPAccountant()
    expected.history = [(plan.noise_multiplier, 0.01, 12)]  # an empty step is counted like any other
    assert log.rdp_epsilon == pytest.approx(expected.get_epsilon(1e-3), rel=1e-9)


def test_a_text_of_two_units_and_notes_beyond_the_bound_are_counted():
    """Three units of one text are three units in the budget, whoever wrote them; the log says so."""
    texts, tokenizer, model = hospital()
    plan, sizes = tiny_plan(steps=1), [len(notes) for notes in texts]
    assert max(sizes) <= 4
    log = run(copy.deepcopy(model), tokenizer, texts, plan)
    assert (log.shared_texts, log.notes_beyond_bound) == (0, 0)
    seen = "Seen on the ward, no fever."
    doubled = [[seen], ["SEEN on the  ward, no fever.", "of this one alone"], [seen, seen], *texts[3:]]
    doubled[4:6] = [
        [*texts[4], "Home."],
        ["home.", "again", "again", "a third", "a fourth", "a fifth", "a sixth"],
    ]
    log = run(copy.deepcopy(model), tokenizer, doubled, plan, notes_per_step=5)
    assert (log.shared_texts, log.notes_beyond_bound) == (2, 2)
    log = run(copy.deepcopy(model), tokenizer, doubled, plan, notes_per_step=1)
    assert log.notes_beyond_bound == sum(len(notes) - 1 for notes in doubled) > 2
    assert log.spent == plan.spent


def test_batches_are_poisson_draws():
    texts, tokenizer, model = hospital()
    plan, divisors = tiny_plan(sample_rate=0.3, steps=60, target_epsilon=50.0), []

    class Free(dpsgd.PrivateOptimizer):  # no model pass: only the draw matters here
        def step(self, draw):
            divisors.append(self.expected_batch_size)
            next(iter(self.parameters.values())).data.add_(1e-3)
            return torch.ones(sum(int(unit.max()) + 1 for _, unit in draw))

    log = run(model, tokenizer, texts, plan, optimizer=Free)
    mean, variance = 40 * 0.3, 40 * 0.3 * 0.7
    assert set(divisors) == {12.0}
    assert abs(log.batch_sizes.mean() - mean) < 4 * np.sqrt(variance / 60)
    assert 0.5 * variance < log.batch_sizes.var() < 2 * variance  # a fixed batch size has variance 0


def test_the_expected_batch_size_is_not_rounded():
    """N = 196 and batches of 4: a size from the integer part of N / len(loader) would be 3."""
    assert tiny_plan(units=196, sample_rate=1 / 49).expected_batch_size == pytest.approx(4.0, rel=1e-12)
    assert tiny_plan(units=41, sample_rate=0.1).expected_batch_size == pytest.approx(4.1, rel=1e-12)


def test_same_seed_same_weights_other_seed_other_weights():
    texts, tokenizer, model = hospital()
    twins = [copy.deepcopy(model) for _ in range(3)]
    for twin, seed in zip(twins, (1, 1, 2), strict=True):
        run(twin, tokenizer, texts, tiny_plan(), seed=seed)
    first, second, third = (t.transformer.wte.weight for t in twins)
    assert torch.equal(first, second) and not torch.equal(first, third)


def test_the_learning_rate_rises_linearly_and_falls_to_zero():
    """By hand: a fifth more of 0.1 in each of 5 steps, unless the way down, a twentieth a step, is below."""
    settings = dpsgd.Settings(learning_rate=0.1, warm_up_steps=5)
    rates = [settings.learning_rate_at(step, 20) for step in range(20)]
    assert rates == pytest.approx(
        [0.02, 0.04, 0.06, 0.08] + [0.1 * (20 - step) / 20 for step in range(4, 20)]
    )


def test_snapshots_are_the_weights_after_their_steps_and_change_nothing():
    texts, tokenizer, model = hospital()
    watched, plain, seen = copy.deepcopy(model), copy.deepcopy(model), []
    step = dpsgd.PrivateOptimizer.step

    def noted(self, draw):
        norms = step(self, draw)
        seen.append({name: p.detach().clone() for name, p in self.parameters.items()})
        return norms

    with mock.patch.object(dpsgd.PrivateOptimizer, "step", noted):
        log = run(watched, tokenizer, texts, tiny_plan(), snapshots=(2, 6))
    assert list(log.weights) == [2, 6] and run(plain, tokenizer, texts, tiny_plan()).weights == {}
    for taken, weights in log.weights.items():
        assert weights.keys() == seen[taken - 1].keys()
        assert all(torch.equal(seen[taken - 1][name], value) for name, value in weights.items())
    assert all(torch.equal(a, b) for a, b in zip(watched.parameters(), plain.parameters(), strict=True))
    assert log.spent == tiny_plan().spent, "the last weights cost what all of them cost together"


def everybody(generator, *, units, sample_rate, steps):
    return [list(range(units))] * steps


STUDIED = {
    "draws": ({"draws": everybody}, "training: Variant"),
    "optimizer": ({"optimizer": broken.NoiseOff}, "training: Variant"),
    "shuffled": ({}, "training: Shuffled"),
}


@pytest.mark.parametrize("part", STUDIED)
def test_a_part_under_study_makes_the_budget_a_claim(part):
    texts, tokenizer, model = hospital()
    changes, words = STUDIED[part]
    plan = tiny_plan(accountant="rdp", steps=2)
    if changes:
        log = run(model, tokenizer, texts, plan, **changes)
    else:
        settings = dpsgd.Settings(learning_rate=1e-3)
        log = broken.Shuffled(model, tokenizer, texts, plan, settings, dpsgd.research(0)).run(progress=False)
    assert isinstance(log.spent, Claimed) and log.rdp_epsilon is None
    assert log.spent.claim == plan.spent and log.spent.parts == (words,)
    assert str(log.spent).startswith(f"not counted ({words}); claimed: ε = ")


@pytest.mark.parametrize("chance", [dpsgd.research(0), dpsgd.release()])
def test_the_budget_is_kept_and_seen_by_opacus_too(chance):
    texts, tokenizer, model = hospital()
    log = run(model, tokenizer, texts, tiny_plan(), chance=chance)
    assert log.mode == chance.mode and log.weight_change > 0 and len(log.batch_sizes) == 6
    assert log.spent.epsilon <= 8.0
    assert log.spent.epsilon <= log.rdp_epsilon < 2 * log.spent.epsilon


class Unread:
    """Forty patients whose notes no one may read."""

    def __len__(self):
        return 40

    def __iter__(self):
        raise AssertionError("the notes were read")


@pytest.mark.parametrize("change", [{"noise_multiplier": 0.01}, {"steps": 600}, {"target_epsilon": 1.0}])
def test_a_lowered_noise_multiplier_is_refused_before_a_note_is_read(change):
    """The report clamps its calibrated sigma; the epsilon it prints is then not that of the run."""
    plan = tiny_plan(accountant="rdp")
    with pytest.raises(BudgetExceeded, match="must not be lowered"):
        run(small(), hospital()[1], Unread(), dataclasses.replace(plan, **change))


def test_epsilon_grows_and_is_concave():
    steps, spent = dpsgd.epsilon_curve(tiny_plan(steps=60))
    assert steps == list(range(5, 65, 5))
    gains = np.diff(spent)
    assert (gains > 0).all() and (np.diff(gains) < 1e-3).all()


def refused_calls(texts, tokenizer, model):
    """Yield the error, a word of its message, and what is changed of a call."""
    yield InvalidParameter, "patients", {"texts": texts[1:]}
    for part in ("model", "tokenizer", "plan", "settings", "chance"):
        yield InvalidParameter, part, {part: None}
    yield InvalidParameter, "keep", {"keep": "a folder"}
    yield InvalidParameter, "without notes", {"texts": [[], *texts[1:]]}
    for notes in ("one note", [b"bytes"], None, 1, {"of no order"}):
        yield InvalidParameter, r"notes_by_patient\[1\]", {"texts": [texts[0], notes, *texts[2:]]}
    yield InvalidParameter, "notes_by_patient", {"texts": iter(texts)}
    yield InvalidParameter, r"\[0\], text 1", {"texts": [["a", "ab\ud800"], *texts[1:]]}
    yield UnsupportedModel, "frozen", {"model": copy.deepcopy(model).requires_grad_(False)}
    yield UnsupportedModel, "Linear", {"model": torch.nn.Linear(3, 3)}
    for steps in ((6, 0), (7,), 3, ["a"], [1.5], [True]):
        yield InvalidParameter, "snapshots", {"snapshots": steps}
    yield InvalidParameter, "snapshots", {"snapshots": (6,), "keep": dpsgd.Keep("never made")}
    broken_model = copy.deepcopy(model)
    torch.nn.init.constant_(broken_model.transformer.wpe.weight, float("nan"))
    yield TrainingFailed, "finite", {"model": broken_model}


def test_calls_that_cannot_train_are_refused_by_name():
    texts, tokenizer, model = hospital()
    usual = {"model": model, "tokenizer": tokenizer, "texts": texts, "plan": tiny_plan(accountant="rdp")}
    usual |= {"settings": dpsgd.Settings(learning_rate=1e-3), "chance": dpsgd.research(0)}
    for error, word, change in refused_calls(texts, tokenizer, model):
        given = usual | change
        parts = [given.pop(name) for name in ("model", "tokenizer", "texts", "plan", "settings")]
        with pytest.raises(error, match=word):
            dpsgd.train(*parts, progress=False, **given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("betas", value) for value in ((1.5, 0.9), (0.9,), None, ("a", "b"))),
        *(("canaries", 4), ("objective", 5), ("objective", lambda row, generator: (row, row))),
        *(("learning_rate", 0), ("max_rows", 0), ("notes_per_step", 0), ("warm_up_steps", 0)),
        ("matmul_precision", "low"),
    ],
)
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(InvalidParameter, match=name):
        dpsgd.Settings(**{"learning_rate": 1e-3, name: value})


def test_a_run_in_which_no_weight_moves_fails():
    texts, tokenizer, model = hospital()

    class Idle(dpsgd.PrivateOptimizer):
        def step(self, draw):
            return torch.ones(0)

    with pytest.raises(TrainingFailed, match="no weight moved"):
        run(model, tokenizer, texts, tiny_plan(), optimizer=Idle)


@pytest.mark.parametrize("change", [{"every": 0}, {"on_change": "ignore"}])
def test_folders_out_of_range_are_refused(change):
    with pytest.raises(InvalidParameter, match=next(iter(change))):
        dpsgd.Keep("somewhere", **change)


def test_a_bad_row_of_a_patient_loses_that_patient_alone():
    model, batch = small(tied=False), ragged(rows=4)
    unit = torch.tensor([0, 0, 1, 2])
    with torch.no_grad():
        model.transformer.wte.weight[96] = float("inf")
    batch["input_ids"][batch["input_ids"] == 96] = 1
    batch["input_ids"][1, 2] = 96
    optimizer = private(model)
    norms = optimizer.step([(batch, unit)])
    assert torch.isfinite(norms).tolist() == [False, True, True]
    alone = dpsgd.clipped_gradient_sum(small(tied=False), row_of(batch, 2), max_grad_norm=1.0)
    assert float(norms[1]) == pytest.approx(float(alone[1][0]), rel=1e-9)
    assert all(torch.isfinite(p).all() for n, p in model.named_parameters() if "wte" not in n)
