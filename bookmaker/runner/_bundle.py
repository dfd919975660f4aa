"""An evidence bundle: a report with what it was made of, as one file that somebody else can verify.

A bundle is an archive of which every byte counts (`_archive`). In it stand the files;
`ro-crate-metadata.json`, which describes them and the hash of every input (RO-Crate 1.2); and
`statement.json`, an in-toto statement (version 1) whose subjects are the SHA-256 of all of these. Where a key
is given, `statement.dsse.json` is the signed envelope of the statement (DSSE 1.0, Ed25519, by the package
cryptography).

Whoever verifies writes the archive anew and compares every byte, compares every file with the statement, and
reads the guarantees from the ledgers again, so that another ledger needs another statement. With the version
that made the bundle, description and statement are made anew as well. Without a signature all this shows
damage and careless edits: whoever can write a bundle can write another one that holds as well.
"""

import base64
import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from bookmaker.runner import _archive, _seals
from privhelpers.artifacts import opened, parse_json, parse_yaml, read_bounded, to_json
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact, PrivHelpersError
from privhelpers.text import inert, rounded_up

CRATE, STATEMENT, ENVELOPE = "ro-crate-metadata.json", "statement.json", "statement.dsse.json"
LEDGERS, REPORT = "ledgers/", "report.json"
HOLDS = "holds"  # what a guarantee is worth, in words
IN_TOTO, PREDICATE = "https://in-toto.io/Statement/v1", "urn:x-privai-leak:evidence:1"
PAYLOAD = "application/vnd.in-toto+json"
WORDS = parse_yaml(Path(__file__).with_name("bundle.yml").read_text(encoding="utf-8"))
# Whose words and form a bundle has: this file's and theirs.
FORM = hashlib.sha256(
    Path(__file__).read_bytes() + Path(__file__).with_name("bundle.yml").read_bytes()
).hexdigest()
TERMS = ("run", "unit", "adjacency", "delta", "accountant", "sampler", "sample_rate", "noise_multiplier")
TERMS += ("max_grad_norm", "target_epsilon", "mode")
LONGEST_KEY = 10_000  # bytes
MOST_LEDGERS = 60  # more than budgets of a profile; each is counted anew, which can take a second or two
LONGEST = 200  # characters of a title in a line that is printed
KEYS = "`openssl genpkey -algorithm ed25519 -out key.pem` makes one, and `openssl pkey -in key.pem -pubout \
-out public.pem` its public half"


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What a bundle is about; its figures stand in its files.

    Attributes:
        kind: "audit" or "profile".
        title: what was audited.
        made: when, in UTC, as ISO 8601 says it.
        inputs: name, SHA-256 and role of each file that it was made from and that is not in the bundle.
        parameters, versions: by name.
        captions: of files that need one, by name.
    """

    kind: str
    title: str
    made: str
    inputs: list[dict[str, str]]
    parameters: dict[str, Any]
    versions: dict[str, str]
    captions: dict[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def stated(cls, values: Mapping[str, Any]) -> "Evidence":
        """Return what the statement of a stranger says, or raise TypeError for a text in a list's place."""
        about, kinds = cls(**values), (str, str, str, list, dict, dict, dict)
        if [type(value) for value in vars(about).values()] != list(kinds):
            raise TypeError("what it is about is of other types")
        return about


