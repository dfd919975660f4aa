"""The plans of a course: what each chapter takes, and weeks as even as whole chapters allow."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import toy_site
import yaml
from nbformat import v4

from bookmaker.runner import chain, notebooks
from bookmaker.site import _staging, _syllabus, exercises

ROOT = Path(__file__).parents[2]
SLUGS = [
    chain.slug_of(entry["file"])
    for part in yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    for entry in part["chapters"]
    if entry["file"].startswith("notebooks/")
]
MOST = 1.3  # times the mean


@pytest.fixture(scope="module")
def sources():
    return {slug: notebooks.read(chain.source(ROOT, slug)) for slug in SLUGS}


def test_no_week_of_the_book_is_much_longer_than_the_mean(sources):
    page = _syllabus.syllabus({slug: _syllabus.chapter(slug, source) for slug, source in sources.items()})
    ratios = [float(ratio) for ratio in re.findall(r"the longest takes ([\d.]+) times", page)]
    assert len(ratios) == 3 and max(ratios) <= MOST
    assert page.count("| week ") == 14 + 6 and page.count(" day, ") == 4


def test_every_chapter_and_exercise_is_in_the_page_of_plans(sources):
    page = _syllabus.syllabus({slug: _syllabus.chapter(slug, source) for slug, source in sources.items()})
    weeks, _, index = page.partition("## Two days")
    index = index.partition("## All exercises")[2]
    for slug, source in sources.items():
        assert weeks.count(f"{{ref}}`{_syllabus.chapter(slug, source).label}`") == 2
        for exercise in exercises.exercises(source, slug):
            assert exercise.title and index.count(f"{{ref}}`{exercise.title} <{exercise.label}>`") == 1


def test_a_chapter_states_the_minutes_that_the_rule_gives(sources):
    for slug, source in sources.items():
        stated = int(_staging.READING.search(source.cells[0].source)[0].split()[1])
        computed = _syllabus.reading_minutes(source)
        assert abs(stated - computed) <= max(10, computed / 4), f"{slug}: state {computed} minutes"


def test_the_longest_part_is_as_short_as_in_any_cut():
    generator = np.random.default_rng(0)
    for _ in range(40):
        minutes, parts = generator.integers(1, 30, size=8).tolist(), int(generator.integers(1, 6))
        cuts = [(0, *cut, 8) for cut in itertools.combinations(range(1, 8), parts - 1)]
        sums = [[sum(minutes[a:b]) for a, b in itertools.pairwise(cut)] for cut in cuts]
        ours = [minutes[part] for part in _syllabus.partition(minutes, parts)]
        assert [one for part in ours for one in part] == minutes and all(ours)
        best = min(sums, key=lambda all_parts: (max(all_parts), sum(one**2 for one in all_parts)))
        assert max(map(sum, ours)) == max(best)
        assert sum(sum(part) ** 2 for part in ours) == sum(one**2 for one in best)


def test_minutes_follow_from_words_lines_formulas_figures_and_solutions():
    figure = {"mystnb": {"figure": {"name": "fig-x"}}}
    source = toy_site.source("hipaa")
    source.cells = [
        v4.new_markdown_cell("(nb-x)=\n# Title\n" + "word " * 1197),  # three words of the title are read too
        v4.new_markdown_cell("$$\na\n$$\n\n" * 5),
        v4.new_code_cell("a = 1\n\n" * 100),
        v4.new_code_cell("draw()", metadata=figure),
        v4.new_code_cell("b = 1\n" * 500, metadata={"tags": ["bookkeeping"]}),
        v4.new_markdown_cell(
            "```{exercise} A\n:label: ex-a\nWhy?\n```\n\n```{solution} ex-a\n" + "So. " * 900 + "\n```"
        ),
        v4.new_markdown_cell("```{exercise} B\n:label: ex-b\nHow?\n```\n\n```{solution} ex-b\nThus.\n```"),
        v4.new_code_cell("c = 1\n" * 7, metadata={"tags": ["solution"]}),
    ]
    takes = _syllabus.chapter("x", source, 90.0)
    assert takes.label == "nb-x" and takes.reading == 25  # 8 + 5 and a tenth + 10 + 1
    assert [(one.label, one.title, one.minutes, one.kind) for one in takes.exercises] == [
        ("ex-a", "A", 15, "think"),
        ("ex-b", "B", 17, "compute"),
    ]
    assert takes.minutes() == 25 + 1.5 + 15 + 17 + 5 and takes.minutes(1) == 25 + 1.5 + 15 + 5
    assert "So. So." in source.cells[5].source  # the notebook stays as it was


def test_the_site_has_the_plans_of_its_run(tmp_path):
    book = toy_site.build(tmp_path / "book")
    jobs = toy_site.jobs(book)
    page = (_staging.stage(book, jobs) / "book" / "syllabus.md").read_text(encoding="utf-8")
    runs = sum(job.slug == "extraction" for job in jobs)
    assert runs > 1 and f"| {{ref}}`extraction` | 5 | {runs * 61 / 60:.1f} |" in page
