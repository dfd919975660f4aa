"""What a tokenizer loses of the notes is said before a model is asked, and not taken for nothing found."""

import pytest
import toy_audit as toy
from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, trainers
from tokenizers import models as token_models

from privaudit.encode import naming_strings, require_text_back
from privaudit.model import Target
from privaudit.probes.memorization import openings
from privaudit.records import Note
from privhelpers.errors import UnsupportedModel
from privhelpers.text import same_as

pytestmark = pytest.mark.wrong_numbers
NOTES = [Note(n, row["patient_id"], row["text"]) for n, row in enumerate(toy.notes("m", 60, seed=1))]
LONG = [Note(n, f"p{n}", f"{note.text} " * 40) for n, note in enumerate(NOTES)]
CHINESE = [Note(n, f"p{n}", f"患者王小明昨夜留院观察{n}晚，今晨出院回家。") for n in range(20)]


class Answers:
    """A tokenizer as an audit asks it: rows of ids, and their text without special tokens."""

    bos_token_id = eos_token_id = None

    def __init__(self, tokenizer, context):
        self._tokenizer, self._most = tokenizer, context + 1

    def __call__(self, texts, *, add_special_tokens=True):
        rows = self._tokenizer.encode_batch(list(texts), add_special_tokens=add_special_tokens)
        return {
            "input_ids": [row.ids[: self._most] for row in rows],
            "special_tokens_mask": [[0] * len(row.ids[: self._most]) for row in rows],
            "ends": [[end for _, end in row.offsets[: self._most]] for row in rows],
        }

    def batch_decode(self, rows):
        return self._tokenizer.decode_batch(rows, skip_special_tokens=True)


def target(model, *, before=None, decoder=None, rules=(), learn=NOTES, kind="causal", context=96, ends=None):
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(list(rules))
    tokenizer.pre_tokenizer, tokenizer.decoder = before or pre_tokenizers.BertPreTokenizer(), decoder
    trainer = {token_models.BPE: trainers.BpeTrainer, token_models.WordLevel: trainers.WordLevelTrainer}.get(
        type(model), trainers.WordPieceTrainer
    )
    special = {"special_tokens": ["[UNK]"], "show_progress": False, "vocab_size": 600}
    special |= {"end_of_word_suffix": ends} if ends else {}
    tokenizer.train_from_iterator([note.text for note in learn], trainer(**special))
    reads = Answers(tokenizer, context)
    return Target("m", kind, None, reads, context, {})


def pieces():
    return token_models.WordPiece(unk_token="[UNK]")


def whole():
    return token_models.WordLevel(unk_token="[UNK]")


LOWER = normalizers.BertNormalizer(lowercase=True)
BYTES = {"before": pre_tokenizers.ByteLevel(add_prefix_space=False), "decoder": decoders.ByteLevel()}


def lost_of(target, notes):
    """Return what the tokenizer of a model loses of some notes."""
    return require_text_back(target, notes, target.encode([note.text for note in notes]))


@pytest.mark.parametrize("notes", [NOTES, LONG])
@pytest.mark.parametrize(
    "made",
    [
        lambda: target(token_models.BPE(), **BYTES),
        lambda: target(pieces(), decoder=decoders.WordPiece()),
        lambda: target(pieces(), decoder=decoders.WordPiece(), rules=[LOWER]),
        lambda: target(pieces(), rules=[LOWER]),
        lambda: target(token_models.BPE(), before=BYTES["before"]),
        lambda: target(token_models.BPE(end_of_word_suffix="</w>"), ends="</w>"),
        lambda: target(whole(), decoder=decoders.WordPiece()),
    ],
    ids=[
        "bytes",
        "pieces",
        "uncased",
        "uncased without decoder",
        "bytes without decoder",
        "ends of words",
        "words",
    ],
)
def test_a_tokenizer_that_gives_a_text_back_needs_no_word(made, notes):
    assert lost_of(made(), notes) == ""


