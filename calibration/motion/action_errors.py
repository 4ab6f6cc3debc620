"""``robot-runtime calibrate actuation``: errors of discrete actions.

The motion controller executes each action many times; a referee measures the robot's pose before and after. Measured
less commanded displacements give mean and covariance of the errors (forward, left, heading), from which the referee's
noise is subtracted. A simulated robot uses the file by ``action_noise: {model: fitted, file: ...}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from calibration.motion.trajectories import MeasuredDrive, Move
from calibration.operator_guide import Guide
from calibration.procedure import Fit, Procedure
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common import config
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import Robot
from robot_runtime.robots.action_errors import ARRIVAL, KIND, ActionError, ActuationModel

ROOM_M = 0.9
MIN_TRIALS = 8

LIMIT_RATIO = 3.0
"""Greatest ratio of the held-out errors' mean squared Mahalanobis distance to its expectation, 3."""


Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One measured action.

    Attributes:
        error: (x m, y m, yaw rad), measured less intended, in the frame of the start.
        noise: float64 (3, 3), the referee's share of its covariance.
    """

    action: Action
    error: Array
    noise: Array

    @classmethod
    def of(cls, action: Action, command: Displacement, move: Move, carried_rad: float = 0.0) -> Trial:
        """Return the trial of an action.

        ``carried_rad`` corrects a known heading error with which the motion controller started the action.
        """
        ahead_m, aside_m = command.forward_m * math.cos(carried_rad), command.forward_m * math.sin(carried_rad)
        yaw_rad = wrap_angle(move.truth.yaw_rad - command.turn_rad - carried_rad)
        return cls(action, np.array([move.truth.x_m - ahead_m, move.truth.y_m - aside_m, yaw_rad]), move.noise)


def error_of(trials: Sequence[Trial]) -> ActionError:
    """Return mean and covariance of the errors of at least two equal actions, without the referee's noise."""
    measured = np.array([trial.error for trial in trials])
    covariance = np.cov(measured, rowvar=False) - np.mean([trial.noise for trial in trials], axis=0)
    # The nearest positive semidefinite matrix, because a difference of covariances may not be one.
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    possible = (vectors * np.maximum(values, 0)) @ vectors.T
    x, y, yaw = map(_triple, (possible + possible.T) / 2)
    return ActionError(_triple(measured.mean(axis=0)), (x, y, yaw), len(trials))


def by_action(trials: Sequence[Trial]) -> Mapping[Action, list[Trial]]:
    """Group trials by action, in order."""
    groups: dict[Action, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.action, []).append(trial)
    return groups


def deviations(name: str, error: ActionError) -> dict[str, float]:
    """Return the standard deviations of an action's error as figures of a stamp."""
    deviation = np.sqrt(np.diag(error.matrix))
    return {
        f"{name}_std_mm": 1e3 * math.hypot(deviation[0], deviation[1]),
        f"{name}_std_deg": math.degrees(deviation[2]),
    }


def _triple(values: Array) -> tuple[float, float, float]:
    x, y, yaw = (float(value) for value in values)
    return x, y, yaw


class ActuationProcedure(Procedure[Trial, ActuationModel]):
    """Calibration of action errors; see the module."""

    kind: ClassVar[str] = KIND
    limits: Mapping[str, float] = {"distance_ratio": LIMIT_RATIO}

    def __init__(self, forward_m: float, turn_deg: float, cycles: int) -> None:
        self._forward_m, self._turn_deg, self._cycles = forward_m, turn_deg, cycles
        self._referee = ""

    def record(self, robot: Robot, guide: Guide) -> Sequence[Trial]:
        self._referee = robot.referee.info.name
        driver = MeasuredDrive(robot, guide, ROOM_M)
        turn_rad = math.radians(self._turn_deg)
        commands = {
            Action.MOVE_FORWARD: Displacement(forward_m=self._forward_m),
            Action.TURN_LEFT: Displacement(turn_rad=turn_rad),
            Action.TURN_RIGHT: Displacement(turn_rad=-turn_rad),
        }
        trials: list[Trial] = []
        for cycle in range(self._cycles):
            for action, command in commands.items():
                trials.append(Trial.of(action, command, driver.move(command)))
            driver.go(Displacement(forward_m=-self._forward_m))
            driver.return_home()
            guide.progress(cycle + 1, self._cycles)
        return trials

    def split(self, captures: Sequence[Trial]) -> tuple[list[Trial], list[Trial]]:
        kept: list[Trial] = []
        held_out: list[Trial] = []
        for trials in by_action(captures).values():
            ours, theirs = super().split(trials)
            kept += ours
            held_out += theirs
        return kept, held_out

    def solve(self, captures: Sequence[Trial]) -> Fit[ActuationModel]:
        errors: dict[str, ActionError] = {}
        residuals: dict[str, float] = {}
        for action, trials in by_action(captures).items():
            name = action.name.lower()
            if len(trials) < MIN_TRIALS:
                raise CalibrationFailed(
                    f"actuation: {len(trials)} trials of {name}, {MIN_TRIALS} are needed", "raise --cycles"
                )
            errors[name] = error_of(trials)
            residuals |= deviations(name, errors[name])
        model = ActuationModel(self._forward_m, self._turn_deg, errors)
        method = f"{len(captures)} actions of {self._forward_m:g} m and {self._turn_deg:g}°, referee {self._referee}"
        return Fit(model, config.unparse(model), "", method, residuals)

    def verify(self, solution: ActuationModel, held_out: Sequence[Trial]) -> Mapping[str, float]:
        ratios, off = [], []
        for trial in held_out:
            expected = solution.actions[trial.action.name.lower()]
            residual = trial.error - np.array(expected.mean)
            ratios.append(residual @ np.linalg.solve(expected.matrix + trial.noise + ARRIVAL, residual) / 3)
            off.append(residual)
        rms = np.sqrt(np.mean(np.square(off), axis=0))
        return {
            "distance_ratio": float(np.mean(ratios)),
            "position_rms_mm": 1e3 * math.hypot(rms[0], rms[1]),
            "heading_rms_deg": math.degrees(rms[2]),
        }
