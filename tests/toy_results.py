"""A store with what the chapters leave behind: a handful of patients, the same files as a real run."""

import math

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from privhelpers.artifacts import Store
from privhelpers.results import ATTACKS

PATIENTS, NOTES = 12, 2
TEXTS = ("So MEMBER m. aaa came", "and member m. bbb", *(f"text {k}" for k in range(6)))


def notes(letter):
    return [
        {
            "note_id": f"{letter}{k:02d}",
            "patient_id": f"{letter}-{k // NOTES}",
            "text": "a b c"[: 1 + 2 * (k % 3)],
        }
        for k in range(PATIENTS * NOTES)
    ]


def losses(shift, seed):
    draws = np.random.default_rng(seed).normal(1.5, 0.3, size=(2, PATIENTS * NOTES))
    names = ([note["note_id"] for note in notes(letter)] for letter in "th")
    sides = zip(("members", "others"), names, (draws[0] - shift, draws[1]), strict=True)
    return {side: dict(zip(ids, values.tolist(), strict=True)) for side, ids, values in sides}


def perplexity(held):
    tokens = [len(note["text"].split()) + 1 for note in notes("h")]
    return math.exp(np.average(list(held.values()), weights=tokens))


def _membership(losses_by_side):
    row = {"auc": [0.6, 0.5, 0.7], "tpr_at_1pct_fpr": [0.02, 0.01, 0.03]}
    return {
        **row,
        "perplexity": perplexity(losses_by_side["others"]),
        "membership_advantage": 0.2,
        "null_auc": [0.51, 0.45, 0.56],
        "patient_auc": [0.65, 0.55, 0.75],
        "patients": [PATIENTS, PATIENTS],
        "best_attack": "loss/sample",
        "best_attack_auc": [0.7, 0.6, 0.8],
        "best_attack_tpr_at_1pct_fpr": [0.05, 0.02, 0.08],
        "best_attack_tpr_at_01pct_fpr": [0.01, 0.0, 0.03],
        "token_attacks": {"sample at 0.001": {"difference": [-0.01, -0.02, 0.01]}},
        "attacks": {name: {"sample": row} for name in ATTACKS},
        "nulls": {f"{name}/sample": {"held_out": [0.5, 0.4, 0.6]} for name in ATTACKS},
    }


def _extraction():
    counts = {"strict": (3, 1), "strict_control": (0, 0), "loose": (250, 5), "loose_control": (260, 6)}
    return {
        "attempts": len(TEXTS),
        "patients": PATIENTS,
        "distinct_generations": 7,
        "asked": {"mrn member": [5, 20], "mrn control": [0, 18]},
        "matches": {rule: {"leaks": n, "patients": who} for rule, (n, who) in counts.items()},
    }


def _memorization():
    ends = {"member": (0.1, 0.05, 0.2), "control": (0.0, 0.0, 0.02)}
    return {
        "attributes": {"in_context/member": [0.5, 0.3, 0.7], "in_context/control": [0.25, 0.1, 0.5]},
        "exposure_difference": [4.0, 3.0, 5.0],
        "space_bits": 23.25,
        "suffix": {"recalled": 2, "control": 0, "notes": 100},
        "recalled": {
            f"report/{arm}": dict(zip(("rate", "low", "high"), values, strict=True)) | {"notes": 100}
            for arm, values in ends.items()
        },
    }


def write_model(store, model, shift=0.0, seed=0):
    """Write what the runs on one model leave; a shift lowers the losses of members."""
    losses_by_side = losses(shift, seed)
    scores = {note: -loss for side in losses_by_side.values() for note, loss in side.items()}
    home = f"membership_inference/{model}"
    store.write_json(f"{home}/losses.json", losses_by_side)
    store.write_json(f"{home}/scores.json", {name: scores for name in ATTACKS[1:]})
    store.write_json(f"{home}/attack.json", _membership(losses_by_side))
    hits = {"strict": [0], "strict_control": [], "loose": [0, 1, 2], "loose_control": [1]}
    store.write_json(f"extraction/{model}/hits.json", hits)
    texts = [{"prompt": f"p{k % 4}", "text": text} for k, text in enumerate(TEXTS)]
    store.write_jsonl(f"extraction/{model}/generations.jsonl", texts)
    store.write_jsonl(f"extraction/{model}/ranked.jsonl", [{"text": "nobody"}])
    store.write_json(f"extraction/{model}/attack.json", _extraction())
    guesses = [
        {"arm": arm, "note_id": note["note_id"], "correct": arm == "member" and k < 3}
        for arm, letter in (("member", "t"), ("control", "h"))
        for k, note in enumerate(notes(letter))
    ]
    canaries = [
        {
            "planted": planted,
            "copies": 4 * planted,
            "extracted": planted and k == 0,
            "exposure_bits": 3.0 * planted + 0.1 * k,
            "space_bits": 3.0 * planted + 0.1 * k + 10.0 * (planted and k == 0),  # counted among all
        }
        for planted in (True, False)
        for k in range(5)
    ]
    store.write_json(f"memorization/{model}/attack.json", _memorization())
    store.write_jsonl(f"memorization/{model}/guesses.jsonl", guesses)
    store.write_jsonl(f"memorization/{model}/canaries.jsonl", canaries)


def write(root, models=("public", "baseline", "dp-eps-8")):
    """Return a store with the runs on these models; all but the public checkpoint remember their members."""
    store = Store(root, "toy")
    for part, letter in (("train", "t"), ("heldout", "h")):
        store.write_jsonl(f"synthetic_records/{part}.jsonl", notes(letter))
    tokenizer = Tokenizer(WordLevel({"a": 0, "b": 1, "c": 2, "[UNK]": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    store.write_bytes("public_pretraining/public/tokenizer.json", tokenizer.to_str().encode())
    for seed, model in enumerate(models):
        write_model(store, model, 0.0 if model == "public" else 2.0, seed)
        if model.startswith("dp-eps-"):
            spent = {"epsilon": 0.999 * float(model.removeprefix("dp-eps-")), "delta": 1e-5}
            store.write_json(f"private_training/{model}/metrics.json", {"spent": spent})
            by_note = {note["note_id"]: 1.5 for letter in "th" for note in notes(letter)}
            store.write_json(f"private_training/{model}/other_people.json", by_note)
    scores = {name: 0.6 if name in ("baseline", "best_nonprivate") else 0.04 for name in models}
    scores |= {"best_nonprivate": 0.6}
    drugs = {
        "models": {name: {"macro-F1, asked": [f1, f1 - 0.01, f1 + 0.01]} for name, f1 in scores.items()},
        "without a model": {"most frequent drug": [0.04, 0.03, 0.05]},
        "above the floor": {name: [f1 - 0.04, f1 - 0.05, f1 - 0.03] for name, f1 in scores.items()},
    }
    store.write_json("private_utility/utility.json", {"drugs": drugs})
    audits = {name: {"audit_epsilon_lower": 3.25 if name == "dp-eps-8" else None} for name in models}
    store.write_json("auditing/audit.json", {"models": audits})
    broken = {
        "claimed_epsilon": 1.0,
        "true_epsilon": None,
        "audit_epsilon_lower": 4.0,
        "perplexity": 2.0,
        "best_attack_auc": [0.55, 0.5, 0.6],
        "fault": "no noise",
    }
    store.write_json("broken_dpsgd/broken.json", {"broken": {"noise off": broken}})
    return store