def sha256(data: bytes) -> str:
    """Return the hexadecimal SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def _report(files: Mapping[str, bytes]) -> dict[str, Any]:
    return parse_json(files[REPORT], REPORT) if REPORT in files else {}


def _outcome(kind: str, files: Mapping[str, bytes]) -> str:
    return _report(files).get("outcome", "") if kind == "audit" else ""


def require_counted(record: Any, name: str) -> Any:
    """Return what a ledger says, refusing one that counts steps alone.

    Args:
        record: a `ledger.Record`.
        name: what a message calls it.

    Raises:
        InvalidParameter: a part under study stood in for one that is counted, so that it states no epsilon.
    """
    if record.epsilon is None:
        parts = inert("; ".join(record.terms.not_counted))[:200]
        raise InvalidParameter(f"{name}: states no guarantee, for parts of its run are not counted ({parts})")
    return record


def _guarantees(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """Return an entry of a registry for each ledger, and for a claim that the report tests."""
    from privhelpers import ledger  # which takes a second to load, and every run loads this module

    rows, names = [], sorted(name for name in files if name.startswith(LEDGERS))
    if len(names) > MOST_LEDGERS:
        raise InvalidParameter(f"has {len(names):,} ledgers; {MOST_LEDGERS} at most are counted")
    for name in names:
        record = require_counted(ledger.verify(files[name], name), name)
        row = {term: getattr(record.terms, term) for term in TERMS}
        row |= {"epsilon": record.epsilon, "steps": record.steps, "planned_steps": record.terms.steps}
        rows.append(row | {"ledger": name, "head": record.head})
    if claim := (_report(files).get("canaries") or {}).get("claim"):
        row = {
            "run": "claim",
            "unit": "record",
            "adjacency": "add/remove",
            "accountant": None,
            "sampler": None,
        }
        rows.append(row | {name: claim[name] for name in ("epsilon", "delta", "certified", "refuted")})
    return rows


def _brought(kind: str, row: Mapping[str, Any]) -> bool:
    """Tell whether a guarantee is that of a ledger which somebody laid beside an audit."""
    return kind == "audit" and "ledger" in row


def _worth(kind: str, row: Mapping[str, Any]) -> str:
    """Return in words what a guarantee is worth."""
    mode = WORDS["modes"][row.get("mode", "claim")]
    return f"{mode}; {WORDS['brought']}" if _brought(kind, row) else mode


def _printed(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the bounds of a guarantee in few digits: shorter numbers promise no more."""
    return {name: rounded_up(row[name]) for name in ("epsilon", "delta")}


def _answer(asked: Mapping[str, str], guarantees: list[dict[str, Any]]) -> str:
    """Return what the bundle says to a topic of NIST SP 800-226."""
    if "says" in asked:
        return asked["says"]
    forms = asked.get("claimed", asked["each"]), asked["each"]
    return (
        "; ".join(forms["ledger" in row].format(**row | _printed(row)) for row in guarantees) or WORDS["none"]
    )


def _crate(about: Evidence, files: Mapping[str, bytes], signed: bool) -> bytes:
    """Return the description of a bundle, RO-Crate 1.2."""
    parts = [
        {"@id": name, "@type": "File", "name": about.captions.get(name, name), "sha256": sha256(files[name])}
        for name in sorted(files)
    ]
    parts += [{"@id": n, "@type": "File", "name": n} for n in (STATEMENT, *[ENVELOPE] * signed)]
    for part in parts:
        part["encodingFormat"] = WORDS["media"][part["@id"].rpartition(".")[2]]
    given = [
        {"@id": f"#input-{n}", "@type": "CreativeWork", "name": one["name"], "sha256": one["sha256"],
         "description": f"{one['role']}; read, and not in this bundle"}
        for n, one in enumerate(about.inputs, 1)
    ]  # fmt: skip
    given += [
        {"@id": f"#parameter-{n}", "@type": "PropertyValue", "name": name, "value": json.dumps(value)}
        for n, (name, value) in enumerate(sorted(about.parameters.items()), 1)
    ]
    tools = [
        {"@id": f"#software-{name}", "@type": "SoftwareApplication", "name": name, "softwareVersion": version}
        for name, version in sorted(about.versions.items())
    ]
    action = {"@id": "#made", "@type": "CreateAction", "name": about.title, "endTime": about.made}
    action |= {"instrument": _ids(tools), "object": _ids(given), "result": _ids(parts)}
    root = {"@id": "./", "@type": "Dataset", "name": about.title, "datePublished": about.made}
    root |= {"description": WORDS["released"][about.kind], "license": "none is given; ask whoever sent it"}
    root |= {"hasPart": _ids(parts), "mentions": _ids([action])}
    itself = {"@id": CRATE, "@type": "CreativeWork", "about": {"@id": "./"}}
    itself["conformsTo"] = {"@id": "https://w3id.org/ro/crate/1.2"}
    graph = [itself, root, *parts, *given, *tools, action]
    return to_json({"@context": "https://w3id.org/ro/crate/1.2/context", "@graph": graph})


def _ids(entities: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"@id": entity["@id"]} for entity in entities]


