"""The pipeline on someone's own notes: what it does, what it reports, what it refuses."""

from dataclasses import replace

import pytest

from privhelpers import defenses, dpsgd
from privhelpers.errors import InvalidParameter

ON = defenses.Pipeline(scrubber=defenses.PatternScrubber(), threshold=0.8)
NOTES = [
    {"patient_id": "p1", "text": "Call (212) 555-0123 after the noon visit to the ward.", "site": 3},
    {"patient_id": "p2", "text": "Call (305) 555-0199 after the noon visit to the ward."},
    {"patient_id": "p1", "text": "Mail j.doe@mail.example.org about the blue folder."},
    {"patient_id": "p3", "text": "Nothing to take out here, seen at noon."},
]


def test_notes_are_scrubbed_then_deduplicated():
    result = ON.prepare(NOTES)
    assert [note["text"] for note in result.notes] == [
        "Call [PHONE] after the noon visit to the ward.",
        "Mail [EMAIL] about the blue folder.",
        "Nothing to take out here, seen at noon.",
    ]
    report = result.report
    assert report.identifiers == {"email": 1, "phone": 2} and report.notes_touched == 3
    assert (report.notes_read, report.notes_kept, report.duplicates_removed) == (4, 3, 1)
    assert result.notes[0]["site"] == 3 and NOTES[0]["text"].startswith("Call (212)")
    placed = {"patient_id": "p", "text": "Call (212) 555-0123.", "spans": [{"value": "(212) 555-0123"}]}
    assert ON.prepare([placed]).notes == [{"patient_id": "p", "text": "Call [PHONE]."}]


def test_copies_are_looked_for_within_patients_on_demand():
    again = {**NOTES[0], "text": "Call (646) 555-0111 after the noon visit to the ward."}
    result = replace(ON, within_patients=True).prepare([*NOTES, again])
    assert [note["patient_id"] for note in result.notes] == ["p1", "p2", "p1", "p3"]
    assert "different patients" in result.report.not_checked[1]
    across = ON.prepare(NOTES).report.not_checked
    assert any("differential privacy" in text for text in across)


def test_ids_that_read_the_same_are_one_patient():
    texts = ["seen at noon", "seen at  noon", "called her daughter in the evening"]
    notes = [{"patient_id": p, "text": t} for p, t in zip(["P3", "p3 ", "\uff503"], texts, strict=True)]
    result = defenses.Pipeline(threshold=0.8).prepare(notes)
    assert result.by_patient() == {"P3": [texts[0], texts[2]]}


def test_the_filter_is_a_layer_too():
    notes = [{"patient_id": "p", "text": "kept there at night with a slip"}]
    generated = "and kept there at night with a slip"
    assert defenses.Pipeline().guard(notes)(generated) == generated
    assert defenses.Pipeline(ngram=4).guard(notes)(generated) == "and [VERBATIM]"
    assert defenses.Pipeline(ngram=4).guard(notes, [notes[0]["text"]])(generated) == generated


RECIPE = """\
scrub: true
dedup: 0.8
dp:
  target_epsilon: 8
  target_delta: 1.0e-5
  sample_rate: 0.2
  max_grad_norm: 0.5
filter: 4
"""


