"""The languages of a report's first page: one catalogue of gettext each, named by its language.

Some lie in `locale/`, beside the template of all; anybody may bring another one. A catalogue gives a sentence
of `wording.yml` in its language, and keeps its placeholders. What it leaves out stays English, sentence by
sentence.
"""

import hashlib
import re
import string
from collections.abc import Mapping
from numbers import Number
from pathlib import Path
from types import MappingProxyType

from babel import Locale, UnknownLocaleError
from babel.messages.pofile import PoFileError, read_po
from babel.numbers import get_decimal_symbol, get_group_symbol

from privhelpers import validate
from privhelpers.artifacts import read_bounded
from privhelpers.errors import InvalidParameter

CATALOGUES = Path(__file__).with_name("locale")
TEMPLATE = "report.pot"  # there: every sentence, untranslated
_MOST_BYTES = 1_000_000  # of a catalogue: forty times our longest, and read in a second
_PLACEHOLDER = re.compile(r"{[^{}]*}")


class Sentence(str):
    """An English sentence that knows what it was made of, so that another language can word it too.

    Args:
        template: with placeholders of `str.format`.
        values: for the placeholders; those that are sentences are worded too.

    >>> Sentence("{0} of {1:,} patients", 3, 1200)
    '3 of 1,200 patients'
    """

    def __new__(cls, template: str, *values: object) -> "Sentence":
        """Make the English sentence."""
        sentence = super().__new__(cls, template.format(*values))
        sentence.template, sentence.values = template, values
        return sentence

    def __getnewargs__(self) -> tuple:
        """Return what a copy is made of."""
        return self.template, *self.values


class Language(string.Formatter):
    """Words sentences in one language, with its decimal and group separators.

    Args:
        code: of the language, such as "de" or "pt_BR".
        translated: sentence by English sentence.
        files: SHA-256 by name of the catalogue that was brought, if one was.

    Raises:
        UnknownLocaleError, ValueError: no language has this code.

    >>> language = Language("de", {"{0:,} of {1:,} texts": "{0:,} von {1:,} Texten"})
    >>> language("{0:,} of {1:,} texts", 12, 3400), language("{0:.1f} of 100", 2.5)
    ('12 von 3.400 Texten', '2,5 of 100')
    """

    def __init__(
        self, code: str, translated: Mapping[str, str], files: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Look up how the language writes numbers."""
        locale = Locale.parse(code)
        self.code = str(locale).replace("_", "-")
        self.files = files
        self._translated = translated
        self._marks = str.maketrans({",": get_group_symbol(locale), ".": get_decimal_symbol(locale)})

    def __call__(self, template: str, *values: object) -> str:
        """Return a sentence of `wording.yml`, with its values, in this language."""
        return self.vformat(self._translated.get(template, template), values, {})

    def word(self, sentence: str) -> str:
        """Return a sentence that was made in English in this language; other text is returned as it is."""
        return self(sentence.template, *sentence.values) if isinstance(sentence, Sentence) else sentence

    def number(self, written: str) -> str:
        """Return a number that is written in the English way as this language writes it."""
        return written.translate(self._marks)

    def format_field(self, value: object, format_spec: str) -> str:
        """Return one value of a sentence in this language."""
        if isinstance(value, Sentence):
            return self.word(value)
        written = format(value, format_spec)
        return self.number(written) if isinstance(value, Number) else written


ENGLISH = Language("en", {})


def languages() -> list[str]:
    """Return the languages whose catalogues lie here."""
    return sorted({ENGLISH.code, *(path.stem for path in CATALOGUES.glob("*.po"))})


def read_language(code: str) -> Language:
    """Return a language by its code, or from a catalogue that somebody brings.

    Args:
        code: such as "de"; or the path of a catalogue, which is named by its language, such as "own/nl.po".

    Raises:
        InvalidParameter: there is no such catalogue, it cannot be read as UTF-8, is too large, has plural
            forms, or a translation has other placeholders than its sentence.
    """
    if code == ENGLISH.code:
        return ENGLISH
    told, brought = f"LANGUAGE={validate.shown(code)}", code.endswith(".po")
    if not brought and code not in languages():
        raise InvalidParameter(
            f"{told}: must be one of {', '.join(languages())}, or a catalogue of your own, such as "
            f"LANGUAGE=nl.po: copy {CATALOGUES / TEMPLATE}, translate it, and name it by its language"
        )
    path = Path(code) if brought else CATALOGUES / f"{code}.po"
    try:
        if not re.fullmatch("[A-Za-z0-9_]+", path.stem):
            raise ValueError("rename it by its language alone, such as nl.po or pt_BR.po")
        data = read_bounded(path, _MOST_BYTES)
        if "msgid_plural" in (text := data.decode("utf-8")):  # its header may ask for a billion forms
            raise ValueError("it has plural forms, and no sentence here has any")
        entries = [entry for entry in read_po(text.split("\n"), abort_invalid=True) if entry.id]
        files = {path.name: hashlib.sha256(data).hexdigest()} if brought else {}
        language = Language(path.stem, {one.id: one.string for one in entries if _done(one)}, files)
    except (OSError, PoFileError, UnicodeError, UnknownLocaleError, ValueError) as error:
        reason = validate.shown(getattr(error, "strerror", None) or str(error))
        raise InvalidParameter(f"{told}: is no catalogue of a language that is known ({reason})") from None
    for entry in entries:
        if _done(entry) and _placeholders(entry.string) != _placeholders(entry.id):
            raise InvalidParameter(
                f"{told}, line {entry.lineno}: {validate.shown(entry.string)} must have the placeholders "
                f"{validate.shown(' '.join(_placeholders(entry.id)) or 'none')} of its sentence, once each"
            )
    return language


def _done(entry: object) -> bool:
    return bool(entry.string) and isinstance(entry.string, str) and not entry.fuzzy


def _placeholders(text: str) -> list[str]:
    """Return the placeholders of a text; a brace that belongs to none counts as one too.

    >>> _placeholders("{1:,} of {0}"), _placeholders("a { b")
    (['{0}', '{1:,}'], ['{'])
    """
    found = _PLACEHOLDER.findall(text)
    return sorted(found) + re.findall("[{}]", _PLACEHOLDER.sub("", text))
