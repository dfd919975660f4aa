"""The only room that touches the disk: atomic, hashed, typed files under `runs/<profile>/artifacts/`.

A file is written next to its place, flushed to the device and renamed, so that a kill leaves the old
file or the new one and never half of one. Its SHA-256 is written next to it (`name.sha256`, the format
of `sha256sum -c`) and checked on every read, because a tensor with a flipped bit loads without an error.
A file that is replaced has no hash for a moment: a kill then leaves an artifact that counts as missing.

    store = open_store("course")
    store.write_json("extraction/baseline/attack.json", {"attempts": 1400})
    store.read_json("extraction/baseline/attack.json")

Only a run that `make` started changes a profile's artifacts. A chapter that someone starts by hand, in
Jupyter or with papermill, reads them and writes to a folder of its own.
"""

from privhelpers.artifacts._files import read_bounded, write_atomic, writing
from privhelpers.artifacts._json import parse_json, to_json
from privhelpers.artifacts._paths import check_name, is_there, repository_root
from privhelpers.artifacts._seals import (
    SEAL,
    check_seal,
    first_difference,
    read_sealed,
    seal_of,
    sha256_of,
    write_sealed,
)
from privhelpers.artifacts._store import RUNNER, Parts, Store, open_store
from privhelpers.artifacts._yaml import parse_yaml
