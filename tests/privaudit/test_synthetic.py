"""The audit of synthetic texts: what repeats its records is found, what comes from other people is not."""

import itertools
import json
import math
import random
import re
from collections import defaultdict

import jsonschema
import numpy as np
import pandas as pd
import pytest
import toy_audit as toy
from tables import parquet

import privaudit
from privaudit import audit_pictures
from privaudit.encode import draw_sample
from privaudit.probes.likeness import Likeness, near_copies, word_losses
from privaudit.probes.risks import inferred, linked, singled_out
from privaudit.records import Canary, CanaryFile, Files, Note, RecordFile, TextFile
from privaudit.verdict import FLAGGED, NOTHING_FOUND, UNDECIDED, Cause
from privaudit.words import WORDING
from privhelpers.artifacts import to_json

LITTLE = privaudit.Settings(permutations=1999, draws=60)


def side(name, rows):
    notes = (
        Note(n, row["patient_id"], row["text"], tuple(row.get("identifiers", ())))
        for n, row in enumerate(rows, 1)
    )
    return RecordFile(name, "0" * 64, len(rows), tuple(notes))


def files(members, heldout, texts, canaries=None):
    return Files(side("m", members), side("h", heldout), canaries, TextFile("s.csv", "0" * 64, tuple(texts)))


def texts_of(rows):
    return [row["text"] for row in rows]


MEMBERS, HELDOUT, OTHERS = (toy.notes(letter, 60, seed=n) for n, letter in enumerate("mhx"))
COPIES = [*texts_of(MEMBERS)[::2], *texts_of(OTHERS)]


@pytest.fixture(scope="module")
def copied():
    """Every third text repeats a member's note; the others come from no one."""
    return privaudit.run_audit(files(MEMBERS, HELDOUT, COPIES), LITTLE)


@pytest.fixture(scope="module")
def elsewhere():
    return privaudit.run_audit(files(MEMBERS, HELDOUT, texts_of(OTHERS)), LITTLE)


def test_a_set_that_repeats_its_records_is_flagged(copied):
    assert copied.verdict.outcome == FLAGGED
    assert min(test.adjusted for test in copied.verdict.tests) < 0.001
    assert {attack.name for attack in copied.attacks} == {"words", "closest", "covered"}
    for attack in copied.attacks:
        assert attack.patient.auc.low > 0.55 and 0.5 in attack.nulls["permuted"], attack.name
    repeated = {row["patient_id"] for row in MEMBERS[::2]}
    shares = copied.copies.by_patient
    assert (shares.members.hits, shares.heldout.hits) == (len(repeated), 0)
    assert copied.copies.texts == len(MEMBERS[::2]) and copied.copies.heldout_texts == 0
    assert copied.disclosures.by_patient.members.hits == len(repeated)
    for name in ("singling_out", "linkability", "inference"):
        assert copied.risks[name].difference.low > 0, name


def test_a_set_of_other_people_is_not(elsewhere):
    assert elsewhere.verdict.outcome == NOTHING_FOUND
    assert elsewhere.copies.by_patient.members.hits == 0
    for name, shares in elsewhere.risks.items():
        assert shares.difference.low <= 0 <= shares.difference.high, name


def test_a_set_without_a_word_of_the_notes_has_the_words_as_its_key_figure():
    foreign = [f"\u4eca\u65e5 {chr(0x4E00 + n)}{chr(0x4E10 + n)}" for n in range(60)]
    rows = [[{"patient_id": f"{side}{n}", "text": f"{side}{n} seen"} for n in range(60)] for side in "mh"]
    audit = privaudit.run_audit(files(*rows, foreign), LITTLE)
    assert [attack.name for attack in audit.attacks] == ["words"]
    assert audit.attacks[0].patient.auc.estimate == 0.5
    left = privaudit.report_facts(audit)["not_tested"]
    for attack in ("closest", "covered"):
        assert f"what does not apply here: {WORDING['attacks'][attack]}" in left


