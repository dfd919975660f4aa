"""The door of what is published: a site, its PDF and a sweep that are not as they were made."""

import contextlib
import io
import os
import shutil
from pathlib import Path

import toy_site
from faults.harness import base, options, values
from faults.harness.registry import Case, Trial, fault

from bookmaker.runner import _sites, _verify, published
from bookmaker.site import __main__ as commands
from bookmaker.site import _serve
from privhelpers.artifacts import write_atomic
from privhelpers.errors import DamagedArtifact

MARKS = (published.COMPLETE, published.SEALED)


def _copied(t: Trial) -> tuple[Path, str, bool]:
    """Return a repository, and which of its sites the trial is about."""
    return t.copy(base.sites()), t.choose(base.PROFILES), bool(t.below(2))


def _read(root: Path, profile: str, solutions: bool, named: str = "") -> Path:
    """Return the folder of a site; what refuses it must name the file."""
    try:
        return published.finished(root, profile, solutions=solutions)
    except DamagedArtifact as error:
        if named not in str(error):
            raise RuntimeError(f"{named} is not named: {error}") from error
        raise


def _told(wrong: str) -> str:
    """Raise what a function says is wrong, so that it is judged as a refusal."""
    if wrong:
        raise DamagedArtifact(wrong)
    return wrong


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _replaced(t: Trial, path: Path, *ways: str) -> None:
    """Put something else in the place of a file, or of a folder."""
    how, away = t.choose(ways), path.with_name("away")
    path.rename(away)
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "link":
        path.symlink_to(shutil.move(away, path.parents[2] / "away"))
    elif how == "loop":
        path.symlink_to(path)
    elif how == "nowhere":
        path.symlink_to("nowhere")
    elif how == "huge":
        path.touch()
        os.truncate(path, 10**11)
    if how != "link" and path.parent.name != "runs":
        shutil.rmtree(away) if away.is_dir() else away.unlink()


@fault("a file of a site changed, added, gone or in another place")
def _(t: Trial) -> Case:
    root, profile, solutions = _copied(t)
    site = published.site(root, profile, solutions=solutions)
    path = t.choose([path for path in _files(site) if path.name not in (*MARKS, "build.log")])
    how, other = t.choose(("changed", "added", "gone", "renamed", "swapped")), path.with_name("more.html")
    named, data = path.relative_to(site).as_posix(), path.read_bytes()
    if how == "changed":
        path.write_bytes(spoiled := t.spoil(data))
        if spoiled == data:
            return Case(lambda: _read(root, profile, solutions), right=site, refusal=False)
    elif how == "added":
        other.write_bytes(t.choose((data, b"")))
        named = other.relative_to(site).as_posix()
    elif how == "gone":
        path.unlink()
    elif how == "renamed":
        path.rename(other)
        named = ""
    else:
        twin = t.choose([one for one in _files(site / _sites.HTML) if one != path])
        path.write_bytes(twin.read_bytes())
        twin.write_bytes(data)
        named = ""
    return Case(lambda: _read(root, profile, solutions, named), watch=(root,))


@fault("a hidden file or folder beside or in what is uploaded")
def _(t: Trial) -> Case:
    root, profile, solutions = _copied(t)
    site = published.site(root, profile, solutions=solutions)
    name = t.choose(
        (".htaccess", ".git/config", ".x/y.html", "._index.html", ".env", "a/.b/c", "..x", ".\u202ex")
    )
    where = t.choose(("", "_build", "_failed", _sites.HTML, f"{_sites.HTML}/a", _sites.DOCTREES))
    write_atomic(site / where / name, b"Redirect / https://evil.example/")
    call = lambda: _read(root, profile, solutions)  # noqa: E731
    # Below the pages a server would answer with it; elsewhere it is the system's, and no part of the site.
    hidden = (where in ("", "_build", "_failed") and name != "a/.b/c") or where == _sites.DOCTREES
    hidden = hidden or (name == "a/.b/c" and not where.startswith(_sites.HTML))
    return Case(call, right=site, refusal=False) if hidden else Case(call, watch=(root,))


@fault("a file, a folder or a mark of a site that is a link, a pipe or a folder")
def _(t: Trial) -> Case:
    root, profile, solutions = _copied(t)
    site = published.site(root, profile, solutions=solutions)
    path = t.choose([*(site / mark for mark in MARKS), *_files(site / "_build"), site / "_build", site])
    if path.is_dir():
        _replaced(t, path, "link", "loop", "nowhere", "gone")
    else:
        _replaced(
            t, path, "folder", "pipe", "link", "loop", "nowhere", "huge" if path.name in MARKS else "gone"
        )
    call = lambda: _read(root, profile, solutions)  # noqa: E731
    if path.name in MARKS and path.is_file():  # a link to the very list says the same
        return Case(call, right=site)
    return Case(call)


