"""Actions, their magnitudes, and the published ids and words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.actions.discrete import (
    ALLENACT_ROBOTHOR,
    DIALECTS,
    HABITAT,
    HABITAT_2019,
    ROBOTHOR,
    Action,
    Dialect,
    Displacement,
    Magnitudes,
    parse_action,
)
from robot_runtime.errors import UnknownAction


@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        (HABITAT, "stop move_forward turn_left turn_right look_up look_down"),
        (HABITAT_2019, "move_forward turn_left turn_right stop"),
        (ROBOTHOR, "MoveAhead RotateRight RotateLeft LookUp LookDown Stop"),
        (ALLENACT_ROBOTHOR, "MoveAhead RotateLeft RotateRight End LookUp LookDown"),
    ],
)
def test_published_ids_and_words(dialect: Dialect, words: str) -> None:
    assert dialect.spellings == tuple(words.split())
    for index, word in enumerate(words.split()):
        assert dialect.encode(dialect.parse(index)) == (index, word)
        assert dialect.parse(word) is dialect.parse(np.int64(index))


def test_the_same_id_means_different_things() -> None:
    assert [d.parse(0) for d in DIALECTS.values()] == [
        Action.STOP,
        Action.STOP,
        Action.STOP,
        Action.MOVE_FORWARD,
        Action.MOVE_FORWARD,
        Action.MOVE_FORWARD,
    ]
    assert HABITAT.parse(2) is Action.TURN_LEFT
    assert ROBOTHOR.parse(1) is Action.TURN_RIGHT
    assert ALLENACT_ROBOTHOR.parse("End") is Action.STOP


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize(
    "value", [-1, 6, 10**30, "", "Move_forward", "jump", True, np.True_, 1.0, math.nan, None, [1], np.array([1, 2])]
)
def test_anything_else_is_refused_with_what_is_known(dialect: Dialect, value: object) -> None:
    with pytest.raises(UnknownAction, match=f"is not one of {dialect.name}'s") as caught:
        dialect.parse(value)
    assert all(word in caught.value.remedy for word in dialect.spellings)


def test_a_dialect_without_an_action_says_so() -> None:
    with pytest.raises(UnknownAction, match=r"habitat-lab v0\.1\.0 has no action look_up"):
        HABITAT_2019.encode(Action.LOOK_UP)


def test_displacements_have_the_documented_signs() -> None:
    magnitudes = Magnitudes(forward_m=0.25, turn_deg=30, tilt_deg=15)
    assert {action: magnitudes.displacement(action) for action in Action} == {
        Action.STOP: Displacement(),
        Action.MOVE_FORWARD: Displacement(forward_m=0.25),
        Action.TURN_LEFT: Displacement(turn_rad=math.radians(30)),
        Action.TURN_RIGHT: Displacement(turn_rad=-math.radians(30)),
        Action.LOOK_UP: Displacement(tilt_rad=math.radians(15)),
        Action.LOOK_DOWN: Displacement(tilt_rad=-math.radians(15)),
        Action.GRAB_RELEASE: Displacement(),
        Action.VELOCITY_CONTROL: Displacement(),
        Action.WAYPOINT_CONTROL: Displacement(),
        Action.TRAJECTORY_CONTROL: Displacement(),
    }


@pytest.mark.parametrize("name", ["forward_m", "turn_deg", "tilt_deg"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_magnitudes_are_positive_numbers(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Magnitudes(**{"forward_m": 0.25, "turn_deg": 30.0, "tilt_deg": 30.0, name: value})


def test_a_task_takes_its_own_actions_by_name_only() -> None:
    allowed = (Action.STOP, Action.MOVE_FORWARD)
    assert parse_action("stop", allowed) is Action.STOP
    assert parse_action(Action.MOVE_FORWARD, allowed) is Action.MOVE_FORWARD
    assert parse_action(np.str_("move_forward"), allowed) is Action.MOVE_FORWARD


@given(st.none() | st.integers() | st.floats() | st.text() | st.sampled_from(["look_up", "Action.STOP", "STOP"]))
def test_a_policy_asking_for_anything_else_is_told_what_there_is(name: object) -> None:
    with pytest.raises(UnknownAction) as caught:
        parse_action(name, (Action.MOVE_FORWARD, Action.TURN_LEFT))
    assert repr(name) in caught.value.message
    assert caught.value.remedy == "use one of: move_forward, turn_left"


def test_an_action_prints_as_its_logged_name() -> None:
    assert f"{Action.TURN_LEFT}" == str(Action.TURN_LEFT) == "turn_left"
