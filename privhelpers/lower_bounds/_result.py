"""The result of an audit, and the refusal to publish a book whose bounds contradict each other."""

import math
import numbers
from dataclasses import dataclass

from privhelpers import validate
from privhelpers.errors import AuditContradiction, InvalidParameter
from privhelpers.text import rounded_down, rounded_up

ADD_REMOVE, REPLACEMENT = "add/remove", "replacement"
_MOST_CANARIES = 1_000_000  # a bound takes seconds for as many


@dataclass(frozen=True)
class AuditResult:
    """A lower bound on the accountant's epsilon, of adding or removing one unit, with its meaning.

    Attributes:
        epsilon_lower: in nats; 0 if nothing could be certified.
        delta: at which the bound holds, in (0, 1).
        confidence: probability with which the bound is not above the truth, at least.
        method: how the bound was made, in words that may be in a caption.
        canaries: number of canaries whose inclusion was decided by a coin.
        guesses: how many of them were guessed at.
        correct: how many guesses were right.
        searched: numbers of guesses, or thresholds, among which the best was taken and paid for.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    method: str
    canaries: int
    guesses: int
    correct: int
    searched: int = 1

    def __str__(self) -> str:
        """Return the bound with everything that must be stated with it."""
        lower, delta = rounded_down(self.epsilon_lower), rounded_down(self.delta)
        return (
            f"ε >= {lower:g} at δ = {delta:g}, confidence {100 * rounded_down(self.confidence, 8):.8g}% "
            f"({ADD_REMOVE}; {self.method}: {self.correct} of {self.guesses} guesses right, "
            f"{self.canaries} canaries, {self.searched} searched)"
        )


def significance_of(confidence: float, searched: int = 1) -> float:
    """Return the error that each of `searched` looks may make so that all together stay within one.

    Raises:
        InvalidParameter: the confidence is outside (0, 1), or nothing is searched.
    """
    confidence = validate.probability(confidence=confidence)
    searched = validate.positive_int(searched=searched)
    if 1 - confidence in (0, 1):  # of 1e-17 as well: the error rounds to 1
        raise InvalidParameter(
            f"confidence = {confidence:g}: must be in (0, 1); no finite number of canaries gives certainty"
        )
    return (1 - confidence) / searched


def check_guesses(*, canaries: int, guesses: int, correct: int) -> tuple[int, int, int]:
    """Return canaries, guesses and right ones as Python's numbers, and refuse counts that no audit can have.

    Raises:
        InvalidParameter: not whole, or not 0 <= correct <= guesses <= canaries <= 1,000,000.
    """
    canaries = validate.positive_int(_MOST_CANARIES, canaries=canaries)
    guesses = validate.non_negative_int(canaries, guesses=guesses)
    return canaries, guesses, validate.non_negative_int(guesses, correct=correct)


def check_adjacency(adjacency: str) -> None:
    """Refuse a relation that a coin cannot decide.

    Raises:
        InvalidParameter: neither "add/remove" nor "replacement".
    """
    validate.one_of((ADD_REMOVE, REPLACEMENT), adjacency=adjacency)


@validate.within_float64
def require_below(lower: AuditResult | float, upper: float, *, what: str = "the run") -> None:
    """Refuse a lower bound that exceeds the upper bound on the same epsilon.

    Args:
        lower: of the audit.
        upper: of the accountant, at the same delta and for the same neighbors; may be infinite.
        what: the model, for the message.

    Raises:
        InvalidParameter: a bound is not a number, or beyond a float64 and yet finite.
        AuditContradiction: the audit certifies more than the accountant allows, or a bound is NaN.

    >>> require_below(1.4, 4.0)
    >>> require_below(4.1, 4.0, what="dp-eps-4")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    privhelpers.errors.AuditContradiction: dp-eps-4: the audit certifies epsilon >= 4.1, and ...
    """
    value = lower.epsilon_lower if isinstance(lower, AuditResult) else lower
    if not isinstance(value, numbers.Real) or not isinstance(upper, numbers.Real):
        raise InvalidParameter(f"lower, upper = {validate.shown((value, upper))}: must be numbers")
    if math.isnan(value) or math.isnan(upper) or value > upper:
        certified, claimed = rounded_down(value), rounded_up(upper)
        raise AuditContradiction(
            f"{what}: the audit certifies epsilon >= {certified:g}, and the accountant claims at most "
            f"{claimed:g}; the sampler, the clipping, the noise or the accounting is not what was claimed"
        )