def test_standard_phrases_are_phantoms():
    """Both groups contain one phrase; a set that repeats it copies no one."""
    formula = "Called the ward and asked for the usual leaflet about sleep and walking every day."
    shared = [
        [*rows, *({"patient_id": f"{letter}{n}", "text": f"{formula} Room {n}."} for n in range(40))]
        for letter, rows in (("m", MEMBERS), ("h", HELDOUT))
    ]
    audit = privaudit.run_audit(files(*shared, [f"{formula} Room {n}." for n in range(100, 160)]), LITTLE)
    copies = audit.copies
    assert copies.texts == copies.heldout_texts == 60 and audit.verdict.outcome == NOTHING_FOUND
    assert copies.by_patient.members.hits == copies.by_patient.heldout.hits == 40
    assert copies.phantoms.low < 40 < copies.phantoms.high
    assert copies.phantoms.estimate == pytest.approx(40)


def test_files_that_differ_decide_nothing():
    later = toy.notes("h", 60, seed=1, extra="night ")
    audit = privaudit.run_audit(files(MEMBERS, later, texts_of(OTHERS)), LITTLE)
    first = privaudit.report_facts(audit)["next"][0]
    assert first == WORDING["synthetic"]["next"][UNDECIDED][0], "none are exchanged"
    assert audit.verdict.outcome == UNDECIDED and audit.verdict.reasons[0].key == Cause.WORDS
    copied = files(MEMBERS, later, texts_of(MEMBERS))
    with toy.compared(audit.blind):
        of_the_files = privaudit.run_audit(copied, LITTLE)
    assert of_the_files.verdict.outcome == UNDECIDED and of_the_files.blind is audit.blind


def with_canaries(start):
    """Audit a set that holds every second one of 60 canaries, from the first one or the second."""
    lines = [toy.notes("c", 1, seed=n)[0]["text"] for n in range(60)]
    canaries = CanaryFile("c", "0" * 64, tuple(Canary(n, t, n % 2 == 0) for n, t in enumerate(lines)))
    submitted = files(MEMBERS, HELDOUT, [*lines[start::2], *texts_of(OTHERS)], canaries)
    return privaudit.run_audit(submitted, LITTLE)


@pytest.fixture(scope="module")
def echoing():
    return with_canaries(0)


def test_canaries_echo_in_a_set_that_was_made_from_them(echoing):
    kept_out = with_canaries(1)
    for audit, outcome in ((echoing, FLAGGED), (kept_out, UNDECIDED)):
        assert audit.verdict.outcome == outcome
        assert (audit.canaries.p <= 0.001) == (outcome == FLAGGED)
    assert kept_out.canaries.reverse_p <= 0.001 and kept_out.verdict.reasons[0].key == Cause.INVERTED
    steps = [privaudit.report_facts(audit)["next"] for audit in (kept_out, echoing)]
    assert [WORDING["check"]["inverted"] in step for step in steps] == [True, False]


@pytest.fixture(scope="module")
def of_the_others(copied):
    """Every text repeats a held-out note."""
    submitted = files(HELDOUT, MEMBERS, texts_of(MEMBERS))
    with toy.compared(copied.blind):
        return privaudit.run_audit(submitted, LITTLE)


def test_a_figure_of_nothing_or_of_all_has_an_interval(of_the_others):
    attacks = privaudit.report_facts(of_the_others)["attacks"]
    for figure in ("auc", "tpr_at_1pct_fpr", "tpr_at_01pct_fpr"):
        for estimate, low, high in (
            attack[unit][figure] for attack in attacks for unit in ("patient", "note")
        ):
            assert estimate == low == 0 and 0.03 < high < 0.1, figure
    few = privaudit.report_facts(of_the_others)["key_figures"][1]
    assert (few["value"], few["interval"]) == ("0", "0 to 6.0")


def test_a_set_that_repeats_held_out_notes_is_undecided(of_the_others):
    audit = of_the_others
    assert audit.verdict.outcome == UNDECIDED and audit.verdict.reasons[0].key == Cause.EXCHANGED
    for counted in (audit.copies, audit.disclosures):
        assert counted.by_patient.reverse_p < 0.001 < 0.999 < counted.by_patient.p
    assert audit.risks["singling_out"].p > 0.5
    # A leak need not single out more members, so that this is not asked of held-out patients.
    facts, words = privaudit.report_facts(audit), WORDING
    assert facts["next"][0] == facts["answers"]["next"] == words["check"]["exchanged"]
    assert facts["next"][1:] == words["synthetic"]["next"][UNDECIDED]
    asked = {words["tests"][name] for name in ("copies", "disclosures")}
    names = words["attacks"]["words"], words["attacks"]["closest"], words["attacks"]["covered"]
    asked |= {f"{name}: {test}" for name in names for test in words["attack_tests"].values()}
    assert {test["name"] for test in facts["tests"] if "reverse" in test} == asked
    dash = '<td class="n">–</td></tr>'
    assert privaudit.report_page(facts).count(dash) == len(facts["tests"]) - 8


