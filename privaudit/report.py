"""The report of an audit: its facts as plain values, its pictures, and one page of HTML.

The facts follow `report.schema.json`. They contain no text of records and no names of patients, because the
report is meant to be shared. The page is self-contained: all text is escaped, control characters are spelled
out, and it loads and runs nothing.
"""

import base64
import functools
import hashlib
import io
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import matplotlib as mpl
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

import privhelpers
from privaudit.annex import annex
from privaudit.audit import Audit, Kind
from privaudit.kit import Manifest
from privaudit.probes.canaries import Claim
from privaudit.probes.counts import PatientShares
from privaudit.probes.membership import Attack
from privaudit.settings import Settings
from privaudit.verdict import TestResult
from privaudit.words import (
    WORDING,
    Recipient,
    answers,
    first_page,
    format_p,
    format_percent,
    key_figure,
    more_figures,
    name_of_test,
    sentence,
    short_coverage,
    words_of,
)
from privhelpers.attacks.scores import as_plain
from privhelpers.figures._charts import forest, roc, two_arms
from privhelpers.stats import roc_curve
from privhelpers.text import in_words, inserted, rounded_down

_FORM = Path(__file__).with_name("report.schema.json")
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn")
SCHEMA = "privai-leak/audit-report/3"
# Keys of one kind of audit; null in the others.
ONE_KIND = ("model", "truncated", "guessed", "completed", "synthetic", "copies", "queries")


def _versions() -> dict[str, str]:
    """Return the versions that affect the figures."""
    versions = {"python": platform.python_version(), "privhelpers": privhelpers.__version__}
    return versions | {name: metadata.version(name) for name in PACKAGES}


def _shares(shares: PatientShares) -> dict:
    sides = {"members": shares.members, "held_out": shares.heldout}
    rates = {name: [one.hits, one.of, one.interval.low, one.interval.high] for name, one in sides.items()}
    return {**rates, "difference": shares.difference, "p": shares.p}


def _attack(attack: Attack) -> dict:
    null = {"untrained": attack.untrained, "untrained_p": attack.untrained_p}
    return {
        **_fields(attack, "name", "patient", "note", "p"),
        "words": WORDING["attacks"][attack.name],
        "controls": {**null, **attack.nulls},
    }


def _fields(source: object, *names: str) -> dict:
    return {name: getattr(source, name) for name in names}


def _given(source: object) -> dict:
    return {name: value for name, value in vars(source).items() if value is not None}


def _test(test: TestResult) -> dict:
    facts = {"name": name_of_test(test.key)} | _given(test)
    del facts["key"]
    return facts


def _memory(audit: Audit) -> dict:
    """Return counts of what the model gave back."""
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


def _resemblance(audit: Audit) -> dict:
    """Return counts of near copies."""
    copies, found = audit.copies, audit.copies.by_patient
    ends = [f"{end:.0f}" for end in as_plain(copies.phantoms)]
    told = words_of(audit)["details"]["phantoms"].format(
        copies.texts, copies.heldout_texts, found.members.of, found.members.hits, *ends
    )
    return {
        "copies": {
            "by_patient": _shares(found),
            **_fields(copies, "texts", "heldout_texts", "phantoms"),
            "sentence": told,
        },
    }


def _kit(kit: Manifest | None) -> dict | None:
    """Return what a kit of canaries could refute, or None without one."""
    if kit is None:
        return None
    sentence = WORDING["details"]["kit"].format(
        WORDING["units"][kit.unit],
        rounded_down(kit.refutes.gaussian),
        rounded_down(kit.refutes.any_mechanism),
        kit.refutes.delta,
        100 * kit.refutes.confidence,
    )
    return {"unit": kit.unit, **kit.refutes.model_dump(), "sentence": sentence}


def _claim(claim: Claim) -> dict:
    """Return a claimed epsilon, and what the canaries certify."""
    return {
        **_fields(claim, "epsilon", "delta", "unit", "most_certifiable", "most_gaussian"),
        **_fields(claim, "refuted", "refuted_for_any"),
        "certified": claim.lower.epsilon_lower,
        "certified_gaussian": claim.gaussian.epsilon_lower,
        "confidence": claim.lower.confidence,
        "method": str(claim.lower),
        "method_gaussian": str(claim.gaussian),
        "protects": WORDING["units"][claim.unit],
    }


