"""The report of an audit: plain values for a file, and one page that needs nothing but itself.

Text of records, and names of patients, stay out of both unless somebody asks for them: the report is meant to
be passed on. Whatever is shown is escaped, control characters spelled out, and the page may load nothing and
run nothing.
"""

import base64
import functools
import hashlib
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

import privhelpers
from privhelpers.attacks.scores import as_plain
from privhelpers.own_model._examine import Audit
from privhelpers.own_model._language import ENGLISH, Language, Sentence
from privhelpers.own_model._membership import Attack
from privhelpers.own_model._memorization import PatientShares
from privhelpers.own_model._settings import Settings
from privhelpers.own_model._synthetic import SyntheticAudit
from privhelpers.own_model._verdict import FLAGGED, NOTHING_FOUND, UNDECIDED, clearest
from privhelpers.own_model._wording import WORDING, of_100
from privhelpers.stats import Interval
from privhelpers.text import inserted

# The page in Jinja's language, and its style, whose hash the page's own policy names. Whatever is inserted is
# escaped; no attribute holds text of a record or a model.
_PAGE, _STYLE = Path(__file__).with_name("report.html"), Path(__file__).with_name("report.css")
_FORM = Path(__file__).with_name("report.schema.json")
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn", "statsmodels")
SCHEMA = "privai-leak/audit-report/2"
# What only one kind of audit has; null in the other.
ONE_KIND = ("model", "truncated", "guessed", "completed", "synthetic", "copies")
# What an audit asks for with a reference model, of synthetic texts alone, and of whatever was written.
_REFERENCE, _TEXTS = ("reference", "ez_mia", "wbc"), ("words", "closest", "covered")
_RISKS = ("singling_out", "linkability", "inference")
_KEPT = "\n\u00a0\u202f"  # some languages have spaces within numbers, and before a colon, that never break
_LONGEST = 400  # characters of one piece of text that is shown
_SHOWN = 20  # strings, and texts, that are shown where somebody asks for them


def _versions() -> dict[str, str]:
    """Return the versions that decide the figures."""
    versions = {"python": platform.python_version(), "privhelpers": privhelpers.__version__}
    return versions | {name: metadata.version(name) for name in PACKAGES}


def _shares(shares: PatientShares) -> dict:
    sides = {"members": shares.members, "held_out": shares.heldout}
    rates = {name: [one.hits, one.of, one.interval.low, one.interval.high] for name, one in sides.items()}
    return {**rates, "difference": shares.difference, "p": shares.p}


def _attack(attack: Attack) -> dict:
    null = {"untrained": attack.untrained, "untrained_p": attack.untrained_p}
    return {**_fields(attack, "name", "words", "patient", "note", "p"), "controls": {**null, **attack.nulls}}


def _fields(source: object, *names: str) -> dict:
    return {name: getattr(source, name) for name in names}


def _words(audit: Audit | SyntheticAudit) -> dict:
    """Return the sentences for what was audited."""
    return WORDING if isinstance(audit, Audit) else _over(WORDING, WORDING["synthetic"])


def _over(usual: Mapping, own: Mapping) -> dict:
    """Return a mapping with another one laid over it, at every depth."""
    deeper = {
        key: _over(usual[key], value) if isinstance(usual.get(key), Mapping) else value
        for key, value in own.items()
    }
    return {**usual, **deeper}


def _memory(audit: Audit) -> dict:
    """Return what the model gave back, as counts."""
    completions = audit.completions
    return {
        "guessed": dict(zip(("members", "held_out"), audit.top1, strict=True)),
        "completed": completions
        and {
            "by_patient": _shares(completions.by_patient),
            "notes": [completions.notes.hits, completions.notes.of],
            "held_out_notes": [completions.heldout_notes.hits, completions.heldout_notes.of],
            **_fields(completions, "lines", "too_short"),
        },
    }


