"""What the runs of earlier chapters leave for an officer: texts that a model wrote, and four attacks on it.

    texts = written(store, "baseline")
    frame = patient_ledger(texts, carriers(trained_on), carriers(held_out))
    measured_of(store, "baseline", frame_of_identifiers)

Everything is read from the artifacts; nothing here trains, attacks or loads a model.
"""

from collections.abc import Sequence

import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from privhelpers.artifacts import Store
from privhelpers.errors import InvalidParameter
from privhelpers.hipaa.ledger import ledger
from privhelpers.hipaa.provenance import provenance
from privhelpers.hipaa.risk import CONTENT, MEMBERSHIP, Figure, Measured
from privhelpers.hipaa.spans import Carriers, came_out

EXTRACTION, MEMORIZATION, WHO = "extraction", "memorization", "membership_inference"
ARMS = ("member", "control")


def exact_rate(hits: int, n: int) -> Figure:
    """Return a share of independent units with its exact 95 % (Clopper-Pearson) interval."""
    if not 0 <= hits <= n or n < 1:
        raise InvalidParameter(f"hits = {hits} of {n}: must be between 0 and n, and n at least 1")
    low, high = proportion_confint(hits, n, alpha=0.05, method="beta")
    return hits / n, float(low), float(high)


def written(store: Store, model: str) -> list[str]:
    """Return what a model wrote for chapter 09: after the 14 prompts, and different texts without a prompt.

    Raises:
        MissingArtifact: the chapter has not run on this model.
    """
    files = ("generations", "ranked")
    return [row["text"] for file in files for row in store.read_jsonl(f"{EXTRACTION}/{model}/{file}.jsonl")]


def patient_ledger(texts: Sequence[str], members: Carriers, controls: Carriers) -> pd.DataFrame:
    """Return the ledger whose unit is the patient: whose values stand in the texts, by identifier.

    Args:
        texts: what a model wrote.
        members: identifiers in the training notes, as `carriers` returns them.
        controls: of patients whom no model was trained on.
    """
    planted = {kind: len(set().union(*own.values())) for kind, own in members.items()}
    groups = (members, controls)
    hits = [{kind: len(who) for kind, who in came_out(texts, own).items()} for own in groups]
    sizes = [{kind: len(own) for kind, own in group.items()} for group in groups]
    return ledger(
        planted,
        dict.fromkeys(planted, len(texts)),
        *hits,
        carriers=sizes[0],
        control_carriers=sizes[1],
    )


def identifier_share(notes: Sequence[dict]) -> float:
    """Return the share of the characters of notes that stand in identifiers."""
    inside = sum(span["end"] - span["start"] for note in notes for span in note["spans"])
    return inside / sum(len(note["text"]) for note in notes)


def _people(texts: Sequence[str], group: Carriers) -> Figure:
    """Return the share of patients any of whose identifiers came out."""
    everybody = set().union(*group.values())
    return exact_rate(len(set().union(*came_out(texts, group).values())), len(everybody))


def measured_of(
    store: Store, model: str, texts: Sequence[str], members: Carriers, controls: Carriers
) -> list[Measured]:
    """Return four attacks on a model, each beside its control: three on content, one on membership.

    Args:
        store: of the profile.
        model: its name.
        texts, members, controls: as for `patient_ledger`.

    Returns:
        Identifiers in its texts, planted secrets, endings of notes, and the strongest attack on membership,
        which was chosen on half of the patients and measured on the other half.

    Raises:
        MissingArtifact: an attack has not run on this model.
    """
    homes = [f"{home}/{model}/attack.json" for home in (MEMORIZATION, WHO)]
    memory, who = (store.read_json(home) for home in homes)
    canaries = store.read_jsonl(f"{MEMORIZATION}/{model}/canaries.jsonl")
    secrets = [[row["extracted"] for row in canaries if row["planted"] == side] for side in (True, False)]
    ends = [memory["recalled"][f"report/{arm}"] for arm in ARMS]
    people = len(set().union(*members.values()))
    sources = [provenance(store, home) for home in homes]
    wrote = provenance(store, f"{EXTRACTION}/{model}/generations.jsonl")
    secret = provenance(store, f"{MEMORIZATION}/{model}/canaries.jsonl")
    rates = [exact_rate(sum(side), len(side)) for side in secrets]
    kept = [tuple(one[key] for key in ("rate", "low", "high")) for one in ends]
    found = (tuple(who["best_attack_auc"]), tuple(who["nulls"][who["best_attack"]]["held_out"]))
    texts_found = [_people(texts, group) for group in (members, controls)]
    return [
        Measured("identifiers in texts", CONTENT, "patients", people, *texts_found, wrote),
        Measured("planted secrets", CONTENT, "canaries", len(secrets[0]), *rates, secret),
        Measured("endings of notes", CONTENT, "notes", ends[0]["notes"], *kept, sources[0]),
        Measured("who was in, AUC", MEMBERSHIP, "members", who["patients"][0] // 2, *found, sources[1]),
    ]
