"""The scores of one pass over each text, and the attacks that need nothing else.

Every attack turns these signals into a score that is HIGHER for texts that look more like members. The
published formulas differ in sign and in division from one program to the next; here there is one sign.

>>> float(round(-_min_k(np.log([0.9, 0.01, 0.5, 0.2]), share=0.5), 4))
3.1073

Sources: Carlini et al. 2021, section 5.2, for perplexity, zlib and lower case; Shi et al. 2024 for Min-K%;
Zhang et al. 2025 for Min-K%++; Watson et al. 2022 for the difference to a reference model; Ilić et al. 2026,
sections 3.3 and 3.4, for EZ-MIA; Chen et al. 2026, section 4.1, for the window-based comparison (WBC).
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.models import TokenScores, score, score_tokens

SHARE = 0.2  # of the tokens that Min-K% averages, the value of its authors
# Tokens of a window: the list in the authors' configuration (github.com/Stry233/WBC).
WINDOWS = (2, 3, 4, 6, 9, 13, 18, 25, 32, 40)


@dataclass(frozen=True)
class Signals:
    """Features of several texts under one model, each of shape [texts].

    Attributes:
        loss: mean loss, nats per token.
        min_k: mean log-probability of the least likely share of the tokens.
        min_k_plus_plus: the same after each log-probability was standardized over the vocabulary.
        tokens: number of predicted tokens.
        zlib_bytes: length of the compressed text, as far as the model reads it; no model enters it.
        lower_loss: loss of the text in lower case; None if it was not asked for. If one of the two passes
            reads a part of the text only, it is the loss plus what lower case adds in the shared part.
        token_log_p: log-probability of every token, one array a text.
        token_greedy: whether each token is the model's first guess at its place, one array a text.
    """

    loss: np.ndarray
    min_k: np.ndarray
    min_k_plus_plus: np.ndarray
    tokens: np.ndarray
    zlib_bytes: np.ndarray
    lower_loss: np.ndarray | None
    token_log_p: tuple[np.ndarray, ...]
    token_greedy: tuple[np.ndarray, ...]


def _min_k(values: ArrayLike, *, share: float = SHARE) -> float:
    """Return the mean of the lowest `share` of the values, at least one of them.

    Applied to log-probabilities it is Min-K%, applied to standardized ones Min-K%++. The authors' programs
    print it with the opposite sign.

    Args:
        values: one number a token.
        share: of the tokens, in (0, 1]; the count is rounded down, as in the authors' programs.

    Source: Shi et al. 2024, section 3; Zhang et al. 2025, section 4.
    """
    share = validate.probability(share=share)
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not values.size:
        raise InvalidParameter("values: give one axis with one number or more")
    count = max(1, int(values.size * share))
    return float(np.partition(values, count - 1)[:count].mean())


def _standardized(log_p: ArrayLike, mean: ArrayLike, deviation: ArrayLike) -> np.ndarray:
    """Return how many standard deviations each token's log-probability lies above what the model expects.

    Args:
        log_p: of the tokens, shape [tokens].
        mean, deviation: of the log-probability over the vocabulary at each place.

    Source: Zhang et al. 2025, equation 4.
    """
    # A place with a single possible token has no spread: its token is exactly as likely as expected.
    spread = np.maximum(np.asarray(deviation, dtype=float), 1e-6)
    return (np.asarray(log_p, dtype=float) - np.asarray(mean, dtype=float)) / spread


def _error_zone(gain: np.ndarray, greedy: np.ndarray) -> float:
    """Return EZ-MIA's score: the upward share of all movement at tokens whose first guess is wrong.

    The authors divide the upward movement P by the downward movement N; P / (P + N) ranks texts as P / N does
    and stays finite. A text without an error has the highest score, 1, and one that did not move has 1/2.
    Every scored token counts; the authors' program leaves out the first, and texts with a single error.

    Args:
        gain: log-probability of each token minus that under the reference, shape [tokens].
        greedy: whether each token is the model's first guess.

    Source: Ilić et al. 2026, sections 3.3 and 3.4; its appendices E.5 and E.6, known here at second hand, for
    texts without an error and without downward movement.

    >>> _error_zone(np.array([3.0, -1.0, 5.0]), np.array([False, False, True]))
    0.75
    """
    moved = gain[~greedy]
    if not moved.size:
        return 1.0
    both = np.abs(moved).sum()
    return float(moved[moved > 0].sum() / both) if both else 0.5


def _window_votes(gain: np.ndarray) -> float:
    """Return WBC's score: the share of windows in which the model beats the reference, averaged over sizes.

    Args:
        gain: as of `_error_zone`; a window that is longer than the text is the text.

    Source: Chen et al. 2026, section 4.1, sign aggregation; sizes as in the authors' configuration, which the
    paper's formula for them does not give.

    >>> _window_votes(np.array([1.0, -3.0, 1.0]))  # of two windows of 2 none, of one of 3 none
    0.0
    """
    sums = np.concatenate([[0.0], np.cumsum(gain)])
    sizes = np.minimum(WINDOWS, gain.size)
    return float(np.mean([np.mean(sums[size:] > sums[:-size]) for size in sizes]))


def measure(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    share: float = SHARE,
    lower: bool = True,
    batch_size: int = 32,
    scored: TokenScores | None = None,
) -> Signals:
    """Score each text once, and once more in lower case if asked, and return its signals.

    Args:
        texts: one text or more, none empty.
        share: of Min-K% and Min-K%++, in (0, 1].
        lower: whether to score the lower-cased texts too, which costs a second pass.
        batch_size: texts of one batch.
        scored: this model's scores of the texts, if known; else they are computed.
    """
    scored = scored or score_tokens(model, tokenizer, texts, batch_size=batch_size)
    lower_loss = None
    if lower:
        lowered = [text.lower() for text in texts]
        plain = score(model, tokenizer, lowered, batch_size=batch_size)
        lower_loss = plain.losses
        if scored.truncated or plain.truncated:
            by_token = score_tokens(model, tokenizer, lowered, batch_size=batch_size)
            lower_loss = lower_case_loss(scored, by_token, texts)
    return from_tokens(scored, texts, share=share, lower_loss=lower_loss)


def shared_part(one: np.ndarray, other: np.ndarray) -> tuple[slice, slice, slice] | None:
    """Return which tokens of two readings of a text are about the same characters, and these characters.

    Two models may read a text up to different places, or not score its first token, and tokens of two
    tokenizers end at different places. The shared part begins and ends at a token's end in both.

    Args:
        one, other: bounds of the tokens, as of `TokenScores`, shape [tokens + 1] each.

    Returns:
        Tokens of the first reading, tokens of the second, and characters; None if no part is shared.

    >>> shared_part(np.array([0, 2, 5, 9]), np.array([0, 5, 7]))
    (slice(0, 2, None), slice(0, 1, None), slice(0, 5, None))
    """
    common = np.intersect1d(one[one >= 0], other[other >= 0])
    if common.size < 2:
        return None
    start, end = int(common[0]), int(common[-1])
    first, second = (
        slice(
            0 if bounds[0] == start else int(np.flatnonzero(bounds == start)[-1]),
            int(np.flatnonzero(bounds == end)[-1]),
        )
        for bounds in (one, other)
    )
    return first, second, slice(start, end)


def lower_case_loss(scored: TokenScores, lower: TokenScores, texts: Sequence[str]) -> np.ndarray:
    """Return the loss of each text plus what lower case adds in the part that both read, in nats per token.

    If both are read from end to end that is the loss in lower case.

    Args:
        scored, lower: the tokens of the texts, and of the texts in lower case, by one model.
        texts: as they are written.
    """
    losses = scored.losses
    for number, text in enumerate(texts):
        bounds, lowered = scored.bounds_of(number, text), text.lower()
        if len(lowered) != len(text):  # few characters become two
            moved = np.cumsum([0, *(len(character.lower()) for character in text)])
            bounds = np.where(bounds >= 0, moved[bounds], -1)
        part = shared_part(bounds, lower.bounds_of(number, lowered))
        if part is not None:
            losses[number] += scored.log_p[number][part[0]].mean() - lower.log_p[number][part[1]].mean()
    return losses


def from_tokens(
    scored: TokenScores, texts: Sequence[str], *, share: float = SHARE, lower_loss: np.ndarray | None = None
) -> Signals:
    """Return the signals of texts whose every token was scored.

    Args:
        scored: the tokens of the texts by one model.
        texts: what was scored.
        share: of Min-K% and Min-K%++, in (0, 1].
        lower_loss: loss of each text in lower case, if it was asked for.
    """
    rows = list(zip(scored.log_p, scored.mean, scored.deviation, strict=True))
    return Signals(
        loss=scored.losses,
        min_k=np.array([_min_k(log_p, share=share) for log_p, _, _ in rows]),
        min_k_plus_plus=np.array([_min_k(_standardized(*row), share=share) for row in rows]),
        tokens=scored.tokens,
        zlib_bytes=np.array(
            [len(zlib.compress(scored.part_read(n, text).encode())) for n, text in enumerate(texts)]
        ),
        lower_loss=lower_loss,
        token_log_p=tuple(scored.log_p),
        token_greedy=tuple(scored.greedy),
    )


def scores(
    signals: Signals,
    references: Mapping[str, ArrayLike] | None = None,
    *,
    reference_log_p: Sequence[ArrayLike] | None = None,
) -> dict[str, np.ndarray]:
    """Return the score of each text under each attack that needs one model and its references.

    Args:
        signals: of the texts under the attacked model.
        references: losses of the same texts under models that were not trained on them, by name; these
            models must read the same tokens of each text, or the difference is one of what they read.
        reference_log_p: log-probability of every token of the texts under one such model, one array a text;
            its tokens must match the attacked model's.

    Returns:
        Scores by attack: `loss`, `zlib`, `min_k`, `min_k_plus_plus`, `lower_case` if it was measured,
        `reference_<name>` for each reference, and with `reference_log_p` also `ez_mia` and `wbc`. Dividing by
        the zlib length or dividing it ranks the same.

    Raises:
        InvalidParameter: a reference does not give one loss a text, or one number a token.
    """
    attack_scores = {
        "loss": -signals.loss,
        "zlib": -signals.loss / signals.zlib_bytes,
        "min_k": signals.min_k,
        "min_k_plus_plus": signals.min_k_plus_plus,
    }
    if signals.lower_loss is not None:
        attack_scores["lower_case"] = signals.lower_loss - signals.loss
    for name, losses in (references or {}).items():
        losses = np.asarray(losses, dtype=float)
        if losses.shape != signals.loss.shape:
            raise InvalidParameter(
                f"references[{name!r}]: must give one loss to each of {len(signals.loss)} texts"
            )
        attack_scores[f"reference_{name}"] = losses - signals.loss
    if reference_log_p is not None:
        sizes = [np.shape(row) for row in reference_log_p]
        if sizes != [(count,) for count in signals.tokens]:
            raise InvalidParameter(
                f"reference_log_p: must give one number to each token of {len(signals.loss)} texts, by the "
                "tokenizer of the attacked model"
            )
        gains = [
            row - np.asarray(other) for row, other in zip(signals.token_log_p, reference_log_p, strict=True)
        ]
        pairs = zip(gains, signals.token_greedy, strict=True)
        attack_scores["ez_mia"] = np.array([_error_zone(*pair) for pair in pairs])
        attack_scores["wbc"] = np.array([_window_votes(gain) for gain in gains])
    return attack_scores
