"""The right numbers of the teacher's questions of the core, found another way; see `test_site_quizzes`."""

import itertools
import math
from itertools import combinations, product

import numpy as np
import scipy.optimize
import scipy.special
import scipy.stats
import torch
from sklearn.metrics import cohen_kappa_score

from privhelpers import accounting, mechanisms, models, records, stats

MORE_RUN = {  # what the chapters keep that these questions quote, as a run might have it
    # the_claim
    **{"simulations": 2000, "chance": 16.6, "expected": 232.5, "manual_above": 21.0},
    **{"null_low": 206.0, "null_high": 264.0, "fall_b": 33.4, "fall_c": 54.0},
    # ---
    # differential_privacy
    **{"belief_one": 73.1, "belief_eight": 99.97, "belief_most": 0.65, "belief_limit": 0.73},
    **{"error95": 74.9, "at_epsilon": 1.0, "ratio": 1.3, "price": 30.3, "leaks": 66.6},
    # ---
    # hypothesis_testing
    **{"np_beta": 0.7405, "missed": 0.7409, "epsilon": 1.0, "area": 0.731, "level": 1.0},
    **{"low": 78.2, "least": 64.1, "by_curve": 1.98, "by_pair": 2.72, "tpr_eight": 99.97},
    **{"ppv_one": 2.67, "prior_percent": 1.0, "lower": 0.98, "tries": 200_000},
    # ---
    # renyi_accounting
    **{"shortcut_factor": 92.7, "patient": 50.5, "claimed_one": 1.05, "true_one": 4.8},
    # ---
    # synthetic_records
    **{"rare_patients": 11.0, "fewest_notes": 1, "most_notes": 6},
    # ---
    # fine_tuning
    **{"turn_epoch": 6, "epochs": 24, "public_gap": 0.96, "baseline_gap": 1.7},
    # ---
    # private_training
    **{"notes_per_step": 1, "units": 16040, "members": 1040, "floor_f1": 0.042},
    # ---
    # extraction
    **{"group_size": 224, "attempts": 700, "mrn_hits": 38, "mrn_n": 127, "worked_here": 0.597},
    **{"loose_leaks": 136, "loose_control": 127, "whole_canaries": 25, "planted": 40},
    # ---
    # membership_inference
    "auc": 0.95,
    "tpr_percent": 34.0,
    "public_correlation": -0.5,
    "shadows_correlation": 0.97,
    "cursed": 0.53,
    "attacks": 15,
    # ---
    # auditing
    "by_binomial": 1.63,
    "by_curve": 2.46,
    "shown_lower": 1.3,
    "own_lower": 3.7,
    "gradient_canaries": 12000,
    "gate_limit": 7.9,
    "new_coin_alarms": 3,
    "off_lower": 4.1,
    # ---
    # comparison
    "planted_canaries": 40,
    "best_canaries": 16,
    "baseline_auc": 0.95,
    "dp8_auc": 0.51,
    "dp8_epsilon": 8.0,
    "dp8_f1": 0.44,
    "best_f1": 0.64,
    "floor_f1": 0.04,
    "margin_auc": 0.05,
    "margin_rate": 5.0,
    "claims": 30,
    "equal_paid": 12,
    "undecided": 18,
    # ---
    # hipaa
    "loose_epsilon": 8.0,
    "loose_pair": 999.7,
    "loose_curve": 129.7,
    "names_of": 224,
    "zero": 1.6,
    "numbers_completed": 38,
    "numbers_asked": 127,
    "numbers_control": 0,
    "tolerated": 50,
    # ---
}
MORE_TRUE = {
    # the_claim
    "the_claim attempts-and-rate": lambda: len(list(product(range(40), range(10), range(3)))) / 50,
    "the_claim rate-to-count": lambda: next(k for k in range(421) if f"{100 * k / 420:.2f}" == "6.43"),
    "the_claim both-words": lambda: 1400 * np.mean([pair == (0, 0) for pair in product(range(12), repeat=2)]),
    "the_claim common-drug": lambda: 100 * np.mean(np.arange(10) < 3),
    "the_claim mixed-model": lambda: (
        1400 * np.diff([0.5 * MORE_RUN["chance"] / 100, 1 - 0.8 * (1 - 0.5 * MORE_RUN["chance"] / 100)])[0]
    ),
    "the_claim twenty-models": lambda: scipy.stats.binom.mean(20, 1 - 0.95),
    "the_claim twice-the-texts": lambda: MORE_RUN["expected"] / 1400 * len(range(50 * 14 * 4)),
    # ---
    # differential_privacy
    "differential_privacy subtracted-averages": lambda: np.linalg.solve([[1, 5], [0, 5]], [432, 350])[0],
    "differential_privacy worst-outputs": lambda: max(
        sum(p - 3 * q for p, q in outputs)
        for size in range(4)
        for outputs in combinations([(0.6, 0.1), (0.3, 0.3), (0.1, 0.6)], size)
    ),
    "differential_privacy replaced-delta": lambda: sum(np.exp(1.0 * move) for move in range(2)),
    "differential_privacy largest-budget": lambda: scipy.optimize.brentq(
        lambda epsilon: mechanisms.posterior_range(prior=0.1, epsilon=epsilon)[1] - 0.5, 0.01, 10
    ),
    "differential_privacy how-far-down": lambda: 100 * mechanisms.posterior_range(prior=0.5, epsilon=1.0)[0],
    "differential_privacy typical-error": lambda: scipy.stats.laplace.isf(0.025, scale=30 / 200 / 0.5),
    "differential_privacy hundred-scores": lambda: scipy.stats.laplace.isf(0.025, scale=100 / 100),
    "differential_privacy survey-share": lambda: (
        100 * scipy.optimize.brentq(lambda share: 0.75 * share + 0.25 * (1 - share) - 0.46, 0, 1)
    ),
    # ---
    # hypothesis_testing
    "hypothesis_testing rates-from-counts": lambda: 100 * np.mean([1] * 30 + [0] * 570),
    "hypothesis_testing network-at-five": lambda: 100 * scipy.stats.norm.sf(scipy.stats.norm.isf(0.05) - 1),
    "hypothesis_testing mixed-attacks": lambda: 100 * np.interp(0.11, [0.01, 0.21], [0.1, 0.6]),
    "hypothesis_testing ceiling-at-one-half": lambda: 100 * mechanisms.largest_tpr(fpr=0.5, epsilon=1.0),
    "hypothesis_testing largest-auc": lambda: scipy.optimize.brentq(
        lambda epsilon: mechanisms.largest_auc(epsilon=epsilon, delta=0.0) - 0.6, 0.01, 5
    ),
    "hypothesis_testing nine-releases": lambda: np.linalg.norm([1 / 6] * 9),
    "hypothesis_testing share-of-right-calls": lambda: 100 * np.mean([1] * 40 + [0] * 98),  # of 10,000
    "hypothesis_testing bound-from-rates": lambda: scipy.optimize.brentq(
        lambda epsilon: mechanisms.largest_tpr(fpr=0.03, epsilon=epsilon) - 0.12, 0.01, 3
    ),
    # ---
    # renyi_accounting
    "renyi_accounting loss-of-output": lambda: (
        scipy.special.logsumexp(scipy.stats.norm.logpdf(1.5 - np.array([0, 1])), b=[0.8, 0.2])
        - scipy.stats.norm.logpdf(1.5)
    ),
    "renyi_accounting never-drawn": lambda: 100 * scipy.stats.binom.pmf(0, 20, 0.1),
    "renyi_accounting coin-divergence": lambda: np.log(np.mean([(0.8 / 0.5) ** 2, (0.2 / 0.5) ** 2])),
    "renyi_accounting one-step-at-two": lambda: accounting.rdp(
        noise_multiplier=1.0, sample_rate=0.2, steps=1, orders=[2.0]
    )[0],
    "renyi_accounting best-of-four-orders": lambda: (
        accounting.rdp_to_epsilon(
            orders=[2, 4, 8, 16], rdp=[1.0, 2.2, 5.0, 12.0], delta=1e-5, conversion="classic"
        ).epsilon
    ),
    "renyi_accounting smaller-delta": lambda: (
        -np.diff(
            [
                accounting.rdp_to_epsilon(orders=[5.0], rdp=[1.0], delta=delta, conversion="classic").epsilon
                for delta in (1e-7, 1e-5)
            ]
        )[0]
    ),
    "renyi_accounting delta-from-losses": lambda: 0.02 - np.exp(3) * 0.02 * np.exp(-4),  # P less e^3 Q
    "renyi_accounting shuffled-epochs": lambda: np.linalg.norm([1 / 2] * 15),
    # ---
    # synthetic_records
    "synthetic_records most-notes-split": lambda: (
        100 * np.mean([len(set(s)) > 1 for s in itertools.product("ab", repeat=MORE_RUN["most_notes"])])
    ),
    "synthetic_records some-note-with-identifiers": lambda: (
        100 * scipy.stats.binom.sf(0, MORE_RUN["most_notes"], 0.15)
    ),
    "synthetic_records year-is-known": lambda: scipy.stats.entropy([1] * 365, base=2),
    "synthetic_records anyone-is-hit": lambda: scipy.stats.hypergeom.mean(72_000, 16_000, 1000),
    "synthetic_records tenth-condition": lambda: np.divide(*records.zipf_probabilities(10)[[0, 9]]),
    "synthetic_records bits-of-a-condition": lambda: (
        scipy.stats.entropy([1] * 1000, base=2) - scipy.stats.entropy([1] * 11, base=2)
    ),
    # ---
    # fine_tuning
    "fine_tuning two-probabilities": lambda: scipy.stats.gmean([2, 8]),
    "fine_tuning whole-note": lambda: 100 * np.prod([math.exp(-0.35)] * 10),
    "fine_tuning number-of-steps": lambda: MORE_RUN["epochs"] * len(range(0, 2000, 16)),
    "fine_tuning factor-of-training": lambda: math.exp(
        math.log(MORE_RUN["baseline_gap"]) - math.log(MORE_RUN["public_gap"])
    ),
    "fine_tuning twenty-by-heart": lambda: math.exp(0.5 - np.mean([0.0] * 20 + [0.5] * 980)),
    "fine_tuning long-and-short": lambda: math.exp(np.mean([1.0] * 10 + [0.2] * 90)),
    # ---
    # private_training
    "private_training size-of-a-draw": lambda: scipy.stats.binom.std(MORE_RUN["units"], 0.025),
    "private_training length-of-noise": lambda: np.linalg.norm(
        np.random.default_rng(0).normal(scale=0.001, size=250_000)
    ),
    "private_training never-drawn": lambda: MORE_RUN["members"] * scipy.stats.binom.pmf(0, 150, 0.025),
    "private_training multiplier-of-the-few": lambda: scipy.optimize.brentq(
        lambda factor: factor / 400 - 1 / MORE_RUN["units"], 0, 1000
    ),
    # ---
    # extraction
    "extraction warmer-logits": lambda: np.divide(*scipy.special.softmax(np.array([3, 1]) / 2)),
    "extraction smallest-set": lambda: (
        100
        * models.kept_tokens(
            torch.tensor([0.5, 0.3, 0.15, 0.05]).log(),
            models.Sampling(temperature=1.0, top_k=0, top_p=0.9, max_length=80),
        )[1][0].item()
    ),
    "extraction none-in-the-group": lambda: 100 * stats.clopper_pearson(0, MORE_RUN["group_size"]).high,
    "extraction those-asked": lambda: 100 * np.mean(np.arange(MORE_RUN["mrn_n"]) < MORE_RUN["mrn_hits"]),
    "extraction average-token": lambda: scipy.optimize.brentq(
        lambda p: np.prod([p] * 10) - MORE_RUN["worked_here"], 0, 1
    ),
    "extraction rate-of-the-report": lambda: (
        100 * np.mean(np.arange(MORE_RUN["attempts"]) < MORE_RUN["loose_leaks"])
    ),
    "extraction worth-of-attempts": lambda: scipy.optimize.brentq(
        lambda n: 0.25 / n - 5 * 0.25 / MORE_RUN["attempts"], 1, 1e5
    ),
    # ---
    # membership_inference
    "membership_inference area-with-a-tie": lambda: stats.auc([-0.4, -0.9], [-0.9, -1.2]),
    "membership_inference loss-as-score": lambda: stats.auc([1] * 10 + [0] * 90, [1] * 100),
    "membership_inference sure-of-a-few": lambda: stats.auc([2] * 5 + [1] * 95, [1] * 100),
    "membership_inference accused-in-a-town": lambda: (
        100 * mechanisms.posterior(math.log(MORE_RUN["tpr_percent"]), prior=1 / 21)
    ),
    "membership_inference variance-left": lambda: (
        np.array([1, -1]) @ (np.full((2, 2), 0.97) + 0.03 * np.eye(2)) @ np.array([1, -1])
    ),
    "membership_inference worthless-more-patients": lambda: (  # the variance of Mann and Whitney
        0.5 + 0.03 * math.sqrt((8001 / (12 * 4000**2)) / (2001 / (12 * 1000**2)))
    ),
    "membership_inference checks-by-chance": lambda: scipy.stats.binom.mean(
        15, 2 * scipy.stats.norm.sf(1.96)
    ),
    # ---
    # auditing
    "auditing rates-known": lambda: scipy.optimize.brentq(
        lambda at: mechanisms.largest_tpr(fpr=0.02, epsilon=at) - 0.9, 0, 9
    ),
    "auditing fifty-without-an-error": lambda: -scipy.special.logit(stats.clopper_pearson(0, 50).high),
    "auditing right-three-of-four": lambda: scipy.optimize.brentq(
        lambda at: mechanisms.posterior_range(prior=0.5, epsilon=at)[1] - 0.75, 0, 9
    ),
    "auditing sum-over-an-event": lambda: np.mean([side * (side >= 4) for side in range(1, 7)]),
    "auditing six-declared-numbers": lambda: scipy.stats.binom.isf(0.05 / 6, 20, 0.5) + 1,
    "auditing six-honest-checks": lambda: 100 * scipy.stats.binom.sf(0, 6, 0.05),
    "auditing one-more-nat": lambda: np.divide(  # canaries with a bound of 9 and of 8
        *[math.log(0.05) / math.log(scipy.special.expit(at)) for at in (9, 8)]
    ),
    # ---
    # comparison
    "comparison honest-error": lambda: (  # 28 notes a patient with a correlation of 0.3: the effect is 9.1
        0.01 * math.sqrt((np.full((28, 28), 0.3) + 0.7 * np.eye(28)).sum() / 28)
    ),
    "comparison zeros-for-two-percent": lambda: next(
        n for n in range(1, 1000) if stats.clopper_pearson(0, n).high < 0.02
    ),
    "comparison largest-error": lambda: scipy.optimize.brentq(
        lambda error: stats.tost(stats.Estimate(0.02, error, 1e6, 1000), margin=0.05).p_value - 0.05,
        1e-3,
        0.1,
    ),
    "comparison equivalent-is-not-none": lambda: sum(named / 8000 < 0.05 for named in range(8000)),
    "comparison smallest-that-is-found": lambda: 0.5 + stats.detectable(0.02, power=0.8),
    "comparison missed-at-five-percent": lambda: 100 * scipy.stats.binom.pmf(0, 40, 0.05),
    "comparison kept-of-the-gain": lambda: np.interp(0.44, [0.04, 0.64], [0, 100]),
    # ---
    # hipaa
    "hipaa cap-at-one-percent": lambda: 1000 * mechanisms.largest_tpr(fpr=0.01, epsilon=0.9995),
    "hipaa cap-at-one-half": lambda: 1000 * mechanisms.largest_tpr(fpr=0.5, epsilon=1.0),
    "hipaa tolerated-epsilon": lambda: scipy.optimize.brentq(
        lambda at: 1000 * mechanisms.largest_tpr(fpr=0.01, epsilon=at) - 50, 0, 9
    ),
    "hipaa belief-that-may-remain": lambda: scipy.optimize.brentq(
        lambda at: mechanisms.posterior_range(prior=0.2, epsilon=at)[1] - 0.5, 0, 9
    ),
    "hipaa two-releases": lambda: mechanisms.basic_composition(epsilons=[0.9995, 8.0]).epsilon,
    "hipaa kappa-of-rare-leaks": lambda: cohen_kappa_score(  # one shared yes, eight disagreements
        [1] * 5 + [0] * 95, [1] * 1 + [0] * 4 + [1] * 4 + [0] * 91
    ),
    # ---
}
