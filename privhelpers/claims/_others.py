"""Recomputations of the claims of four teaching and research documents, one class a document."""

import importlib.util
import inspect
import itertools
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.stats import laplace, norm
from sklearn.metrics import roc_curve

from privhelpers import accounting, anonymity, mechanisms, stats
from privhelpers.anonymity import tables
from privhelpers.claims._report import Figures, true_epsilon


def _largest_moves(query: Callable[[Sequence[int]], float]) -> list[float]:
    """Return how far a query moves, at most, when one value of -1, 0 or 1 is removed, and when replaced."""
    tables_of_three = list(itertools.product((-1, 0, 1), repeat=3))
    removed = max(abs(query(t) - query(t[1:])) for t in tables_of_three)
    replaced = max(abs(query(t) - query((v, *t[1:]))) for t in tables_of_three for v in (-1, 0, 1))
    return [float(removed), float(replaced)]


def _scrub(text: str, patterns: Mapping[str, str]) -> str:
    """Replace what patterns find from the right, one pattern after the other, without merging.

    This is the textbook's fault on display: spans that overlap are replaced at places that no longer exist.
    """
    spans = [(m.start(), m.end(), kind) for kind, form in patterns.items() for m in re.finditer(form, text)]
    for start, end, kind in sorted(spans, key=lambda span: span[0], reverse=True):
        text = f"{text[:start]}[{kind}_REDACTED]{text[end:]}"
    return text


def _attention_focus(attention: np.ndarray) -> float:
    """Return the clinical paper's concentration, the sum of a log a, of weights that sum to 1."""
    positive = attention[attention > 0]
    return float((positive * np.log(positive)).sum())


class _Document:
    """A document with the tables that it prints."""

    def __init__(self, printed: SimpleNamespace) -> None:
        self.printed = printed


class Slides(_Document):
    """The slide deck."""

    def four_anonymous(self) -> Figures:
        """The measures of the first table."""
        table, columns = tables.four_anonymous(), self.printed.quasi_identifiers
        return {
            "k": anonymity.k_anonymity(table, columns),
            "l": anonymity.distinct_l_diversity(table, columns, "condition"),
            "t": anonymity.t_closeness(table, columns, "condition"),
        }

    def three_diverse(self) -> Figures:
        """The measures of the second table, by disease and by salary."""
        table, columns = tables.three_diverse(), self.printed.visible
        disease = anonymity.class_report(table, columns, "disease")
        salary = anonymity.class_report(table, columns, "salary", order=sorted(table["salary"]))
        least = int(disease["distinct_l"].min())
        return {"l": least, "t_disease": disease["t"].max(), "t_salary": salary["t"].max()}

    def composition_attack(self) -> Figures:
        """Diseases that two releases leave, with all that is known of Bob and without his sex."""
        releases, bob = list(tables.hospitals()), self.printed.bob
        less = {key: value for key, value in bob.items() if key != "gender"}
        left, without = (anonymity.composition(releases, "condition", known) for known in (bob, less))
        return {"left": len(left), "without": len(without), "names": ", ".join(left)}

    def posterior(self) -> Figures:
        """The belief that David is in, for one noisy answer, and what the printed formula gives."""
        answer, scale = self.printed.answer, 5.0
        with_david, without = (laplace.pdf(answer, mean, scale) for mean in self.printed.averages[1:])
        right, formula = (d / (with_david + without) for d in (with_david, without))
        return {"answer": answer, "right": right, "formula": formula, "gap": abs(right - formula)}

    def averages(self) -> Figures:
        """Means of the class without and with David."""
        return {"means": [float(np.mean(marks)) for marks in self.printed.marks]}

    def postprocessing(self) -> Figures:
        """The advantage that remains when the output is thrown away."""
        return {"advantage": mechanisms.largest_advantage(epsilon=0.0)}

    def hard_diversity(self) -> Figures:
        """The most groups with both values if one is rare, and how many patients each must have."""
        of, positive = 10_000, 100
        test = np.arange(of) < positive
        table = pd.DataFrame({"test": test, "group": 0})
        groups = 0
        for count in (positive, positive + 1):  # spread over as many groups, no more groups have both values
            table["group"] = np.arange(of) % count
            if anonymity.distinct_l_diversity(table, ["group"], "test") >= 2:
                groups = count
        return {"of": of, "groups": groups, "patients": of / groups}

    def before_and_after(self) -> Figures:
        """A belief after one answer by randomized response, and the bound for its epsilon."""
        before, epsilon = 0.1, 1.0
        honest = math.exp(epsilon) / (1 + math.exp(epsilon))
        after = before * honest / (before * honest + (1 - before) * (1 - honest))
        bound = mechanisms.posterior_range(prior=before, epsilon=epsilon)[1]
        return {"before": before, "after": after, "gap": abs(after - bound)}

    def laplace(self) -> Figures:
        """Variance, tail and group budget against their formulas."""
        scale, t = 2.0, 3.0
        noise = laplace(scale=scale)
        gaps = noise.var() - 2 * scale**2, 2 * noise.sf(t) - math.exp(-t / scale)
        group = mechanisms.group_privacy(epsilon=1.0, size=3).epsilon
        return {"variance": noise.var(), "gap": max(map(abs, gaps)), "group": group}

    def clipped_sensitivity(self) -> Figures:
        """How far one clipped value moves a sum, by relation, in units of C."""
        return {"moves": _largest_moves(sum)}

    def opacus_listing(self) -> Figures:
        """Members that an attacker may catch at one percent false positives."""
        return {"allowed": mechanisms.largest_tpr(fpr=0.01, epsilon=self.printed.epsilon, delta=1e-5)}