def test_one_file_configures_the_pipeline(tmp_path):
    file = tmp_path / "pipeline.yml"
    file.write_text(RECIPE, encoding="utf-8")
    recipe = defenses.read_recipe(file)
    assert list(recipe) == ["scrub", "dedup", "dp", "filter"]
    plan = dpsgd.plan_privacy(**recipe["dp"], steps=2, units=20)
    whole = defenses.Pipeline.of(recipe, plan=plan)
    assert whole == defenses.Pipeline(whole.scrubber, 0.8, True, plan, 4)
    assert isinstance(whole.scrubber, defenses.PatternScrubber)
    assert defenses.Pipeline.of({}) == defenses.Pipeline(within_patients=True)
    for of, match in ((dict(recipe["dp"], max_grad_norm=1), "other values"), (None, "exactly if")):
        other = of and dpsgd.plan_privacy(**of, steps=2, units=20)
        with pytest.raises(InvalidParameter, match=match):
            defenses.Pipeline.of(recipe, plan=other)


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("filter: 4", "filter: 4\nfilter: 8", "line 9: filter is given twice"),
        ("dp:\n", "dp:\n  target_epsilon: 1\n", "line 5: target_epsilon is given twice"),
        ("filter: 4", "filter: 4\ndp: {target_epsilon: 1}", "line 9: dp is given twice"),
        ("filter: 4", "filter: 010", "filter = '010'"),
        ("filter: 4", "filter: 4.0", "filter = 4.0"),
        ("filter: 4", "filter: true", "filter = True"),
        ("epsilon: 8", "epsilon: 1:30.5", "target_epsilon = '1:30.5'"),
        ("epsilon: 8", "epsilon: .inf", "target_epsilon = inf"),
        ("epsilon: 8", "epsilon: .nan", "target_epsilon = nan"),
        ("epsilon: 8", "epsilon: 1e400", "line 4: a number is too large"),
        ("epsilon: 8", "epsilon: 0,5", "target_epsilon = '0,5'"),
        ("scrub: true", "scrub: yes", "scrub = 'yes'"),
        ("dp:", "<<: {filter: 2}\ndp:", "line 3: '<<'"),
        ("scrub:", "scrubb:", "scrubb"),
        ("scrub: true", "scrub: patterns", "scrub"),
        ("0.8", "1.5", "dedup"),
        ("  target_epsilon: 8\n", "", "target_epsilon"),
        ("1.0e-5", "1", "delta"),
        ("filter: 4", "filter: 0", "filter"),
        ("filter: 4", "filter: !!python/object/apply:os.getcwd []", "YAML"),
        (RECIPE, "- scrub", "layer"),
        (RECIPE, "dp: 8", "dp = 8"),
    ],
)
def test_a_recipe_that_is_wrong_or_could_mean_two_things_is_refused(tmp_path, old, new, match):
    file = tmp_path / "pipeline.yml"
    assert old in RECIPE
    file.write_text(RECIPE.replace(old, new), encoding="utf-8")
    with pytest.raises(InvalidParameter, match=match) as refused:
        defenses.read_recipe(file)
    assert str(file) in str(refused.value)


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("written", ["1e-5", "1E-5", "1.0e-5", "0.00001", ".00001", "+1e-05"])
def test_a_small_number_of_a_recipe_is_a_number_however_it_is_written(tmp_path, written):
    file = tmp_path / "pipeline.yml"
    file.write_text(RECIPE.replace("1.0e-5", written), encoding="utf-8")
    assert defenses.read_recipe(file)["dp"]["target_delta"] == 1e-5


# Refusals of the whole room: what is wrong, and the field that the error names.


def text_of(*notes):
    return lambda: ON.prepare([{"patient_id": "p1", "text": "seen"}, *notes])


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("note 1", text_of("a text")),
        ("note 1: patient_id", text_of({"text": "x"})),
        ("note 1: patient_id", text_of({"patient_id": 7, "text": "x"})),
        ("note 1: text", text_of({"patient_id": "p2", "text": "\u200b\x01"})),
        ("notes", lambda: ON.prepare([])),
        ("threshold", lambda: defenses.Pipeline(threshold=0)),
        ("within_patients", lambda: defenses.Pipeline(threshold=0.8, plan=object())),
        ("threshold", lambda: defenses.deduplicate([{"text": "a"}], threshold=1.5)),
        ("note 1", lambda: defenses.deduplicate([{"text": "a"}, {"body": "b"}])),
        ("note 0", lambda: defenses.deduplicate([{"text": "x"}], within="patient_id")),
        ("note 0", lambda: defenses.deduplicate([{"text": "x", "patient_id": ["p"]}], within="patient_id")),
        ("ngram", lambda: defenses.OutputFilter([], ngram=0)),
        ("Span", lambda: defenses.replace("text", [defenses.Span(-1, 2, "a")])),
        ("Span", lambda: defenses.replace("text", [defenses.Span(2, 2, "a")])),
        ("Span", lambda: defenses.replace("text", [defenses.Span(0, 99, "a")])),
        ("members", lambda: defenses.Ensemble([])),
        ("notes", lambda: defenses.train_ner([{"text": "a", "spans": []}], seed=0)),
    ],
)
def test_invalid_input_is_refused(field, call):
    with pytest.raises(InvalidParameter, match=field):
        call()
