"""The door of a report's language: catalogues that somebody brings, and what is none."""

import os

from faults.harness.registry import Case, Trial, fault

from privhelpers import own_model
from privhelpers.own_model import _language

HEAD = 'msgid ""\nmsgstr "Plural-Forms: nplurals={}; plural=n;\\n"\n\n'
KINDS = ("gone", "folder", "pipe", "device", "long", "one line", "plural forms", "utf-16", "zeros")


@fault("bytes of a catalogue changed at random")
def _(t: Trial) -> Case:
    path = t.place / "nl.po"
    path.write_bytes(t.spoil((_language.CATALOGUES / t.choose(("de.po", "report.pot"))).read_bytes()))
    return Case(lambda: own_model.read_language(str(path)).code, right="nl", watch=(path,), given=True)


@fault("a header of a catalogue that says strange things")
def _(t: Trial) -> Case:
    name = t.choose(("Content-Type", "Plural-Forms", "POT-Creation-Date", "Language", "Language-Team", "X"))
    value = t.choose(
        ("", "x", "text/plain; charset=zip", "nplurals=99999999; plural=n;", "9" * 5000, "<%", "=;=")
    )
    path = t.place / "nl.po"
    path.write_text(f'msgid ""\nmsgstr "{name}: {value}\\n"\n\nmsgid "Name:"\nmsgstr "Naam:"\n')
    return Case(lambda: own_model.read_language(str(path)).code, right="nl", watch=(path,), given=True)


@fault("a file in the place of a catalogue that is none")
def _(t: Trial) -> Case:
    path, kind = t.place / "nl.po", t.choose(KINDS)
    entry = 'msgid "Name:"\nmsgstr "{}"\n'
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind != "gone":
        text = {
            "long": entry.format("x\\n") * (10**6 // len(entry)) + "#" * 10**6,
            "one line": entry.format("x" * (10**6 + 1)),
            "plural forms": HEAD.format(10**9) + 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "c"\n',
            "utf-16": HEAD.format(2) + entry.format("Naam:"),
            "zeros": "\0" * 1000,
        }[kind]
        path.write_bytes(text.encode("utf-16" if kind == "utf-16" else "utf-8"))
    return Case(lambda: own_model.read_language(str(path)), given=True)


@fault("a catalogue whose name is no language, or whose sentence has other placeholders")
def _(t: Trial) -> Case:
    names = (
        "xx",
        "zz_ZZ",
        "de-DE",
        "d",
        "nl.nl",
        "NL_nl_nl_nl",
        "n l",
        "nl\u202e",
        "q" * 200,
        "_",
        "1",
        "de__",
        "\n",
    )
    name = t.choose((*names, "nl"))
    words = (
        "{0}",
        "{1} {0}",
        "{0!r}",
        "{0:>99999999}",
        "{0.__class__}",
        "{",
        "}",
        "{{0}}",
        "{x}",
        "{0} {0}",
        "{0[0]}",
    )
    told = t.choose(words) if name == "nl" else "{0} teksten"
    path = t.place / f"{name}.po"
    path.write_text(f'msgid "{{0:,}} texts"\nmsgstr "{told}"\n')
    return Case(lambda: own_model.read_language(str(path)).code, watch=(path,), given=True)
