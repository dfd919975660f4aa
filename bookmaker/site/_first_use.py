"""Links a word of the glossary where a page uses it first, unless its author has done so before.

Authors link a word where they explain it; a reader who opens a chapter in the middle of the book needs it
where it is first met, which is often somewhere else.
"""

import re
from collections.abc import Iterable, Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.domains.std import StandardDomain
from sphinx.transforms.post_transforms import SphinxPostTransform

# Words that the book also uses in their everyday sense: these are linked by hand.
EVERYDAY = frozenset({"calibration", "leak", "neighboring", "power", "shard", "span"})
# Pages that define or list words, where every word would be a link to the place where one stands,
# and the page on rooms, whose names are words of the glossary too.
LISTS = (
    "book/glossary",
    "book/notation",
    "book/references",
    "book/course_card",
    "book/syllabus",
    "book/run_card",
    "book/model_cards",
)
NO_PROSE = (
    nodes.FixedTextElement,
    nodes.Titular,
    nodes.caption,
    nodes.literal,
    nodes.math,
    nodes.raw,
    nodes.reference,
    nodes.citation,
    addnodes.pending_xref,
    addnodes.toctree,
)
APART = frozenset({"cell_input", "cell_output", "models", "quiz-question"})


def pattern(terms: Iterable[str]) -> re.Pattern:
    """Return what finds any of the terms as a word of its own, longer ones first, perhaps with an s.

    >>> finder = pattern(["checkpoint", "public checkpoint"])
    >>> [match[0] for match in finder.finditer("Public checkpoints and a checkpoint-like file")]
    ['Public checkpoints']
    """
    longest = sorted(terms, key=len, reverse=True)
    words = "|".join(re.escape(term) for term in longest)
    # A capital matters in short names only: "PLD", but "Canary" at the start of a sentence.
    return re.compile(rf"(?<![\w-])({words})s?(?![\w-])", re.IGNORECASE)


def _is_prose(node: nodes.Node) -> bool:
    while (node := node.parent) is not None:
        if isinstance(node, NO_PROSE) or APART.intersection(getattr(node, "get", dict)("classes", ())):
            return False
    return True


def _link(word: str, term: str, page: str) -> addnodes.pending_xref:
    """Return a reference that Sphinx resolves as it does an author's own."""
    shown = nodes.inline(word, word, classes=["xref", "std", "std-term"])
    about = {"refdomain": "std", "reftype": "term", "reftarget": term, "refexplicit": True, "refdoc": page}
    return addnodes.pending_xref("", shown, refwarn=True, **about)


def _pieces(text: str, seen: set[str], names: dict[str, str], finder: re.Pattern, page: str) -> Iterator:
    """Yield a text cut at the first use of each word, and add these words to `seen`."""
    start = 0
    for match in finder.finditer(text):
        key = match[1].lower()
        name = names[key]
        is_name = sum(letter.isupper() for letter in name) > 1
        if key in seen or (is_name and match[1] != name):
            continue
        seen.add(key)
        yield nodes.Text(text[start : match.start()])
        yield _link(match[0], name, page)
        start = match.end()
    yield nodes.Text(text[start:])


class LinkFirstUse(SphinxPostTransform):
    """Turns the first use of each glossary word in a page's sentences into a link."""

    default_priority = 5  # before Sphinx resolves references, at 10
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Change the page in place."""
        page = self.env.docname
        domain: StandardDomain = self.env.domains["std"]
        terms = {name.lower(): name for kind, name in domain.objects if kind == "term"}
        names = {key: name for key, name in terms.items() if key not in EVERYDAY}
        if page in LISTS or not names:
            return
        finder, seen = pattern(names.values()), set()
        for node in list(self.document.findall()):
            if isinstance(node, addnodes.pending_xref) and node.get("reftype") == "term":
                seen.add(node["reftarget"].lower())
            elif isinstance(node, nodes.Text) and finder.search(node) and _is_prose(node):
                pieces = [piece for piece in _pieces(str(node), seen, names, finder, page) if piece.astext()]
                node.parent.replace(node, pieces)
