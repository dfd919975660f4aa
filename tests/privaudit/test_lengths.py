"""Scores that divide by a length: what two readings of a text are compared on."""

import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch
import toy_audit as toy
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers import models as token_models
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import privaudit
from privaudit.model import CAUSAL, MASKED, Target, _whole_characters
from privaudit.probes.membership import _reference_scores, membership_scores
from privaudit.words import _inapplicable
from privhelpers import models, stats
from privhelpers.attacks import signals
from privhelpers.models import TokenScores

pytestmark = pytest.mark.wrong_numbers
WORDS = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")


def long_notes(lengths, *, seed):
    """Return one note a patient, of as many words as `lengths` says."""
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, size=length)) for length in lengths]


def readings(texts, contexts, *, words_a_token=(1, 1), noise=1.0, quality=(0.0, 0.0), seed=0):
    """Return what two models say of texts: each word costs 3 nats, a model's own luck, and less further on.

    Args:
        texts: of words.
        contexts: tokens that each model reads.
        words_a_token: words that a token of each is about.
        noise: deviation of the luck with each word, in nats.
        quality: what each loses a word beyond the other.
    """
    generator, made = np.random.default_rng(seed), []
    for context, size, worse in zip(contexts, words_a_token, quality, strict=True):
        log_p, bounds, truncated = [], [], 0
        for text in texts:
            words = text.split(" ")
            losses = (
                3 + worse + 2 / np.sqrt(1 + np.arange(len(words))) + noise * generator.normal(size=len(words))
            )
            ends = np.cumsum([len(word) + 1 for word in words]) - 1
            stops = [*range(size, len(words), size), len(words)]
            tokens = [-losses[first:last].sum() for first, last in zip([0, *stops[:-1]], stops, strict=True)]
            truncated += len(tokens) > context
            log_p.append(np.array(tokens[:context]))
            bounds.append(np.array([0, *(ends[stop - 1] for stop in stops[:context])]))
        flat = [np.ones_like(row) for row in log_p]
        greedy = [row > -4 for row in log_p]
        made.append(TokenScores(log_p, [-3 * one for one in flat], flat, greedy, truncated, bounds))
    return made


NULLS = {
    "one context": {"contexts": (50, 50)},
    "the reference reads less": {"contexts": (100, 50)},
    "the model reads less": {"contexts": (50, 100)},
    "other tokens": {"contexts": (100, 50), "words_a_token": (1, 3)},
    "other tokens, read as far": {"contexts": (50, 100), "words_a_token": (2, 3)},
    "texts longer than both": {"contexts": (30, 20)},
    "a worse reference": {"contexts": (100, 50), "quality": (0.0, 0.5), "noise": 3.0},
}


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("shorter", [0, 8, -8])
def test_two_equally_good_models_tell_no_lengths_apart(null, shorter):
    """Members' notes are 8 words shorter, or longer, and nothing was memorized."""
    count = 150
    generator = np.random.default_rng(5)
    lengths = generator.integers(62, 78, size=2 * count) - np.repeat([shorter, 0], count)
    texts = long_notes(lengths, seed=1)
    found = _reference_scores(*readings(texts, **NULLS[null]), texts)
    area = stats.auc(found[:count], found[count:])
    assert abs(area - 0.5) < 4 / np.sqrt(6 * count)


def test_what_a_member_gains_is_found_where_both_read():
    texts = long_notes([700] * 60, seed=1)
    one, other = readings(texts, (1024, 512))
    for number in range(30):
        one.log_p[number][512:] += 5  # the reference says nothing of this part
    found = _reference_scores(one, other, texts)
    assert abs(stats.auc(found[:30], found[30:]) - 0.5) < 0.3
    for number in range(30):
        one.log_p[number][:500] += 0.2
    found = _reference_scores(one, other, texts)
    assert stats.auc(found[:30], found[30:]) > 0.9


