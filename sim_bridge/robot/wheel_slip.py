"""How the errors of actions happen: as slip, in proportion to the way, unseen by the wheels."""

from __future__ import annotations

import math

import numpy as np

from robot_runtime.actions.discrete import Action
from robot_runtime.robots.action_errors import Triple
from sim_bridge.noise.actions import ActionNoise, ActionNoiseOptions, action_noise
from sim_bridge.physics.world import World

REST_S = 0.03
"""Wheels that stand still for so long have ended an action: longer than a controller's tick, shorter than a pause."""

NONE: Triple = (0.0, 0.0, 0.0)


class Slip:
    """Tells actions apart by the wheels' rests and draws an error for each.

    An action ends where it was commanded to, plus its error, in the frame in which it began: while the heading slips,
    the robot goes on in the direction in which its wheels believe it to go. An action that ends earlier has less of it.

    Args:
        noise: None for wheels that never slip.
    """

    def __init__(self, noise: ActionNoise | None, step_s: float) -> None:
        self._noise = noise
        self._step_s = step_s
        self.restart(np.random.default_rng(0))

    @property
    def happens(self) -> bool:
        """Whether there is any."""
        return self._noise is not None

    def restart(self, random: np.random.Generator) -> None:
        """The robot was placed: no action is under way, and errors are drawn from ``random``."""
        self._random = random
        self._rested_s = REST_S
        self._error = NONE
        self._turns = False
        self._way = 1.0
        self._left = 0.0  # of the error, the share that has not happened yet
        self._turned_rad = self._slipped_rad = 0.0  # since the action began, by the wheels and besides

    def step(self, linear_m_s: float, angular_rad_s: float) -> Triple:
        """What one physics step moves the robot beside what its wheels do, which turn for this velocity.

        Returns:
            m forward, m left, rad to the left, in base_link in the middle of the step.
        """
        noise, step_s = self._noise, self._step_s
        if noise is None:
            return NONE
        if linear_m_s == 0 and angular_rad_s == 0:
            self._rested_s += step_s
            return NONE
        if self._rested_s >= REST_S:
            self._begin(noise, linear_m_s, angular_rad_s)
        self._rested_s = 0.0
        way = abs(angular_rad_s if self._turns else linear_m_s) * step_s / self._way
        share = min(way, self._left)
        self._left -= share
        x_m, y_m, yaw_rad = (share * part for part in self._error)
        wheels_m, wheels_rad = linear_m_s * step_s, angular_rad_s * step_s
        believed_rad = self._turned_rad + wheels_rad / 2
        x_m += wheels_m * math.cos(believed_rad)
        y_m += wheels_m * math.sin(believed_rad)
        true_rad = believed_rad + self._slipped_rad + yaw_rad / 2
        cos, sin = math.cos(true_rad), math.sin(true_rad)
        self._turned_rad += wheels_rad
        self._slipped_rad += yaw_rad
        return cos * x_m + sin * y_m - wheels_m, cos * y_m - sin * x_m, yaw_rad

    def _begin(self, noise: ActionNoise, linear_m_s: float, angular_rad_s: float) -> None:
        self._turns = linear_m_s == 0
        if self._turns:
            action = Action.TURN_LEFT if angular_rad_s > 0 else Action.TURN_RIGHT
        else:
            action = Action.MOVE_FORWARD
        x_m, y_m, yaw_rad = noise.draw(action, self._random)
        # In reverse an action overshoots as it does forward: habitat-sim turns its translation's error round with it.
        sign = -1.0 if linear_m_s < 0 else 1.0
        self._error = (sign * x_m, sign * y_m, yaw_rad)
        self._way = noise.turn_rad if self._turns else noise.forward_m
        self._left = 1.0
        self._turned_rad = self._slipped_rad = 0.0


def slip_of(options: ActionNoiseOptions | None, world: World) -> Slip:
    """The slip of a robot whose YAML says so. Raises ``ConfigError`` or ``CalibrationError`` for a bad file."""
    return Slip(None if options is None else action_noise(options), world.step_s)
