"""The page that leads from the documents to the chapters: every label and every named section exists."""

import re
from pathlib import Path

import pytest

from bookmaker.runner import chain, notebooks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "book/documents.md").read_text()
LINK = re.compile(r"\{ref\}`(nb-[\w-]+)`((?:(?:,| and) \"[^\"]+\")*)")
CHAPTERS = {}
for slug in chain.SLUGS:
    cells = notebooks.read(chain.source(ROOT, slug)).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    label = re.search(r"^\((nb-[\w-]+)\)=", prose, re.MULTILINE)[1]
    CHAPTERS[label] = re.findall(r"^#{2,3} (.+?)\s*$", prose, re.MULTILINE)


@pytest.mark.parametrize(("label", "sections"), sorted(set(LINK.findall(PAGE))))
def test_a_link_leads_to_a_section_that_exists(label, sections):
    assert label in CHAPTERS
    assert set(re.findall(r'"([^"]+)"', sections)) <= set(CHAPTERS[label])


def test_each_missing_row_says_what_became_of_it():
    rows = PAGE.partition("(documents-rows)=")[2]
    last = [
        line.split(" | ")[-1]
        for line in rows.splitlines()
        if re.match(r"\| (?!---|section|document|part)", line)
    ]
    assert len(last) == 45
    assert [cell for cell in last if not re.match(r"(computed|judged|told|left out)[:,]", cell)] == []
