"""`make audit` with what people have: refused in one line with exit code 2, or published whole."""

import base64
import dataclasses
import json
import re
from pathlib import Path

import jsonschema
import pytest
import toy_audit as toy

import privaudit
from privaudit import bundle, cli, console, output
from privhelpers.errors import RunFailed

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a small model and two good files."""
    place = tmp_path_factory.mktemp("submitted")
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
    return privaudit.open_model(home / "net")


@pytest.fixture
def call(home, tmp_path, monkeypatch, capsys):
    """Return a function that runs the command in this process: exit code and stderr."""
    monkeypatch.setattr("privaudit.cli.HOME", tmp_path / "audits")
    monkeypatch.chdir(ROOT)

    def run(**given):
        good = {"model": home / "net", "records": home / "m.jsonl", "holdout": home / "h.jsonl"}
        values = good | {"out": tmp_path / "out"} | given
        code = cli.main(["audit", *(f"--{name}={value}" for name, value in values.items())])
        return code, capsys.readouterr().err

    return run


def lines_of(home, name):
    return (home / name).read_bytes().splitlines(keepends=True)


def test_bad_records_are_refused_first(call, home, monkeypatch, tmp_path):
    monkeypatch.setattr(privaudit, "open_model", lambda *_, **__: pytest.fail("the files come first"))
    rows, path = lines_of(home, "m.jsonl"), tmp_path / "bad.jsonl"
    path.write_bytes(b"".join([*rows, rows[1]]))
    for option in ("records", "holdout"):
        code, message = call(**{option: path})
        assert code == 2 and message.startswith("refused: bad.jsonl, line"), message
        assert message.count("\n") == 1
    assert not (tmp_path / "out").exists() and not (tmp_path / "audits").exists()


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"model": ""}, "missing: --model"),
        ({"records": "", "holdout": ""}, "missing: --records, --holdout"),
        ({"model": "no/such/place"}, "--model=no/such/place"),
        ({"model": "gpt2"}, "--model=gpt2: .*hf download"),
        ({"canaries": "no.jsonl"}, "--canaries=no.jsonl"),
        ({"epsilon": "4", "canaries": "c.jsonl"}, "epsilon and delta"),
        ({"epsilon": "4", "delta": "1e-5"}, "--epsilon and --delta"),
        ({"epsilon": "-1", "delta": "1e-5", "canaries": "c.jsonl"}, "epsilon = -1.0"),
        ({"epsilon": "much", "delta": "1e-5", "canaries": "c.jsonl"}, "--epsilon=much"),
        ({"epsilon": "1", "delta": "2", "canaries": "c.jsonl"}, "delta = 2.0"),
        ({"patients": "0"}, "--patients=0"),
        ({"patients": "10"}, "patients = 10"),
        ({"notes": "some"}, "--notes=some"),
        ({"effort": "all"}, "--effort=all"),
        ({"columns": "name=mrn"}, "--columns=name=mrn"),
        ({"columns": "text=a patient_id=a"}, "--columns="),
        ({"columns": "text"}, "--columns=text"),
        ({"columns": "text='a"}, "--columns="),
        ({"synthetic": "s.jsonl"}, "--synthetic"),
        ({"pdf": "perhaps"}, "--pdf=perhaps"),
        ({"dry-run": "maybe"}, "--dry-run=maybe"),
        ({"seed": "1.5"}, "--seed=1.5"),
        ({"seed": "-2"}, "--seed=-2"),
        ({"key": "c.jsonl"}, "--key and --ledger"),
        ({"ledger": "c.jsonl"}, "--key and --ledger"),
        ({"bundle": "new.zip", "ledger": "c.jsonl"}, "c.jsonl, line 1"),
        ({"bundle": "new.zip", "ledger": "."}, "--ledger"),
        ({"bundle": "new.zip", "key": "c.jsonl"}, "key .*Ed25519"),
        ({"bundle": "new.zip", "show": "yes"}, "--bundle and --show"),
        ({"bundle": "c.jsonl"}, "--bundle=.*c.jsonl"),
        ({"out": "."}, r"--out=\.: is there already"),
        ({"bundle": "no\x1b.zip"}, "--bundle="),
        ({"bundle": "/dev/null/x.zip"}, "--bundle="),
        ({"bundle": "x" * 5000}, "--bundle="),
        ({"out": "new", "bundle": "new/out.zip"}, "--bundle and --out"),
        ({"fail-if": "safe"}, "--fail-if=safe: must be one or more of flagged"),
        ({"fail-if": "flagged,auc"}, "--fail-if=flagged,auc: .*in quotes"),
        ({"fail-if": "auc>1.5"}, "--fail-if=auc>1.5: .*another limit"),
        ({"fail-if": "epsilon-refuted"}, "--fail-if=epsilon-refuted: there is no claim"),
        ({"json": "pyproject.toml"}, "--json=pyproject.toml: is there already"),
    ],
)
def test_bad_options_are_refused_by_name_before_the_work(call, home, given, option):
    files = {"canaries", "synthetic", "bundle", "key", "ledger"} & given.keys()
    given = given | {name: home / given[name] for name in files if (home / given[name][:99]).exists()}
    code, message = call(**given)
    assert code == 2 and re.match(f"refused: .*{option}", message) and message.count("\n") == 1, message


def test_without_chromium_it_stops_before_the_work(call, monkeypatch, tmp_path):
    monkeypatch.setattr(console.shutil, "which", lambda name: None)
    monkeypatch.setattr(privaudit, "open_model", lambda *_, **__: pytest.fail("the work began"))
    code, message = call()
    assert code == 2 and "apt-get install chromium" in message and "--pdf=no" in message
    assert not (tmp_path / "out").exists()


def test_what_chromium_says_is_told_if_it_prints_nothing(monkeypatch, tmp_path):
    browser = tmp_path / "chromium"
    browser.write_text("#!/bin/sh\necho no display >&2\n")
    browser.chmod(0o755)
    monkeypatch.setattr(console.shutil, "which", lambda name: str(browser))
    with pytest.raises(RunFailed, match=r"did not print the report .*no display"):
        console.print_pdf("<p>", "the report")


def test_a_good_audit_is_published_whole_beside_an_older_one(call, tmp_path, monkeypatch):
    monkeypatch.setattr(console.shutil, "which", lambda name: None)
    monkeypatch.setattr(
        privaudit.Settings,
        "for_model",
        lambda target, **claim: privaudit.Settings(texts=12, tokens=8, lower_case=False, **claim),
    )
    (tmp_path / "audits" / "net").mkdir(parents=True)
    code, message = call(out="", pdf="no")
    assert code == 0 and "complete in" in message, message
    made = tmp_path / "audits" / "net-2"
    assert sorted(p.name for p in made.iterdir()) == ["report.html", "report.json", "report.schema.json"]
    facts = json.loads((made / "report.json").read_text())
    jsonschema.validate(facts, json.loads((made / "report.schema.json").read_text()))
    assert f"All {facts['data'][0]['patients']} patients of m.jsonl" in message
    assert facts["outcome"] == "nothing found" and set(facts["model"]["files"]) >= {"model.safetensors"}
    assert '<html lang="en">' in (made / "report.html").read_text()
    assert not list((tmp_path / "audits").glob(".*"))


def quick(monkeypatch, opened):
    """Let an audit take a second."""
    little = privaudit.Settings(
        texts=12, tokens=8, lower_case=False, control=False, permutations=1999, draws=60
    )
    monkeypatch.setattr(privaudit, "open_model", lambda *_, **__: opened)
    monkeypatch.setattr(
        privaudit.Settings, "for_model", lambda target, **given: dataclasses.replace(little, **given)
    )
    monkeypatch.setattr(privaudit.Settings, "for_texts", lambda **given: dataclasses.replace(little, **given))


def test_a_bundle_holds_the_report_and_no_text_of_a_record(call, home, opened, monkeypatch, tmp_path, capsys):
    quick(monkeypatch, opened)
    given = {"bundle": tmp_path / "out.zip", "canaries": home / "c.jsonl", "patients": 50, "notes": "all"}
    code, message = call(**given, pdf="no")
    assert code == 0 and "evidence: " in message, message
    assert "The audit tested 50 of 60 patients" in message and "--patients=all" in message
    assert cli.main(["verify", str(tmp_path / "out.zip")]) == 0
    said = capsys.readouterr().out
    assert "out.zip: holds: " in said and "Privacy audit of the language model “net”" in said
    files = bundle.unpack((tmp_path / "out.zip").read_bytes())
    published = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert published.items() <= files.items() and sum(n.startswith("figures/") for n in files) == 3
    facts = json.loads(files["report.json"])
    assert facts["coverage"]["members"]["patients"] == [50, 60] and not facts["coverage"]["whole"]
    assert facts["settings"]["patients"] == 50 and facts["settings"]["notes"] == "all"
    inputs = {one["file"] for one in (*facts["data"], facts["canary_file"])} | facts["model"]["files"].keys()
    assert inputs >= {"m.jsonl", "h.jsonl", "c.jsonl", "model.safetensors"}
    everything = b"\n".join([*files.values(), *(base64.b64decode(svg) for svg in inlined(files))]).decode()
    for name in ("m.jsonl", "h.jsonl"):
        for row in map(json.loads, lines_of(home, name)):
            words = row["text"].split()
            assert words[-1].rstrip(".") not in everything, "the number of a file"
            assert not any(" ".join(words[n : n + 4]) in everything for n in range(len(words) - 3))


def inlined(files):
    return re.findall(rb"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", files["report.html"])


@pytest.mark.parametrize("given", [{}, {"model": "", "synthetic": "s.jsonl"}])
def test_a_dry_run_says_what_would_be_done_and_makes_nothing(
    call, home, opened, monkeypatch, tmp_path, given
):
    quick(monkeypatch, opened)
    monkeypatch.setattr(privaudit, "run_audit", lambda *_, **__: pytest.fail("the work began"))
    given = given | ({"synthetic": home / given["synthetic"]} if given else {})
    code, message = call(**given, pdf="no", bundle=tmp_path / "out.zip", **{"dry-run": "yes"})
    assert code == 0 and "120 patients would be tested" in message, message
    assert re.search(r"about .+ s, and more for tests", message)
    assert "out.zip would be made" in message
    assert message.splitlines()[-1] == "[audit] nothing was made: this was a dry run"
    assert not list(tmp_path.iterdir())


def test_synthetic_texts_are_audited_without_a_model(call, home, monkeypatch, tmp_path):
    monkeypatch.setattr(privaudit, "open_model", lambda *_, **__: pytest.fail("a model was opened"))
    code, message = call(model="", synthetic=home / "s.jsonl", pdf="no", out="", columns="120")
    assert code == 0 and "flagged: " in message, message
    made = tmp_path / "audits" / "s"
    facts = json.loads((made / "report.json").read_text())
    jsonschema.validate(facts, json.loads((made / "report.schema.json").read_text()))
    assert facts["kind"] == "synthetic" and facts["copies"]["by_patient"]["members"][:2] == [60, 60]
    code, message = call(model="", synthetic="", pdf="no")
    assert code == 2 and "missing: --model, --synthetic or --answers" in message


def test_publishing_is_all_or_nothing(tmp_path, monkeypatch):
    home = tmp_path / "home"
    output.publish(home / "new", {"a": b"1", "b": b"2"})
    assert (home / "new" / "b").read_bytes() == b"2"
    with pytest.raises(RunFailed):
        output.publish(home / "new", {"a": b"3"})
    assert (home / "new" / "a").read_bytes() == b"1"

    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("privaudit.output.write_atomic", full)
    with pytest.raises(RunFailed, match="No space left"):
        output.publish(home / "other", {"a": b"3"})
    assert [p.name for p in home.iterdir()] == ["new"]


def test_the_command_verifies_and_says_its_exit_codes(tmp_path, capsys):
    path = tmp_path / "out.zip"
    for data, code in ((bundle.make({"report.html": b""}), 0), (b"x", 1)):
        path.write_bytes(data)
        assert cli.main(["verify", str(path)]) == code
    assert cli.main(["verify", str(tmp_path / "gone.zip")]) == 2
    capsys.readouterr()
    for words in ([], ["audit"], ["verify"]):
        with pytest.raises(SystemExit) as left:
            cli.main([*words, "--help"])
        assert left.value.code == 0 and "exit codes:" in capsys.readouterr().out


def test_the_man_page_has_every_command_and_exit_code_of_the_help(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    told = capsys.readouterr().out
    (commands,) = re.findall(r"^ *\{([a-z,]+)\}$", told, re.MULTILINE)
    codes = re.findall(r"^ {2}(\d+) ", told, re.MULTILINE)
    page = (ROOT / "privaudit" / "privai-leak.1").read_text()
    assert re.findall(r"^\.TP\n\.B (\S+)$", page, re.MULTILINE) == [*commands.split(","), *codes]


def test_the_audit_starts_in_the_current_folder(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("privaudit.cli.run", lambda root, options: seen.append((root, options)))
    monkeypatch.chdir(tmp_path)
    for name in ("net", "m.jsonl", "h.jsonl"):
        (tmp_path / name).touch()
    files = ["--records", "m.jsonl", "--holdout", "h.jsonl", "--columns=120"]
    assert cli.main(["audit", "--model", "net", "--dry-run", "--notes", "ALL", "--pdf=", *files]) == 0
    ((root, options),) = seen
    assert (root, options.records, options.dry_run, options.pdf) == (tmp_path, "m.jsonl", True, True)
    assert options.settings["notes"] is None and "patients" not in options.settings
