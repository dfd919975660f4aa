"""Claims read from their files, computed again, and judged by the rule next to them."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np

from privhelpers import validate
from privhelpers.artifacts import parse_yaml
from privhelpers.claims import _others, _report
from privhelpers.text import with_powers

HOLDS = "holds"
VERDICTS = (HOLDS, "wrong number", "contradicts itself", "cannot follow", "not measurable")
SEVERITIES = ("A", "B", "C", "")  # voids a headline; wrong number or contradiction; wording; no fault
RECOMPUTED = "recomputed"
DOCUMENTS = MappingProxyType(  # file of the claims -> class whose methods compute them
    {
        "report": _report.Report,
        "slides": _others.Slides,
        "lecture": _others.Lecture,
        "textbook": _others.Textbook,
        "clinical_paper": _others.ClinicalPaper,
    }
)
_COMPARE = MappingProxyType(
    {
        "below": operator.lt,
        "above": operator.gt,
        "at_most": operator.le,
        "at_least": operator.ge,
        "is": operator.eq,
    }
)


class _Shown(list):
    """List whose format specification, such as `.2f`, applies to each number."""

    def __format__(self, spec: str) -> str:
        return " / ".join(format(value, spec) for value in self)


@dataclass(frozen=True)
class Audited:
    """A claim with what was found.

    Attributes:
        claim: its entry in the file.
        document: the document that claims it, in words.
        figures: values behind the verdict, by name; empty for most readings.
        evidence: the values, or what was read, as text for a table.
        verdict: one of `VERDICTS`.
    """

    claim: Mapping[str, Any]
    document: str
    figures: Mapping[str, Any]
    evidence: str
    verdict: str

    @property
    def id(self) -> str:
        """Short name of the claim."""
        return self.claim["id"]

    @property
    def severity(self) -> str:
        """Weight of the fault: A, B, C, or "" if the claim holds."""
        return "" if self.verdict == HOLDS else self.claim["severity"]


def _loaded(document: str) -> dict[str, Any]:
    validate.one_of(DOCUMENTS, document=document)
    loaded = _read(document)
    # A long document names files of claims instead of listing them.
    named = [[claim] if isinstance(claim, dict) else _read(claim) for claim in loaded["claims"]]
    return loaded | {"claims": [claim for claims in named for claim in claims]}


def _read(name: str) -> Any:
    return parse_yaml(Path(__file__).with_name(f"{name}.yml").read_text(encoding="utf-8"))


def printed(document: str) -> SimpleNamespace:
    """Return the tables that a document prints, by name: nothing in them is a result of this book.

    Args:
        document: one of `DOCUMENTS`.

    Raises:
        InvalidParameter: there is no such document.
    """
    return SimpleNamespace(**_loaded(document)["printed"])


def _passes(value: Any, test: Mapping[str, Any], tables: SimpleNamespace) -> bool:
    """Return whether a computed value, or each value of a list, passes a test of the file."""
    (name, limit), *rest = test.items()
    limit = getattr(tables, limit) if isinstance(limit, str) and hasattr(tables, limit) else limit
    if name != "prints":
        return bool(np.all(_COMPARE[name](np.asarray(value), limit)))
    # A value is as printed if it rounds to it; "within" allows for more.
    room = dict(rest).get("within", 0.5 * 10.0 ** -dict(rest).get("digits", 0))
    limit = list(limit.values()) if isinstance(limit, Mapping) else limit
    return bool(np.all(np.abs(np.subtract(value, limit)) <= room * (1 + 1e-9)))


def audit(*documents: str) -> list[Audited]:
    """Compute every claim of some documents and judge it.

    Args:
        documents: of `DOCUMENTS`.

    Raises:
        InvalidParameter: there is no such document.
    """
    rows: list[Audited] = []
    for document in documents:
        loaded = _loaded(document)
        tables = SimpleNamespace(**loaded["printed"])
        recomputed = DOCUMENTS[document](tables)
        for claim in loaded["claims"]:
            figures = getattr(recomputed, claim["compute"])() if "compute" in claim else {}
            if claim["kind"] == RECOMPUTED:
                tests = claim["holds_if"].items()
                right = all(_passes(figures[name], test, tables) for name, test in tests)
                verdict = HOLDS if right else claim["otherwise"]
            else:
                verdict = claim["verdict"]
            lists = {k: _Shown(v) if isinstance(v, list) else v for k, v in figures.items()}
            shown = with_powers(claim["shown"].format(**lists))
            rows.append(Audited(claim, loaded["document"], figures, shown, verdict))
    return rows
