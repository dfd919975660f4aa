"""What is audited, a model, synthetic texts, or answers, and which probes apply to it.

The three classes have the same methods, in the order in which an audit calls them.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from privaudit.console import duration
from privaudit.encode import (
    draw_sample,
    form_the_model_knows,
    in_form,
    read_as_trained,
    require_text_back,
    rewrite,
)
from privaudit.loading import untrained
from privaudit.model import EncodedTexts, Target
from privaudit.probes import membership, memorization, risks
from privaudit.probes.answers import Answers, given_back, leakage
from privaudit.probes.counts import Check, PatientShares
from privaudit.probes.likeness import Likeness, copies, word_losses
from privaudit.probes.membership import AttackName
from privaudit.probes.questions import Knowledge, QueryTest
from privaudit.records import Files
from privaudit.settings import Settings
from privhelpers.errors import BadRecords, InvalidParameter
from privhelpers.models import TokenScores
from privhelpers.validate import shown

_PASSES = 5  # over notes, halves and rests, each compared with every synthetic text


class ModelProbes:
    """The probes of a model, which scores the notes and, if it is causal, writes texts."""

    exchanged = (Check.COMPLETIONS,)  # what it wrote began as held-out notes do, so that is not exchanged
    name = "model"

    def __init__(
        self, target: Target, reference: Target | None, files: Files, settings: Settings, progress: bool
    ) -> None:
        """Draw the notes, and check that the tokenizers lose little of them.

        Args:
            target, reference: the models.
            files: the checked files.
            settings: of the audit.
            progress: whether to show bars.

        Raises:
            BadRecords: too few notes can be read.
            UnsupportedModel: a tokenizer loses most of the notes.
        """
        self.files, self.settings, self.progress = files, settings, progress
        models = (target,) if reference is None else (target, reference)
        models, sample = read_as_trained(models, draw_sample(files, models, settings), seed=settings.seed)
        self.target, self.reference, self.models = models[0], models[1] if reference else None, models
        self.form = form_the_model_knows(self.target, sample, seed=settings.seed)
        self.sample = in_form(sample, self.form, models)
        pairs = zip(self.models, self.sample.encoded, strict=True)
        lost = (require_text_back(model, self.sample.notes, encoded) for model, encoded in pairs)
        self.lost = list(filter(None, lost))
        if self.form:
            self.lost.append(
                f"The notes are read in {self.form}: the model knows accents in this spelling better than as "
                "the files write them."
            )
        if not self.target.starts:
            self.lost.append(
                "The notes are read without the tokenizer's start token: the model predicts them better so."
            )
        self.checks_at_most = 5 * target.is_causal  # completions, disclosures and three risks

    def ahead(self) -> list[str]:
        """Return what the tokenizers lose, what is measured, and an estimate of the time."""
        target, sample, settings = self.target, self.sample, self.settings
        lengths = [len(ids) for ids in sample.encoded[0].ids]
        middle = max(0, len(lengths) // 2 - 16)  # a batch of notes of one length, or nearly
        few = sorted(range(len(lengths)), key=lengths.__getitem__)[middle : middle + 32]
        batch = sample.encoded[0].take(few)
        readings = (1 + settings.lower_case) * (1 + settings.control) + (self.reference is not None)
        seconds = seconds_of(lambda: target.score(batch, seed=settings.seed))
        seconds *= readings * sum(lengths) / sum(lengths[n] for n in few)
        written = ""
        if target.is_causal and target.continues(""):
            tokens = min(8, settings.tokens)
            writing = seconds_of(lambda: target.write("", samples=2, tokens=tokens, seed=settings.seed))
            seconds += writing * settings.texts * settings.tokens / 16
            written = f", and to write {settings.texts:,} texts"
        return [
            *self.lost,
            f"the models read {len(sample.texts):,} notes {readings} times{written}: about "
            f"{duration(seconds)}, and more for tests and the comparison of the two files",
        ]

    def membership_scores(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray] | None]:
        """Return the scores of each note, and under fresh weights if the settings include that control."""
        target, reference, sample, seed = self.target, self.reference, self.sample, self.settings.seed
        own, others = sample.encoded[0], sample.encoded[-1]

        def ask(model: Target, texts: EncodedTexts, title: str) -> TokenScores:
            return model.score(texts, seed=seed, what=f"{title} ({model.name})" if self.progress else None)

        lower = target.encode([text.lower() for text in sample.texts]) if self.settings.lower_case else None
        if lower and not lower.readable.all():
            lower = None
        other = ask(reference, others, "reading") if reference else None
        same = reference is not None and target.reads_as(reference, own, others)

        def scores_of(model: Target, tokens: TokenScores) -> dict[str, np.ndarray]:
            lower_case = ask(model, lower, "in lower case") if lower else None
            return membership.membership_scores(
                tokens, sample.texts, lower=lower_case, reference=other, same_tokens=same
            )

        self.scored, self.other = ask(target, own, "reading"), other
        scores, fresh = scores_of(target, self.scored), None
        if self.settings.control:
            control = untrained(target, seed=seed)
            fresh = scores_of(control, ask(control, own, "reading"))
            fresh[AttackName.TOKENS] = membership.tokens_of_both(sample.texts, len(target.tokenizer))
        return scores, fresh

    def check(self, notify: Callable[[str], None]) -> dict[Check, PatientShares | None]:
        """Count the patients whose notes or strings the model gives back."""
        self.completions, self.disclosures, self.texts, self.risks = None, None, [], {}
        if not self.target.is_causal:
            return {}
        self.completions = memorization.completions(self.scored, self.sample)
        notify(f"letting it write {self.settings.texts:,} texts")
        self.texts = memorization.write_texts(self.target, self.sample, self.settings, progress=self.progress)
        self.disclosures = memorization.disclosures(self.texts, self.sample)
        if self.texts:
            likeness = Likeness(self.texts, self.sample.texts)
            self.risks = risks.risks(self.texts, self.sample, likeness, self.settings)
        return {
            Check.COMPLETIONS: self.completions and self.completions.by_patient,
            Check.DISCLOSURES: self.disclosures and self.disclosures.by_patient,
            **self.risks,
        }

    def canary_scores(self) -> np.ndarray:
        """Score the canaries, against the reference model if there is one."""
        file, seed = self.files.canaries, self.settings.seed
        texts = rewrite([canary.text for canary in file.canaries], self.form)
        encoded = tuple(model.encode(texts) for model in self.models)
        for model, read in zip(self.models, encoded, strict=True):
            if not read.readable.all():
                raise BadRecords(
                    f"{file.name}: the tokenizer of {shown(model.name)} turns some into no tokens"
                )
        scored = [model.score(read, seed=seed) for model, read in zip(self.models, encoded, strict=True)]
        scores = -scored[0].losses
        if self.reference is None:
            return scores
        found = membership.membership_scores(scored[0], texts, reference=scored[1])
        return found.get(AttackName.REFERENCE, scores)

    def reference_p(self) -> float | None:
        """Return the p-value of the reference model, which may have seen either file.

        Two tests, each with the groups swapped too, share the error: the smallest p-value counts four times.
        """
        if self.reference is None:
            return None
        swapped = replace(self.sample, member=~self.sample.member)
        losses = {"loss": -self.other.losses}
        both = [membership.p_values(losses, one, self.settings)["loss"] for one in (self.sample, swapped)]
        return 4 * min(map(min, both))

    def facts(self) -> dict[str, Any]:
        """Return the fields of `Audit` that a model alone has."""
        return {
            "target": self.target,
            "reference": self.reference,
            "truncated": self.scored.truncated,
            "top1": memorization.guessed(self.scored, self.sample, self.settings),
            "completions": self.completions,
            "texts": self.texts,
            "lost": " ".join(self.lost),
        }


class TextProbes:
    """The probes of a synthetic data set."""

    exchanged = (Check.COPIES, Check.DISCLOSURES)
    name = "synthetic texts"
    checks_at_most = 5  # copies, disclosures and three risks

    def __init__(self, files: Files, settings: Settings) -> None:
        """Draw the notes that are compared with the texts."""
        self.files, self.settings = files, settings
        self.texts, self.sample = files.synthetic.texts, draw_sample(files, [], settings)

    def ahead(self) -> list[str]:
        """Return what is compared, and an estimate of the time."""
        texts = self.sample.texts
        self.likeness = Likeness(self.texts, texts)
        few = texts[:: max(1, len(texts) // 50)]
        seconds = _PASSES * seconds_of(lambda: self.likeness.nearest(few)) * len(texts) / len(few)
        return [
            f"{len(texts):,} notes are compared with {len(self.texts):,} synthetic texts: about "
            f"{duration(seconds)}, and more for tests and the comparison of the two files"
        ]

    def membership_scores(self) -> tuple[dict[str, np.ndarray], None]:
        """Return the scores of each note."""
        texts = self.sample.texts
        scores = {
            AttackName.WORDS: -word_losses(self.texts, texts),
            AttackName.CLOSEST: self.likeness.nearest(texts),
            AttackName.COVERED: self.likeness.covered(texts),
        }
        return membership.drop_constant_scores(scores), None

    def check(self, notify: Callable[[str], None]) -> dict[Check, PatientShares | None]:
        """Count the patients whom the texts reveal."""
        notify("looking for near copies, strings that name a patient, and the three risks of the regulators")
        self.copies = copies(self.texts, self.sample)
        self.disclosures = memorization.disclosures(self.texts, self.sample)
        self.risks = risks.risks(self.texts, self.sample, self.likeness, self.settings)
        named = self.disclosures and self.disclosures.by_patient
        return {Check.COPIES: self.copies.by_patient, Check.DISCLOSURES: named, **self.risks}

    def canary_scores(self) -> np.ndarray:
        """Score the canaries by how well the texts predict their words."""
        return -word_losses(self.texts, [canary.text for canary in self.files.canaries.canaries])

    def reference_p(self) -> None:
        """Return None: there is no reference model."""

    def facts(self) -> dict[str, Any]:
        """Return the fields of `Audit` that texts alone have."""
        return {"copies": self.copies}


class AnswerProbes:
    """The probes of a model behind an interface, which only answers."""

    name = "answers"
    disclosures, risks = None, {}

    def __init__(self, answers: Answers, files: Files) -> None:
        """Take the notes that the questions are about.

        Raises:
            InvalidParameter: there are canaries.
        """
        if files.canaries is not None:
            raise InvalidParameter("canaries: their scores need the weights of the model; leave them out")
        self.answers, self.sample, tests = answers, answers.plan.asked, answers.plan.tests
        self.checks_at_most = len(tests)
        # Texts without knowledge begin as held-out notes do, so these tests are not exchanged.
        self.exchanged = [test for test in tests if test.knowledge != Knowledge.NOTHING]

    def ahead(self) -> list[str]:
        """Return how many answers are searched."""
        return [
            f"{self.answers.given:,} of {self.answers.wanted:,} answers are searched for words of "
            f"{len(self.answers.plan.sample.notes):,} notes, and for strings that name a patient"
        ]

    def membership_scores(self) -> tuple[dict[str, np.ndarray], None]:
        """Return the score of each note that was asked about."""
        scores = {AttackName.GIVEN_BACK: given_back(self.answers)}
        return membership.drop_constant_scores(scores), None

    def check(self, notify: Callable[[str], None]) -> dict[QueryTest, PatientShares]:
        """Count the patients whom the answers give away."""
        notify("looking for strings that name a patient, and for words of notes")
        self.leakage = leakage(self.answers)
        return self.leakage

    def reference_p(self) -> None:
        """Return None: there is no reference model."""

    def facts(self) -> dict[str, Any]:
        """Return the fields of `Audit` that answers alone have."""
        return {"answers": self.answers, "leakage": self.leakage}


def probes_of(
    files: Files,
    settings: Settings,
    target: Target | None,
    reference: Target | None,
    progress: bool,
    answers: Answers | None,
) -> ModelProbes | TextProbes | AnswerProbes:
    """Return the probes of a model, of its answers, or of the synthetic texts among the files."""
    if target is not None:
        return ModelProbes(target, reference, files, settings, progress)
    if answers is not None:
        return AnswerProbes(answers, files)
    if files.synthetic is None:
        raise InvalidParameter("target: neither a model nor synthetic texts are given; give one of them")
    return TextProbes(files, settings)


def seconds_of(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    clock = time.perf_counter()
    function()
    return time.perf_counter() - clock
