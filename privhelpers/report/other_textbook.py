"""Claims of a textbook chapter on the privacy of language models."""

import ast
import importlib.util
import inspect
import math
from pathlib import Path

from privhelpers import accounting, mechanisms
from privhelpers.errors import InvalidParameter
from privhelpers.report import published
from privhelpers.report.claims import (
    HOLDS,
    UNSUPPORTED,
    WRONG,
    Finding,
    Topic,
    listed,
)

TOPIC = Topic("textbook, guarantees", document="the textbook chapter")
SIGMAS = (0.5, 1.0, 2.0, 4.0)


def _epsilon(sigma: float, times: int = 1) -> float:
    run = {**published.RUN, "steps": times * published.STEPS}
    return accounting.epsilon(noise_multiplier=sigma, **run)


def _opacus_default(argument: str) -> str:
    """Return a default of Opacus' engine, read from its source: importing it would load torch."""
    source = Path(importlib.util.find_spec("opacus").origin).with_name("privacy_engine.py").read_text()
    makers = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    ]
    for maker in makers:
        values = dict(zip((a.arg for a in maker.args.kwonlyargs), maker.args.kw_defaults, strict=True))
        if argument in values:
            return ast.literal_eval(values[argument])
    raise InvalidParameter(f"argument = {argument!r}: Opacus' engine has none of that name")


@TOPIC.claim(
    "twice-the-steps",
    where="50.1.2",
    says="Twice the steps cost √2 times the ε.",
    published="√2 = 1.41",
    severity="C",
)
def twice_the_steps() -> Finding:
    """Fair for much noise, not for little."""
    found = {s: _epsilon(s, 2) / _epsilon(s) for s in SIGMAS}
    return Finding(
        f"{listed(found.values())} at σ = " + listed(SIGMAS, 1),
        UNSUPPORTED,
        "A rule of thumb for σ of 1 or more (q = 4/1500, 1875 steps, PLD).",
        {f"ratio_{s:g}": ratio for s, ratio in found.items()},
    )


@TOPIC.claim(
    "twice-the-noise",
    where="50.1.2",
    says="Twice the noise halves ε.",
    published="0.5",
    severity="B",
)
def twice_the_noise() -> Finding:
    """Far more than that where it matters."""
    found = {s: _epsilon(2 * s) / _epsilon(s) for s in SIGMAS}
    return Finding(
        f"{listed(found.values(), 3)} at σ = " + listed(SIGMAS, 1),
        WRONG,
        "In the useful range a little more noise buys much more privacy than half.",
        {f"ratio_{s:g}": ratio for s, ratio in found.items()},
    )


@TOPIC.claim(
    "adapters",
    where="50.1.2, 50.1.3.2",
    says="Fewer weights spend less ε for the same number of epochs.",
    published="less budget",
    severity="B",
)
def adapters() -> Finding:
    """No accountant asks for the number of weights."""
    asked = set(inspect.signature(accounting.epsilon).parameters)
    return Finding(
        f"ε depends on {', '.join(sorted(asked & {'noise_multiplier', 'sample_rate', 'steps', 'delta'}))}",
        WRONG,
        "What falls with the number of weights is the length of the noise vector, and the memory.",
        {"asks_for_weights": float(bool(asked & {"parameters", "dimension"}))},
    )


@TOPIC.claim(
    "nine-runs",
    where="50.1.3.2",
    says="Nine runs of ε = 2 cost about 6 by advanced composition.",
    published="6, instead of 18",
    severity="B",
)
def nine_runs() -> Finding:
    """Advanced composition is worse than basic here, and the best possible is hardly better."""
    nine = {"epsilon": 2.0, "runs": 9, "delta_slack": 1e-5}
    advanced = mechanisms.advanced_composition(**nine).epsilon
    best = mechanisms.optimal_composition(**nine).epsilon
    return Finding(
        f"advanced {advanced:.1f}, basic 18, best possible {best:.5f} (δ = 1e-5)",
        WRONG,
        "ε√k leaves out the factor and the second term, which rule at large ε: off by three.",
        {"advanced": advanced, "best": best},
    )


@TOPIC.claim(
    "default-accountant",
    where="50.1.3.2",
    says="Accountants such as Opacus' use advanced composition by default.",
    published="Rényi, advanced composition",
    severity="C",
)
def default_accountant() -> Finding:
    """The default is PRV."""
    default = _opacus_default("accountant")
    return Finding(
        f"the default is {default!r}",
        HOLDS if default == "rdp" else WRONG,
        "Neither uses the advanced composition theorem.",
    )


@TOPIC.claim(
    "delta-one-over-n",
    where="50.1.3",
    says="δ is set to 1/N.",
    published="1/N",
    severity="B",
)
def delta_one_over_n() -> Finding:
    """Naming people at random is allowed then."""
    n = published.TRAINING
    exposed = 1 - (1 - 1 / n) ** n
    return Finding(
        f"publishing each record with chance 1/N is (0, 1/N)-DP and exposes somebody with {exposed:.3f}",
        WRONG,
        "δ must be well below 1/N; the chapter's own code says so.",
        {"exposed": exposed},
    )


@TOPIC.claim(
    "powers", where="50.1.3", says="e, e² and e⁸ as likelihood ratios.", published="2.72, 7.39, 2,981"
)
def powers() -> Finding:
    """Right."""
    found = [math.exp(e) for e in (1, 2, 8)]
    right = abs(found[0] - 2.72) < 0.005 and abs(found[1] - 7.39) < 0.005 and round(found[2]) == 2981
    return Finding(listed(found), HOLDS if right else WRONG, "The ratios are right, δ aside.")


@TOPIC.claim(
    "two-places",
    where="50.1.2",
    says="DP-SGD changes SGD in exactly two places.",
    published="clipping, noise",
    severity="B",
)
def two_places() -> Finding:
    """The sampler is the third."""
    sampled = accounting.epsilon(noise_multiplier=1.0, **published.RUN)
    plain = accounting.epsilon_without_amplification(
        noise_multiplier=1.0, participations=published.EPOCHS, delta=published.DELTA
    )
    return Finding(
        f"ε = {sampled:.2f} with Poisson sampling, {plain:.2f} with shuffled epochs (σ = 1)",
        WRONG,
        "Without the third change the accountant's number is not the run's.",
        {"sampled": sampled, "plain": plain},
    )
