"""Published models of a LoCoBot's action errors: PyRobot's tables, and AI2-THOR's parameters for RoboTHOR.

PyRobot: ``habitat_sim/agent/controls/pyrobot_noisy_controls.py`` (habitat-sim, MIT), parameters contributed by the
authors of PyRobot (Murali et al., arXiv 1906.08236), who measured two LoCoBots with three controllers. Per action: an
error along and to the right of the heading, and one of the heading, each normal with the table's mean and **the square
root of the table's second number** as its standard deviation, as the code samples them, truncated at three standard
deviations and at 5 % of the commanded distance or angle. The errors do not depend on the action's magnitude, and the
means change sign with the direction of a turn.

RoboTHOR: ``movementGaussianSigma`` 0.005 m and ``rotateGaussianSigma`` 0.5 degrees, the defaults of the stochastic
agent (ai2thor.allenai.org/robothor/documentation); zero mean, nothing sideways.
"""

import math
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.robots.action_errors import MOVES, ActionError, ActuationModel

TRUNCATION = 3.0
"""Truncation of PyRobot's errors, in standard deviations."""

MIN_FRACTION = 0.05
"""Smallest fraction of a commanded distance or angle that PyRobot's noise leaves."""

HABITAT_MULTIPLIER = 0.5
"""Factor on all errors and means of ``Proportional`` in the Habitat challenges of 2020 and 2021."""

ROBOTHOR_MOVE_M = 0.005
ROBOTHOR_TURN_DEG = 0.5


@dataclass(frozen=True)
class Errors:
    """Errors of a controller on a robot, for moves and turns: means and second numbers of PyRobot's tables.

    Pairs are along and to the right of the heading.
    """

    move: tuple[float, float]
    move_variance: tuple[float, float]
    move_yaw: float
    move_yaw_variance: float
    turn: tuple[float, float]
    turn_variance: tuple[float, float]
    turn_yaw: float
    turn_yaw_variance: float


@dataclass(frozen=True)
class ErrorComponent:
    """One component of an action's error: ``sign`` times a truncated normal number.

    Attributes:
        mean: mean of the normal number.
        sigma: the square root of the table's second number.
        least: lower bound; None for :data:`TRUNCATION` alone.
    """

    mean: float
    sigma: float
    sign: float = 1.0
    least: float | None = None

    def draw(self, random: np.random.Generator) -> float:
        """Sample an error."""
        # ``least`` lies below the mean in every row, so at least every second sample is accepted.
        while True:
            deviation = float(random.standard_normal())
            value = self.mean + self.sigma * deviation
            if abs(deviation) <= TRUNCATION and (self.least is None or value >= self.least):
                return self.sign * value

    def moments(self) -> tuple[float, float]:
        """Mean and variance."""
        from scipy.stats import truncnorm  # here because it takes 0.3 s that every run would wait for

        if self.sigma == 0:
            return self.sign * self.mean, 0.0
        low = -TRUNCATION if self.least is None else max(-TRUNCATION, (self.least - self.mean) / self.sigma)
        mean, variance = truncnorm.stats(low, TRUNCATION, loc=self.mean, scale=self.sigma, moments="mv")
        return self.sign * float(mean), float(variance)


PYROBOT: dict[str, dict[str, Errors]] = {
    "LoCoBot": {
        "ILQR": Errors((0.014, 0.009), (0.006, 0.005), 0.008, 0.004, (0.003, 0.003), (0.002, 0.003), 0.023, 0.012),
        "Proportional": Errors(
            (0.017, 0.042), (0.007, 0.023), 0.031, 0.026, (0.001, 0.005), (0.001, 0.004), 0.043, 0.017
        ),
        "Movebase": Errors((0.074, 0.036), (0.019, 0.033), 0.189, 0.038, (0.002, 0.003), (0.0, 0.002), 0.219, 0.019),
    },
    "LoCoBot-Lite": {
        "ILQR": Errors((0.142, 0.023), (0.008, 0.008), 0.031, 0.028, (0.002, 0.002), (0.001, 0.002), 0.122, 0.03),
        "Proportional": Errors(
            (0.135, 0.043), (0.007, 0.009), 0.049, 0.009, (0.002, 0.002), (0.002, 0.001), 0.054, 0.061
        ),
        "Movebase": Errors((0.192, 0.117), (0.055, 0.144), 0.128, 0.143, (0.002, 0.001), (0.001, 0.001), 0.173, 0.025),
    },
}
"""Meters and radians; variances as the code interprets them."""


