"""Places at which no line may break: before a percent sign, around the sign in "ε = 8", after a formula."""

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

_APART = "\u00a0"
# Before a percent sign: after a digit, or at the start of what follows a quoted number.
_PERCENT = re.compile(r"(?<=\d) (?=%)|^ (?=%)")
_SYMBOL = re.compile(r"(?<!\w)([A-Za-zα-ω]) = ")
_CLOSING = re.compile(r"[.,;:!?)]+")
_VERBATIM = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment)


def held_together(text: str) -> str:
    """Return prose whose lines do not break inside a figure.

    >>> held_together("at ε = 8, 95 % of them")
    'at ε\xa0=\xa08, 95\xa0% of them'
    """
    return _SYMBOL.sub(rf"\1{_APART}={_APART}", _PERCENT.sub(_APART, text))


def _exchange(old: nodes.Node, new: nodes.Node) -> None:
    """Put `new` where `old` stands; two texts that read alike are two nodes."""
    siblings = old.parent.children
    old.parent[next(place for place, node in enumerate(siblings) if node is old)] = new


class HoldTogether(SphinxPostTransform):
    """Write such spaces into every sentence, caption and heading, and into no code.

    A browser may break a line between a formula and the mark that follows it, for it takes the formula for a
    picture; the two are put into one element that does not break.
    """

    default_priority = 950  # after the numbers that a run glues were put in

    def run(self, **kwargs: Any) -> None:
        """Replace the text nodes in which something changes, and the formulas that a mark follows."""
        for text in list(self.document.findall(nodes.Text)):
            above = text.parent
            while above is not None and not isinstance(above, _VERBATIM):
                above = above.parent
            if above is None and (held := held_together(str(text))) != str(text):
                _exchange(text, nodes.Text(held))
        for formula in list(self.document.findall(nodes.math)):
            after = formula.next_node(descend=False, siblings=True)
            if isinstance(after, nodes.Text) and (mark := _CLOSING.match(str(after))):
                rest = nodes.Text(str(after)[mark.end() :])
                _exchange(after, rest)
                together = nodes.inline("", "", formula.deepcopy(), nodes.Text(mark[0]), classes=["together"])
                _exchange(formula, together)
