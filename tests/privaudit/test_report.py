"""The page of an audit: true to its figures, one sheet for the officer, and nothing in it can run."""

import dataclasses
import html.parser
import io
import json
import re
from types import SimpleNamespace

import jsonschema
import numpy as np
import pypdf
import pytest
import toy_audit as toy
from browsing import axe_core

import privaudit
from privaudit import audit_pictures
from privaudit import console as programs
from privaudit.annex import ANNEX
from privaudit.probes.counts import Check
from privaudit.probes.memorization import guessed
from privaudit.verdict import FLAGGED, NOTHING_FOUND, UNDECIDED, Cause, Reason, Statement, decide
from privaudit.words import WORDING, sentence
from privhelpers.artifacts import to_json

SCRIPT = "<script>alert(1)</script>"
BIDI = chr(0x202E) + chr(27) + "[31m"
HEIGHT = 269 * 96 / 25.4  # of an A4 page within its margins, in CSS pixels
WIDTH = 180 * 96 / 25.4


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    home = tmp_path_factory.mktemp("report")
    members, others = (toy.notes(letter, 60, seed=n, extra=SCRIPT + " ") for n, letter in enumerate("mh"))
    canaries = [{"text": f"canary {n} {SCRIPT}", "inserted": n % 2 == 0} for n in range(40)]
    files = privaudit.read_files(
        toy.write(home / "m<b>.jsonl", members),
        toy.write(home / "h&.jsonl", others),
        toy.write(home / "c.jsonl", canaries),
    )
    tok = toy.tokenizer([row["text"] for row in toy.notes("x", 60, seed=9, extra=SCRIPT + " ")])
    folder = toy.save(toy.causal(tok), tok, home / "net<img onerror=x>")
    settings = privaudit.Settings(texts=12, tokens=8, permutations=3999, draws=60, epsilon=4.0, delta=1e-5)
    made = privaudit.run_audit(files, settings, target=privaudit.open_model(folder))
    made.texts[0] = SCRIPT + BIDI + "javascript:x"
    return made


@pytest.fixture(scope="module")
def page(audit):
    return privaudit.report_page(
        privaudit.report_facts(audit, made="today"), audit_pictures(audit), written=audit
    )


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    return reader


def test_no_inserted_text_becomes_markup(page, audit):
    reader = read(page)
    text = "".join(reader.text)
    assert "script" not in reader.tags and not any(name.startswith("on") for _, name, _ in reader.attributes)
    assert SCRIPT in text and "\\u202e" in text and "\\x1b[31m" in text and BIDI not in page
    assert "m<b>.jsonl" in text and "h&.jsonl" in text and "net<img onerror=x>" in text
    allowed = {"class", "lang", "charset", "http-equiv", "content", "name", "aria-label", "src", "alt"}
    allowed |= {"role", "tabindex"}
    assert {name for _, name, _ in reader.attributes} <= allowed
    assert all(value.startswith("data:image/svg+xml;base64,") for _, name, value in reader.attributes
               if name == "src")  # fmt: skip
    policy = next(value for tag, name, value in reader.attributes if tag == "meta" and "default-src" in value)
    assert "default-src 'none'" in policy and "script" not in policy and "unsafe" not in policy


def test_a_page_contains_no_text_of_a_record_by_default(audit):
    facts = privaudit.report_facts(audit)
    page = privaudit.report_page(facts, audit_pictures(audit))
    for note in (*audit.files.members.notes[:20], *audit.files.heldout.notes[:20]):
        number = re.search(r"SYN-(\d{8})", note.text)[1]
        assert number not in page and number not in to_json(facts).decode()
        assert note.text[:60] not in page


