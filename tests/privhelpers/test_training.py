"""The plain loop: it learns, stops, repeats and refuses."""

import copy
import math

import pytest
import torch

from privhelpers import models, training
from privhelpers.errors import InvalidParameter, TrainingFailed

TEXTS = [f"ward {i % 5}, pulse {60 + i % 9}, plan {'rest' if i % 2 else 'walk'}." for i in range(48)]
OTHERS = [f"ward {i % 5}, pulse {70 + i % 7}, plan {'walk' if i % 3 else 'rest'}." for i in range(24)]


@pytest.fixture
def start():
    tokenizer = models.train_tokenizer(TEXTS, vocab_size=300)
    return models.build("micro-gpt2", tokenizer, seed=0), tokenizer


def settings(**changes):
    return training.Settings(**{"epochs": 3, "learning_rate": 3e-3, "batch_size": 8, **changes})


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_it_learns_and_the_log_says_so(start):
    model, tokenizer = start
    before = math.log(models.score(model, tokenizer, OTHERS).perplexity)
    log, _ = training.train(
        model, tokenizer, TEXTS, settings(), seed=0, validation_texts=OTHERS, progress=False
    )
    assert len(log.train_loss) == len(log.validation_loss) == 3
    assert log.validation_loss[-1] < before - 1
    assert log.validation_loss[-1] == pytest.approx(
        math.log(models.score(model, tokenizer, OTHERS).perplexity)
    )


def test_early_stopping_keeps_the_best_weights(start):
    model, tokenizer = start
    made = settings(epochs=60, learning_rate=2e-2, patience=2)
    log, best = training.train(model, tokenizer, TEXTS, made, seed=0, validation_texts=OTHERS, progress=False)
    assert log.stopped_early and len(log.train_loss) == log.best_epoch + 2 < 60
    model.load_state_dict(best)
    loss = math.log(models.score(model, tokenizer, OTHERS).perplexity)
    assert loss == pytest.approx(min(log.validation_loss))


class Steps(torch.optim.SGD):
    """Stands in for AdamW: notes the gradient and the rate of every step, and changes no weight."""

    def __init__(self, params, **_):
        super().__init__(params, lr=0.0)
        self.seen = []
        NOTED.append(self.seen)

    def step(self, closure=None):
        (group,) = self.param_groups
        whole = torch.cat([p.grad.flatten() for p in group["params"] if p.grad is not None])
        self.seen.append((group["lr"], whole.clone()))


NOTED = []


def steps_of(monkeypatch, model, tokenizer, texts, masking=None, **changes):
    """Return (rate, gradient before its clipping) of every step of a training, its log and its batches."""
    NOTED.clear()
    batches, usual = [], training.epoch_batches

    def noted(*args):
        batches.append(usual(*args))
        return batches[-1]

    monkeypatch.setattr(torch.optim, "AdamW", Steps)
    monkeypatch.setattr(training, "epoch_batches", noted)
    made = settings(**{"max_grad_norm": 1e9, **changes})
    log, _ = training.train(model, tokenizer, texts, made, seed=0, masking=masking, progress=False)
    monkeypatch.undo()
    return NOTED[0], log, batches


def batched(rows, size):
    """Return the rows in their order, `size` at a time."""
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def mean_gradient(model, rows):
    """Return the gradient of the mean over rows of each row's mean loss per token, row by row."""
    model.zero_grad()
    for row in rows:
        ids, labels = (side.to(model.device) for side in models.to_batch([row], 0))
        (model(input_ids=ids, labels=labels).loss / len(rows)).backward()
    found = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    model.zero_grad()
    return found


LONG = [" ".join(TEXTS[i : i + 1 + i % 4]) for i in range(40)]  # of one to four times the tokens


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    ("texts", "batch_size", "accumulation"),
    [
        (16, 8, 2),  # full groups
        (20, 4, 2),  # five batches: the last group has one
        (17, 4, 2),  # a batch of one row, which can stand in the middle of the epoch
        (25, 4, 3),  # seven batches, one of one row
        (5, 4, 64),  # more than the epoch has
        (1, 4, 2),
        (9, 1, 4),
        (13, 16, 1),  # no accumulation
    ],
)
def test_a_step_has_the_gradient_of_one_large_batch(start, monkeypatch, texts, batch_size, accumulation):
    model, tokenizer = start
    seen, log, epochs = steps_of(
        monkeypatch, model, tokenizer, LONG[:texts], batch_size=batch_size, accumulation_steps=accumulation
    )
    groups = [
        [row for batch in epoch[i : i + accumulation] for row in batch]
        for epoch in epochs
        for i in range(0, len(epoch), accumulation)
    ]
    assert len(seen) == len(groups) and sum(map(len, groups)) == 3 * texts
    for (_, gradient), rows in zip(seen, groups, strict=True):
        torch.testing.assert_close(gradient, mean_gradient(model, rows), rtol=1e-4, atol=1e-6)
    each = [sum(float(loss) for loss in models.score(model, tokenizer, LONG[:texts]).losses) / texts] * 3
    assert log.train_loss == pytest.approx(each, rel=1e-5)


