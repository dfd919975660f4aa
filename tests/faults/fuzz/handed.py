"""What authors, students, readers and peers hand over: files of the book, notebooks, sites, bundles, keys."""

import base64
import contextlib
import copy
import io
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

import nbformat
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from faults.fuzz.door import Door
from faults.fuzz.mutations import mutated
from faults.harness.judge import wrong_message
from faults.harness.report import ROOT
from nbformat import NotebookNode, v4

from bookmaker.runner import (
    _archive,
    _bundle,
    _cluster,
    _first_chapters,
    _manifest,
    _sites,
    notebooks,
    profiles,
    written,
)
from bookmaker.sweep import __main__ as sweep
from bookmaker.sweep import _grid
from bookmaker.teaching import _grading, _launch, _sandbox
from bookmaker.teaching._assignments import Assignment
from privhelpers.artifacts import to_json
from privhelpers.errors import DamagedArtifact, InvalidParameter

# Files that an author edits.

AUTHORED = (
    ("_config.yml", b'title: A\nhtml:\n  baseurl: https://a.org/b\nrepository: {url: "https://a.org/c"}\n'),
    (
        "_toc.yml",
        b"root: a\nparts:\n- caption: One\n  chapters:\n  - file: notebooks/NN_hipaa\n  - file: book/b\n",
    ),
    ("book/index.yml", b"hipaa:\n  [Safe Harbor, k-anonymity]\ncomposition: [budget]\n"),
    (
        "book/quizzes/hipaa.yml",
        b"two-answers:\n  asks: What do two cost?\n  see: The sum\n  numbers: {sum: 1 + 1}\n"
        b"  right: {says: two, why: They add up.}\n  wrong:\n  - {says: one, why: No.}\n"
        b"  - {says: '3', why: No.}\n",
    ),
    (
        "recipe.yml",
        b"scrub: true\ndedup: 0.8\nfilter: 6\n"
        b"dp: {target_epsilon: 8, target_delta: 1e-5,\n  sample_rate: 0.1, max_grad_norm: 1}\n",
    ),
    ("cluster/mine/config.yaml", b"executor: slurm\njobs: 3\ndefault-resources:\n  slurm_partition: cpu\n"),
)


def _authored(home: Path, name: str, data: bytes) -> object:
    from bookmaker.site import _entrance, _quizzes
    from privhelpers import defenses

    for usual in AUTHORED[:2]:
        (home / usual[0]).write_bytes(usual[1])
    (home / name).write_bytes(data)
    if name == "_config.yml":
        return _entrance.address(home), _launch.repository(home)
    if name == "_toc.yml":
        return _first_chapters._first_part(home, [])
    if name == written.INDEX:
        return written.index(home)
    if name.startswith("cluster"):
        return _cluster._executor(home, "mine")
    if name == "recipe.yml":
        with contextlib.chdir(home):
            return defenses.read_recipe(Path(name))
    return _quizzes.bank(home, "hipaa")


# A site and its PDF.

PAGE, PDF, MANIFEST = b"<p>ours</p>", b"%PDF-1.7 ours", b"{}\n"
SITE, PRINTED = "runs/toy/site", "runs/toy/site.pdf"


def _hashed(data: bytes, name: str) -> bytes:
    return f"{sha256(data).hexdigest()}  {name}\n".encode()


LIST = _hashed(PAGE, "_build/index.html")
MARKED = (
    (f"{SITE}/{_sites.SEALED}", LIST),
    (
        f"{SITE}/{_sites.COMPLETE}",
        _hashed(LIST, "../../toy/site/.sealed") + _hashed(MANIFEST, "../manifest.json"),
    ),
    (f"{PRINTED}.sha256", _hashed(PDF, "site.pdf") + _hashed(LIST, "site/.sealed")),
)


def _site(home: Path, name: str, data: bytes) -> object:
    """A list, whose mark is right, or a mark or a seal is changed; `make verify` compares them."""
    for usual, right in MARKED:
        (home / usual).write_bytes(data if usual == name else right)
    site = home / SITE
    if name.endswith(_sites.SEALED):
        (site / _sites.COMPLETE).write_text("".join(f"{line}\n" for line in _sites.mark(site)))
    wrong = _sites.pdf_damage(site, home / PRINTED) if "pdf" in name else _sites.damage(site)
    if wrong:
        raise DamagedArtifact(f"the site: {wrong}")
    return None


# Evidence bundles, and the keys that sign them.

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)


def _pem(key: object) -> bytes:
    kind, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, kind, plain)


@cache
def _bundles() -> tuple[tuple[str, bytes], ...]:
    claim = {"epsilon": 4.0, "delta": 1e-5, "certified": 0.5, "refuted": False}
    files = {
        "report.html": b"<p>flagged</p>",
        "report.json": to_json({"outcome": "undecided", "canaries": {"claim": claim}}),
    }
    read = [{"name": "m.jsonl", "sha256": "3" * 64, "role": "trained on"}]
    about = _bundle.Evidence(
        "audit", "Audit of “net”", "2026-01-01T00:00:00Z", read, {"seed": 0}, {"torch": "2"}
    )
    plain, signed = _bundle.make(about, files), _bundle.make(about, files, KEY)
    return (("plain.zip", plain), ("plain.zip", plain), ("signed.zip", signed))


