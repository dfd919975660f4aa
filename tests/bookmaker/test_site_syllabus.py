"""The plans of a course: what each chapter takes, and weeks as even as whole chapters allow."""

import itertools
import re

import numpy as np
import pytest
import toy_site

from bookmaker.runner import chain, files, notebooks
from bookmaker.site import _map, _staging, _syllabus, exercises

ROOT = toy_site.ROOT
FILES = [entry["file"] for part in files.contents(ROOT)["parts"] for entry in part["chapters"]]
SLUGS = [chain.slug_of(file) for file in FILES if file.startswith("notebooks/")]
MOST = 1.3  # times the mean


@pytest.fixture(scope="module")
def sources():
    return {slug: notebooks.read(chain.source(ROOT, slug)) for slug in SLUGS}


def test_plans_are_even_and_have_the_core_the_library_and_every_exercise(sources):
    page = _syllabus.syllabus({slug: _syllabus.chapter(slug, source) for slug, source in sources.items()})
    ratios = [float(ratio) for ratio in re.findall(r"the longest takes ([\d.]+) times", page)]
    assert len(ratios) == 3 and max(ratios) <= MOST
    assert page.count("| week\u00a0") == 14 + 6 and page.count(" day, ") == 4
    weeks, _, index = page.partition("## Two days")
    for slug, source in sources.items():
        times = weeks.count(f"{{ref}}`{_syllabus.chapter(slug, source).label}`")
        assert times == (2 if slug in chain.CORE else 1)
        for exercise in exercises.exercises(source, slug):
            assert index.count(f"{{ref}}`{exercise.title} <{exercise.label}>`") == 1


def test_the_core_comes_first():
    assert tuple(SLUGS[: len(chain.CORE)]) == chain.CORE


def test_a_chapter_states_the_minutes_that_the_rule_gives(sources):
    for slug, source in sources.items():
        stated = int(_staging.READING.search(source.cells[0].source)[0].split()[1])
        computed = _syllabus.reading_minutes(source)
        assert abs(stated - computed) <= max(10, computed / 4), f"{slug}: state {computed} minutes"


def test_parts_are_as_even_as_in_any_cut():
    generator = np.random.default_rng(0)
    for _ in range(40):
        minutes, parts = generator.integers(1, 30, size=8).tolist(), int(generator.integers(1, 6))
        cuts = [(0, *cut, 8) for cut in itertools.combinations(range(1, 8), parts - 1)]
        costs = [sum(sum(minutes[a:b]) ** 2 for a, b in itertools.pairwise(cut)) for cut in cuts]
        ours = [minutes[part] for part in _syllabus.partition(minutes, parts)]
        assert [one for part in ours for one in part] == minutes and all(ours)
        assert sum(sum(part) ** 2 for part in ours) == min(costs)


def test_the_map_has_every_chapter_once_and_the_library_beside_the_core_that_it_needs(sources):
    page = _map.chapter_map(sources)
    labels = {slug: _syllabus.LABEL.search(source.cells[0].source)[1] for slug, source in sources.items()}
    at = {slug: page.index(f"{{ref}}`{label}`") for slug, label in labels.items()}
    assert all(page.count(f"{{ref}}`{label}`") == 1 for label in labels.values())
    assert [slug for slug in sorted(at, key=at.get) if slug in chain.CORE] == list(chain.CORE)
    for slug, source in sources.items():
        box = dict(_syllabus.BOX.findall(source.cells[0].source))["Before you start"]
        needed = [one for one, label in labels.items() if f"`{label}`" in box and one in chain.CORE]
        assert all(at[one] < at[slug] for one in needed), f"{slug} needs a later chapter"
