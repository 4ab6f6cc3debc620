"""Latency of a camera's stamps, as measured by ``robot-runtime calibrate latency``.

The file is stamped (``robot_runtime.robots.calibration_file``), the camera's YAML names it as ``latency`` under
``imaging``::

    latency_s: SignedLatency
"""

from dataclasses import dataclass
from pathlib import Path

from robot_runtime.common import config
from robot_runtime.common.quantities import SignedLatency
from robot_runtime.robots.calibration_file import read_calibration

KIND = "latency"
"""Kind of the calibration."""


@dataclass(frozen=True)
class CameraLatency(config.Strict):
    """The content of the file."""

    latency_s: SignedLatency


def load_latency(path: Path, robot: str) -> CameraLatency:
    """Read the latency of this robot's camera.

    Raises:
        ConfigError: no such file, or malformed.
        CalibrationError: no stamp, another kind or robot, altered, or too old.
    """
    file = read_calibration(path, KIND, robot)
    return config.parse(dict(file.content), CameraLatency, str(path))
