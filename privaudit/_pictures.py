"""The pictures of an audit's report: every attack beside its control, patients' scores, and a ROC curve."""

import io
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from privhelpers.figures._charts import forest, roc, two_arms
from privhelpers.stats import roc_curve
from privhelpers.text import in_words


def _svg(figure: Figure, name: str) -> bytes:
    """Return a figure as SVG that is the same in every run."""
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def audit_pictures(audit: Any, *, draws: int = 300) -> dict[str, bytes]:
    """Return the pictures of an audit's report as SVG, by caption.

    Args:
        audit: a `privaudit.Audit` or `privaudit.SyntheticAudit`.
        draws: bootstrap draws of the ROC band.
    """
    attacks, loss = audit.attacks, audit.attacks[0]
    fresh = all(attack.untrained for attack in attacks)
    control = "model trained on nothing" if fresh else "held-out halves"
    subject = "this model" if hasattr(audit, "target") else "these texts"
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
        "Areas of every attack with 95 % intervals; hollow: the same where there is nothing to find.": forest(
            [in_words(attack.name) for attack in attacks],
            series,
            xlabel="area under the ROC curve, patients (dotted: 0.5, guessing)",
            reference=0.5,
            controls=[control],
        ),
        f"Scores of members and held-out patients: {loss.words}.": two_arms(
            members,
            heldout,
            xlabel="score of a patient (nats per token; further right: more like a member)",
            labels=("members", "held out"),
        ),
        "Member patients found (up) against other patients wrongly accused (right), both axes logarithmic; "
        "dotted: guessing.": roc(
            {subject: roc_curve(*loss.patient.arms, draws=draws, seed=audit.settings.seed)}
        ),
    }
    return {caption: _svg(figure, f"audit-{n}") for n, (caption, figure) in enumerate(pictures.items())}
