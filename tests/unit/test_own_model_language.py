"""Catalogues of a first page: whole, true to their placeholders, and refused where they are broken."""

import copy
import hashlib
import os
import re
import string

import pytest
from babel.messages.pofile import read_po

import privaudit
from privaudit import _language
from privaudit._language import Language, Sentence
from privaudit._wording import WORDING
from privhelpers.errors import InvalidParameter

CODES = ["de", "es", "fr"]


def sentences(words=WORDING):
    """Return every sentence that can come to stand on the first page."""
    if isinstance(words, str):
        return {words} if words and not words.isdigit() else set()
    parts = [part for key, part in words.items() if key != "details"] if isinstance(words, dict) else words
    return set().union(*(sentences(part) for part in parts))


def entries(name):
    with (_language.CATALOGUES / name).open("rb") as file:
        catalogue = read_po(file, abort_invalid=True)
    return [entry for entry in catalogue if entry.id], catalogue


def placeholders(text):
    return sorted((name, spec) for _, name, spec, _ in string.Formatter().parse(text) if name is not None)


def test_the_languages_are_those_of_the_catalogues():
    assert _language.languages() == sorted([*CODES, "en"])


@pytest.mark.parametrize("code", CODES)
def test_a_catalogue_has_each_sentence_of_the_first_page_and_no_other(code):
    found, catalogue = entries(f"{code}.po")
    assert len(sentences()) > 100 and {entry.id for entry in found} == sentences()
    assert not catalogue.obsolete and len(found) == len({entry.id for entry in found})
    for entry in found:
        assert entry.string and not entry.fuzzy, entry.id
        assert placeholders(entry.string) == placeholders(entry.id), entry.id
        assert entry.string == entry.string.strip() and ("." in entry.id[-1:]) == ("." in entry.string[-1:])
    language = privaudit.read_language(code)
    assert language.code == code and all(language(entry.id, *range(7)) for entry in found)


def test_the_template_has_the_sentences_of_the_catalogues_with_nothing_translated():
    """In their order, and with the comment that says where each one stands."""
    template, _ = entries(_language.TEMPLATE)
    assert not any(entry.string for entry in template)
    for code in CODES:
        found, _ = entries(f"{code}.po")
        assert [(one.id, one.auto_comments) for one in template] == [(e.id, e.auto_comments) for e in found]


# What no report may say, in the languages of the catalogues; English is tested with the page itself.
PROMISES = {
    "de": r"\w*konform\w*|\w*anonym\w*|garantiert\w*|\w*geschützt\w*|(eliminier|beseitig)\w*"
    r"|(ist|sind|bleib(t|en)) (sicher|privat|harmlos|unbedenklich)",
    "es": r"conformes?|cumplen? con|an[oó]nim\w*|garantizad\w*|protegid\w*|elimina\w*"
    r"|(es|son|está|están) (segur|privad|inofensiv)[oa]s?",
    "fr": r"conformes?|anonym\w*|garantie?s? (par|que)|protégée?s?|élimin\w*"
    r"|(est|sont|reste|restent) (sûre?s?|privée?s?|sécurisée?s?|inoffensi(f|ve)s?)",
}
PROMISED = {
    "de": [
        "DSGVO-konform",
        "anonymisierte Texte",
        "garantiert",
        "Akten sind geschützt",
        "Das Modell ist sicher.",
    ],
    "es": ["conforme al RGPD", "datos anónimos", "garantizado", "protegidos", "El modelo es seguro"],
    "fr": ["conforme au RGPD", "données anonymes", "garanti par", "protégées", "Le modèle est sûr"],
}


@pytest.mark.parametrize("code", CODES)
def test_no_catalogue_promises_what_an_audit_cannot_know(code):
    promise = re.compile(rf"\b({PROMISES[code]})\b", re.IGNORECASE)
    assert all(promise.search(text) for text in PROMISED[code])
    found, _ = entries(f"{code}.po")
    assert {entry.string for entry in found if promise.search(entry.string)} == set()


def test_a_sentence_is_worded_with_what_it_was_made_of():
    loss = Sentence(WORDING["attack_test"], Sentence(WORDING["attacks"]["loss"]), Sentence("m.jsonl"))
    made = Sentence(WORDING["reasons"]["clearest"], loss)
    assert made == "the clearest is how well the model predicts a note (loss): m.jsonl"
    german = privaudit.read_language("de")
    assert german.word(made) == "am deutlichsten: wie gut das Modell eine Notiz vorhersagt (Loss), m.jsonl"
    assert german.word("as somebody wrote it: {0}") == "as somebody wrote it: {0}"
    assert german.word(copy.copy(made)) == german.word(made) and type(german.word(made)) is str
    assert Language("de", {})("{0} texts", 3) == "3 texts"


@pytest.mark.parametrize(
    ("code", "told"),
    [("de", "1.234 | 0,5"), ("es", "1.234 | 0,5"), ("fr", "1\u202f234 | 0,5"), ("en", "1,234 | 0.5")],
)
def test_numbers_have_the_form_of_the_language(code, told):
    language = privaudit.read_language(code)
    assert language("{0:,} | {1:g}", 1234, 0.5) == told and language.number("0.5") == told[-3:]
    assert language("{0}", "v1.5,x") == "v1.5,x"  # a name is no number