def _repacked(draw: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a bundle of which one file says something else, with the right hashes; or plain damage."""
    if draw.random() < 0.3:
        return mutated(draw, data, other)
    files = _archive.unpack(data)
    name = draw.choice((*sorted(files), _bundle.STATEMENT))
    changed = mutated(draw, files[name], files[_bundle.STATEMENT])
    with contextlib.suppress(ValueError, RecursionError, InvalidParameter):
        changed = to_json(json.loads(changed))
    before, files[name] = dict(files), changed
    for one, follows in (
        (name, _bundle.CRATE),
        (name, _bundle.STATEMENT),
        (_bundle.CRATE, _bundle.STATEMENT),
    ):
        if one != follows:
            old, new = (sha256(whose[one]).hexdigest().encode() for whose in (before, files))
            files[follows] = files[follows].replace(old, new)
    return _archive.pack(files)


def _verified(home: Path, name: str, data: bytes) -> object:
    """Read a bundle as `make verify` does; what a signature is about cannot change and hold."""
    (home / name).write_bytes(data)
    key, said = str(home / "public.pem") if name == "signed.zip" else "", io.StringIO()
    with contextlib.redirect_stdout(said):
        holds = _bundle.verify(str(home / name), key)
    told = said.getvalue().removesuffix("\n")
    if not holds:
        raise DamagedArtifact(told)
    if wrong := wrong_message(told):
        raise AssertionError(f"of a bundle that holds: {wrong}")
    if key and data != dict(_bundles())[name]:
        raise AssertionError("a signed bundle was changed, and holds")
    return told


@cache
def _keys() -> tuple[tuple[str, bytes], ...]:
    other = ec.derive_private_key(7, ec.SECP256R1())
    return (("key.pem", _pem(KEY)), ("theirs.pem", PUBLIC), ("key.pem", _pem(other)))


def _encoded(draw: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a changed PEM file; often one of whose content the bytes were changed."""
    head, *body, foot = data.splitlines()
    if draw.random() < 0.4:
        return mutated(draw, data, other)
    changed = mutated(draw, base64.b64decode(b"".join(body)), other)
    return b"\n".join((head, base64.b64encode(changed), foot, b""))


def _key(home: Path, name: str, data: bytes) -> object:
    with contextlib.chdir(home):  # a refusal names the path as it was given
        Path(name).write_bytes(data)
        if name == "key.pem":
            return _bundle.private_key(name)
        return _bundle._key(name, serialization.load_pem_public_key, Ed25519PublicKey)


# Notebooks: a student's, and a chapter with its solutions.


def _cell(source: str, kind: str = "code", **meta: object) -> NotebookNode:
    made = v4.new_code_cell if kind == "code" else v4.new_markdown_cell
    return made(source, id=f"c{len(source)}", metadata=meta)


@cache
def _assignment() -> Assignment:
    usual = {"grade": False, "solution": False, "locked": True, "schema_version": 3, "task": False}
    cells = [
        _cell("student = 'anna'", nbgrader=usual | {"grade_id": "setup"}),
        _cell(
            "def twice(x):\n    return 2 * x",
            nbgrader=usual | {"grade_id": "twice", "solution": True, "locked": False},
        ),
        _cell("assert twice(2) == 4", nbgrader=usual | {"grade_id": "test", "grade": True, "points": 2}),
    ]
    return Assignment("toy", v4.new_notebook(cells=cells), "")


class _Box:
    """A process that gets what it is sent, and answers nothing."""

    ended = ""

    def open(self) -> "_Box":
        return self

    def run(self, code: str, *, name: str) -> None:
        json.dumps(_sandbox.pack(("run", name, (code,), {}))).encode()

    def call(self, *_: object) -> int:
        return 4

    def close(self) -> None:
        pass


@cache
def _submitted() -> tuple[tuple[str, bytes], ...]:
    return (("anna/toy/toy.ipynb", nbformat.writes(_assignment().notebook).encode()),)


def _graded(home: Path, name: str, data: bytes) -> object:
    (home / name).write_bytes(data)
    graded = _grading.grade(_assignment(), home / name, "anna", _Box())
    if graded.note:
        raise InvalidParameter(f"{name}: {graded.note}")
    return graded


SOLVED = """(nb-hipaa)=
## A section

````{exercise} Coins
:label: ex-coin
How often heads?
````

````{solution} ex-coin
:class: dropdown
Half of the throws show heads.
```python
throws = [1, 0]
```
That was all of it.
````

Words after it.

:::{note}
A colon fence.
:::
"""


@cache
def _solved() -> tuple[tuple[str, bytes], ...]:
    cells = [_cell(SOLVED, "markdown"), _cell("heads = 0.5", tags=["solution"]), _cell("print(1)")]
    whole = nbformat.writes(v4.new_notebook(cells=cells)).encode()
    return (*[("solved.md", SOLVED.encode())] * 3, ("solved.ipynb", whole))


@cache
def parser() -> object:
    """Return the parser of the site."""
    from markdown_it.renderer import RendererHTML
    from myst_parser.config.main import MdParserConfig
    from myst_parser.parsers.mdit import create_md_parser

    enabled = yaml.safe_load((ROOT / "_config.yml").read_text())["parse"]["myst_enable_extensions"]
    return create_md_parser(MdParserConfig(enable_extensions=set(enabled)), RendererHTML)


def _answers(text: str) -> Iterator[str]:
    """Yield what stands in the solutions of a text, as the parser of the site sees them."""
    for token in parser().parse(text):
        words = token.info.split() if token.type in ("fence", "colon_fence") else []
        if words and (name := re.fullmatch(r"\{(\S+)\}", words[0])):
            yield from [token.content] if name[1].lower() == "solution" else _answers(token.content)


def _public(home: Path, name: str, data: bytes) -> object:
    """Take the solutions out of a chapter; no line that stood in one alone may be left."""
    if name.endswith(".md"):
        text = data.decode("utf-8", "replace")
        notebook = NotebookNode(cells=[_cell(text, "markdown"), _cell("heads = 0.5", tags=["solution"])])
    else:
        (home / name).write_bytes(data)
        notebook = notebooks.read(home / name)
    from bookmaker.site import exercises

    found = exercises.exercises(notebook, name)
    left = exercises.without_solutions(copy.deepcopy(notebook.cells), chapter=name)
    before = Counter(line.strip() for cell in notebook.cells for line in cell.source.splitlines())
    after = Counter(line.strip() for cell in left for line in cell.source.splitlines())
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    try:
        answers = [one for text in texts for one in _answers(text)]
    except RecursionError:  # lists in each other, more than a page can hold
        return found
    inside = Counter(line.strip() for one in answers for line in one.splitlines())
    for line in inside:
        if re.search(r"\w", line) and after[line] > max(0, before[line] - inside[line]):
            raise AssertionError(f"of a solution came out: {line!a}")
    return found


# Catalogues of translations.

SENTENCES = {
    "Made on {0}.": ("today",),
    "{0:,} of {1:,} texts": (1200, 3400),
    "Verdict": (),
    "{0:.1f} of 100": (2.5,),
}
CATALOGUE = """msgid ""
msgstr ""
"Language: nl\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#. first_page.made
msgid "Made on {0}."
msgstr "Gemaakt op {0}."

#, fuzzy
msgid "{0:,} of {1:,} texts"
msgstr "{0:,} van {1:,} teksten"

#: report.py:7
msgid "Verdict"
msgstr ""
"Oor"
"deel"

msgid "{0:.1f} of 100"
msgstr "{0:.1f} op 100"

#~ msgid "old"
#~ msgstr "oud"
"""


def _worded(home: Path, name: str, data: bytes) -> object:
    from privhelpers.own_model import _language

    with contextlib.chdir(home):
        Path(name).write_bytes(data)
        language = _language.read_language(name)
    return [language(sentence, *values) for sentence, values in SENTENCES.items()]


# The options of a sweep.

OPTIONS = (("seed", b"0 1 2"), ("epsilon", b"0.5 1 8"), ("architecture", b"tiny-gpt2 small-llama"))


def _swept(home: Path, name: str, data: bytes) -> object:
    """Read an option as `make sweep` gives it, and check the profile of the first cell."""
    text, said = data.decode("utf-8", "surrogateescape").replace("\0", ""), io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            given = sweep._parser().parse_args([f"--{name}s={text}"])
    except SystemExit:
        raise InvalidParameter(said.getvalue().splitlines()[-1]) from None
    cells = _grid.cells("toy", architectures=given.architectures or ["tiny-gpt2"], seeds=given.seeds)
    content = yaml.safe_dump(_grid._given(home, cells[0], given.epsilons or [1.0])).encode()
    return profiles.checked(home, cells[0].profile, profiles.derived(cells[0].profile), content)


def prepare(home: Path) -> None:
    """Make what these doors read beside the changed file."""
    for folder in ("book/quizzes", "cluster/mine", f"{SITE}/_build", "anna/toy", "params"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    for name, data in (
        (f"{SITE}/_build/index.html", PAGE),
        (PRINTED, PDF),
        (f"runs/toy/{_manifest.MANIFEST}", MANIFEST),
        ("public.pem", PUBLIC),
        ("params/toy.yml", b"private_training: {target_epsilon: 8.0}\n"),
    ):
        (home / name).write_bytes(data)


DOORS = (
    Door("authors", lambda: AUTHORED, _authored, 5),
    Door("site", lambda: MARKED, _site, 4, says="the site"),
    Door("bundle", _bundles, _verified, 3, change=_repacked),
    Door("keys", _keys, _key, 3, change=_encoded),
    Door("submission", _submitted, _graded, 5),
    Door("solutions", _solved, _public, 3),
    Door("language", partial(tuple, [("nl.po", CATALOGUE.encode())]), _worded, 3),
    Door("sweep", lambda: OPTIONS, _swept, 1, says="toy-"),
)
