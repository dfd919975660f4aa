"""Results of a long run that was made once and is kept with the book, in a folder of `reference/`.

real = open_reference("real")
real.real_model                      # the model that others pretrained
real.store.read_json("real_model/experiment.json")         # any artifact that was kept
real.about["machine"], real.about["cpu_seconds"]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from privhelpers.artifacts import Store, check_name, repository_root, sha256_of

FOLDER, ABOUT = "reference", "about/about.json"


@dataclass(frozen=True)
class Reference:
    """What is kept of one profile's runs.

    Attributes:
        store: the kept artifacts, under the names that they have in a run.
    """

    store: Store

    @cached_property
    def about(self) -> dict:
        """How the runs were made.

        Its keys: `command`, `commit`, `date`, `machine`, `runs`, `cpu_seconds` (of a run that was
        stopped, those since it last went on), `versions`, `parameters`. Of `study`, also the SHA-256 of the
        notes, `notes_sha256` (held out) and `train_notes_sha256`, and `models`: the parameters that patients
        and models follow from, by run. Of a model, `public` or `best`, `made_from`: the SHA-256 of each file
        that it follows from, by its name in a run.
        """
        return self.store.read_json(ABOUT)

    def follows_from(self, store: Store, parameters: Mapping[str, object]) -> bool:
        """Return whether a model is kept here that these parameters and the files of a run lead to.

        Args:
            store: of the run.
            parameters: the chapter's, as far as they change the model.
        """
        if not self.store.path(ABOUT).exists():
            return False
        given, files = self.about["parameters"], self.about["made_from"]
        return all(name in given and given[name] == value for name, value in parameters.items()) and all(
            sha256_of(store.existing(file)) == digest for file, digest in files.items()
        )

    @cached_property
    def coverage(self) -> dict:
        """Of `audits`: how much simulated honest audits certify, `rows`, and how often too much, `second`."""
        return self.store.read_json("auditing/coverage.json")

    @cached_property
    def power(self) -> dict:
        """Of `audits`: how many canaries an audit needs to see each fault, `seen`, and what else sees it."""
        return self.store.read_json("auditing/power.json")

    @cached_property
    def real_model(self) -> dict:
        """The results of the model pretrained by others, of `real`: `weights`, `patients`, `models`, ..."""
        return self.store.read_json("real_model/experiment.json")


def open_reference(profile: str, root: Path | None = None) -> Reference:
    """Return what is kept of some runs.

    A notebook is run again when a folder changes that it names here.

    Args:
        profile: a folder of `reference/`: `real`; `public`, the checkpoint that the models start from;
            `best`, the best non-private model; `size` and `audits`, which programs of `benchmarks/` fill.
        root: a copy of the book; default: the one around us.

    Raises:
        MissingArtifact: when a file is read that is not kept.
        DamagedArtifact: when a file is read whose bytes are not those that were kept.
    """
    folder = (root or repository_root()) / FOLDER / check_name(profile)
    return Reference(Store(folder, profile, made_by="python -m bookmaker reference --profile {profile}"))
