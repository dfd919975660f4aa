"""The whole chain on the smoke profile: what it leaves, and that a second run has nothing to do."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import identities
import pytest
import toy_chain
import yaml
from bs4 import BeautifulSoup
from patience import LIMIT_SECONDS

import privaudit
from bookmaker.runner import chain, published
from privhelpers.text import in_words

pytestmark = pytest.mark.chain

MODELS = ["public", "baseline", "best_nonprivate", "equal_use", "dp-eps-1", "dp-eps-8"]
KEYS = {
    *(
        "epsilon",
        "delta",
        "perplexity",
        "macro_f1",
        "macro_f1_floor",
        "mia_auc",
        "mia_auc_low",
        "mia_auc_high",
    ),
    *("tpr_at_1pct_fpr", "canaries_planted", "canaries_extracted", "canaries_extracted_control"),
    *("mean_exposure", "mean_exposure_control", "exposure_at_most", "attempts", "distinct_generations"),
    *("strict_leaks", "strict_leaks_control", "loose_leaks", "loose_leaks_control", "best_attack_auc"),
    *("best_attack_tpr_at_1pct_fpr", "best_attack_tpr_at_01pct_fpr", "token_attacks_gain_at_01pct_fpr"),
    *("patient_auc", "audit_epsilon_lower"),
}


@pytest.fixture(scope="session")
def runs(smoke_site):
    return smoke_site.root / "runs" / "smoke"


@pytest.fixture(scope="session")
def summary(runs):
    return json.loads((runs / "summary.json").read_text())["models"]


def own_model_page():
    return Path(privaudit.__file__).with_name("report.html")


def make(root, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "bookmaker", *arguments]
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )


def test_summary_has_every_model_and_every_figure(summary):
    assert list(summary) == MODELS or set(summary) == set(MODELS)
    for name, row in summary.items():
        assert set(row) >= KEYS, name
        assert (row["epsilon"] is None) == (not name.startswith("dp-"))
        numbers = [v for v in row.values() if isinstance(v, float)]
        assert all(map(math.isfinite, numbers))
        assert row["mia_auc_low"] <= row["mia_auc"] <= row["mia_auc_high"]
        assert row["distinct_generations"] <= row["attempts"] == 14 * 8


def test_the_site_has_the_whole_report_of_the_audit(runs, smoke_site):
    """With every section of the template, the chapter's figures and the hashes of what it was made of."""
    home = runs / "artifacts" / "your_model"
    page = (smoke_site.html / "reports" / "your_model.html").read_bytes()
    assert page == (home / "report.html").read_bytes()
    facts = json.loads((home / "report.json").read_text(encoding="utf-8"))
    soup = BeautifulSoup(page, "html.parser")
    text, headings = soup.get_text(), [one.get_text() for one in soup.select("h1, h2, h3")]
    sections = re.findall(r"<h[23]>([^<{]+)</h", own_model_page().read_text(encoding="utf-8"))
    asked = {"Canaries": facts["canaries"], "Confidential: what the model wrote": None}
    expected = [name for name in sections if asked.get(name, True)]
    assert len(expected) > 8 and [name for name in headings if name in sections] == expected
    assert all(answer in text for answer in facts["answers"].values())
    for attack in facts["attacks"]:
        assert all(f"{end:.3f}" in text for end in attack["patient"]["auc"])
    assert all(test["name"] in text for test in facts["tests"]) and len(soup.find_all("img")) == 3
    assert all(row["sha256"] in text for row in facts["data"])
    chapter = (smoke_site.html / "notebooks" / "your_model.html").read_text(encoding="utf-8")
    shown = BeautifulSoup(chapter, "html.parser").article
    assert shown.find("a", href="../reports/your_model.html")
    assert all(answer in shown.get_text() for answer in facts["answers"].values())


def test_the_site_has_the_sheet_for_readers_and_not_its_key(runs, smoke_site):
    home = runs / "artifacts" / "hipaa"
    page = (smoke_site.html / "reports" / "hipaa.html").read_bytes()
    assert page == (home / "sheet.html").read_bytes()
    key = json.loads((home / "sheet_key.json").read_text(encoding="utf-8"))
    items = BeautifulSoup(page, "html.parser").tbody.find_all("tr")
    assert [row.th.get_text() for row in items] == list(key) and set(key.values()) == {"member", "control"}
    assert not list(smoke_site.html.rglob("*sheet_key*"))
    chapter = (smoke_site.html / "notebooks" / "hipaa.html").read_text(encoding="utf-8")
    assert BeautifulSoup(chapter, "html.parser").article.find("a", href="../reports/hipaa.html")


