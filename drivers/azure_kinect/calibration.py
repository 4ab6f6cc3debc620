"""A device's factory calibration in the project's terms."""

import json

import numpy as np
from numpy.typing import NDArray

from drivers.azure_kinect import modes
from drivers.azure_kinect.sdk import Sdk
from drivers.azure_kinect.sdk_types import CameraCalibration, ColorResolution, DepthMode, Extrinsics, Sensor
from robot_runtime.errors import DeviceFault
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.imaging.source import SensorMode

DEPTH_UNIT_M = 0.001
MM_PER_M = 1000


class FactoryCalibration:
    """Factory calibration of a device for all modes.

    Args:
        sdk: the loaded libraries.
        raw: the JSON document of the device or recording.
        where: the device or file, for messages.
        source: name of the source of the calibration, as logs state it.

    Raises:
        DeviceFault: the SDK cannot read the document.
    """

    def __init__(self, sdk: Sdk, raw: bytes, where: str, source: str = "factory") -> None:
        self._sdk, self.raw, self._where, self._source = sdk, raw.rstrip(b"\0"), where, source
        self._sdk.calibration(self.raw, DepthMode.NFOV_UNBINNED, ColorResolution.P720, where)
        try:
            self.serial = str(json.loads(self.raw)["CalibrationInformation"]["Metadata"]["SerialId"])
        except (ValueError, KeyError, TypeError) as error:
            raise DeviceFault(
                f"{where}: the factory calibration has no serial number", "use the unmodified file or device"
            ) from error

    def of(self, color: str, depth: str) -> RgbdCalibration:
        """Return the calibration of a pair of modes."""
        found = self._sdk.calibration(self.raw, modes.DEPTH[depth].number, modes.COLOR[color].number, self._where)
        return RgbdCalibration(
            lens(found.color_camera_calibration),
            lens(found.depth_camera_calibration),
            matrix(found.extrinsics[Sensor.DEPTH][Sensor.COLOR]),
            DEPTH_UNIT_M,
            self.serial,
            self._source,
        )

    def color_mode(self, name: str) -> SensorMode:
        """Return a color mode with this device's lens."""
        return SensorMode("color", name, self.of(name, "nfov").color, float(modes.COLOR[name].rate_hz))

    def depth_mode(self, name: str) -> SensorMode:
        """Return a depth mode with this device's lens."""
        kind = modes.DEPTH[name]
        depth = self.of("720p", name).depth
        return SensorMode("depth", name, depth, float(kind.rate_hz), kind.min_m, kind.max_m, modes.outline(kind))

    @property
    def modes(self) -> tuple[SensorMode, ...]:
        """All color and depth modes."""
        return (*map(self.color_mode, modes.COLOR), *map(self.depth_mode, modes.DEPTH))

    def accelerometer_from_color(self) -> NDArray[np.float64]:
        """Return the rotation from the color camera's optical frame to the inertial sensors' frame, float64 (3, 3)."""
        found = self._sdk.calibration(self.raw, DepthMode.NFOV_UNBINNED, ColorResolution.P720, self._where)
        return matrix(found.extrinsics[Sensor.COLOR][Sensor.ACCEL])[:3, :3]


def lens(camera: CameraCalibration) -> Lens:
    """Return the lens of a camera of the SDK's calibration; its pixel (0, 0) is the first pixel's center, too."""
    cx, cy, fx, fy, k1, k2, k3, k4, k5, k6, _codx, _cody, p2, p1, _ = camera.intrinsics.parameters
    radius = float(camera.metric_radius)
    return Lens(
        camera.resolution_width,
        camera.resolution_height,
        fx,
        fy,
        cx,
        cy,
        "rational",
        (k1, k2, p1, p2, k3, k4, k5, k6),
        radius if radius > 0 else float("inf"),
    )


def matrix(extrinsics: Extrinsics) -> NDArray[np.float64]:
    """Return extrinsics as a transform, float64 (4, 4), meters."""
    transform = np.eye(4)
    transform[:3, :3] = np.array(extrinsics.rotation).reshape(3, 3)
    transform[:3, 3] = np.array(extrinsics.translation) / MM_PER_M
    return transform