def _resemblance(audit: SyntheticAudit) -> dict:
    """Return near copies, as counts."""
    copies, found = audit.copies, audit.copies.by_patient
    ends = [f"{end:.0f}" for end in as_plain(copies.phantoms)]
    told = WORDING["synthetic"]["details"]["phantoms"].format(
        copies.texts, copies.heldout_texts, found.members.of, found.members.hits, *ends
    )
    return {
        "copies": {
            "by_patient": _shares(found),
            **_fields(copies, "texts", "heldout_texts", "phantoms"),
            "sentence": told,
        },
    }


def _named(audit: Audit | SyntheticAudit) -> dict:
    """Return the three risks, whom the texts name, and what the canaries say, as counts."""
    disclosures, canaries = audit.disclosures, audit.canaries
    claim, named = canaries and canaries.claim, None
    if disclosures is not None:
        sides = disclosures.by_patient.members, disclosures.by_patient.heldout
        hits = [number for side in sides for number in (side.hits, side.of)]
        told = (*hits[:2], disclosures.texts, *hits[2:], _small(disclosures.by_patient.p))
        named = {
            "by_patient": _shares(disclosures.by_patient),
            **_fields(disclosures, "texts", "distinct", "strings"),
            "sentence": _words(audit)["details"]["named"].format(*told),
        }
    return {
        "risks": {
            name: {"words": WORDING["tests"][name], **_shares(shares)} for name, shares in audit.risks.items()
        },
        "named": named,
        "canaries": canaries
        and {
            **_fields(canaries, "inserted", "kept_out", "auc", "p"),
            "claim": claim
            and {
                **_fields(claim, "epsilon", "delta", "most_certifiable", "refuted"),
                "certified": claim.lower.epsilon_lower,
                "confidence": claim.lower.confidence,
                "method": str(claim.lower),
            },
        },
    }


def _coverage(audit: Audit | SyntheticAudit) -> dict:
    """Return how many of the patients and notes that were brought were asked about, and why not all."""
    words, settings = WORDING["details"]["coverage"], audit.settings
    files = audit.files.members, audit.files.heldout
    sides = []
    for member, file in zip((True, False), files, strict=True):
        asked = audit.sample.of(member=member)
        patients = len({note.patient for note in asked}), len(file.patients)
        sides.append({"patients": list(patients), "notes": [len(asked), len(file.notes)]})
    people, notes = ([number for side in sides for number in side[unit]] for unit in ("patients", "notes"))
    names = [file.name for file in files]
    whole = people[::2] == people[1::2] and notes[::2] == notes[1::2]
    if whole:
        told = words["all"].format(people[0], names[0], people[2], names[1])
    else:
        limits = settings.patients, settings.notes
        most = ["all" if limit is None else f"at most {limit:,}" for limit in limits]
        first, second = [*people[:2], *notes[:2], names[0]], [*people[2:], *notes[2:], names[1]]
        told = words["part"].format(*first, *second, *most, words["why"][_by_option(audit)])
    if audit.sample.unreadable:
        told = f"{told} {words['unreadable'].format(audit.sample.unreadable)}"
    coverage = {"whole": whole, "members": sides[0], "held_out": sides[1]}
    return {**coverage, "short": _short(audit, coverage, ENGLISH), "sentence": told}


def _by_option(audit: Audit | SyntheticAudit) -> bool:
    """Tell whether somebody chose how many are asked about, other than what this kind of audit takes."""
    usual = Settings.for_model(audit.target) if isinstance(audit, Audit) else Settings.for_texts()
    return (audit.settings.patients, audit.settings.notes) != (usual.patients, usual.notes)


def _short(audit: Audit | SyntheticAudit, coverage: Mapping, say: Language) -> str:
    """Return how many patients were asked about, and why no more, where not all were."""
    people = (*coverage["members"]["patients"], *coverage["held_out"]["patients"])
    return "" if coverage["whole"] else say(WORDING["coverage"]["short"][_by_option(audit)], *people)