def test_the_figures_of_the_page_are_those_of_the_file(page, audit):
    facts = json.loads(to_json(privaudit.report_facts(audit)))
    text = " ".join("".join(read(page).text).split())
    for attack in facts["attacks"]:
        assert all(f"{value:.3f}" in text for value in attack["patient"]["auc"])
    assert len(facts["key_figures"]) == 3
    for figure in facts["key_figures"]:
        assert figure["interval"] and figure["control"] and figure["control_figures"]["value"]
        assert figure["question"] in text and figure["sentence"] in text
    assert facts["canaries"]["claim"]["epsilon"] == 4.0 and "not refuted" in text
    stars = [test["turned"] for test in facts["tests"] if "reverse" in test]
    assert {*stars} == {True, False} and len(re.findall(r"\d \*", text)) == sum(stars)
    assert all(file["sha256"] in text for file in facts["data"])
    jsonschema.validate(facts, json.loads(privaudit.report_schema()))
    assert facts["settings"]["seed"] == 0 and facts["versions"]["torch"]


ANSWERS = ("tested", "found", "not_tested", "next")


def words_in(markup):
    """Return the text of some HTML, white space as one space."""
    return " ".join("".join(read(markup).text).split())


def test_the_first_page_answers_in_four_sentences_and_explains_its_words(page, audit):
    facts, labels = privaudit.report_facts(audit), WORDING["labels"]
    first, asked = toy.first_page(page), facts["coverage"]
    box = words_in(re.search("<dl>.*?</dl>", first, re.DOTALL)[0])
    assert tuple(facts["answers"]) == ANSWERS
    assert box == " ".join(f"{labels[name]}{facts['answers'][name]}" for name in ANSWERS)
    for answer in facts["answers"].values():
        assert answer.endswith(".") and not re.search(r"[.!?] [A-Z]", answer), answer
    assert f"{asked['members']['patients'][0]} patients" in facts["answers"]["tested"]
    assert f"{len(audit.verdict.tests)} tests" in facts["answers"]["found"]
    terms = facts["first_page"]["terms"]
    assert all(f"{term} {meaning}" in words_in(first) for term, meaning in terms)
    assert [term for term, _ in terms][-2:] == ["Canaries:", "Differential privacy:"]
    alone = privaudit.report_facts(dataclasses.replace(audit, canaries=None))["first_page"]["terms"]
    assert "Canaries:" not in [term for term, _ in alone] and len(alone) == len(terms) - 1
    full = words_in(page.partition('<div class="full">')[2].partition('<div class="details"')[0])
    assert all(line in full for name in ("tested", "not_tested", "next", "reasons") for line in facts[name])


def test_a_finding_is_blamed_on_training_only_if_nothing_else_explains_it(audit):
    """In one sentence, whatever the verdict rests on."""
    loud = {"loss": 1e-4, "zlib": 2e-4, "min_k": 0.5, Check.CANARIES: 0.5}
    why = Statement(Cause.WORDS, (88,))
    bound = dataclasses.replace(audit.canaries.claim.lower, epsilon_lower=5.2369)
    claim = dataclasses.replace(audit.canaries.claim, lower=bound, gaussian=bound)
    refuted = dataclasses.replace(audit.canaries, claim=claim)

    def found(p_values, explanations=(), canaries=None):
        judged = decide(p_values, explanations, canaries, alpha=0.01)
        other = dataclasses.replace(audit, verdict=judged, canaries=canaries or audit.canaries)
        return privaudit.report_facts(other)["answers"]["found"]

    assert "2 of 4" in found(loud) and "loss" in found(loud)
    assert found(loud, (why,)) == sentence(why)
    assert found(loud | {Check.CANARIES: 1e-4}, (why,)) == sentence(Statement(Reason.CANARIES))
    assert "epsilon of 4" in found(loud, (), refuted)
    assert "at least 5.23 (" in found(dict.fromkeys(loud, 0.5), (), refuted), "no more than is certified"


OUTCOMES = [FLAGGED, UNDECIDED, NOTHING_FOUND]


def test_no_guessed_word_leaves_an_interval(audit):
    """A bootstrap of no hits has no width; of 60 patients without one it is up to 1 - 0.025^(1/60)."""
    for right in (0, 1):
        scored = SimpleNamespace(greedy=[np.full(9, right == 1)] * len(audit.sample.notes))
        for share in guessed(scored, audit.sample, audit.settings):
            ends = [0, 1 - 0.025 ** (1 / 60)] if right == 0 else [0.025 ** (1 / 60), 1]
            assert [share.low, share.high] == pytest.approx(ends) and share.estimate == right
    page = words_in(privaudit.report_page(privaudit.report_facts(audit)))
    assert "an interval near 0 or 1 contains the true figure less often" in page


