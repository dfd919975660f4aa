"""What reruns what: prose reruns nothing, a helper exactly the notebooks that reach it."""

import nbformat
import pytest
import toy_chain

from bookmaker.runner import files, fingerprint
from privhelpers.errors import InvalidParameter


@pytest.fixture
def root(tmp_path):
    return toy_chain.build(tmp_path / "book")


def fingerprints(root):
    helpers = fingerprint.Helpers(root)
    return {p.stem: helpers.fingerprint(p) for p in files.files(root / "notebooks", "*.ipynb")}


def changed(root, before):
    after = fingerprints(root)
    return {slug for slug in after if after[slug] != before[slug]}


def edit(root, change):
    path = root / "notebooks" / "hipaa.ipynb"
    notebook = nbformat.read(path, as_version=4)
    change(notebook)
    nbformat.write(notebook, path)


def test_prose_ids_outputs_and_metadata_change_nothing(root):
    before = fingerprints(root)

    def change(notebook):
        notebook.cells[0].source = "# Better words"
        notebook.cells.append(nbformat.v4.new_markdown_cell("More."))
        for number, cell in enumerate(notebook.cells):
            cell.id = f"other-{number}"
        notebook.cells[2].metadata["mystnb"] = {"figure": {"caption": "A caption."}}
        notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="old")]

    edit(root, change)
    assert changed(root, before) == set()


@pytest.mark.parametrize("cell", [1, 2])
def test_code_and_defaults_change_their_notebook_only(root, cell):
    before = fingerprints(root)
    edit(
        root, lambda nb: nb.cells[cell].update(source=nb.cells[cell].source.replace("0.5", "0.6") + "\n1 + 1")
    )
    assert changed(root, before) == {"hipaa"}


ALL = set(toy_chain.NOTEBOOKS)


@pytest.mark.parametrize(
    "helper, slugs",
    [
        ("toy_records.py", {"synthetic_records"}),  # from privhelpers import toy_records
        ("toy/shallow.py", {"comparison"}),  # import privhelpers.toy.shallow as shallow
        ("toy/deep.py", {"extraction"}),  # from privhelpers.toy import deep
        ("toy/base.py", {"extraction"}),  # from . import base, in deep
        ("toy_late.py", {"extraction"}),  # from ..toy_late import x, inside a function of base
        ("toy/__init__.py", {"extraction", "comparison"}),
        ("toy/vocabulary.json", {"extraction", "comparison"}),  # data of the package
        ("errors.py", ALL),  # through artifacts
        ("__init__.py", ALL),
        ("toy_nobody.py", set()),
        ("../bookmaker/runner/run.py", set()),
    ],
)
def test_a_helper_changes_exactly_the_notebooks_that_reach_it(root, helper, slugs):
    before = fingerprints(root)
    with open(root / "privhelpers" / helper, "a") as handle:
        handle.write("\n# changed\n")
    assert changed(root, before) == slugs


def test_a_chapter_follows_from_the_kept_results_that_it_names_and_from_no_others(root):
    """Neither from kept pages and records, nor from what is kept of the profile that it runs for."""
    edit(
        root,
        lambda nb: nb.cells[2].update(
            source="\n".join(f'open_reference("{name}")' for name in ("real", "public", "best"))
        ),
    )
    notebook = root / "notebooks" / "hipaa.ipynb"

    def of(*profiles):
        helpers = fingerprint.Helpers(root)
        return [helpers.fingerprint(notebook, profile) for profile in profiles]

    profiles = ("course", "real", "study")
    for name, changes in {
        "real/real_model/experiment.json": {"course", "study"},
        "real/about/about.json": {"course", "study"},
        "public/public_pretraining/metrics.json": {"course", "real"},
        "best/fine_tuning/metrics.json": {"course", "real"},
        "size/about/about.json": set(),
        "study/shadow_models/summary.json": set(),
        "real/real_model/page.json": set(),
        "public/public_pretraining/run.json.sha256": set(),
        "mutants.md": set(),
    }.items():
        before = of(*profiles)
        (root / "reference" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "reference" / name).write_text("new")
        after = of(*profiles)
        assert {p for p, old, new in zip(profiles, before, after, strict=True) if old != new} == changes, name
    edit(root, lambda nb: nb.cells[2].update(source='name = "real"\nopen_reference(name)'))
    with pytest.raises(InvalidParameter, match="code cell 2: open_reference must be given a name as text"):
        of("course")