def chain_of(rows, count):
    """Texts of a maker that knows which word follows which, and throws away what is close to members."""
    draw, after = random.Random(0), defaultdict(list)
    for text in texts_of(rows):
        for word, following in itertools.pairwise(["", *text.split()]):
            after[word].append(following)

    def next_word(word, _):
        return draw.choice(after[word] or after[""])

    chain = [" ".join(itertools.accumulate(range(12), next_word, initial="")) for _ in range(2000)]
    closeness = Likeness(texts_of(MEMBERS), chain).nearest(chain)
    return [chain[place] for place in np.argsort(closeness)[:count]]


@pytest.mark.parametrize(("rows", "count", "outcome"), [(MEMBERS, 400, FLAGGED), (OTHERS, 1000, UNDECIDED)])
def test_a_maker_that_drops_close_texts_leaks_by_that(rows, count, outcome):
    """It inverts the closest texts: that excuses no finding of other tests, and is not "nothing found"."""
    audit = privaudit.run_audit(files(MEMBERS, HELDOUT, chain_of(rows, count)), LITTLE)
    areas = {attack.name: attack.patient.auc for attack in audit.attacks}
    assert areas["closest"].high < 0.5
    assert (areas["words"].low > 0.5) == (outcome == FLAGGED)
    assert audit.verdict.outcome == outcome


@pytest.mark.parametrize("outcome", [FLAGGED, UNDECIDED, NOTHING_FOUND])
def test_the_longest_first_page_has_at_most_350_words(echoing, outcome):
    facts, page = toy.longest_page(echoing, outcome)
    words = re.sub("<[^>]+>", " ", toy.first_page(page)).split()
    assert 150 < len([word for word in words if any(c.isalnum() for c in word)]) <= 350
    assert facts["canaries"] and facts["named"] and not facts["coverage"]["whole"]


@pytest.mark.parametrize("which", ["copied", "elsewhere"])
def test_the_report_follows_its_schema_and_quotes_no_patient(request, which):
    audit = request.getfixturevalue(which)
    facts = json.loads(to_json(privaudit.report_facts(audit, made="today")))
    jsonschema.validate(facts, json.loads(privaudit.report_schema()))
    page = privaudit.report_page(facts, audit_pictures(audit))
    assert "s.csv" in facts["title"] and facts["title"] in page and facts["coverage"]["whole"]
    assert facts["copies"]["sentence"] in page and facts["named"]["sentence"] in page
    assert page.count('class="sign"') == 1 and all(what in page for _, what in facts["severity"])
    for risk in facts["risks"].values():
        assert risk["words"] in page and all(f"{end:.3f}" in page for end in risk["difference"])
    for row in (*MEMBERS[:9], *HELDOUT[:9]):
        assert row["text"][:40] not in page and row["text"][-12:-1] not in page


def test_the_model_of_word_counts_is_witten_and_bells():
    """By hand: "a b a c" after a start, and what each run leaves for words that it never saw."""
    learn, anything = ["a b a c"], 1 / 4  # three words and an unknown one
    one = {word: (count + 3 * anything) / (4 + 3) for word, count in (("a", 2), ("b", 1), ("z", 0))}
    start_a = (1 + 1 * one["a"]) / 2  # "a" is all that ever began a text
    after_a = (1 + 2 * one["b"]) / (2 + 2)  # two kinds of words after "a"
    after_start_a = (1 + 1 * after_a) / 2
    after_b = (0 + 1 * one["z"]) / (1 + 1)
    after_a_b = (0 + 1 * after_b) / (1 + 1)
    expected = -np.mean([math.log(start_a), math.log(after_start_a), math.log(after_a_b)])
    assert word_losses(learn, ["A b, z"])[0] == pytest.approx(expected)