def _queries(audit: Audit) -> dict:
    """Return what the answers give away, by what the attacker knows and how often it asks."""
    answers, words = audit.answers, words_of(audit)["details"]
    missing = answers.wanted - answers.given
    told = [words["missing"].format(missing, answers.wanted)] if missing else []
    told += [words["left_out"].format(answers.left_out)] if answers.left_out else []
    return {
        **{"file": answers.name, "sha256": answers.sha256, "budget": audit.settings.budget},
        **_fields(answers, "wanted", "given", "left_out"),
        "sentence": " ".join(told),
        "leakage": [
            {
                "knowledge": test.knowledge,
                "words": WORDING["knowledge"][test.knowledge],
                "queries": test.queries,
                **_shares(shares),
            }
            for test, shares in audit.leakage.items()
        ],
    }


def _named(audit: Audit) -> dict:
    """Return counts of the three risks, of named patients, and of the canaries."""
    disclosures, canaries = audit.disclosures, audit.canaries
    claim, named = canaries and canaries.claim, None
    if disclosures is not None:
        sides = disclosures.by_patient.members, disclosures.by_patient.heldout
        hits = [number for side in sides for number in (side.hits, side.of)]
        told = (*hits[:2], disclosures.texts, *hits[2:], format_p(disclosures.by_patient.p))
        named = {
            "by_patient": _shares(disclosures.by_patient),
            **_fields(disclosures, "texts", "distinct", "strings"),
            "sentence": words_of(audit)["details"]["named"].format(*told),
        }
    return {
        "risks": {
            name: {"words": WORDING["tests"][name], **_shares(shares)} for name, shares in audit.risks.items()
        },
        "named": named,
        "canaries": canaries
        and {
            **_fields(canaries, "inserted", "kept_out", "auc", "p"),
            "tiers": [vars(tier) for tier in canaries.tiers],
            "kit": _kit(audit.files.canaries.kit),
            "claim": claim and _claim(claim),
        },
    }


def _coverage(audit: Audit) -> dict:
    """Return how many patients and notes of the files were tested."""
    words, settings = words_of(audit)["details"]["coverage"], audit.settings
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
        told = words["part"].format(*first, *second, *most)
    if audit.sample.unreadable:
        told = f"{told} {words['unreadable'].format(audit.sample.unreadable)}"
    if audit.is_of_model and audit.lost:
        told = f"{told} {audit.lost}"
    coverage = {"whole": whole, "members": sides[0], "held_out": sides[1]}
    return {**coverage, "short": short_coverage(coverage), "sentence": told}


def _data(audit: Audit) -> list[dict]:
    rows = []
    for member, file in ((True, audit.files.members), (False, audit.files.heldout)):
        asked = audit.sample.of(member=member)
        rows.append(
            {
                "file": file.name,
                "sha256": file.sha256,
                "role": words_of(audit)["details"]["role"] if member else "held out",
                "lines": file.lines,
                "repeated_lines": file.repeated,
                "shared_notes": file.shared,
                "identifiers_not_found": file.not_found,
                "patients": len(file.patients),
                "patients_asked": len({note.patient for note in asked}),
                "notes_asked": len(asked),
                "distinct_notes_asked": len({note.text for note in asked}),
                "mean_characters": sum(len(note.text) for note in asked) / len(asked),
            }
        )
    return rows


def _methods(audit: Audit) -> dict[str, str]:
    """Return how the intervals of each kind of figure were made."""
    own = audit.completions, audit.copies, audit.disclosures
    counts = [*audit.risks.values(), *(one.by_patient for one in own if one), *audit.leakage.values()]
    intervals = {"areas": audit.attacks[0].patient.auc}
    if counts:
        intervals |= {"counts": counts[0].members.interval, "differences": counts[0].difference}
    if audit.is_of_model:
        intervals["guessed"] = audit.top1[0]
    if audit.canaries:
        intervals["canaries"] = audit.canaries.auc
    return {name: interval.method for name, interval in intervals.items()}


