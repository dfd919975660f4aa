"""The pipeline on somebody's own notes: what it does, what it reports, what it refuses."""

import pytest

from privhelpers import defenses
from privhelpers.errors import InvalidParameter, PrivHelpersError

NOTES = [
    {"patient_id": "p1", "text": "Call (212) 555-0123 after the noon visit to the ward.", "site": 3},
    {"patient_id": "p2", "text": "Call (305) 555-0199 after the noon visit to the ward."},
    {"patient_id": "p1", "text": "Mail j.doe@mail.example.org about the blue folder."},
    {"patient_id": "p3", "text": "Nothing to take out here, seen at noon."},
]


def test_notes_are_scrubbed_then_deduplicated():
    result = defenses.PrivacyPipeline().run(NOTES)
    assert [note["text"] for note in result.notes] == [
        "Call [PHONE] after the noon visit to the ward.",
        "Mail [EMAIL] about the blue folder.",
        "Nothing to take out here, seen at noon.",
    ]
    report = result.report
    assert (report.notes_read, report.notes_kept, report.patients_read, report.patients_kept) == (4, 3, 3, 2)
    assert report.identifiers == {"email": 1, "phone": 2} and report.notes_touched == 3
    assert (report.duplicates_removed, report.of_other_patients) == (1, 1)
    assert result.notes[0]["site"] == 3 and NOTES[0]["text"].startswith("Call (212)")


def test_the_report_says_what_nobody_looked_at():
    names = [text for text in defenses.PrivacyPipeline().run(NOTES).report.not_checked if "names" in text]
    assert names
    bare = defenses.PrivacyPipeline(scrubber=None, deduplicate=False).run(NOTES)
    assert [n["text"] for n in bare.notes] == [n["text"] for n in NOTES]
    assert "no scrubber" in bare.report.not_checked[0] and "off" in bare.report.not_checked[1]
    assert bare.report.identifiers == {} and bare.report.notes_kept == 4
    assert any("single a patient out" in text for text in bare.report.not_checked)


def test_places_of_identifiers_are_not_carried_along():
    note = {"patient_id": "p", "text": "Call (212) 555-0123.", "spans": [{"value": "(212) 555-0123"}]}
    (clean,) = defenses.PrivacyPipeline().run([note]).notes
    assert clean == {"patient_id": "p", "text": "Call [PHONE]."}


def test_copies_are_looked_for_within_patients_on_demand():
    again = {**NOTES[0], "text": "Call (646) 555-0111 after the noon visit to the ward."}
    result = defenses.PrivacyPipeline(within_patients=True).run([*NOTES, again])
    assert result.report.duplicates_removed == 1 and result.report.of_other_patients == 0
    assert "different patients" in result.report.not_checked[1]
    across = defenses.PrivacyPipeline().run(NOTES).report.not_checked
    assert any("differential privacy" in text for text in across)


def test_any_scrubber_serves():
    class Shouting:
        def scrub(self, text):
            return defenses.Scrubbed(text.upper(), ())

    result = defenses.PrivacyPipeline(scrubber=Shouting(), deduplicate=False).run(NOTES)
    assert result.notes[3]["text"] == "NOTHING TO TAKE OUT HERE, SEEN AT NOON."


GOOD = {"patient_id": "p1", "text": "seen"}


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ("a text", "note 1: is a str"),
        (None, "note 1: is a NoneType"),
        ({"text": "x"}, "note 1: patient_id"),
        ({"patient_id": 7, "text": "x"}, "note 1: patient_id = 7"),
        ({"patient_id": " ", "text": "x"}, "note 1: patient_id"),
        ({"patient_id": "p2"}, "note 1 .patient 'p2'.: text = None"),
        ({"patient_id": "p2", "text": ""}, "note 1 .patient 'p2'.: text"),
        ({"patient_id": "p2", "text": " \n"}, "note 1 .patient 'p2'.: text"),
        ({"patient_id": "p2", "text": b"x"}, "note 1 .patient 'p2'.: text"),
        ({"patient_id": "p2", "text": "x\0y"}, "note 1 .patient 'p2'.: .*NUL"),
        ({"patient_id": "p2", "text": "x\ud800y"}, "note 1 .patient 'p2'.: .*surrogate.*character 1"),
    ],
)
def test_a_bad_note_is_named(bad, match):
    with pytest.raises(PrivHelpersError, match=match):
        defenses.PrivacyPipeline().run([GOOD, bad])


def test_nothing_to_do_and_a_bad_threshold_are_refused():
    with pytest.raises(InvalidParameter, match="there are none"):
        defenses.PrivacyPipeline().run([])
    with pytest.raises(InvalidParameter, match="threshold"):
        defenses.PrivacyPipeline(threshold=0).run([GOOD])
