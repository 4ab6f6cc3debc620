"""Action errors as wheel slip in proportion to the distance, not measured by the wheels."""

import math

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.robots.action_errors import Triple
from sim_bridge.noise.actions import ActionNoise, ActionNoiseOptions, action_noise
from sim_bridge.physics.world import World

REST_S = 0.03
"""Standstill of the wheels that ends an action: longer than a controller's tick, shorter than a pause."""

TURN_RADIUS_M = 0.05
"""Radius of the arc below which a motion is a turn. Wheels of unequal gain do not turn exactly on the spot."""

START_SHARE = 0.02
"""Share of an action after which its kind is fixed: its first moments mislead where one wheel starts first."""

NONE: Triple = (0.0, 0.0, 0.0)


class Slip:
    """Separates actions by the standstills of the wheels and draws an error for each.

    An action ends at its commanded end plus its error, in the frame in which it began: while the heading slips, the
    robot moves along the heading that the wheels measure. An action that ends early has a part of its error.

    Args:
        noise: None for wheels that never slip.
        step_s: length of a physics step.
    """

    def __init__(self, noise: ActionNoise | None, step_s: float) -> None:
        self._noise = noise
        self._step_s = step_s
        self.restart(np.random.default_rng(0))

    @property
    def active(self) -> bool:
        """Whether there is any slip."""
        return self._noise is not None

    def restart(self, random: np.random.Generator) -> None:
        """Start without an action in progress after the robot was placed, and draw errors from ``random``."""
        self._random = random
        self._rested_s = REST_S
        self._error = NONE
        self._turns = False
        self._action_length = 1.0
        self._left = 0.0  # share of the error that remains
        self._turned_rad = self._slipped_rad = 0.0  # since the action began, by wheels and slip

    def step(self, linear_m_s: float, angular_rad_s: float) -> Triple:
        """The motion by slip in one physics step in which the wheels turn for this velocity.

        Returns:
            m forward, m left, rad to the left, in base_link in the middle of the step.
        """
        noise, step_s = self._noise, self._step_s
        if noise is None:
            return NONE
        if linear_m_s == 0 and angular_rad_s == 0:
            self._rested_s += step_s
            return NONE
        turns = abs(linear_m_s) < TURN_RADIUS_M * abs(angular_rad_s)
        if self._rested_s >= REST_S or (turns != self._turns and self._left > 1 - START_SHARE):
            self._begin(noise, turns, linear_m_s, angular_rad_s)
        self._rested_s = 0.0
        progress = abs(angular_rad_s if self._turns else linear_m_s) * step_s / self._action_length
        share = min(progress, self._left)
        self._left -= share
        x_m, y_m, yaw_rad = (share * part for part in self._error)
        wheels_m, wheels_rad = linear_m_s * step_s, angular_rad_s * step_s
        wheel_heading_rad = self._turned_rad + wheels_rad / 2
        x_m += wheels_m * math.cos(wheel_heading_rad)
        y_m += wheels_m * math.sin(wheel_heading_rad)
        true_heading_rad = wheel_heading_rad + self._slipped_rad + yaw_rad / 2
        cos, sin = math.cos(true_heading_rad), math.sin(true_heading_rad)
        self._turned_rad += wheels_rad
        self._slipped_rad += yaw_rad
        return cos * x_m + sin * y_m - wheels_m, cos * y_m - sin * x_m, yaw_rad

    def _begin(self, noise: ActionNoise, turns: bool, linear_m_s: float, angular_rad_s: float) -> None:
        self._turns = turns
        if turns:
            action = Action.TURN_LEFT if angular_rad_s > 0 else Action.TURN_RIGHT
        else:
            action = Action.MOVE_FORWARD
        x_m, y_m, yaw_rad = noise.draw(action, self._random)
        # Reversing overshoots as driving forward does: habitat-sim reverses the translation's error too.
        sign = -1.0 if linear_m_s < 0 else 1.0
        self._error = (sign * x_m, sign * y_m, yaw_rad)
        self._action_length = noise.turn_rad if self._turns else noise.forward_m
        self._left = 1.0
        self._turned_rad = self._slipped_rad = 0.0


def make_slip(options: ActionNoiseOptions | None, world: World) -> Slip:
    """The slip of a robot whose YAML says so. Raises ``ConfigError`` or ``CalibrationError`` for a bad file."""
    return Slip(None if options is None else action_noise(options), world.step_s)
