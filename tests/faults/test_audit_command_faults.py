"""`make audit` with what people bring: refused in one line with exit code 2, or published whole."""

import base64
import csv
import dataclasses
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import toy_audit as toy
from patience import LIMIT_SECONDS

from bookmaker.runner import _archive, _audit, _cli, processes
from privhelpers import browser, ledger, own_model
from privhelpers.errors import RunFailed

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a small model and two good files."""
    place = tmp_path_factory.mktemp("brought")
    tok = toy.tokenizer([row["text"] for row in toy.notes("x", 60, seed=9)])
    toy.save(toy.causal(tok), tok, place / "net")
    toy.write(place / "m.jsonl", toy.notes("m", 60, seed=1))
    toy.write(place / "h.jsonl", toy.notes("h", 60, seed=2))
    toy.write(place / "c.jsonl", [{"text": f"canary {n}", "inserted": n % 2 == 0} for n in range(40)])
    toy.write(place / "s.jsonl", [{"text": row["text"]} for row in toy.notes("m", 60, seed=1)])
    return place


@pytest.fixture(scope="module")
def opened(home):
    """The small model, opened once for the tests that are about records."""
    return own_model.open_model(home / "net")


@pytest.fixture
def call(home, tmp_path, monkeypatch, capsys):
    """Return a function that runs the command in this process: exit code and what stands on stderr."""
    monkeypatch.setattr(processes, "die_with_parent", lambda **_: None)
    monkeypatch.setattr(_audit, "HOME", tmp_path / "audits")
    monkeypatch.chdir(ROOT)

    def run(**given):
        good = {"model": home / "net", "records": home / "m.jsonl", "holdout": home / "h.jsonl"}
        values = good | {"out": tmp_path / "out"} | given
        code = _cli.main(["audit", *(f"--{name}={value}" for name, value in values.items())])
        return code, capsys.readouterr().err

    return run


def lines_of(home, name):
    return (home / name).read_bytes().splitlines(keepends=True)


BAD = {
    "broken": (lambda rows: [*rows[:4], b'{"patient_id": \n', *rows[4:]], "line 5: broken"),
    "cut": (lambda rows: [*rows[:-1], rows[-1][:20]], ": broken"),
    "blank": (lambda rows: [*rows[:4], b"\n", *rows[4:]], "line 5: is blank"),
    "same record": (lambda rows: [*rows, rows[1]], "the patient and text of line 2 again"),
    "empty text": (lambda rows: [*rows[:4], b'{"patient_id": "q", "text": ""}\n'], "line 5: text is empty"),
    "no utf-8": (
        lambda rows: [*rows[:4], b'{"patient_id": "q", "text": "\xe9"}\n'],
        "line 5: not UTF-8 (byte",
    ),
    "few": (lambda rows: rows[:30], "patients in 30 lines; at least 50"),
    "NaN": (lambda rows: [b'{"patient_id": "q", "text": "x", "y": NaN}\n', *rows], "line 1: broken"),
    "mark": (lambda rows: [b"\xff\xfe", *rows], "line 1: a byte order mark of UTF-16"),
    "NUL": (lambda rows: [*rows[:4], b"\0\n"], "line 5: holds a NUL"),
    "number": (lambda rows: [*rows[:4], b'{"patient_id": 4, "text": "x"}\n'], "line 5: patient_id must be"),
    "missing": (lambda rows: [*rows[:4], b'{"patient_id": "q"}\n'], "line 5: text is missing"),
}


@pytest.mark.parametrize("option", ["records", "holdout"])
@pytest.mark.parametrize("kind", BAD)
def test_bad_records_are_refused_with_file_and_line(call, home, monkeypatch, tmp_path, kind, option):
    monkeypatch.setattr(own_model, "open_model", lambda *_, **__: pytest.fail("the files come first"))
    spoil, words = BAD[kind]
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"".join(spoil(lines_of(home, "m.jsonl" if option == "records" else "h.jsonl"))))
    code, message = call(**{option: path})
    assert code == 2 and message.startswith("refused: bad.jsonl") and words in message, message
    assert message.count("\n") == 1
    assert not (tmp_path / "out").exists() and not (tmp_path / "audits").exists()


def test_somebody_in_both_files_is_refused(call, home, opened, monkeypatch, tmp_path):
    monkeypatch.setattr(own_model, "open_model", lambda *_, **__: opened)
    other = tmp_path / "both.jsonl"
    other.write_bytes(b"".join([*lines_of(home, "h.jsonl"), lines_of(home, "m.jsonl")[6]]))
    code, message = call(holdout=other)
    assert code == 2 and "both.jsonl, line" in message and "stands in m.jsonl, line" in message
    assert call(holdout=home / "m.jsonl")[0] == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": ""}, "missing: MODEL=folder"),
        ({"records": "", "holdout": ""}, "missing: RECORDS=members.jsonl, HOLDOUT=nonmembers.jsonl"),
        ({"model": "no/such/place"}, "MODEL=no/such/place: there is nothing"),
        ({"canaries": "no.jsonl"}, "CANARIES=no.jsonl: there is nothing"),
        ({"model": "gpt2"}, "nothing is fetched: if this is a name of the Hugging Face hub, save it"),
        ({"epsilon": "4", "canaries": "c.jsonl"}, "one means nothing without the other"),
        ({"epsilon": "4", "delta": "1e-5"}, "a claim can only be tested with canaries"),
        ({"delta": "1e-5"}, "a claim can only be tested with canaries"),
        ({"epsilon": "-1", "delta": "1e-5", "canaries": "c.jsonl"}, "must be greater than 0"),
        ({"epsilon": "nan", "delta": "1e-5", "canaries": "c.jsonl"}, "must be a finite number"),
        ({"epsilon": "much", "delta": "1e-5", "canaries": "c.jsonl"}, "EPSILON=much: must be a number"),
        ({"epsilon": "1", "delta": "2", "canaries": "c.jsonl"}, "delta = 2.0"),
        ({"patients": "0"}, "PATIENTS=0: must be a whole number of 1 or more, or all"),
        ({"patients": "10"}, "patients = 10: at least 50 of each file are needed"),
        ({"notes": "some"}, "NOTES=some: must be a number"),
        ({"effort": "all"}, "effort = 'all': must be one of quick, standard, thorough"),
        ({"columns": "mrn"}, "must be pairs such as"),
        ({"columns": "name=mrn"}, "name is no field; the fields are patient_id, text"),
        ({"columns": "text=a text=b"}, "can be named once"),
        ({"synthetic": "s.jsonl"}, "SYNTHETIC and MODEL: texts are audited without a model"),
        ({"synthetic": "s.jsonl", "model": "", "base": "net"}, "SYNTHETIC and BASE"),
        ({"pdf": "perhaps"}, "PDF=perhaps: must be yes or no"),
        ({"seed": "1.5"}, "SEED=1.5: must be a number"),
        ({"pdf": "\0"}, r"PDF=\x00: must be yes or no"),
        ({"base": "\0"}, r"BASE=\x00: there is nothing"),
        ({"base": "x/" * 2500}, "...: there is nothing at that place"),
        ({"delta": "1x" * 5000}, "1x1...: must be a number"),
        ({"seed": "-2"}, "SEED=-2: must be a whole number of 0 or more"),
        ({"dry-run": "perhaps"}, "DRY=perhaps: must be yes or no"),
        ({"key": "c.jsonl"}, "KEY: belongs to a bundle; name one, BUNDLE=out.zip"),
        ({"ledger": "c.jsonl"}, "LEDGER: belongs to a bundle"),
        ({"bundle": "new.zip", "ledger": "c.jsonl"}, "c.jsonl, line 1: is not a line of a ledger"),
        ({"bundle": "new.zip", "ledger": "no.jsonl"}, "LEDGER=no.jsonl: there is nothing"),
        ({"bundle": "new.zip", "key": "c.jsonl"}, "is no private Ed25519 key in PEM"),
        ({"bundle": "new.zip", "show": "yes"}, "BUNDLE and SHOW: a bundle is handed on"),
        ({"bundle": "c.jsonl"}, "c.jsonl: is there already"),
        ({"bundle": "a\nb"}, "holds a character that no name should"),
    ],
)
def test_bad_options_are_refused_before_the_work(call, home, given, words):
    brought = {"canaries", "synthetic", "base", "bundle", "key", "ledger"} & given.keys()
    given = given | {name: home / given[name] for name in brought if (home / given[name][:99]).exists()}
    code, message = call(**given)
    assert code == 2 and message.startswith("refused: ") and words in message, message


def test_a_reference_that_is_an_adapter_without_a_base_is_refused_before_the_work(
    call, monkeypatch, tmp_path
):
    monkeypatch.setattr(own_model, "open_model", lambda *_, **__: pytest.fail("the work began"))
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    code, message = call(reference=tmp_path / "adapter")
    assert code == 2 and "'adapter': holds an adapter alone; name the folder" in message, message
    assert "BASE=folder" in message
    monkeypatch.chdir(tmp_path / "adapter")
    code, message = call(reference="", epsilon="4", delta="1e-5")
    assert code == 2 and "a claim can only be tested" in message, "where no reference was named"


def test_a_folder_that_is_no_model_is_refused(call, tmp_path, home):
    (tmp_path / "empty").mkdir()
    broken = shutil.copytree(home / "net", tmp_path / "broken")
    (broken / "config.json").write_text("{")
    coded = shutil.copytree(home / "net", tmp_path / "coded")
    (coded / "modeling.py").write_text("raise SystemExit('ran')")
    for folder, words in (("empty", "no folder with a config.json"), ("broken", "no clean JSON"),
                          ("coded", "Python code, which is never run")):  # fmt: skip
        code, message = call(model=tmp_path / folder, pdf="no")
        assert code == 2 and words in message and len(message.splitlines()) <= 2, message


def test_a_folder_that_would_be_audited_in_part_leaves_no_report(call, tmp_path, home):
    hollow = shutil.copytree(home / "net", tmp_path / "hollow")
    config = json.loads((hollow / "config.json").read_text())
    (hollow / "config.json").write_text(json.dumps(config | {"n_layer": 0}))
    code, message = call(model=hollow, pdf="no")
    assert code == 2 and message.splitlines()[-1].startswith(
        "refused: model 'hollow': the model does not use"
    )
    assert not (tmp_path / "out").exists()


def test_an_old_report_is_kept(call, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.html").write_text("old")
    code, message = call()
    assert code == 2 and "is there already" in message
    assert (tmp_path / "out" / "report.html").read_text() == "old"


def test_without_chromium_it_stops_before_the_work(call, monkeypatch, tmp_path):
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    monkeypatch.setattr(own_model, "open_model", lambda *_, **__: pytest.fail("the work began"))
    code, message = call()
    assert code == 2 and "apt-get install chromium" in message and "PDF=no" in message
    assert not (tmp_path / "out").exists()


def test_a_good_audit_is_published_whole_beside_an_older_one(call, tmp_path, monkeypatch):
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    monkeypatch.setattr(
        own_model.Settings,
        "for_model",
        lambda target, **claim: own_model.Settings(texts=12, tokens=8, lower_case=False, **claim),
    )
    (tmp_path / "audits" / "net").mkdir(parents=True)
    code, message = call(out="", pdf="no", language="de")
    assert code == 0 and "complete in" in message, message
    made = tmp_path / "audits" / "net-2"
    assert sorted(p.name for p in made.iterdir()) == ["report.html", "report.json", "report.schema.json"]
    facts = json.loads((made / "report.json").read_text())
    jsonschema.validate(facts, json.loads((made / "report.schema.json").read_text()))
    assert "asked to read" in message and "at most about" in message
    assert f"All {facts['data'][0]['patients']} patients of m.jsonl" in message
    assert facts["outcome"] == "nothing found" and set(facts["model"]["files"]) >= {"model.safetensors"}
    assert facts["language"] == "de" and '<html lang="de">' in (made / "report.html").read_text()
    assert not list((tmp_path / "audits").glob(".*"))


def quick(monkeypatch, opened):
    """Let an audit take a second."""
    little = own_model.Settings(
        texts=12, tokens=8, lower_case=False, control=False, permutations=1999, draws=60
    )
    monkeypatch.setattr(own_model, "open_model", lambda *_, **__: opened)
    monkeypatch.setattr(
        own_model.Settings, "for_model", lambda target, **given: dataclasses.replace(little, **given)
    )
    monkeypatch.setattr(own_model.Settings, "for_texts", lambda **given: dataclasses.replace(little, **given))


def test_a_bundle_holds_the_report_and_no_text_of_a_record(call, home, opened, monkeypatch, tmp_path, capsys):
    quick(monkeypatch, opened)
    code, message = call(bundle=tmp_path / "out.zip", canaries=home / "c.jsonl", pdf="no")
    assert code == 0 and "evidence: " in message, message
    assert _cli.main(["verify", f"--bundle={tmp_path / 'out.zip'}"]) == 0
    said = capsys.readouterr().out
    assert "out.zip: holds: " in said and "Privacy audit of the language model “net”" in said
    files = _archive.unpack((tmp_path / "out.zip").read_bytes())
    published = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert published.items() <= files.items() and sum(n.startswith("figures/") for n in files) == 3
    inputs = json.loads(files["statement.json"])["predicate"]["about"]["inputs"]
    assert {one["name"] for one in inputs} >= {"m.jsonl", "h.jsonl", "c.jsonl", "model.safetensors"}
    everything = b"\n".join([*files.values(), *(base64.b64decode(svg) for svg in inlined(files))]).decode()
    for name in ("m.jsonl", "h.jsonl"):
        for row in map(json.loads, lines_of(home, name)):
            words = row["text"].split()
            assert words[-1].rstrip(".") not in everything, "the number of a file"
            assert not any(" ".join(words[n : n + 4]) in everything for n in range(len(words) - 3))


@pytest.mark.parametrize(
    ("out", "bundle"), [("o/x", "o"), ("o", "o"), ("o", "o/out.zip"), ("o", "./o"), ("", "audits/net/x.zip")]
)
def test_a_bundle_that_would_lie_in_its_report_is_refused_before_the_work(
    call, monkeypatch, tmp_path, out, bundle
):
    monkeypatch.setattr(own_model, "open_model", lambda *_, **__: pytest.fail("the work began"))
    code, message = call(out=out and tmp_path / out, bundle=tmp_path / bundle, pdf="no")
    assert code == 2 and message.startswith("refused: BUNDLE=") and "name another file" in message, message
    assert not list(tmp_path.iterdir())


def test_a_file_that_appeared_meanwhile_is_kept_and_nothing_is_published(call, opened, monkeypatch, tmp_path):
    quick(monkeypatch, opened)
    made = own_model.report_facts

    def meanwhile(*given, **more):
        (tmp_path / "out.zip").write_bytes(b"of another")
        return made(*given, **more)

    monkeypatch.setattr(own_model, "report_facts", meanwhile)
    code, message = call(bundle=tmp_path / "out.zip", pdf="no")
    assert code == 2 and "out.zip: appeared meanwhile, and is kept" in message, message
    assert [p.name for p in tmp_path.iterdir()] == ["out.zip"]
    assert (tmp_path / "out.zip").read_bytes() == b"of another"


def test_a_ledger_is_read_once_and_before_the_work(call, opened, monkeypatch, tmp_path):
    quick(monkeypatch, opened)
    terms = ledger.Terms(
        run="dp", target_epsilon=8.0, delta=1e-5, noise_multiplier=1.5, sample_rate=0.04, steps=40,
        max_grad_norm=1.0, accountant="rdp", mode="release",
        fingerprint={"data": "0" * 64, "parameters": "1" * 64, "code": "2" * 64},
    )  # fmt: skip
    path, made = tmp_path / "ledger.jsonl", own_model.report_facts
    with ledger.open_ledger(path, terms) as written:
        written.reserve(20)
    whole = path.read_bytes()

    def meanwhile(*given, **more):
        path.unlink()
        return made(*given, **more)

    monkeypatch.setattr(own_model, "report_facts", meanwhile)
    code, message = call(bundle=tmp_path / "out.zip", ledger=path, pdf="no")
    assert code == 0, message
    assert _archive.unpack((tmp_path / "out.zip").read_bytes())["ledgers/ledger.jsonl"] == whole
    code, message = call(out=tmp_path / "2", bundle=tmp_path / "2.zip", ledger=tmp_path)
    assert code == 2 and "LEDGER=" in message and "cannot be read" in message, message


def test_a_bundle_goes_where_its_report_cannot_be_published(call, opened, monkeypatch, tmp_path):
    quick(monkeypatch, opened)

    def full(*_):
        raise RunFailed("no room")

    monkeypatch.setattr(_audit, "publish", full)
    code, _ = call(bundle=tmp_path / "out.zip", pdf="no")
    assert code == 1 and not list(tmp_path.iterdir())


def test_a_reader_of_the_messages_that_goes_away_stops_nothing(call, opened, monkeypatch, tmp_path):
    quick(monkeypatch, opened)

    class Gone(io.StringIO):
        def flush(self):
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stderr", Gone())
    assert call(bundle=tmp_path / "out.zip", pdf="no")[0] == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "out.zip"]


def test_a_python_without_assertions_is_refused_by_name(home):
    given = [f"--{name}=x" for name in ("model", "records", "holdout")]
    command = [sys.executable, "-O", "-m", "bookmaker.runner", "audit", *given]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and ended.stderr.startswith("refused: PYTHONOPTIMIZE, or python -O: ")


def inlined(files):
    return re.findall(rb"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", files["report.html"])


@pytest.mark.parametrize("given", [{}, {"model": "", "synthetic": "s.jsonl"}])
def test_a_dry_run_says_what_would_be_done_and_makes_nothing(
    call, home, opened, monkeypatch, tmp_path, given
):
    quick(monkeypatch, opened)
    monkeypatch.setattr(own_model, "examine", lambda *_, **__: pytest.fail("the work began"))
    monkeypatch.setattr(own_model, "examine_synthetic", lambda *_, **__: pytest.fail("the work began"))
    given = given | ({"synthetic": home / given["synthetic"]} if given else {})
    code, message = call(**given, pdf="no", bundle=tmp_path / "out.zip", **{"dry-run": "yes"})
    assert code == 0 and "120 patients would be asked about" in message, message
    assert re.search(r"tests, intervals and the comparison of the two files take about \d+ s more\n", message)
    assert "out.zip would be made" in message
    assert message.splitlines()[-1] == "[audit] nothing was made: this was a dry run"
    assert not list(tmp_path.iterdir())


def test_a_model_without_a_tokenizer_or_with_pickled_weights_is_refused(call, home, tmp_path):
    bare = shutil.copytree(home / "net", tmp_path / "bare")
    (bare / "tokenizer.json").unlink()
    code, message = call(model=bare, pdf="no")
    assert code == 2 and "no tokenizer.json or vocabulary; save there the one" in message, message
    pickled = shutil.copytree(home / "net", tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    code, message = call(model=pickled, pdf="no")
    assert code == 2 and "pytorch_model.bin" in message and "save_pretrained('new-folder')" in message


def test_fewer_patients_than_were_brought_are_said_aloud(call, opened, monkeypatch, tmp_path):
    quick(monkeypatch, opened)
    code, message = call(pdf="no", patients=50, notes="all")
    facts = json.loads((tmp_path / "out" / "report.json").read_text())
    assert code == 0 and "Asked about were 50 of 60 patients" in message and "PATIENTS=all" in message
    assert facts["coverage"]["members"]["patients"] == [50, 60] and not facts["coverage"]["whole"]
    assert "Asked about: 50 of 60 patients, and 50 of 60 held-out ones" in facts["headline"]
    assert "50 of 60 patients" in (tmp_path / "out" / "report.html").read_text()
    assert facts["settings"]["patients"] == 50 and facts["settings"]["notes"] == "all"


def test_synthetic_texts_are_audited_without_a_model(call, home, monkeypatch, tmp_path):
    monkeypatch.setattr(own_model, "open_model", lambda *_, **__: pytest.fail("a model was opened"))
    code, message = call(model="", synthetic=home / "s.jsonl", pdf="no", out="", columns="120")
    assert code == 0 and "flagged: " in message, message
    made = tmp_path / "audits" / "s"
    facts = json.loads((made / "report.json").read_text())
    jsonschema.validate(facts, json.loads((made / "report.schema.json").read_text()))
    assert facts["kind"] == "synthetic" and facts["copies"]["by_patient"]["members"][:2] == [60, 60]
    code, message = call(model="", synthetic="", pdf="no")
    assert code == 2 and "missing: MODEL=folder" in message


THEIRS = {"patient_id": "mrn", "text": "Note Text", "identifiers": "names", "inserted": "coin"}


def as_lines(path, rows):
    """Write JSONL as Windows does, with a byte order mark."""
    lines = (json.dumps(row, ensure_ascii=False) + "\r\n" for row in rows)
    path.write_bytes("".join(lines).encode("utf-8-sig"))


def as_table(path, rows):
    """Write a table as a spreadsheet does; the text of a note goes over two lines of the file."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        sheet = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ";", lineterminator="\r\n")
        sheet.writerow(rows[0])
        sheet.writerows([["|".join(v) if type(v) is list else v for v in row.values()] for row in rows])


