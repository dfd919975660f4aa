"""An audit in sentences for somebody who reads no statistics, each figure with interval and control."""

from pathlib import Path

import yaml

from privhelpers.own_model._examine import Audit
from privhelpers.own_model._target import CAUSAL
from privhelpers.stats import Interval

WORDING = yaml.safe_load(Path(__file__).with_name("wording.yml").read_text(encoding="utf-8"))


def of_100(value: float) -> str:
    """Return a share as a number out of 100; small ones keep a decimal.

    >>> of_100(0.974), of_100(0.004), of_100(0.0)
    ('97', '0.4', '0')
    """
    return f"{100 * value:.0f}" if value >= 0.095 or value == 0 else f"{100 * value:.1f}"


def _figure(name: str, share: Interval, against: Interval | None, control: str = "") -> dict:
    """Return one of the three figures of page one; without a control to measure, guessing takes its place."""
    figure = dict(WORDING["key_figures"][name])
    shares = [
        {"value": of_100(one.estimate), "interval": f"{of_100(one.low)} to {of_100(one.high)}"}
        for one in filter(None, (share, against))
    ]
    if against is None:
        shares.append({"value": figure["guessing"], "interval": ""})
        control, figure["guessing"] = "by guessing", ""
    return {**figure, **shares[0], "control": control or figure["control"], "control_figures": shares[1]}


def key_figures(audit: Audit) -> list[dict]:
    """Return the three figures of page one, each with its interval and its control."""
    loss = audit.attacks[0]
    null, nothing = loss.untrained, "on a model trained on nothing"
    halves = "one half of the held-out patients against the other"
    figures = [
        _figure("pairs", loss.patient.auc, loss.nulls["held_out"], halves)
        if null is None
        else _figure("pairs", loss.patient.auc, null.auc, nothing),
        _figure("few", loss.patient.tpr_at_1pct_fpr, null and null.tpr_at_1pct_fpr, nothing),
    ]
    if audit.completions is None:
        return [*figures, _figure("top1", *audit.top1)]
    patients = audit.completions.by_patient
    return [*figures, _figure("completions", patients.members.interval, patients.heldout.interval)]


def tested(audit: Audit) -> list[str]:
    """Return what was tried, one phrase each."""
    sides = [audit.sample.of(member=side) for side in (True, False)]
    patients = [len({note.patient for note in side}) for side in sides]
    done = [
        f"{patients[0]:,} trained patients ({len(sides[0]):,} notes) against "
        f"{patients[1]:,} held-out patients ({len(sides[1]):,} notes)",
        f"{len(audit.attacks)} ways of guessing from the model's predictions who was trained on",
    ]
    if audit.completions is not None:
        done.append("completing notes word for word from their first halves")
    if audit.disclosures is not None:
        done.append(
            f"{audit.disclosures.texts:,} texts that the model wrote, searched for what names a patient"
        )
    if audit.canaries is not None:
        done.append(f"{audit.canaries.inserted + audit.canaries.kept_out} canaries")
    return [*done, "whether the two files differ without the model, which would explain any finding"]


def not_tested(audit: Audit) -> list[str]:
    """Return what was left out, so that nobody takes it for done."""
    left, not_applied = list(WORDING["not_tested"]), WORDING["not_applied"]
    if audit.target.kind != CAUSAL:
        left.insert(2, not_applied["texts"])
    elif audit.completions is None or audit.disclosures is None:
        left.insert(2, not_applied["copies"])
    if audit.canaries is None:
        left.insert(2, not_applied["canaries"])
    return left


def sensitivity_sentence(audit: Audit) -> str:
    """Return what would have been found, had it been there."""
    weakest = audit.sensitivity
    return (
        f"With so many patients, an attack that is right in {of_100(weakest.auc)} of 100 pairs, or that "
        f"names {of_100(weakest.tpr)} of 100 trained patients at 1 wrong accusation in 100, would have been "
        f"noticed with {of_100(weakest.power)} % probability; anything weaker may have been missed."
    )
