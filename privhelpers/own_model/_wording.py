"""The sentences of a report: every figure said once for somebody who reads no statistics.

Shares are given "of 100", with the interval in brackets and the control beside them. No sentence says that a
model is safe, or that a law is met: an audit cannot know.
"""

from privhelpers.own_model._examine import Audit
from privhelpers.own_model._target import CAUSAL
from privhelpers.own_model._verdict import FLAGGED, NOTHING_FOUND, UNDECIDED
from privhelpers.stats import Interval

HEADLINES = {
    FLAGGED: "Flagged: the model gives away something about the people it was trained on.",
    NOTHING_FOUND: "Nothing found at this sensitivity. That is not proof that nothing leaks.",
    UNDECIDED: "Undecided: these files cannot show what the model gives away.",
}
NEXT = {
    FLAGGED: (
        "Treat the model, and what it writes, like the records: give it only to people who may read them.",
        "Have it trained anew with repeated notes removed and with differential privacy; audit the new model "
        "with the same two files.",
        "Show the details on the following pages to whoever trained it.",
    ),
    NOTHING_FOUND: (
        "Do not call the model harmless: weaker leaks, and attackers who do more, are not excluded.",
        "For a statement that holds against every attacker, train with differential privacy.",
        "Audit again after any further training, and with more patients where a weaker leak would matter.",
    ),
    UNDECIDED: (
        "Set held-out patients aside by lot, from the same source and time, before a model is trained.",
        "If none were set aside, only a model that is trained anew can be judged in this way.",
        "Until then, treat the model like the records it was trained on.",
    ),
}


def of_100(value: float) -> str:
    """Return a share as a number out of 100; small ones keep a decimal.

    >>> of_100(0.974), of_100(0.004), of_100(0.0)
    ('97', '0.4', '0')
    """
    return f"{100 * value:.0f}" if value >= 0.095 or value == 0 else f"{100 * value:.1f}"


def bracket(interval: Interval) -> str:
    """Return the ends of an interval of a share, out of 100."""
    return f"{of_100(interval.low)} to {of_100(interval.high)}"


def _share(interval: Interval) -> dict[str, str]:
    return {"value": of_100(interval.estimate), "interval": bracket(interval)}


def primary(found: Audit) -> int:
    """Return the place of the attack that page one shows, fixed before any result: the loss."""
    return [attack.name for attack in found.attacks].index("loss")


def _from_scores(found: Audit) -> list[dict]:
    attack = found.attacks[primary(found)]
    null = attack.controls.untrained
    pairs = {
        "question": "Can one tell who was in the training records?",
        "sentence": "Of 100 pairs of one trained and one other patient, the model's own predictions of their "
        "notes point to the trained one in",
        **_share(attack.patient.auc),
        "control": "on a model trained on nothing"
        if null
        else "one half of the held-out patients against the other",
        "control_figures": _share(null.auc if null else attack.controls.held_out),
        "guessing": "50",
    }
    few = {
        "question": "Can a few be named with confidence?",
        "sentence": "An accuser who is wrong about 1 in 100 other patients is right about this many of 100 "
        "trained ones:",
        **_share(attack.patient.tpr_at_1pct_fpr),
        "control": "on a model trained on nothing" if null else "by guessing",
        "control_figures": _share(null.tpr_at_1pct_fpr) if null else {"value": "1", "interval": ""},
        "guessing": "1" if null else "",
    }
    return [pairs, few]


def key_figures(found: Audit) -> list[dict]:
    """Return the three figures of page one, each with its interval and its control."""
    members, others = found.guessed
    if found.completed is not None:
        by = found.completed.by_patient
        third = {
            "question": "Does it repeat notes?",
            "sentence": "Given the first half of a note, it writes the second half word for word, for this "
            "many of 100 trained patients:",
            **_share(by.rate),
            "control": "of 100 held-out patients",
            "control_figures": _share(by.other_rate),
            "guessing": "",
        }
    else:
        third = {
            "question": "Does it know the wording of notes?",
            "sentence": "Of 100 words of a trained patient's notes, the model guesses right at the first try",
            **_share(members),
            "control": "of 100 words of held-out patients",
            "control_figures": _share(others),
            "guessing": "",
        }
    return [*_from_scores(found), third]


def tested(found: Audit) -> list[str]:
    """Return what was tried, one phrase each."""
    asked = found.asked
    done = [
        f"{len(asked.of(True)):,} trained patients ({int(asked.member.sum()):,} notes) against "
        f"{len(asked.of(False)):,} held-out patients ({int((~asked.member).sum()):,} notes)",
        f"{len(found.attacks)} ways of guessing from the model's predictions who was trained on",
    ]
    if found.completed is not None:
        done.append("completing notes word for word from their first halves")
    if found.named is not None:
        done.append(f"{found.named.texts:,} texts that the model wrote, searched for what names a patient")
    if found.planted is not None:
        done.append(f"{found.planted.inserted + found.planted.kept} canaries")
    done.append("whether the two files differ without the model, which would explain any finding")
    return done


def not_tested(found: Audit) -> list[str]:
    """Return what was left out, so that nobody takes it for done."""
    left = [
        "attackers who train comparison models on similar notes; they find more",
        "attackers who saw the training itself, such as its gradients",
        "what can be inferred about a patient, such as a diagnosis, without a note being copied",
        "whether any law is met: no test of a model can say",
    ]
    if found.target.kind != CAUSAL:
        left.insert(2, "texts written by the model: it fills gaps and writes none")
    elif found.completed is None or found.named is None:
        left.insert(2, "copies of notes, or strings that name a patient: the files hold too few")
    if found.planted is None:
        left.insert(2, "a claimed privacy budget (epsilon), which takes canaries")
    return left


def sensitivity_sentence(found: Audit) -> str:
    """Return what would have been found, had it been there."""
    weakest = found.sensitivity
    return (
        f"With so many patients, an attack that is right in {of_100(weakest.auc)} of 100 pairs, or that "
        f"names {of_100(weakest.few)} of 100 trained patients at 1 wrong accusation in 100, would have been "
        f"noticed with {of_100(weakest.power)} % probability; anything weaker may have been missed."
    )
