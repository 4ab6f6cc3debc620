"""Interface of the camera: pairs of color and depth, exposed together."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.hal.device import Device
from robot_runtime.hal.events import Event


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """An ideal pinhole. Pixel (0, 0) is the center of the top-left pixel."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float

    @classmethod
    def from_hfov(cls, width: int, height: int, hfov_deg: float) -> Intrinsics:
        """Square pixels, principal point in the middle, ``hfov_deg`` across the full width."""
        f = width / 2 / math.tan(math.radians(hfov_deg) / 2)
        return cls(width, height, f, f, (width - 1) / 2, (height - 1) / 2)

    @property
    def hfov_deg(self) -> float:
        """Horizontal field of view across the full width, in degrees."""
        return math.degrees(2 * math.atan(self.width / 2 / self.fx))


@dataclass(frozen=True, slots=True)
class Mount:
    """Position of the camera in base_link at pan = tilt = 0; pan and tilt turn it about its optical center."""

    x_m: float
    y_m: float
    z_m: float


@dataclass(frozen=True, slots=True)
class CameraInfo:
    """Properties of a camera.

    Attributes:
        depth_unit_m: the lattice on which depth values lie (0.001 for sensors that report uint16 millimeters);
            0 for continuous depth. The recorder stores millimeter depth as 16-bit integers without loss.
        depth_min_m: lower end of the sensor's own range; outside the range depth is a hole.
        depth_max_m: its upper end.
        has_semantic: whether :meth:`Camera.capture` can deliver object ids.
        has_depth: False for a camera of color only, whose depth is all holes.
    """

    intrinsics: Intrinsics
    mount: Mount
    rate_hz: float
    depth_min_m: float
    depth_max_m: float
    depth_unit_m: float
    has_semantic: bool
    has_depth: bool = True


@dataclass(frozen=True, slots=True)
class RgbdFrame:
    """One exposure: color and depth of the same instant and the same pinhole.

    Attributes:
        stamp_ns: middle of the exposure.
        rgb: uint8 (H, W, 3).
        depth_m: float32 (H, W), distance along the optical axis in meters; 0 where there is no measurement.
        semantic: int32 (H, W) index into the scene's objects, -1 for none; None unless asked for.
    """

    stamp_ns: int
    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    semantic: NDArray[np.int32] | None = None


class Camera(Device):
    """An RGB-D camera."""

    @property
    @abstractmethod
    def info(self) -> CameraInfo:
        """Properties, also while disconnected."""

    @abstractmethod
    def capture(self, exposed_after_ns: int, timeout_s: float, semantic: bool = False) -> RgbdFrame:
        """The first pair exposed at or after ``exposed_after_ns``.

        Raises:
            StaleData: if none arrives within ``timeout_s``.
            DeviceFault: if ``semantic`` is asked of a camera that has none.
        """

    def events(self) -> Sequence[Event]:
        """Return what the camera has noticed since the last call, for the log."""
        return ()