def as_parquet(path, rows):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=25)


FORMS = {"jsonl": as_lines, "csv": as_table, "tsv": as_table, "parquet": as_parquet}


def brought():
    """Return the rows of every file of an audit, by option, with all that a form could spoil in them."""
    told = 'said: "so; so", \u00fcber\u00a0all|\n'
    rows = {side: toy.notes(side[0], 50, seed=len(side), extra=told) for side in ("records", "holdout")}
    for row in (*rows["records"], *rows["holdout"]):
        row["identifiers"] = [f"Ana Example {row['patient_id']}", f"Bo Example {row['patient_id']}"]
    rows["synthetic"] = [{"text": row["text"]} for row in rows["records"]]
    rows["canaries"] = [{"text": f"canary {n}; {told}", "inserted": n % 2 == 0} for n in range(40)]
    return rows


def facts_of(folder):
    """Return a report without what the form of the files decides: their names, their hashes, the minute."""
    text = (folder / "report.json").read_text()
    text = re.sub(rf"\b(records|holdout|canaries|synthetic)\.({'|'.join(FORMS)})\b", r"\1", text)
    return json.loads(re.sub(r"\b[0-9a-f]{64}\b|\d{4}-\d\d-\d\d \d\d:\d\d", "", text))


@pytest.fixture(scope="module")
def as_usual():
    """The report on plain JSONL of each kind of audit, made by the first test that needs it."""
    return {}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["model", "synthetic"])
