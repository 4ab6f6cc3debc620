"""Fit of action errors from single actions, each measured before and after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.motion.trajectories import Move
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.robots.action_errors import ActionError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One measured action.

    Attributes:
        action: kind of the action.
        error: (x m, y m, yaw rad), measured less intended, in the frame of the start.
        noise: float64 (3, 3), the referee's share of its covariance.
    """

    action: Action
    error: Array
    noise: Array

    @classmethod
    def of(cls, action: Action, command: Displacement, move: Move, carried_rad: float = 0.0) -> Trial:
        """Return the trial of an action.

        Args:
            action: kind of the action.
            command: intended displacement.
            move: measured displacement.
            carried_rad: correction of a known heading error by which the motion controller started the action.
        """
        ahead_m, aside_m = command.forward_m * math.cos(carried_rad), command.forward_m * math.sin(carried_rad)
        yaw_rad = wrap_angle(move.truth.yaw_rad - command.turn_rad - carried_rad)
        return cls(action, np.array([move.truth.x_m - ahead_m, move.truth.y_m - aside_m, yaw_rad]), move.noise)


def error_of(trials: Sequence[Trial]) -> ActionError:
    """Return mean and covariance of the errors of at least two equal actions, without the referee's noise."""
    measured = np.array([trial.error for trial in trials])
    covariance = np.cov(measured, rowvar=False) - np.mean([trial.noise for trial in trials], axis=0)
    return ActionError(_triple(measured.mean(axis=0)), _rows(_possible(covariance)), len(trials))


def by_action(trials: Sequence[Trial]) -> Mapping[Action, list[Trial]]:
    """Group trials by action, in order."""
    found: dict[Action, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.action, []).append(trial)
    return found


def deviations(name: str, error: ActionError) -> dict[str, float]:
    """Return the standard deviations of an action's error as figures of a stamp."""
    deviation = np.sqrt(np.diag(error.matrix))
    return {
        f"{name}_std_mm": 1e3 * math.hypot(deviation[0], deviation[1]),
        f"{name}_std_deg": math.degrees(deviation[2]),
    }


def _possible(matrix: Array) -> Array:
    """Return the nearest positive semidefinite matrix; a difference of covariances may be none."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def _triple(values: Array) -> tuple[float, float, float]:
    x, y, yaw = (float(value) for value in values)
    return x, y, yaw


def _rows(matrix: Array) -> tuple[tuple[float, float, float], tuple[float, float, float], tuple[float, float, float]]:
    symmetric = (matrix + matrix.T) / 2
    return _triple(symmetric[0]), _triple(symmetric[1]), _triple(symmetric[2])
