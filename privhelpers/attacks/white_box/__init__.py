"""Attacks on membership that look inside the model: attention (S-AWBA) and gradients (S-GWBA).

inside = attention_features(model, tokenizer, texts)             # [texts, layers * heads * 4]
scored = learned_attack(inside.values, patients, ...)            # learns on 20 %, scores the other 80 %
measure(scored).auc

Source: Jagannatha, Rawat and Yu 2021, sections 4.1.2 and 5.1.
"""

from privhelpers.attacks.white_box.attention import attention_features, concentration
from privhelpers.attacks.white_box.classifier import (
    known_to_attacker,
    learned_attack,
    loss_attack,
)
from privhelpers.attacks.white_box.gradient_norms import gradient_features
from privhelpers.attacks.white_box.masks import auc_by_masks
from privhelpers.attacks.white_box.reading import Features, batches, is_masked
from privhelpers.attacks.white_box.target import (
    Inside,
    Target,
    attack_target,
    gain,
    gradient_differences,
    look_inside,
    require_nulls,
    score_texts,
    verdict,
)

__all__ = [
    "Features",
    "Inside",
    "Target",
    "attack_target",
    "attention_features",
    "auc_by_masks",
    "batches",
    "concentration",
    "gain",
    "gradient_differences",
    "gradient_features",
    "is_masked",
    "known_to_attacker",
    "learned_attack",
    "look_inside",
    "loss_attack",
    "require_nulls",
    "score_texts",
    "verdict",
]
