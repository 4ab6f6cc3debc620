"""What a driver of an RGB-D camera implements: raw pairs, as the sensors deliver them.

Everything that makes an observation of them is the same for all cameras and stands in
:mod:`robot_runtime.imaging.camera`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from robot_runtime.hal import Device
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.rig import RgbdCalibration

Sensor = Literal["color", "depth"]


@dataclass(frozen=True, slots=True, eq=False)
class RawRgbd:
    """Color and depth of one capture, each as its own sensor saw it. The arrays own their memory.

    Attributes:
        color_stamp_ns, depth_stamp_ns: middle of each exposure, on the robot's clock.
        color: uint8 (H, W, 3), red first.
        depth: uint16 (h, w), counts of the calibration's ``depth_unit_m`` along the optical axis; 0 is no measurement.
            (0, 0) in shape for a camera of color alone.
        infrared: uint16 (h, w), of the depth sensor; None where it delivers none.
        temperature_c: of the device; None where it does not tell.
    """

    color_stamp_ns: int
    depth_stamp_ns: int
    color: NDArray[np.uint8]
    depth: NDArray[np.uint16]
    infrared: NDArray[np.uint16] | None = None
    temperature_c: float | None = None


@dataclass(frozen=True, slots=True)
class SensorMode:
    """One way in which a sensor can be run.

    Attributes:
        name: as the driver's options spell it.
        lens: calibrated where the device is known, nominal before.
        rate_hz: the fastest.
        min_m, max_m: the depth sensor's rated range in this mode; 0 and infinity for color.
        outline: pixels (x, y) of a convex polygon outside of which the sensor delivers nothing, as an Azure Kinect's
            narrow modes, which its illuminator fills only to a hexagon; empty where the whole image is used.
    """

    sensor: Sensor
    name: str
    lens: Lens
    rate_hz: float
    min_m: float = 0.0
    max_m: float = float("inf")
    outline: tuple[tuple[float, float], ...] = ()


class RgbdSource(Device):
    """A camera's raw pairs.

    ``close`` may be called in any state; ``connect`` after it starts again. One thread reads.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The device in messages, with what tells it from another: ``Azure Kinect 000123456789``."""

    @property
    @abstractmethod
    def calibration(self) -> RgbdCalibration:
        """Of the modes in use; nominal before the first connection where the device itself tells it."""

    @property
    @abstractmethod
    def color_mode(self) -> SensorMode:
        """What the color sensor runs in."""

    @property
    @abstractmethod
    def depth_mode(self) -> SensorMode:
        """What the depth sensor runs in."""

    @property
    @abstractmethod
    def modes(self) -> tuple[SensorMode, ...]:
        """Everything that this device's sensors can be run in, for messages that name a better one."""

    @property
    def has_depth(self) -> bool:
        """False for a camera of color alone: its pairs have no depth, its ``depth_mode`` is its color mode."""
        return True

    @property
    @abstractmethod
    def rate_hz(self) -> float:
        """Pairs per second."""

    @abstractmethod
    def read(self, exposed_after_ns: int, timeout_s: float) -> RawRgbd:
        """The first pair of one capture whose exposures' middles both lie at or after ``exposed_after_ns``.

        Raises:
            StaleData: none came within ``timeout_s``, among them streams that deliver but never pair: the message says
                which of the two it was.
            DeviceFault: the device is gone, or reported an error.
        """
