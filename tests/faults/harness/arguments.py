"""The door of private training: plans, settings, notes and parts that are none, or that replace ours."""

import dataclasses

import torch
from faults.harness import base, values
from faults.harness.registry import Case, Trial, fault

from privhelpers import dpsgd
from privhelpers.accounting import Claimed

PLAN = {
    "noise_multiplier": 1.0,
    "target_delta": 1e-3,
    "sample_rate": 0.4,
    "steps": 6,
    "max_grad_norm": 0.5,
    "units": 12,
    "accountant": "rdp",
}
NOT_POSITIVE = (*values.NO_NUMBERS, *values.NEGATIVE, *values.ZERO)


def _train(notes=None, *, plan=None, chance=None, **settings):
    texts, tokenizer, model = base.hospital()
    return dpsgd.train(
        model,
        tokenizer,
        texts if notes is None else notes,
        plan or base.plan(),
        dpsgd.Settings(**{"learning_rate": 1e-2} | settings),
        chance=chance or dpsgd.research(5),
        progress=False,
    )


@fault("a plan with a value out of its range or of another type")
def _(t: Trial) -> Case:
    pools = {
        "noise_multiplier": NOT_POSITIVE,
        "max_grad_norm": NOT_POSITIVE,
        "steps": values.NO_COUNTS,
        "units": values.NO_COUNTS,
        "target_delta": (*NOT_POSITIVE, 1.0, 1 / 12, 0.5),
        "sample_rate": (*NOT_POSITIVE, 1.1, 2),
    }
    which = t.choose(pools)
    value = t.choose(pools[which])
    return Case(lambda: dpsgd.plan_with_noise(**{**PLAN, which: value}))


@fault("a plan changed after it was sealed")
def _(t: Trial) -> Case:
    plan = base.plan()
    spent = {"noise_multiplier": (0.5, 0.999, 1e-9, 0.0, -1.0), "sample_rate": (0.5, 1.0, 2.0, -0.1)}
    spent |= {"steps": (7, 10**6, 0, -1), "delta": (1e-9, 0.0, 2.0), "adjacency": ("replace",)}
    whole = {
        "target_epsilon": (plan.target_epsilon / 2, 1e-9),
        "units": (11, 13, 0),
        "max_grad_norm": (0.0, -1.0),
    }
    which = t.choose((*spent, *whole))
    value = t.choose((spent | whole)[which])
    if which in spent:
        changed = dataclasses.replace(plan, spent=dataclasses.replace(plan.spent, **{which: value}))
    else:
        changed = dataclasses.replace(plan, **{which: value})
    return Case(lambda: _train(plan=changed))


@fault("a carried epsilon that is not that of the run", seconds=10)
def _(t: Trial) -> Case:
    plan = base.plan()
    false = plan.spent.epsilon * float(t.rng.random())
    t.note(false)
    changed = dataclasses.replace(plan, spent=dataclasses.replace(plan.spent, epsilon=false))
    return Case(lambda: _train(plan=changed).spent.epsilon, right=plan.spent.epsilon, refusal=False)


@fault("settings out of their range or of another type")
def _(t: Trial) -> Case:
    which = t.choose(("learning_rate", "warm_up_steps", "notes_per_step", "max_rows"))
    value = t.choose(NOT_POSITIVE if which == "learning_rate" else values.NO_COUNTS)
    return Case(lambda: dpsgd.Settings(**{"learning_rate": 1e-2, which: value}))


@fault("notes that are none")
def _(t: Trial) -> Case:
    texts = [list(notes) for notes in base.hospital()[0]]
    at = t.below(len(texts))
    texts[at] = t.choose(
        ("a text alone", None, 3, [3], [None], [b"x"], ["\ud800"], [["x"]], {"a": 1}, object(), [1.5], b"x")
    )
    return Case(lambda: _train(texts))


@fault("fewer or more patients than the plan says")
def _(t: Trial) -> Case:
    texts = list(base.hospital()[0])
    texts = t.choose((texts[:-1], [*texts, ["one more"]], [], texts * 2))
    return Case(lambda: _train(texts))


class _Silent(dpsgd.PrivateOptimizer):
    pass


def _everybody(generator, *, units, sample_rate, steps):
    return [range(units)] * steps


class _Objective:
    def __call__(self, row, generator):
        return row, row


@fault("a part that stands in for ours", seconds=10)
def _(t: Trial) -> Case:
    which = t.choose(("make_optimizer", "make_draws", "chance"))
    if which == "chance":
        chance = dpsgd.research(t.below(100))
        chance.fill_with_noise = lambda total, deviation: total.zero_()
        given = {"chance": chance}
    else:
        given = {which: _Silent if which == "make_optimizer" else _everybody}
    return Case(lambda: type(_train(**given).spent), right=Claimed)


@fault("a model whose weights are all frozen")
def _(t: Trial) -> Case:
    _, _, model = base.hospital()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    t.note("frozen")
    return Case(_train)


@fault("a model with a weight that is not finite", seconds=10)
def _(t: Trial) -> Case:
    _, _, model = base.hospital()
    parameters = list(model.parameters())
    with torch.no_grad():
        parameter = parameters[t.below(len(parameters))].view(-1)
        parameter[t.below(len(parameter))] = t.choose((float("nan"), float("inf")))
    return Case(_train)


@fault("a seed that is none")
def _(t: Trial) -> Case:
    seed = t.choose((*values.NO_NUMBERS[:-2], *values.NEGATIVE, 1.5))
    return Case(lambda: dpsgd.research(seed))


@fault("a place or a pace that is none")
def _(t: Trial) -> Case:
    which = t.choose(("every", "on_change"))
    value = t.choose(values.NO_COUNTS if which == "every" else (*values.NO_TEXTS, "Refuse", ""))
    return Case(lambda: dpsgd.Keep(t.place, **{which: value}))


@fault("a mode, a stream or a method of the chance that somebody put there", seconds=10)
def _(t: Trial) -> Case:
    chance = dpsgd.research(t.below(100)) if t.below(2) else dpsgd.release()
    put = {
        "mode": "research" if chance.mode == "release" else "release",
        "sampling": torch.Generator().manual_seed(t.below(100)),
        "fill_with_noise": lambda total, deviation: total.normal_(0, deviation),
        "before_sum": type(chance).before_sum.__get__(chance),
        "after_sum": lambda totals, deviation, sensitivity: None,
        "dropout_seed": lambda: 0,
    }
    name = t.choose(put)
    setattr(chance, name, put[name])
    return Case(lambda: type(_train(chance=chance).spent), right=Claimed)
