"""The chain of notebooks as a table, and where its files lie under `runs/<profile>/`.

A chapter is known by its slug everywhere. Its number stands in two places only, the name of its file in
`notebooks/` and `_toc.yml`, so that a chapter can move by renaming one file.
"""

import re
from pathlib import Path

from bookmaker.runner._step import Step
from privhelpers.errors import InvalidParameter, MissingArtifact

ANONYMIZATION = "anonymization"
PRIVACY = "differential_privacy"
COMPOSITION = "composition"
TESTING = "hypothesis_testing"
ACCOUNTING = "renyi_accounting"
RECORDS = "synthetic_records"
PRETRAINING = "public_pretraining"
BASELINE = "fine_tuning"
MECHANICS = "dpsgd_step"
DPSGD = "private_training"
LEDGER = "ledger_and_resume"
UTILITY = "private_utility"
OPACUS = "opacus"
EXTRACTION = "extraction"
MEMORIZATION = "memorization"
SIDE_BY_SIDE = "side_by_side"
SHADOWS = "shadow_models"
MEMBERSHIP = "membership_inference"
EXPOSED = "who_is_exposed"
WHITE_BOX = "attention_and_gradients"
INVERSION = "gradient_inversion"
AUDITING = "auditing"
BROKEN = "broken_dpsgd"
UNCERTAINTY = "uncertainty"
STATISTICS = "comparison"
SCRUBBING = "scrubbing"
UNLEARNING = "unlearning"
DEFENSES = "defenses"
HIPAA = "hipaa"
OTHER_DOCUMENTS = "other_documents"
REPORT = "report_audit"
REAL = "real_model"
YOUR_MODEL = "your_model"

# The runs that make the models which no epsilon names; every other model comes from DPSGD.
MAKERS = {"public": PRETRAINING, "baseline": BASELINE, "best_nonprivate": BASELINE}
EPSILON = "target_epsilon"
PLANNED = ("profile", "model", "models")  # parameters that the plan fills in


THEORY = (
    ANONYMIZATION,
    PRIVACY,
    COMPOSITION,
    TESTING,
    ACCOUNTING,
    MECHANICS,
    LEDGER,
    INVERSION,
    UNCERTAINTY,
    OTHER_DOCUMENTS,
)
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
    Step(WHITE_BOX, after=(RECORDS, PRETRAINING), priority=5),
    Step(BROKEN, after=(RECORDS, PRETRAINING, BASELINE), priority=5),
    Step(UTILITY, after=(RECORDS, PRETRAINING, BASELINE, DPSGD), priority=5),
    Step(OPACUS, after=(RECORDS, PRETRAINING), priority=5),
    Step(EXTRACTION, after=(RECORDS, PRETRAINING, BASELINE), per="model"),
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
    Step(REAL, after=(RECORDS,)),
    Step(YOUR_MODEL, after=(RECORDS, BASELINE)),
)
SLUGS = tuple(step.slug for step in CHAIN)


def model_name(epsilon: float) -> str:
    """Return the name of the model trained under the budget `epsilon`, in nats."""
    return f"dp-eps-{epsilon:g}"


def slug_of(name: str) -> str:
    """Return what a chapter is called: its file's name without the number, the folder and the ending.

    >>> slug_of("notebooks/14_extraction.ipynb")
    'extraction'
    """
    return re.sub(r"^\d+_", "", Path(name).name.removesuffix(".ipynb"))


def source(root: Path, slug: str) -> Path:
    """Return the notebook `slug` of the copy of the book at `root`, whatever its number.

    Raises:
        InvalidParameter: no chapter has this slug, or two files do.
        MissingArtifact: the chapter has no file.
    """
    if slug not in SLUGS:
        raise InvalidParameter(f"notebook {slug!r}: must be one of {', '.join(SLUGS)}")
    files = [path for path in (root / "notebooks").glob(f"*{slug}.ipynb") if slug_of(path.name) == slug]
    if not files:
        raise MissingArtifact(f"notebooks/NN_{slug}.ipynb is missing from this copy of the book")
    if len(files) > 1:
        names = ", ".join(sorted(path.name for path in files))
        raise InvalidParameter(f"notebook {slug!r}: two files have this name ({names}); remove one")
    return files[0]