def test_every_form_of_a_file_gives_the_report_of_plain_jsonl(
    call, opened, monkeypatch, tmp_path, as_usual, kind, form
):
    """Every file in that form, with columns of other names: records, held-out ones, canaries and texts."""
    quick(monkeypatch, opened)
    rows = brought()
    del rows["synthetic" if kind == "model" else "canaries"]
    given = {"pdf": "no"} | ({} if kind == "model" else {"model": ""})
    if kind not in as_usual:
        plain = {name: toy.write(tmp_path / f"{name}.jsonl", one) for name, one in rows.items()}
        code, message = call(**given, **plain, out=tmp_path / "plain")
        assert code == 0, message
        as_usual[kind] = facts_of(tmp_path / "plain")
    theirs = {}
    for name, one in rows.items():
        theirs[name] = tmp_path / f"{name}.{form}"
        FORMS[form](theirs[name], [{THEIRS[field]: value for field, value in row.items()} for row in one])
    code, message = call(**given, **theirs, columns=" ".join(f"{k}='{v}'" for k, v in THEIRS.items()))
    assert code == 0 and f"records.{form}: 50 patients" in message, message
    facts = facts_of(tmp_path / "out")
    assert facts == as_usual[kind] and facts["data"][0]["file"] == "records"
    assert facts["named"]["strings"][0] >= 3 * 50, "a number and two identifiers each"
    code, message = call(**given, **theirs, out=tmp_path / "other")
    assert code == 2 and "is missing; if the file calls it otherwise, say so: COLUMNS=" in message, message