def test_the_headline_reports_a_sample(audit):
    some = privaudit.Settings(patients=55, notes=None)
    kept = [n for n, note in enumerate(audit.sample.notes) if int(note.patient[1:]) < 55]
    sample = privaudit.Sample([audit.sample.notes[n] for n in kept], audit.sample.member[kept], 3)
    facts = privaudit.report_facts(dataclasses.replace(audit, settings=some, sample=sample))
    asked = "Tested: 55 of 60 patients and 55 of 60 held-out patients"
    assert f"{asked}." in facts["headline"]
    told = facts["coverage"]["sentence"]
    assert "at most 55 patients of a file and all notes of a patient" in told
    assert "turns 3 notes into no tokens" in told and not facts["coverage"]["whole"]


def test_limits_are_rounded_up_and_the_power_is_not(audit):
    weakest = dataclasses.replace(audit.sensitivity, auc=0.7321, tpr=0.0312, power=0.9049)
    facts = privaudit.report_facts(dataclasses.replace(audit, sensitivity=weakest))
    said = facts["sensitivity"]["sentence"]
    assert "in 74 of 100 pairs" in said and " 3.2 of 100" in said and " 90%" in said


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        opened = tools.chromium.launch(
            executable_path=programs.require_chromium("looks at the report"), args=["--no-sandbox"]
        )
        yield opened
        opened.close()


@pytest.mark.browser
def test_the_longest_first_page_of_each_outcome_fits_a_sheet(browser, page, audit):
    tab = browser.new_page(viewport={"width": round(WIDTH), "height": 1100})
    messages, asked = [], []
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("request", lambda request: asked.append(request.url))
    tab.emulate_media(media="print")
    longest = [toy.longest_page(audit, outcome)[1] for outcome in OUTCOMES]
    for shown in (page, *longest):
        tab.set_content(shown)
        box = tab.locator(".summary").bounding_box()
        assert box["height"] <= HEIGHT, box
        assert box["width"] <= WIDTH + 1
    assert not messages and not [url for url in asked if not url.startswith("data:")]
    styled = tab.evaluate("getComputedStyle(document.querySelector('.verdict')).borderLeftWidth")
    assert styled == "12px"
    tab.close()


@pytest.mark.browser
def test_the_first_sheet_of_the_pdf_is_the_whole_first_page_and_nothing_else(audit):
    pdf = toy.check_first_sheet(*toy.longest_page(audit, FLAGGED))
    assert b"/StructTreeRoot" in pdf and b"/JavaScript" not in pdf and b"/Launch" not in pdf
    sheets = [toy.text_of(sheet.extract_text()) for sheet in pypdf.PdfReader(io.BytesIO(pdf)).pages]
    assert sheets[-1].startswith(toy.text_of(ANNEX["title"]))
    assert (
        sheets[-1].endswith(toy.text_of(ANNEX["sources"])) and toy.text_of(ANNEX["title"]) not in sheets[-2]
    )


@pytest.mark.browser
def test_the_annex_fits_a_sheet_and_has_no_barriers(browser, page, audit):
    tab = browser.new_page(viewport={"width": round(WIDTH), "height": 1100})
    for shown in (page, *(toy.longest_page(audit, outcome)[1] for outcome in OUTCOMES)):
        tab.emulate_media(media="print")
        tab.set_content(shown)
        assert tab.locator(".annex").bounding_box()["height"] <= HEIGHT
        assert tab.evaluate("getComputedStyle(document.querySelector('.annex')).breakBefore") == "page"
    tab.emulate_media(media="screen")
    tab.evaluate(axe_core())
    found = tab.evaluate(
        "axe.run('.annex', {resultTypes: ['violations']}).then(all => all.violations.map(v => v.id))"
    )
    assert found == []
    tab.close()
