"""What discrete actions really do on one robot: where it ends beside where it was told to go.

``robot-runtime calibrate actuation`` measures it by driving, ``robot-runtime fit`` from logs, and both write this file;
a simulated robot whose ``action_noise`` names it errs in the same way. It is stamped
(``robot_runtime.robots.calibration_file``)::

    forward_m: 0.25
    turn_deg: 30.0
    actions:
      move_forward:
        count: 40
        mean: [0.0031, -0.0012, 0.004]    # x m, y m, yaw rad: measured less commanded, in the frame of the start
        covariance: [[...], [...], [...]]
      turn_left: ...
      turn_right: ...
    contact:                            # where logs tell of enough contacts
      behaviour: stop                   # or slide
      count: 23
      log_ratio: -61.5                  # of slide to stop, nats
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.robots.calibration_file import check_if_stamped

KIND = "actuation"
"""Of the calibration's file."""

Triple = tuple[float, float, float]

MOVES = (Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT)

ARRIVAL = np.diag([0.001, 0.001, math.radians(0.1)]) ** 2
"""Covariance (m, m, rad) with which a motion controller ends an action at all: ``MotionProfile``'s tolerances."""


@dataclass(frozen=True)
class ActionError:
    """How one action's end departs from what was commanded: normally distributed, in the frame of its start.

    Attributes:
        mean: x m, y m, yaw rad. covariance: of the same three.
        count: of the actions that it was measured from.
    """

    mean: Triple
    covariance: tuple[Triple, Triple, Triple]
    count: int = 0

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        matrix = np.array(self.covariance)
        if not np.allclose(matrix, matrix.T, atol=1e-12) or np.linalg.eigvalsh(matrix).min() < -1e-9:
            raise ValueError(f"no covariance: {self.covariance}")

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The covariance, float64 (3, 3)."""
        return np.array(self.covariance, np.float64)

    def log_densities(self, errors: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """How probable errors are, float64 (N,): logarithms of the density per m² rad.

        Args:
            errors: float64 (N, 3), x m, y m, yaw rad. noise: float64 (N, 3, 3), covariance with which each was
                measured; what it leaves singular has no density, so add :data:`ARRIVAL` where models may be exact.
        """
        covariance = self.matrix + noise
        off = np.asarray(errors) - np.array(self.mean)
        squared = np.einsum("ni,ni->n", off, np.linalg.solve(covariance, off[..., None])[..., 0])
        return np.asarray(-0.5 * (squared + np.linalg.slogdet(covariance)[1] + 3 * math.log(2 * math.pi)))


@dataclass(frozen=True)
class ContactBehavior:
    """What happens to a robot that drives on where something is in its way.

    Attributes:
        behaviour: it holds where it touched, or slides along (Habitat's ``allow_sliding``).
        count: of the contacts that tell the two apart.
        log_ratio: logarithm of how much more probable they are if it slides than if it stops.
        travel_m: how far it still went after touching; None where nobody felt the touch.
        radius_m: of the robot where it touches, by the map; None where too few contacts ended at a wall.
    """

    behaviour: Literal["stop", "slide"]
    count: int
    log_ratio: float
    travel_m: float | None = None
    radius_m: float | None = None

    __pydantic_config__ = config.STRICT


@dataclass(frozen=True)
class ActuationModel:
    """Of all moves of one robot; the module's docstring has the file.

    Attributes:
        forward_m, turn_deg: what the actions asked for.
        contact: None if it is not known.
    """

    forward_m: Annotated[float, Field(gt=0)]
    turn_deg: Annotated[float, Field(gt=0)]
    actions: dict[str, ActionError]
    contact: ContactBehavior | None = None

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        wanted = {move.name.lower() for move in MOVES}
        if set(self.actions) != wanted:
            raise ValueError(f"actions must be {', '.join(sorted(wanted))}, got {', '.join(sorted(self.actions))}")


def load_actuation(path: Path) -> ActuationModel:
    """A file of ``calibrate actuation``, of whatever robot: a simulated one may err like any other.

    Raises:
        ConfigError: no such file, or malformed. CalibrationError: of another kind, altered, or too old.
    """
    document = config.read_yaml(path)
    check_if_stamped(path, document, KIND)
    if isinstance(document, dict):
        document = {key: value for key, value in document.items() if key != "calibration"}
    return config.parse(document, ActuationModel, str(path))