def test_publishing_is_all_or_nothing(tmp_path, monkeypatch):
    home = tmp_path / "home"
    left = home / f"{_audit.PART}abc"
    left.mkdir(parents=True)
    _audit.publish([home / "new"], {"a": b"1", "b": b"2"})
    assert not left.exists() and (home / "new" / "b").read_bytes() == b"2"
    with pytest.raises(_audit.RunFailed):
        _audit.publish([home / "new"], {"a": b"3"})
    assert (home / "new" / "a").read_bytes() == b"1"

    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_audit, "write_atomic", full)
    with pytest.raises(_audit.RunFailed, match="No space left"):
        _audit.publish([home / "other"], {"a": b"3"})
    with pytest.raises(_audit.RunFailed, match="No space left"):
        _audit.publish([home / "above" / "all" / "other"], {"a": b"3"})
    assert [p.name for p in home.iterdir()] == ["new"], "folders above it went with it"


def test_a_place_for_reports_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(_audit.RunFailed, match="new: could not be written"):
        _audit.publish([tmp_path / "home" / "new"], {"a": b"1"})


def test_audits_side_by_side_lose_no_report(tmp_path, monkeypatch):
    """All chose the same free names when they began, and one ends while another one is writing."""
    places = [tmp_path / "net", tmp_path / "net-2", tmp_path / "net-3"]
    write = _audit.write_atomic

    def slowly(path, data):
        monkeypatch.setattr(_audit, "write_atomic", write)
        assert _audit.publish(places, {"a": b"second"}) == places[0]
        write(path, data)

    monkeypatch.setattr(_audit, "write_atomic", slowly)
    assert _audit.publish(places, {"a": b"first"}) == places[1]
    (tmp_path / "net-3").write_text("a file")
    with pytest.raises(_audit.RunFailed, match="File exists"):
        _audit.publish(places, {"a": b"third"})
    assert [(place / "a").read_bytes() for place in places[:2]] == [b"second", b"first"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net", "net-2", "net-3"]


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "a\x1b[31m", "x" * 300, "taken/under", "link"])
def test_a_place_that_cannot_be_is_refused_before_the_work(call, monkeypatch, tmp_path, name):
    monkeypatch.setattr(own_model, "open_model", lambda *_, **__: pytest.fail("the work began"))
    (tmp_path / "taken").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    code, message = call(out=tmp_path / name, pdf="no")
    assert code == 2 and message.startswith("refused: OUT=") and len(message.splitlines()) == 1


