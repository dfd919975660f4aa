"""Profile files: what they mean, and every way in which one is refused before anything runs."""

import pytest
import toy_chain

from bookmaker.runner import chain, profiles
from privhelpers.errors import InvalidParameter, MissingArtifact
from privhelpers.records._identifiers import MOST_PEOPLE

DP = "private_training"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return toy_chain.build(tmp_path_factory.mktemp("toy") / "book")


@pytest.fixture
def load(root):
    def write_and_load(text, name="mine"):
        (root / "params" / f"{name}.yml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return profiles.load(root, name)

    return write_and_load


def test_shared_values_reach_every_notebook_and_its_own_come_first(load, root):
    profile = load("shared: {seed: 7}\nhipaa: {seed: 9, limit: 1e-1}\n")
    assert profile.resolve(root, "synthetic_records", profile="mine")["seed"] == 7
    assert profile.resolve(root, "hipaa") == {
        "profile": "toy",
        "seed": 9,
        "models": ["baseline"],
        "limit": 0.1,
    }


@pytest.mark.parametrize(
    "text, epsilons",
    [
        (f"{DP}: {{target_epsilon: [8, 0.5, 1]}}", (0.5, 1.0, 8.0)),
        (f"{DP}: {{target_epsilon: 2}}", (2.0,)),
        (f"{DP}: {{accountant: rdp}}", (8.0,)),
        ("", (8.0,)),
    ],
)
def test_budgets(load, text, epsilons):
    assert load(text).epsilons == epsilons


def test_fifty_budgets_are_a_profile(load):
    assert len(load(f"{DP}: {{target_epsilon: {list(range(1, 51))}}}").epsilons) == 50


@pytest.mark.parametrize(
    ("slug", "names", "others"),
    [
        ("synthetic_records", ("patients", "validation_patients", "heldout_patients"), 0),
        ("shadow_models", ("auxiliary_patients",), 2),
    ],
)
def test_no_profile_asks_for_more_patients_than_have_impossible_numbers(slug, names, others):
    declared = profiles.declared(chain.source(toy_chain.ROOT, slug))
    highest = sum(int(declared[name].help.split()[-1].rstrip("]")) for name in names)
    assert highest + others <= MOST_PEOPLE


def test_a_copied_profile_is_a_profile(root):
    (root / "params" / "copy.yml").write_text((root / "params" / "toy.yml").read_text())
    assert profiles.load(root, "copy").epsilons == profiles.load(root, "toy").epsilons


REFUSED = [
    (f"{DP}: {{target_epsilon: -1}}", f"{DP}.target_epsilon = -1: must be a number in \\(0, 1000\\]$"),
    (f"{DP}: {{target_epsilon: [1, -1]}}", f"{DP}.target_epsilon = -1: must be a number in"),
    (f"{DP}: {{target_epsilon: [1, .nan]}}", "target_epsilon = nan: must be"),
    (f"{DP}: {{target_epsilon: [1, true]}}", "target_epsilon = True: must be"),
    (f"{DP}: {{target_epsilon: ['1']}}", "target_epsilon = '1': must be"),
    (f"{DP}: {{target_epsilon: null}}", "target_epsilon = None: must be"),
    (f"{DP}: {{target_epsilon: [[1]]}}", r"target_epsilon = \[1\]: must be"),
    (f"{DP}: {{target_epsilon: []}}", "at least one budget"),
    (f"{DP}: {{target_epsilon: [1, 1.0]}}", r"\[1, 1.0\]: two runs would be called dp-eps-1$"),
    (f"{DP}: {{target_epsilon: [1, 1.00000001]}}", "two runs would be called dp-eps-1$"),
    (f"{DP}: {{acountant: rdp}}", r"acountant = 'rdp': no such parameter; did you mean accountant\?"),
    (f"{DP}: {{accountant: prv}}", "accountant = 'prv': must be one of pld, rdp"),
    (f"{DP}: {{widths: [0.5, 2]}}", "widths = .*each in"),
    (f"{DP}: {{private: 1}}", "private = 1: must be true or false"),
    ("hipaa: {limit: '0.5'}", "limit = '0.5': must be a number in"),
    ("hipa: {limit: 0.5}", "hipa: no such notebook; known: shared, anonymization"),
    ("shared: {sead: 1}", r"shared.sead = 1: no such parameter; did you mean seed\?"),
    ("shared: {seed: -1}", r"mine.yml, shared.seed = -1: must be a whole number"),
    ("shared: {profile: other}", "shared.profile: filled in by the chain"),
    ("extraction: {model: public}", "extraction.model: filled in by the chain"),
    ("shared: {seed: 1}\nshared: {seed: 2}", "line 2: shared is given twice"),
    ("shared:\n  seed: 1\n  seed: 2", "line 3: seed is given twice"),
    ("shared: {target_epsilon: []}", r"mine.yml, shared.target_epsilon = \[\]: give at least one"),
    ("shared: {target_epsilon: abc}", r"mine.yml, shared.target_epsilon = 'abc': must be a number"),
    ("? [shared]\n: {seed: 1}", "line 1: a list or a mapping: a name is a word"),
    ('shared: {seed: "\\UFFFFFFFF"}', "mine.yml: not a profile in UTF-8 YAML"),
    ("shared: 3", "shared = 3: must map names to values"),
    ("- 1", "must map notebook names"),
    ("1: {seed: 1}", "1: no such notebook"),
    ("? [a]\n: 1", "mine.yml: "),
    ("shared: {seed: 1", "mine.yml: line"),
    ("shared: {seed: !!python/object/apply:os.getcwd []}", "line 1: a tag, such as !!float, is not read"),
    ("shared: {seed: !!bool maybe}", "line 1: a tag"),
    ("shared: {seed: !!timestamp x}", "line 1: a tag"),
    ("shared:\n  seed: !!int 017", "line 2: a tag"),
    ("shared: {seed: ! 1}", "line 1: a tag"),
    ("shared: {seed: 1}\nhipaa: {limit: 1e-1, limit: 0.2}", "line 2: limit is given twice"),
    ("hipaa: {limit: 1e400}", "line 1: a number is too large"),
    ("shared: {seed: 017}", "seed = '017': must be a whole number"),
    ("shared: {seed: 1:30}", "seed = '1:30': must be a whole number"),
    ("shared: {seed: 0x1F}", "seed = '0x1F': must be a whole number"),
    ("shared: {seed: 2024-13-45}", "seed = '2024-13-45': must be a whole number"),
    (f"{DP}: {{target_epsilon: 1:30.5}}", "target_epsilon = '1:30.5': must be a number"),
    (f"{DP}: {{private: yes}}", "private = 'yes': must be true or false"),
    ("shared: {<<: {seed: 1}}", "line 1: '<<': a name is a word"),
    ('"hipaa\\n\\e[31m": {limit: 0.5}', r"line 1: 'hipaa\\n\\x1b\[31m': a name is a word"),
    ("shared: {seed: &a [*a]}", "seed = .*: must be a whole number"),
    (f"{DP}: {{target_epsilon: {list(range(1, 52))}}}", "51 budgets; give 50 at most"),
    ("[" * 11, "line 1: more than 10 brackets inside each other"),
    ("- " * 4000, "mine.yml: "),
    ("shared: {seed: " + "1" * 5000 + "}", "mine.yml: "),
    ("[" * 5000, "mine.yml: "),
    (b"shared: {seed: \xff}", "UTF-8"),
    ("shared: {seed: \x00}", "mine.yml: "),
]


@pytest.mark.parametrize("text, complaint", REFUSED, ids=range(len(REFUSED)))
def test_a_wrong_profile_is_refused_in_one_line_that_names_the_file(load, text, complaint):
    with pytest.raises(InvalidParameter, match=complaint) as refusal:
        load(text)
    message = str(refusal.value)
    assert message.startswith("params/mine.yml") and "\n" not in message


@pytest.mark.parametrize(
    "name", ["../toy", "/etc/passwd", "", ".", "..", "a/b", "a\x00", "A", "é", "toy\n", "x" * 300]
)
def test_a_name_with_path_characters_is_refused(root, name):
    with pytest.raises(InvalidParameter):
        profiles.load(root, name)


def test_a_missing_profile_is_refused_with_those_there_are(root):
    with pytest.raises(MissingArtifact, match=r"params/nothing.yml does not exist; profiles: .*toy"):
        profiles.load(root, "nothing")


def test_the_command_line_refuses_without_a_traceback(root):
    (root / "params" / "negative.yml").write_text(f"{DP}: {{target_epsilon: -1}}\n")
    done = toy_chain.call(root, "book", "--profile", "negative")
    assert done.returncode == 2 and done.stdout == ""
    expected = f"refused: params/negative.yml, {DP}.target_epsilon = -1: must be a number in (0, 1000]\n"
    assert done.stderr == expected
    assert not (root / "runs" / "negative").exists()


@pytest.mark.parametrize("name", ["smoke", "course", "study", "real", "full"])
def test_the_profiles_of_the_book_are_valid(name):
    profile = profiles.load(toy_chain.ROOT, name)
    assert len(profile.epsilons) >= 2 and 8 in profile.epsilons


def test_budgets_that_more_than_one_chapter_reads_are_refused_where_they_stand():
    words = r"mine\.yml, shared\.target_epsilon = \[1, 8\]: must be a number"
    with pytest.raises(InvalidParameter, match=words):
        profiles.checked(toy_chain.ROOT, "mine", "mine.yml", b"shared: {target_epsilon: [1, 8]}")
