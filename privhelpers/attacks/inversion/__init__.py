"""Reading a note back from one gradient of a GPT-2, and counting how much of it was read rightly.

Four attackers, from the plainest to the best informed: `divide` uses the two embedding tables alone,
`check_span` and `check_batch` the rank of a layer's gradient, `match` searches for a text with the same
gradient, and `pick_from_list` knows a list on which the note stands.

Rows are <end> note <end>, all of one length that the attacker knows; the first <end> is known too.

Sources: Zhu, Liu and Han 2019 (matching a gradient); Petrov et al. 2024 (the span check).
"""

from privhelpers.attacks.inversion.gradients import (
    POSITIONS,
    TOKENS,
    Gradient,
    attention_weight,
    gradient_of,
    untied,
)
from privhelpers.attacks.inversion.recovery import (
    bag_recall,
    batch_hits,
    ceiling,
    hits,
    score,
    score_batches,
)
from privhelpers.attacks.inversion.search import match, pick_from_list
from privhelpers.attacks.inversion.spans import (
    PASSES,
    check_batch,
    check_span,
    divide,
    first_inputs,
    input_span,
    span_distances,
)

__all__ = [
    "PASSES",
    "POSITIONS",
    "TOKENS",
    "Gradient",
    "attention_weight",
    "bag_recall",
    "batch_hits",
    "ceiling",
    "check_batch",
    "check_span",
    "divide",
    "first_inputs",
    "gradient_of",
    "hits",
    "input_span",
    "match",
    "pick_from_list",
    "score",
    "score_batches",
    "span_distances",
    "untied",
]