@pytest.mark.parametrize("kind", ["a file in its place", "not ours to write to"])
def test_reports_that_could_not_be_kept_are_refused_before_the_work(call, monkeypatch, tmp_path, kind):
    monkeypatch.setattr(own_model, "open_model", lambda *_, **__: pytest.fail("the work began"))
    if kind == "a file in its place":
        (tmp_path / "audits").write_text("")
    else:
        monkeypatch.setattr(_audit.os, "access", lambda *_: False)
    code, message = call(out="", pdf="no")
    assert code == 2 and len(message.splitlines()) == 1, message
    assert message.startswith(f"refused: {tmp_path / 'audits'}: the reports would go there, and it cannot be")
    assert "name another folder, OUT=..." in message


def start(home, out):
    """Start an audit, for which an interrupt is what it is in a terminal, however the tests were started."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bookmaker.runner", "audit", f"--model={home / 'net'}"]
    command += [f"--records={home / 'm.jsonl'}", f"--holdout={home / 'h.jsonl'}", f"--out={out}", "--pdf=no"]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_a_killed_audit_leaves_nothing(home, tmp_path):
    numbers = signal.SIGKILL, signal.SIGTERM, signal.SIGINT
    audits = {number: start(home, tmp_path / "out") for number in numbers}
    for number, process in audits.items():
        while " weights" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(number)
        code = process.wait(timeout=LIMIT_SECONDS)
        assert code == 130 if number == signal.SIGINT else code != 0
        process.stderr.close()
    assert not list(tmp_path.iterdir())


def test_make_hands_over_what_it_is_given(tmp_path):
    strange = tmp_path / "a b's; touch gone"
    command = [
        "make",
        "-o",
        ".venv/.stamp",
        "audit",
        f"PYTHON={sys.executable}",
        f"MODEL={strange}",
        "RECORDS=x",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 2 and "missing: HOLDOUT=nonmembers.jsonl" in done.stderr
    done = subprocess.run(
        [*command, "HOLDOUT=y"], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert done.returncode == 2 and f"MODEL={strange}: there is nothing" in done.stderr
    assert not (ROOT / "gone").exists()


def test_make_has_one_exit_code_for_whatever_fails(tmp_path, capsys):
    """As the manual says: 1 of the command is 2 of make."""
    (tmp_path / "x.zip").write_bytes(b"no bundle")
    assert _cli.main(["verify", f"--bundle={tmp_path / 'x.zip'}"]) == 1
    command = ["make", "--no-print-directory", "-o", ".venv/.stamp", "verify"]  # make itself runs the tests
    command += [f"PYTHON={sys.executable}", f"BUNDLE={tmp_path}/x.zip"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 2 and done.stdout == capsys.readouterr().out
    assert "x.zip: does not hold: " in done.stdout
