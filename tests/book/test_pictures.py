"""The interactive pictures in a real browser: what they compute is what the helpers compute."""

import itertools
import math
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch
from browsing import BARRIERS, axe_core, serving
from scipy.stats import binom, laplace, norm

from bookmaker.site import _pictures
from privhelpers import accounting, lower_bounds, mechanisms, models, records, stats

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "book" / "_static"
ORDERS = [*range(2, 65), 72, 80, 96, 128, 160, 192, 256, 320, 384, 512]
BOX = re.compile(r'data-picture=\\"(\w+)\\"')
PAGE = """<!doctype html><html lang="en" data-theme="light"><head>
<meta charset="utf-8"><title>Pictures</title>
<link rel="stylesheet" href="/theme/styles/pydata-sphinx-theme.css"><link rel="stylesheet" href="/book.css">
</head><body><main><article class="bd-article"><h1>Pictures</h1>{boxes}{scripts}</article></main></body>
</html>"""


def control(fluency: float, memory: float, size: int) -> dict[str, float]:
    texts = np.indices((size, size))  # of all texts, the diagnosis and the drug; a patient has the first ones
    chance = (texts == 0).any(axis=0).mean()
    hits = binom(1400, memory + (1 - memory) * fluency * chance)
    false_hits = binom(1400, fluency * chance)
    return {
        "members": hits.mean(),
        "controls": false_hits.mean(),
        "fall": 1 - hits.mean() / (1400 * (0.1 + 0.9 * chance)),
        "spread": norm.ppf(0.975) * (hits.var() + false_hits.var()) ** 0.5,
    }


def release(epsilon: float, prior: float, score: float, y: float) -> dict[str, float]:
    noise = laplace(scale=25 / epsilon)
    loss = noise.logpdf(y - np.mean([90, 80, 80, score])) - noise.logpdf(y - np.mean([90, 80, 80, 90]))
    least, most = mechanisms.posterior_range(prior=prior, epsilon=epsilon)
    return {"belief": mechanisms.posterior(loss, prior=prior), "least": least, "most": most}


def guess(bits: float, printed: int, patients: int) -> dict[str, float]:
    names = {"SSN": "ssn", "MRN": "mrn", "e-mail": "email"}
    spaces = {name: records.SPACE_BITS[kind] for name, kind in names.items()}
    one = printed / 2**bits
    return {"one": one, "any": binom.sf(0, patients, one), **spaces}


def recite(perplexity: float, digits: int, attempts: int) -> dict[str, float]:
    once = np.prod(np.full(digits, 1 / perplexity))
    return {"once": once, "guess": 10.0**-digits, "found": binom.sf(0, attempts, once)}


def roc(epsilon: float, delta: float, threshold: float) -> dict[str, float]:
    return {
        "fpr": laplace.sf(threshold, scale=1 / epsilon),
        "tpr": laplace.sf(threshold - 1, scale=1 / epsilon),
        "ceiling": mechanisms.largest_tpr(fpr=0.01, epsilon=epsilon, delta=delta),
        "advantage": mechanisms.largest_advantage(epsilon=epsilon, delta=delta),
    }


def epsilon(sigma: float, sampleRate: float, steps: int, delta: float) -> dict[str, float]:
    spent = accounting.rdp(noise_multiplier=sigma, sample_rate=sampleRate, steps=steps, orders=ORDERS)
    return {"epsilon": accounting.rdp_to_epsilon(orders=ORDERS, rdp=spent, delta=delta).epsilon}


def orders(sigma: float, sampleRate: float, steps: int, largest: int) -> dict[str, float]:
    orders = [order for order in ORDERS if order <= largest]
    spent = accounting.rdp(noise_multiplier=sigma, sample_rate=sampleRate, steps=steps, orders=orders)
    improved, classic = (
        accounting.rdp_to_epsilon(orders=orders, rdp=spent, delta=1e-5, conversion=conversion)
        for conversion in ("improved", "classic")
    )
    return {"epsilon": improved.epsilon, "order": improved.order, "classic": classic.epsilon}


def membership(distance: float, threshold: float) -> dict[str, float]:
    return {
        "fpr": norm.sf(threshold),
        "tpr": norm.sf(threshold - distance),
        "auc": norm.cdf(distance / 2**0.5),
        "tprAtOnePercent": 1 - mechanisms.gdp_tradeoff(fpr=0.01, mu=distance),
    }


