"""The right numbers of the teacher's questions of the core, found another way; see `test_site_quizzes`."""

from itertools import product

import numpy as np
import scipy.stats

MORE_RUN = {  # what the chapters keep that these questions quote, as a run might have it
    # the_claim
    **{"simulations": 2000, "chance": 16.6, "expected": 232.5, "manual_above": 21.0},
    **{"null_low": 206.0, "null_high": 264.0, "fall_b": 33.4, "fall_c": 54.0},
    # ---
    # differential_privacy
    # ---
    # hypothesis_testing
    # ---
    # renyi_accounting
    # ---
    # synthetic_records
    # ---
    # fine_tuning
    # ---
    # private_training
    # ---
    # extraction
    # ---
    # membership_inference
    # ---
    # auditing
    # ---
    # comparison
    # ---
    # hipaa
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
    # ---
    # hypothesis_testing
    # ---
    # renyi_accounting
    # ---
    # synthetic_records
    # ---
    # fine_tuning
    # ---
    # private_training
    # ---
    # extraction
    # ---
    # membership_inference
    # ---
    # auditing
    # ---
    # comparison
    # ---
    # hipaa
    # ---
}
