"""What a report says in words: its first page, in the language of whoever reads it, and its three figures."""

from collections.abc import Mapping

from privaudit._examine import Audit
from privaudit._language import ENGLISH, Language, Sentence
from privaudit._names import AttackName, Cause, Check, Limit, Recipient
from privaudit._settings import Settings
from privaudit._synthetic import SyntheticAudit
from privaudit._verdict import FLAGGED, NOTHING_FOUND, UNDECIDED, causes, clearest
from privaudit._wording import WORDING, of_100
from privhelpers.attacks.scores import as_plain
from privhelpers.stats import Interval

# What an audit asks for with a reference model, of synthetic texts alone, and of whatever was written.
_REFERENCE = (AttackName.REFERENCE, AttackName.EZ_MIA, AttackName.WBC)
_TEXTS = (AttackName.WORDS, AttackName.CLOSEST, AttackName.COVERED)
_RISKS = (Check.SINGLING_OUT, Check.LINKABILITY, Check.INFERENCE)
_CHECKED = (Cause.EXCHANGED, Cause.INVERTED, Cause.REFERENCE)  # first of all, before anything is done


def words_of(audit: Audit | SyntheticAudit) -> dict:
    """Return the sentences for what was audited."""
    return WORDING if isinstance(audit, Audit) else _over(WORDING, WORDING["synthetic"])


def _over(usual: Mapping, own: Mapping) -> dict:
    """Return a mapping with another one laid over it, at every depth."""
    deeper = {
        key: _over(usual[key], value) if isinstance(usual.get(key), Mapping) else value
        for key, value in own.items()
    }
    return {**usual, **deeper}


def limit_of(audit: Audit | SyntheticAudit) -> Limit:
    """Return what limits the sample: what this kind of audit takes by default, or an option."""
    usual = Settings.for_model(audit.target) if isinstance(audit, Audit) else Settings.for_texts()
    chosen = (audit.settings.patients, audit.settings.notes) != (usual.patients, usual.notes)
    return Limit.OPTIONS if chosen else Limit.MINUTES


def short_coverage(audit: Audit | SyntheticAudit, coverage: Mapping, say: Language) -> str:
    """Return how many patients were asked about, and why no more, where not all were."""
    people = (*coverage["members"]["patients"], *coverage["held_out"]["patients"])
    return "" if coverage["whole"] else say(WORDING["coverage"]["short"][limit_of(audit)], *people)


def _figure(
    say: Language, words: Mapping, share: Interval, against: Interval | None, control: str = ""
) -> dict:
    """Return one of the three figures; without a control to measure, guessing takes its place."""
    figure = {name: say(text) for name, text in words.items()}
    shares = []
    for one in filter(None, (share, against)):
        value, *ends = (say.number(of_100(rate)) for rate in as_plain(one))
        shares.append({"value": value, "interval": say(WORDING["interval"], *ends)})
    if against is None:
        shares.append({"value": figure["guessing"], "interval": ""})
        control, figure["guessing"] = WORDING["details"]["by_guessing"], ""
    return {**figure, **shares[0], "control": say(control) or figure["control"], "control_figures": shares[1]}


def key_figure(audit: Audit | SyntheticAudit, say: Language) -> dict:
    """Return the figure of page one with its interval and its control."""
    loss, words, controls = audit.attacks[0], words_of(audit)["key_figure"], WORDING["controls"]
    if loss.untrained is None:
        return _figure(say, words, loss.patient.auc, loss.nulls["held_out"], controls["halves"])
    return _figure(say, words, loss.patient.auc, loss.untrained.auc, controls["untrained"])


