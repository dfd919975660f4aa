"""Where a figure comes from: the file, the run that wrote it, and the fingerprint of its bytes.

source = provenance(store, "membership_inference/baseline/attack.json")
str(source)  # 'attack.json of membership_inference/baseline [3f9c0a51d2e7]'
"""

from dataclasses import dataclass

from privhelpers.artifacts import Store, sha256_of
from privhelpers.errors import InvalidParameter

SHORT = 12  # hexadecimal digits of a fingerprint that a page shows


@dataclass(frozen=True)
class Provenance:
    """The source of one figure.

    Attributes:
        file: its name in the artifacts.
        run: the notebook that wrote it, with the model if it runs once a model.
        fingerprint: first digits of the SHA-256 of the file's bytes: another file has another one.
    """

    file: str
    run: str
    fingerprint: str

    def __post_init__(self) -> None:
        """Refuse an empty field."""
        for name in ("file", "run", "fingerprint"):
            if not getattr(self, name):
                raise InvalidParameter(f"{name} is empty: a figure without a source is not used")

    def __str__(self) -> str:
        """Return the source in one line, for a table."""
        return f"{self.file.rsplit('/', 1)[-1]} of {self.run} [{self.fingerprint}]"


def provenance(store: Store, name: str) -> Provenance:
    """Return the provenance of an artifact whose bytes are those that were written.

    Args:
        store: of the profile.
        name: of the file, `NN_slug/file` or `NN_slug/run/file`.

    Raises:
        MissingArtifact, DamagedArtifact: as `store.existing`.
    """
    fingerprint = sha256_of(store.existing(name))[:SHORT]
    return Provenance(name, name.rsplit("/", 1)[0] if "/" in name else name, fingerprint)