def test_a_near_copy_is_one_by_its_runs_of_three_words():
    words = [f"w{n}" for n in range(30)]
    text = " ".join(words)
    for changed, near in ((0, True), (1, True), (2, False)):
        other = " ".join([f"x{n}" if n < changed else word for n, word in enumerate(words)][::1])
        middle = " ".join([*words[:14], *["y"] * changed, *words[14 + changed :]])
        assert near_copies([text], [other])[0][0], "one end costs one run for each word"
        assert bool(near_copies([text], [middle])[0][0]) == near
    repeated, repeats = near_copies([text, "a b c d"], ["e f g h", text.upper()])
    assert repeated.tolist() == [True, False] and repeats.tolist() == [False, True]


def test_a_comparison_keeps_no_number_for_each_pair_of_a_note_and_a_text():
    """A word, or a run of three, in all of them makes every product other than zero."""
    texts, notes = (
        [f"seen here today {letter}{n}" for n in range(size)] for letter, size in (("t", 1000), ("n", 3000))
    )
    every_pair = 12 * len(texts) * len(notes)  # bytes: a number and a place
    likeness = Likeness(texts, notes)
    assert toy.peak_of(lambda: likeness.nearest(notes)) < every_pair / 2
    assert toy.peak_of(lambda: near_copies(notes, texts)) < every_pair / 2


def test_a_singled_out_patient_is_alone_in_the_group():
    """A guess that fits two members, or no one, singles out no one; the other group does not matter."""
    members = [{"patient_id": f"m{n}", "text": f"seen with quartz umber {n // 2}"} for n in range(60)]
    members[0]["text"] = "seen with zebra onyx violet"
    heldout = [{"patient_id": f"h{n}", "text": f"seen with quartz umber {n + 500}"} for n in range(60)]
    texts = ["the zebra onyx violet", "the quartz umber 4", *(f"the ward here {n}" for n in range(900, 960))]
    submitted = files(members, heldout, texts)
    sample = draw_sample(submitted, [], LITTLE)
    shares = singled_out(texts, sample, Likeness(texts, sample.texts), LITTLE)
    assert (shares.members.hits, shares.heldout.hits) == (1, 0)


CONDITIONS = ("asthma", "gout", "anemia", "eczema")


def own_words(letter, n):
    """A note whose other words are of its patient alone, and a condition that several patients have."""
    words = [f"{letter}{n}{part}" for part in "qrst"]
    return f"{words[0]} came on {words[1]} with {CONDITIONS[n % 4]} again {words[2]} and {words[3]}"


def asked_about(texts):
    rows = [
        [{"patient_id": f"{letter}{n}", "text": own_words(letter, n)} for n in range(60)] for letter in "mh"
    ]
    sample = draw_sample(files(*rows, texts), [], LITTLE)
    return sample, Likeness(texts, sample.texts)


def test_a_share_of_the_word_that_was_taken_out_is_compared_with_the_others():
    """The set gives the condition of members by their other words, and says nothing of the others."""
    texts = [own_words("m", n) for n in range(60)]
    sample, likeness = asked_about(texts)
    shares = inferred(texts, sample, likeness)
    assert shares.members.hits == 60 and shares.heldout.hits == 0 and shares.difference.low > 0.9
    led = linked(sample, likeness)
    assert led.members.hits == 60 and led.heldout.hits < 5 and led.difference.low > 0.8


def test_texts_that_are_close_to_no_note_infer_nothing():
    """Texts that share a condition and none of the rare words are not evidence about anyone."""
    texts = [own_words("x", n) for n in range(60)]
    sample, likeness = asked_about(texts)
    shares = inferred(texts, sample, likeness)
    assert (shares.members.hits, shares.heldout.hits) == (0, 0) and shares.members.of == 60


def test_a_text_that_mixes_two_notes_links_neither():
    """Each text has the first half of one member's note and the second half of another's."""
    halves = [own_words("m", n).split() for n in range(60)]
    middle = len(halves[0]) // 2
    texts = [" ".join([*halves[n][:middle], *halves[(n + 1) % 60][middle:]]) for n in range(60)]
    sample, likeness = asked_about(texts)
    assert linked(sample, likeness).members.hits == 0


