"""Tokenizer, architectures, batched scoring and generation.

tokenizer = train_tokenizer(public_texts, vocab_size=1536)
model = build("tiny-gpt2", tokenizer, seed=0)
scores = score(model, tokenizer, texts)          # one entry a text, padding excluded
texts = generate(model, tokenizer, "Patient name:", samples=100, seed=0)
"""

from privhelpers.models.architecture import ARCHITECTURES, build, count_parameters, load, save
from privhelpers.models.encoding import Rows, encode, to_batch, train_tokenizer
from privhelpers.models.generation import Sampling, generate, greedy_continuations
from privhelpers.models.scoring import Scores, candidate_log_probabilities, row_losses, score
from privhelpers.models.shelf import put, start, take

__all__ = [
    "ARCHITECTURES",
    "Rows",
    "Sampling",
    "Scores",
    "build",
    "candidate_log_probabilities",
    "count_parameters",
    "encode",
    "generate",
    "greedy_continuations",
    "load",
    "put",
    "row_losses",
    "save",
    "score",
    "start",
    "take",
    "to_batch",
    "train_tokenizer",
]