class Lecture(_Document):
    """The lecture notes."""

    def count(self) -> Figures:
        """The largest ratio of two densities whose counts differ by one."""
        epsilon, places = 0.7, np.linspace(-20, 20, 4001)
        logs = [laplace.logpdf(places, count, 1 / epsilon) for count in (0, 1)]
        ratio = math.exp(np.abs(logs[0] - logs[1]).max())
        return {"ratio": ratio, "limit": math.exp(epsilon), "excess": ratio - math.exp(epsilon)}

    def neyman(self) -> Figures:
        """Threshold and miss rate for two Gaussians, and what rejecting below the threshold gains."""
        fpr = 0.05
        cut = norm.isf(fpr)  # the statistic falls as the observation rises
        threshold, fnr = norm.logpdf(cut) - norm.logpdf(cut, 1), norm.cdf(cut, 1)
        return {"threshold": threshold, "fnr": fnr, "gain": (1 - fnr) - fpr}

    def later_training(self) -> Figures:
        """What two private trainings on the same records spend."""
        return {"both": mechanisms.basic_composition(epsilons=[8.0, 8.0]).epsilon}

    def relation(self) -> Figures:
        """The sensitivity of a count of all records, by relation."""
        return {"moves": _largest_moves(len)}


class Textbook(_Document):
    """The textbook chapter."""

    def _epsilon(self, sigma: float, times: int = 1) -> float:
        run = self.printed.run
        return true_epsilon(sigma, **{**run, "steps": times * run["steps"]})

    def twice_the_steps(self) -> Figures:
        """Epsilon for twice the steps, over epsilon."""
        return {"ratios": [self._epsilon(s, 2) / self._epsilon(s) for s in self.printed.sigmas]}

    def twice_the_noise(self) -> Figures:
        """Epsilon for twice the noise, over epsilon."""
        return {"ratios": [self._epsilon(2 * s) / self._epsilon(s) for s in self.printed.sigmas]}

    def adapters(self) -> Figures:
        """What an accountant needs to know."""
        asked = set(inspect.signature(accounting.epsilon).parameters)
        known = sorted(asked & {"noise_multiplier", "sample_rate", "steps", "delta"})
        return {"asks_for_weights": len(asked & {"parameters", "dimension", "weights"}),
                "asked": ", ".join(known)}  # fmt: skip

    def nine_runs(self) -> Figures:
        """Three ways to compose the runs."""
        runs = {**self.printed.nine_runs, "delta_slack": 1e-5}
        advanced = mechanisms.advanced_composition(**runs).epsilon
        best = mechanisms.optimal_composition(**runs).epsilon
        return {"advanced": advanced, "basic": runs["epsilon"] * runs["runs"], "best": best}

    def default_accountant(self) -> Figures:
        """Opacus' default, read from its source: importing it would load torch."""
        source = Path(importlib.util.find_spec("opacus").origin).with_name("privacy_engine.py").read_text()
        return {"default": re.search(r'accountant: str = "(\w+)"', source)[1]}

    def delta_one_over_n(self) -> Figures:
        """How likely publishing each record with probability 1/N exposes a person."""
        n = self.printed.samples
        return {"exposed": 1 - (1 - 1 / n) ** n}

    def powers(self) -> Figures:
        """Powers of e."""
        return {"powers": [math.exp(e) for e in self.printed.exponents]}

    def two_places(self) -> Figures:
        """Epsilon with and without the third change, Poisson sampling."""
        delta, epochs = self.printed.run["delta"], self.printed.epochs
        run = {"noise_multiplier": 1.0, "participations": epochs, "delta": delta}
        plain, sampled = accounting.epsilon_without_amplification(**run), self._epsilon(1.0)
        return {"plain": plain, "sampled": sampled, "ratio": plain / sampled}

    def case_study(self) -> Figures:
        """The share of the gain over guessing that is left at both budgets."""
        free, *private = self.printed.case_study
        return {"kept": [(accuracy - 0.5) / (free - 0.5) for accuracy in private]}

    def joined_facts(self) -> Figures:
        """How many patients of a small table have each of three facts, and all three."""
        table, person = tables.patients(), {"zip": "13053", "gender": "M", "nationality": "American"}
        facts = [table[column] == value for column, value in person.items()]
        return {"alone": min(fact.sum() for fact in facts), "joined": np.all(facts, axis=0).sum()}

    def audit_proves(self) -> Figures:
        """The rate that a failed attack of three hundred attempts leaves open."""
        return {"high": 100 * stats.clopper_pearson(0, 300).high}

    def scrubber(self) -> Figures:
        """Digits of a test card number that the printed scrubber leaves."""
        left = _scrub(self.printed.test_card, self.printed.patterns)
        return {"digits": sum(character.isdigit() for character in left), "tail": left[-10:]}

    def phone_pattern(self) -> Figures:
        """Common spellings that the printed pattern misses."""
        ways = self.printed.phone_spellings
        missed = [way for way in ways if not re.search(self.printed.phone_pattern, way)]
        return {"missed": len(missed), "spellings": len(ways)}

    def set_order(self) -> Figures:
        """Orders of one set of words in three processes."""
        code = "print(list(set('the quick brown fox jumps over a lazy dog'.split())))"
        command = [sys.executable, "-c", code]
        runs = [{"env": {"PYTHONHASHSEED": seed}, "capture_output": True} for seed in "123"]
        return {"orders": len({subprocess.run(command, **run).stdout for run in runs})}

    def made_up_numbers(self) -> Figures:
        """The share of the printed first parts that are issued."""
        low, high = self.printed.first_parts
        issued = [area < 900 and area != 666 for area in range(low, high + 1)]
        return {"issued": 100 * sum(issued) / len(issued)}