@fault("bytes of the mark or the list of a site changed")
def _(t: Trial) -> Case:
    root, profile, solutions = _copied(t)
    site = published.site(root, profile, solutions=solutions)
    path = site / t.choose(MARKS)
    data = path.read_bytes()
    path.write_bytes(spoiled := t.spoil(data))
    call = lambda: _read(root, profile, solutions)  # noqa: E731
    # Of the mark, what follows its two lines says nothing.
    unseen = spoiled == data or (path.name == published.COMPLETE and spoiled.startswith(data))
    return Case(call, right=site) if unseen else Case(call, watch=(root,))


@fault("a site in the place of another one, or beside another manifest")
def _(t: Trial) -> Case:
    root, profile, solutions = _copied(t)
    site = published.site(root, profile, solutions=solutions)
    how = t.choose(
        ("site", "site and manifest", "pages", "list", "mark and list", "manifest", "sealed again")
    )
    others = [
        (one, shown)
        for one in base.PROFILES
        for shown in (True, False)
        if (one, shown) != (profile, solutions)
    ]
    other, shown = t.choose(others)
    theirs = published.site(root, other, solutions=shown)
    manifest = site.parent / published.MANIFEST
    if how.startswith("site"):
        shutil.rmtree(site)
        shutil.copytree(theirs, site)
    elif how == "pages":
        shutil.rmtree(site / _sites.HTML)
        shutil.copytree(theirs / _sites.HTML, site / _sites.HTML)
    elif how.endswith("list"):
        for mark in MARKS if how.startswith("mark") else (published.SEALED,):
            shutil.copyfile(theirs / mark, site / mark)
    if how.endswith("manifest"):
        manifest.write_bytes(t.spoil(manifest.read_bytes()) + b" ")
    if how == "sealed again":  # by whoever makes sites: it is another one then, and its PDF is of the old one
        write_atomic(site / _sites.HTML / "index.html", b"new")
        published.seal_site(site)
        pdf = site.parent / published.PDFS[solutions]
        return Case(lambda: _told(_sites.pdf_damage(site, pdf)), watch=(root,))
    return Case(lambda: _read(root, profile, solutions), watch=(root,))


@fault("a list of a site, sealed by a stranger, with names that leave its folder")
def _(t: Trial) -> Case:
    root, profile, solutions = _copied(t)
    site = published.site(root, profile, solutions=solutions)
    os.mkfifo(root / "pipe")  # whoever opens it waits for ever
    pages = (
        "../../../pipe",
        "../manifest.json",
        "/dev/zero",
        "a\0b",
        "\ud800",
        "_build/html/../html/index.html",
    )
    name = t.choose((*pages, "", " ", "x" * 5000, "_build/html/index.html\r", "build.log", ".complete"))
    lines = (site / published.SEALED).read_bytes().splitlines(keepends=True)
    digest = t.choose((b"0" * 64, lines[0][:64], b"\xff" * 64, b""))
    lines.insert(t.below(len(lines) + 1), digest + b"  " + name.encode("utf-8", "surrogatepass") + b"\n")
    (site / published.SEALED).write_bytes(b"".join(lines))
    write_atomic(site / published.COMPLETE, "".join(f"{line}\n" for line in _sites.mark(site)).encode())
    return Case(lambda: _read(root, profile, solutions), watch=(site,))


@fault("a file with an odd name, sealed with the site or the sweep that it lies in")
def _(t: Trial) -> Case:
    root, profile, solutions = _copied(t)
    site = published.site(root, profile, solutions=solutions)
    letters = (
        b"a",
        b" ",
        b"\n",
        b"\r",
        b"\t",
        b"\x1b",
        b"\x7f",
        b"\xff",
        b"\\",
        b"*",
        "é".encode(),
        "\u2028".encode(),
    )
    name = b"".join(t.choose(letters) for _ in range(1 + t.below(4)))
    path = site / t.choose((_sites.HTML, "book")) / os.fsdecode(b"x" + name + b".png")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")

    def call():
        published.seal_site(site)
        return _read(root, profile, solutions)

    held = not any(letter < 32 or letter == 127 for letter in name) and b"\xff" not in name
    return Case(call, right=site, refusal=False) if held else Case(call, watch=(root,))


@fault("a PDF that is not of the site beside it")
def _(t: Trial) -> Case:
    root, profile, solutions = _copied(t)
    site = published.site(root, profile, solutions=solutions)
    pdf = site.parent / published.PDFS[solutions]
    seal = pdf.with_name(pdf.name + ".sha256")
    how = t.choose(("bytes", "seal", "other site", "both", "gone", "no site", "folder", "loop"))
    call = lambda: _told(_sites.pdf_damage(site, pdf))  # noqa: E731
    if how in ("bytes", "seal"):
        path = pdf if how == "bytes" else seal
        data = path.read_bytes()
        path.write_bytes(spoiled := t.spoil(data))
        if spoiled == data or (how == "seal" and spoiled.split()[:1] == data.split()[:1]):
            return Case(call, right="", watch=(root,))
    elif how in ("other site", "both"):
        twin = site.parent / published.PDFS[not solutions]
        shutil.copyfile(twin, pdf)
        if how == "both":
            shutil.copyfile(twin.with_name(twin.name + ".sha256"), seal)
    elif how == "gone":
        t.choose((pdf, seal)).unlink()
    elif how == "no site":
        (site / published.SEALED).unlink()
    else:
        _replaced(t, t.choose((pdf, seal)), how)
    return Case(call, watch=(root / "runs",) if how != "loop" else ())