def _data(audit: Audit | SyntheticAudit) -> list[dict]:
    rows = []
    for member, file in ((True, audit.files.members), (False, audit.files.heldout)):
        asked = audit.sample.of(member=member)
        rows.append(
            {
                "file": file.name,
                "sha256": file.sha256,
                "role": _words(audit)["details"]["role"] if member else "held out",
                "lines": file.lines,
                "repeated_lines": file.repeated,
                "shared_notes": file.shared,
                "patients": len(file.patients),
                "patients_asked": len({note.patient for note in asked}),
                "notes_asked": len(asked),
                "distinct_notes_asked": len({note.text for note in asked}),
                "mean_characters": sum(len(note.text) for note in asked) / len(asked),
            }
        )
    return rows


def _methods(audit: Audit | SyntheticAudit) -> dict[str, str]:
    """Return how the intervals of each kind of figure were made, as these say it themselves."""
    own = audit.completions if isinstance(audit, Audit) else audit.copies
    counts = [*audit.risks.values(), *(one.by_patient for one in (own, audit.disclosures) if one)]
    intervals = {"areas": audit.attacks[0].patient.auc}
    if counts:
        intervals |= {"counts": counts[0].members.interval, "differences": counts[0].difference}
    if isinstance(audit, Audit):
        intervals["guessed"] = audit.top1[0]
    if audit.canaries:
        intervals["canaries"] = audit.canaries.auc
    return {name: interval.method for name, interval in intervals.items()}


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


def _key_figure(audit: Audit | SyntheticAudit, say: Language) -> dict:
    """Return the figure of page one with its interval and its control."""
    loss, words, controls = audit.attacks[0], _words(audit)["key_figure"], WORDING["controls"]
    if loss.untrained is None:
        return _figure(say, words, loss.patient.auc, loss.nulls["held_out"], controls["halves"])
    return _figure(say, words, loss.patient.auc, loss.untrained.auc, controls["untrained"])


def _more_figures(audit: Audit | SyntheticAudit) -> list[dict]:
    """Return the two figures that the details add."""
    loss, words = audit.attacks[0], _words(audit)["details"]["key_figures"]
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
    words, asked = _words(audit)["tested"], []
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
    left, not_applied = list(_words(audit)["not_tested"]), _words(audit)["not_applied"]
    if isinstance(audit, SyntheticAudit):
        if audit.disclosures is None:
            left.insert(2, not_applied["copies"])
    elif not audit.target.is_causal:
        left.insert(2, not_applied["texts"])
    elif audit.completions is None or audit.disclosures is None:
        left.insert(2, not_applied["copies"])
    if audit.canaries is None:
        left.insert(2, not_applied["canaries"])
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
        unasked |= set() if audit.settings.lower_case else {"lower_case"}
        asked = [name for name in WORDING["attacks"] if name not in unasked]
    missing = [WORDING["attacks"][name] for name in asked if name not in {one.name for one in audit.attacks}]
    return missing + [WORDING["tests"][name] for name in _RISKS if writes and name not in audit.risks]


def _found(audit: Audit | SyntheticAudit, say: Language) -> str:
    """Return what was found beyond chance, in one sentence."""
    words, verdict = WORDING["answers"]["found"], audit.verdict
    beyond = [test for test in verdict.tests if test.adjusted <= audit.settings.alpha]
    if verdict.outcome == NOTHING_FOUND:
        weakest = say.number(of_100(audit.sensitivity.auc))
        return say(words[NOTHING_FOUND], len(verdict.tests), weakest)
    if verdict.explanations or not beyond:  # what was found must not be laid to training, or is no test
        return say.word(verdict.reasons[0])
    claim = audit.canaries and audit.canaries.claim
    refuted = claim and claim.refuted and Sentence(WORDING["reasons"]["refuted"], claim.epsilon)
    return say(words[FLAGGED], len(beyond), len(verdict.tests), refuted or clearest(beyond))


