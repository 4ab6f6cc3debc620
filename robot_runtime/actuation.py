"""What discrete actions really do on one robot: where it ends beside where it was told to go.

``robot-runtime calibrate actuation`` measures it and writes the file; a simulated robot whose ``action_noise`` names
that file errs in the same way. The file is stamped (``robot_runtime.calibration_file``)::

    forward_m: 0.25
    turn_deg: 30.0
    actions:
      move_forward:
        count: 40
        mean: [0.0031, -0.0012, 0.004]    # x m, y m, yaw rad: measured less commanded, in the frame of the start
        covariance: [[...], [...], [...]]
      turn_left: ...
      turn_right: ...
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from robot_runtime import config
from robot_runtime.actions import Action
from robot_runtime.calibration_file import check_if_stamped

KIND = "actuation"
"""Of the calibration's file."""

Triple = tuple[float, float, float]

MOVES = (Action.MOVE_FORWARD, Action.TURN_LEFT, Action.TURN_RIGHT)


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


@dataclass(frozen=True)
class ActuationModel:
    """Of all moves of one robot; the module's docstring has the file.

    Attributes:
        forward_m, turn_deg: what the actions asked for.
    """

    forward_m: Annotated[float, Field(gt=0)]
    turn_deg: Annotated[float, Field(gt=0)]
    actions: dict[str, ActionError]

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
