"""Where an action ends beside where it should: errors that the robot's own odometry does not see.

Three sources: PyRobot's tables as Habitat uses them, AI2-THOR's for RoboTHOR, and what was measured on one robot, in a
file (``fitted``) or written out (``gaussian``). Each has a ``multiplier`` of its errors, means included: the knob that
Kadian et al. 2020 turned from 0 to 1.

PyRobot: ``habitat_sim/agent/controls/pyrobot_noisy_controls.py`` (habitat-sim, MIT), parameters contributed by the
authors of PyRobot (Murali et al., arXiv 1906.08236), who measured two LoCoBots with three controllers. Per action: an
error along and to the right of the heading, and one of the heading, each normal with the table's mean and **the square
root of the table's second number** as its standard deviation, as the code samples them, cut off at three standard
deviations and where an action would go less than 5 % of its way. They do not depend on how far the action goes, and the
means turn with a turn's direction.

RoboTHOR: ``movementGaussianSigma`` 0.005 m and ``rotateGaussianSigma`` 0.5 degrees, the defaults of the stochastic
agent (ai2thor.allenai.org/robothor/documentation); zero mean, nothing sideways.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from robot_runtime import config
from robot_runtime.actions import Action
from robot_runtime.actuation import ActuationModel, Triple, load_actuation
from sim_bridge.options import NonNegative, Positive

TRUNCATION = 3.0
"""PyRobot's, in standard deviations."""

LEAST_WAY = 0.05
"""PyRobot's: what an action goes of its way at least."""


@dataclass(frozen=True)
class Normal:
    """One of PyRobot's: means of the error and its second numbers."""

    mean: tuple[float, ...]
    variance: tuple[float, ...]


@dataclass(frozen=True)
class Motions:
    """One controller of one robot: errors (along, right) and of the heading, of moves and of turns."""

    move: Normal
    move_yaw: Normal
    turn: Normal
    turn_yaw: Normal


PYROBOT: dict[str, dict[str, Motions]] = {
    "LoCoBot": {
        "ILQR": Motions(
            Normal((0.014, 0.009), (0.006, 0.005)),
            Normal((0.008,), (0.004,)),
            Normal((0.003, 0.003), (0.002, 0.003)),
            Normal((0.023,), (0.012,)),
        ),
        "Proportional": Motions(
            Normal((0.017, 0.042), (0.007, 0.023)),
            Normal((0.031,), (0.026,)),
            Normal((0.001, 0.005), (0.001, 0.004)),
            Normal((0.043,), (0.017,)),
        ),
        "Movebase": Motions(
            Normal((0.074, 0.036), (0.019, 0.033)),
            Normal((0.189,), (0.038,)),
            Normal((0.002, 0.003), (0.0, 0.002)),
            Normal((0.219,), (0.019,)),
        ),
    },
    "LoCoBot-Lite": {
        "ILQR": Motions(
            Normal((0.142, 0.023), (0.008, 0.008)),
            Normal((0.031,), (0.028,)),
            Normal((0.002, 0.002), (0.001, 0.002)),
            Normal((0.122,), (0.03,)),
        ),
        "Proportional": Motions(
            Normal((0.135, 0.043), (0.007, 0.009)),
            Normal((0.049,), (0.009,)),
            Normal((0.002, 0.002), (0.002, 0.001)),
            Normal((0.054,), (0.061,)),
        ),
        "Movebase": Motions(
            Normal((0.192, 0.117), (0.055, 0.144)),
            Normal((0.128,), (0.143,)),
            Normal((0.002, 0.001), (0.001, 0.001)),
            Normal((0.173,), (0.025,)),
        ),
    },
}
"""Metres and radians; variances as the code takes them."""


class ActionErrors(ABC):
    """Draws how an action errs."""

    @abstractmethod
    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        """x m forward, y m left, yaw rad to the left, in the frame of the action's start.

        Args:
            action: ``MOVE_FORWARD``, ``TURN_LEFT`` or ``TURN_RIGHT``.
        """