def clipping(bound: float, sigma: float, patients: int) -> dict[str, float]:
    upward = [(-1.9, 2.3), (-1.2, 2.7)]
    gradients = np.array([(1.3, 0.3), (1.1, -0.3), (0.9, 0.7), (1.5, 0.0), (0.5, 0.2), (0.8, -0.5), *upward])
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    clipped = (gradients * np.minimum(1, bound / norms)).mean(0)
    return {
        "clipped": (norms > bound).sum(),
        "bias": np.linalg.norm(clipped - gradients.mean(0)),
        "signal": np.linalg.norm(clipped),
        "noise": sigma * bound / patients,
    }


def hits(patients: int, hits: int, share: float) -> dict[str, float]:
    interval = stats.clopper_pearson(hits, patients)
    return {
        "fewer": binom.cdf(hits, patients, share),
        "more": binom.sf(hits - 1, patients, share),
        "low": interval.low,
        "high": interval.high,
    }


def sampler(temperature: float, topK: int, topP: float) -> dict[str, float]:
    logits = torch.tensor([0.2, 2.6, -0.6, 1.9, 0.6, -1.0, 1.5, 1.0, -0.2, 0.4]).double()
    digits, drawn = models.kept_tokens(logits, models.Sampling(temperature, topK, topP))
    return {"right": float(drawn[digits == 7].sum()), "kept": int((drawn > 0).sum())}


def audit(guesses: int, share: int, confidence: int, promise: float) -> dict[str, float]:
    right = math.floor(guesses * share / 100 + 0.5)
    terms = {"canaries": guesses, "guesses": guesses, "delta": 0, "confidence": confidence / 100}
    return {
        "right": right,
        "certified": lower_bounds.one_run_epsilon_lower(correct=right, **terms),
        "perfect": lower_bounds.one_run_epsilon_lower(correct=guesses, **terms),
    }


def width(auc: float, patients: int, margin: float) -> dict[str, float]:
    # With this power and alpha, the smallest detectable difference is one standard error.
    error = stats.detectable_auc(patients, patients, power=0.5, alpha=2 * norm.sf(1)) - 0.5
    test = stats.tost(stats.Estimate(auc, error, math.inf, patients), margin=margin, null=0.5)
    return {
        "error": error,
        "none": test.p_difference,
        "matters": test.p_value,
        "low": 0.5 + test.low,
        "high": 0.5 + test.high,
    }


def pair(budget: float, epsilon: float) -> dict[str, float]:
    mu = 1 / mechanisms.gaussian_sigma(sensitivity=1, epsilon=budget, delta=1e-5)
    delta = mechanisms.gdp_delta(mu=mu, epsilon=epsilon)
    return {
        "mu": mu,
        "delta": delta,
        "pair": 1000 * mechanisms.largest_tpr(fpr=0.01, epsilon=epsilon, delta=delta),
        "curve": 1000 * (1 - mechanisms.gdp_tradeoff(0.01, mu=mu)),
    }


