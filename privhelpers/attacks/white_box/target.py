"""One model under all attacks: look at every text once, then attack, then attack where it must fail."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers.attacks import controls
from privhelpers.attacks.scores import Arms, Measured, measure
from privhelpers.attacks.white_box.attention import attention_features
from privhelpers.attacks.white_box.classifier import learned_attack, loss_attack
from privhelpers.attacks.white_box.gradient_norms import gradient_features
from privhelpers.attacks.white_box.reading import Batch, Features, is_masked
from privhelpers.errors import InvalidParameter
from privhelpers.models import Scores, score, score_masked
from privhelpers.stats import Interval, auc, auc_interval, clustered_bootstrap

LEARNED = ("attention", "gradients", "all three")


@dataclass(frozen=True)
class Inside:
    """What an attacker with the weights sees of several texts.

    Attributes:
        losses: nats per token, shape [texts].
        attention: concentration of every head.
        gradients: log norm of every parameter's gradient.
    """

    losses: np.ndarray
    attention: Features
    gradients: Features

    def features(self, attack: str) -> np.ndarray:
        """Return what a learned attack is given, shape [texts, numbers]."""
        known = {"attention": [self.attention.values], "gradients": [self.gradients.values]}
        return np.hstack(
            known.get(attack) or [self.losses[:, None], *known["attention"], *known["gradients"]]
        )


@dataclass(frozen=True)
class Target:
    """What is seen of members and of others, and whose notes they are."""

    members: Inside
    patients: ArrayLike
    others: Inside
    other_patients: ArrayLike

    def arms(self, attack: str) -> Arms:
        """Return what an attack is given: losses, or features."""
        sides = self.members, self.others
        given = [side.losses if attack == "loss" else side.features(attack) for side in sides]
        return Arms(given[0], np.asarray(self.patients), given[1], np.asarray(self.other_patients))


def score_texts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    masks: int = 4,
    seed: int = 0,
) -> Scores:
    """Return the losses of texts under a causal model, or their means over fresh masks under a masked one.

    Args:
        texts: one or more.
        masks, seed: for a masked model, as in `losses_by_mask`.
    """
    if is_masked(model):
        return score_masked(model, tokenizer, texts, masks=masks, seed=seed)
    return score(model, tokenizer, texts)


def look_inside(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    layer_norms: Callable[[Batch], Mapping[str, torch.Tensor]],
    masks: int = 4,
    seed: int = 0,
) -> Inside:
    """Return loss, attention and gradients of every text, under the same masks.

    Args:
        texts: one or more.
        layer_norms: as in `gradient_features`.
        masks, seed: for a masked model, as in `batches`.
    """
    shown = {"masks": masks, "seed": seed}
    return Inside(
        score_texts(model, tokenizer, texts, **shown).losses,
        attention_features(model, tokenizer, texts, **shown),
        gradient_features(model, tokenizer, texts, layer_norms=layer_norms, **shown),
    )


def attack_target(
    target: Target, *, share: float = 0.2, draws: int = 1000, seed: int = 0
) -> dict[str, Measured]:
    """Return what the loss attack and the learned attacks reach, all measured on the same notes.

    Args:
        target: of one model.
        share: of the patients that the learned attacks learn from, in (0, 1].
        draws: bootstrap resamples of patients.
        seed: of the draw of patients and of the resampling.
    """
    chosen = {"share": share, "seed": seed}
    scored: dict[str, Arms] = {"loss": loss_attack(*target.arms("loss"), **chosen)}
    scored |= {name: learned_attack(*target.arms(name), **chosen) for name in LEARNED}
    return {name: measure(own, draws=draws, seed=seed) for name, own in scored.items()}


def require_nulls(
    what: str,
    target: Target,
    *,
    public: Target | None = None,
    share: float = 0.2,
    draws: int = 1000,
    seed: int = 0,
) -> dict[str, dict[str, Interval]]:
    """Run every attack where it must fail, and return the areas under the ROC.

    Args:
        what: name of the model, for the message.
        target: of the trained model: its labels are permuted, and its held-out patients split in halves.
        public: of the same architecture before it read a private note.
        share, draws, seed: as in `attack_target`.

    Raises:
        ControlFailed: an attack found something where there is nothing.
    """
    chosen, resampling = {"share": share, "seed": seed}, {"draws": draws, "seed": seed}
    found: dict[str, dict[str, Interval]] = {}
    losses, patients, other_losses, other_patients = target.arms("loss")
    own = Arms(-losses, patients, -other_losses, other_patients)
    nulls = {"permuted labels": own.dealt(seed), "held-out halves": own.controls_halved(seed)}
    if public:
        nulls["public checkpoint"] = loss_attack(*public.arms("loss"), **chosen)
    found["loss"] = {null: auc_interval(*arms, **resampling) for null, arms in nulls.items()}
    for name in LEARNED:
        arms = target.arms(name)
        given = {"permuted labels": arms.dealt(seed), "held-out halves": arms.controls_halved(seed)}
        nulls = {null: learned_attack(*dealt, **chosen) for null, dealt in given.items()}
        if public:
            nulls["public checkpoint"] = learned_attack(*public.arms(name), **chosen)
        found[name] = {null: auc_interval(*scored, **resampling) for null, scored in nulls.items()}
    for name, nulls in found.items():
        for null, interval in nulls.items():
            controls.require_null(f"{what}, {name} attack, {null}", interval)
    return found


def gradient_differences(target: Target, *, draws: int = 1000, seed: int = 0) -> dict[str, Interval]:
    """Return by how much members' log gradient norms exceed others', parameter by parameter.

    Args:
        target: of one model.
        draws, seed: of the resampling of patients.

    Returns:
        By parameter name, the difference of means with its interval; negative where members' are smaller.
    """
    own, other = target.members.gradients, target.others.gradients
    member = np.repeat([True, False], [len(own.values), len(other.values)])
    owners = np.concatenate([np.asarray(target.patients, str), np.asarray(target.other_patients, str)])

    def difference(values: np.ndarray, is_member: np.ndarray) -> float:
        return float(values[is_member].mean() - values[~is_member].mean())

    columns = np.vstack([own.values, other.values]).T
    return {
        name: clustered_bootstrap(difference, owners, column, member, draws=draws, seed=seed)
        for name, column in zip(own.names, columns, strict=True)
    }


def gain(more: Measured, less: Measured, *, draws: int = 1000, seed: int = 0) -> Interval:
    """Return the difference of two areas under the ROC measured on the same notes, paired by note.

    Args:
        more, less: two attacks on one model, or one attack on two models, with the same notes in one order.
        draws, seed: of the resampling of patients.

    Raises:
        InvalidParameter: they were measured on different notes.
    """
    one, two = more.arms, less.arms
    same = (one.member_patients, two.member_patients), (one.control_patients, two.control_patients)
    if not all(np.array_equal(first, second) for first, second in same):
        raise InvalidParameter("more and less: were measured on different notes, so they cannot be paired")
    member = np.repeat([True, False], [len(one.member_scores), len(one.control_scores)])
    owners = np.concatenate([one.member_patients.astype(str), one.control_patients.astype(str)])
    columns = [np.concatenate([own.member_scores, own.control_scores]) for own in (one, two)]

    def difference(first: np.ndarray, second: np.ndarray, is_member: np.ndarray) -> float:
        return auc(first[is_member], first[~is_member]) - auc(second[is_member], second[~is_member])

    return clustered_bootstrap(difference, owners, *columns, member, draws=draws, seed=seed)


def verdict(difference: Interval) -> str:
    """Return what the interval of a difference says of "the first is above the second".

    Returns:
        "holds" above zero, "contradicted" below, "undecided" where it contains zero.
    """
    if difference.low > 0:
        return "holds"
    return "contradicted" if difference.high < 0 else "undecided"
