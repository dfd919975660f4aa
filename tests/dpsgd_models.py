"""Small models, ragged batches, and the slow, obvious version of the clipped sum."""

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DistilBertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
)

from privhelpers import dpsgd
from privhelpers.dpsgd._losses import losses_by_row

# (norms, sums) relative
TOLERANCE = {torch.float64: (1e-12, 1e-12), torch.float32: (1e-6, 1e-6)}
VOCABULARY, POSITIONS, WIDTH, IGNORED = 97, 48, 16, -100


def _gpt2_config(tied):
    return GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=POSITIONS,
        n_embd=WIDTH,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        tie_word_embeddings=tied,
    )


def _bert_config(tied):
    return BertConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=POSITIONS,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=3 * WIDTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        tie_word_embeddings=tied,
    )


def _distilbert_config(tied):
    return DistilBertConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=POSITIONS,
        dim=WIDTH,
        n_layers=2,
        n_heads=2,
        hidden_dim=3 * WIDTH,
        dropout=0.0,
        attention_dropout=0.0,
        seq_classif_dropout=0.0,
        tie_word_embeddings=tied,
    )


FAMILIES = {
    "gpt2": (GPT2LMHeadModel, _gpt2_config),
    "bert": (BertForMaskedLM, _bert_config),
    "distilbert": (DistilBertForMaskedLM, _distilbert_config),
    "gpt2-classifier": (GPT2ForSequenceClassification, _gpt2_config),
    "bert-classifier": (BertForSequenceClassification, _bert_config),
    "distilbert-classifier": (DistilBertForSequenceClassification, _distilbert_config),
}


def small(family="gpt2", *, tied=True, dtype=torch.float64, noisy_biases=True):
    kind, config = FAMILIES[family]
    torch.manual_seed(0)
    model = kind(config(tied)).to(dtype)
    if noisy_biases:  # fresh biases are zero, and a test on zeros sees little
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("bias"):
                    parameter.normal_(0.0, 0.1)
    return model.train()


def ragged(family="gpt2", rows=7, length=12, seed=1):
    """Rows of different lengths, repeated ids, the padding id inside and after the text."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, VOCABULARY, (rows, length), generator=generator)
    ids[:, 3] = ids[:, 1]  # repeats within a row
    ids[0, 5] = 0
    kept = [length] * rows
    for row, tokens in ((2, 2 * length // 3), (5, length // 3)):
        if row < rows:
            kept[row] = tokens
    seen = torch.arange(length)[None, :] < torch.tensor(kept)[:, None]
    ids = ids.masked_fill(~seen, 0)
    batch = {"input_ids": ids}
    if family != "gpt2":
        batch["attention_mask"] = seen.long()
    if family.startswith("bert"):
        batch["token_type_ids"] = (
            (torch.arange(length)[None, :] >= length // 4).long().expand(rows, -1).clone()
        )
    if family.endswith("classifier"):
        batch["labels"] = torch.randint(0, 2, (rows,), generator=generator)
    elif family == "gpt2":
        batch["labels"] = ids.masked_fill(~seen, IGNORED)
    else:
        asked = torch.rand(rows, length, generator=generator) < 0.4
        asked[:, 0] = True
        batch["labels"] = ids.masked_fill(~(seen & asked), IGNORED)
    return batch


def row_of(batch, row):
    return {name: value[row : row + 1] for name, value in batch.items()}


def slow_clipped_sum(model, batch, *, max_grad_norm, unit=None):
    """One backward for every unit, norms in float64."""
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    sums = {n: torch.zeros_like(p) for n, p in trained.items()}
    unit = torch.arange(len(batch["labels"])) if unit is None else unit
    norms = []
    for number in range(int(unit.max()) + 1):
        model.zero_grad(set_to_none=True)
        rows = (unit == number).nonzero()[:, 0].tolist()
        torch.cat([losses_by_row(model, row_of(batch, row)) for row in rows]).mean().backward()
        gradients = {n: p.grad for n, p in trained.items() if p.grad is not None}
        norm = float(sum(g.double().square().sum() for g in gradients.values())) ** 0.5
        norms.append(norm)
        for name, gradient in gradients.items():
            sums[name] += gradient * min(1.0, max_grad_norm / norm)
    model.zero_grad(set_to_none=True)
    return sums, torch.tensor(norms, dtype=torch.float64)


def distance(sums, expected):
    """Return the Euclidean distance of two gradients over the length of the second."""
    assert set(sums) == set(expected)
    gap = sum(float((sums[n].double() - expected[n].double()).square().sum()) for n in expected)
    return (gap / sum(float(e.double().square().sum()) for e in expected.values())) ** 0.5


def agree(model, batch, unit=None, *, close=None):
    """Compare with one backward a unit, at a bound that clips about half of the units."""
    _, norms = slow_clipped_sum(model, batch, max_grad_norm=1e9, unit=unit)
    bound = 1.0001 * float(norms.median())
    expected, norms = slow_clipped_sum(model, batch, max_grad_norm=bound, unit=unit)
    sums, fast_norms = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=bound, unit=unit)
    of_norms, of_sums = (close, close) if close else TOLERANCE[next(model.parameters()).dtype]
    torch.testing.assert_close(fast_norms, norms, rtol=of_norms, atol=0)
    assert distance(sums, expected) < of_sums
    assert (norms < bound).any() and (norms > bound).any()