@pytest.mark.parametrize("code", ["xx", "", "DE", "../de", "report.pot", "de_DE:de", "\0", "d" * 5000])
def test_a_language_that_is_none_is_refused_with_those_there_are_and_the_cure(code):
    words = r"one of de, en, es, fr, or a catalogue of your own, such as LANGUAGE=nl\.po: copy .*report\.pot"
    with pytest.raises(InvalidParameter, match=words) as refused:
        privaudit.read_language(code)
    assert len(str(refused.value)) < 500 and str(refused.value).isprintable()
    assert (_language.CATALOGUES / _language.TEMPLATE).is_file()


HEAD = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("nl", 'msgid "{0:,} texts"\nmsgstr "{0} teksten"\n', r"line 4: .*'\{0:,\}' of its sentence, once"),
        ("nl", 'msgid "{0} texts"\nmsgstr "{0} van {0} teksten"\n', "once each"),
        ("nl", 'msgid "texts"\nmsgstr "{0.__class__}"\n', "'none' of its sentence, once each"),
        ("nl", 'msgid "texts"\nmsgstr "teksten {"\n', "'none' of its sentence, once each"),
        ("nl", 'message "texts"', "no catalogue"),
        ("nl", b'msgid "a"\nmsgstr "\xff"\n', "no catalogue"),
        ("nl", "# " + "x" * 10**6, "more than 1,000,000 bytes"),
        ("nl", 'msgid "a"\nmsgstr ""\n' + '"b"\n' * 250_000, "more than 1,000,000 bytes"),
        ("klingon", 'msgid "a"\nmsgstr "b"\n', "no catalogue"),
    ],
)
def test_a_catalogue_that_is_broken_is_refused(tmp_path, monkeypatch, name, text, reason):
    path = tmp_path / f"{name}.po"
    path.write_bytes(HEAD.encode() + (text if type(text) is bytes else text.encode()))
    with pytest.raises(InvalidParameter, match=reason):
        privaudit.read_language(str(path))
    monkeypatch.setattr(_language, "CATALOGUES", tmp_path)
    with pytest.raises(InvalidParameter, match=reason):
        privaudit.read_language(name)


def test_plural_forms_of_which_a_header_can_ask_for_a_billion_are_refused(tmp_path):
    """Babel makes a list of as many texts as the header says, for each message that has a plural."""
    head = HEAD.replace('"\n\n', 'Plural-Forms: nplurals=5000000; plural=n;\\n"\n\n')
    (tmp_path / "nl.po").write_text(head + 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "c"\n')
    with pytest.raises(InvalidParameter, match="it has plural forms"):
        privaudit.read_language(str(tmp_path / "nl.po"))


def test_a_charset_that_is_none_is_not_asked_for(tmp_path):
    (tmp_path / "nl.po").write_text(HEAD.replace("UTF-8", "nonsense") + 'msgid "texts"\nmsgstr "teksten"\n')
    assert privaudit.read_language(str(tmp_path / "nl.po"))("texts") == "teksten"


def test_a_catalogue_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "nl.po")
    with pytest.raises(InvalidParameter, match="no regular file"):
        privaudit.read_language(str(tmp_path / "nl.po"))


@pytest.mark.parametrize(
    "name", ["gone.po", ".po", "folder.po", "a\0b.po", f"{'d' * 5000}.po", "a\nb\x1b[31m.po"]
)
def test_a_catalogue_that_is_no_file_is_refused_by_its_name_in_one_line(tmp_path, monkeypatch, name):
    (tmp_path / "folder.po").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameter, match=r"^LANGUAGE=.*: is no catalogue") as refused:
        privaudit.read_language(name)
    assert len(str(refused.value)) < 400 and str(refused.value).isprintable()


def test_what_a_catalogue_that_was_brought_leaves_out_stays_english(tmp_path):
    """It may lie anywhere, and one of a language that is here replaces that one for the call."""
    text = (
        'msgid "Name:"\nmsgstr "Nome:"\n\n'
        '#, fuzzy\nmsgid "Date:"\nmsgstr "Dado?"\n\nmsgid "Decision:"\nmsgstr ""\n'
    )
    for name, code in (("pt_BR", "pt-BR"), ("de", "de"), ("en", "en")):
        (tmp_path / f"{name}.po").write_text(HEAD + text)
        language = privaudit.read_language(str(tmp_path / f"{name}.po"))
        assert language.code == code
        assert [language(one) for one in ("Name:", "Date:", "Decision:")] == ["Nome:", "Date:", "Decision:"]
        (digest,) = language.files.values()
        assert digest == hashlib.sha256((tmp_path / f"{name}.po").read_bytes()).hexdigest()
    assert privaudit.read_language("de")("Date:") == "Datum:" and not privaudit.read_language("de").files


def test_the_template_itself_is_a_catalogue_once_it_is_named_by_a_language(tmp_path):
    (tmp_path / "nl.po").write_bytes((_language.CATALOGUES / _language.TEMPLATE).read_bytes())
    language = privaudit.read_language(str(tmp_path / "nl.po"))
    assert language.code == "nl" and language("{0:,} canaries", 1234) == "1.234 canaries"


@pytest.mark.parametrize("name", ["de.\udcff", "nl-BE", "", "de.x", "d e"])
def test_a_catalogue_is_named_by_its_language_alone(tmp_path, name):
    path = tmp_path / f"{name}.po"
    path.write_bytes((_language.CATALOGUES / "de.po").read_bytes())
    with pytest.raises(InvalidParameter, match=r"^LANGUAGE=.*rename it by its language alone") as refused:
        privaudit.read_language(str(path))
    assert str(refused.value).isprintable()
    assert privaudit.read_language(str(path.rename(tmp_path / "es_419.po"))).code == "es-419"
