"""Errors of the ends of actions that the robot's own odometry does not measure.

Three sources: PyRobot's tables as Habitat uses them and AI2-THOR's for RoboTHOR
(``robot_runtime.robots.published_action_errors`` has the sources), and measurements of a robot, in a file
(``fitted``) or written out (``gaussian``). Each has a ``multiplier`` of its errors, means included: the parameter that
Kadian et al. 2020 varied from 0 to 1.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from robot_runtime.actions.discrete import Action
from robot_runtime.common.config import NonNegative, Strict
from robot_runtime.common.quantities import Spread, StepLength, TurnAngle
from robot_runtime.robots.action_errors import MOVES, ActuationModel, Triple, load_actuation
from robot_runtime.robots.published_action_errors import PYROBOT, ROBOTHOR_MOVE_M, ROBOTHOR_TURN_DEG, pyrobot_components

Floats = NDArray[np.float64]


class ActionErrors(ABC):
    """A random error of actions."""

    @abstractmethod
    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        """Draw x (m forward), y (m left) and yaw (rad to the left) in the frame of the action's start.

        Args:
            action: ``MOVE_FORWARD``, ``TURN_LEFT`` or ``TURN_RIGHT``.
            random: source of the error.
        """

    @abstractmethod
    def moments(self, action: Action) -> tuple[Floats, Floats]:
        """Mean float64 (3,) and covariance (3, 3) of what is drawn."""


@dataclass(frozen=True)
class PyRobotOptions(Strict):
    """PyRobot's tables.

    Attributes:
        multiplier: factor of every error; the Habitat challenges of 2020 and 2021 take 0.5 of ``Proportional``.
        forward_m: distance over which a translation's error happens.
        turn_deg: angle over which a turn's error happens.
    """

    model: Literal["pyrobot"]
    robot: Literal["LoCoBot", "LoCoBot-Lite"] = "LoCoBot"
    controller: Literal["ILQR", "Proportional", "Movebase"] = "ILQR"
    multiplier: NonNegative = 1.0
    forward_m: StepLength = 0.25
    turn_deg: TurnAngle = 30.0


@dataclass(frozen=True)
class RobothorOptions(Strict):
    """AI2-THOR's stochastic agent."""

    model: Literal["robothor"]
    movement_sigma_m: Spread = ROBOTHOR_MOVE_M
    rotate_sigma_deg: NonNegative = ROBOTHOR_TURN_DEG
    multiplier: NonNegative = 1.0
    forward_m: StepLength = 0.25
    turn_deg: TurnAngle = 30.0


@dataclass(frozen=True)
class FittedOptions(Strict):
    """The result of ``robot-runtime calibrate actuation`` in ``file``."""

    model: Literal["fitted"]
    file: str
    multiplier: NonNegative = 1.0


@dataclass(frozen=True)
class GaussianOptions(ActuationModel, Strict):
    """The content of such a file, written out: ``forward_m``, ``turn_deg``, ``actions``."""

    model: Literal["gaussian"] = "gaussian"
    multiplier: NonNegative = 1.0


ActionNoiseOptions = Annotated[
    PyRobotOptions | RobothorOptions | FittedOptions | GaussianOptions, Field(discriminator="model")
]


class PyRobotErrors(ActionErrors):
    """PyRobot's measured errors."""

    def __init__(self, options: PyRobotOptions) -> None:
        motions, turn_rad = PYROBOT[options.robot][options.controller], math.radians(options.turn_deg)
        self._parts = {action: pyrobot_components(motions, action, options.forward_m, turn_rad) for action in MOVES}

    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        x, y, yaw = self._parts[action]
        return x.draw(random), y.draw(random), yaw.draw(random)

    def moments(self, action: Action) -> tuple[Floats, Floats]:
        moments = np.array([part.moments() for part in self._parts[action]])
        return moments[:, 0], np.diag(moments[:, 1])


class RobothorErrors(ActionErrors):
    """AI2-THOR's Gaussian errors."""

    def __init__(self, options: RobothorOptions) -> None:
        self._move_m, self._turn_rad = options.movement_sigma_m, math.radians(options.rotate_sigma_deg)

    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        deviation = float(random.standard_normal())
        if action is Action.MOVE_FORWARD:
            return self._move_m * deviation, 0.0, 0.0
        return 0.0, 0.0, self._turn_rad * deviation

    def moments(self, action: Action) -> tuple[Floats, Floats]:
        sigmas = (self._move_m, 0.0, 0.0) if action is Action.MOVE_FORWARD else (0.0, 0.0, self._turn_rad)
        return np.zeros(3), np.diag(sigmas) ** 2


class FittedErrors(ActionErrors):
    """Errors of a robot, correlations included."""

    def __init__(self, model: ActuationModel) -> None:
        self._errors = {
            action: (np.array(error.mean), _root(error.matrix))
            for action in MOVES
            for error in (model.actions[action.name.lower()],)
        }

    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        mean, root = self._errors[action]
        x_m, y_m, yaw_rad = (mean + root @ random.standard_normal(3)).tolist()
        return x_m, y_m, yaw_rad

    def moments(self, action: Action) -> tuple[Floats, Floats]:
        mean, root = self._errors[action]
        return mean, root @ root.T


@dataclass(frozen=True)
class ActionNoise:
    """Errors times a factor, and the distance and angle over which each of them happens."""

    errors: ActionErrors
    forward_m: StepLength
    turn_rad: float
    multiplier: float = 1.0

    def draw(self, action: Action, random: np.random.Generator) -> Triple:
        """As :meth:`ActionErrors.draw`, multiplied."""
        x_m, y_m, yaw_rad = self.errors.draw(action, random)
        return self.multiplier * x_m, self.multiplier * y_m, self.multiplier * yaw_rad

    def moments(self, action: Action) -> tuple[Floats, Floats]:
        """As :meth:`ActionErrors.moments`, multiplied."""
        mean, covariance = self.errors.moments(action)
        return self.multiplier * mean, self.multiplier**2 * covariance


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


def _root(covariance: np.ndarray) -> np.ndarray:
    """A matrix whose product with its transpose is ``covariance``; this may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