@dataclass(frozen=True)
class PyRobotOptions:
    """PyRobot's tables.

    Attributes:
        multiplier: of every error; the Habitat challenges of 2020 and 2021 take 0.5 of ``Proportional``.
        forward_m, turn_deg: on which way an error happens.
    """

    model: Literal["pyrobot"]
    robot: Literal["LoCoBot", "LoCoBot-Lite"] = "LoCoBot"
    controller: Literal["ILQR", "Proportional", "Movebase"] = "ILQR"
    multiplier: NonNegative = 1.0
    forward_m: Positive = 0.25
    turn_deg: Positive = 30.0

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class RobothorOptions:
    """AI2-THOR's stochastic agent."""

    model: Literal["robothor"]
    movement_sigma_m: NonNegative = 0.005
    rotate_sigma_deg: NonNegative = 0.5
    multiplier: NonNegative = 1.0
    forward_m: Positive = 0.25
    turn_deg: Positive = 30.0

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class FittedOptions:
    """What ``robot-runtime calibrate actuation`` wrote to ``file``."""

    model: Literal["fitted"]
    file: str
    multiplier: NonNegative = 1.0

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class GaussianOptions(ActuationModel):
    """The content of such a file, written out: ``forward_m``, ``turn_deg``, ``actions``."""

    model: Literal["gaussian"] = "gaussian"
    multiplier: NonNegative = 1.0

    __pydantic_config__ = config.STRICT


ActionNoiseOptions = Annotated[
    PyRobotOptions | RobothorOptions | FittedOptions | GaussianOptions, Field(discriminator="model")
]


class PyRobotErrors(ActionErrors):
    """See the module."""

    def __init__(self, options: PyRobotOptions) -> None:
        self._motions = PYROBOT[options.robot][options.controller]
        self._forward_m, self._turn_rad = options.forward_m, math.radians(options.turn_deg)

    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        motions = self._motions
        if action is Action.MOVE_FORWARD:
            least = (-(1 - LEAST_WAY) * self._forward_m, None)
            along, right = _truncated(motions.move, least, random)
            (yaw,) = _truncated(motions.move_yaw, (None,), random)
        else:
            along, right = _truncated(motions.turn, (None, None), random)
            (yaw,) = _truncated(motions.turn_yaw, (-(1 - LEAST_WAY) * self._turn_rad,), random)
            if action is Action.TURN_RIGHT:
                yaw = -yaw
        return along, -right, yaw


class RobothorErrors(ActionErrors):
    """See the module."""

    def __init__(self, options: RobothorOptions) -> None:
        self._move_m, self._turn_rad = options.movement_sigma_m, math.radians(options.rotate_sigma_deg)

    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        deviation = float(random.standard_normal())
        if action is Action.MOVE_FORWARD:
            return self._move_m * deviation, 0.0, 0.0
        return 0.0, 0.0, self._turn_rad * deviation


class FittedErrors(ActionErrors):
    """Errors of one robot, correlations included."""

    def __init__(self, model: ActuationModel) -> None:
        self._errors = {
            action: (np.array(error.mean), _root(error.matrix))
            for action in (Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT)
            for error in (model.actions[action.name.lower()],)
        }

    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        mean, root = self._errors[action]
        x_m, y_m, yaw_rad = (mean + root @ random.standard_normal(3)).tolist()
        return x_m, y_m, yaw_rad


@dataclass(frozen=True)
class ActionNoise:
    """Errors, how many times as large as their model's, and on which way each of them happens."""

    errors: ActionErrors
    forward_m: float
    turn_rad: float
    multiplier: float = 1.0

    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        """As :meth:`ActionErrors.draw`, multiplied."""
        x_m, y_m, yaw_rad = self.errors.draw(action, random)
        return self.multiplier * x_m, self.multiplier * y_m, self.multiplier * yaw_rad


def action_noise(options: ActionNoiseOptions) -> ActionNoise:
    """The noise that a robot's YAML names. Raises ``ConfigError`` or ``CalibrationError`` for a bad file."""
    way: PyRobotOptions | RobothorOptions | ActuationModel
    errors: ActionErrors
    if isinstance(options, PyRobotOptions):
        way, errors = options, PyRobotErrors(options)
    elif isinstance(options, RobothorOptions):
        way, errors = options, RobothorErrors(options)
    else:
        way = load_actuation(Path(options.file)) if isinstance(options, FittedOptions) else options
        errors = FittedErrors(way)
    return ActionNoise(errors, way.forward_m, math.radians(way.turn_deg), options.multiplier)


def _truncated(normal: Normal, least: tuple[float | None, ...], random: np.random.Generator) -> list[float]:
    """Independent draws, within ``TRUNCATION`` and above ``least``."""
    drawn = []
    for mean, variance, floor in zip(normal.mean, normal.variance, least, strict=True):
        sigma = math.sqrt(variance)
        # The floor lies below the mean in every row, so every second draw at least is good.
        while True:
            deviation = float(random.standard_normal())
            value = mean + sigma * deviation
            if abs(deviation) <= TRUNCATION and (floor is None or value >= floor):
                break
        drawn.append(value)
    return drawn


def _root(covariance: np.ndarray) -> np.ndarray:
    """A matrix whose product with its transpose is ``covariance``, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
