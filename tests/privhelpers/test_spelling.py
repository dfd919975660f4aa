"""Every place that compares texts compares them in one spelling: no copy is seen here and missed there."""

import numpy as np
import pytest
import spellings
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, trainers
from tokenizers import models as token_models

from privaudit.encode import Sample
from privaudit.probes.blind import _shape, _units, text_kernels
from privaudit.probes.likeness import Likeness, near_copies, word_losses
from privaudit.probes.memorization import disclosures
from privaudit.probes.risks import _guesses, _holders
from privaudit.records import Note
from privhelpers import defenses, spelling
from privhelpers.attacks import extraction, ranking
from privhelpers.text import normalize, owners_of_texts

pytestmark = pytest.mark.wrong_numbers


def held_back(text, copy):
    return defenses.OutputFilter([text], identifiers=False).apply(copy).blocked


def removed(text, copy):
    return defenses.deduplicate([{"text": text}, {"text": copy}]).removed == 1


def near(text, copy):
    return bool(near_copies([text], [copy])[0][0])


def closest(text, copy):
    likeness = Likeness([copy, "something else"], [text])
    return bool(likeness.nearest([text])[0] > 0.8 and likeness.covered([text])[0] > 0.8)


def predicted(text, copy):
    known, unknown = word_losses([copy], [text, "words that no note in this file ever contained"])
    return bool(known < unknown / 2)


def one_run(text, copy):
    return bool(ranking.longest_runs([copy], [text]).words[0] >= 8)


def guessed(text, copy):
    """The rarest words of the copy, and whether the note is found by them."""
    notes = [Note(1, "p1", text), Note(2, "p2", "another note of someone else")]
    sample = Sample(notes, np.array([True, False]), 0)
    guesses = _guesses([copy], Likeness([copy], sample.texts), 0)
    return bool(_holders(guesses, ["p1", "p2"], sample).toarray()[0].all())


UNSPACED = spellings.UNSPACED | spellings.RUN_ON
COMPARED = (held_back, removed, near, closest, predicted, one_run, guessed)
# Texts that are not copies, of one another or of the sentences.
DIFFERENT = (
    *UNSPACED.values(),
    (spellings.ENGLISH, spellings.GERMAN),
    ("one two three four five six seven", "seven six five four three two one"),
    ("tel 617 555 0123 ext 4 5 6 7", "tel 61 75 550 123 ext 45 67 8 9"),
    ("रोगी को एक रात अस्पताल में रखा गया और घर भेजा", "रगी क एक रत अस्पतल म रख गय और घर भज"),
)


@pytest.mark.parametrize("compared", COMPARED)
@pytest.mark.parametrize("way", spellings.COPIES)
def test_a_copy_in_another_spelling_is_a_copy(compared, way):
    assert compared(*spellings.COPIES[way])


@pytest.mark.parametrize("compared", COMPARED)
@pytest.mark.parametrize("script", UNSPACED)
def test_a_copy_without_blanks_is_a_copy(compared, script):
    text = UNSPACED[script][0]
    assert compared(text, f"“{text}”")


@pytest.mark.parametrize("compared", COMPARED[:-1])  # any words can be the rarest of a text
@pytest.mark.parametrize(("text", "other"), DIFFERENT)
def test_another_text_is_not_a_copy(compared, text, other):
    assert not compared(text, other)


@pytest.mark.parametrize(
    "way", ["NFD", "capitals", "soft hyphens", "order mark", "Windows lines", "full width"]
)
def test_what_reads_the_same_is_one_text_of_one_owner(way):
    text, copy = spellings.COPIES[f"{way}, 1"]
    assert normalize(text) == normalize(copy) and owners_of_texts([("p", text), ("p", copy)]).total() == 1


@pytest.mark.parametrize(("text", "other"), [("p\u00e91", "pe1"), ("a b", "ab"), ("p-1", "p1"), ("か", "が")])
def test_ids_that_read_otherwise_are_others(text, other):
    assert normalize(text) != normalize(other)


@pytest.mark.parametrize("text", [copy for _, copy in spellings.COPIES.values()])
def test_words_put_together_are_the_same_words(text):
    assert spelling.words(" ".join(spelling.words(text))) == spelling.words(text)


