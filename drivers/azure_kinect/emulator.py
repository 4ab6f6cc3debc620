"""Emulated Azure Kinect in a simulated world, through the SDK's own data formats.

libk4arecord writes every capture to a file and reads it back, so the driver processes the SDK's real bytes: JPEG, depth
in 16 bits, time stamps, calibration.
"""

import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from drivers.azure_kinect.calibration import DEPTH_UNIT_M, FactoryCalibration
from drivers.azure_kinect.device import UNPLUGGED, Configuration, KinectDevice
from drivers.azure_kinect.mkv import MkvReader, MkvWriter
from drivers.azure_kinect.nominal_calibration import factory_document
from drivers.azure_kinect.sdk import Capture, Image, ImuSample, Sdk
from drivers.azure_kinect.sdk_types import ColorControl
from robot_runtime.common import config
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.quantities import Latency
from robot_runtime.errors import ConfigError, DeviceFault
from robot_runtime.hal.simulation import Simulation, Subscription
from robot_runtime.imaging.rig import RgbdCalibration

STARTED_US = 5_000_000
"""The device's clock at the start of the simulation."""

EXPOSURE_US = 8_000
GRAVITY_M_S2 = 9.81
COUNTS = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class EmulatedOptions(config.Strict):
    """Behavior of the emulated device.

    Attributes:
        calibration: JSON file of a unit's factory calibration; None for the nominal one.
        depth_noise: noise model of the simulation; empty for none.
        color_noise: color noise model of the simulation; empty for none.
        jpeg_quality: JPEG quality of color images.
        latency_s: least delay from the middle of an exposure to its arrival.
        jitter_s: mean additional delay.
        drift_ppm: rate of its clock relative to the robot's.
        unplugged_after_s: simulated time after which the device is disconnected; None for never.
    """

    calibration: str | None = None
    depth_noise: dict[str, Any] = field(default_factory=lambda: {"model": "azure_kinect"})
    color_noise: dict[str, Any] = field(default_factory=lambda: {"model": "sensor"})
    jpeg_quality: Annotated[int, Field(ge=1, le=100)] = 92
    latency_s: Latency = 0.05
    jitter_s: Latency = 0.002
    drift_ppm: Annotated[float, Field(ge=-200, le=200)] = 20.0
    unplugged_after_s: Annotated[float, Field(ge=0)] | None = None


