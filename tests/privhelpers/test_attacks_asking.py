"""Asked by name: what greedy decoding would write, read off one pass."""

import copy

import numpy as np
import pytest
from test_dpsgd_training import hospital

from privhelpers import models, training
from privhelpers.attacks import asking
from privhelpers.attacks.extraction import Profile

NAMES = {"p0": "Ann B. Hill", "p1": "Jim R. Stone"}
NUMBERS = {"p0": "SYN-12345678", "p1": "SYN-87654321"}
GROUP = [
    *(Profile(p, {"name": (NAMES[p],), "mrn": (NUMBERS[p],)}, (), ()) for p in NAMES),
    Profile("p2", {"name": ("No Number",)}, (), ()),
]


@pytest.fixture(scope="module")
def model_and_tokenizer():
    _, tokenizer, model = hospital()
    return model, tokenizer


def test_one_row_a_patient_with_the_best_of_the_forms(model_and_tokenizer):
    model, tokenizer = model_and_tokenizer
    rows = asking.ask(model, tokenizer, "mrn", GROUP).set_index("patient")
    assert sorted(rows.index) == ["p0", "p1"], "who has no number is not asked"
    for patient, row in rows.iterrows():
        by_form = []
        for form in asking.FORMS["mrn"]:
            prompt = form.format(NAMES[patient])
            scores = models.score_tokens(model, tokenizer, [prompt + NUMBERS[patient]])
            start = len(tokenizer(prompt.rstrip())["input_ids"])
            by_form.append(np.exp(scores.log_p[0][start:-1].sum()))
        assert row["probability"] == pytest.approx(max(by_form))


def test_a_number_that_was_learned_by_heart_is_completed_and_no_other(model_and_tokenizer):
    model, tokenizer = copy.deepcopy(model_and_tokenizer[0]), model_and_tokenizer[1]
    known, value = "Ann B. Hill", "000-12-3456"
    note = asking.FORMS["ssn"][0].format(known) + value
    training.train(model, tokenizer, [note], training.Settings(80, 5e-3, warm_up=0.0), seed=0, progress=False)
    true, changed = (
        Profile("p0", {"name": (known,), "ssn": (number,)}, (), ()) for number in (value, "000-12-3457")
    )
    answer = asking.ask(model, tokenizer, "ssn", [true]).iloc[0]
    assert answer["completed"] and answer["probability"] > 0.5
    assert not asking.ask(model, tokenizer, "ssn", [changed])["completed"].any()
    untrained = asking.ask(model_and_tokenizer[0], tokenizer, "ssn", [true]).iloc[0]
    assert not untrained["completed"] and untrained["probability"] < 1e-6