def _described(about: Evidence, files: Mapping[str, bytes], key: str | None, rows: list) -> dict[str, bytes]:
    """Return the files with their description and the statement about all of them, `rows` of guarantees."""
    guarantees = [row | {HOLDS: _worth(about.kind, row)} for row in rows]
    registry = {"released": WORDS["released"][about.kind], "not_protected": WORDS["not_protected"]}
    predicate = {"about": vars(about), "registry": registry | {"guarantees": guarantees}, "key": key}
    predicate["form"] = FORM
    predicate["outcome"] = _outcome(about.kind, files)
    predicate["nist_sp_800_226"] = [
        {"topic": one["topic"], "question": one["question"], "answer": _answer(one, guarantees)}
        for one in WORDS["nist"]
    ]
    every = {**files, CRATE: _crate(about, files, key is not None)}
    subjects = [{"name": name, "digest": {"sha256": sha256(every[name])}} for name in sorted(every)]
    statement = {"_type": IN_TOTO, "subject": subjects, "predicateType": PREDICATE, "predicate": predicate}
    return {**every, STATEMENT: to_json(statement)}


def _key(path: str, load: Callable[[bytes], Any], kind: type) -> Any:
    try:
        key = load(read_bounded(Path(path), LONGEST_KEY))
    except (ValueError, TypeError, UnsupportedAlgorithm, InternalError):  # the last, of OpenSSL
        key = None
    except OSError as error:
        raise MissingArtifact(f"KEY={inert(path)}: cannot be read ({error.strerror})") from None
    if not isinstance(key, kind):
        half = "private" if kind is Ed25519PrivateKey else "public"
        raise InvalidParameter(
            f"KEY={inert(path)}: is no {half} Ed25519 key in PEM without a passphrase; {KEYS}"
        )
    return key


def private_key(path: str) -> Ed25519PrivateKey | None:
    """Return the key in a PEM file, or None for no name.

    Raises:
        PrivHelpersError: there is no such file, or no such key in it.
    """

    def load(data: bytes) -> Any:
        return serialization.load_pem_private_key(data, password=None)

    return _key(path, load, Ed25519PrivateKey) if path else None


