"""Verbatim memorization of notes: the model gets the first half and completes the rest.

One pass over a note gives both answers: whether greedy decoding returns the second half, and how probable
one draw of it is under a sampling scheme.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.models import Sampling, draw_probabilities, greedy_guesses, score_tokens, to_batch
from privhelpers.models.encoding import batches_by_length, end_id


@dataclass(frozen=True)
class Halves:
    """Notes cut in two.

    Attributes:
        prefixes: token ids of the end token and the first half of each note.
        suffixes: token ids of the second half, as far as the model reads.
        note_ids, patients: of each note.
    """

    prefixes: list[list[int]]
    suffixes: list[list[int]]
    note_ids: list[str]
    patients: list[str]


@dataclass(frozen=True)
class Recall:
    """A model's knowledge of the second halves, given the first.

    Attributes:
        recalled: greedy decoding returns the second half word for word, shape [notes].
        log_p: log probability that one draw is the second half, nats; minus infinity if it cannot be drawn.
    """

    recalled: np.ndarray
    log_p: np.ndarray


@dataclass(frozen=True)
class Guesses:
    """The second halves that greedy decoding writes.

    Attributes:
        texts: each guess, as long in tokens as the true half, up to an end token in it.
        correct: whether it is the true half, shape [notes].
        confidence: mean log probability of its tokens, nats, shape [notes].
    """

    texts: list[str]
    correct: np.ndarray
    confidence: np.ndarray


def halve(tokenizer: PreTrainedTokenizerBase, notes: Sequence[dict], *, longest: int) -> Halves:
    """Cut each note after half of its tokens.

    Half a note, not its first few tokens: a short prefix measures whether the template is known.

    Args:
        notes: with text, note_id and patient_id.
        longest: tokens that the model reads, the end token included.

    Raises:
        InvalidParameter: there is no note, or one of fewer than 2 tokens.
    """
    if not notes:
        raise InvalidParameter("notes: there is nothing to complete")
    encoded = tokenizer([n["text"] for n in notes], add_special_tokens=False)["input_ids"]
    if min(map(len, encoded)) < 2:
        raise InvalidParameter("notes: one has fewer than 2 tokens, so it has no two halves")
    encoded = [ids[: longest - 1] for ids in encoded]
    return Halves(
        prefixes=[[end_id(tokenizer), *ids[: len(ids) // 2]] for ids in encoded],
        suffixes=[ids[len(ids) // 2 :] for ids in encoded],
        note_ids=[n["note_id"] for n in notes],
        patients=[n["patient_id"] for n in notes],
    )


@torch.inference_mode()
def recall(
    model: PreTrainedModel, halves: Halves, sampling: Sampling | None = None, *, batch_size: int = 32
) -> Recall:
    """Score every second half in one pass.

    Greedy decoding returns a half exactly if each of its tokens is the most probable one after those before
    it, the first of several that are equally probable, so nothing has to be decoded.

    Args:
        halves: what `halve` returned.
        sampling: scheme of the draws; its max_length is not applied.
        batch_size: notes scored together.

    Source: Carlini et al. 2023, definition 3.1; Hayes et al. 2025.
    """
    batch_size = validate.positive_int(batch_size=batch_size)
    sampling = sampling or Sampling()
    model.eval()
    rows = [p + s for p, s in zip(halves.prefixes, halves.suffixes, strict=True)]
    recalled, log_p = np.zeros(len(rows), dtype=bool), np.zeros(len(rows))
    for chosen in batches_by_length(rows, batch_size):
        ids, _ = to_batch([rows[n] for n in chosen], rows[0][0])
        logits = model(input_ids=ids.to(model.device), use_cache=False).logits
        spans = [slice(len(halves.prefixes[n]) - 1, len(rows[n]) - 1) for n in chosen]
        asked = torch.cat([logits[place, span] for place, span in enumerate(spans)])
        targets = torch.tensor([t for n in chosen for t in halves.suffixes[n]], device=model.device)
        lengths = [len(halves.suffixes[n]) for n in chosen]
        best = (asked.argmax(-1) == targets).split(lengths)
        each = draw_probabilities(asked, targets, sampling).double().split(lengths)
        recalled[chosen] = [bool(part.all()) for part in best]
        log_p[chosen] = [part.sum().item() for part in each]
    return Recall(recalled, log_p)


def guess(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, halves: Halves) -> Guesses:
    """Write every second half greedily; the attacker is told its length in tokens, as in the benchmark.

    Source: google-research/lm-extraction-benchmark, its baseline.
    """
    lengths = [len(suffix) for suffix in halves.suffixes]
    room = model.config.max_position_embeddings - max(map(len, halves.prefixes))
    ids, log_p = greedy_guesses(model, tokenizer, halves.prefixes, tokens=min(max(lengths), room))
    guesses = [row[:length] for row, length in zip(ids, lengths, strict=True)]
    end = end_id(tokenizer)
    shown = [row[: row.index(end)] if end in row else row for row in guesses]
    return Guesses(
        texts=tokenizer.batch_decode(shown),
        correct=np.array([a == b for a, b in zip(guesses, halves.suffixes, strict=True)]),
        confidence=np.array([np.mean(row[:length]) for row, length in zip(log_p, lengths, strict=True)]),
    )


def definitions_met(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    notes: Sequence[dict],
    form: re.Pattern,
    written: Collection[str],
) -> pd.DataFrame:
    """Return which definitions of memorization each string of a form in the notes meets.

    Args:
        notes: with text and patient_id.
        form: of the strings, such as record numbers.
        written: strings that the model wrote for an attacker without the notes.

    Returns:
        One row for each different string, by the string: its `patient`, the number of `notes` that contain
        it, whether it is `extractable` (it was written), and whether it is `discoverable` (greedy decoding
        after what some note has before it goes on with it).

    Raises:
        InvalidParameter: no note contains such a string.

    Source: Carlini et al. 2021; Carlini et al. 2023, definition 3.1.
    """
    found = [
        (match[0], note["patient_id"], place, note["text"][: match.start()])
        for place, note in enumerate(notes)
        for match in form.finditer(note["text"])
    ]
    if not found:
        raise InvalidParameter(f"notes: none contains {form.pattern!r}")
    rows = pd.DataFrame(found, columns=["string", "patient", "note", "beginning"])
    asked = rows[["string", "beginning"]].drop_duplicates()
    scores = score_tokens(model, tokenizer, (asked["beginning"] + asked["string"]).tolist())
    starts = [len(ids) for ids in tokenizer([b.rstrip() for b in asked["beginning"]])["input_ids"]]
    # Without the end token; a string beyond what the model reads is not completed.
    ends = [greedy[start:-1] for greedy, start in zip(scores.greedy, starts, strict=True)]
    discoverable = asked.assign(ok=[len(end) > 0 and bool(end.all()) for end in ends])
    table = rows.groupby("string").agg(patient=("patient", "first"), notes=("note", "nunique"))
    return table.assign(
        extractable=table.index.isin(written), discoverable=discoverable.groupby("string")["ok"].any()
    )
