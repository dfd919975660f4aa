"""The report of an audit: plain values for a file, and one page that needs nothing but itself.

Text of records, and names of patients, stay out of both unless somebody asks for them: the report is meant to
be passed on. Whatever is shown is escaped, control characters spelled out, and the page may load nothing and
run nothing.
"""

import base64
import hashlib
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

import privhelpers
from privhelpers.attacks.scores import Measured
from privhelpers.own_model import _wording
from privhelpers.own_model._examine import Audit
from privhelpers.own_model._membership import WORDS
from privhelpers.own_model._memorization import Count
from privhelpers.stats import Interval
from privhelpers.text import inert

# The page in Jinja's language, and its style, whose hash the page's own policy names. Whatever is inserted is
# escaped; no attribute holds text of a record or a model.
_PAGE, _STYLE = Path(__file__).with_name("report.html"), Path(__file__).with_name("report.css")
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy", "scikit-learn", "statsmodels")
_LONGEST = 400  # characters of one piece of text that is shown
_SHOWN = 20  # strings, and texts, that are shown where somebody asks for them


def visible(value: object) -> object:
    """Return text with control, zero-width and direction characters spelled out; anything else as it is."""
    if type(value) is not str:  # markup is a kind of string, and is ours
        return value
    return inert(value, keep="\n")


def versions() -> dict[str, str]:
    """Return the versions that decide the figures."""
    found = {"python": platform.python_version(), "privhelpers": privhelpers.__version__}
    return found | {name: metadata.version(name) for name in PACKAGES}


def _interval(interval: Interval) -> list[float]:
    return [interval.estimate, interval.low, interval.high]


def _count(count: Count) -> dict:
    return {
        "members": [count.hits, count.patients, *_interval(count.rate)[1:]],
        "held_out": [count.other_hits, count.other_patients, *_interval(count.other_rate)[1:]],
        "p": count.p,
    }


def _measured(measured: Measured | None) -> dict | None:
    return None if measured is None else measured.as_json()


def _attacks(found: Audit) -> list[dict]:
    return [
        {
            "name": attack.name,
            "words": WORDS[attack.name],
            "patient": _measured(attack.patient),
            "note": _measured(attack.note),
            "p": list(attack.p),
            "controls": {
                "untrained": _measured(attack.controls.untrained),
                "untrained_p": attack.controls.untrained_p and list(attack.controls.untrained_p),
                "held_out": _interval(attack.controls.held_out),
                "permuted": _interval(attack.controls.permuted),
            },
        }
        for attack in found.attacks
    ]


def _memory(found: Audit) -> dict:
    """Return what the model gave back, as counts."""
    completed, named, planted = found.completed, found.named, found.planted
    members, others = found.guessed
    result: dict = {"guessed": {"members": _interval(members), "held_out": _interval(others)}}
    result["completed"] = completed and {
        "by_patient": _count(completed.by_patient),
        "notes": list(completed.notes),
        "held_out_notes": list(completed.other_notes),
        "lines": list(completed.lines),
        "too_short": completed.short,
    }
    result["named"] = named and {
        "by_patient": _count(named.by_patient),
        "texts": named.texts,
        "distinct": named.distinct,
        "strings": [named.strings, named.other_strings],
    }
    result["canaries"] = planted and {
        "inserted": planted.inserted,
        "kept_out": planted.kept,
        "auc": _interval(planted.auc),
        "p": planted.p,
        "claim": planted.claim
        and {
            "epsilon": planted.claim.epsilon,
            "delta": planted.claim.delta,
            "certified": planted.claim.lower.epsilon_lower,
            "confidence": planted.claim.lower.confidence,
            "most_certifiable": planted.claim.most,
            "refuted": planted.claim.refuted,
            "method": str(planted.claim.lower),
        },
    }
    return result


def _data(found: Audit) -> list[dict]:
    rows = []
    for side, file in ((True, found.files.members), (False, found.files.others)):
        asked = [note for note, own in zip(found.asked.notes, found.asked.member, strict=True) if own == side]
        rows.append(
            {
                "file": file.name,
                "sha256": file.sha256,
                "role": "trained on" if side else "held out",
                "lines": file.lines,
                "repeated_lines": file.repeated,
                "patients": len(file.patients),
                "patients_asked": len({note.patient for note in asked}),
                "notes_asked": len(asked),
                "mean_characters": sum(len(note.text) for note in asked) / len(asked),
            }
        )
    return rows


def report_facts(found: Audit, *, hashes: Mapping[str, str] | None = None, made: str = "") -> dict:
    """Return every figure of an audit as plain values, without any text of a record.

    Args:
        found: the audit.
        hashes: SHA-256 of the model's files, by name.
        made: when, in words.
    """
    target, effort = found.target, found.effort
    return {
        "model": {
            "name": target.name,
            "kind": target.kind,
            "type": target.model.config.model_type,
            "parameters": target.parameters,
            "context": target.context,
            "files": dict(hashes or {}),
            "reference": found.reference and found.reference.name,
        },
        "made": made,
        "outcome": found.verdict.outcome,
        "headline": _wording.HEADLINES[found.verdict.outcome],
        "reasons": list(found.verdict.reasons),
        "explanations": list(found.verdict.explanations),
        "sensitivity": {**vars(found.sensitivity), "sentence": _wording.sensitivity_sentence(found)},
        "key_figures": _wording.key_figures(found),
        "tested": _wording.tested(found),
        "not_tested": _wording.not_tested(found),
        "next": list(_wording.NEXT[found.verdict.outcome]),
        "tests": [vars(test) for test in found.verdict.tests],
        "attacks": _attacks(found),
        "blind": [{"name": b.name, "auc": _interval(b.auc), "p": b.p} for b in found.blind],
        **_memory(found),
        "data": _data(found),
        "canary_file": found.files.canaries
        and {"file": found.files.canaries.name, "sha256": found.files.canaries.sha256},
        "left_out": found.asked.left_out,
        "truncated": found.truncated,
        "settings": {**vars(effort), "seed": found.seed, "alarm": found.alarm},
        "versions": versions(),
    }


def _small(p: float) -> str:
    return f"{p:.2g}" if p >= 0.001 else f"{p:.1e}"


def _shown(found: Audit) -> dict:
    """Return the strings that were found, and the start of what the model wrote."""
    strings = [] if found.named is None else [value for value, member in found.named.shown if member]
    texts = [text[:_LONGEST] for text in dict.fromkeys(found.texts)]
    return {"strings": strings[:_SHOWN], "texts": texts[:_SHOWN]}


def report_page(
    report: Mapping, pictures: Mapping[str, bytes] | None = None, *, shown: Audit | None = None
) -> str:
    """Return the report as one page of HTML that loads and runs nothing.

    Args:
        report: from `facts`.
        pictures: SVG by caption, in the order of the page.
        shown: the audit, if text that the model wrote is to stand in the page; such a page is as
            confidential as the records.
    """
    environment = Environment(
        autoescape=True, finalize=visible, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(rate=lambda value: f"{value:.3f}", small=_small)
    style = _STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    drawn = {
        caption: Markup("data:image/svg+xml;base64," + base64.b64encode(svg).decode())
        for caption, svg in (pictures or {}).items()
    }
    page = environment.from_string(_PAGE.read_text(encoding="utf-8"))
    return page.render(
        r=report,
        pictures=drawn,
        style=Markup(style),
        style_hash=digest,
        shown=shown and _shown(shown),
    )