class ClinicalPaper(_Document):
    """The paper on clinical language models."""

    def leakage_definition(self) -> Figures:
        """The definition on eight losses, and how near it comes to a point of their ROC curve."""
        members, others = (np.array(losses) for losses in self.printed.example_losses)
        leakage = np.mean(members < members.mean()) - np.mean(others < members.mean())
        is_member = [1] * len(members) + [0] * len(others)
        fpr, tpr, _ = roc_curve(is_member, -np.concatenate([members, others]), drop_intermediate=False)
        return {"leakage": float(leakage), "gap": float(np.abs(tpr - fpr - leakage).min())}

    def focus_sign(self) -> Figures:
        """The printed sum for equal weights, less that for all weight on one."""
        spread, sharp = _attention_focus(np.full(4, 0.25)), _attention_focus(np.eye(4)[0])
        return {"spread": spread, "sharp": sharp, "difference": spread - sharp}

    def attention_numbers(self) -> Figures:
        """Attention weights of a text, and estimates kept of them."""
        heads, length = self.printed.heads, self.printed.length
        return {"weights": heads * length**2, "millions": heads * length**2 / 1e6, "estimates": heads * 4}

    def order_floor(self) -> Figures:
        """The epsilon below which the classic conversion cannot get, and what guessed runs spend."""
        delta, snippets = self.printed.delta, self.printed.snippets
        floors = [math.log(1 / delta) / (order - 1) for order in (63, 64)]
        # The batch size is not printed: a guess of 64 or 256.
        runs = [(batch / snippets, round(snippets / batch)) for batch in (64, 256)]
        pld = [true_epsilon(2.0, rate, steps, delta) for rate, steps in runs]
        spent = {"pld": pld, "batch_64": pld[0], "batch_256": pld[1]}
        return {"floors": floors, **spent, "distance": abs(floors[0] - self.printed.epsilons[2.0])}

    def group_of_fifty(self) -> Figures:
        """Both parameters of a patient's guarantee."""
        epsilons, group = self.printed.epsilons, {"delta": self.printed.delta, "size": self.printed.group}
        simple = mechanisms.group_privacy(epsilon=epsilons[2.0], **group)
        tight = mechanisms.group_privacy(epsilon=epsilons[2.0], tight=True, **group)
        other = mechanisms.group_privacy(epsilon=epsilons[1.0], **group)
        return {"epsilon": simple.epsilon, "delta": simple.delta, "tight": tight.delta, "other": other.delta}

    def always_lower(self) -> Figures:
        """Printed pairs in which the black-box attack leaks more."""
        rows = self.printed.black_and_white_box
        above = [row for row in rows if row["black"] > row["white"]]
        return {"exceptions": len(above), **above[0]}

    def accountants(self) -> Figures:
        """What a gradient with little noise tells of the person in it, whose own is clipped to length 1."""
        mu = 1 / self.printed.least_noise
        return {"mu": mu, "allowed": 1 - mechanisms.gdp_tradeoff(1e-6, mu=mu)}

    def one_percent(self) -> Figures:
        """People who can all be found while the average leakage is one percent."""
        return {"people": 0.01 * self.printed.patients, "patients": self.printed.patients}

    def larger_leaks(self) -> Figures:
        """Weights of GPT-2 over weights of BERT."""
        return {"ratio": self.printed.weights["GPT2"] / self.printed.weights["BERT"]}

    def private_and_better(self) -> Figures:
        """Losses of the models with an epsilon below 1, and how many are below the untrained loss."""
        untrained = self.printed.untrained_loss
        losses = [
            self.printed.losses[sigma] for sigma, epsilon in self.printed.epsilons.items() if epsilon < 1
        ]
        return {"losses": losses, "better": sum(loss < untrained for loss in losses), "untrained": untrained}

    def mean_threshold(self) -> Figures:
        """The advantage of a threshold at the mean member loss over the best one, for normal losses."""
        best = 0.07
        gap = 2 * norm.ppf((1 + best) / 2)  # between the means, in standard deviations
        # Members' losses with half the spread: the best test compares densities.
        losses = np.linspace(-12, 12, 200_001)
        excess = norm.pdf(losses, -gap, 0.5) - norm.pdf(losses)
        optimum = np.trapezoid(np.maximum(excess, 0), losses)
        at_mean = 0.5 - norm.cdf(-gap)
        return {"best": best, "kept": at_mean / best, "unequal": at_mean / optimum}

    def useful_noise(self) -> Figures:
        """The largest noise with which the loss falls."""
        losses, untrained = self.printed.losses, self.printed.untrained_loss
        return {"largest": max(sigma for sigma, loss in losses.items() if loss < untrained)}

    def patient_higher(self) -> Figures:
        """Epochs in which the patient level leaks more."""
        pairs = list(zip(self.printed.patient_level, self.printed.sample_level, strict=True))
        return {"higher": sum(patient > sample for patient, sample in pairs), "epochs": len(pairs)}

    def downstream(self) -> Figures:
        """Intervals of both accuracies and a test of their difference."""
        n, rates = self.printed.test_pairs, self.printed.accuracies
        counts = [round(n * rate) for rate in rates]
        ends = [stats.wilson(count, n) for count in counts]
        p = stats.two_proportion(counts[1], n, counts[0], n).chi_squared_p
        return {"p": p} | {name: [100 * i.low, 100 * i.high] for name, i in zip("ab", ends, strict=True)}

    def gradient_size(self) -> Figures:
        """Parameter tensors of a BERT with its masked-word head."""
        parts = self.printed.bert_tensors
        return {"tensors": parts["embeddings"] + parts["layers"] * parts["in_a_layer"] + parts["head"]}