def more_figures(audit: Audit | SyntheticAudit) -> list[dict]:
    """Return the two figures that the details add."""
    loss, words = audit.attacks[0], words_of(audit)["details"]["key_figures"]
    null, nothing = loss.untrained, WORDING["controls"]["untrained"]
    few = _figure(ENGLISH, words["few"], loss.patient.tpr_at_1pct_fpr, null and null.tpr_at_1pct_fpr, nothing)
    if isinstance(audit, SyntheticAudit):
        name, patients = "copies", audit.copies.by_patient
    elif audit.completions is None:
        return [few, _figure(ENGLISH, words["top1"], *audit.top1)]
    else:
        name, patients = "completions", audit.completions.by_patient
    return [few, _figure(ENGLISH, words[name], patients.members.interval, patients.heldout.interval)]


def _tested(audit: Audit | SyntheticAudit, say: Language) -> list[str]:
    """Return what was tried, one phrase each."""
    words, asked = words_of(audit)["tested"], []
    for member in (True, False):
        notes = audit.sample.of(member=member)
        asked += [len({note.patient for note in notes}), len(notes)]
    done = [say(words["sample"], *asked), say(words["attacks"], len(audit.attacks))]
    if isinstance(audit, SyntheticAudit):
        texts = audit.files.synthetic.texts
        done.insert(1, say(words["texts"], len(texts), len(set(texts))))
        done.append(say(words["copies"]))
    elif audit.completions is not None:
        done.append(say(words["completions"]))
    if len(audit.risks) == len(_RISKS):
        done.append(say(words["risks"]))
    else:
        done += [say(WORDING["tests"][name]) for name in audit.risks]
    if audit.disclosures is not None:
        done.append(say(words["disclosures"], audit.disclosures.texts))
    if audit.canaries is not None:
        done.append(say(words["canaries"], audit.canaries.inserted + audit.canaries.kept_out))
    return [*done, say(words["blind"])]


def _not_tested(audit: Audit | SyntheticAudit, say: Language) -> list[str]:
    """Return what was left out, so that nobody takes it for done."""
    left, not_applied = list(words_of(audit)["not_tested"]), words_of(audit)["not_applied"]
    if isinstance(audit, SyntheticAudit):
        if audit.disclosures is None:
            left.insert(2, not_applied["copies"])
    elif not audit.target.is_causal:
        left.insert(2, not_applied["texts"])
    elif audit.completions is None or audit.disclosures is None:
        left.insert(2, not_applied["copies"])
    if audit.canaries is None:
        left.insert(2, not_applied["canaries"])
    if isinstance(audit, Audit) and audit.reference:
        left.insert(2, not_applied["reference"])
    here = (say(not_applied["here"], Sentence(what)) for what in _inapplicable(audit))
    return [*map(say, left), *here]


def _inapplicable(audit: Audit | SyntheticAudit) -> list[str]:
    """Return the attacks and risks that were asked for and not measured, in plain words.

    The tokenizer makes nothing of a case, the reference model reads other tokens, every note scores the same,
    or the files hold too little.
    """
    asked, writes = list(_TEXTS), isinstance(audit, SyntheticAudit) or audit.target.is_causal
    if isinstance(audit, Audit):
        unasked = {*_TEXTS, *(() if audit.reference else _REFERENCE)}
        unasked |= set() if audit.settings.lower_case else {AttackName.LOWER_CASE}
        asked = [name for name in AttackName if name not in unasked]
    missing = [WORDING["attacks"][name] for name in asked if name not in {one.name for one in audit.attacks}]
    return missing + [WORDING["tests"][name] for name in _RISKS if writes and name not in audit.risks]


def _found(audit: Audit | SyntheticAudit, say: Language) -> str:
    """Return what was found beyond chance, in one sentence."""
    words, verdict = WORDING["answers"]["found"], audit.verdict
    beyond = [test for test in verdict.tests if test.adjusted <= audit.settings.share]
    if verdict.outcome == NOTHING_FOUND:
        weakest = say.number(of_100(audit.sensitivity.auc, up=True))
        return say(words[NOTHING_FOUND], len(verdict.tests), weakest)
    if verdict.explanations or not beyond:  # what was found must not be laid to training, or is no test
        return say.word(verdict.reasons[0])
    claim = audit.canaries and audit.canaries.claim
    refuted = claim and claim.refuted and Sentence(WORDING["reasons"]["refuted"], claim.epsilon)
    return say(words[FLAGGED], len(beyond), len(verdict.tests), refuted or clearest(beyond))


