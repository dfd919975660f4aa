"""The artifacts of a profile by content instead of by path."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tokenizers import Tokenizer

from privhelpers import defenses, records
from privhelpers.artifacts import Store, sha256_of
from privhelpers.attacks.bank import Bank
from privhelpers.errors import DamagedArtifact, InvalidParameter

if TYPE_CHECKING:
    from spacy.language import Language

NOT_PRIVATE = ("public", "baseline", "best_nonprivate", "equal_use")
EXTRACTION, MEMORIZATION, MEMBERSHIP = "extraction", "memorization", "membership_inference"
TRAINING, SHADOWS = "private_training", "shadow_models"
_FILES = {  # what a page quotes with its source: the chapter and the file of each model's run
    "ledger": (TRAINING, "ledger.jsonl"),
    "extraction": (EXTRACTION, "attack.json"),
    "generations": (EXTRACTION, "generations.jsonl"),
    "ranked": (EXTRACTION, "ranked.jsonl"),
    "memorization": (MEMORIZATION, "attack.json"),
    "canaries": (MEMORIZATION, "canaries.jsonl"),
    "membership": (MEMBERSHIP, "attack.json"),
}
_DIGITS = 12  # of a fingerprint that a page shows


@dataclass(frozen=True)
class Results:
    """The artifacts of one profile; each file is read on first use.

    Attributes:
        store: of the profile.
    """

    store: Store

    @cached_property
    def _models(self) -> dict[str, "ModelResults"]:
        return {}

    def of(self, model: str) -> "ModelResults":
        """Return the results of one model, by its name; each file of it is read once."""
        return self._models.setdefault(model, ModelResults(self, model))

    @cached_property
    def notes(self) -> dict[str, list[dict]]:
        """The notes with their patients: `train`, and `heldout`, which no model was trained on."""
        return {part: records.read_notes(self.store, part) for part in ("train", "heldout")}

    @cached_property
    def patient_of(self) -> Mapping[str, str]:
        """Patient of every note, by the note's identifier."""
        return {note["note_id"]: note["patient_id"] for notes in self.notes.values() for note in notes}

    @cached_property
    def tokens(self) -> Mapping[str, int]:
        """Tokens of every held-out note, the end of the text included."""
        path = self.store.existing("public_pretraining/public/tokenizer.json")
        texts = [note["text"] for note in self.notes["heldout"]]
        encoded = Tokenizer.from_file(str(path)).encode_batch(texts)
        ids = (note["note_id"] for note in self.notes["heldout"])
        return dict(zip(ids, (len(row.ids) + 1 for row in encoded), strict=True))

    @cached_property
    def pretraining(self) -> dict:
        """Figures of the public checkpoint's training."""
        return self.store.read_json("public_pretraining/metrics.json")

    @cached_property
    def fine_tuning(self) -> dict[str, dict]:
        """Figures of the models without privacy, by name."""
        return self.store.read_json("fine_tuning/metrics.json")

    @cached_property
    def comparison(self) -> dict[str, dict]:
        """The summary of every model that the comparison of all models wrote."""
        return self.store.read_json("comparison/summary.json")["models"]

    @cached_property
    def _utility(self) -> dict[str, dict]:
        return self.store.read_json("private_utility/utility.json")

    @property
    def equal_use(self) -> dict:
        """The model without privacy that is as useful as a private one: how, and how long, it trained.

        Its keys: `as_useful_as`, a private model; `reached`, whether it got there; `steps`, `epochs`,
        `batch_size`, `learning_rate`, and its `perplexity`.
        """
        return self._utility["equal_use"]

    @cached_property
    def measured(self) -> pd.DataFrame:
        """All measurements that the comparison read: one row a model, measure and arm, see `COLUMNS`."""
        return pd.DataFrame(self.store.read_jsonl("comparison/measurements.jsonl"))

    @property
    def _drugs(self) -> dict[str, dict]:
        return self._utility["drugs"]

    @cached_property
    def drug_task(self) -> pd.DataFrame:
        """How well each model predicts which drug follows: one row a model, macro-F1 over drugs, in [0, 1].

        Columns: `macro_f1` and its 95% ends over patients, and `macro_f1_floor`, the same for always
        naming the commonest drug.
        """
        columns = ["macro_f1", "macro_f1_low", "macro_f1_high"]
        asked = {name: said["macro-F1, asked"] for name, said in self._drugs["models"].items()}
        floor = self._drugs["without a model"]["most frequent drug"][0]
        return pd.DataFrame.from_dict(asked, orient="index", columns=columns).assign(macro_f1_floor=floor)

    @cached_property
    def drug_gain(self) -> pd.DataFrame:
        """The macro-F1 of each model minus the floor, on the same patients: `gain`, `low`, `high` (95%)."""
        gains = self._drugs["above the floor"]
        return pd.DataFrame.from_dict(gains, orient="index", columns=["gain", "low", "high"])

    @cached_property
    def audits(self) -> dict[str, dict]:
        """The audit's result for each model."""
        return self.store.read_json("auditing/audit.json")["models"]

    @cached_property
    def broken(self) -> dict[str, dict]:
        """Results of audit and attacks for each broken variant of DP-SGD."""
        return self.store.read_json("broken_dpsgd/broken.json")["broken"]

    @cached_property
    def recognizer(self) -> "Language":
        """The recognizer of identifiers (a spaCy pipeline) that the chapter on scrubbing trained."""
        return defenses.load_ner(self.store, "scrubbing/ner")

    @cached_property
    def shadow_references(self) -> dict[str, dict[str, float]]:
        """Losses under the reference models, by reference and note."""
        return self.store.read_json(f"{SHADOWS}/references.json")

    @cached_property
    def shadow_bank(self) -> Bank:
        """Signals of the candidate notes under every shadow model."""
        rows = self.store.read_json(f"{SHADOWS}/shadows.json")
        signals = {name: np.array(values) for name, values in rows["signals"].items()}
        return Bank(tuple(rows["notes"]), np.array(rows["inside"], dtype=bool), signals)