def _book(t: Trial) -> Path:
    """Return a copy of the book, whose runs are the very files and whose other folders are links."""
    (root := t.place / "book").mkdir()
    for path in base.book().iterdir():
        if path.name == "runs":
            shutil.copytree(path, root / "runs", copy_function=os.link)
        else:
            (root / path.name).symlink_to(path)
    return root


def _write(path: Path, data: bytes) -> None:
    """Write other bytes to a file of `_book`, and none to the book itself."""
    path.unlink()
    path.write_bytes(data)


@fault("anything that a profile publishes changed", seconds=8)
def _(t: Trial) -> Case:
    root = _book(t)
    jobs, said = toy_site.jobs(root), io.StringIO()
    path = t.choose([path.relative_to(root) for path in _files(root / "runs" / "toy")])
    data, how = (root / path).read_bytes(), t.choose(("spoiled", "gone", "empty"))
    spoiled = t.spoil(data) if how == "spoiled" else b""
    if how == "gone":
        (root / path).unlink()
    else:
        _write(root / path, spoiled)
    # Of a seal its first word counts, and what follows the lines of a mark says nothing.
    unseen = how != "gone" and (
        (path.suffix == ".sha256" and spoiled.split()[:1] == data.split()[:1])
        or spoiled == data
        or (path.name == published.COMPLETE and spoiled.startswith(data))
    )

    def call() -> bool:
        with contextlib.redirect_stdout(said):
            holds = _verify.verify(root, jobs)
        if said.getvalue().count("\n") != 1:
            raise RuntimeError(f"not one line: {said.getvalue()!r}")
        return holds

    return Case(call, right=unseen, refusal=False, watch=(root,))


@fault("a sweep whose runs, records or list are not those of its table", seconds=8)
def _(t: Trial) -> Case:
    root = _book(t)
    folder, said = published.sweep(root, "grid"), io.StringIO()
    how = t.choose(("record", "record gone", "page", "list", "line", "cell gone", "table"))
    job = t.choose(toy_site.jobs(root))
    if how == "record":
        _write(root / job.sentinel, t.spoil((root / job.sentinel).read_bytes()) + b" ")
    elif how == "record gone":
        (root / job.sentinel).unlink()
    elif how == "page":
        _write(root / job.notebook, t.spoil((root / job.notebook).read_bytes()) + b" ")
    elif how == "cell gone":
        (root / "params").unlink()
    elif how == "table":
        _write(folder / "results.parquet", b"other rows")
    else:  # by a stranger who seals what he wrote
        path = folder / published.RUNS
        lines = path.read_bytes().splitlines(keepends=True)
        names = (
            "",
            "x",
            "/",
            "runs",
            "runs/",
            "runs/../x",
            "runs//x",
            "../../etc/passwd",
            "runs/none/artifacts/x",
        )
        name = t.choose(
            (*names, f"runs/{'x' * 300}/run.json", "runs/a\0/x", job.sentinel.replace("toy", "TOY"))
        )
        line = b"0" * 64 + b"  " + name.encode() + b"\n"
        lines[t.below(len(lines))] = t.spoil(lines[0]) + b" \n" if how == "list" else line
        _write(path, b"".join(lines))
        published.seal_site(folder)

    def call() -> bool:
        with contextlib.redirect_stdout(said):
            found, *_ = _verify._sweep(root, "grid")
        return bool(found) and not any("\n" in one for one in found)

    return Case(call, right=True, watch=(root,))


@fault("serve: a profile, solutions or a port that is none, or a site that is a link")
def _(t: Trial) -> Case:
    root = t.copy(base.sites())
    usual = {"profile": "toy", "solutions": t.choose(("", "yes", "no")), "port": "8000"}
    ports = (
        "0",
        "-1",
        "65536",
        "x",
        "1e3",
        "80.0",
        "9" * 5000,
        "\0",
        "８０８x",
        "0x50",
        "nan",
        " ",
        "8000 8001",
    )
    pools = {
        "profile": (*(name for name in values.HOSTILE_NAMES if name != "\ud800"), "none", "toy/site"),
        "solutions": ("No", "NO", "true", "0", " no", "no ", "\0", "public"),
        "port": ports,
        "link": ("whole", "pages", "first"),
    }
    which = t.choose(pools)
    value = t.choose(pools[which])
    if which == "link":
        site = published.site(root, "toy", solutions=usual["solutions"] != "no")
        if value == "first":
            (site / published.FIRST).touch()
        path = site / _sites.HTML if value == "pages" else site
        path.rename(t.place / "elsewhere")
        path.symlink_to(t.place / "elsewhere")
    else:
        usual[which] = value
    words = ["serve", *(f"--{name}={one}" for name, one in usual.items())]
    _serve.ThreadingHTTPServer = options.began
    commands.repository_root = lambda: root
    return Case(
        lambda: options.run_command(t.place, words, main=commands.main, home=root),
        watch=(root / "runs",),
        given=True,
    )
