"""Model cards quote the files of a run, and every figure of leakage stands beside its control."""

import html

import pytest

from bookmaker.runner import chain, published
from bookmaker.site import _model_cards
from privhelpers.artifacts import Store
from privhelpers.errors import MissingArtifact
from privhelpers.text import in_words

SPENT = {"unit": "patient", "adjacency": "add/remove", "sampler": "Poisson", "accountant": "pld"}
SPENT |= {"delta": 1e-5, "epsilon": 1.2345, "noise_multiplier": 2.5, "sample_rate": 0.1, "steps": 77}
GIVEN = {"learning_rate": 0.003, "weight_decay": 0.0, "best_learning_rate": 0.004, "best_weight_decay": 0.05}
GIVEN |= {"batch_size": 8, "accumulation_steps": 2, "seed": 5}
CONFIG = {"model_type": "gpt2", "n_layer": 2, "n_embd": 96, "vocab_size": 1536}
MODELS = ("public", "baseline", "best_nonprivate", "dp-eps-1")
MEASURES = ("AUC, loss", "strict leaks")


def measured(model, measure, arm, estimate):
    units = {"unit": "generation", "n": 700, "distinct_n": 680, "cluster": "prompt", "clusters": 14}
    interval = {"estimate": estimate, "low": 0.1, "high": 0.9, "level": 0.95}
    return {"model": model, "measure": measure, "arm": arm} | units | interval


@pytest.fixture
def book(tmp_path):
    store = Store(tmp_path / "runs" / "toy" / "artifacts", "toy")
    log = {"log": {"train_loss": [3.0, 2.0, 1.0]}}
    store.write_json("public_pretraining/metrics.json", log | {"parameters": 383616})
    store.write_json("fine_tuning/metrics.json", {"baseline": log, "best_nonprivate": log})
    store.write_json("private_training/dp-eps-1/metrics.json", {"spent": SPENT, "max_grad_norm": 0.5})
    audits = {model: {"confidence": 0.95, "audit_epsilon_lower": None} for model in MODELS}
    audits["dp-eps-1"]["audit_epsilon_lower"] = 0.4321
    store.write_json("auditing/audit.json", {"models": audits})
    store.write_json("comparison/summary.json", {"models": {name: {} for name in sorted(MODELS)}})
    arms = (("member", 0.75), ("control", 0.125))
    rows = [measured(m, name, arm, value) for m in MODELS for arm, value in arms for name in MEASURES]
    store.write_jsonl("comparison/measurements.jsonl", rows)
    texts = {"train.jsonl": "a1" * 32, "public.jsonl": "b2" * 32, "heldout.jsonl": "c3" * 32}
    runs = {chain.RECORDS: {"artifacts": texts, "parameters": {}}}
    for model in MODELS:
        slug = chain.MAKERS.get(model, chain.DPSGD)
        private = slug == chain.DPSGD
        rule, folder = (f"{slug}_{model}", "model") if private else (slug, model)
        store.write_json(f"{slug}/{model}/{'model/' if private else ''}config.json", CONFIG)
        run = runs.setdefault(rule, {"parameters": GIVEN, "artifacts": {}})
        run["artifacts"][f"{folder}/model.safetensors"] = f"{model:x<64}"
    return tmp_path, {"profile": "toy", "runs": runs}


def card(page, model):
    return page.partition(f"\n## {in_words(model)}\n")[2].partition("\n## ")[0]


def test_a_private_model_names_its_promise_with_all_conditions(book):
    page = _model_cards.model_cards(*book)
    text, intro = card(page, "dp-eps-1"), page.partition("\n## ")[0]
    for words in (
        "epsilon 1.234 at delta 1e-05; unit: patient; adjacency: add/remove; sampler: Poisson, rate 0.1",
        *("noise multiplier 2.5; accountant: pld", "0.4321", "77 steps", "rate 0.003", "0.5; seed 5"),
        *("SHA-256 `a1a1a1a1a1a1...`", "SHA-256 `dp-eps-1xxxx...`", "illustrative"),
    ):
        assert words in text, words
    assert published.WORTH in intro and all(one in intro for one in published.NOT_PROTECTED)


def test_a_model_without_privacy_says_that_nothing_was_promised(book):
    page = _model_cards.model_cards(*book)
    for model, rate, decay in (("baseline", "0.003", "0"), ("best_nonprivate", "0.004", "0.05")):
        text = card(page, model)
        assert "| promise to a patient | none |" in text and "epsilon" not in text
        trained = f"3 epochs in batches of 16 texts, learning rate {rate}, weight decay {decay}; seed 5"
        assert f"from the public checkpoint; AdamW, {trained}" in text
    assert "`public.jsonl`, SHA-256 `b2b2b2b2b2b2...`" in card(page, "public")
    assert "from random weights" in card(page, "public")


def test_every_figure_stands_above_its_control(book):
    page = _model_cards.model_cards(*book)
    for model in MODELS:
        lines = [line for line in card(page, model).splitlines() if "generation" in line]
        assert [line.split(" | ")[0].strip("| ") for line in lines] == [m for m in MEASURES for _ in "mc"]
        assert [line.split(" | ")[1:4] for line in lines[:2]] == [
            ["the training set", "0.75", "0.1 to 0.9"],
            ["people held out", "0.125", "0.1 to 0.9"],
        ]
        assert all(line.endswith("| 700 (generation) | 680 | 14 (prompt) |") for line in lines)


def test_what_a_run_wrote_means_nothing_in_a_card(book):
    root, hostile = book[0], "x` | <script>y</script> {ref}`z`"
    store = Store(root / "runs" / "toy" / "artifacts", "toy")
    store.write_json("public_pretraining/public/config.json", CONFIG | {"model_type": hostile})
    rows = store.read_jsonl("comparison/measurements.jsonl")
    store.write_jsonl("comparison/measurements.jsonl", [row | {"measure": hostile} for row in rows])
    page = _model_cards.model_cards(*book)
    cards = page.partition("\n## ")[2]
    assert "script" in cards and "<script" not in cards and "{ref}`z`" not in cards
    assert html.unescape(cards).count(hostile) == 1 + len(rows)


def test_a_card_without_its_measurements_is_refused(book):
    (book[0] / "runs" / "toy" / "artifacts" / "comparison" / "measurements.jsonl").unlink()
    with pytest.raises(MissingArtifact, match="measurements"):
        _model_cards.model_cards(*book)
