"""Controls on which an attack must fail: its result there is its error, and too much stops the build.

Three nulls serve every attack on membership: a target that was trained on none of the notes, labels permuted
between patients, and control patients against other control patients.
"""

from scipy.stats import norm

from privhelpers import stats
from privhelpers.attacks.scores import Arms, as_plain
from privhelpers.errors import ControlFailed
from privhelpers.stats import Interval

# A book makes a few hundred such checks: at 4.5 standard errors one honest build in about 1,000 stops.
_STANDARD_ERRORS = 4.5


def require_null(what: str, interval: Interval, *, null: float = 0.5) -> None:
    """Refuse a control whose figure is not the expected one.

    Args:
        what: the attack and its control, for the message.
        interval: of the figure; its width gives the standard error. A point at `null` passes and tests
            nothing, so a rate takes an interval that stays open without a hit, such as
            `stats.paired_rate_difference`.
        null: what chance gives, 0.5 for an AUC.

    Raises:
        ControlFailed: the figure lies further from `null` than 4.5 standard errors.

    >>> require_null("loss attack, held-out halves", Interval(0.51, 0.47, 0.55, 0.95, "bootstrap"))
    """
    error = (interval.high - interval.low) / (2 * norm.isf((1 - interval.level) / 2))
    if not abs(interval.estimate - null) <= _STANDARD_ERRORS * error:
        raise ControlFailed(
            f"{what}: {interval.estimate:.4f} [{interval.low:.4f}, {interval.high:.4f}] where {null:g} is "
            "expected; look for a difference between the groups other than membership"
        )


def nulls(arms: Arms, *, trained: bool, draws: int = 200, seed: int = 0) -> dict[str, Interval]:
    """Return the AUC of an attack on controls, for which it must be one half.

    Args:
        arms: scores of members and controls.
        trained: whether the target was trained on the members; if not, its own AUC must be null too.
        draws: bootstrap resamples of patients.
        seed: of the splits and the resampling.

    Returns:
        By control: `held_out`, `permuted` and, without training, `untrained`.
    """
    where = {"held_out": arms.controls_halved(seed), "permuted": arms.permuted(seed)}
    where |= {} if trained else {"untrained": arms}
    return {name: stats.auc_interval(*null, draws=draws, seed=seed) for name, null in where.items()}


def check_nulls(
    name: str, arms: Arms, *, trained: bool, draws: int = 200, seed: int = 0
) -> dict[str, list[float]]:
    """Measure an attack on a control, as of `nulls`, and refuse it if it does not.

    Args:
        name: of the attack and level, for the message.
        arms, trained, draws, seed: as of `nulls`.

    Raises:
        ControlFailed: a control is further from one half than chance allows.
    """
    intervals = nulls(arms, trained=trained, draws=draws, seed=seed)
    for control, interval in intervals.items():
        require_null(f"{name}, {control} control", interval)
    return as_plain(intervals)
