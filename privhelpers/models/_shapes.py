"""The sizes of the small architectures, by name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """The size of a small GPT-2, or of a small Llama.

    Attributes:
        layers, width, heads: of the network; the width is a multiple of the heads.
        positions: tokens of the longest text.
        key_value_heads: of a Llama, each shared by several heads of queries; 0: a GPT-2.
    """

    layers: int
    width: int
    heads: int
    positions: int
    key_value_heads: int = 0


ARCHITECTURES = {
    "micro-gpt2": Shape(layers=2, width=64, heads=4, positions=128),
    "tiny-gpt2": Shape(layers=2, width=96, heads=4, positions=128),
    "mini-gpt2": Shape(layers=4, width=128, heads=4, positions=128),
    "micro-llama": Shape(layers=2, width=64, heads=4, positions=128, key_value_heads=2),
    "tiny-llama": Shape(layers=2, width=96, heads=4, positions=128, key_value_heads=2),
}
