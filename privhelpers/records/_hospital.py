"""A hospital's records: patients with admissions and notes, split by patient, and planted canaries."""

import random
from dataclasses import dataclass

from privhelpers import rng, validate
from privhelpers.records._canaries import SPACE, Canary, make_canaries
from privhelpers.records._domain import Domain, Institution, drawn
from privhelpers.records._identifiers import PeopleFactory
from privhelpers.records._notes import Visit, narrative_note, render, report_note
from privhelpers.records._vocabulary import CLINICAL, zipf_probabilities

COMORBIDITY = ((1, 2, 3), (0.6, 0.3, 0.1))
DRUG_PREFERENCE, TEST_PREFERENCE = (0.7, 0.2, 0.1), (0.75, 0.25)


@dataclass(frozen=True)
class Stays:
    """How many admissions a patient has, and how many notes an admission has.

    The defaults scale a published hospital down: 57,000 admissions of 46,000 patients are 1.24 a patient,
    and one to three notes replace the 12,000 tokens of one of its admissions.

    Attributes:
        admissions, notes: weights of one, two, three and so on.

    Source: Jagannatha, Rawat and Yu 2021, Table 1, MIMIC-III.
    """

    admissions: tuple[float, ...] = (0.83, 0.12, 0.035, 0.01, 0.005)
    notes: tuple[float, ...] = (1, 1, 1)


ONE_NOTE = Stays(admissions=(0.58, 0.20, 0.12, 0.06, 0, 0.04), notes=(1,))


@dataclass(frozen=True)
class Records:
    """All private notes of one hospital; each note is a dictionary, as on disk.

    Attributes:
        train: notes of the patients to train on, canaries included, shuffled.
        validation: notes of other patients, for early stopping.
        heldout: notes of patients that no model ever sees: the control of every attack.
        crowd: notes of the hospital's other patients, whom no attack asks about.
        canaries: planted ones and controls.
        names: every name in use, which public text must not contain.
    """

    train: list[dict]
    validation: list[dict]
    heldout: list[dict]
    crowd: list[dict]
    canaries: list[Canary]
    names: frozenset[str]


def _count(weights: tuple[float, ...], generator: random.Random) -> int:
    """Sample 1, 2, 3, ... by weight; a single choice draws no random number."""
    return 1 if len(weights) == 1 else generator.choices(range(1, len(weights) + 1), weights)[0]


def _conditions(case_mix: tuple[str, ...], generator: random.Random) -> list[str]:
    weights = zipf_probabilities(len(case_mix)).tolist()
    wanted = generator.choices(*COMORBIDITY)[0]
    chosen: list[str] = []
    while len(chosen) < wanted:
        condition = generator.choices(case_mix, weights)[0]
        if condition not in chosen:
            chosen.append(condition)
    return chosen


def _patient_notes(
    patient_id: str,
    factory: PeopleFactory,
    domain: Domain,
    hospital: Institution,
    stays: Stays,
    report_share: float,
    generator: random.Random,
) -> tuple[str, list[dict]]:
    person, conditions = factory.person(), _conditions(hospital.case_mix, generator)
    drugs = {c: generator.choices(hospital.practice[c].answers, DRUG_PREFERENCE)[0] for c in conditions}
    numbers = drawn(domain.numbers["person"], generator)
    notes = []
    for admission in range(_count(stays.admissions, generator)):
        condition = generator.choice(conditions)
        procedure = generator.choices(hospital.practice[condition].actions, TEST_PREFERENCE)[0]
        visit = Visit(person, condition, drugs[condition], procedure, numbers)
        for _ in range(_count(stays.notes, generator)):
            report = generator.random() < report_share
            if report:
                parts = report_note(visit, domain, generator)
            else:
                parts = narrative_note(visit, domain, hospital, generator)
            text, spans = render(parts)
            notes.append(
                {
                    "patient_id": patient_id,
                    "admission": admission,
                    "kind": "report" if report else "narrative",
                    "condition": condition,
                    "medication": drugs[condition],
                    "rare": condition in domain.rare_topics,
                    "text": text,
                    "spans": spans,
                }
            )
    return person.name, notes


def _number(notes: list[dict], prefix: str) -> list[dict]:
    return [{"note_id": f"{prefix}{number:05d}", **note} for number, note in enumerate(notes)]


def _group(
    letter: str, patients: int, factory: PeopleFactory, *habits: object
) -> tuple[set[str], list[dict]]:
    """Return the names and the notes of some patients, who are numbered after a letter."""
    names, group = set(), []
    for number in range(patients):
        name, notes = _patient_notes(f"{letter}{number:05d}", factory, *habits)
        names.add(name)
        group += notes
    return names, group


def make_hospital_records(
    *,
    seed: int,
    patients: int,
    validation_patients: int,
    heldout_patients: int,
    canaries_per_level: int,
    crowd_patients: int = 0,
    report_share: float = 0.15,
    hospital: str = "private",
    stays: Stays = ONE_NOTE,
    domain: Domain = CLINICAL,
) -> Records:
    """Make the records of one hospital; no identifier is used twice across its groups of patients.

    Args:
        seed: of everything; the same seed gives the same bytes on every machine and day.
        patients, validation_patients, heldout_patients: 1 or more each.
        canaries_per_level: planted canaries for each of 1, 2, 4, 8 and 16 copies; as many again are controls.
        crowd_patients: further patients of the hospital, 0 or more; the other patients do not depend on them.
        report_share: share of notes in the report's templates, which carry identifiers, in (0, 1].
        hospital: "private"; "auxiliary" for tuning without touching the private one; or "referral", where
            the rare diseases come first. Each has its own drugs, wards, staff and phrases. Another domain
            has other institutions.
        stays: admissions of a patient and notes of an admission; by default up to six of one note each.
        domain: what the notes are about; by default hospitals, or what `read_domain` returns.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    patients, validation_patients, heldout_patients = validate.positive_int(
        patients=patients, validation_patients=validation_patients, heldout_patients=heldout_patients
    )
    canaries_per_level = validate.positive_int(SPACE // 100, canaries_per_level=canaries_per_level)
    crowd_patients = validate.non_negative_int(crowd_patients=crowd_patients)
    report_share = validate.probability(report_share=report_share)
    validate.one_of(domain.institutions, hospital=hospital)
    generator = rng.plain(seed, f"records/{hospital}")
    factory = PeopleFactory(generator, domain.number_prefix)
    habits = domain, domain.institutions[hospital], stays, report_share, generator
    sizes = {"p": patients, "v": validation_patients, "h": heldout_patients, "o": crowd_patients}
    groups = {letter: _group(letter, size, factory, *habits) for letter, size in sizes.items()}
    canaries = make_canaries(
        per_level=canaries_per_level, factory=factory, seed=seed, hospital=hospital, domain=domain
    )
    notes = {letter: of_group for letter, (_, of_group) in groups.items()}
    notes["p"] += [canary.note(domain) for canary in canaries for _ in range(canary.copies)]
    rng.plain(seed, f"records/{hospital}/order").shuffle(notes["p"])
    names = {canary.name for canary in canaries}.union(*(of_group for of_group, _ in groups.values()))
    return Records(
        train=_number(notes["p"], "t"),
        validation=_number(notes["v"], "v"),
        heldout=_number(notes["h"], "h"),
        crowd=_number(notes["o"], "o"),
        canaries=canaries,
        names=frozenset(names),
    )
