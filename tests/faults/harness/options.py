"""The door of commands: options that are none, each refused with exit code 2 before the work begins."""

import contextlib
import io
import os

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed448, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from faults.harness import base
from faults.harness.registry import Case, Trial, fault
from faults.harness.report import ROOT
from faults.harness.scarce import Exhausted

from bookmaker.runner import _audit, _cli, _limits, processes
from privhelpers import own_model
from privhelpers.errors import InvalidParameter

CALLS = {"check": 97_000, "verify": 97_000}  # of ours in a command, a few more
BAD_NUMBERS = ("x", "1e", "0x1", "--1", "1,5", "1 2", "\0", "é", "$(id)", "None", "1" * 5000 + "x")


class _Began(Exception):
    """The long work began."""


def began(*_: object, **__: object) -> None:
    """Stand in for the long work of a command."""
    raise _Began


def run_command(place, arguments: list[str], work: object = began, *, main=_cli.main, home=ROOT) -> bool:
    """Run a command in this child; return whether the work began, and raise the refusal it printed.

    Args:
        place: where audits would go.
        arguments: of the command.
        work: what stands in for an audit's.
        main: the command.
        home: the repository.
    """
    processes.die_with_parent = lambda **_: None
    own_model.open_model = own_model.read_files = work
    _audit.processes.prepare = lambda *_: None  # its server is a child of another process
    _audit.HOME = place / "audits"
    os.chdir(home)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = main(arguments)
    except _Began:
        return True
    except SystemExit as left:  # argparse: its usage, then one sentence
        code = left.code
    line = said.getvalue().strip().splitlines()
    if code != 2 or not line or "Traceback" in said.getvalue():
        raise RuntimeError(f"exit code {code}: {said.getvalue()[-300:]}")
    if line[0].startswith("refused: ") and len(line) > 1:
        raise InvalidParameter("\n".join(line))
    raise InvalidParameter(line[-1])


def _audited(t: Trial, **given: object) -> Case:
    members, others, _ = base.notes()
    usual = {
        "model": base.folder(),
        "records": members,
        "holdout": others,
        "out": t.place / "out",
        "pdf": "no",
    }
    words = [f"--{name}={value}" for name, value in (usual | given).items()]
    return Case(lambda: run_command(t.place, ["audit", *words]), watch=(t.place,), given=True)


@fault("audit: a number that is none")
def _(t: Trial) -> Case:
    name = t.choose(("epsilon", "delta", "seed"))
    given = {"epsilon": "1", "delta": "1e-5", "canaries": base.notes()[2]} if name != "seed" else {}
    return _audited(t, **{**given, name: t.choose(BAD_NUMBERS)})


@fault("audit: a number out of its range")
def _(t: Trial) -> Case:
    pools = {
        "seed": ("-1", "-2", "1.5", "nan", "inf", "-0.5", "1e3"),
        "epsilon": ("-1", "0", "nan", "inf", "-inf", "1e999"),
        "delta": ("0", "1", "2", "-1e-5", "nan", "inf"),
    }
    name = t.choose(pools)
    given = {"epsilon": "1", "delta": "1e-5", "canaries": base.notes()[2]} if name != "seed" else {}
    return _audited(t, **{**given, name: t.choose(pools[name])})


@fault("audit: half of a claim")
def _(t: Trial) -> Case:
    name = t.choose(("epsilon", "delta"))
    return _audited(t, **{name: "0.5", "canaries": base.notes()[2]})


@fault("audit: a claim that nothing tests")
def _(t: Trial) -> Case:
    return _audited(t, epsilon="4", delta="1e-5")


@fault("audit: a number of patients or notes that is none")
def _(t: Trial) -> Case:
    name = t.choose(("patients", "notes"))
    return _audited(t, **{name: t.choose((*BAD_NUMBERS, "0", "-1", "1.5", "nan", "inf", "none", "every"))})


@fault("audit: columns that are none")
def _(t: Trial) -> Case:
    bad = (
        "text",
        "text=",
        "=x",
        "name=x",
        "text=a text=b",
        "text=a patient_id=a",
        "text='a",
        "\0=x",
        "a=b=c",
    )
    return _audited(t, columns=t.choose(bad))


@fault("audit: synthetic texts beside a model")
def _(t: Trial) -> Case:
    name = t.choose(("base", "reference", "show", "model"))
    given = {"model": "", "synthetic": base.notes()[0], name: "yes" if name == "show" else base.folder()}
    return _audited(t, **given)


