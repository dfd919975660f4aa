"""The facts of an audit's report: plain values for a file, in the form of `report.schema.json`.

Text of records, and names of patients, stay out of them: the report is meant to be passed on.
"""

import platform
from importlib import metadata
from pathlib import Path

import privhelpers
from privaudit._examine import Audit
from privaudit._membership import Attack
from privaudit._memorization import PatientShares
from privaudit._names import Recipient
from privaudit._sentences import (
    answers,
    first_page,
    key_figure,
    limit_of,
    more_figures,
    short_coverage,
    words_of,
)
from privaudit._settings import Settings
from privaudit._synthetic import SyntheticAudit
from privaudit._verdict import Test
from privaudit._wording import WORDING, of_100, small
from privhelpers.attacks.scores import as_plain

_FORM = Path(__file__).with_name("report.schema.json")
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn", "statsmodels")
SCHEMA = "privai-leak/audit-report/2"
# What only one kind of audit has; null in the other.
ONE_KIND = ("model", "truncated", "guessed", "completed", "synthetic", "copies")


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


def _given(source: object) -> dict:
    return {name: value for name, value in vars(source).items() if value is not None}


def _test(test: Test) -> dict:
    facts = _given(test) | {"name": str(test.name)}
    del facts["key"]
    return facts


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


def _named(audit: Audit | SyntheticAudit) -> dict:
    """Return the three risks, whom the texts name, and what the canaries say, as counts."""
    disclosures, canaries = audit.disclosures, audit.canaries
    claim, named = canaries and canaries.claim, None
    if disclosures is not None:
        sides = disclosures.by_patient.members, disclosures.by_patient.heldout
        hits = [number for side in sides for number in (side.hits, side.of)]
        told = (*hits[:2], disclosures.texts, *hits[2:], small(disclosures.by_patient.p))
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
        told = words["part"].format(*first, *second, *most, words["why"][limit_of(audit)])
    if audit.sample.unreadable:
        told = f"{told} {words['unreadable'].format(audit.sample.unreadable)}"
    if isinstance(audit, Audit) and audit.lost:
        told = f"{told} {audit.lost}"
    coverage = {"whole": whole, "members": sides[0], "held_out": sides[1]}
    return {**coverage, "short": short_coverage(audit, coverage), "sentence": told}


def _data(audit: Audit | SyntheticAudit) -> list[dict]:
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


def report_facts(audit: Audit | SyntheticAudit, *, made: str = "") -> dict:
    """Return every figure of an audit as plain values, without any text of a record.

    The form is that of `report.schema.json`, a JSON Schema beside this module.

    Args:
        audit: from `examine` or `examine_synthetic`.
        made: when, in words.
    """
    verdict, canaries, coverage = audit.verdict, audit.files.canaries, _coverage(audit)
    words, own_words = words_of(audit)["details"], words_of(audit)
    levels, advice = own_words["severity"][verdict.outcome], words["advice"][verdict.outcome]
    # What may have been missed is rounded up; its power is chosen, and none of it.
    weakest = {name: of_100(value, up=name != "power") for name, value in vars(audit.sensitivity).items()}
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
        "language": "en",
        "catalogue": None,
        "first_page": first_page(audit, coverage, made),
        **answers(audit, coverage),
        "who": words["who"],
        "made": made,
        "outcome": verdict.outcome,
        "coverage": coverage,
        "severity": [
            [own_words["recipients"][who], f"{levels[who].capitalize()}: {advice[who]}"] for who in Recipient
        ],
        "explanations": [str(explanation) for explanation in verdict.explanations],
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
    """Return the settings of an audit; a limit that is none is "all"."""
    return {"patients": "all", "notes": "all"} | _given(settings)


def report_schema() -> bytes:
    """Return the JSON Schema (draft 2020-12) that `report_facts` and `report.json` follow."""
    return _FORM.read_bytes()