def test_a_model_card_has_the_promise_and_every_figure_beside_its_control(smoke_site, summary):
    page = (smoke_site.html / "book" / "model_cards.html").read_text(encoding="utf-8")
    assert published.WORTH in BeautifulSoup(page, "html.parser").get_text()
    cards = {
        card.h2.contents[0].replace("\u00a0", " "): card
        for card in BeautifulSoup(page, "html.parser").select("section section")
    }
    for model in MODELS:
        card, spent = cards[in_words(model)], summary[model]["epsilon"]
        facts, measured = card.select("table")
        promise = f"epsilon {spent:.4g} at delta 0.0001; unit: patient" if spent else "none"
        assert promise in facts.get_text() and ("lower bound of the audit" in facts.get_text()) == bool(spent)
        arms = {}
        for row in measured.select("tbody tr"):
            measure, people, *_ = (cell.get_text() for cell in row.select("td"))
            arms.setdefault(measure, []).append(people)
        assert len(arms) > 8
        both = ["training set", "held out"]
        assert all(people in (both, both[1:]) for people in arms.values())


def test_cards_over_links_show_words_theorems_and_figures_without_links_of_their_own(smoke_site):
    head, _, data = (smoke_site.html / "_static" / "cards-data.js").read_text("utf-8").partition(" = ")
    cards = json.loads(data.rstrip(";\n"))
    assert head == "window.bookCards" and "book/glossary.html#term-epsilon" in cards
    assert any('class="math' in card for card in cards.values())
    assert any('src="_images/' in card for name, card in cards.items() if "#fig-" in name)
    assert not any(
        " id=" in card or "<a " in card.replace('<a class="reference external"', "")
        for card in cards.values()
    )


