"""Tokenizer, architectures, batched scoring and generation.

tokenizer = train_tokenizer(public_texts, vocab_size=1536)
model = build("tiny-gpt2", tokenizer, seed=0)
scores = score(model, tokenizer, texts)          # one entry a text, padding excluded
texts = generate(model, tokenizer, "Patient name:", samples=100, seed=0)
"""

from privhelpers.models._direction import require_both_ways, require_causal
from privhelpers.models._generation import (
    Sampling,
    draw_probabilities,
    generate,
    greedy_continuations,
    greedy_guesses,
    kept_tokens,
)
from privhelpers.models._masked import MASKED_ARCHITECTURES, build_masked, with_mask
from privhelpers.models._rounding import rounded
from privhelpers.models._shapes import ARCHITECTURES
from privhelpers.models.architecture import build, count_parameters, load, save
from privhelpers.models.encoding import Rows, encode, to_batch, train_tokenizer
from privhelpers.models.masking import Masking, losses_by_mask, masked_losses, padded, score_masked
from privhelpers.models.scoring import (
    Scores,
    TokenScores,
    row_losses,
    score,
    score_tokens,
    token_answers,
    token_scores,
)
from privhelpers.models.shelf import keep_scores, pretrained, put, scores_of, start, take

__all__ = [
    "ARCHITECTURES",
    "MASKED_ARCHITECTURES",
    "Masking",
    "Rows",
    "Sampling",
    "Scores",
    "TokenScores",
    "build",
    "build_masked",
    "count_parameters",
    "draw_probabilities",
    "encode",
    "generate",
    "greedy_continuations",
    "greedy_guesses",
    "keep_scores",
    "kept_tokens",
    "load",
    "losses_by_mask",
    "masked_losses",
    "padded",
    "pretrained",
    "put",
    "require_both_ways",
    "require_causal",
    "rounded",
    "row_losses",
    "save",
    "score",
    "score_masked",
    "score_tokens",
    "scores_of",
    "start",
    "take",
    "to_batch",
    "token_answers",
    "token_scores",
    "train_tokenizer",
    "with_mask",
]
