"""The door of evidence: a bundle whose bytes, files, ledger or statement are not those that were made."""

import json
from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from faults.harness.registry import Case, Trial, fault

from bookmaker.runner import _archive, _bundle
from privhelpers.ledger import Terms
from privhelpers.ledger._chain import opening_line

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
ABOUT = _bundle.Evidence("audit", "Audit", "2026-01-01T00:00:00Z", [], {"seed": 0}, {"torch": "2"})
STRANGE = (None, True, -1, 1e308, "", "x", [], {}, [[]], {"sha256": 1}, "\0", 10**400)


def _ledger(delta: float) -> bytes:
    hashes = dict.fromkeys(("data", "parameters", "code"), "0" * 64)
    return opening_line(
        Terms(
            run="dp", target_epsilon=8.0, delta=delta, noise_multiplier=1.5, sample_rate=0.04, steps=40,
            max_grad_norm=1.0, accountant="rdp", mode="release", fingerprint=hashes,
        )
    )  # fmt: skip


@cache
def _made(signed: bool) -> bytes:
    files = {"report.html": b"<p>ours</p>" * 20, "report.json": b"{}", "ledgers/ledger.jsonl": _ledger(1e-5)}
    return _bundle.make(ABOUT, files, KEY if signed else None)


def _checked(t: Trial, data: bytes, signed: bool) -> Case:
    public = KEY.public_key() if signed and t.below(2) else None
    return Case(lambda: _bundle.check(data, public))


@fault("bytes of a bundle changed")
def _(t: Trial) -> Case:
    signed = bool(t.below(2))
    data = _made(signed)
    spoiled = t.spoil(data)
    case = _checked(t, spoiled, signed)
    return case if spoiled != data else Case(case.call, right=_bundle.check(data))


@fault("a file of a bundle changed, added, renamed or gone, in an archive that holds")
def _(t: Trial) -> Case:
    signed = bool(t.below(2))
    files = _archive.unpack(_made(signed))
    name, how = t.choose(sorted(files)), t.choose(("changed", "added", "renamed", "gone"))
    if how == "changed":
        files[name] = t.spoil(files[name]) + b" "
    elif how == "added":
        files["more"] = files[name]
    else:
        data = files.pop(name)
        files |= {"more": data} if how == "renamed" else {}
    return _checked(t, _archive.pack(files), signed)


@fault("a ledger of a bundle swapped, and its hash with it")
def _(t: Trial) -> Case:
    files, name = _archive.unpack(_made(False)), "ledgers/ledger.jsonl"
    old, files[name] = _bundle.sha256(files[name]), _ledger(t.choose((1e-6, 1e-4, 2e-5)))
    files[_bundle.CRATE] = files[_bundle.CRATE].replace(old.encode(), _bundle.sha256(files[name]).encode())
    return _checked(t, _restated(files, lambda statement: None), False)


def _restated(files: dict, change) -> bytes:
    statement = json.loads(files[_bundle.STATEMENT])
    for one in statement["subject"]:
        one["digest"]["sha256"] = _bundle.sha256(files[one["name"]])
    change(statement)
    return _archive.pack(files | {_bundle.STATEMENT: _bundle.to_json(statement)})


@fault("a value of a bundle's statement of another kind")
def _(t: Trial) -> Case:
    def change(statement: dict) -> None:
        place = statement
        for _ in range(1 + t.below(4)):
            inner = (
                place[t.choose(place if isinstance(place, dict) else range(len(place)))] if place else None
            )
            if not isinstance(inner, dict | list) or not inner:
                break
            place = inner
        name = t.choose(place if isinstance(place, dict) else range(len(place)))
        place[name] = t.choose([one for one in STRANGE if one != place[name]])

    return _checked(t, _restated(_archive.unpack(_made(False)), change), False)


@fault("a statement of another type, version or form about the right files")
def _(t: Trial) -> Case:
    """The ledger inside is right and every hash fits: what another program states is not ours to confirm."""
    types = ("_type", "predicateType")
    which = t.choose((*types, "form", "outcome", "key", "epsilon", "worth", "subject", "more"))
    other = t.choose(
        ("https://in-toto.io/Statement/v0.1", "urn:x-privai-leak:evidence:2", "0" * 64, "", None, 1, [], {})
    )

    def change(statement: dict) -> None:
        predicate = statement["predicate"]
        row = predicate["registry"]["guarantees"][0]
        if which in types:
            statement[which] = other
        elif which == "epsilon":
            row["epsilon"] = t.choose((1e-300, row["epsilon"] + 1e-12, -1.0, float(10**300), None, "1"))
        elif which == "worth":
            row["holds"] = t.choose(("a guarantee", "", None, 1))
        elif which == "subject":
            statement["subject"].append(statement["subject"][t.below(len(statement["subject"]))])
        elif which == "more":
            t.choose((statement, predicate, row))["more"] = other
        else:
            predicate[which] = other

    files = _archive.unpack(_made(False))
    case = _checked(t, _restated(files, change), False)
    same = (which == "outcome" and other == "") or (which == "key" and other is None)
    # Words of another version are not compared, and this is said.
    told = "made by another version" if which == "form" and other == "0" * 64 else ""
    if told:
        return Case(lambda: told in case.call()[1], right=True)
    return Case(case.call, right=_bundle.check(_made(False))) if same else case