# What each picture is asked, one value per input, and the helpers' answer.
CASES = {
    "control": (control, [(1, 0.1, 12), (0.1, 0.1, 12), (1, 0, 12), (0, 0, 6), (0.35, 0.2, 50)]),
    "release": (release, [(1, 0.5, 30, 20), (4, 0.01, 0, 70), (0.1, 0.99, 90, 75), (2, 0.3, 100, 185)]),
    "guess": (guess, [(16.1, 100, 1000), (14, 10000, 20000), (36, 10, 10), (23.3, 1400, 12)]),
    "recite": (recite, [(2, 7, 100), (1, 10, 10000), (12, 1, 10), (10, 7, 10000), (1.05, 9, 14)]),
    "roc": (roc, list(itertools.product((0.1, 1, 8), (1e-6, 0.01), (-1, 0.2, 3)))),
    "epsilon": (
        epsilon,
        [
            (1, 0.1, 150, 1e-5),
            (2.5, 0.01, 50, 1e-5),
            (5, 1, 100, 1e-6),
            (0.7, 0.01, 120, 1e-5),
            (20, 1e-4, 1, 1e-5),  # a divergence so small that it bounds delta by itself
            (20, 1e-4, 5, 1e-5),
        ],
    ),
    "orders": (
        orders,
        [(2, 0.1, 150, 512), (0.5, 1, 10000, 2), (10, 0.001, 1, 512), (10, 0.1, 1000, 12)],
    ),
    "clipping": (clipping, [(1, 1, 8), (0.1, 0.2, 800), (2, 1, 20), (4, 10, 8)]),
    "hits": (hits, [(100, 0, 0.01), (20, 20, 0.2), (200, 20, 0.001), (57, 3, 0.05)]),
    "sampler": (sampler, [(0.8, 10, 0.9), (0.1, 10, 1), (10, 6, 0.95), (0.8, 3, 1), (1, 10, 0.05)]),
    "membership": (membership, [(0.5, 1.5), (0, 1), (3, -1)]),
    "audit": (
        audit,
        [(20, 90, 95, 2), (1, 50, 80, 1), (5, 100, 95, 1), (100, 90, 95, 1), (3000, 97, 99, 7)],
    ),
    "width": (
        width,
        [(0.51, 20, 0.05), (0.5, 10, 0.1), (0.51, 1000, 0.05), (0.6, 100, 0.1), (0.6, 100000, 0.01)],
    ),
    "pair": (pair, [(8, 8), (8, 2.5), (0.5, 0), (0.5, 10), (10, 10), (1, 1)]),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Serve a small page for each picture, and one with all, with the scripts that the site gives them."""
    folder = tmp_path_factory.mktemp("pictures")
    for name in ("book.css", "vendor", "pictures"):
        (folder / name).symlink_to(STATIC / name)
    (folder / "theme").symlink_to(files("pydata_sphinx_theme") / "theme" / "pydata_sphinx_theme" / "static")
    for page, names in {**{name: [name] for name in CASES}, "all": list(CASES)}.items():
        loaded = [*_pictures.LIBRARIES, *(f"pictures/{name}.js" for name in names)]
        scripts = "".join(f'<script src="/{file}"></script>' for file in loaded)
        boxes = "".join(f'<div class="picture" data-picture="{name}"></div>' for name in names)
        (folder / f"{page}.html").write_text(PAGE.format(boxes=boxes, scripts=scripts), encoding="utf-8")
    with serving(folder) as address:
        yield address


@pytest.fixture
def page(chromium):
    """Yield a page that fails the test if a script fails."""
    page = chromium.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert errors == []


def test_each_picture_is_on_a_page_of_the_core_and_is_compared_here():
    shared = {Path(file).stem for file in _pictures.LIBRARIES}
    scripts = {path.stem for path in (STATIC / "pictures").glob("*.js")} - shared
    core = (ROOT / "notebooks").glob("0*.ipynb"), (ROOT / "notebooks").glob("1[0-2]*.ipynb")
    shown = [
        name for path in itertools.chain(*core) for name in BOX.findall(path.read_text(encoding="utf-8"))
    ]
    assert sorted(shown) == sorted(CASES) == sorted(scripts)


@pytest.mark.parametrize("name", CASES)
def test_a_picture_computes_what_the_helpers_compute(page, address, name):
    helper, cases = CASES[name]
    page.goto(f"{address}/{name}.html")
    fields = page.locator("input[type=number]")
    for case in cases:
        for place, value in enumerate(case):
            fields.nth(place).fill(f"{value:.12g}")
        assert page.locator("[aria-invalid=true]").count() == 0
        values = page.evaluate("() => document.querySelector('.picture').values")
        assert values == pytest.approx(helper(*case), rel=1e-6, abs=1e-9), case


@pytest.mark.parametrize("name", CASES)
def test_a_picture_answers_a_keyboard_fits_a_phone_and_says_what_a_field_takes(page, address, name):
    page.set_viewport_size({"width": 360, "height": 780})
    page.goto(f"{address}/{name}.html")
    says, drawing = page.locator(".says"), page.locator(".drawing svg")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    assert drawing.get_attribute("role") == "img" and drawing.get_attribute("aria-label")
    for place in range(page.locator("input[type=range]").count()):
        before, drawn = says.text_content(), drawing.inner_html()
        page.locator("input[type=range]").nth(place).press("ArrowRight" if place % 2 else "ArrowLeft")
        assert (says.text_content(), drawing.inner_html()) != (before, drawn), f"field {place}"
    field = page.locator("input[type=number]").first
    field.fill("1e9")
    assert field.get_attribute("aria-invalid") == "true"
    assert " must be " in says.text_content()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_have_no_barrier(page, address, theme):
    page.goto(f"{address}/all.html")
    page.evaluate(axe_core())
    assert page.evaluate(BARRIERS, [theme, {}]) == []
