"""Recomputations of the report's claims: each method computes from what is printed, or with a library.

A method returns named values; the claim's entry in the file of its topic says which of them decides, and how.
"""

import math
from datetime import date
from functools import cache, cached_property
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binomtest, chi2_contingency
from statsmodels.stats.proportion import proportion_confint, proportion_effectsize

from privhelpers import accounting, hipaa, mechanisms, stats
from privhelpers.claims import _null_model

Figures = dict[str, Any]


@cache
def true_epsilon(sigma: float, sample_rate: float, steps: int, delta: float) -> float:
    """Return the PLD epsilon of a noise multiplier on the sum, Poisson sampling, add/remove."""
    return accounting.epsilon(noise_multiplier=sigma, sample_rate=sample_rate, steps=steps, delta=delta)


class Report:
    """The PrivAI-Leak report."""

    def __init__(self, printed: SimpleNamespace) -> None:
        """Take the tables of the report."""
        self.printed = printed
        self.budgets = [model for model in printed.leaks if model != "baseline"]
        self.counts = [printed.leaks[budget] for budget in self.budgets]
        self.sigmas = list(printed.pairs)
        sample_rate = printed.batch / printed.training
        self.run = {"sample_rate": sample_rate, "steps": printed.steps, "delta": printed.delta}

    # Leakage.

    def baseline_rate(self) -> Figures:
        """The rate of the printed count, and the count of the printed rate."""
        p = self.printed
        count = round(p.rates["baseline"] * p.attempts / 100)
        return {"rate": 100 * p.leaks["baseline"] / p.attempts, "count": count}

    def private_rates(self) -> Figures:
        """Counts over attempts, in percent."""
        return {"rates": [100 * count / self.printed.attempts for count in self.counts]}

    def reduction(self) -> Figures:
        """Fall from the baseline: from the count of the printed rate, and from the printed count."""
        fewer = [100 * (1 - count / self.baseline_rate()["count"]) for count in self.counts]
        from_count = 100 * (1 - self.counts[-1] / self.printed.leaks["baseline"])
        return {"fewer": fewer, "last": fewer[-1], "last_from_256": from_count}

    def _null(self, texts: list[str]) -> Figures:
        """Leaks of a writer without memory: mean and middle 95%."""
        names = _null_model.report_names()
        counts = _null_model.simulated_leaks(self.printed, names, texts, simulations=2000, seed=0)
        low, high = np.percentile(counts, [2.5, 97.5])
        return {"mean": counts.mean(), "low": low, "high": high, "counts": counts}

    @cached_property
    def _random_words(self) -> Figures:
        conditions, drugs = self.printed.conditions, self.printed.medications
        return self._null([f"{condition}, {drug}." for condition in conditions for drug in drugs])

    def baseline_above_chance(self) -> Figures:
        """The counts of a writer of random medical words."""
        null = dict(self._random_words)
        counts = null.pop("counts")
        either = (self.printed.leaks["baseline"], self.baseline_rate()["count"])
        tails = {f"p{count}": np.mean(counts >= count) for count in either}
        return null | tails | {"least": min(either)}

    def private_above_chance(self) -> Figures:
        """The counts of prose about no patient."""
        null = self._null(_null_model.plain_english())
        del null["counts"]
        outside = sum(not null["low"] <= count <= null["high"] for count in self.counts)
        return null | {"outside": outside}

    def diagnosis_hits(self) -> Figures:
        """Hits of random diagnoses; one that is part of another is hit by both."""
        lower = [condition.lower() for condition in self.printed.conditions]
        chance = sum(actual in guess for guess in lower for actual in lower) / len(lower) ** 2
        hits, n = self.printed.categories["baseline"]["diagnosis"], self.printed.attempts
        return {"chance": chance, "expected": n * chance, "p": binomtest(hits, n, chance).pvalue}

    def total_row(self) -> Figures:
        """The sum of the baseline's categories."""
        return {"sum": sum(self.printed.categories["baseline"].values())}

    def private_sums(self) -> Figures:
        """The sums of the private models' categories."""
        return {"sums": [sum(self.printed.categories[budget].values()) for budget in self.budgets]}

    # Memory.

    def exact_memorization(self) -> Figures:
        """One verbatim text against none."""
        n = self.printed.exact_trials
        first, second = (stats.clopper_pearson(k, n) for k in (1, 0))
        ends = {"low": first.low, "high": first.high, "zero_high": second.high}
        return {"n": n, "p": stats.two_proportion(1, n, 0, n).fisher_p, **ends}

    def email_reduction(self) -> Figures:
        """One hit against none."""
        n, leaks = self.printed.attempts, self.printed.categories
        return {"p": stats.two_proportion(leaks["baseline"]["email"], n, leaks[10.0]["email"], n).fisher_p}

    def membership_rate(self) -> Figures:
        """Test loss over training loss."""
        return {"ratio": math.log(self.printed.perplexity["baseline"]) / self.printed.training_loss}

    def canary_rate(self) -> Figures:
        """The least false positive rate that a hit rate forces under the printed guarantee."""
        n, delta = self.printed.canaries, self.printed.delta
        # One-sided: a hit rate below this limit would give 15 of 15 in less than 5% of the tests.
        low = stats.clopper_pearson(n, n, level=0.90).low
        floors = [mechanisms.smallest_fpr(tpr=low, epsilon=e, delta=delta) for e in self.budgets[:2]]
        perfect = mechanisms.smallest_fpr(tpr=1.0, epsilon=self.budgets[1], delta=delta)
        return {"low": low, "perfect": perfect, "floor_half": floors[0], "floor_one": floors[1]}

    # Detector.

    def fields_checked(self) -> Figures:
        """Kinds that the results count and the code cannot find."""
        extra = [kind for kind in self.printed.counted if kind not in self.printed.checked]
        hits = sum(self.printed.categories["baseline"].get(kind, 0) for kind in extra)
        return {"extra": len(extra), "names": " and ".join(extra), "hits": hits}

    def fields_of_a_record(self) -> Figures:
        """How many fields each template contains."""
        return {"sizes": [len(fields) for fields in self.printed.templates]}

    def ssn_never_leaks(self) -> Figures:
        """Attempts on records whose text contains a number."""
        templates = self.printed.templates
        share = sum("ssn" in fields for fields in templates) / len(templates)
        return {"could": self.printed.attempts * share}

    def false_alarms(self) -> Figures:
        """Conditions that the printed rule finds in the logged word."""
        word = self.printed.logged_diagnosis
        like = [condition for condition in self.printed.conditions if word in condition.lower()]
        return {"fires": sum(c.lower() in word for c in self.printed.conditions), "like": like[0]}

    def eighteen(self) -> Figures:
        """The place of the record number in the regulation's list."""
        letters = [row.letter for row in hipaa.IDENTIFIERS]
        return {"place": letters.index(hipaa.RECORD_IDENTIFIERS["mrn"]) + 1, "count": len(letters)}

    # Risk and law.

    @cached_property
    def _attacks(self) -> np.ndarray:
        """Rates that the score weighs, in percent: prompts, canaries, exact memory; one model a row."""
        p = self.printed
        rows = [(100 * row["leaks"] / p.attempts, p.canary_rate, row["exact"]) for row in p.risks]
        return np.array(rows)

    @cached_property
    def _weights(self) -> np.ndarray:
        """The weights that made the printed scores, to the next twentieth of the least-squares solution."""
        scores = [row["score"] for row in self.printed.risks]
        return np.round(20 * np.linalg.lstsq(self._attacks, scores, rcond=None)[0]) / 20

    @cached_property
    def _stated_scores(self) -> np.ndarray:
        """The scores that the weights in the text give; the membership rate is 0 for every model."""
        stated = self.printed.risk_weights
        return self._attacks @ [stated[name] for name in ("prompt", "canary", "exact")]

    def risk_score(self) -> Figures:
        """The scores of the weights in the text, and the weights behind the printed scores."""
        refit = self._attacks @ self._weights
        gap = np.abs(refit - [row["score"] for row in self.printed.risks]).max()
        return {"scores": self._stated_scores.tolist(), "weights": self._weights.tolist(), "gap": gap}

    def risk_reduction(self) -> Figures:
        """The fall of the score under the weights in the text, and the part of a constant."""
        scores, constant = self._stated_scores, self._weights[1] * self.printed.canary_rate
        falls = (scores[:2] - scores[-1]).tolist()
        return {"falls": falls, "constant": constant, "score": self.printed.risks[0]["score"]}

    def direct_identifiers(self) -> Figures:
        """Sums over three categories."""
        kinds = ("name", "email", "dob")
        return {"sums": [sum(row[kind] for kind in kinds) for row in self.printed.categories.values()]}

    def hospital(self) -> Figures:
        """A rate of attempts times patients."""
        rates, patients = self.printed.rates, self.printed.hospital
        spared = patients * (rates["baseline"] - rates[10.0]) / 100
        return {"spared": spared, "tested": self.printed.records}

    def recommendations(self) -> Figures:
        """What the recommended budgets allow at one percent false positives."""
        delta = self.printed.delta
        allowed = [mechanisms.largest_tpr(fpr=0.01, epsilon=b, delta=delta) for b in self.budgets]
        return {"allowed": allowed, "ratio": max(allowed) / min(allowed)}

    def levels(self) -> Figures:
        """The advantage that the largest budget allows."""
        return {"advantage": mechanisms.largest_advantage(epsilon=10.0, delta=self.printed.delta)}

    def queries(self) -> Figures:
        """The claimed budgets of all released models together."""
        epsilons = list(self.printed.pairs.values())
        return {"four": mechanisms.basic_composition(epsilons=epsilons).epsilon}

    def group(self) -> Figures:
        """Two patients at the weakest budget."""
        weakest = self.printed.pairs[self.sigmas[-1]]
        two = mechanisms.group_privacy(epsilon=weakest, delta=self.printed.delta, size=2)
        return {"epsilon": two.epsilon, "delta": two.delta}

    # Statistics.

    def chi_squared(self) -> Figures:
        """Every usual form of the statistic, and how far the nearest is from the printed one."""
        n, (hits, few) = self.printed.attempts, (self.printed.leaks["baseline"], self.counts[-1])
        tables = {k: [[k, n - k], [few, n - few]] for k in (hits, self.baseline_rate()["count"])}
        forms = {
            "pearson": chi2_contingency(tables[hits], correction=False)[0],
            "yates": chi2_contingency(tables[hits], correction=True)[0],
            "g": chi2_contingency(tables[hits], correction=False, lambda_="log-likelihood")[0],
            "from_249": chi2_contingency(tables[self.baseline_rate()["count"]], correction=False)[0],
        }
        expected = (hits + few) / 2
        forms["two_terms"] = sum((k - expected) ** 2 / expected for k in (hits, few))
        return {**forms, "gap": min(abs(form - self.printed.chi_squared) for form in forms.values())}

    def p_value(self) -> Figures:
        """The p-value under independence."""
        n = self.printed.attempts
        test = stats.two_proportion(self.printed.leaks["baseline"], n, self.counts[-1], n)
        return {"p": test.chi_squared_p, "fisher_p": test.fisher_p}

    def _worth(self, cluster: int, correlation: float) -> float:
        """Independent attempts that clustered ones are worth (Kish 1965)."""
        return self.printed.attempts / (1 + (cluster - 1) * correlation)

    def independence(self) -> Figures:
        """Attempts, and what they are worth under two small correlations."""
        p = self.printed
        by_record = self._worth(p.prompts * p.texts, 0.05)
        by_prompt = self._worth(p.records * p.texts, 0.1)
        return {"product": p.records * p.prompts * p.texts, "by_record": by_record, "by_prompt": by_prompt}

    def effect_size(self) -> Figures:
        """Cohen's h of the printed rates and of the counts."""
        rates, n = self.printed.headline_rates, self.printed.attempts
        angles = [2 * math.asin(math.sqrt(rate)) for rate in rates]
        counts = stats.two_proportion(self.printed.leaks["baseline"], n, self.counts[-1], n).cohens_h
        return {"angles": angles, "h": float(proportion_effectsize(*rates)), "h_counts": counts}

    def effect_label(self) -> Figures:
        """The name of the printed effect by Cohen's borders."""
        return {"label": stats.effect_label(self.printed.cohens_h)}

    def _intervals(self, count: int) -> Figures:
        """Wilson's and the exact interval of a count, in percent."""
        methods = {"wilson": stats.wilson, "exact": stats.clopper_pearson}
        both = {name: method(count, self.printed.attempts) for name, method in methods.items()}
        return {name: [100 * i.low, 100 * i.high] for name, i in both.items()}

    def interval_baseline(self) -> Figures:
        """Wald's interval of the printed rate, and better ones of the printed count."""
        rate, n = self.printed.headline_rates[0], self.printed.attempts
        wald = [100 * end for end in proportion_confint(rate * n, n, method="normal")]
        return {"wald": wald, **self._intervals(self.printed.leaks["baseline"])}

    def interval_private(self) -> Figures:
        """Intervals that suit five hits."""
        return self._intervals(self.counts[-1])

    def sign(self) -> Figures:
        """Are the private models' counts apart?"""
        n = self.printed.attempts
        p = chi2_contingency([[count, n - count] for count in self.counts], correction=False)[1]
        pairs = [stats.two_proportion(a, n, b, n).fisher_p for a, b in combinations(self.counts, 2)]
        return {"p": float(p), "p_half_ten": pairs[2], "p_one_ten": pairs[4]}

    def overlap(self) -> Figures:
        """Intervals of the effective number of attempts, and the top of the baseline's own null."""
        n = self.independence()["by_prompt"]
        ends = {}
        for name, count in (("base", self.printed.leaks["baseline"]), ("private", self.counts[-1])):
            ends[name] = proportion_confint(n * count / self.printed.attempts, n, method="wilson")
        margin = ends["base"][0] - self._random_words["high"] / self.printed.attempts
        percent = {name: [100 * low, 100 * high] for name, (low, high) in ends.items()}
        return {"n": n, "margin": margin, **percent}

    # Accounting.

    def _curve(self, sigma: float, scale: float = 8.0) -> float:
        """The classic conversion of Gaussian releases, min over orders of scale * order / sigma^2 + ..."""
        delta = self.printed.delta
        return accounting.curve_epsilon(noise_multiplier=sigma, delta=delta, scale=scale)

    def sigma_epsilon(self) -> Figures:
        """The printed noise under the printed assumptions."""
        return {"pld": [true_epsilon(sigma, **self.run) for sigma in self.sigmas]}

    def epsilon_source(self) -> Figures:
        """The printed accountant's values, and the scale of the curve that each pair lies on."""
        epsilons = [accounting.printed_epsilon(noise_multiplier=s, **self.run) for s in self.sigmas]
        pairs = self.printed.pairs.items()
        fits = [brentq(lambda scale, s=s, e=e: self._curve(s, scale) - e, 1e-3, 1e3) for s, e in pairs]
        own_scale = self.run["steps"] * self.run["sample_rate"] ** 2 / 2
        return {"printed": epsilons, "fits": fits, "fit": float(np.mean(fits)), "own": own_scale}

    def printed_accountant(self) -> Figures:
        """The exact divergence of a step over q^2 times the Gaussian's, and an epsilon that is too low."""
        orders, q = [2, 22], self.run["sample_rate"]
        exact = accounting.rdp(noise_multiplier=1.0, sample_rate=q, steps=1, orders=orders)
        ratios = exact / (q**2 * np.array(orders) / 2)
        low = accounting.printed_epsilon(noise_multiplier=0.5, **self.run)
        true = true_epsilon(0.5, **self.run)
        return {"ratio_2": ratios[0], "ratio_22": ratios[1], "low": low, "true": true, "excess": low - true}

    def calibration(self) -> Figures:
        """What the printed search and its clamps return."""
        raw = {b: accounting.printed_calibration(target_epsilon=b, **self.run) for b in self.budgets}
        return {"sigmas": [accounting.clamped(s, target_epsilon=b) for b, s in raw.items()]}

    def clamp(self) -> Figures:
        """What the capped noise spends on the report's own curve."""
        spent = {target: self._curve(cap) for target, cap in self.printed.caps.items()}
        over = max(epsilon - target for target, epsilon in spent.items())
        return {"targets": list(spent), "spent": list(spent.values()), "over": over}

    def tolerance(self) -> Figures:
        """Targets that the search misses."""
        pairs = zip(self.budgets, self.printed.pairs.values(), strict=True)
        return {"over": sum(spent > target for target, spent in pairs)}

    def epsilon_log(self) -> Figures:
        """Epsilon after each epoch on the report's own curve, which any accountant would bend."""
        epochs = self.printed.epochs
        return {"curve": [self._curve(self.sigmas[-1], 8.0 * k / epochs) for k in range(1, epochs + 1)]}

    def delta(self) -> Figures:
        """One over the number of samples."""
        return {"inverse": 1 / self.printed.training, "samples": self.printed.training}

    def small_delta(self) -> Figures:
        """The chance that publishing each record with probability delta exposes someone."""
        samples = self.printed.training
        return {"exposed": -math.expm1(samples * math.log1p(-self.printed.delta)), "samples": samples}

    def gaussian_divergence(self) -> Figures:
        """The formula against the library, and the classic conversion against the best known."""
        sigma, orders = 3.0, np.array([2, 8])
        ours = accounting.rdp(noise_multiplier=sigma, sample_rate=1.0, steps=1, orders=orders.tolist())
        rdp_curve = {"orders": [8.0], "rdp": [ours[1]], "delta": self.printed.delta}
        classic = accounting.rdp_to_epsilon(**rdp_curve, conversion="classic").epsilon
        better = accounting.rdp_to_epsilon(**rdp_curve).epsilon
        gap = float(np.abs(ours - orders / (2 * sigma**2)).max())
        return {"gap": gap, "classic": classic, "better": better, "saved": classic - better}

    # Noise.

    def _as_run(self, sigma_on_sum: float, adjacency: str = "zero-out") -> float:
        """Epsilon of the printed loop: every record in one step of each epoch, no amplification."""
        return accounting.epsilon_without_amplification(
            noise_multiplier=sigma_on_sum,
            participations=self.printed.epochs,
            delta=self.printed.delta,
            adjacency=adjacency,
        )

    def noise_place(self) -> Figures:
        """The deviation on the mean by the formula, and by the code."""
        sigma = self.sigmas[-1]
        return {"formula": sigma / self.printed.batch, "code": sigma}

    def code_as_run(self) -> Figures:
        """What the printed loop gives: noise of sigma C on the mean of B is B sigma C on the sum."""
        on_sum = [self.printed.batch * sigma for sigma in self.sigmas]
        return {
            "nulled": [self._as_run(sigma) for sigma in on_sum],
            "replaced": [self._as_run(sigma, "replacement") for sigma in on_sum],
        }

    def poisson(self) -> Figures:
        """Epsilon with and without amplification, and the empty batches that Poisson sampling would draw."""
        empty = (1 - self.run["sample_rate"]) ** self.printed.training
        values = {"plain": self._as_run(1.0), "poisson": true_epsilon(1.0, **self.run)}
        return {**values, "empty": empty, "batches": empty * self.printed.steps}

    def noise_against_signal(self) -> Figures:
        """The length of the noise vector; the clipped mean has at most length 1."""
        return {"length": self.sigmas[-1] * math.sqrt(self.model()["gpt2"])}

    def price_of_privacy(self) -> Figures:
        """The noise that the smallest budget needs, and the noise that was added."""
        least, used = self.budgets[0], self.printed.batch * self.sigmas[0]
        needed = accounting.calibrate_noise_multiplier(target_epsilon=least, **self.run)
        return {"needed": needed, "used": used, "times": used / needed}

    # Design.

    def data_sums(self) -> Figures:
        """The parts of the data."""
        return {"sums": [sum(part) for part in self.printed.parts]}

    def data_size(self) -> Figures:
        """The private share of both printed sizes."""
        return {"private": [0.15 * size for size in self.printed.sizes]}

    def birthday(self) -> Figures:
        """The first patient's birthday in the term on the cover, and the day that gives the printed one."""
        printed, cover = (date.fromisoformat(d) for d in (self.printed.birthday, self.printed.cover))
        then = _null_model.birthday_of_the_first(cover)
        return {"then": str(then), "days_off": (then - printed).days,
                "day": str(_null_model.day_of_the_birthday(printed))}  # fmt: skip

    def real_numbers(self) -> Figures:
        """Generated numbers that a person could have."""
        ssns, phones = _null_model.numbers_that_could_be_real()
        return {"ssns": ssns, "phones": phones}

    def steps(self) -> Figures:
        """Optimizer steps: two micro-batches make one."""
        batches = self.printed.training // self.printed.batch
        return {"steps": batches // self.printed.accumulation * self.printed.epochs}

    def model(self) -> Figures:
        """Weights of both models that the report names: word and place vectors, blocks, last scaling."""
        size = self.printed.gpt2_size
        width, tables = size["width"], size["vocabulary"] + size["context"]
        block = 12 * width**2 + 13 * width
        layers = self.printed.layers.items()
        return {name: tables * width + count * block + 2 * width for name, count in layers}

    def orders(self) -> Figures:
        """The printed code's orders: how many, and the end of the fine ones."""
        fine = sorted(accounting.PRINTED_ORDERS)[: self.printed.fine_orders]
        return {"count": len(accounting.PRINTED_ORDERS), "last": fine[-1]}

    def first_epoch(self) -> Figures:
        """The logged loss at the end of the first epoch, and how much of the second can be as high."""
        last, of = self.printed.last_losses[0], self.printed.training // self.printed.batch
        return {"last": last, "batches": of * self.printed.mean_losses[1] / last, "of": of}

    def hours(self) -> Figures:
        """The sum of the table of minutes."""
        rows = self.printed.minutes.values()
        return {"hours": [sum(row["runs"] * row[kind] for row in rows) / 60 for kind in ("cpu", "gpu")]}

    def multiples(self) -> Figures:
        """Ratios of printed perplexities."""
        base, *private = self.printed.perplexity.values()
        steps = [a / b for a, b in zip(private[::-1][1:], private[::-1], strict=False)]
        return {"multiples": [value / base for value in private], "steps": steps}

    def test_perplexity(self) -> Figures:
        """The least perplexity that random values allow, from lower estimates of their entropy."""
        p = self.printed
        nats = {field: math.log(choices) for field, choices in p.choices.items()}
        record = sum(nats[field] for fields in p.templates for field in fields) / len(p.templates)
        private, samples = p.private_test, sum(p.parts[1])
        floors = [math.exp(private * record / (samples * tokens)) for tokens in (80, 65)]
        return {"floors": floors}

    def sources(self) -> Figures:
        """Works that are cited and not listed."""
        missing = sorted(set(self.printed.cited) - set(self.printed.listed))
        return {"missing": len(missing), "names": ", ".join(missing)}
