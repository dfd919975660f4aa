"""Values of no kind at the doors of several rooms: each ends in a refusal that names its argument."""

import numpy as np
import pytest

from privhelpers import (
    accounting,
    audit,
    claims,
    defenses,
    hipaa,
    models,
    records,
    stats,
)
from privhelpers.attacks import attributes, canaries, lira, memorization, ranking
from privhelpers.attacks.scores import Arms, measure, split
from privhelpers.errors import InvalidParameter
from privhelpers.models import greedy_continuations, scoring

RAGGED, HUGE = [[1, 2], [3]], 10**400
NO_FUNCTIONS = (0, "", "mean", RAGGED, np.array([]))
RUN = {"noise_multiplier": 1.0, "sample_rate": 0.5, "steps": 2}
COINS = [True, False] * 4
ARMS = ([1.0, 2.0, 3.0], [1, 2, 3], [0.0, 1.0, 2.0], [4, 5, 6])
LOSSES, INSIDE, FIXED = [[1.0], [2.0]], [[True], [False]], {"fixed_variance": True}
HOSPITAL = {"seed": 0, "patients": 2, "validation_patients": 2, "heldout_patients": 2}
CALLS = {  # what is called with one of the values as its keyword argument
    "draws": (
        (0, 1.5, 10**7 + 1, 10**18, HUGE),
        lambda **bad: stats.auc_interval(*ARMS, **bad),
        lambda **bad: stats.roc_curve(*ARMS, **bad),
        lambda **bad: stats.permutation_auc(*ARMS, **bad),
        lambda **bad: stats.clustered_bootstrap(np.mean, [1, 2], [1.0, 2.0], **bad),
    ),
    "statistic": (
        NO_FUNCTIONS,
        lambda statistic: stats.clustered_bootstrap(statistic, [1, 2], [1.0, 2.0]),
        lambda statistic: stats.permutation_test(statistic, COINS),
    ),
    "arrays": ((RAGGED,), lambda arrays: stats.clustered_bootstrap(np.mean, [1, 2], arrays)),
    "shows": (
        NO_FUNCTIONS,
        lambda **bad: audit.simulate_scores(canaries=4, **RUN, seed=0, **bad),
    ),
    "times": (
        (0, 10**7, 10**18, HUGE),
        lambda **bad: audit.claim_p_value(COINS, range(8), **RUN, seed=0, **bad),
    ),
    "planted": ((RAGGED, None, 3), lambda planted: audit.swap_pairs(planted, seed=0)),
    "lower": ((HUGE,), lambda lower: audit.require_below(lower, 1.0)),
    "upper": ((HUGE, -HUGE), lambda upper: audit.require_below(1.0, upper)),
    "name": (
        ("pld", "", None, RAGGED),
        lambda name: accounting.opacus_epsilon(name, **RUN, delta=1e-5),
    ),
    "digits": ((0, 19, 10**18), lambda digits: canaries.draw_references(digits, count=1, seed=0)),
    "batch_size": (  # a step of -1 through the batches passes none of them: figures of nothing
        (-1, 0, None, 1.5),
        lambda **bad: attributes.candidate_table(None, None, [], [], **bad),
        lambda **bad: canaries.secret_log_probabilities(None, None, "", [], **bad),
        lambda **bad: greedy_continuations(None, None, [], tokens=1, **bad),
        lambda **bad: memorization.recall(None, None, **bad),
        lambda **bad: next(scoring._passes(None, None, None, **bad)),
    ),
    "scores": (
        (RAGGED, None, "x", [HUGE]),
        lambda scores: ranking.first(scores, 1, seed=0),
        lambda **bad: split(patients=COINS, member=COINS, **bad),
    ),
    "member": ((RAGGED, COINS[:3], True), lambda member: split([1.0] * 8, COINS, member)),
    "level": ((0, 1.5, "x", None), lambda level: measure(Arms(*ARMS), level=level)),
    "target": (("x", RAGGED), lambda **bad: lira.online(values=LOSSES, inside=INSIDE, **bad, **FIXED)),
    "values": (("x", RAGGED), lambda **bad: lira.offline([1.0], inside=INSIDE, **bad, **FIXED)),
    "inside": ((RAGGED,), lambda **bad: lira.offline([1.0], LOSSES, **bad, **FIXED)),
    "document": (("", None, RAGGED), claims.printed),
    "permutations": (
        (0, 1, 10**6, HUGE),
        lambda permutations: defenses.near_duplicates(["a"], permutations=permutations),
    ),
    "documents": ((0, 10**18), lambda documents: records.make_public_corpus(seed=0, documents=documents)),
    "vocab_size": ((9, 10**18), lambda vocab_size: models.train_tokenizer([], vocab_size=vocab_size)),
    "samples": ((0, 10**18), lambda samples: models.generate(None, None, "", samples=samples, seed=0)),
    "canaries_per_level": ((0, 10**6), lambda **bad: records.make_hospital_records(**HOSPITAL | bad)),
    "subject": ((RAGGED, {}, "x"), lambda subject: hipaa.declare(subject, "no", by="me", on="2024-01-01")),
    "access": ((RAGGED, ()), lambda access: hipaa.declare("access", access, by="me", on="2024-01-01")),
    "count": ((10**7 + 1, HUGE), lambda count: canaries.draw_references(18, count=count, seed=0)),
}


@pytest.mark.parametrize(
    ("name", "value", "call"),
    [(name, value, call) for name, (values, *calls) in CALLS.items() for value in values for call in calls],
    ids=lambda part: part if isinstance(part, str) else "",  # no address of a function
)
def test_a_value_of_no_kind_is_refused_by_name(name, value, call):
    with pytest.raises(InvalidParameter, match=rf"\b{name}\b"):
        call(**{name: value})
