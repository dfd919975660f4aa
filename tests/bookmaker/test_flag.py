"""The game of assignment 7: each level has its attack, guesses win nothing, and the twin knows nothing."""

import random
from functools import lru_cache

import numpy as np
import pytest
import submissions

from bookmaker.teaching import _work, flag
from privhelpers import rng
from privhelpers.errors import InvalidParameter

STUDENTS = ("s000", "kk-41", "0")
GUESSES = 10_000


def game(student):
    return flag.levels(rng.derive(0, f"assignment 7/{student}"))


def attacks():
    """Return the teacher's attacks, by level."""
    names = {}
    cells = [cell for cell in submissions.read("7_flag").cells if _work.is_solution(cell)]
    exec("\n".join(cell.source for cell in cells), names)
    return dict(enumerate((names[_work.name_of(cell)] for cell in cells), start=1))


@lru_cache
def flags(student):
    levels = game(student)
    return {
        number: attack(levels[number].patient, levels[number].model) for number, attack in attacks().items()
    }


def test_the_attack_of_each_level_opens_it_and_its_twin_has_no_flag():
    for student in STUDENTS:
        for number, level in game(student).items():
            attack = attacks()[number]
            assert level.opens(attack(level.patient, level.model)), (student, number)
            assert not level.opens(attack(level.patient, level.twin)), (student, number)


def test_the_attack_of_a_level_does_not_open_the_next():
    for student in STUDENTS:
        second, third = game(student)[2], game(student)[3]
        assert not second.opens(attacks()[1](second.patient, second.model))
        assert not third.opens(attacks()[1](third.patient, third.model))
        with pytest.raises(InvalidParameter, match="#"):  # asks on after digits that it did not get
            attacks()[2](third.patient, third.model)


def test_every_student_has_other_flags_and_guesses_open_none():
    found = {one for student in STUDENTS for one in flags(student).values()}
    assert len(found) == 3 * len(STUDENTS)
    chance = random.Random(0)
    guesses = {"".join(chance.choices(flag.DIGITS, k=flag.PLACES)) for _ in range(GUESSES)}
    assert not guesses & found  # a hash of each would take minutes; of some, it takes less
    assert not any(level.opens(guess) for level in game("s000").values() for guess in sorted(guesses)[:3])


def test_the_checker_says_no_to_what_is_not_the_flag():
    level, right = game("s000")[1], flags("s000")[1]
    assert level.opens(right)
    near = right[:-1] + flag.DIGITS[flag.DIGITS.index(right[-1]) - 1]
    for wrong in (near, f"SYN-{right}", right + "\n", right[:-1], "", int(right), None, np.empty((0,))):
        assert not level.opens(wrong), wrong


def test_no_flag_is_in_what_a_student_may_read():
    seen = [flag.__doc__, repr(game("s000")), *map(str, np.load(flag.KEPT)["patients"])]
    seen += [cell.source for cell in submissions.read("7_flag").cells]
    for number in flags("s000").values():
        assert not any(number in text for text in seen)


@pytest.mark.parametrize(
    ("number", "text", "shown"),
    [
        (1, "record SYN-0123456789", "record SYN-0123456789"),
        (2, "SYN-012, asthma", "SYN-012, asthma"),
        (2, "0123", "[withheld]"),
        (2, "0 1-2.3", "[withheld]"),
        (2, "0a1b2\n3", "[withheld]"),
        (3, "SYN-012, asthma", "SYN-###, asthma"),
    ],
)
def test_what_a_filter_lets_through(number, text, shown):
    assert flag.FILTERS[number](text) == shown


def test_what_a_model_writes_is_what_it_finds_probable():
    level = game("s000")[1]
    model, prompt = level.model, f"{level.patient}, record SYN-"
    number = model.write(prompt, 10)
    assert model.write(prompt + number[:4], 6) == number[4:]
    assert model.prefers(prompt, number, number[::-1]) and not model.prefers(prompt, number, number)
    assert model.log_p(prompt, number) == pytest.approx(
        model.log_p(prompt, number[:3]) + model.log_p(prompt + number[:3], number[3:])
    )
    assert model.write(seed=1) == model.write(seed=1) != model.write(seed=2)


@pytest.mark.parametrize("ask", [lambda model: model.write("ü"), lambda model: model.prefers("", "ü", "0")])
def test_a_character_that_the_model_does_not_know_is_refused(ask):
    with pytest.raises(InvalidParameter, match="ü"):
        ask(game("s000")[1].model)


@pytest.mark.nightly
def test_new_secrets_can_be_won_as_they_are_meant(tmp_path, monkeypatch):
    from bookmaker.teaching import _planting

    old = flags("s000")
    monkeypatch.setattr(flag, "KEPT", tmp_path / "flag.npz")
    _planting.write(flag.KEPT)
    test_the_attack_of_each_level_opens_it_and_its_twin_has_no_flag()
    assert not set(flags.__wrapped__("s000").values()) & set(old.values())  # past the cache