def _four_answers(audit: Audit | SyntheticAudit, say: Language) -> dict[str, str]:
    """Return what somebody who decides asks, answered in one sentence each."""
    words, verdict = _words(audit)["answers"], audit.verdict
    sides = (audit.sample.texts_by_patient(member=member) for member in (True, False))
    return {
        "tested": say(words["tested"], *map(len, sides), len(verdict.tests)),
        "found": _found(audit, say),
        "not_tested": say(words["not_tested"]),
        "next": say(words["next"][verdict.outcome]),
    }


def _terms(audit: Audit | SyntheticAudit, say: Language) -> list[list[str]]:
    """Return what the words of the first page mean."""
    terms = dict(WORDING["terms"])
    if audit.canaries is None:
        del terms["canaries"]
    if audit.verdict.outcome == UNDECIDED:
        del terms["differential_privacy"]
    percent = 100 * audit.settings.alpha
    return [[say(term), say(meaning, percent)] for term, meaning in terms.values()]


def _answers(audit: Audit | SyntheticAudit, coverage: Mapping, say: Language) -> dict:
    """Return what the file says in English, and the first page in its own language."""
    words, verdict = _words(audit), audit.verdict
    name = audit.target.name if isinstance(audit, Audit) else audit.files.synthetic.name
    headline = say(words["headlines"][verdict.outcome])
    return {
        "title": say(words["title"], name),
        "headline": f"{headline} {_short(audit, coverage, say)}".strip(),
        "answers": _four_answers(audit, say),
        "reasons": [say.word(reason) for reason in verdict.reasons],
        "tested": _tested(audit, say),
        "not_tested": _not_tested(audit, say),
        "next": [say(line) for line in words["next"][verdict.outcome]],
    }


def _labels(say: Language) -> dict[str, str]:
    return {name: say(text) for name, text in WORDING["labels"].items()}


def _first_page(audit: Audit | SyntheticAudit, coverage: Mapping, made: str, say: Language) -> dict:
    """Return every word of the first page, in its language."""
    words, outcome = _words(audit), audit.verdict.outcome
    first, named = words["first_page"], ""
    about = [say(first["about"], audit.files.members.name)]
    if made:
        about.append(say(first["made"], made))
    if audit.disclosures is not None:
        sides = audit.disclosures.by_patient.members, audit.disclosures.by_patient.heldout
        named = say(first["named"], *(number for side in sides for number in (side.hits, side.of)))
    levels = [[say(first["recipient"], say(who)), say(level)] for who, level in words["severity"][outcome]]
    return {
        **_answers(audit, coverage, say),
        "about": " ".join(about),
        "key_figure": _key_figure(audit, say),
        "beside": say(first["judges_nothing"]) if outcome == UNDECIDED else "",
        "named": named,
        "severity": levels,
        "terms": _terms(audit, say),
        "labels": _labels(say),
    }


