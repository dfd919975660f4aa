"""The door of profiles and parameters: files that are none, names and values that no chapter declares."""

from faults.harness import values
from faults.harness.registry import Case, Trial, fault
from faults.harness.report import ROOT

from bookmaker.runner import profiles
from privhelpers import parameters

PROFILES = ("smoke", "course", "study", "full")
CELL = (
    'profile: str = "toy"  # name\nseed: int = 0  # chance; in [0, 1000]\n'
    'share: float = 0.5  # a share; in (0, 1]\nkind: str = "pld"  # which; one of pld, rdp\n'
    "private: bool = True  # whether\nwidths: list[float] = [0.5]  # widths; in (0, 1]\n"
)


def _loaded(t: Trial, data: bytes, name: str = "mine"):
    root = t.place / "book"
    (root / "params").mkdir(parents=True)
    (root / "notebooks").symlink_to(ROOT / "notebooks")
    path = root / "params" / f"{name}.yml"
    path.write_bytes(data)
    return lambda: profiles.load(root, name)


@fault("bytes of a profile changed at random", seconds=8)
def _(t: Trial) -> Case:
    data = (ROOT / "params" / f"{t.choose(PROFILES)}.yml").read_bytes()
    # It is another profile then, and what it says is what counts: it loads as a whole, or is refused.
    call = _loaded(t, t.spoil(data))
    return Case(lambda: isinstance(call(), profiles.Profile), right=True)


@fault("text that is no profile", seconds=8)
def _(t: Trial) -> Case:
    texts = (
        *(
            b"- 1",
            b"3",
            b'"x"',
            b"shared: 3",
            b"shared: [1]",
            b"nobody: {a: 1}",
            b"? [a]\n: 1",
            b"a: &a [*a]",
        ),
        *(
            b"shared: {seed: !!python/name:os.system }",
            b"shared: {seed: !!bool maybe}",
            b"\xff\xfe",
            b"a: \0",
        ),
        *(
            b"shared: {seed: " + b"9" * 5000 + b"}",
            b"[" * 5000,
            b"{a: " * 2000,
            b"shared: {seed: 1",
            b"\t- x",
        ),
        *(
            b"x" * 20_000,
            b"shared: {seed: 1}\nshared: {seed: 1}",
            b"shared: {seed: 1, seed: 2}",
            b"--- \n---\na",
        ),
        *(b"a: &x 1\nb: *x", b"shared: {<<: {seed: 1}}", b"%YAML 9.9\n---\na: 1", "sh\u0430red: {}".encode()),
    )
    at = t.below(len(texts))
    return Case(_loaded(t, texts[at]))


@fault("a parameter of another type or out of its range", seconds=8)
def _(t: Trial) -> Case:
    text = t.choose(
        ("-1", "1.5", "true", "null", "[1]", "{a: 1}", "017", "1:30", ".nan", ".inf", "1e400", "x", "'1'")
    )
    return Case(_loaded(t, f"shared: {{seed: {text}}}".encode()))


@fault("budgets that are none", seconds=8)
def _(t: Trial) -> Case:
    text = t.choose(
        (
            "-1",
            "0",
            "[]",
            "[1, 1.0]",
            "[1, true]",
            "[[1]]",
            ".nan",
            "[.inf]",
            "1001",
            "'8'",
            "[1, 1.0000000001]",
            str(list(range(1, 60))),
            "null",
            "[null]",
            "{a: 1}",
            "1e-400",
        )
    )
    return Case(_loaded(t, f"private_training: {{target_epsilon: {text}}}".encode()))


@fault("a name close to that of a parameter", seconds=8)
def _(t: Trial) -> Case:
    name = t.choose(
        ("sed", "Seed", "seed_", "target_epsilons", "profile", "model", "models", "s" * 63, "s" * 64)
    )
    where = t.choose(("shared", "hipaa", "private_training"))
    return Case(_loaded(t, f"{where}: {{{name}: 1}}".encode()))


@fault("a name of a profile that is none")
def _(t: Trial) -> Case:
    name = t.choose((*values.HOSTILE_NAMES, *values.NO_TEXTS, "nothing-there"))
    return Case(lambda: profiles.load(ROOT, name))


@fault("a profile that is a link, a folder or a pipe")
def _(t: Trial) -> Case:
    call = _loaded(t, b"")
    path = t.place / "book" / "params" / "mine.yml"
    path.unlink()
    how = t.choose(("folder", "loop", "nowhere"))
    path.mkdir() if how == "folder" else path.symlink_to(path if how == "loop" else "nowhere")
    return Case(call)


@fault("text with characters that nobody sees", seconds=8)
def _(t: Trial) -> Case:
    bad = t.choose(("\\n", "\\u202e", "\\u200b", "\\0", "\\x1b[31m", "\\t", "\\u2028", "\\ud800", "\\a"))
    return Case(_loaded(t, f'hipaa: {{declared_by: "clinic{bad}x"}}'.encode()))


@fault("a cell of parameters that is none")
def _(t: Trial) -> Case:
    lines = CELL.splitlines()
    at = t.below(len(lines))
    lines[at] = t.choose(
        (
            "import os",
            "seed = 3",
            "x: int = 3",
            "x: int = 3  # no range",
            "x: set = 3  # a; in [0, 1]",
            "x: int",
            "x: int = open('/x')  # a; in [0, 1]",
            "x: int = 1  # a; in [2, 1]",
            "x: int = (",
            "x.y: int = 3  # a",
            "\x00",
            "x: int = 1 # a; in [0, 1]; in",
            "def f(): pass",
            "x: float = 1  # in [nan, 1]",
            "é é",
            '"""',
            lines[at - 1],
        )
    )
    return Case(lambda: parameters.declared_in("\n".join(lines), "toy"))


@fault("a value that a cell does not allow")
def _(t: Trial) -> Case:
    known = parameters.declared_in(CELL, "toy")
    pools = {
        "seed": (*values.NO_NUMBERS, *values.NEGATIVE, 1001, 1.5),
        "share": (*(v for v in values.NO_NUMBERS if not hasattr(v, "dtype")), *values.NEGATIVE, 0.0, 1.1),
        "kind": (*values.NO_TEXTS, *values.HOSTILE_NAMES, "PLD", "prv"),
        "profile": (*values.NO_TEXTS, "a\nb", "a\0b", "a\u202eb", "\ud800"),
        "private": (1, 0, "true", None, [], 1.0),
        "widths": (0.5, [0], [2.0], ["1"], [None], [[0.5]], None, "0.5", [float("nan")], (0.5,), {0.5: 1}),
        "nobody": (1,),
    }
    name = t.choose(pools)
    value = t.choose(pools[name])
    return Case(lambda: parameters.checked(known, {name: value}, "toy"))
