"""The door of what an author edits: configuration, contents, index, quizzes; named in a line."""

import yaml
from faults.harness import base
from faults.harness.registry import Case, Trial, fault

from bookmaker.runner import written
from bookmaker.site import _entrance, _quizzes, _staging
from bookmaker.teaching import _launch
from privhelpers.errors import PrivHelpersError

CONFIG, TOC, INDEX, QUIZ = "_config.yml", "_toc.yml", "book/index.yml", "book/quizzes/comparison.yml"
READ = {
    CONFIG: (written.config, _entrance.address, _launch.repository),
    TOC: (written.contents, lambda root: _staging.contents(root, [])),
    INDEX: (written.index,),
    QUIZ: (lambda root: _quizzes.bank(root, "comparison"),),
}
VALUES = (
    *(
        None,
        True,
        0,
        -1,
        1.5,
        "",
        "x",
        "a\nb",
        "\0",
        [],
        ["x"],
        {},
        {"x": 1},
        {1: 2},
        [[]],
        [None],
        [{}],
        "x" * 10_000,
    ),
    *(
        {"file": "../../x"},
        [{"file": "x"}],
        {"caption": "x", "chapters": None},
        float("nan"),
        10**400,
        "\u202e",
    ),
)
TEXTS = (
    *(
        b"",
        b" ",
        b"\xff",
        b"\0",
        b"a: [",
        b"- a",
        b"3",
        b"'x'",
        b"a: 2024-13-01",
        b"\t- x",
        b"a: &a [*a]",
        b"*a",
        b"--- \n---\na",
    ),
    *(
        b"[" * 50_000,
        b"{a: " * 20_000,
        b"- " * 20_000,
        b"a:\n" * 3,
        b"? [a]\n: 1",
        b"a: !!python/name:os.system",
        b"!!set {a}",
    ),
    *(
        b"%YAML 9.9\n---\na: 1",
        b"a: " + b"9" * 5000,
        b"\xff\xfea\0",
        b"\xef\xbb\xbf[]",
        b"a: b: c",
        b"!!binary x",
        b"a: 1:99:99",
    ),
    *(
        b"a: !!int x",
        b"a: !!timestamp x",
        b"? {a: b}\n: c",
        b"a: !!float .x",
        b"<<: 3",
        b"a: \x80",
        b"\xed\xa0\x80",
    ),
)


def _book(t: Trial, file: str) -> bytes:
    for name in READ:
        path = t.place / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((base.book() / name).read_bytes())
    return (t.place / "root" / file).read_bytes()


def _spoiled(t: Trial, file: str, data: bytes, *, refused: bool = False) -> Case:
    """Whatever stands there, it is read as what its author may edit, or refused by name."""
    root = t.place / "root"
    (root / file).write_bytes(data)
    reader = t.choose(READ[file])

    def call() -> bool:
        try:
            reader(root)
        except PrivHelpersError as error:
            if file not in str(error):
                raise RuntimeError(f"{file} is not named: {error}") from error
            raise
        return True

    return Case(call, watch=(root,)) if refused else Case(call, right=True, watch=(root,))


@fault("bytes of a file that an author edits changed at random")
def _(t: Trial) -> Case:
    file = t.choose(READ)
    return _spoiled(t, file, t.spoil(_book(t, file)))


@fault("text that is no file of an author")
def _(t: Trial) -> Case:
    file = t.choose(READ)
    _book(t, file)
    return _spoiled(t, file, TEXTS[t.below(len(TEXTS))])


@fault("a value of another kind in a file that an author edits")
def _(t: Trial) -> Case:
    """As deep as the file goes, a value gives way to one of another kind, or a key goes or comes."""
    file = t.choose(READ)
    whole = yaml.safe_load(_book(t, file))
    place, depth = whole, t.below(6)
    for _ in range(depth):
        inner = place[t.choose(place if isinstance(place, dict) else range(len(place)))]
        if not isinstance(inner, dict | list) or not inner:
            break
        place = inner
    at = t.choose(place if isinstance(place, dict) else range(len(place)))
    how = t.choose(("value", "value", "gone", "more"))
    value = VALUES[t.below(len(VALUES))]
    t.note(value)
    if how == "gone":
        del place[at]
    elif how == "value" or isinstance(place, list):
        place[at] = value
    else:
        place[t.choose(("x", "", 3, None, True, "a\nb", "x" * 5000))] = value
    return _spoiled(t, file, yaml.safe_dump(whole, allow_unicode=True).encode())
