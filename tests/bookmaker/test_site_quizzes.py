"""Every chapter has its quiz; a bank is checked, and every number that is asked for is computed twice."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
import torch
import toy_site
import yaml
from bank_answers import MORE_RUN, MORE_TRUE
from nbformat import v4
from sklearn.metrics import f1_score

from bookmaker.runner import chain, notebooks
from bookmaker.site import _quizzes, questions
from bookmaker.teaching import _quizzes as gift
from privhelpers import lower_bounds, mechanisms, stats
from privhelpers.attacks import scores as attack_scores
from privhelpers.attacks import white_box
from privhelpers.defenses import dedup
from privhelpers.errors import InvalidParameter

ROOT = Path(__file__).parents[2]
SLUGS = list(chain.SLUGS)
SHORT = next(n for n in range(1, 1000) if int(1 / (1 / n)) < n)  # a loader that loses a step
TESTS = 240
CLAIMED = "What this run shows"  # a list of conclusions explains nothing
RUN = {  # what the chapters keep that a question quotes, as a run might have it
    **{"short": SHORT, "taken_short": SHORT - 1, "tests": TESTS},
    **{
        "last_heldback": 1.8,
        "baseline_gap": 1.7,
        "public_gap": 0.96,
        "bands": 25,
        "band_rows": 5,
        "shards": 4,
    },
    **{"shadows": 8, "all_attempts": 5600, "effect": 9.1, "tight_epsilon": 0.9995, "search_one": 7.99},
    **{"poisson": 8.6, "shuffled": 23.3, "shown_epsilon": 4.0, "binomial_lower": 1.8},
    **{"baseline_alike": 229, "copy_members": 1000, "baseline_phantoms": 104, "copy_heldout": 1000},
    **{"off_perplexity": 2.3, "honest_perplexity": 10.9},
    **MORE_RUN,
}


def unique_match_is_right(names=1000):
    """The two ways to one match, each as a probability of its own."""
    registered, alone = 0.5, (1 - 1 / names) ** (names - 1)
    right = registered * alone
    return 100 * right / (right + (1 - registered) * names * (1 / names) * alone)


def largest_belief(prior, epsilon=1.0):
    return 100 * mechanisms.posterior_range(prior=prior, epsilon=epsilon)[1]


def questions_of_equal_noise(cells=50, epsilon=1.0):
    """Where the spread of one of k divided answers is that of a sum of cells, both from SciPy."""
    of_cells = math.sqrt(cells * scipy.stats.laplace.var(scale=1 / epsilon))
    return scipy.optimize.brentq(lambda k: scipy.stats.laplace.std(scale=k / epsilon) - of_cells, 0.5, 1000)


def first_order_floor():
    bounds = [math.log(1e5) / (order - 1) for order in range(2, 64)]
    return min(bounds)


def kish(records=200, attempts=28, correlation=0.3):
    """The variance of the mean, from the covariance of all attempts on one record."""
    covariance = np.full((attempts, attempts), correlation) + (1 - correlation) * np.eye(attempts)
    return 1 / (covariance.sum() / attempts**2 / records)


def least_p_value():
    dealt = stats.permutation_test(
        lambda labels: (labels @ np.arange(40))[:, None], np.arange(40) >= 20, draws=199
    )
    return float(np.ravel(dealt)[0])


def smallest_that_holm_rejects():
    def excess(p):
        others = {f"other {i}": 1.0 for i in range(TESTS - 1)}
        return stats.adjust({"one": p} | others)["one"] - 0.05

    return scipy.optimize.brentq(excess, 1e-9, 0.05)


def touched_shards(shards=RUN["shards"], patients=3):
    homes = list(itertools.product(range(shards), repeat=patients))
    return 100 * np.mean([len(set(home)) / shards for home in homes])


def belief_after_a_refusal():
    """Of 400 patients and as many other people, the share of patients among those who are refused."""
    refused = [True] * 400 + [False] * 300
    return 100 * np.mean(refused)


def binary_scores_area():
    member = [1] * 30 + [0] * 70
    control = [1] * 10 + [0] * 90
    return stats.auc(member, control)


def check_digits_of_no_bank():
    """Among all pairs, those that no remainder of a division by 97 gives."""
    return len(set(range(100)) - {98 - number % 97 for number in range(1000)})


def always_the_same_drug():
    given = [0] * 44 + [drug for drug in range(1, 12) for _ in range(16)]
    return 100 * f1_score(given, [0] * len(given), average="macro", zero_division=0)


def leakage_by_hand():
    member, control = np.array([1, 2, 3, 6.0]), np.array([2.5, 4, 5, 7])
    low = attack_scores.split(-np.append(member, control), np.arange(8), np.arange(8) < 4)
    # Just above the threshold, because the helper counts a score at the threshold, too.
    return attack_scores.leakage_at(low, -member.mean() + 1e-9, draws=1).estimate


def words_hit():
    pairs = list(itertools.product(range(12), repeat=2))
    return 100 * np.mean([diagnosis == 0 or drug == 0 for diagnosis, drug in pairs])


def difference_left(attempts=1400):
    """Rates of the whole attack, before and after, members less controls."""
    before, after = np.array([300, 240]) / attempts, np.array([80, 20]) / attempts
    return 100 * np.diff(after)[0] / np.diff(before)[0]


# What the right choice says, found another way: by a helper, by counting, or by a distribution.
TRUE = {
    "the_claim null-model": words_hit,
    "the_claim memory-left": difference_left,
    "anonymization unique-match": unique_match_is_right,
    "differential_privacy largest-belief": lambda: largest_belief(0.5),
    "composition advanced-cost": lambda: (
        mechanisms.advanced_composition(epsilon=0.1, runs=100, delta_slack=1e-5).epsilon
    ),
    "more_mechanisms ten-patients-ahead": lambda: np.divide(
        *scipy.special.softmax(0.3 * np.array([120, 100]) / 2)
    ),
    "more_mechanisms when-to-publish-once": questions_of_equal_noise,
    "matrix_factorization four-uses": lambda: float(np.linalg.norm(np.eye(40)[:, ::10].sum(axis=1))),
    "hypothesis_testing ceiling-at-one-percent": lambda: 100 * mechanisms.largest_tpr(fpr=0.01, epsilon=1.0),
    "renyi_accounting floor-of-orders": first_order_floor,
    "synthetic_records secret-bits": lambda: -7 * math.log2(0.1),
    "public_pretraining perplexity-of-loss": lambda: np.exp(
        -np.log([math.e ** (1 - RUN["last_heldback"]), math.e ** (-1 - RUN["last_heldback"])]).mean()
    ),
    "fine_tuning difference-of-losses": lambda: scipy.optimize.brentq(
        lambda nats: math.exp(3 + nats) / math.exp(3) - RUN["baseline_gap"], 0, 5
    ),
    "shadow_models no-model-without": lambda: 100 * scipy.stats.binom.pmf(0, RUN["shadows"], 0.5),
    "private_utility floor-of-f1": always_the_same_drug,
    "luck_and_size best-of-five": lambda: (
        mechanisms.basic_composition(epsilons=[RUN["search_one"]] * 5).epsilon
    ),
    "opacus short-loader": lambda: len(range(int(1 / (1 / SHORT)))),
    "pitfalls drawn-rows": lambda: scipy.stats.binom.mean(60_000, 1 / len(range(0, 240, 16))),
    "attention_and_gradients concentration-value": lambda: float(
        white_box.concentration(torch.full((8,), 1 / 8))
    ),
    "extraction draws-at-one-percent": lambda: 100 * scipy.stats.binom.sf(0, 100, 0.01),
    "memorization draws-for-even-chance": lambda: scipy.stats.geom.ppf(0.5, 0.01),
    "membership_inference one-threshold-area": binary_scores_area,
    "gradient_inversion digits-ceiling": lambda: 10_000 * mechanisms.largest_tpr(fpr=1e-7, epsilon=8.0),
    "auditing perfect-guesses": lambda: lower_bounds.one_run_epsilon_lower(
        canaries=10, guesses=10, correct=10, delta=0.0
    ),
    "more_bounds delta-at-zero": lambda: sum(
        1e-5 * scipy.special.expit(-0.0) for _ in range(12_000)
    ),  # once a canary
    "comparison first-of-holm": smallest_that_holm_rejects,
    "scrubbing bands-miss": lambda: 100 * dedup._proposal_probability(0.5, RUN["bands"], RUN["band_rows"]),
    "unlearning three-requests": touched_shards,
    "retrieval refusal-belief": belief_after_a_refusal,
    "hipaa belief-after": lambda: largest_belief(0.1, RUN["tight_epsilon"]),
    "synthetic_notes votes-noise": lambda: float(np.linalg.norm([1.0] * 9)),
    "your_model least-p-value": least_p_value,
    "uncertainty effective-number": kish,
    "another_domain never-issued": check_digits_of_no_bank,
    "field_trial none-of-twenty": lambda: 100 * stats.clopper_pearson(0, 20).high,
    "clinical_paper leakage-by-hand": leakage_by_hand,
    "other_documents nine-runs": lambda: mechanisms.basic_composition(epsilons=[2.0] * 9).epsilon,
    **MORE_TRUE,
}


def filled(slug):
    return [_quizzes._filled(one, RUN, slug) for one in _quizzes.bank(ROOT, slug)]


@pytest.mark.parametrize("slug", SLUGS)
def test_every_chapter_has_its_questions_about_its_own_headings_whose_choices_differ(slug):
    bank = _quizzes.bank(ROOT, slug)
    count = 30 if slug in chain.CORE else 5
    assert len(bank) == len({one.asks for one in bank}) == count
    source = notebooks.read(chain.source(ROOT, slug))
    text = "\n".join(cell.source for cell in source.cells if cell.cell_type == "markdown")
    headings = _quizzes.HEADING.findall(text)
    assert [one.see for one in bank if headings.count(one.see) != 1 or one.see == CLAIMED] == []
    for question in filled(slug):
        says = {one.says for one in question.choices}
        assert len(says) == len(question.choices) == len({one.why for one in question.choices}) >= 3


def test_every_number_that_is_asked_for_has_a_second_computation():
    asked = {
        f"{slug} {one.name}"
        for slug in SLUGS
        for one in _quizzes.bank(ROOT, slug)
        if _quizzes.QUOTE.search(one.right.says)
    }
    assert asked == TRUE.keys() and len(asked) >= 25


@pytest.mark.parametrize("name", TRUE)
def test_the_right_number_is_right_and_the_others_are_not(name):
    slug, question = name.split()
    asked = next(one for one in filled(slug) if one.name == question)
    truth = TRUE[name]()

    def off(choice):
        number = re.search(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", choice.says)
        if number is None:
            return math.inf
        digits = number[0].partition("e")[0].partition(".")[2]
        last = 10.0 ** -len(digits) * 10 ** int(number[0].partition("e")[2] or 0)
        return abs(float(number[0]) - truth) / last

    assert off(asked.right) <= 0.51, "up to the last digit that is shown"
    assert all(off(one) > 0.9 for one in asked.choices if one is not asked.right)


GOOD = yaml.safe_load(toy_site.QUIZ)["second"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        *(
            (yaml.safe_dump({"one": GOOD | change}), field)
            for change, field in [
                ({"asks": "One.\n\nTwo."}, "asks"),
                ({"see": 5}, "see"),
                ({"hint": "x"}, "hint"),
                ({"right": {"says": "x"}}, "right, why"),
                ({"wrong": [{"says": "x", "why": "y"}]}, "wrong"),
                ({"wrong": [{"says": "x", "why": "y"}, {"says": True, "why": "y"}]}, "wrong, 1, says"),
                ({"numbers": {"x": True}}, "numbers, x"),
            ]
        ),
        *(("- one", ""), ("one: 5", "one"), ("A_b: {}", "name")),
    ],
)
def test_a_file_that_is_not_a_bank_is_named_with_its_field(tmp_path, text, field):
    (tmp_path / "book/quizzes").mkdir(parents=True)
    (tmp_path / "book/quizzes/toy.yml").write_text(text)
    with pytest.raises(InvalidParameter, match=rf"toy\.yml.*{field}"):
        _quizzes.bank(tmp_path, "toy")


def with_numbers(**numbers):
    entry = GOOD | {"numbers": numbers, "right": {"says": "{glue:text}`x:.1f`", "why": "w"}}
    return _quizzes.Question.model_validate({"name": "one", **entry})


@pytest.mark.parametrize(
    "expression", ["__import__('os')", "exp", "exp(1", "missing + 1", "word + 1", "1 / 0"]
)
def test_what_an_expression_cannot_compute_is_named(expression):
    with pytest.raises(InvalidParameter, match="here, numbers"):
        _quizzes._filled(with_numbers(x=expression), {"word": "three"}, "here")


def test_numbers_come_from_the_run_and_a_wrong_choice_that_reads_like_the_right_one_goes():
    given = with_numbers(half="1 / 2", two=2, one=1.0, x="-half + sqrt(a * a) ** two * one")
    assert _quizzes._filled(given, {"a": 3}, "here").right.says == "8.5"
    with pytest.raises(InvalidParameter, match="quotes x"):
        _quizzes._filled(with_numbers(), {}, "here")
    same = GOOD | {"wrong": [GOOD["right"], *GOOD["wrong"][1:]]}
    assert len(_quizzes._filled(_quizzes.Question(name="one", **same), {}, "here").choices) == 2
    none = GOOD | {"wrong": [GOOD["right"], GOOD["right"]]}
    with pytest.raises(InvalidParameter, match="here"):
        _quizzes._filled(_quizzes.Question(name="one", **none), {}, "here")


def test_a_heading_that_is_gone_is_named(tmp_path):
    (tmp_path / "book/quizzes").mkdir(parents=True)
    (tmp_path / "book/quizzes/toy.yml").write_text(yaml.safe_dump({"one": GOOD}))
    page = v4.new_notebook(cells=[v4.new_markdown_cell("## Another")])
    with pytest.raises(InvalidParameter, match="Exercises"):
        questions(tmp_path, "toy", page)
    assert questions(tmp_path, "no_quiz", page) == []


def test_the_export_holds_every_question_and_marks_one_choice_right(tmp_path):
    book = toy_site.build(tmp_path / "book")
    (book / "build/quizzes").mkdir(parents=True)
    (book / "build/quizzes/old.gift").write_text("")
    written = gift.write(book, toy_site.jobs(book))
    assert [path.name for path in (book / "build/quizzes").iterdir()] == ["comparison.gift"]
    text = written[0].read_text()
    asked = (
        "::comparison two-scores::[html]Is an AUC of 0.91, with \\\\(x^2\\\\) and <code>code</code>, better"
    )
    assert asked in text and "::comparison second::" in text
    assert re.findall(r"^=(.*?)#", text, re.MULTILINE) == ["Yes, by 0.41.", "It is two."]
    assert len(re.findall(r"^~", text, re.MULTILINE)) == 4 and r"~No\: it is 0.5.#" in text
    assert text.count(f"See “{CLAIMED}”.") == 3


def test_numbers_and_wordings_of_a_run_are_quoted_and_tables_are_not():
    values = {"auc": 0.9, "reading": "it's more", "bound": float("inf")}
    outputs = [toy_site.glued(name, text_plain=repr(value)) for name, value in values.items()]
    outputs.append(toy_site.glued("table", text_plain="a 1", text_html="<table></table>"))
    made = v4.new_notebook(cells=[v4.new_markdown_cell("# A"), v4.new_code_cell("tell()", outputs=outputs)])
    assert _quizzes.quoted(made) == values | {"bound": "inf"}


def test_a_number_that_cannot_be_formatted_is_refused_and_infinity_is_a_number():
    asked = "{glue:text}`x:.2f` and {glue:text}`x`"
    assert _quizzes.with_numbers(asked, {"x": "inf"}) == "inf and inf"
    assert _quizzes.with_numbers(asked, {"x": "nan"}) == "nan and nan"
    for source, value in ((asked, "many"), ("{glue:text}`x:.2q`", 0.5)):
        with pytest.raises(InvalidParameter, match="extraction"):
            _quizzes.with_numbers(source, {"x": value}, "extraction")
