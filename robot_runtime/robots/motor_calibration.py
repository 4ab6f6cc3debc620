"""Calibrated motors of a base: the model that the motion controller plans with.

``robot-runtime calibrate motors`` writes the file, and the robot's YAML names it as ``motors``. It is stamped
(``robot_runtime.robots.calibration_file``)::

    model:
      dead_time_s: 0.198
      lag_s: 0.103
      gain: [0.988, 1.012]             # left and right wheel
      threshold_m_s: [0.021, 0.034]    # left and right wheel
      speed_quantum_m_s: 0.0
      accel_m_s2: null                 # of the base's firmware; null for none
      separation_m: 0.23
    intervals:                         # 95 %
      dead_time_s: [0.196, 0.2]
      ...
"""

from dataclasses import dataclass
from pathlib import Path

from robot_runtime.common import config
from robot_runtime.hal.motors import MotorModel
from robot_runtime.robots.calibration_file import read_calibration

KIND = "motors"
"""Kind of the calibration."""


@dataclass(frozen=True)
class MotorCalibration(config.Strict):
    """Content of the file; see the module's docstring.

    Attributes:
        model: model of the motors.
        intervals: 95 % intervals of the model's values, by name.
    """

    model: MotorModel
    intervals: dict[str, tuple[float, float]]


def load_motors(path: Path, robot: str) -> MotorCalibration:
    """Read the calibration of a robot.

    Raises:
        ConfigError: no such file, or malformed.
        CalibrationError: no stamp, another kind or robot, altered, or too old.
    """
    file = read_calibration(path, KIND, robot)
    return config.parse(dict(file.content), MotorCalibration, str(path))