@pytest.mark.wrong_numbers
def test_other_words_change_no_figure_of_a_report(of_the_others, monkeypatch):
    def figures():
        with toy.compared(of_the_others.blind):
            audit = privaudit.run_audit(of_the_others.files, LITTLE)
        facts = privaudit.report_facts(audit)
        kept = {name: value for name, value in facts.items() if name not in ("first_page", "key_figures")}
        return audit.verdict.outcome, numbers(kept), len(facts["next"]), len(facts["not_tested"])

    def numbers(facts):
        """Return keys, numbers and shapes, and leave out every word."""
        if isinstance(facts, dict):
            return {key: numbers(value) for key, value in facts.items()}
        if isinstance(facts, list):
            return [numbers(value) for value in facts]
        return str if isinstance(facts, str) else facts

    usual = figures()
    toy.reword(monkeypatch)
    assert figures() == usual


def written(home, kind, name, rows, fields):
    """Write rows as a file of a kind, its fields under other names."""
    table = pd.DataFrame([{fields.get(key, key): value for key, value in row.items()} for row in rows])
    path = home / f"{name}.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_dict("records")), encoding="utf-8")
    elif kind == "csv":
        table.to_csv(path, index=False)
    else:
        path.write_bytes(parquet(table))
    return path


SAME = {
    "renamed": {"name": "z"},
    "in a folder": {"folder": "elsewhere"},
    "as CSV": {"kind": "csv"},
    "as Parquet": {"kind": "parquet"},
    "other columns": {"fields": {"patient_id": "mrn", "text": "note"}},
    "other order": {"order": -1},
    "other ids": {"ids": lambda patient: f"{patient[0]}-{997 * (int(patient[1:]) + 1) % 1009}"},
}


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Return what an audit finds of the same records in a file of some form, all but what names the file."""
    texts = texts_of(MEMBERS[::4]) + texts_of(OTHERS)
    canaries = [{"text": f"Canary {n} of the ward {n % 7}", "inserted": n % 3 == 0} for n in range(40)]

    def find(kind="jsonl", name="a", folder=".", fields=None, order=1, ids=str):
        home, fields = tmp_path_factory.mktemp("same") / folder, fields or {}
        home.mkdir(exist_ok=True)
        sides = []
        for number, rows in enumerate((MEMBERS, HELDOUT)):
            rows = [{"patient_id": ids(row["patient_id"]), "text": row["text"]} for row in rows[::order]]
            sides.append(written(home, kind, f"{name}{number}", rows, fields))
        made = written(home, kind, f"{name}-c", canaries[::order], fields)
        synthetic = written(home, kind, f"{name}-s", [{"text": text} for text in texts[::order]], fields)
        submitted = privaudit.read_files(*sides, made, synthetic=synthetic, columns=fields)
        settings = privaudit.Settings(patients=50, notes=1, permutations=1999, draws=20)
        audit = privaudit.run_audit(submitted, settings)
        facts = privaudit.report_facts(audit)
        facts["data"] = [
            {key: value for key, value in one.items() if key not in ("file", "sha256")}
            for one in facts["data"]
        ]
        for named in ("first_page", "title", "coverage", "canary_file", "synthetic"):
            del facts[named]
        return audit.sample.texts, facts

    return find


@pytest.fixture(scope="module")
def usual(audited):
    return audited()


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("form", SAME)
def test_the_same_records_give_the_same_audit_in_every_form(form, audited, usual):
    texts, facts = audited(**SAME[form])
    assert texts == usual[0] and len(texts) == 100
    assert facts == usual[1]


@pytest.mark.wrong_numbers
def test_the_two_files_are_drawn_from_apart():
    """Neither patients of equal ids or places, nor notes of equal texts, are drawn together."""
    rows = [{"patient_id": f"{n}", "text": f"note {n}"} for n in range(400)]
    others = [{"patient_id": f"o{n}", "text": f"note {n} of others"} for n in range(400)]
    settings = privaudit.Settings(patients=200)
    drawn = draw_sample(files(rows, others, []), [], settings)
    places = [{int(note.text.split()[1]) for note in drawn.of(member=side)} for side in (True, False)]
    assert 60 < len(places[0] & places[1]) < 140
    shared = [
        {"patient_id": f"{n}", "text": text} for n in range(400) for text in ("shared by all", f"only of {n}")
    ]
    one_each = draw_sample(files(shared, others, []), [], privaudit.Settings(notes=1))
    assert 120 < sum(note.text == "shared by all" for note in one_each.of(member=True)) < 280