@pytest.mark.parametrize("script", spellings.UNSPACED)
def test_blind_baselines_compare_characters_in_scripts_without_blanks(script):
    """It compares texts as they are: two files that differ in their spelling differ for a model, too."""
    text, other = spellings.UNSPACED[script]
    half = len(text) // 2
    turned = text[half:] + text[:half]
    shapes = text_kernels([[text], [turned], [other]])
    assert shapes["words"][0, 1] > 0.5 > shapes["words"][0, 2]
    assert len(_units(text)) > 10 and _shape([text], np.random.default_rng(0))[4] > 10


def profile(patient, value):
    return extraction.Profile(patient, {"mrn": (value,), "name": ("Nemo No one",)}, (), ())


@pytest.mark.parametrize(("value", "text"), spellings.SAME)
def test_a_value_in_another_spelling_is_a_leak_and_public(value, text):
    written, member = [extraction.Generation("p", text)], profile("p1", value)
    assert extraction.strict_match(written, [member]).leaks == 1
    assert extraction.strict_match(written, [profile("p2", "SYN-00000001")]).leaks == 0
    assert extraction.public_values(written, [member], [text]) == {normalize(value)}


@pytest.mark.parametrize(("value", "text"), spellings.OTHERS)
def test_another_value_is_not_a_leak(value, text):
    assert extraction.strict_match([extraction.Generation("p", text)], [profile("p1", value)]).leaks == 0


def recited(pieces, decoder, *, lower=False, vocabulary=400):
    """Return what makes a text of the tokens of a text, by a tokenizer that was trained on some notes."""
    model, before, trainer = {
        "WordPiece": (
            token_models.WordPiece(unk_token="[UNK]"),
            pre_tokenizers.BertPreTokenizer(),
            trainers.WordPieceTrainer,
        ),
        "BPE": (token_models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), trainers.BpeTrainer),
        "Unigram": (token_models.Unigram(), pre_tokenizers.Metaspace(), trainers.UnigramTrainer),
    }[pieces]
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=lower)
    tokenizer.pre_tokenizer, tokenizer.decoder = before, decoder
    special = {"special_tokens": ["[UNK]"]} | ({"unk_token": "[UNK]"} if pieces == "Unigram" else {})
    tokenizer.train_from_iterator(PEOPLE, trainer(vocab_size=vocabulary, show_progress=False, **special))
    return lambda text: tokenizer.decode(tokenizer.encode(text).ids)


def person(number):
    return (
        f"Patient Zoë O'Brien-Vale no. {number}: tel (617) 555-{number:04d}, MRN SYN-{73800000 + number}, "
        f"seen {number % 28 + 1:02d}/01/{1900 + number}, mail a.hill_{number}@mail.example.org."
    )


PEOPLE = [person(number) for number in range(120)]
TOKENIZERS = {
    "WordPiece": ("WordPiece", decoders.WordPiece(cleanup=False), {}),
    "WordPiece, cleaned up": ("WordPiece", decoders.WordPiece(cleanup=True), {}),
    "WordPiece, uncased": ("WordPiece", decoders.WordPiece(cleanup=True), {"lower": True}),
    "WordPiece without decoder": ("WordPiece", None, {"lower": True}),
    "bytes": ("BPE", decoders.ByteLevel(), {}),
    "bytes without decoder": ("BPE", None, {"vocabulary": 900}),
    "SentencePiece": ("Unigram", decoders.Metaspace(), {}),
    "SentencePiece without decoder": ("Unigram", None, {"vocabulary": 900}),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_recited_values_are_found_and_no_others(name):
    """A model that writes every note of 60 members names all 60, and none of as many held-out patients."""
    pieces, decoder, options = TOKENIZERS[name]
    back = recited(pieces, decoder, **options)
    notes = [Note(n, f"p{n}", text) for n, text in enumerate(PEOPLE)]
    sample = Sample(notes, np.arange(120) < 60, 0)
    found = disclosures([back(text) for text in PEOPLE[:60]], sample)
    assert (found.by_patient.members.hits, found.by_patient.heldout.hits) == (60, 0)
    assert found.strings[0] == len(found.disclosed) == 240