def report_facts(audit: Audit, *, made: str = "") -> dict:
    """Return every figure of an audit as plain values that follow `report.schema.json`.

    Args:
        audit: from `run_audit`.
        made: date and time, in words.
    """
    verdict, canaries, coverage = audit.verdict, audit.files.canaries, _coverage(audit)
    words, own_words = words_of(audit)["details"], words_of(audit)
    levels, advice = own_words["severity"][verdict.outcome], words["advice"][verdict.outcome]
    # Limits of what may have been missed are rounded up; the power was chosen.
    weakest = {
        name: format_percent(value, up=name != "power") for name, value in vars(audit.sensitivity).items()
    }
    if audit.is_of_model:
        target = audit.target
        own = {
            "kind": audit.kind,
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
    elif audit.kind == Kind.QUERIES:
        own = {"kind": audit.kind, "queries": _queries(audit)}
    else:
        texts, name = audit.files.synthetic.texts, audit.files.synthetic.name
        sizes = {"texts": len(texts), "distinct": len(set(texts))}
        own = {
            "kind": audit.kind,
            "synthetic": {"file": name, "sha256": audit.files.synthetic.sha256, **sizes},
            **_resemblance(audit),
        }
    facts = {
        **dict.fromkeys(ONE_KIND),
        "schema": SCHEMA,
        "first_page": first_page(audit, made),
        **answers(audit, coverage),
        "who": words["who"],
        "made": made,
        "outcome": verdict.outcome,
        "coverage": coverage,
        "severity": [
            [own_words["recipients"][who], f"{levels[who].capitalize()}: {advice[who]}"] for who in Recipient
        ],
        "explanations": [sentence(explanation) for explanation in verdict.explanations],
        "sensitivity": {**vars(audit.sensitivity), "sentence": words["sensitivity"].format(**weakest)},
        "key_figures": [key_figure(audit), *more_figures(audit)],
        "tests": [_test(test) for test in verdict.tests],
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
    """Return the settings of an audit; `None` is shown as "all"."""
    return {"patients": "all", "notes": "all"} | _given(settings)


def report_schema() -> bytes:
    """Return the JSON Schema (draft 2020-12) that `report_facts` and `report.json` follow."""
    return _FORM.read_bytes()


def _svg(figure: Figure, name: str) -> bytes:
    """Return a figure as reproducible SVG."""
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def audit_pictures(audit: Audit) -> dict[str, bytes]:
    """Return the pictures of an audit's report as SVG, by caption."""
    attacks, loss = audit.attacks, audit.attacks[0]
    fresh = all(attack.untrained for attack in attacks)
    control = "model trained on nothing" if fresh else "held-out halves"
    subject = "these texts" if audit.kind == Kind.SYNTHETIC else "this model"
    unit = "share of hidden words" if audit.kind == Kind.QUERIES else "nats per token"
    areas = {
        subject: [attack.patient.auc for attack in attacks],
        control: [a.untrained.auc if fresh else a.nulls["held_out"] for a in attacks],
    }
    series = {
        name: tuple([getattr(one, end) for one in intervals] for end in ("estimate", "low", "high"))
        for name, intervals in areas.items()
    }
    members, heldout = loss.patient.arms.member_scores, loss.patient.arms.control_scores
    pictures = {
        "Areas of every attack with 95% intervals; hollow: the control, with nothing to find.": forest(
            [in_words(attack.name) for attack in attacks],
            series,
            xlabel="area under the ROC curve, patients (dotted: 0.5, guessing)",
            reference=0.5,
            controls=[control],
        ),
        f"Scores of members and held-out patients: {WORDING['attacks'][loss.name]}.": two_arms(
            members,
            heldout,
            xlabel=f"score of a patient ({unit}; further right: more like a member)",
            labels=("members", "held out"),
        ),
        "Member patients found (up) against other patients wrongly accused (right), both axes logarithmic; "
        "dotted: guessing.": roc(
            {subject: roc_curve(*loss.patient.arms, draws=300, seed=audit.settings.seed)}
        ),
    }
    return {caption: _svg(figure, f"audit-{n}") for n, (caption, figure) in enumerate(pictures.items())}


# The page as a Jinja template, and its style, whose hash is in the page's policy. All inserted text is
# escaped; no attribute contains text of a record or a model.
_PAGE, _STYLE = Path(__file__).with_name("report.html"), Path(__file__).with_name("report.css")
_LONGEST = 400  # characters of one piece of text that is shown
_SHOWN = 20  # most strings, and texts, that are shown on request


def _written(audit: Audit) -> dict:
    """Return found strings of members, and the beginnings of what the model wrote."""
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
        written: the audit, to show what the model wrote; the page is then as confidential as the records.
    """
    environment = Environment(
        autoescape=True,
        finalize=functools.partial(inserted, keep="\n"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(rate=lambda value: f"{value:.3f}", small=format_p, hundred=format_percent)
    style = _STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    drawn = {
        caption: Markup("data:image/svg+xml;base64," + base64.b64encode(svg).decode())
        for caption, svg in (pictures or {}).items()
    }
    page = environment.from_string(_PAGE.read_text(encoding="utf-8"))
    return page.render(
        r=facts,
        annex=annex(facts),
        pictures=drawn,
        style=Markup(style),
        style_hash=digest,
        shown=written and _written(written),
    )
