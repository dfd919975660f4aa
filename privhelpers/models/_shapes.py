"""The sizes of the small GPT-2s, by name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """The size of a small GPT-2."""

    layers: int
    width: int
    heads: int
    positions: int


ARCHITECTURES = {
    "micro-gpt2": Shape(layers=2, width=64, heads=4, positions=128),
    "tiny-gpt2": Shape(layers=2, width=96, heads=4, positions=128),
    "mini-gpt2": Shape(layers=4, width=128, heads=4, positions=128),
}
