"""Whether a canary reaches the loss: in the tokens of a kit before a training, and in a Trainer's batches.

A canary that a length limit cuts, that the label mask hides, or that the tokenizer loses was never trained
on, and an audit that relies on it would find nothing.

>>> check = privaudit.CanaryCheck("kit")                                           # doctest: +SKIP
>>> trainer = Trainer(..., processing_class=tokenizer, callbacks=[check])          # doctest: +SKIP
"""

import re
import warnings
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from transformers import (
    PreTrainedTokenizerBase,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from privaudit.loading import LENGTHS
from privaudit.records import Canary, read_canaries
from privhelpers.artifacts import is_there
from privhelpers.errors import InvalidParameter, MissingArtifact, TrainingFailed, UnsupportedModel
from privhelpers.models._folder import CONFIG, called, read_json
from privhelpers.models.architecture import read_tokenizer

_IGNORED = -100  # the label of a token without a loss


class Loss(StrEnum):
    """Why a canary does not reach the loss; keys of `ADVICE`."""

    TOKENIZER = "tokenizer"
    LENGTH = "length"
    MASK = "mask"


ADVICE = {
    Loss.TOKENIZER: "have a secret that the tokenizer turns into unknown tokens, or none; give it digits",
    Loss.LENGTH: "have a secret beyond the length limit; raise --max-length, or train on longer texts",
    Loss.MASK: "have a secret without labels; let --mask-before end before it, or mask less",
}


class SecretFinder:
    """Finds the secrets of canaries in tokens, whatever blanks and case the tokenizer puts there."""

    def __init__(self, canaries: Iterable[Canary]) -> None:
        """Prepare a search.

        Args:
            canaries: each with a secret.
        """
        self._secrets = {_squeezed(canary.secret): canary for canary in canaries}
        self._sizes = {len(secret) for secret in self._secrets}

    def find(self, text: str) -> set[str]:
        """Return the secrets of canaries in a text."""
        squeezed = _squeezed(text)
        starts = [found.start() for found in re.finditer("syn-", squeezed)]
        pieces = {squeezed[start : start + size] for start in starts for size in self._sizes}
        return {self._secrets[piece].secret for piece in pieces & self._secrets.keys()}


def _squeezed(text: str) -> str:
    return "".join(text.split()).casefold()


def open_tokenizer(folder: str | Path) -> tuple[PreTrainedTokenizerBase, int]:
    """Return the tokenizer of a folder, and how many tokens the model reads.

    Raises:
        MissingArtifact: there is no such folder.
        UnsupportedModel: transformers does not know the tokenizer.
    """
    place = Path(folder).absolute()
    if not place.is_dir():
        raise MissingArtifact(f"{called(place.name)}: no folder at that place, and nothing is downloaded")
    tokenizer = read_tokenizer(place)
    config = read_json(place, CONFIG) if is_there(place / CONFIG) else {}
    said = [config.get(name) for name in LENGTHS] + [tokenizer.model_max_length]
    return tokenizer, int(min(limit for limit in said if isinstance(limit, int | float) and limit >= 8))


def _labeled(tokenizer: PreTrainedTokenizerBase, text: str, limit: int, mask_before: str) -> list[int]:
    """Return the tokens of a text that have a label; none if it lacks the text that ends the mask."""
    read = tokenizer(text, truncation=True, max_length=limit, return_offsets_mapping=bool(mask_before))
    if not mask_before:
        return read["input_ids"]
    place = text.rfind(mask_before)
    end = place + len(mask_before) if place >= 0 else len(text)
    pairs = zip(read["input_ids"], read["offset_mapping"], strict=True)
    return [token for token, (start, _) in pairs if start >= end]


def lost_canaries(
    tokenizer: PreTrainedTokenizerBase, canaries: Sequence[Canary], *, limit: int, mask_before: str = ""
) -> dict[Loss, list[int]]:
    """Return the lines of the canaries whose secret would not reach the loss, by the reason.

    Args:
        tokenizer: of the model that is trained.
        canaries: of a kit, inserted or not.
        limit: most tokens of a text, special tokens included.
        mask_before: tokens up to the end of this text, where it is last, have no label; a canary without it
            has no label at all.

    Raises:
        UnsupportedModel: there is a mask, and the tokenizer does not say where its tokens are in a text.
    """
    if mask_before and not tokenizer.is_fast:
        raise UnsupportedModel(
            "the tokenizer does not say where its tokens are in a text, so a mask cannot be applied; leave "
            "--mask-before out, and let CanaryCheck look at the batches of the Trainer"
        )
    finder, lost = SecretFinder(canaries), {}
    for canary in canaries:
        readings = {
            Loss.TOKENIZER: tokenizer(canary.text, verbose=False)["input_ids"],
            Loss.LENGTH: _labeled(tokenizer, canary.text, limit, ""),
            Loss.MASK: _labeled(tokenizer, canary.text, limit, mask_before),
        }
        for reason, tokens in readings.items():
            if canary.secret not in finder.find(tokenizer.decode(tokens)):
                lost.setdefault(reason, []).append(canary.line)
                break
    return lost


class CanaryCheck(TrainerCallback):
    """Tells after the first epoch of a Hugging Face Trainer which inserted canaries never reached the loss.

    It looks at the labels of the batches that the model gets, and changes nothing of the training.
    """

    def __init__(self, kit: str | Path, *, strict: bool = False) -> None:
        """Read a kit.

        Args:
            kit: its folder.
            strict: raise TrainingFailed instead of a warning.

        Raises:
            BadRecords: it is not a kit, or a file has changed.
        """
        self._planted = [canary for canary in read_canaries(kit).canaries if canary.inserted]
        self._finder, self._strict = SecretFinder(self._planted), strict
        self._seen: set[str] = set()
        self._handle: Any = None
        self._done = False

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
    ) -> None:
        """Begin to look at batches, if the epoch is whole: a resumed one skips some.

        Raises:
            InvalidParameter: the Trainer has no tokenizer.
        """
        tokenizer = given["processing_class"]
        if tokenizer is None:
            raise InvalidParameter(
                "processing_class: is not given to the Trainer, and without the tokenizer its batches cannot "
                "be read; write Trainer(..., processing_class=tokenizer)"
            )
        if self._done or abs(state.epoch - round(state.epoch)) > 1e-6:
            return

        def look(model: torch.nn.Module, positional: tuple, named: dict) -> None:
            labels = named.get("labels", named.get("input_ids"))  # a smoothed loss takes the labels out
            if model.training and labels is not None:
                for row in labels.tolist():
                    tokens = [token for token in row if token != _IGNORED]
                    self._seen |= self._finder.find(tokenizer.decode(tokens))

        self._handle = given["model"].register_forward_pre_hook(look, with_kwargs=True)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **given: Any
    ) -> None:
        """Judge the first whole epoch.

        Raises:
            TrainingFailed: if `strict`, an inserted canary never reached the loss.
        """
        if self._handle is None:
            return
        self._handle.remove()
        self._handle, self._done = None, True
        seen = _from_all(self._seen)
        missing = [canary.line for canary in self._planted if canary.secret not in seen]
        if not missing or not state.is_world_process_zero:
            return
        lines = ", ".join(map(str, missing[:20]))
        told = (
            f"{len(missing):,} of {len(self._planted):,} inserted canaries were in no labels of the first "
            f"epoch, so this training cannot be audited with them: lines {lines} of canaries.jsonl; check "
            "the length limit, the label mask, and that the kit's train.jsonl is used"
        )
        if self._strict:
            raise TrainingFailed(told)
        warnings.warn(told, stacklevel=2)


def _from_all(seen: set[str]) -> set[str]:
    """Return what all processes of a distributed training have seen together."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return seen
    parts: list = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(parts, seen)
    return set().union(*parts)