@pytest.mark.parametrize("folder, found", [("privhelpers", 1), ("tests", 0)])
def test_only_code_that_imports_a_package_has_its_version(root, folder, found):
    path = root / "notebooks" / "hipaa.ipynb"
    edit(root, lambda nb: nb.cells[2].update(source="from privhelpers import adapters"))
    (root / folder).mkdir(exist_ok=True)
    (root / folder / "adapters.py").write_text("def f():\n    from peft import LoraConfig\n")
    packages = fingerprint.Helpers(root).packages(path)
    assert packages.count("peft") == found and packages[:5] == fingerprint.VERSIONS
    assert ("peft" in fingerprint.versions(packages)) == bool(found)


def test_a_cell_with_magics_is_read(root):
    edit(root, lambda nb: nb.cells[2].update(source="%time x = 1\nfrom privhelpers import toy_late"))
    path = root / "notebooks" / "hipaa.ipynb"
    assert root / "privhelpers" / "toy_late.py" in fingerprint.Helpers(root).of(path)
    edit(root, lambda nb: nb.cells[2].update(source="x = (7\n  % 2)\nfrom privhelpers import stats"))
    fingerprint.Helpers(root).fingerprint(path)


@pytest.mark.parametrize(
    "code", ["x = = 1", "-" * 100_000 + "1", "%time x\n" + "-" * 100_000 + "1", "x = '\0'"]
)
def test_code_that_python_cannot_read_is_refused_by_its_place(root, code):
    edit(root, lambda nb: nb.cells[2].update(source=code))
    with pytest.raises(InvalidParameter, match=r"^notebooks/hipaa\.ipynb, code cell 2"):
        fingerprints(root)


@pytest.mark.parametrize("text", [b"x = = 1", b"# \xff"])
def test_a_helper_that_python_cannot_read_is_refused_by_its_name(root, text):
    (root / "privhelpers" / "text.py").write_bytes(text)
    with pytest.raises(InvalidParameter, match=r"^privhelpers/text\.py"):
        fingerprints(root)


def test_the_site_depends_on_pages_prose_and_the_packages_and_not_on_tests(root):
    seen = {fingerprint.of_site(root)}
    files = (
        "book/intro.md",
        "_toc.yml",
        "_config.yml",
        "bookmaker/site/__main__.py",
        "notebooks/hipaa.ipynb",
    )
    for file in (*files, "privhelpers/toy_nobody.py", "privhelpers/toy/words.yml"):
        with open(root / file, "a") as handle:
            handle.write("\n")
        seen.add(fingerprint.of_site(root))
    assert len(seen) == 8
    (root / "tests").mkdir()
    (root / "tests" / "test_toy.py").write_text("x = 1\n")
    assert fingerprint.of_site(root) in seen


LEFT = (".errors.py.swp", "errors.py~", "#errors.py#", ".DS_Store", ".hidden.py")


def test_what_editors_and_systems_leave_changes_nothing(root):
    """An editor's lock is a link that leads nowhere; on macOS a look into a folder leaves a file there."""
    before = fingerprints(root), fingerprint.of_site(root)
    for folder in ("privhelpers", "privhelpers/toy", "bookmaker/site", "book"):
        for name in LEFT:
            (root / folder / name).write_bytes(b"b0VIM \xff")
        (root / folder / ".#errors.py").symlink_to("me@host.1234:1")
    (root / "notebooks" / ".#hipaa.ipynb").symlink_to("me@host.1234:1")
    assert (fingerprints(root), fingerprint.of_site(root)) == before