def test_every_value_on_a_page_is_a_table_or_a_picture(runs):
    raw = []
    for path in sorted((runs / "notebooks").rglob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            shown = [out["data"] for out in cell.get("outputs", []) if out["output_type"] == "execute_result"]
            raw += [(path.stem, data) for data in shown if not {"text/html", "image/png"} & set(data)]
    assert not raw


def test_every_lower_bound_lies_below_its_upper_bound(summary):
    for name, row in summary.items():
        if row["epsilon"] is None:
            assert row["audit_epsilon_lower"] is None, name
        else:
            assert 0 <= row["audit_epsilon_lower"] <= row["epsilon"], name


def test_the_loud_faults_are_refuted_and_the_honest_run_is_not(runs):
    broken = json.loads((runs / "summary.json").read_text())["broken"]
    loud = {"noise off", "noise / B twice", "clipping off"}
    assert set(broken) == loud | {"honest", "clamped noise", "shuffled"}
    for name, row in broken.items():
        assert (row["audit_epsilon_lower"] > row["claimed_epsilon"]) == (name in loud), name
        assert row["best_attack_auc_low"] <= row["best_attack_auc"] <= row["best_attack_auc_high"]


def test_budgets_are_kept(summary):
    for target in (1, 8):
        row = summary[f"dp-eps-{target}"]
        assert 0.99 * target < row["epsilon"] <= target
        assert row["delta"] == 1e-4


def test_the_story_is_visible_even_at_this_size(summary):
    baseline, public = summary["baseline"], summary["public"]
    assert baseline["mia_auc_low"] > public["mia_auc_high"]
    assert baseline["canaries_extracted"] > 0 == baseline["canaries_extracted_control"]
    assert baseline["mean_exposure"] > baseline["mean_exposure_control"] + 2
    assert public["canaries_extracted"] == 0
    assert summary["dp-eps-8"]["perplexity"] < summary["dp-eps-1"]["perplexity"] < public["perplexity"]
    assert all(summary[name]["canaries_extracted"] == 0 for name in ("dp-eps-1", "dp-eps-8"))


def test_the_manifest_seals_every_artifact(runs):
    manifest = json.loads((runs / "manifest.json").read_text())
    assert len(manifest["runs"]) == toy_chain.runs(epsilons=2)
    for run in manifest["runs"].values():
        assert run["seconds"] > 0 and run["versions"]["torch"] and run["parameters"]["profile"] == "smoke"
        assert all(len(digest) == 64 for digest in run["artifacts"].values())


def test_executed_notebooks_hold_no_path_of_the_machine(runs, smoke_site):
    for path in (runs / "notebooks").rglob("*.ipynb"):
        assert str(smoke_site.made_in) not in path.read_text()


def test_nothing_generated_could_belong_to_a_person(runs):
    from privhelpers.records import refuse_unsafe

    for path in (runs / "artifacts" / "synthetic_records").glob("*.jsonl"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            refuse_unsafe(line, f"{path.name}, line {number}")


def test_no_page_shows_what_could_be_somebodys(smoke_site):
    pages, values = identities.site(smoke_site.html)
    assert pages > 60 and values == []


@pytest.mark.nightly
def test_a_chapter_run_by_hand_leaves_the_profile_as_it_is(smoke_site, runs, tmp_path):
    before = {p: p.read_bytes() for p in (runs / "artifacts").rglob("*") if p.is_file()}
    sizes = yaml.safe_load((smoke_site.root / "params" / "smoke.yml").read_text())["who_is_exposed"]
    environment = {**os.environ, "PYTHONPATH": str(smoke_site.root), "PYTHONDONTWRITEBYTECODE": "1"}
    page = tmp_path / "out.ipynb"

    def by_hand(slug, **given):
        chosen = [word for pair in given.items() for word in ("-p", *map(str, pair))]
        notebook = str(chain.source(smoke_site.root, slug))
        return subprocess.run(
            [sys.executable, "-m", "papermill", notebook, str(page), "-p", "profile", "smoke", *chosen],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
        )

    done = by_hand("who_is_exposed", seed=1, **sizes)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "started by hand" in page.read_text()
    assert before == {p: p.read_bytes() for p in (runs / "artifacts").rglob("*") if p.is_file()}
    (made,) = (runs / "by_hand").glob("*/who_is_exposed")
    assert (made / "exposed.json").exists()
    done = by_hand("composition", seeds=1)
    assert done.returncode and "did you mean seed" in done.stderr


@pytest.mark.nightly
def test_full_starts_from_a_cached_model_of_the_hub(smoke_site, runs, tmp_path):
    """The settings of `full`, on a CPU, where a toy stands in the cache as GPT-2."""
    from privhelpers import models

    toy, tokenizer = models.load(runs / "artifacts" / "public_pretraining" / "public")
    cached, commit = tmp_path / "hub" / "models--gpt2", 40 * "0"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text(commit)
    models.save(toy, tokenizer, cached / "snapshots" / commit)
    profile = yaml.safe_load((smoke_site.root / "params" / "full.yml").read_text())["public_pretraining"]
    assert profile["architecture"] == "gpt2"
    settings = tmp_path / "settings.yml"
    numbers = {name: float(value) for name, value in profile.items() if "e-" in str(value)}  # "5e-5" is text
    settings.write_text(yaml.safe_dump(profile | numbers | {"profile": "smoke"}))
    notebook, page = chain.source(smoke_site.root, "public_pretraining"), tmp_path / "out.ipynb"
    done = subprocess.run(
        [sys.executable, "-m", "papermill", str(notebook), str(page), "-f", str(settings)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(smoke_site.root), "HF_HUB_CACHE": str(tmp_path / "hub")}
        | {"HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    homes = (runs / "by_hand").glob("*/public_pretraining/public")
    (trained,) = [models.load(home)[0] for home in homes]
    before, after = toy.get_input_embeddings().weight, trained.get_input_embeddings().weight
    assert after.shape == before.shape and not after.equal(before)
    assert (after - before).abs().mean() < 0.1 * before.abs().mean(), "went on from the cached weights"


def test_a_second_run_has_nothing_to_do(smoke_site, runs):
    before = {p: p.stat().st_mtime_ns for p in runs.rglob("run.json")}
    done = make(smoke_site.root, "book", "--profile", "smoke", "--cores", "2")
    assert done.returncode == 0, done.stderr
    assert " started" not in done.stdout + done.stderr
    assert before == {p: p.stat().st_mtime_ns for p in runs.rglob("run.json")}


@pytest.mark.nightly
def test_students_get_every_chapter_without_its_solutions(smoke_site):
    done = make(smoke_site.root, "student", "--profile", "smoke")
    assert done.returncode == 0, done.stderr
    copies = sorted((smoke_site.root / "runs/smoke/student/notebooks").glob("*.ipynb"))
    assert sorted(chain.slug_of(path.name) for path in copies) == sorted(chain.SLUGS)
    for path in copies:
        text = path.read_text()
        assert "{solution}" not in text and '"solution"' not in text, path.name
        assert "# Your code here" in text and "The solution of the book shows this" in text, path.name


def right_answers(folder, slug):
    """Return what the right choice of each question says, from a GIFT file of the quizzes."""
    text = (folder / f"{slug}.gift").read_text()
    parts = r"::[^:]*? ([a-z0-9-]+)::\[html\].*?^=(.*?)(?<!\\)#"
    return dict(re.findall(parts, text, flags=re.MULTILINE | re.DOTALL))


@pytest.mark.nightly
def test_the_quizzes_hold_the_numbers_of_the_run(smoke_site):
    done = make(smoke_site.root, "quizzes", "--profile", "smoke")
    assert done.returncode == 0, done.stderr
    folder = smoke_site.root / "build" / "quizzes"
    assert sorted(path.stem for path in folder.glob("*.gift")) == sorted(chain.SLUGS)
    asked = {slug: len(right_answers(folder, slug)) for slug in chain.SLUGS}
    assert asked == {slug: 30 if slug in chain.CORE else 5 for slug in chain.SLUGS}
    rows = smoke_site.root / "runs/smoke/artifacts/comparison/tests.jsonl"
    first = 0.05 / len(rows.read_text().splitlines())
    assert right_answers(folder, "comparison")["first-of-holm"] == f"{first:.2g}"
    loses = next(n for n in range(1, 1000) if int(1 / (1 / n)) < n)
    assert right_answers(folder, "opacus")["short-loader"] == str(loses - 1)


def test_every_chapter_shows_its_quiz(smoke_site):
    for slug in chain.SLUGS:
        text = (smoke_site.html / "notebooks" / f"{slug}.html").read_text()
        assert text.count('class="quiz-question') == 5 and text.count("quiz-right") == 5, slug
