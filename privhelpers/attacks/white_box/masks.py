"""What an attacker gains by asking a masked model about the same text under several masks."""

from collections.abc import Sequence

from numpy.typing import ArrayLike
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers.errors import InvalidParameter
from privhelpers.models import losses_by_mask
from privhelpers.stats import Interval, auc_interval


def auc_by_masks(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    members: tuple[Sequence[str], ArrayLike],
    others: tuple[Sequence[str], ArrayLike],
    *,
    counts: Sequence[int],
    draws: int = 1000,
    seed: int = 0,
) -> list[Interval]:
    """Return the area under the ROC of the loss attack that averages over the first k masks of each text.

    Args:
        members, others: texts, and the patient of each.
        counts: the numbers k, each 1 or more, increasing.
        draws: bootstrap resamples of patients.
        seed: of the masks and of the resampling.

    Raises:
        InvalidParameter: `counts` is empty or not increasing from 1 or more.
    """
    if not counts or list(counts) != sorted(set(counts)) or counts[0] < 1:
        raise InvalidParameter(f"counts = {list(counts)!r}: must be increasing whole numbers from 1 on")
    own, other = (
        losses_by_mask(model, tokenizer, texts, masks=counts[-1], seed=seed)[0]
        for texts, _ in (members, others)
    )
    return [
        auc_interval(
            -own[:, :k].mean(1), members[1], -other[:, :k].mean(1), others[1], draws=draws, seed=seed
        )
        for k in counts
    ]
