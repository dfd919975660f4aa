"""Spellings that every comparison of texts must see as one, and texts that none may take for another."""

import re
import unicodedata

# A value, and a text in which it is written.
SAME = (
    # as a WordPiece tokenizer decodes, and with the marks that it leaves without a decoder
    ("(617) 555-0123", "617 - 555 - 0123"),
    ("(617) 555-0123", "call ( 617 ) 555 - 0123 ."),
    ("a.hill@mail.example", "a . hill @ mail . example"),
    ("a_hill@mail.example", "a _ hill @ mail . example"),
    ("01/02/2020", "dob 01 / 02 / 2020"),
    ("1/2/20", "1 / 2 / 20"),
    ("SYN-12345678", "mrn : syn - 12345678"),
    ("O'Brien", "o ' brien"),
    ("Smith-Jones", "smith - jones"),
    ("Ann B. Hill", "ann b . hill"),
    ("12 Elm St., Apt 4", "12 elm st. , apt 4"),
    ("Annie Hill", "ann ##ie hill"),
    ("Müller", "muller"),  # uncased: without accents
    ("Zoë Šimůnek", "zoe simunek"),
    ("Nguyễn Văn", "nguyen van"),
    # as SentencePiece and byte-level BPE write, joined with and without blanks, and bytes
    ("Ann Hill", "▁Ann▁Hill"),
    ("Ann Hill", "▁Ann ▁Hi ll ▁came"),
    ("Ann Hill", "ĠAnnĠHill"),
    ("Ann Hill", "Seen : ĠAnn ĠHi ll , Ġwell"),
    ("Müller Hill", "ĠMÃ¼llerĠHill"),
    ("王小", "<0xE7><0x8E><0x8B>小"),
    ("Ann Hill", "An@@ n Hi@@ ll"),
    ("Ann Hill", "an n</w> hi ll</w> ca me</w>"),
    ("Ann Hill", "ann</w>hill</w>"),
    ("saw Ann", "we saw <w>Ann</w> and <w>Hill</w>"),
    # as BERT's tokenizers write Chinese, and others any script without blanks
    ("王小明", "患 者 王 小 明 ， 男"),
    ("王小明", "[CLS] 患 者 ： 王 小 ##明 [SEP]"),
    ("北京市朝阳区12号", "北 京 市 朝 阳 区 12 号"),
    ("李 明", "患者李明"),
    ("田中さん", "田 中 さ ん は"),
    ("สมชาย ใจดี", "คุณ ส ม ช า ย ใ จ ดี มา"),
    # as other programs write
    ("Müller", "Mu\u0308ller"),
    ("Müller", "MÜLLER"),
    ("office", "o\ufb03ce"),
    ("Weiß", "WEISS"),
    ("İpek Işık", "IPEK ISIK"),
    ("O'Brien", "O\u2019Brien"),
    ("O'Brien", "O`Brien"),
    ("O'Brien", "O\u00b4Brien"),
    ("O'Brien", "O&#39;Brien"),
    ("Smith-Jones", "Smith\u2011Jones"),
    ("Smith-Jones", "Smith-\r\nJones"),
    ("Ann Hill", "\ufeffAnn\r\nHill"),
    ("Ann Hill", "A\u00adn\u200bn\u00a0Hill"),
    ("discharged", "dis-\ncharged"),
    ("617-555-0123", "６１７–５５５–０１２３"),
    ("617-555-0123", "٦١٧-٥٥٥-٠١٢٣"),
    ("617-555-0123", "617\u00a0555\u00a00123"),
    ("Ann Hill", "**Ann** _Hill_"),
    ("Ann Hill", "<b>Ann</b>&nbsp;<span class='x'>Hill</span>"),
    ("a.hill@mail.example", "&lt;a.hill@mail.example&gt;"),
    ("a_hill@mail.example", "a\\_hill@mail.example"),
    ("(617) 555-0123", "\\(617\\) 555\\-0123"),
    ("Ann Hill", "Аnn Нill"),  # two letters of Cyrillic
    # scripts without blanks, and with marks
    ("王小明", "患者王小明，男"),
    ("Ann Hill", "患者Ann Hill住院3天"),
    ("สมชาย", "คุณสมชายมาแล้ว"),
    ("田中", "患者の田中さんは"),
    ("김철수", "환자: 김철수"),
    ("अनिता", "नाम अनिता है"),
    ("أحمد", "أَحْمَد"),
    ("שלום", "שָׁלוֹם"),
    ("Ġorġ Ġakbu", "ma' Ġorġ Ġakbu."),
    ("Ġorġ Abela", "ma' Ġorġ Abela."),
)
# A value, and a text in which another one is written.
OTHERS = (
    ("617 555 0123", "1617 555 01234"),
    ("617-555-0123", "617-555-0124"),
    ("5550123", "(617) 555-01234"),
    ("Ann", "Anna"),
    ("Ann", "Joann"),
    ("Ann Hill", "AnnHill"),
    ("Ann Hill", "Ann. Hill came"),
    ("Ann Hill", "Hill, Ann"),
    ("12 3", "labs 123"),
    ("123", "labs 12 3"),
    ("123", "labs 1, 2, 3"),
    ("123456", "labs 12, 34, 56"),
    ("1.5", "15"),
    ("1.5", "labs 1 5"),
    ("44", "4 4"),
    ("a.hill@mail.example", "a-hill@mail.example"),
    ("a.hill@mail.example", "anna.hill@mail.example"),
    ("10 mg", "10 µg"),
    ("हिन्द", "हिन्दी"),  # a vowel sign goes on with the word
    ("มา", "มี"),
    ("か", "が"),
    ("orġ", "Ġorġ Ġakbu"),
    ("Anni", "Ġanni Borg"),  # a letter of Maltese
    ("王", "玉"),
    ("王小明", "王 大 明"),
    ("Ann Hill", "Ann明Hill"),
    ("44", "4 年 4"),
)


