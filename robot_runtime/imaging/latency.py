"""Latency of a camera's stamps, as measured by ``robot-runtime calibrate latency``.

The file is stamped (``robot_runtime.robots.calibration_file``), the camera's YAML names it as ``latency`` under
``imaging``::

    latency_s: SignedLatency
"""

from dataclasses import dataclass

from robot_runtime.common import config
from robot_runtime.common.quantities import SignedLatency

KIND = "latency"
"""Kind of the calibration."""


@dataclass(frozen=True)
class CameraLatency(config.Strict):
    """The content of the file."""

    latency_s: SignedLatency
