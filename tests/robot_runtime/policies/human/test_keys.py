"""Keys of teleoperation."""

from __future__ import annotations

from robot_runtime.actions.discrete import Action
from robot_runtime.policies.human.keys import KEYS


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
