"""An evidence bundle: a zip of a report and what it was made of, with a list of hashes and maybe a signature.

`SHA256SUMS` has the SHA-256 of every other file, as `sha256sum -c` reads it; `SHA256SUMS.sig` is its Ed25519
signature, as `openssl pkeyutl -verify -rawin` reads it. A bundle without a signature
shows damage and partial edits only: anyone can write another valid bundle.
"""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from privhelpers.artifacts import first_difference, parse_json, parse_yaml, read_bounded
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact, PrivHelpersError
from privhelpers.text import inert, rounded_up

SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
LEDGERS, LEDGER, REPORT, MANIFEST = (
    "ledgers/",
    "ledger.jsonl",
    "report.json",
    "manifest.json",
)  # the last, of a profile
MOST = 64 << 20  # bytes of a bundle, and of its files together
WORDS = parse_yaml(Path(__file__).with_name("bundle.yml").read_text(encoding="utf-8"))
KEYS = "`openssl genpkey -algorithm ed25519 -out key.pem` makes one, and `openssl pkey -in key.pem -pubout \
-out public.pem` its public half"
_LONGEST_KEY = 10_000  # bytes
_SHOWN = 200  # characters of a title or an outcome in the line that is printed
# What zipfile raises for a truncated or edited file, or an unknown compression or encryption.
_BROKEN = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, LookupError, RuntimeError)


def sha256(data: bytes) -> str:
    """Return the hexadecimal SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def guarantee(data: bytes, name: str) -> str:
    """Return in words the guarantee of a ledger, recomputed from its lines.

    Args:
        data: the ledger.
        name: what a message calls it.

    Raises:
        PrivHelpersError: it is damaged, or parts of its run are not counted, so it states no epsilon.
    """
    from privhelpers import ledger  # late: it takes a second to load

    record = ledger.verify(data, name)
    if record.epsilon is None:
        parts = inert("; ".join(record.header.not_counted))[:_SHOWN]
        raise InvalidParameter(
            f"{name}: states no guarantee, because parts of its run are not counted ({parts})"
        )
    epsilon, delta = rounded_up(record.epsilon), rounded_up(record.header.plan.delta)
    mode = WORDS["modes"][record.header.mode]
    return f"{record.header.run} epsilon {epsilon:g} at delta {delta:g}: {mode}"


def _key(path: str, load: Callable[[bytes], Any], kind: type) -> Any:
    try:
        key = load(read_bounded(Path(path), _LONGEST_KEY))
    except (ValueError, TypeError, UnsupportedAlgorithm, InternalError):  # the last, of OpenSSL
        key = None
    except OSError as error:
        raise MissingArtifact(f"key {inert(path)}: cannot be read ({error.strerror})") from None
    if not isinstance(key, kind):
        half = "private" if kind is Ed25519PrivateKey else "public"
        raise InvalidParameter(
            f"key {inert(path)}: must be a {half} Ed25519 key in PEM without a passphrase; {KEYS}"
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


def of_audit(
    report: Mapping[str, bytes], pictures: Iterable[bytes], ledger: bytes | None
) -> dict[str, bytes]:
    """Return the files of an audit's bundle by name.

    Args:
        report: files of the report by name; its `report.json` has the hash of every file that was read.
        pictures: SVG.
        ledger: of the model's training, according to the user, or None.
    """
    files = {**report, **{f"figures/{number}.svg": svg for number, svg in enumerate(pictures, 1)}}
    return {**files, LEDGERS + LEDGER: ledger} if ledger else files


def make(files: Mapping[str, bytes], key: Ed25519PrivateKey | None = None) -> bytes:
    """Return the bundle of some files, the same for the same files.

    Args:
        files: contents by name; ledgers have names that start with `ledgers/`, the report is `report.json`.
        key: to sign with.

    Raises:
        PrivHelpersError: a ledger among them is damaged or states no guarantee.
    """
    _guarantees(files)
    sums = "".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files)).encode()
    every = {**files, SUMS: sums} | ({SIGNATURE: key.sign(sums)} if key else {})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(every):
            entry = zipfile.ZipInfo(name)  # dated 1980, so the same files make the same bundle
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, every[name])
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the files of a zip by name; nothing is written to the disk.

    Raises:
        DamagedArtifact: it is not a zip, a file is damaged or there twice, or they are larger than a bundle.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST:
                raise DamagedArtifact(f"has more than {MOST:,} bytes, the most of a bundle")
            files = {name: archive.read(name) for name in archive.namelist()}
            if len(files) < len(archive.infolist()):
                raise DamagedArtifact("a file was added: two have one name")
    except _BROKEN as error:
        raise DamagedArtifact(f"is not a zip, or a file in it changed ({str(error)[:_SHOWN]})") from None
    return files


def _guarantees(files: Mapping[str, bytes]) -> list[str]:
    told = [guarantee(files[name], name) for name in sorted(files) if name.startswith(LEDGERS)]
    return [*told, WORDS["user_ledger"]] if told and MANIFEST not in files else told


def _signed(files: Mapping[str, bytes], public: Ed25519PublicKey | None) -> str:
    """Return in words who signed the list of hashes; refuse another signature."""
    if SIGNATURE not in files:
        if public:
            raise DamagedArtifact("is not signed, and a key was named")
        return "unsigned, so it shows damage, not who made it"
    if not public:
        return "signed, but the signer was not checked: name a key that you trust: --key=public.pem"
    try:
        public.verify(files[SIGNATURE], files[SUMS])
    except InvalidSignature:
        raise DamagedArtifact("is not signed by this key") from None
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return f"signed by the key that was named ({sha256(public.public_bytes(*form))[:16]})"


def check(data: bytes, public: Ed25519PublicKey | None = None) -> str:
    """Compare every file of a bundle with its hash; return its subject and signer in words.

    Args:
        data: the whole bundle.
        public: the key that must have signed it, if any.

    Raises:
        PrivHelpersError: a file changed, is missing or was added; or the signature is not of this key.
    """
    files = unpack(data)
    if SUMS not in files:
        raise DamagedArtifact(f"{SUMS} is missing: this is not a bundle, or an earlier version made it")
    lines = files[SUMS].decode("utf-8", "replace").splitlines()
    present = {name: sha256(data) for name, data in files.items() if name not in (SUMS, SIGNATURE)}
    if wrong := first_difference({line[66:]: line[:64] for line in lines}, present):
        raise DamagedArtifact(wrong)
    signed = _signed(files, public)
    whole = MANIFEST if MANIFEST in files else REPORT
    facts = parse_json(files[whole], whole) if whole in files else {}
    about = [str(facts[name])[:_SHOWN] for name in ("title", "profile", "outcome") if name in facts]
    return "; ".join([*about, *_guarantees(files), signed])


def verify(path: str, key: str = "") -> bool:
    """Print one line about a bundle; return whether it is intact.

    Args:
        path: of the bundle.
        key: a PEM file with the public key that must have signed it, if any.

    Raises:
        PrivHelpersError: there is no such file, or no such key.
    """
    shown = Path(path).name
    public = _key(key, serialization.load_pem_public_key, Ed25519PublicKey) if key else None
    try:
        data = read_bounded(Path(path), MOST)
    except OSError as error:
        raise MissingArtifact(f"bundle {inert(path)}: cannot be read ({error.strerror})") from None
    try:
        told = check(data, public)
    except PrivHelpersError as error:
        print(inert(f"{shown}: does not hold: {error}"))
        return False
    print(inert(f"{shown}: holds: every file is as it was made; {told}; SHA-256 {sha256(data)}"))
    return True