def _checked_first(audit: Audit | SyntheticAudit) -> list[str]:
    """Return what to check in the files before anything else, if that may explain an open verdict."""
    told = causes(audit.verdict.explanations) if audit.verdict.outcome == UNDECIDED else ()
    return [words_of(audit)["check"][cause] for cause in _CHECKED if cause in told]


def _next(audit: Audit | SyntheticAudit) -> list[str]:
    """Return what to do next."""
    first, verdict = _checked_first(audit), audit.verdict
    if first and len(verdict.explanations) == 1 and causes(verdict.explanations) == {Cause.INVERTED}:
        return first  # no question of who was held out
    return [*first, *words_of(audit)["next"][verdict.outcome]]


def _four_answers(audit: Audit | SyntheticAudit, say: Language) -> dict[str, str]:
    """Return what somebody who decides asks, answered in one sentence each."""
    words, verdict, first = words_of(audit)["answers"], audit.verdict, _checked_first(audit)
    sides = (audit.sample.texts_by_patient(member=member) for member in (True, False))
    return {
        "tested": say(words["tested"], *map(len, sides), len(verdict.tests)),
        "found": _found(audit, say),
        "not_tested": say(words["not_tested"]),
        "next": say(first[0] if first else words["next"][verdict.outcome]),
    }


def _terms(audit: Audit | SyntheticAudit, say: Language) -> list[list[str]]:
    """Return what the words of the first page mean."""
    terms = dict(WORDING["terms"])
    if audit.canaries is None:
        del terms["canaries"]
    if audit.verdict.outcome == UNDECIDED:
        del terms["differential_privacy"]
    percent = 100 * audit.settings.alpha
    return [[say(one["term"]), say(one["meaning"], percent)] for one in terms.values()]


def answers(audit: Audit | SyntheticAudit, coverage: Mapping, say: Language) -> dict:
    """Return what the file says in English, and the first page in its own language."""
    words, verdict = words_of(audit), audit.verdict
    name = audit.target.name if isinstance(audit, Audit) else audit.files.synthetic.name
    headline = say(words["headlines"][verdict.outcome])
    return {
        "title": say(words["title"], name),
        "headline": f"{headline} {short_coverage(audit, coverage, say)}".strip(),
        "answers": _four_answers(audit, say),
        "reasons": [say.word(reason) for reason in verdict.reasons],
        "tested": _tested(audit, say),
        "not_tested": _not_tested(audit, say),
        "next": [say(line) for line in _next(audit)],
    }


def labels(say: Language) -> dict[str, str]:
    """Return the words beside the figures of the first page."""
    return {name: say(text) for name, text in WORDING["labels"].items()}


def first_page(audit: Audit | SyntheticAudit, coverage: Mapping, made: str, say: Language) -> dict:
    """Return every word of the first page, in its language."""
    words, outcome = words_of(audit), audit.verdict.outcome
    first, named = words["first_page"], ""
    about = [say(first["about"], audit.files.members.name)]
    if made:
        about.append(say(first["made"], made))
    if audit.disclosures is not None:
        sides = audit.disclosures.by_patient.members, audit.disclosures.by_patient.heldout
        named = say(first["named"], *(number for side in sides for number in (side.hits, side.of)))
    levels = [
        [say(first["recipient"], say(words["recipients"][who])), say(words["severity"][outcome][who])]
        for who in Recipient
    ]
    return {
        **answers(audit, coverage, say),
        "about": " ".join(about),
        "key_figure": key_figure(audit, say),
        "beside": say(first["judges_nothing"]) if outcome == UNDECIDED else "",
        "named": named,
        "severity": levels,
        "terms": _terms(audit, say),
        "labels": labels(say),
    }
