"""One row of the chain's table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One notebook of the chain.

    Attributes:
        slug: file name in `notebooks/` without its number and its ending.
        after: slugs whose every run must be complete before; for a step that runs once per model, of
            these the runs on that model, and the run that made it is added to them.
        per: "book" for one run, "epsilon" for one per budget, "model" for one per model.
        threads: cores that a run may use.
        priority: runs with a higher one start first when several are ready.
    """

    slug: str
    after: tuple[str, ...] = ()
    per: str = "book"
    threads: int = 1
    priority: int = 0