def _key_id(key: Ed25519PublicKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return sha256(key.public_bytes(serialization.Encoding.DER, form))


def _encoded(statement: bytes) -> bytes:
    """Return what is signed: the pre-authentication encoding of DSSE 1.0."""
    return f"DSSEv1 {len(PAYLOAD)} {PAYLOAD} {len(statement)} ".encode() + statement


def _envelope(statement: bytes, key: str, signature: bytes) -> bytes:
    plain = {"payload": base64.b64encode(statement).decode(), "payloadType": PAYLOAD}
    signed = {"keyid": key, "sig": base64.b64encode(signature).decode()}
    return to_json({**plain, "signatures": [signed]})


def make(about: Evidence, files: Mapping[str, bytes], key: Ed25519PrivateKey | None = None) -> bytes:
    """Return the bundle of some files.

    Args:
        about: what they are.
        files: contents by name; ledgers have names that start with `ledgers/`, the report is `report.json`.
        key: to sign with.

    Raises:
        PrivHelpersError: a ledger among them is damaged, or they are too large.
    """
    about = Evidence(**json.loads(to_json(vars(about))))  # as whoever verifies reads it
    name = _key_id(key.public_key()) if key else None
    every = _described(about, files, name, _guarantees(files))
    if key:
        every[ENVELOPE] = _envelope(every[STATEMENT], name, key.sign(_encoded(every[STATEMENT])))
    return _archive.pack(every)


def _signature(files: Mapping[str, bytes], key: str | None, public: Ed25519PublicKey | None) -> str:
    """Return what the signature says, refusing one that does not hold."""
    if key is None and ENVELOPE not in files:
        if public:
            raise DamagedArtifact("is not signed, and a key was named")
        return "unsigned, so it shows damage, not who made it"
    if key is None or ENVELOPE not in files:
        raise DamagedArtifact(f"{ENVELOPE} {'was added' if key is None else 'is gone'}")
    signature = parse_json(files[ENVELOPE], ENVELOPE)["signatures"][0]["sig"]
    signature = base64.b64decode(signature, validate=True)
    if _envelope(files[STATEMENT], key, signature) != files[ENVELOPE]:
        raise DamagedArtifact(f"{ENVELOPE} is not about {STATEMENT}")
    if not public:
        return f"signed by a key ({key[:16]}) that was not checked against one you trust"
    try:
        public.verify(signature, _encoded(files[STATEMENT]))
    except InvalidSignature:
        raise DamagedArtifact("is not signed by this key") from None
    if _key_id(public) != key:
        raise DamagedArtifact("names another key than the one that signed it")
    return f"signed by the key that was named ({key[:16]})"


def _compared(files: Mapping[str, bytes], public: Ed25519PublicKey | None) -> tuple[dict[str, Any], str]:
    statement = parse_json(files[STATEMENT], STATEMENT)
    kind = statement["_type"], statement["predicateType"]
    if kind != (IN_TOTO, PREDICATE):
        raise DamagedArtifact(f"is of another kind than {PREDICATE}: verify it with the program that made it")
    predicate = statement["predicate"]
    present = {name: sha256(data) for name, data in files.items() if name not in (STATEMENT, ENVELOPE)}
    stated = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    if wrong := _seals.difference(stated, present):
        raise DamagedArtifact(wrong)
    if len(statement["subject"]) > len(stated) or to_json(statement) != files[STATEMENT]:
        raise DamagedArtifact(f"{STATEMENT} is not written as such statements are")
    told = _signature(files, predicate["key"], public)
    described = {one.get("@id"): one.get("sha256") for one in parse_json(files[CRATE], CRATE)["@graph"]}
    inputs = {f"#input-{n}": one["sha256"] for n, one in enumerate(predicate["about"]["inputs"], 1)}
    hashed = inputs | {name: digest for name, digest in present.items() if name != CRATE}
    if {name: digest for name, digest in described.items() if digest} != hashed:
        raise DamagedArtifact(f"{CRATE} does not describe these files and inputs")
    guarantees = [
        {name: row[name] for name in row if name != HOLDS} for row in predicate["registry"]["guarantees"]
    ]
    counted = _guarantees(files)  # once: a ledger can take seconds
    if guarantees != counted:
        raise DamagedArtifact("its guarantees are not those of its ledgers and its report")
    if predicate["outcome"] != _outcome(predicate["about"]["kind"], files):
        raise DamagedArtifact(f"its outcome is not that of {REPORT}")
    if not re.fullmatch("[0-9a-f]{64}", predicate["form"]):
        raise DamagedArtifact(f"{STATEMENT} does not say which form it has")
    if predicate["form"] != FORM:
        return predicate, f"{told}; made by another version, so its words were not compared"
    plain = {name: files[name] for name in present if name != CRATE}
    made = _described(Evidence.stated(predicate["about"]), plain, predicate["key"], counted)
    for name, data in made.items():
        if files[name] != data:
            raise DamagedArtifact(f"{name} does not follow from the other files")
    return predicate, told


def _about(predicate: Mapping[str, Any]) -> str:
    """Return in words what a bundle is about: its title, its outcome and each guarantee."""
    what, counted = predicate["about"], []
    for row in predicate["registry"]["guarantees"]:
        beside = f" ({WORDS['brought']})" if _brought(what["kind"], row) else ""
        counted.append(f"{row['run']} epsilon {_printed(row)['epsilon']:g}{beside}")
    return "; ".join(filter(None, [what["title"][:LONGEST], predicate["outcome"][:LONGEST], *counted]))


def check(data: bytes, public: Ed25519PublicKey | None = None) -> tuple[str, str]:
    """Return what a bundle is about and what its signature says, after comparing all of it.

    Args:
        data: the whole file.
        public: the key that must have signed it, if any.

    Raises:
        PrivHelpersError: something in it is not as it was made.
    """
    files = _archive.unpack(data)
    try:
        predicate, told = _compared(files, public)
        return _about(predicate), told
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        if isinstance(error, PrivHelpersError):
            raise
        raise DamagedArtifact(f"it has no {STATEMENT}, or one that is not ours") from None


def verify(path: str, key: str = "") -> bool:
    """Print one line on a bundle; return whether all of it holds.

    Args:
        path: of the bundle.
        key: a PEM file with the public key that must have signed it, if any.

    Raises:
        PrivHelpersError: there is no such file, or no such key.
    """
    shown = Path(path).name
    public = _key(key, serialization.load_pem_public_key, Ed25519PublicKey) if key else None
    try:
        with opened(Path(path)) as file:
            data = file.read(_archive.MOST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise MissingArtifact(f"BUNDLE={inert(path)}: cannot be read ({why})") from None
    try:
        about, told = check(data, public)
    except PrivHelpersError as error:
        print(inert(f"{shown}: does not hold: {error}"))
        return False
    print(
        inert(
            f"{shown}: holds: every byte of its files is as stated: {about}; {told}; SHA-256 {sha256(data)}"
        )
    )
    return True
