"""The audit of chapter 22 as a second net below the tests: does it refute what a mutant claims?

Each run plants canaries, trains in a child that has the mutant, and says what it spent. The audit looks at
the canaries' scores in another child, whose package is whole.
"""

import json
import sys

from run import Finder, said
from table import MUTANTS, Mutant

NET = (
    *("noise missing", "noise divided twice", "noise without the clipping bound", "a clamp on sigma"),
    *("the same noise for every parameter", "noise missing on the tied matrix", "contributions unbounded"),
    *("a shuffled sampler", "canaries in every step", "every canary takes part"),
    *("calibration that overshoots", "cross term of the tied matrix dropped"),
)
CANARIES, CONFIDENCE = 5_000, 0.999
PLAN = {
    **{"target_epsilon": 1.0, "target_delta": 1e-5, "sample_rate": 0.2},
    **{"steps": 30, "max_grad_norm": 2.0, "units": 40},
}


def _trained(mutant: Mutant | None) -> str:
    """Train with canaries, and return what an auditor gets."""
    if mutant:
        assert mutant.module not in sys.modules
        sys.meta_path.insert(0, Finder(mutant))
    from privhelpers import dpsgd, models
    from privhelpers.errors import PrivHelpersError

    texts = [[f"note {i} of ward {i % 3}"] * (1 + i % 3) for i in range(PLAN["units"])]
    tokenizer = models.train_tokenizer([text for notes in texts for text in notes], vocab_size=300)
    model = models.build("tiny-gpt2", tokenizer, seed=0)
    settings = dpsgd.Settings(learning_rate=1e-3, canaries=dpsgd.GradientCanaries(count=CANARIES, seed=0))
    try:
        plan = dpsgd.plan_privacy(**PLAN)
        log = dpsgd.train(model, tokenizer, texts, plan, settings, chance=dpsgd.research(0), progress=False)
    except PrivHelpersError as error:
        return json.dumps({"refused": type(error).__name__})
    return json.dumps(
        {
            "included": log.canaries.included.tolist(),
            "scores": log.canaries.scores.tolist(),
            "epsilon": float(log.spent.epsilon),
            "noise_multiplier": float(log.spent.noise_multiplier),
        }
    )


def _audited(run: dict) -> str:
    """Audit a run and return the largest bound, and the chance of such scores under the claimed noise."""
    from privhelpers import lower_bounds

    coins, scores, delta = run["included"], run["scores"], PLAN["target_delta"]
    law = {name: PLAN[name] for name in ("sample_rate", "steps")}
    at = {"delta": delta, "confidence": CONFIDENCE}
    return json.dumps(
        {
            "binomial": lower_bounds.audit_in_one_run(
                coins, scores, method=lower_bounds.BINOMIAL, **at
            ).epsilon_lower,
            "own curve": lower_bounds.own_curve_audit(coins, scores, **law, **at).epsilon_lower,
            "p": lower_bounds.claim_p_value(
                coins, scores, noise_multiplier=run["noise_multiplier"], seed=0, **law
            ),
        }
    )


def caught(name: str) -> dict:
    """Return what became of a run with the mutant of this name, "" for a run without one.

    Returns:
        `refused` by which error of the package, where it does not run; else the claimed epsilon, the bounds
        from below, the p-value of the claimed noise, and whether one of them refutes it at `CONFIDENCE`.
    """
    mutant = next((one for one in MUTANTS if one.name == name), None)
    assert (mutant is None) == (name == "")
    run = json.loads(said(lambda: _trained(mutant)))
    if "refused" in run:
        return {"net": name, **run}
    audits = json.loads(said(lambda: _audited(run)))
    above = max(audits["binomial"], audits["own curve"]) > run["epsilon"]
    refuted = above or audits["p"] < 1 - CONFIDENCE
    return {"net": name, "claimed": run["epsilon"], **audits, "refuted": refuted}


def _line(row: dict) -> str:
    numbers = [f"{row[key]:.2g}" if key in row else "" for key in ("claimed", "binomial", "own curve", "p")]
    verdict = "refuted" if row.get("refuted") else "not seen"
    verdict = f"refused: {row['refused']}" if "refused" in row else verdict
    return f"| {' | '.join([row['net'] or '**no mutant**', *numbers, verdict])} |"


def table(rows: list[dict]) -> list[str]:
    """Return the verdicts as lines of Markdown."""
    seen = sum(row.get("refuted", True) for row in rows if row["net"])
    return [
        "## The audit as a second net",
        "",
        f"A run of {PLAN['steps']} steps with {CANARIES:,} canaries claims its ε at",
        f"δ = {PLAN['target_delta']:g}; bounds are at {100 * CONFIDENCE:g}%, and a p-value below",
        f"{1 - CONFIDENCE:.1g} refutes the claimed noise. Refuted, or refused by the package before it ran:",
        f"{seen} of {len(rows) - 1}. An audit sees the code that its canaries go through: not another layer,",
        "nor how the notes of a patient are counted.",
        "",
        "| mutant | claimed ε | binomial | DP-SGD's own curve | p of the claimed noise | verdict |",
        "|---|---|---|---|---|---|",
        *map(_line, rows),
        "",
    ]
