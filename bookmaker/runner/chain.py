"""The chain of notebooks as a table, and where its files lie under `runs/<profile>/`.

A chapter is known by its slug everywhere. Its number is in two places only, the name of its file in
`notebooks/` and `_toc.yml`, so that a chapter can move by renaming one file.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from privhelpers.errors import InvalidParameter, MissingArtifact
from privhelpers.validate import shown

# Chapters that more than one line of the code names.
PRIVACY = "differential_privacy"
TESTING = "hypothesis_testing"
RECORDS = "synthetic_records"
PRETRAINING = "public_pretraining"
BASELINE = "fine_tuning"
DPSGD = "private_training"
UTILITY = "private_utility"
EXTRACTION = "extraction"
MEMORIZATION = "memorization"
SHADOWS = "shadow_models"
MEMBERSHIP = "membership_inference"
AUDITING = "auditing"
BROKEN = "broken_dpsgd"
STATISTICS = "comparison"
SCRUBBING = "scrubbing"
DEFENSES = "defenses"
YOUR_MODEL = "your_model"

# The runs that make the models which no epsilon names; every other model comes from DPSGD.
MAKERS = {"public": PRETRAINING, "baseline": BASELINE, "best_nonprivate": BASELINE, "equal_use": UTILITY}
DP_MODEL = "dp-eps-"  # begins the name of every private model, before its budget
EPSILON = "target_epsilon"
# Everyone reads the core, in this order; all other chapters are the library.
CORE = (
    "the_claim",
    PRIVACY,
    TESTING,
    "renyi_accounting",
    RECORDS,
    BASELINE,
    DPSGD,
    EXTRACTION,
    MEMBERSHIP,
    AUDITING,
    STATISTICS,
    "hipaa",
)
# The prose of a chapter describes its default run: the one on this model, of these profiles, with seed 0.
CHAPTER_MODEL = {"model": "baseline", "epsilon": f"{DP_MODEL}8"}  # by what the chapter runs once for
DEFAULT_PROFILES = ("course", "study")
PRETRAINED = "pretrained"  # a value of start_from, and the folder of that model
PLANNED = ("profile", "model", "models")  # parameters that the plan fills in


@dataclass(frozen=True)
class Step:
    """One notebook of the chain.

    Attributes:
        slug: file name in `notebooks/` without its number and its ending.
        after: slugs whose every run must be complete before; for a step that runs once per model, of
            these the runs on that model, and the run that made it is added to them.
        per: "book" for one run, "epsilon" for one per budget, "model" for one per model.
        priority: runs with a higher one start first when several are ready.
        seconds: about what a run takes of the profile `course`; only the ratios matter, see `build`.
    """

    slug: str
    after: tuple[str, ...] = ()
    per: str = "book"
    priority: int = 0
    seconds: int = 10


FOUNDATIONS = (PRIVACY, TESTING, "renyi_accounting", "anonymization", "composition", "more_mechanisms")
ALONE = (
    "the_claim",
    "dpsgd_step",
    "ledger_and_resume",
    "pitfalls",
    "uncertainty",
    "other_documents",
    "field_trial",
)
TRAINED, ATTACKED = (RECORDS, PRETRAINING, BASELINE, DPSGD), (EXTRACTION, MEMORIZATION, MEMBERSHIP)
# A run takes one core, also where it trains many models: two processes of one run wait for each other.
CHAIN = (
    # The foundations are read first; they fill one core while the other makes what everything waits for.
    *(Step(slug, priority=30) for slug in FOUNDATIONS),
    # These need nothing and nothing needs them: they run where a core would wait.
    *(Step(slug) for slug in ALONE),
    Step("gradient_inversion", seconds=30),
    Step(RECORDS, priority=40),
    Step(PRETRAINING, after=(RECORDS,), priority=35, seconds=26),
    # Then what most other runs wait for, the longest way to the end first.
    Step(DPSGD, after=(RECORDS, PRETRAINING), per="epsilon", priority=25, seconds=154),
    Step(BASELINE, after=(RECORDS, PRETRAINING), priority=20, seconds=295),
    Step(SHADOWS, after=(RECORDS, PRETRAINING), priority=15, seconds=375),
    Step(UTILITY, after=(RECORDS, PRETRAINING, BASELINE, DPSGD), priority=15, seconds=60),
    Step("luck_and_size", after=(RECORDS, PRETRAINING, BASELINE, DPSGD, UTILITY), priority=10, seconds=120),
    Step("matrix_factorization", after=(RECORDS, PRETRAINING, DPSGD), priority=10, seconds=350),
    # Long ones that nothing waits for come before the short ones, which fill both cores to the end.
    Step("opacus", after=(RECORDS, PRETRAINING), priority=6, seconds=56),
    Step("attention_and_gradients", after=(RECORDS, PRETRAINING), priority=11, seconds=90),
    Step(BROKEN, after=(RECORDS, PRETRAINING, BASELINE), priority=10, seconds=134),
    Step(EXTRACTION, after=(RECORDS, PRETRAINING, BASELINE), per="model", priority=5),
    Step(MEMORIZATION, after=(RECORDS, EXTRACTION), per="model", priority=5),
    Step(MEMBERSHIP, after=(RECORDS, PRETRAINING, BASELINE, SHADOWS), per="model", priority=5),
    Step("side_by_side", after=(RECORDS, BASELINE, DPSGD, UTILITY, EXTRACTION, MEMORIZATION), priority=5),
    Step("who_is_exposed", after=(RECORDS, PRETRAINING, DPSGD, MEMBERSHIP), priority=5),
    Step("clinical_paper", after=(RECORDS, PRETRAINING, DPSGD, MEMBERSHIP), priority=5),
    Step(AUDITING, after=(RECORDS, PRETRAINING, DPSGD), priority=5, seconds=40),
    Step("more_bounds", after=(RECORDS, PRETRAINING, DPSGD, MEMORIZATION), priority=5, seconds=40),
    Step(STATISTICS, after=(*TRAINED, *ATTACKED, UTILITY, AUDITING, BROKEN), priority=5),
    Step(SCRUBBING, after=(RECORDS, PRETRAINING), priority=12, seconds=300),
    Step("unlearning", after=(RECORDS, PRETRAINING), priority=11, seconds=130),
    Step(DEFENSES, after=(RECORDS, PRETRAINING, SCRUBBING), priority=10, seconds=130),
    Step("retrieval", after=(RECORDS,), priority=6),
    Step("hipaa", after=(STATISTICS, *TRAINED, *ATTACKED, UTILITY), priority=5),
    Step("report_audit", after=(RECORDS, PRETRAINING), priority=5),
    # Short here, but of PROFILE=real it is the longest by far.
    Step("real_model", after=(RECORDS, STATISTICS), priority=22),
    Step("synthetic_notes", after=(RECORDS, PRETRAINING, BASELINE, DPSGD), priority=6, seconds=45),
    Step(YOUR_MODEL, after=(RECORDS, BASELINE), priority=6, seconds=74),
    Step("another_domain", after=(STATISTICS,), priority=6, seconds=240),
)
SLUGS = tuple(step.slug for step in CHAIN)


def model_name(epsilon: float) -> str:
    """Return the name of the model trained under the budget `epsilon`, in nats."""
    return f"{DP_MODEL}{epsilon:g}"


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
        raise InvalidParameter(f"notebook {shown(slug)}: must be one of {', '.join(SLUGS)}")
    files = [path for path in (root / "notebooks").glob(f"*{slug}.ipynb") if slug_of(path.name) == slug]
    if not files:
        raise MissingArtifact(f"notebooks/NN_{slug}.ipynb is missing from this copy of the book")
    if len(files) > 1:
        names = ", ".join(sorted(path.name for path in files))
        raise InvalidParameter(f"notebook {shown(slug)}: two files have this name ({names}); remove one")
    return files[0]
