"""Interface of a driver of an RGB-D camera: raw pairs as the sensors deliver them.

The processing that is common to all cameras is in :mod:`robot_runtime.imaging.camera`.
"""

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
    """Color and depth of a capture, each in its own sensor's geometry. The arrays own their memory.

    Attributes:
        color_stamp_ns: middle of the exposure, on the robot's clock.
        depth_stamp_ns: middle of the depth exposure, on the robot's clock.
        color: uint8 (H, W, 3), red first.
        depth: uint16 (h, w), counts of the calibration's ``depth_unit_m`` along the optical axis; 0 where not measured.
            Of shape (0, 0) for a camera without depth.
        infrared: uint16 (h, w), of the depth sensor; None where it delivers none.
        temperature_c: temperature of the device; None where it does not report it.
    """

    color_stamp_ns: int
    depth_stamp_ns: int
    color: NDArray[np.uint8]
    depth: NDArray[np.uint16]
    infrared: NDArray[np.uint16] | None = None
    temperature_c: float | None = None


@dataclass(frozen=True, slots=True)
class SensorMode:
    """An operating mode of a sensor.

    Attributes:
        sensor: color or depth.
        name: name as in the driver's options.
        lens: calibrated where the device is known, nominal before.
        rate_hz: the fastest.
        min_m: the depth sensor's rated minimum range in this mode; 0 for color.
        max_m: the depth sensor's rated maximum range in this mode; infinity for color.
        outline: pixels (x, y) of a convex polygon that contains all data, as of an Azure Kinect's narrow modes, whose
            illuminator covers a hexagon; empty for the complete image.
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
        """Name of the device in messages, distinct from that of others: ``Azure Kinect 000123456789``."""

    @property
    @abstractmethod
    def calibration(self) -> RgbdCalibration:
        """Calibration of the modes in use; nominal before the first connection if the device itself stores it."""

    @property
    @abstractmethod
    def color_mode(self) -> SensorMode:
        """The color sensor's mode in use."""

    @property
    @abstractmethod
    def depth_mode(self) -> SensorMode:
        """The depth sensor's mode in use."""

    @property
    @abstractmethod
    def modes(self) -> tuple[SensorMode, ...]:
        """All modes of this device's sensors, for messages that name a better one."""

    @property
    def has_depth(self) -> bool:
        """False for a camera without depth, whose ``depth_mode`` is its color mode."""
        return True

    @property
    @abstractmethod
    def rate_hz(self) -> float:
        """Pairs per second."""

    @abstractmethod
    def read(self, exposed_after_ns: int, timeout_s: float) -> RawRgbd:
        """The first pair of a capture whose exposures' middles both lie at or after ``exposed_after_ns``.

        Raises:
            StaleData: none came within ``timeout_s``, or images came but never paired: the message says which.
            DeviceFault: the device is gone, or reported an error.
        """
