"""Keys of teleoperation as terminals report them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_runtime.actions.discrete import Action
from robot_runtime.policies.human.keys import KEYS, terminal_keys


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"w", ["w"]),
        (b"WaD", ["w", "a", "d"]),
        (b"\x1b[A\x1b[D\x1b[C", ["up", "left", "right"]),
        (b"\x1bOA", ["up"]),
        (b"\x1b[1;2D\x1b[1;2C", ["shift+left", "shift+right"]),
        (b"\x1b[5~w", ["w"]),
        (b"\x1b", []),
    ],
)
def test_keys_have_the_names_of_the_table(data: bytes, names: list[str]) -> None:
    assert terminal_keys(data) == names


def test_habitats_and_ai2thors_keys_mean_their_actions() -> None:
    assert [KEYS[key] for key in "wadf"] == [Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT, Action.STOP]
    assert [KEYS[key] for key in ("up", "j", "shift+right", "i", "k")] == [
        Action.MOVE_FORWARD,
        Action.TURN_LEFT,
        Action.TURN_RIGHT,
        Action.LOOK_UP,
        Action.LOOK_DOWN,
    ]
    assert not {" ", "r"} & set(KEYS)  # which stop and release the robot


@given(st.binary(max_size=64))
def test_no_bytes_are_an_error(data: bytes) -> None:
    assert all(name for name in terminal_keys(data))