class EmulatedKinect(KinectDevice):
    """The device, connected to a simulation.

    Exposures at multiples of the period are rendered on request only, because rendering takes longer than a real
    exposure; so captures are never queued.

    Raises:
        ConfigError: ``calibration`` names no readable file.
        DeviceFault: the file is not a factory calibration.
    """

    def __init__(self, sdk: Sdk, simulation: Simulation, options: EmulatedOptions) -> None:
        self._sdk, self._simulation, self._options = sdk, simulation, options
        self._clock = simulation.clock
        self.raw_calibration = _calibration_document(options.calibration)
        self._factory = FactoryCalibration(sdk, self.raw_calibration, options.calibration or "emulated device")
        self.serial = self._factory.serial
        self._depth_noise = simulation.depth_noise(options.depth_noise, "emulated: depth_noise")
        self._color_noise = simulation.color_noise(options.color_noise, "emulated: color_noise")
        self._controls: dict[ColorControl, int | None] = {}
        self._configuration: Configuration | None = None
        self._rig: RgbdCalibration | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._placed: Subscription | None = None
        self._samples: list[ImuSample] = []
        self._begin()

    def start(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._rig = self._factory.of(configuration.color, configuration.depth)
        self._folder = tempfile.TemporaryDirectory(prefix="azure-kinect-")
        self._placed = self._simulation.on_placed(self._begin)

    def set_control(self, control: ColorControl, value: int | None) -> None:
        self._controls[control] = value

    def next_capture(self, timeout_s: float) -> Capture | None:
        assert self._configuration is not None, "next_capture() before start()"
        options, clock = self._options, self._clock
        self._check_plugged()
        now_ns = clock.now_ns()
        deadline_ns = now_ns + seconds_to_ns(timeout_s)
        number = math.floor(ns_to_seconds(now_ns) * self._configuration.rate_hz) + 1
        exposure_ns = seconds_to_ns(number / self._configuration.rate_hz)
        delay_ns = seconds_to_ns(options.latency_s + float(self._random.exponential(options.jitter_s)))
        if exposure_ns + delay_ns > deadline_ns:
            clock.sleep_until(deadline_ns)
            return None
        clock.sleep_until(exposure_ns)
        capture = self._through_sdk(self._expose(), self._imu_sample() if self._configuration.imu else None)
        clock.sleep_until(exposure_ns + delay_ns)
        self._check_plugged()
        return capture

    def next_imu(self) -> ImuSample | None:
        return self._samples.pop(0) if self._samples else None

    def close(self) -> None:
        if self._placed is not None:
            self._placed.close()
            self._placed = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _begin(self) -> None:
        """Start a new random stream, as every placement does."""
        self._random = self._simulation.random("azure kinect")

    def _check_plugged(self) -> None:
        after_s = self._options.unplugged_after_s
        if after_s is not None and ns_to_seconds(self._clock.now_ns()) > after_s:
            raise DeviceFault(f"Azure Kinect {self.serial}: was unplugged or has failed", UNPLUGGED)

    def _device_us(self) -> int:
        return STARTED_US + round(self._clock.now_ns() / 1000 * (1 + self._options.drift_ppm * 1e-6))

    def _expose(self) -> Capture:
        simulation, rig = self._simulation, self._rig
        assert rig is not None
        map_from_color = simulation.camera_pose()
        motion = simulation.camera_motion()
        if motion.still:
            rgb, seen_m = simulation.render_color(rig.color, map_from_color), None
        else:
            rgb, seen_m = simulation.render(rig.color, map_from_color)
        rgb = self._color_noise.expose(rgb, seen_m, rig.color, motion, self._random)
        depth_m = simulation.render_depth(rig.depth, map_from_color @ rig.color_from_depth)
        depth_m = self._depth_noise.measure(depth_m, rig.depth, self._random)
        at_us = self._device_us()
        exposure_us = self._controls.get(ColorControl.EXPOSURE_TIME_ABSOLUTE) or EXPOSURE_US
        return Capture(
            Image(self._jpeg(rgb), at_us, exposure_us=exposure_us),
            Image(as_counts(depth_m), at_us),
            size=(rig.color.width, rig.color.height),
        )

    def _jpeg(self, rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
        quality = [cv2.IMWRITE_JPEG_QUALITY, self._options.jpeg_quality]
        _, data = cv2.imencode(".jpg", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR), quality)
        return np.asarray(data, np.uint8).reshape(-1)

    def _imu_sample(self) -> ImuSample:
        """Return the inertial sensors' sample of gravity and rotation."""
        turn = self._factory.accelerometer_from_color()
        up = self._simulation.camera_pose()[:3, :3].T @ (0.0, 0.0, GRAVITY_M_S2)
        acceleration, angular = turn @ up, turn @ np.array(self._simulation.camera_motion().angular_rad_s)
        at_us = self._device_us()
        ax, ay, az = acceleration.tolist()
        gx, gy, gz = angular.tolist()
        return ImuSample(30.0, (ax, ay, az), at_us, (gx, gy, gz), at_us)

    def _through_sdk(self, capture: Capture, sample: ImuSample | None) -> Capture:
        """Write and read back a capture and an inertial sample."""
        assert self._configuration is not None
        assert self._folder is not None
        path = Path(self._folder.name) / "capture.mkv"
        writer = MkvWriter(self._sdk, path, self._configuration, self.raw_calibration)
        try:
            writer.write(capture)
            if sample is not None:
                writer.write_imu(sample)
        finally:
            writer.close()
        reader = MkvReader(self._sdk, path)
        try:
            read, felt = reader.next_capture(), reader.next_imu()
        finally:
            reader.close()
        assert read is not None
        if felt is not None:
            self._samples.append(felt)
        return read


def as_counts(depth_m: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return meters as the device's millimeters, 0 beyond 16 bits."""
    counts = np.rint(depth_m * np.float32(1 / DEPTH_UNIT_M))
    counts[counts > COUNTS] = 0
    return np.asarray(counts, np.uint16)


def _calibration_document(path: str | None) -> bytes:
    if path is None:
        return factory_document()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"emulated: calibration: {path} cannot be read: {error.strerror}", "name a factory calibration's JSON file"
        ) from error
