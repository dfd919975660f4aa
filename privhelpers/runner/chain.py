"""The chain of notebooks as a table, and where its files lie under `runs/<profile>/`."""

from dataclasses import dataclass
from pathlib import Path

from privhelpers.errors import InvalidParameter, MissingArtifact

ANONYMIZATION = "01_anonymization"
PRIVACY = "02_differential_privacy"
TESTING = "03_hypothesis_testing"
ACCOUNTING = "04_renyi_accounting"
RECORDS = "05_synthetic_records"
PRETRAINING = "06a_public_pretraining"
BASELINE = "06_baseline_training"
MECHANICS = "07_dpsgd_mechanics"
DPSGD = "08_dpsgd_training"
UTILITY = "08b_private_utility"
EXTRACTION = "09_extraction"
MEMORIZATION = "09a_memorization"
SIDE_BY_SIDE = "09b_side_by_side"
SHADOWS = "10a_shadow_models"
MEMBERSHIP = "10_membership_inference"
EXPOSED = "10b_who_is_exposed"
WHITE_BOX = "11_white_box"
INVERSION = "12_gradient_leakage"
AUDITING = "13_auditing"
BROKEN = "13b_broken_dpsgd"
UNCERTAINTY = "14a_uncertainty"
STATISTICS = "14_statistics"
SCRUBBING = "15a_scrubbing"
UNLEARNING = "15b_unlearning"
DEFENSES = "15_defenses"
HIPAA = "16_hipaa"
OTHER_DOCUMENTS = "17a_other_documents"
REPORT = "17_report_audit"
YOUR_MODEL = "18_your_model"

# The runs that make the models which no epsilon names; every other model comes from DPSGD.
MAKERS = {"public": PRETRAINING, "baseline": BASELINE, "best_nonprivate": BASELINE}
EPSILON = "target_epsilon"
PLANNED = ("profile", "model", "models")  # parameters that the plan fills in


@dataclass(frozen=True)
class Step:
    """One notebook of the chain.

    Attributes:
        slug: file name in `notebooks/` without its ending.
        after: slugs whose every run must be complete before; for a step that runs once per model,
            the run that made that model is added to them.
        per: "book" for one run, "epsilon" for one per budget, "model" for one per model.
        threads: cores that a run may use.
        priority: runs with a higher one start first when several are ready.
    """

    slug: str
    after: tuple[str, ...] = ()
    per: str = "book"
    threads: int = 1
    priority: int = 0


THEORY = (ANONYMIZATION, PRIVACY, TESTING, ACCOUNTING, MECHANICS, INVERSION, UNCERTAINTY, OTHER_DOCUMENTS)
TRAINED, ATTACKED = (RECORDS, PRETRAINING, BASELINE, DPSGD), (EXTRACTION, MEMORIZATION, MEMBERSHIP)
CHAIN = (
    # Theory needs nothing and nothing needs it: it runs where a core would wait.
    *(Step(slug) for slug in THEORY),
    Step(RECORDS, priority=40),
    Step(PRETRAINING, after=(RECORDS,), threads=2, priority=30),
    # Both cores at once, so it comes when both are free: right after the pretraining.
    Step(SHADOWS, after=(RECORDS, PRETRAINING), threads=2, priority=25),
    # Training first: attacks on models that exist already fill the other core while the rest trains.
    Step(BASELINE, after=(RECORDS, PRETRAINING), priority=20),
    Step(DPSGD, after=(RECORDS, PRETRAINING), per="epsilon", priority=10),
    *(Step(slug, after=(RECORDS, PRETRAINING), priority=5) for slug in (WHITE_BOX, BROKEN)),
    Step(UTILITY, after=(RECORDS, PRETRAINING, BASELINE, DPSGD), priority=5),
    Step(EXTRACTION, after=(RECORDS, PRETRAINING), per="model"),
    Step(MEMORIZATION, after=(RECORDS,), per="model"),
    Step(MEMBERSHIP, after=(RECORDS, SHADOWS), per="model"),
    Step(SIDE_BY_SIDE, after=(RECORDS, BASELINE, DPSGD, EXTRACTION, MEMORIZATION)),
    Step(EXPOSED, after=(RECORDS, SHADOWS, DPSGD, MEMBERSHIP)),
    Step(AUDITING, after=(DPSGD, MEMORIZATION)),
    Step(STATISTICS, after=(*TRAINED, *ATTACKED, AUDITING, BROKEN)),
    Step(SCRUBBING, after=(RECORDS,), priority=5),
    Step(UNLEARNING, after=(RECORDS, PRETRAINING), priority=5),
    Step(DEFENSES, after=(RECORDS, PRETRAINING, SCRUBBING), threads=2, priority=5),
    Step(HIPAA, after=(STATISTICS, *TRAINED, *ATTACKED)),
    Step(REPORT, after=(STATISTICS, EXTRACTION, AUDITING)),
    Step(YOUR_MODEL, after=(RECORDS, BASELINE)),
)
SLUGS = tuple(step.slug for step in CHAIN)


def model_name(epsilon: float) -> str:
    """Return the name of the model trained under the budget `epsilon`, in nats."""
    return f"dp-eps-{epsilon:g}"


def source(root: Path, slug: str) -> Path:
    """Return the notebook `slug` of the copy of the book at `root`."""
    if slug not in SLUGS:
        raise InvalidParameter(f"notebook {slug!r}: must be one of {', '.join(SLUGS)}")
    path = root / "notebooks" / f"{slug}.ipynb"
    if not path.is_file():
        raise MissingArtifact(f"notebooks/{slug}.ipynb is missing from this copy of the book")
    return path
