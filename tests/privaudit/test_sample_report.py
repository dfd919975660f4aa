"""The sample report that the README shows: whole, as it was made, and in the form of today."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

import privaudit
from privaudit import bundle
from privaudit.report import SCHEMA

ROOT = Path(__file__).parents[2]
HOME = ROOT / "reference" / "report"


@pytest.fixture(scope="module")
def files():
    return bundle.unpack((HOME / "evidence.zip").read_bytes())


def test_the_sample_is_the_report_of_its_bundle_and_verifies(files, tmp_path):
    made = {name: data for name, data in files.items() if name.startswith(("report", "figures/"))}
    (tmp_path / "out.zip").write_bytes(bundle.make(made))
    assert bundle.verify(str(tmp_path / "out.zip"))
    assert files["report.pdf"] == (HOME / "report.pdf").read_bytes()
    assert b"<title>Privacy audit of the language model" in files["report.html"]


def test_the_sample_has_the_form_that_is_published_today(files):
    """Where the form has moved on, the sample is made again as its README says."""
    facts = json.loads(files["report.json"])
    assert facts["schema"] == SCHEMA
    jsonschema.validate(facts, json.loads(privaudit.report_schema()))
    assert facts["answers"].keys() == {"tested", "found", "not_tested", "next"}
    assert facts["coverage"]["whole"] and facts["canaries"] and facts["named"]


def test_every_link_of_a_readme_leads_to_a_file():
    readmes = [ROOT / "README.md", *(ROOT / "reference").rglob("README.md")]
    links = [
        readme.parent / link
        for readme in readmes
        for link in re.findall(r"\]\(([^)#]+)\)", readme.read_text(encoding="utf-8"))
        if "://" not in link
    ]
    assert HOME / "report.pdf" in links and [link for link in links if not link.is_file()] == []