@dataclass(frozen=True)
class ModelResults:
    """The artifacts of the runs on one model.

    Every property raises MissingArtifact if its run has not been made.

    Attributes:
        runs: of the profile.
        model: by its name.
    """

    runs: Results
    model: str

    def _json(self, chapter: str, file: str) -> dict:
        return self.runs.store.read_json(f"{chapter}/{self.model}/{file}.json")

    def _rows(self, chapter: str, file: str) -> list[dict]:
        return self.runs.store.read_jsonl(f"{chapter}/{self.model}/{file}.jsonl")

    def source(self, figure: str) -> str:
        """Return the source of a figure: file, run, and the first digits of the SHA-256 of its bytes.

        Args:
            figure: one of ledger, extraction, generations, ranked, memorization, canaries, membership.

        Raises:
            InvalidParameter: another figure.
            MissingArtifact, DamagedArtifact: as `Store.existing`.
        """
        if figure not in _FILES:
            raise InvalidParameter(f"figure = {figure!r}: must be one of {', '.join(_FILES)}")
        chapter, file = _FILES[figure]
        run = f"{chapter}/{self.model}"
        return f"{file} of {run} [{sha256_of(self.runs.store.existing(f'{run}/{file}'))[:_DIGITS]}]"

    @cached_property
    def metrics(self) -> dict:
        """What the training of a private model spent and reached."""
        return self._json(TRAINING, "metrics")

    @property
    def spent(self) -> dict | None:
        """Privacy budget of the run, `epsilon` and `delta` and how they came about; None without one."""
        return None if self.model in NOT_PRIVATE else self.metrics["spent"]

    @cached_property
    def gradient_canaries(self) -> dict[str, list]:
        """Coins and scores of the canaries in the gradients of a private run: `included`, `scores`."""
        return self._json(TRAINING, "canaries")

    @cached_property
    def other_people(self) -> dict[str, float] | None:
        """Losses of the same notes under a private model of other people, by note; None without a budget."""
        return None if self.model in NOT_PRIVATE else self._json(TRAINING, "other_people")

    @property
    def audited_epsilon(self) -> float | None:
        """Lower bound on epsilon by the audit, or None."""
        return self.runs.audits[self.model]["audit_epsilon_lower"]

    @cached_property
    def extraction(self) -> dict:
        """Figures of the extraction attack."""
        return self._json(EXTRACTION, "attack")

    @cached_property
    def generations(self) -> list[dict]:
        """Every text that the model wrote after a prompt."""
        return self._rows(EXTRACTION, "generations")

    @cached_property
    def hits(self) -> dict[str, list[int]]:
        """Numbers of the generations on which each rule fired, of members and of controls."""
        return self._json(EXTRACTION, "hits")

    @cached_property
    def ranked(self) -> list[dict]:
        """Distinct texts generated without a prompt, with their scores."""
        return self._rows(EXTRACTION, "ranked")

    @cached_property
    def texts(self) -> list[str]:
        """All generated texts: after the prompts, and distinct texts without a prompt."""
        return [row["text"] for row in (*self.generations, *self.ranked)]

    @cached_property
    def membership(self) -> dict:
        """Figures of the attacks on membership."""
        return self._json(MEMBERSHIP, "attack")

    @cached_property
    def losses(self) -> dict[str, dict[str, float]]:
        """Mean loss of each note, nats per token: of `members`, and of `others`, which were held out."""
        return self._json(MEMBERSHIP, "losses")

    @cached_property
    def memorization(self) -> dict:
        """Figures of the completion attacks."""
        return self._json(MEMORIZATION, "attack")

    @cached_property
    def canaries(self) -> pd.DataFrame:
        """One row per canary: planted or control, copies, exposure in bits, whether it was extracted.

        `exposure_bits` ranks among references, `space_bits` among all secrets if that was counted.
        """
        return pd.DataFrame(self._rows(MEMORIZATION, "canaries"))

    @cached_property
    def guesses(self) -> pd.DataFrame:
        """One row per note to complete: its arm, the guess, whether it is right."""
        return pd.DataFrame(self._rows(MEMORIZATION, "guesses"))

    def scores(self, attack: str) -> pd.DataFrame:
        """Return one row per note, members first: member, patient, score (higher = more member-like).

        Raises:
            InvalidParameter: the attack's scores were not saved.
        """
        if attack == "loss":
            saved = {note: -loss for side in self.losses.values() for note, loss in side.items()}
        else:
            every = self._json(MEMBERSHIP, "scores")
            if attack not in every:
                raise InvalidParameter(f"attack = {attack!r}: must be loss or one of {', '.join(every)}")
            saved = every[attack]
        sides = {"members": True, "others": False}
        rows = {
            note: (member, self.runs.patient_of[note], saved[note])
            for side, member in sides.items()
            for note in self.losses[side]
            if note in saved
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=["member", "patient", "score"])

    def attempts(self) -> pd.DataFrame:
        """Return one row per generation: its prompt, and whether each rule fired on members and controls."""
        frame = pd.DataFrame({"prompt": [row["prompt"] for row in self.generations]})
        for rule in ("strict", "strict_control", "loose", "loose_control"):
            frame[rule] = np.isin(frame.index, self.hits[rule])
        return frame

    def patients_found(self) -> pd.DataFrame:
        """Return how many patients each attack exposed, with the same for held-out patients.

        Named: a generation contains their identifiers. Notes finished: one of theirs, word by word from its
        first half. Diagnoses guessed: from the rest of a note. A patient counts once, so the counts are
        independent.
        """
        group, matches = self.extraction["patients"], self.extraction["matches"]
        named = [matches[rule]["patients"] for rule in ("strict", "strict_control")]
        guesses = self.guesses.assign(patient=self.guesses["note_id"].map(self.runs.patient_of))
        finished = guesses.groupby(["arm", "patient"])["correct"].any().groupby("arm").agg(["sum", "size"])
        told = self.memorization["attributes"]
        guessed = [round(told[f"in_context/{arm}"][0] * group) for arm in ("member", "control")]
        rows = {
            "patients named": (named[0], group, named[1], group),
            "notes finished": (*finished.loc["member"], *finished.loc["control"]),
            "diagnoses guessed": (guessed[0], group, guessed[1], group),
        }
        columns = ["hits", "patients", "control_hits", "control_patients"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).astype(int)

    def held_out(self) -> pd.DataFrame:
        """Return one row per held-out note: patient, loss in nats a token, tokens.

        Raises:
            DamagedArtifact: losses and lengths do not give the perplexity that the attack's run measured.
        """
        losses = pd.Series(self.losses["others"], name="loss")
        frame = losses.to_frame().assign(
            patient=losses.index.map(self.runs.patient_of), tokens=losses.index.map(self.runs.tokens)
        )
        perplexity = math.exp(np.average(frame["loss"], weights=frame["tokens"]))
        known = self.membership["perplexity"]
        if not math.isclose(perplexity, known, rel_tol=1e-3):
            raise DamagedArtifact(f"{self.model}: losses give a perplexity of {perplexity:.4f}, not {known}")
        return frame