@pytest.mark.parametrize(
    ("made", "notes"),
    [
        (lambda: target(whole(), learn=CHINESE), NOTES),
        (lambda: target(pieces(), decoder=decoders.WordPiece(), rules=[LOWER]), CHINESE),
        (lambda: target(pieces(), rules=[normalizers.Replace(Regex("[aeiou]"), "")]), NOTES),
        (lambda: target(token_models.BPE(), before=pre_tokenizers.Split("", "isolated")), NOTES),
        (lambda: target(whole(), learn=CHINESE, kind="masked"), NOTES),
    ],
    ids=["other vocabulary", "other script", "letters are left out", "letters apart", "masked"],
)
def test_a_tokenizer_that_loses_most_of_a_note_is_refused(made, notes):
    with pytest.raises(UnsupportedModel, match="'m': its tokenizer loses most words"):
        lost_of(made(), notes)


def test_a_tokenizer_that_puts_blanks_between_characters_of_chinese_gives_names_back():
    notes = [
        Note(n, f"p{n}", f"{note.text}，{chr(0x4E00 + n)}小明", (f"{chr(0x4E00 + n)}小明",))
        for n, note in enumerate(CHINESE)
    ]
    made = target(pieces(), decoder=decoders.WordPiece(), rules=[LOWER], learn=notes)
    assert (
        "王 小 明"
        in made.tokenizer.batch_decode(
            made.tokenizer([notes[0].text], add_special_tokens=False)["input_ids"]
        )[0]
    )
    assert lost_of(made, notes) == ""


def test_what_is_lost_is_said_in_one_sentence():
    house = [Note(0, "x", " ".join([*toy.WORDS, "Seen today: . File SYN-"]))]
    others = target(whole(), learn=house)  # no number of a patient is in the vocabulary
    said = lost_of(others, NOTES)
    assert said.count(".") == 1 and f"of {len(naming_strings(NOTES))} strings that name a patient" in said
    digits = target(pieces(), decoder=decoders.WordPiece(), rules=[normalizers.Replace("7", "0")])
    assert "strings that name a patient" in lost_of(digits, NOTES)
    masked = target(whole(), learn=house, kind="masked")
    assert "strings" not in lost_of(masked, NOTES)


NAMING = {
    "kinds of strings": (
        [
            ("File SYN-12345678, call (212) 555-0142 or a.b@mail.example.org", "Ann Lee"),
            ("File SYN-99345678 and 12/31/1999; BP 122/98, pulse 74",),
            ("the same date 12/31/1999",),
        ],
        {"12345678", "212) 555-0142", "a.b@mail.example.org", "ann lee", "99345678"},
    ),
    "scripts without blanks": (
        [("患者王小明", "王小明", "王"), ("환자 김철수", "김철수"), ("ผู้ป่วยสมชายดี", "สมชายดี", "Ann")],
        {"王小明", "김철수", "สมชายดี"},
    ),
    "two spellings": (
        [
            ("call (617) 555-0123 or ٦١٧-٥٥٥-٠١٩٩", "Zoë Müller"),
            ("call 617.555.0123", "ZOE MULLER"),
        ],
        {"617-555-0199"},
    ),
    "end of a sentence": ([("call 617-555-0123. 3 days later",)], {"617-555-0123"}),
    "blanks": ([("call 617 - 555 - 0123 . Seen",)], {"617-555-0123"}),
    "brackets": ([("tel ( 617 ) 555 - 0123, 44",)], {"617-555-0123"}),
    "twice": ([("tel 617 . 555 . 0123 and 617.555.0123",)], {"617-555-0123"}),
    "date": ([("seen 01/02/2020. 44-year-old",)], {"01/02/2020"}),
    "steps": ([("1. 2. 3. 4. 5. 6. 7. steps",)], set()),
}


@pytest.mark.parametrize("case", NAMING)
def test_strings_that_name_one_patient(case):
    rows, strings = NAMING[case]
    notes = [Note(n, f"p{n}", text, tuple(own)) for n, (text, *own) in enumerate(rows)]
    assert set(map(same_as, naming_strings(notes))) == set(map(same_as, strings))


def test_notes_of_a_script_without_blanks_begin_alike():
    assert openings(CHINESE, most=3) == ["患者"]
    thai = [Note(n, f"p{n}", f"ผู้ป่วยมีอาการปวดหัว {n}") for n in range(3)]
    assert openings(thai, most=3) == ["ผู้ป่วย"]