def test_a_short_text_has_the_difference_of_its_losses_a_byte():
    texts = ["été à Paris", "oak and elm"]
    one, other = readings(texts, (64, 64), words_a_token=(1, 2))
    found = membership_scores(one, texts, reference=other)["reference"]
    by_hand = [
        (one.log_p[n].sum() - other.log_p[n].sum()) / len(text.encode()) for n, text in enumerate(texts)
    ]
    assert found == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ([0, 3, 6, 9], [0, 3, 6, 9], (0, 3, 0, 3, 0, 9)),
        ([0, 3, 6, 9], [0, 3, 6], (0, 2, 0, 2, 0, 6)),
        ([0, 2, 5, 9], [0, 5, 7], (0, 2, 0, 1, 0, 5)),
        ([0, 2, 5, 9], [2, 5, 9], (1, 3, 0, 2, 2, 9)),  # the other one does not score its first token
        ([0, 3, 3, 3, 7], [0, 3, 7], (0, 4, 0, 2, 0, 7)),  # three bytes of one character
        ([0, 0, 4, 7], [0, 4, 6], (0, 2, 0, 1, 0, 4)),  # a token without a character
        ([0, -1, -1, 9], [0, 2, 9], (0, 3, 0, 2, 0, 9)),
        ([0, 4], [0, 5], None),
        ([0, -1, -1], [0, 5], None),
    ],
)
def test_the_shared_part_ends_where_a_token_ends_in_both(one, other, shared):
    found = signals.shared_part(np.array(one), np.array(other))
    assert (found and tuple(end for part in found for end in (part.start, part.stop))) == shared


def test_a_text_without_a_shared_part_says_nothing():
    texts = ["oak elm fir", "oak elm pine", "elm"]
    one, other = readings(texts, (64, 64))
    other.bounds[2] = np.array([1, 2])
    found = membership_scores(one, texts, reference=other)["reference"]
    assert found[2] == pytest.approx(found[:2].mean())


# The other scores of a text of which a model reads a part.


def test_the_compressed_text_is_the_part_that_was_read():
    texts = long_notes([40, 400], seed=1)
    [one, _] = readings(texts, (100, 100))
    found = signals.from_tokens(one, texts)
    part = " ".join(texts[1].split()[:100])
    assert found.zlib_bytes.tolist() == [len(zlib.compress(part.encode())) for part in (texts[0], part)]
    whole = replace(one, bounds=None)
    assert signals.from_tokens(whole, texts).zlib_bytes[1] == len(zlib.compress(texts[1].encode()))


def test_lower_case_is_compared_on_what_both_passes_read():
    texts = ["İ" + text.upper() for text in long_notes([40, 400], seed=1)]
    lowered = [text.lower() for text in texts]
    assert len(lowered[0]) > len(texts[0])
    [scored, _] = readings(texts, (100, 100))
    [lower, _] = readings(lowered, (60, 60), seed=3)
    found = signals.lower_case_loss(scored, lower, texts) - scored.losses
    by_hand = [scored.log_p[n][:stop].mean() - lower.log_p[n][:stop].mean() for n, stop in ((0, 40), (1, 60))]
    assert found == pytest.approx(by_hand)


def test_a_model_of_the_book_says_which_part_it_read():
    tokenizer = models.train_tokenizer(long_notes([60] * 20, seed=2), vocab_size=300)
    model = models.build("micro-gpt2", tokenizer, seed=0)
    most = model.config.max_position_embeddings
    texts = ["oak ELM fir", " ".join(["Birch"] * most)]
    scored = models.score_tokens(model, tokenizer, texts)
    for number, text in enumerate(texts):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"][: most - 1]
        assert scored.part_read(number, text) == tokenizer.decode(ids)
        assert len(scored.bounds[number]) == scored.tokens[number] + 1
    measured = signals.measure(model, tokenizer, texts)
    part, lowered = scored.part_read(1, texts[1]), texts[1].lower()
    assert measured.zlib_bytes[1] == len(zlib.compress(part.encode())) < len(zlib.compress(texts[1].encode()))
    lower = models.score_tokens(model, tokenizer, [lowered])
    shared = signals.shared_part(scored.bounds_of(1, texts[1]), lower.bounds_of(0, lowered))
    expected = scored.log_p[1][shared[0]].mean() - lower.log_p[0][shared[1]].mean()
    assert signals.scores(measured)["lower_case"][1] == pytest.approx(expected, abs=1e-4)
    assert models.score_tokens(model, tokenizer, texts[:1]).bounds is None