ENGLISH = "Kept one night to watch and then home with a green slip, as Dr. Müller's office said in Zürich."
GERMAN = "Der Patient Müller blieb über Nacht und wurde am nächsten Morgen mit Rezept für später entlassen."
VOCALIZED = "الْمَرِيضُ بَقِيَ لَيْلَةً وَاحِدَةً ثُمَّ عَادَ إِلَى الْبَيْتِ مَعَ وَصْفَةٍ طِبِّيَّةٍ"
POINTED = "הַחוֹלֶה נִשְׁאַר לַיְלָה אֶחָד וְאָז חָזַר הַבַּיְתָה עִם מִרְשָׁם"


def each(before, after="", between=" "):
    """Return what puts something before and after each word, and between words."""
    return lambda text: between.join(f"{before}{word}{after}" for word in text.split())


def inside(character):
    """Return what puts a character without a shape between all letters of a word."""
    return lambda text: re.sub(r"(?<=\w)(?=\w)", character, text)


def without_marks(text):
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def bytes_as_characters(text):
    """Return a text as byte-level BPE holds it in its vocabulary (Radford et al. 2019)."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in own]
    return "".join(chr(byte if byte in own else 256 + others.index(byte)) for byte in text.encode())


WAYS = {
    "as it is": str,
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "NFKC": lambda text: unicodedata.normalize("NFKC", text),
    "capitals": str.upper,
    "uncased": lambda text: without_marks(text.lower()),
    "marks in another order": lambda text: unicodedata.normalize("NFD", text).replace(
        "\u0308", "\u0323\u0308"
    ),
    "soft hyphens": inside("\u00ad"),
    "zero-width joiners": inside("\u200d"),
    "word joiners": lambda text: "\u2060".join(text),
    "variation selectors": inside("\ufe0f"),
    "ligatures": lambda text: text.replace("ffi", "ﬃ").replace("fi", "ﬁ").replace("st", "ﬆ"),
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) if 33 <= ord(c) < 127 else c for c in text),
    "bold letters": lambda text: re.sub("[a-z]", lambda c: chr(0x1D41A + ord(c[0]) - 97), text),
    "letters of Cyrillic": lambda text: text.translate(
        str.maketrans("aeopcxyABEHKMOPCTX", "аеорсхуАВЕНКМОРСТХ")
    ),
    "struck through": lambda text: "".join(f"{c}\u0336" if c.isascii() else c for c in text),
    "order mark": lambda text: f"\ufeff{text}",
    "Windows lines": each("", between="\r\n"),
    "no-break spaces": each("", between="\u00a0"),
    "thin spaces": each("", between="\u2009"),
    "hyphens at line ends": lambda text: text.replace("night", "ni-\nght").replace("Nacht", "Na-\r\ncht"),
    "soft hyphens at line ends": lambda text: text.replace("watch", "wa\u00ad\ntch"),
    "underscores": each("_", "_"),
    "underscores between": each("", between="_"),
    "bold": each("**", "**"),
    "struck": each("~~", "~~"),
    "code": each("`", "`"),
    "escaped": each("\\*", "\\*"),
    "tags": each("<b>", "</b>"),
    "tags with attributes": each('<span style="color:red" class=x>', "</span>"),
    "line tags": each("", between="<br/>"),
    "table": each("<td>", "</td>", ""),
    "entities": each("", between="&nbsp;"),
    "colors": each("\x1b[1;31m", "\x1b[0m"),
    "bullets": each("• ", between="\n"),
    "quoted lines": each("> ", between="\n"),
    "headings": each("## ", between="\n"),
    "cells": each("| "),
    "quotes": each("“", "”"),
    "guillemets": each("« ", " »"),
    "hyphens": each("", between="-"),
    "dashes": each("", between=" — "),
    "other punctuation": lambda text: text.replace(",", ";").replace(".", "!"),
    "curly apostrophes": lambda text: text.replace("'", "\u2019"),
    "WordPiece": lambda text: " ".join(re.findall(r"\w+|[^\w\s]", text)),
    "pieces": lambda text: re.sub(r"(?<=\w{3})(?=\w)", " ##", text, count=9),
    "SentencePiece": lambda text: "▁" + text.replace(" ", "▁"),
    "byte-level BPE": bytes_as_characters,
    "bytes": lambda text: re.sub(
        "[^\x00-\x7f]+", lambda c: "".join(f"<0x{b:02X}>" for b in c[0].encode()), text
    ),
}
# Pairs of a text and its copy in another spelling.
COPIES = {f"{way}, {n}": (text, WAYS[way](text)) for way in WAYS for n, text in enumerate((ENGLISH, GERMAN))}
COPIES["Arabic points"] = VOCALIZED, without_marks(VOCALIZED)
COPIES["stretched Arabic"] = VOCALIZED, VOCALIZED.replace("ي", "يـ")
COPIES["Hebrew points"] = POINTED, without_marks(POINTED)
# Texts of scripts without blanks: a note, and another one of the same script.
UNSPACED = {
    "Chinese": ("患者昨夜留院观察一晚，今晨带绿色单据出院回家。", "今天天气很好，我们全家去公园散步了。"),
    "Japanese": ("患者は昨夜一晩入院して経過を観察した", "今日は天気がいいので公園へ散歩に行きました"),
    "Thai": ("ผู้ป่วยมีอาการปวดหัวและมีไข้สูงเป็นเวลาสามวัน", "วันนี้อากาศดีมากเราจะไปเดินเล่นที่สวนสาธารณะ"),
    "Lao": ("ຄົນເຈັບມີອາການເຈັບຫົວແລະມີໄຂ້ສູງເປັນເວລາສາມມື້", "ມື້ນີ້ອາກາດດີຫຼາຍພວກເຮົາຈະໄປຍ່າງຫຼິ້ນ"),
    "Khmer": ("អ្នកជំងឺមានអាការៈឈឺក្បាលនិងក្តៅខ្លួនខ្លាំងរយៈពេលបីថ្ងៃ", "ថ្ងៃនេះអាកាសធាតុល្អណាស់យើងនឹងទៅដើរលេង"),
    "Burmese": ("လူနာသည်ခေါင်းကိုက်ပြီးအဖျားကြီးနေသည်မှာသုံးရက်ရှိပြီ", "ဒီနေ့ရာသီဥတုအရမ်းကောင်းတယ်"),
    "mixed": ("患者Ann Hill昨夜住院观察3天后出院", "今天Bob Lee来了，我们去公园"),
}
# The same of scripts with blanks, written without them.
RUN_ON = {
    "Korean": (
        "환자는하룻밤관찰하고집으로돌아갔다그리고약을처방받았다",
        "오늘은날씨가좋아서가족과함께공원에산책하러갔습니다",
    ),
    "English": (
        "thepatientwaskeptonenighttowatchandthenhomewithagreenslip",
        "todaytheweatherissogoodthatallofuswentforawalkinthepark",
    ),
}