def report_facts(audit: Audit | SyntheticAudit, *, made: str = "", language: Language = ENGLISH) -> dict:
    """Return every figure of an audit as plain values, without any text of a record.

    The form is that of `report.schema.json`, a JSON Schema beside this module.

    Args:
        audit: from `examine` or `examine_synthetic`.
        made: when, in words.
        language: of the first page; every other sentence is English.
    """
    verdict, canaries, coverage = audit.verdict, audit.files.canaries, _coverage(audit)
    catalogue = next(iter(language.files.items()), None)
    words, levels = _words(audit)["details"], _words(audit)["severity"][verdict.outcome]
    weakest = {name: of_100(value) for name, value in vars(audit.sensitivity).items()}
    if isinstance(audit, Audit):
        target = audit.target
        own = {
            "kind": "model",
            "model": {
                **_fields(target, "name", "kind", "parameters", "context"),
                "type": target.model.config.model_type,
                "files": dict(target.files),
                "reference": audit.reference and audit.reference.name,
                "reference_files": dict(audit.reference.files) if audit.reference else {},
            },
            "truncated": audit.truncated,
            **_memory(audit),
        }
    else:
        texts, name = audit.files.synthetic.texts, audit.files.synthetic.name
        sizes = {"texts": len(texts), "distinct": len(set(texts))}
        own = {
            "kind": "synthetic",
            "synthetic": {"file": name, "sha256": audit.files.synthetic.sha256, **sizes},
            **_resemblance(audit),
        }
    facts = {
        **dict.fromkeys(ONE_KIND),
        "schema": SCHEMA,
        "language": language.code,
        "catalogue": catalogue and dict(zip(("file", "sha256"), catalogue, strict=True)),
        "first_page": _first_page(audit, coverage, made, language),
        **_answers(audit, coverage, ENGLISH),
        "who": words["who"],
        "made": made,
        "outcome": verdict.outcome,
        "coverage": coverage,
        "severity": [
            [who, f"{level.capitalize()}: {what}"]
            for (who, level), what in zip(levels, words["advice"][verdict.outcome], strict=True)
        ],
        "explanations": [str(explanation) for explanation in verdict.explanations],
        "sensitivity": {**vars(audit.sensitivity), "sentence": words["sensitivity"].format(**weakest)},
        "key_figures": [_key_figure(audit, ENGLISH), *_more_figures(audit)],
        "tests": [{**vars(test), "name": str(test.name)} for test in verdict.tests],
        "attacks": [_attack(attack) for attack in audit.attacks],
        "blind": [_fields(one, "name", "auc", "p") for one in audit.blind],
        "methods": _methods(audit),
        **own,
        **_named(audit),
        "data": _data(audit),
        "canary_file": canaries and {"file": canaries.name, "sha256": canaries.sha256},
        "left_out": audit.sample.unreadable,
        "settings": _settings(audit.settings),
        "versions": _versions(),
    }
    return as_plain(facts)


def _settings(settings: Settings) -> dict:
    """Return the settings of an audit; a limit that is none is "all"."""
    given = {name: value for name, value in vars(settings).items() if value is not None}
    return {"patients": "all", "notes": "all"} | given


def report_schema() -> bytes:
    """Return the JSON Schema (draft 2020-12) that `report_facts` and `report.json` follow."""
    return _FORM.read_bytes()


def _small(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else f"{p:.1e}"


def _written(audit: Audit) -> dict:
    """Return the members' strings that were found, and the start of what the model wrote."""
    strings = () if audit.disclosures is None else audit.disclosures.disclosed
    texts = [text[:_LONGEST] for text in dict.fromkeys(audit.texts)]
    return {"strings": strings[:_SHOWN], "texts": texts[:_SHOWN]}


def report_page(
    facts: Mapping, pictures: Mapping[str, bytes] | None = None, *, written: Audit | None = None
) -> str:
    """Return the report as one page of HTML that loads and runs nothing.

    Args:
        facts: from `report_facts`.
        pictures: SVG by caption, in the order of the page.
        written: the audit, if text that the model wrote is to stand in the page; such a page is as
            confidential as the records.
    """
    environment = Environment(
        autoescape=True,
        finalize=functools.partial(inserted, keep=_KEPT),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(rate=lambda value: f"{value:.3f}", small=_small, hundred=of_100)
    style = _STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    drawn = {
        caption: Markup("data:image/svg+xml;base64," + base64.b64encode(svg).decode())
        for caption, svg in (pictures or {}).items()
    }
    page = environment.from_string(_PAGE.read_text(encoding="utf-8"))
    return page.render(
        r=facts,
        pictures=drawn,
        style=Markup(style),
        style_hash=digest,
        english=_labels(ENGLISH),
        shown=written and _written(written),
    )
