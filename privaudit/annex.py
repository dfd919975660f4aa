"""The annex of a report: what an audit of leakage answers of the questions that regulators ask, and what not.

The rows are in `annex.yml`: a source, its question in our own words, the figures that answer it, what they
leave open, and who must answer that. An answer is made from the facts of `report.json` alone, so the annex
has no figure of its own.

Sources: GDPR, Art. 35(7), with WP 248 rev.01, Annex 2; EDPB Opinion 28/2024, section 3.2; AI Act, Annexes IV
and XI; NIST SP 800-226; 45 CFR 164.514(b)(1).
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from privaudit.words import format_percent
from privhelpers.artifacts import parse_yaml

ANNEX = parse_yaml(Path(__file__).with_name("annex.yml").read_text(encoding="utf-8"))


def annex(facts: Mapping) -> dict:
    """Return the words of the annex, with the figures of one report.

    Args:
        facts: from `report.report_facts`.

    Returns:
        title, lead, columns, sources, and the rows: each with source, question, answer, limit, and who.
    """
    values = {**facts, "counted": _counted(facts)}
    said = {name: _first_that_applies(choices, values) for name, choices in ANNEX["figures"].items()}
    lead = [ANNEX["lead"], *([ANNEX["undecided"]] if facts["outcome"] == "undecided" else [])]
    rows = [{**row, "answer": " ".join(said[name] for name in row["answer"])} for row in ANNEX["rows"]]
    return {
        **{name: ANNEX[name] for name in ("title", "columns", "sources")},
        "lead": " ".join(lead).format_map(values),
        "rows": rows,
    }


def _first_that_applies(choices: Sequence[Mapping], values: Mapping) -> str:
    """Return the first sentence whose fact is there, with its figures."""
    sentence = next(choice["say"] for choice in choices if "if" not in choice or _fact(values, choice["if"]))
    return sentence.format_map(values)


def _fact(values: Mapping, path: str) -> object:
    """Return the fact at a path such as "canaries.claim", or None."""
    found: object = values
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _counted(facts: Mapping) -> dict:
    """Return counts, comparisons, and rounded limits that are made from facts."""
    canaries = facts["canaries"] or {}
    claim = canaries.get("claim") or {}
    model = facts["model"] or {"files": {}, "reference_files": {}}
    others = [one for one in (facts["canary_file"], facts["synthetic"], facts["queries"]) if one]
    shares = {name: facts[name]["by_patient"] for name in ("completed", "copies", "named") if facts[name]}
    compared = {
        name: ANNEX["compared"].format(who=facts["who"], **one)
        for name, one in {**shares, **facts["risks"]}.items()
    }
    return {
        **compared,
        "what": "the texts" if facts["synthetic"] else "the model",
        "tests": len(facts["tests"]),
        "attacks": len(facts["attacks"]),
        "weakest": format_percent(facts["sensitivity"]["auc"], up=True),
        "hashes": sum(map(len, (facts["data"], others, model["files"], model["reference_files"]))),
        "canaries": canaries.get("inserted", 0) + canaries.get("kept_out", 0),
        **{  # no more than is certified
            name: math.floor(100 * claim.get(name, 0)) / 100 for name in ("certified", "certified_gaussian")
        },
        "notes_each": facts["data"][0]["notes_asked"] / facts["data"][0]["patients_asked"],
    }
