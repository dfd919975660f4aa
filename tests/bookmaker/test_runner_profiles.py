"""Profile files: what they mean, and every way in which one is refused before anything runs."""

import pytest
import toy_chain

from bookmaker.runner import chain, profiles
from privhelpers.errors import InvalidParameter, MissingArtifact
from privhelpers.records._identifiers import MOST_PEOPLE

DP = "private_training"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = toy_chain.build(tmp_path_factory.mktemp("toy") / "book")
    (root / "params" / "half.yml").write_text("extends: toy\n")
    return root


@pytest.fixture
def load(root):
    def write_and_load(text, name="mine"):
        (root / "params" / f"{name}.yml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return profiles.load(root, name)

    return write_and_load


def test_shared_values_reach_every_notebook_and_its_own_come_first(load, root):
    profile = load("shared: {seed: 7}\nhipaa: {seed: 9, limit: 1e-1}\n")
    assert profile.resolve(root, "synthetic_records", profile="mine")["seed"] == 7
    values = {"profile": "toy", "seed": 9, "models": ["baseline"], "limit": 0.1}
    assert profile.resolve(root, "hipaa") == values


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


# What a file says, and the section, the field, or the line that the refusal names.
REFUSED = [
    *(
        (f"{DP}: {{target_epsilon: {value}}}", f"{DP}.target_epsilon")
        for value in ("-1", "[1, -1]", "[1, .nan]", "[1, true]", "['1']", "null", "[[1]]", "[]", "[1, 1.0]")
    ),
    (f"{DP}: {{acountant: rdp}}", f"{DP}.acountant"),
    (f"{DP}: {{widths: [0.5, 2]}}", f"{DP}.widths"),
    (f"{DP}: {{private: yes}}", f"{DP}.private"),
    ("hipa: {limit: 0.5}", "hipa:"),
    ("1: {seed: 1}", "1:"),
    ("shared: {sead: 1}", "shared.sead"),
    *((f"shared: {{seed: {value}}}", "shared.seed") for value in ("-1", "017", "1:30", "0x1F", "&a [*a]")),
    ("shared: {profile: other}", "shared.profile"),
    ("extends: toy\nhipaa: {limit: 2}", "hipaa.limit"),
    ("extends: 3", "extends = 3"),
    ("extends: half\nshared: {seed: 1}", "extends = half: extends toy itself"),
    ("kept: hipaa", "kept = 'hipaa'"),
    ("kept: [hipaa, hippa]", "kept = 'hippa'"),
    ("kept: [extraction]", "kept = 'extraction': must be a run, as private_training_dp-eps-8 or one of"),
    ("kept: [private_training_baseline]", "kept = 'private_training_baseline': must be a run"),
    ("kept: [hipaa_baseline]", "kept = 'hipaa_baseline': must be a run"),
    ("extraction: {model: public}", "extraction.model"),
    ("shared: {target_epsilon: []}", "shared.target_epsilon"),
    ("shared: 3", "shared"),
    ("- 1", ""),
    ("shared:\n  seed: 1\n  seed: 2", "line 3"),
    ("shared: {seed: 1", "line"),
    ("shared: {seed: !!python/object/apply:os.getcwd []}", "line 1"),
    ("shared: {<<: {seed: 1}}", "line 1"),
    ('"hipaa\\n\\e[31m": {limit: 0.5}', "line 1"),
    ("[" * 5000, ""),
    (b"shared: {seed: \xff}", "UTF-8"),
    ("shared: {seed: \x00}", ""),
]


def test_a_profile_takes_the_values_of_another_and_changes_some(load):
    load(f"kept: [shadow_models, hipaa]\nshared: {{seed: 5}}\n{DP}: {{target_epsilon: [1, 8]}}", "base")
    mine = load(f"extends: base\nshared: {{seed: 6}}\n{DP}: {{accountant: rdp}}\nhipaa: {{limit: 0.2}}")
    assert mine.given == {
        "shared": {"seed": 6}, DP: {"target_epsilon": [1, 8], "accountant": "rdp"}, "hipaa": {"limit": 0.2}
    }  # fmt: skip
    # A chapter whose values it changes runs live.
    assert (mine.epsilons, mine.extends, mine.kept) == ((1.0, 8.0), "base", ("shadow_models",))
    assert load("extends: base\nkept: [hipaa]\nhipaa: {limit: 0.2}").kept == ("hipaa",)
    assert load("extends: base\nkept: []").kept == ()
    runs = (f"{DP}_dp-eps-0.5", "extraction_equal_use", "extraction_dp-eps-0.5")
    load(f"kept: [{', '.join(runs)}]", "of_models")
    assert load("extends: of_models\nextraction: {}").kept == (runs[0],)
    with pytest.raises(MissingArtifact, match=r"params/nobody\.yml does not exist"):
        load("extends: nobody")


@pytest.mark.parametrize("text, named", REFUSED, ids=range(len(REFUSED)))
def test_a_wrong_profile_is_refused_in_one_line_that_names_the_field(load, text, named):
    with pytest.raises(InvalidParameter) as refusal:
        load(text)
    message = str(refusal.value)
    assert message.startswith("params/mine.yml") and named in message and "\n" not in message


@pytest.mark.parametrize("name", ["../toy", "/etc/passwd", "", "..", "a\x00", "A", "é", "toy\n", "x" * 300])
def test_a_name_with_path_characters_is_refused(root, name):
    with pytest.raises(InvalidParameter):
        profiles.load(root, name)


def test_a_missing_profile_is_refused_with_those_there_are(root):
    with pytest.raises(MissingArtifact, match=r"params/nothing.yml.*toy"):
        profiles.load(root, "nothing")


def test_the_command_line_refuses_without_a_traceback(root):
    (root / "params" / "negative.yml").write_text(f"{DP}: {{target_epsilon: -1}}\n")
    done = toy_chain.call(root, "book", "--profile", "negative")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"refused: params/negative.yml, {DP}.target_epsilon = -1: ")
    assert not (root / "runs" / "negative").exists()


@pytest.mark.parametrize("name", ["smoke", "course", "study", "real", "report", "full"])
def test_the_profiles_of_the_book_are_valid(name):
    profile = profiles.load(toy_chain.ROOT, name)
    assert len(profile.epsilons) >= 2 and 8 in profile.epsilons