@fault("audit: a word that is neither yes nor no")
def _(t: Trial) -> Case:
    name = t.choose(("pdf", "show"))
    return _audited(t, **{name: t.choose(("perhaps", "2", "y", "-", "\0", "ye s", "TRUEE", "é"))})


@fault("audit: a file or folder that is not there")
def _(t: Trial) -> Case:
    name = t.choose(("model", "synthetic", "records", "holdout", "canaries", "base", "reference"))
    value = t.choose(("no/such", "\0", "x" * 300, "/dev/null/x", "a\nb", "~", "$HOME/x", "x/" * 2500))
    return _audited(t, **{name: value})


@fault("audit: something needed is left out")
def _(t: Trial) -> Case:
    return _audited(t, **{t.choose(("model", "records", "holdout")): ""})


@fault("audit: a place for reports that cannot be")
def _(t: Trial) -> Case:
    (t.place / "file").touch()
    (t.place / "loop").symlink_to("loop")
    (t.place / "there").mkdir()
    out = t.choose(("a\0b", "a\nb", "\x1b[31m", "x" * 300, "file/under", "loop", "there", "file", "a\u202eb"))
    return _audited(t, out=t.place / out)


@fault("audit: the usual options begin the work")
def _(t: Trial) -> Case:
    case = _audited(
        t, seed=t.below(10**6), show=t.choose(("", "yes", "no", "NO", "1")), pdf=t.choose(("no", "0"))
    )
    return Case(case.call, right=True, refusal=False)


@fault("a command with a profile that is none")
def _(t: Trial) -> Case:
    command = t.choose(("check", "verify", "collect", "profile", "reference"))
    name = t.choose(("../x", "", "nobody", "a/b", "x" * 300, "a\0b", "a\nb", "CON:", "é", "-x", "$(id)"))
    return Case(lambda: run_command(t.place, [command, f"--profile={name}"]), given=True)


@fault("audit: a language that is none")
def _(t: Trial) -> Case:
    broken = t.place / "nl.po"
    broken.write_bytes(t.choose((b"\xff", b'msgid "a', b'msgid "texts"\nmsgstr "{0} teksten"\n')))
    names = (*BAD_NUMBERS, "xx", "DE", "../de", "de.po", str(broken), "en_US:en", "d" * 5000)
    return _audited(t, language=t.choose(names))


@fault("a command or option that is not there")
def _(t: Trial) -> Case:
    words = t.choose(
        (
            ["chek"],
            [],
            ["check", "--profil3=x"],
            ["book", "--cores=x"],
            ["book", "--cores=0"],
            ["book", "--cores=-3"],
            ["run"],
            ["check", "extra"],
            ["run", "--job=x", "--threads=0"],
            ["book", "--cores=1e3"],
        )
    )
    return Case(lambda: run_command(t.place, words), given=True)


@fault("memory runs out in a command", seconds=10)
def _(t: Trial) -> Case:
    """It ends with one line, as every failure does; called again, it says what it says undisturbed."""
    words = [t.choose(CALLS), "--profile=toy"]
    at, usual = 1 + t.below(CALLS[words[0]]), _cli._parser
    _cli.repository_root = base.book

    def told(under: contextlib.AbstractContextManager) -> tuple[int, str, str]:
        _cli._parser = lambda: (under.__enter__(), usual())[1]  # within the command, not before it
        out, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(out):
            try:
                return _cli.main(words), out.getvalue(), said.getvalue()
            finally:
                under.__exit__(None, None, None)

    right = told(contextlib.ExitStack())

    def call() -> tuple[int, str, str]:
        code, out, said = told(Exhausted(at))
        one_line = said.startswith(("failed: ", "refused: ")) and said.count("\n") == 1
        if not right[1].startswith(out) or (code and not one_line):
            raise RuntimeError(f"exit code {code}: {out[-200:]}{said}")
        return told(contextlib.ExitStack())

    return Case(call, right=right, refusal=False, watch=(base.book() / "runs",))


@fault("a limit of hours that is none")
def _(t: Trial) -> Case:
    value = t.choose((*BAD_NUMBERS, "0", "-1", "nan", "inf", "721", "1e9", "-inf"))
    return Case(lambda: _limits.hours(value))