# Opened models.


def gpt2(tok, context, *, seed=0):
    config = GPT2Config(
        vocab_size=len(tok), n_positions=context, n_embd=32, n_layer=1, n_head=2, bos_token_id=0,
        eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GPT2LMHeadModel(config).eval()


def word_pieces():
    """Return a tokenizer that reads one word as one token, and blanks not at all, with ends of its own."""
    vocabulary = {word: n for n, word in enumerate(("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", *WORDS))}
    made = Tokenizer(token_models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 1), ("[SEP]", 2)])
    names = {name: f"[{name[:-6].upper()}]" for name in ("pad_token", "cls_token", "sep_token", "mask_token")}
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", **names)


def bert(tok, context, *, seed=0):
    config = BertConfig(
        vocab_size=len(tok), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=context, pad_token_id=0,
        initializer_range=0.5,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BertForMaskedLM(config).eval()


def target(model, tok):
    """Return an opened model, its tokenizer in this process."""
    context = model.config.max_position_embeddings
    reader = toy.wrapped(tok, context)
    kind = MASKED if tok.mask_token_id is not None else CAUSAL
    return Target("it", kind, model, reader, context, {})


def shortened(short, model):
    """Give a model the weights of one that reads further."""
    weights = model.state_dict()
    short.load_state_dict({name: weights[name][: len(own)] for name, own in short.state_dict().items()})
    return short


@pytest.fixture(scope="module")
def opened():
    """Return models by name: two contexts with the same weights, two tokenizers, two kinds."""
    many, few, pieces = *(toy.tokenizer(long_notes([40] * n, seed=2)) for n in (30, 1)), word_pieces()
    wide, masked = gpt2(many, 128), bert(pieces, 128)
    made = {
        "wide": (wide, many),
        "narrow": (shortened(gpt2(many, 48), wide), many),
        "other": (gpt2(few, 96, seed=2), few),
        "masked": (masked, pieces),
        "short": (shortened(bert(pieces, 48), masked), pieces),
    }
    return {name: target(*one) for name, one in made.items()}


TEXTS = [*long_notes([3, 12, 30, 60, 100], seed=7), "Été: oak  elm\n" * 9, " oak elm "]


@pytest.mark.parametrize("name", ["wide", "narrow", "other", "masked", "short"])
def test_an_opened_model_says_which_part_it_read(opened, name):
    target = opened[name]
    scored = target.score(TEXTS)
    for number, text in enumerate(TEXTS):
        bounds = scored.bounds_of(number, text)
        assert len(bounds) == scored.tokens[number] + 1 and bounds[0] == 0 and (np.diff(bounds) >= 0).all()
        assert 0 < bounds[-1] <= len(text)
        part = scored.part_read(number, text)
        again = target.score([part])
        assert again.tokens[0] == scored.tokens[number] and again.part_read(0, part) == part


@pytest.mark.parametrize("pair", [("wide", "narrow"), ("narrow", "wide")])
def test_a_model_and_itself_with_another_context_differ_in_nothing(opened, pair):
    one, other = (opened[name] for name in pair)
    scored = tuple(model.score(TEXTS, seed=0) for model in (one, other))
    assert scored[0].truncated != scored[1].truncated
    assert one.reads_as(other, one.encode(TEXTS), other.encode(TEXTS))
    assert _reference_scores(*scored, TEXTS) == pytest.approx(np.zeros(len(TEXTS)), abs=1e-5)


# Of bytes: the shorter contexts end within a letter, a character of three bytes or a face of four.
BYTES = [
    *("x" * n + "患者主诉头痛三天" * 8 for n in range(3)),
    *("x" * n + "oak 😀 " * 20 for n in range(4)),
    "ö" * 40,
]


@pytest.mark.parametrize("context", [46, 47, 48])
def test_of_a_character_that_is_read_in_part_no_byte_is_compared(opened, context):
    wide = opened["wide"]
    short = shortened(gpt2(range(wide.model.config.vocab_size), context), wide.model)
    narrow = replace(wide, model=short, context=context)
    scored = tuple(model.score(BYTES) for model in (wide, narrow))
    assert scored[1].truncated == len(BYTES) and min(scored[1].tokens) < context - 1
    assert _reference_scores(*scored, BYTES) == pytest.approx(np.zeros(len(BYTES)), abs=1e-5)
    for number, text in enumerate(BYTES):
        part = scored[1].part_read(number, text)
        assert 0 <= context - 1 - len(wide.encode([part]).asked[0]) < 4


@pytest.mark.parametrize(
    ("asked", "ends", "read"),
    [
        ([1, 2, 3, 4], [0, 1, 2, 3, 4], [1, 2]),
        ([1, 2, 3, 4], [0, 1, 2, 2, 4], [1]),  # two bytes of one character
        ([1, 2, 3, 4], [0, 1, 1, 1, 4], [1, 2]),  # nothing but a part was read
        ([1, 2], [0, 2, 2], [1, 2]),  # all of it is read
        ([1, 2, 3, 4], [0, -1, -1, -1, -1], [1, 2]),  # a tokenizer that does not say
    ],
)
def test_a_text_is_read_up_to_its_last_whole_character(asked, ends, read):
    assert _whole_characters(asked, ends, 3) == read


def test_a_reference_that_reads_less_brings_ezmia_and_wbc_too(opened):
    one, narrow = opened["wide"], opened["narrow"]
    fresh = gpt2(range(narrow.model.config.vocab_size), 48, seed=9)
    other = replace(narrow, model=fresh)
    same = one.reads_as(other, one.encode(TEXTS), other.encode(TEXTS))
    found = membership_scores(one.score(TEXTS), TEXTS, reference=other.score(TEXTS), same_tokens=same)
    assert same and {"reference", "ez_mia", "wbc"} <= found.keys()
    for another in (opened["other"], opened["masked"]):
        assert not one.reads_as(another, one.encode(TEXTS), another.encode(TEXTS))


def test_an_audit_with_the_same_model_of_another_context_finds_no_length(opened, tmp_path):
    """Members' notes are shorter than the others: a loss divided by whole notes tells them all apart."""
    generator = np.random.default_rng(3)
    paths = []
    for seed, (letter, ends) in enumerate({"m": (50, 70), "h": (70, 90)}.items()):
        texts = long_notes(generator.integers(*ends, size=60), seed=seed)
        rows = [{"patient_id": f"{letter}{n}", "text": text} for n, text in enumerate(texts)]
        paths.append(toy.write(tmp_path / f"{letter}.jsonl", rows))
    files = privaudit.read_files(*paths)
    options = {"lower_case": False, "control": False, "texts": 1, "tokens": 1}
    settings = privaudit.Settings(permutations=2199, draws=20, **options)
    audit = privaudit.run_audit(files, settings, target=opened["wide"], reference=opened["narrow"])
    assert audit.attacks[0].name == "loss"
    assert not {"reference", "ez_mia", "wbc"} & {attack.name for attack in audit.attacks}, "nothing differs"
    assert len(_inapplicable(audit)) >= 3


def test_an_end_of_a_token_that_is_not_known_is_only_that_of_the_whole_text():
    it = Target("it", CAUSAL, None, None, 10, {})
    assert it._bounds("two words", [0, -1, -1], [1, 2], [1, 2]).tolist() == [0, -1, 9]
    assert it._bounds("two words", [0, -1, -1], [1, 2], [1]).tolist() == [0, -1]
