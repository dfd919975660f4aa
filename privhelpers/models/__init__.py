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
    greedy_guesses,
    kept_tokens,
)
from privhelpers.models._rounding import rounded
from privhelpers.models.architecture import (
    ARCHITECTURES,
    build,
    build_masked,
    count_parameters,
    load,
    save,
)
from privhelpers.models.encoding import Rows, encode, to_batch, train_tokenizer
from privhelpers.models.masking import Masking, losses_by_mask, masked_losses, padded, score_masked, with_mask
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