@fault("a run that is not in the plan")
def _(t: Trial) -> Case:
    job = t.choose(("nobody", "", "../x", "hipaa_x", "HIPAA", "a\nb", "private_training"))
    return Case(lambda: run_command(t.place, ["run", "--profile=smoke", f"--job={job}"]), given=True)


@fault("audit: OUT and BUNDLE at, in or above each other, or where something is")
def _(t: Trial) -> Case:
    """Refused before the work, and what lies there stays as it is."""
    (t.place / "old").mkdir()
    (t.place / "old" / "report.html").write_text("an old report")
    (t.place / "old.zip").write_bytes(b"an old bundle")
    (t.place / "link").symlink_to("old")
    (t.place / "closed").symlink_to("closed")
    pairs = (
        *(
            ("a", "a"),
            ("a", "a/b.zip"),
            ("a/b", "a"),
            ("a", "./a"),
            ("a/", "a//b/c.zip"),
            ("old/../a", "a/x.zip"),
        ),
        *(
            ("a", "old.zip"),
            ("a", "old"),
            ("a", "link"),
            ("old", "b.zip"),
            ("old.zip/a", "b.zip"),
            ("link", "b.zip"),
        ),
        *(
            ("a", "old.zip/b.zip"),
            ("a", "closed/b.zip"),
            ("link/a", "old/a/b.zip"),
            ("old/a", "link/a"),
            ("closed", "b"),
        ),
    )
    out, bundle = t.choose(pairs)
    return _audited(t, out=t.place / out, bundle=t.place / bundle)


@fault("audit: a bundle in a folder that is missing begins the work")
def _(t: Trial) -> Case:
    bundle = t.choose(("b.zip", "x/b.zip", "x/y/z/b.zip", "a.zip", "aa/b.zip"))
    case = _audited(t, out=t.place / "a", bundle=t.place / bundle)
    return Case(case.call, right=True, refusal=False, watch=(t.place,))


@fault("audit or verify: a key, a bundle and a ledger that do not fit together")
def _(t: Trial) -> Case:
    secret, public = t.place / "key.pem", t.place / "public.pem"
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    key, other = (
        Ed25519PrivateKey.generate(),
        t.choose((x25519.X25519PrivateKey, ed448.Ed448PrivateKey)).generate(),
    )
    plain, locked = serialization.NoEncryption(), serialization.BestAvailableEncryption(b"x")
    kinds = {secret: (key, plain), t.place / "x.pem": (other, plain), t.place / "closed.pem": (key, locked)}
    for path, (one, words) in kinds.items():
        path.write_bytes(one.private_bytes(form[0], serialization.PrivateFormat.PKCS8, words))
    public.write_bytes(key.public_key().public_bytes(*form))
    (t.place / "spoiled.pem").write_bytes(t.spoil(secret.read_bytes()[:60]))
    (t.place / "long.pem").write_bytes(secret.read_bytes() + b" " * 20_000)
    bad = t.choose(
        ("public.pem", "x.pem", "closed.pem", "spoiled.pem", "long.pem", "gone.pem", "", "\0", "a\nb")
    )
    ledger = t.copy(base.ledger())
    ways = {
        "key alone": {"key": secret},
        "ledger alone": {"ledger": ledger},
        "no key": {"key": t.place / bad, "bundle": t.place / "b.zip"},
        "no ledger": {"ledger": t.place / bad, "bundle": t.place / "b.zip"},
        "texts shown": {"bundle": t.place / "b.zip", "show": "yes"},
    }
    how = t.choose((*ways, "verify key alone", "verify with a secret"))
    if how in ways:
        return _audited(t, **ways[how])
    file = t.place / "b.zip"
    file.write_bytes(b"PK")
    words = ["verify", "--profile=smoke", f"--key={secret}"]
    words += [f"--bundle={file}"] if how.endswith("secret") else []
    return Case(lambda: run_command(t.place, words), watch=(t.place,), given=True)


@fault("audit: settings with which nothing could be flagged")
def _(t: Trial) -> Case:
    """So few dealings that no p-value is small enough are refused, and no more."""
    alpha = 10 ** (-4 * float(t.rng.random())) * 0.49
    tests, dealings = 1 + t.below(400), 1 + t.below(20_000)
    enough = tests / (dealings + 1) <= alpha
    call = lambda: own_model.Settings(alpha=alpha, permutations=dealings).require_dealings(tests)  # noqa: E731
    return Case(call, right=None, refusal=False) if enough else Case(call)
