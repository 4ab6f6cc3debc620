"""Errors of a robot's discrete actions: the pose where an action ended relative to the commanded one.

``robot-runtime calibrate actuation`` measures them by driving, ``robot-runtime fit`` from logs, and both write this
file; a simulated robot whose ``action_noise`` names it has the same errors. It is stamped
(``robot_runtime.robots.calibration_file``)::

    forward_m: StepLength
    turn_deg: TurnAngle
    actions:
      move_forward:
        count: 40
        mean: [0.0031, -0.0012, 0.004]    # x m, y m, yaw rad: measured less commanded, in the frame of the start
        covariance: [[...], [...], [...]]
      turn_left: ...
      turn_right: ...
    contact:                              # if the logs contain enough contacts
      behaviour: stop                     # or slide
      count: 23
      log_ratio: -61.5                    # of slide to stop, nats
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.quantities import BodyRadius, Misalignment, Quantity, StepLength, TurnAngle
from robot_runtime.robots.calibration_file import check_if_stamped

KIND = "actuation"
"""Kind of the calibration."""

Triple = tuple[float, float, float]

MOVES = (Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT)

ARRIVAL = np.diag([0.001, 0.001, math.radians(0.1)]) ** 2
"""Covariance (m, m, rad) added to measured ones: the spread of an exact robot would have no density."""


_MEAN_M = Quantity("mean error of a position", "m", -1, 1)
_VARIANCE_M2 = Quantity("variance of a position", "m²", 0, 0.25)
MEANS = (_MEAN_M, _MEAN_M, Quantity("mean error of a heading", "rad", -0.5, 0.5))
VARIANCES = (_VARIANCE_M2, _VARIANCE_M2, Quantity("variance of a heading", "rad²", 0, 0.25))
"""Possible errors of x, y and yaw."""


@dataclass(frozen=True)
class ActionError(config.Strict):
    """Normally distributed error of an action in the frame of its start.

    Attributes:
        mean: x m, y m, yaw rad.
        covariance: covariance of the same three.
        count: number of actions that it was measured from.
    """

    mean: Triple
    covariance: tuple[Triple, Triple, Triple]
    count: int = 0

    def __post_init__(self) -> None:
        matrix = np.array(self.covariance)
        if not np.allclose(matrix, matrix.T, atol=1e-12) or np.linalg.eigvalsh(matrix).min() < -1e-9:
            raise ValueError(f"covariance must be symmetric and positive semidefinite, got {self.covariance}")
        for index, (value, quantity) in enumerate(
            zip((*self.mean, *np.diagonal(matrix)), (*MEANS, *VARIANCES), strict=True)
        ):
            if refusal := quantity.refusal(float(value)):
                raise ValueError(f"{'mean' if index < len(MEANS) else 'covariance'}: {'; '.join(refusal)}")

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The covariance, float64 (3, 3)."""
        return np.array(self.covariance, np.float64)

    def log_densities(self, errors: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithms of the probability density of errors, float64 (N,), per m² rad.

        Args:
            errors: float64 (N, 3), x m, y m, yaw rad.
            noise: float64 (N, 3, 3), covariance of each measurement. A singular sum has no density: add :data:`ARRIVAL`
                where models may be exact.
        """
        covariance = self.matrix + noise
        deviations = np.asarray(errors) - np.array(self.mean)
        squared = np.einsum("ni,ni->n", deviations, np.linalg.solve(covariance, deviations[..., None])[..., 0])
        return np.asarray(-0.5 * (squared + np.linalg.slogdet(covariance)[1] + 3 * math.log(2 * math.pi)))


@dataclass(frozen=True)
class ContactBehavior(config.Strict):
    """Motion of a robot that continues to drive into an obstacle.

    Attributes:
        behaviour: it stops where it touched, or slides along (Habitat's ``allow_sliding``).
        count: number of contacts that distinguish the two.
        log_ratio: logarithm of the likelihood of sliding over that of stopping.
        travel_m: distance driven after the contact; None without a contact sensor.
        radius_m: radius of the robot at the contact, by the map; None if too few contacts ended at a wall.
    """

    behaviour: Literal["stop", "slide"]
    count: int
    log_ratio: float
    travel_m: Misalignment | None = None
    radius_m: BodyRadius | None = None


@dataclass(frozen=True)
class ActuationModel(config.Strict):
    """Errors of all moves of a robot; see the module's docstring for the file.

    Attributes:
        forward_m: commanded distance of a forward move.
        turn_deg: commanded angle of a turn.
        actions: error by action name.
        contact: None if unknown.
    """

    forward_m: StepLength
    turn_deg: TurnAngle
    actions: dict[str, ActionError]
    contact: ContactBehavior | None = None

    def __post_init__(self) -> None:
        wanted = {move.name.lower() for move in MOVES}
        if set(self.actions) != wanted:
            raise ValueError(f"actions must be {', '.join(sorted(wanted))}, got {', '.join(sorted(self.actions))}")


def load_actuation(path: Path) -> ActuationModel:
    """Read a file of ``calibrate actuation``, of any robot: a simulated one may have the errors of another.

    Raises:
        ConfigError: no such file, or malformed.
        CalibrationError: of another kind, altered, or too old.
    """
    document = config.read_yaml(path)
    check_if_stamped(path, document, KIND)
    if isinstance(document, dict):
        document = {key: value for key, value in document.items() if key != "calibration"}
    return config.parse(document, ActuationModel, str(path))