def pyrobot_components(
    motions: Errors, action: Action, forward_m: float, turn_rad: float
) -> tuple[ErrorComponent, ErrorComponent, ErrorComponent]:
    """Independent components of an action's error: x forward m, y to the left m, yaw to the left rad.

    Args:
        motions: the table.
        action: ``MOVE_FORWARD``, ``TURN_LEFT`` or ``TURN_RIGHT``.
        forward_m: commanded distance, positive.
        turn_rad: commanded angle, positive.
    """
    moves = action is Action.MOVE_FORWARD
    row = astuple(motions)
    means, variances, yaw_mean, yaw_variance = row[:4] if moves else row[4:]
    least_m = -(1 - MIN_FRACTION) * forward_m if moves else None
    least_rad = None if moves else -(1 - MIN_FRACTION) * turn_rad
    along, right = (ErrorComponent(mean, math.sqrt(variance)) for mean, variance in zip(means, variances, strict=True))
    turned = -1.0 if action is Action.TURN_RIGHT else 1.0
    yaw = ErrorComponent(yaw_mean, math.sqrt(yaw_variance), turned, least_rad)
    return replace(along, least=least_m), replace(right, sign=-1.0), yaw


def pyrobot_model(
    robot: str, controller: str, forward_m: float, turn_deg: float, multiplier: float = 1.0
) -> ActuationModel:
    """Normal model with the mean and covariance of PyRobot's errors."""
    errors = {}
    for action in MOVES:
        components = pyrobot_components(PYROBOT[robot][controller], action, forward_m, math.radians(turn_deg))
        moments = np.array([component.moments() for component in components])
        errors[action.name.lower()] = _error(multiplier * moments[:, 0], multiplier**2 * moments[:, 1])
    return ActuationModel(forward_m, turn_deg, errors)


def published_models(forward_m: float, turn_deg: float) -> dict[str, ActuationModel]:
    """All published error models of a LoCoBot by name, and ``ideal`` without errors."""
    models = {
        f"PyRobot {robot} {controller}": pyrobot_model(robot, controller, forward_m, turn_deg)
        for robot, controllers in PYROBOT.items()
        for controller in controllers
    }
    models["Habitat challenge"] = pyrobot_model("LoCoBot", "Proportional", forward_m, turn_deg, HABITAT_MULTIPLIER)
    along = _error(np.zeros(3), np.array([ROBOTHOR_MOVE_M**2, 0, 0]))
    about = _error(np.zeros(3), np.array([0, 0, math.radians(ROBOTHOR_TURN_DEG) ** 2]))
    robothor = {action.name.lower(): along if action is Action.MOVE_FORWARD else about for action in MOVES}
    models["RoboTHOR"] = ActuationModel(forward_m, turn_deg, robothor)
    none = _error(np.zeros(3), np.zeros(3))
    models["ideal"] = ActuationModel(forward_m, turn_deg, {action.name.lower(): none for action in MOVES})
    return models


def _error(mean: NDArray[np.float64], variance: NDArray[np.float64]) -> ActionError:
    x, y, yaw = mean.tolist()
    xx, yy, aa = variance.tolist()
    return ActionError((x, y, yaw), ((xx, 0.0, 0.0), (0.0, yy, 0.0), (0.0, 0.0, aa)))