@pytest.mark.wrong_numbers
def test_the_bound_and_the_schedule_are_of_steps_and_not_of_physical_batches(start, monkeypatch):
    """Ten rows in batches of two, three at a time: two steps an epoch, each bounded as a whole."""
    model, tokenizer = start
    how = {"batch_size": 2, "accumulation_steps": 3, "epochs": 4, "learning_rate": 0.8, "warm_up": 0.5}
    free, _, _ = steps_of(monkeypatch, model, tokenizer, LONG[:10], **how)
    bound, _, _ = steps_of(monkeypatch, model, tokenizer, LONG[:10], max_grad_norm=0.01, **how)
    assert [rate for rate, _ in free] == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8, 0.6, 0.4, 0.2])
    for (_, whole), (_, clipped) in zip(free, bound, strict=True):
        assert float(clipped.norm()) == pytest.approx(0.01, rel=1e-3)
        torch.testing.assert_close(clipped, whole * (0.01 / whole.norm()), rtol=1e-3, atol=1e-8)


@pytest.mark.wrong_numbers
def test_a_masked_model_accumulates_by_rows_too(monkeypatch):
    """The masks are drawn row by row, so whatever the batches, each row is asked the same."""
    tokenizer = models.with_mask(models.train_tokenizer(TEXTS, vocab_size=300))
    model, masking = models.build_masked("tiny-bert", tokenizer, seed=0), models.Masking.of(tokenizer)
    monkeypatch.setattr(training, "epoch_batches", lambda rows, size, _: batched(rows, size))
    parts, _, _ = steps_of(
        monkeypatch, model, tokenizer, LONG[:7], masking, batch_size=3, accumulation_steps=4, epochs=1
    )
    monkeypatch.setattr(training, "epoch_batches", lambda rows, size, _: batched(rows, size))
    whole, _, _ = steps_of(monkeypatch, model, tokenizer, LONG[:7], masking, batch_size=7, epochs=1)
    torch.testing.assert_close(parts[0][1], whole[0][1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("architecture", ["micro-gpt2", "micro-llama"])
def test_layers_multiply_in_fewer_digits_while_they_train(start, architecture, monkeypatch):
    """Whatever the processor: to its rounding the same losses, and nothing stays switched."""
    model, asked, switch = (
        models.build(architecture, start[1], seed=0),
        set(),
        torch.set_float32_matmul_precision,
    )
    twin, medium = copy.deepcopy(model), settings(epochs=2, matmul_precision="medium")
    exact, _ = training.train(model, start[1], TEXTS, settings(epochs=2), seed=0, progress=False)
    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda p: asked.add(p) or switch(p))
    quick, _ = training.train(twin, start[1], TEXTS, medium, seed=0, progress=False)
    assert asked == {"highest", "medium"} and torch.get_float32_matmul_precision() == "highest"
    assert not any("forward" in module.__dict__ for module in twin.modules())
    assert quick.train_loss == pytest.approx(exact.train_loss, rel=0.02)


def test_runs_repeat_with_dropout_too(start):
    model, tokenizer = start
    model.config.resid_pdrop = 0.1
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.1
    twins = [copy.deepcopy(model) for _ in range(3)]
    for twin, seed in zip(twins, (0, 0, 1), strict=True):
        training.train(twin, tokenizer, TEXTS, settings(epochs=1), seed=seed, progress=False)
    first, second, third = map(weights, twins)
    assert torch.equal(first, second) and not torch.equal(first, third)


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("epochs", lambda net: settings(epochs=0)),
        ("learning_rate", lambda net: settings(learning_rate=0.0)),
        ("batch_size", lambda net: settings(batch_size=True)),
        ("weight_decay", lambda net: settings(weight_decay=-1.0)),
        ("warm_up", lambda net: settings(warm_up=1.5)),
        ("texts", lambda net: training.train(*net, [], settings(), seed=0)),
        ("patience", lambda net: training.train(*net, TEXTS, settings(patience=1), seed=0)),
    ],
)
def test_invalid_values_are_refused_by_name(start, field, call):
    with pytest.raises(InvalidParameter, match=field):
        call(start)


def test_a_training_without_finite_losses_fails(start):
    with torch.no_grad():
        start[0].transformer.wte.weight.fill_(float("inf"))
    with pytest.raises(TrainingFailed):
        training.train(*start, TEXTS, settings(), seed=0, progress=False)
