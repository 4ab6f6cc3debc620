"""Slip of the wheels: each motion has the error of its own action, whatever its motors do to it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from robot_runtime.actions.discrete import Action
from robot_runtime.robots.action_errors import Triple
from sim_bridge.noise.actions import ActionErrors, ActionNoise
from sim_bridge.robot.wheel_slip import REST_S, Slip

STEP_S = 0.01
SEPARATION_M = 0.23
ERRORS: dict[Action, Triple] = {
    Action.MOVE_FORWARD: (-0.015, 0.0, 0.0),
    Action.TURN_LEFT: (0.0, 0.0, -0.026),
    Action.TURN_RIGHT: (0.0, 0.0, 0.026),
}


class KnownErrors(ActionErrors):
    """The mean of each action's error."""

    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        return ERRORS[action]

    def moments(self, action: Action) -> tuple[np.ndarray, np.ndarray]:
        return np.array(ERRORS[action]), np.zeros((3, 3))


def slip_of(left_m_s: float, right_m_s: float, late_steps: int) -> Triple:
    """Slip in sum while both wheels drive 0.25 m forward or turn by 30 degrees; the right one starts later."""
    slip = Slip(ActionNoise(KnownErrors(), 0.25, math.radians(30)), STEP_S)
    slip.restart(np.random.default_rng(0))
    for _ in range(math.ceil(REST_S / STEP_S) + 1):
        slip.step(0.0, 0.0)
    way_m = 0.25 if left_m_s * right_m_s > 0 else math.radians(30) * SEPARATION_M / 2
    steps = round(way_m / (abs(left_m_s) + abs(right_m_s)) * 2 / STEP_S)
    total = np.zeros(3)
    for step in range(steps + late_steps):
        left = left_m_s if step < steps else 0.0
        right = right_m_s if step >= late_steps else 0.0
        total += slip.step((left + right) / 2, (right - left) / SEPARATION_M)
    return tuple(total.tolist())


@pytest.mark.parametrize("late_steps", [0, 2])
@pytest.mark.parametrize("gain", [1.0, 1.0 + 1e-12, 1.05])
class TestErrorsOfActions:
    def test_turns_have_the_error_of_turns(self, gain: float, late_steps: int) -> None:
        assert slip_of(-0.02, 0.02 * gain, late_steps)[2] == pytest.approx(-0.026, abs=0.0015)
        assert slip_of(0.02, -0.02 * gain, late_steps)[2] == pytest.approx(0.026, abs=0.0015)

    def test_straight_motions_have_the_error_of_straight_motions(self, gain: float, late_steps: int) -> None:
        # Ahead in the frame of the start; the rest of the sum is the change of direction.
        _, _, yaw_rad = slip_of(0.1, 0.1 * gain, late_steps)
        assert yaw_rad == 0.0
