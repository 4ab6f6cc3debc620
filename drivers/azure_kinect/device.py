"""Interface of a device as in the SDK's C API, and the real device behind libk4a."""

import ctypes
from abc import ABC, abstractmethod
from dataclasses import dataclass

from drivers.azure_kinect import modes, sdk_types
from drivers.azure_kinect.sdk import Capture, ImuSample, Sdk
from drivers.azure_kinect.sdk_types import ImuSample as RawImuSample
from robot_runtime.errors import DeviceFault

RUN_DOCTOR = "run `robot-runtime doctor`; it lists what the depth engine lacks"
UNPLUGGED = "check the USB and power cables, then restart"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Configuration of a started device.

    Attributes:
        color: name of the color mode, see :mod:`modes`.
        depth: name of the depth mode.
        rate_hz: rate of captures.
        imu: whether the inertial sensors are read.
    """

    color: str
    depth: str
    rate_hz: int
    imu: bool

    @property
    def raw(self) -> sdk_types.DeviceConfiguration:
        """The SDK's structure: JPEG color, captures with both images only."""
        raw = sdk_types.DeviceConfiguration()
        raw.color_format = sdk_types.ImageFormat.COLOR_MJPG
        raw.color_resolution = modes.COLOR[self.color].number
        raw.depth_mode = modes.DEPTH[self.depth].number
        raw.camera_fps = modes.FPS[self.rate_hz]
        raw.synchronized_images_only = True
        return raw


class KinectDevice(ABC):
    """One opened device."""

    serial: str
    raw_calibration: bytes

    @abstractmethod
    def start(self, configuration: Configuration) -> None:
        """Start the exposures. Raises ``DeviceFault`` with the SDK's reason."""

    @abstractmethod
    def set_control(self, control: sdk_types.ColorControl, value: int | None) -> None:
        """Set a color control to a value, or to automatic (None). Raises ``DeviceFault``."""

    @abstractmethod
    def next_capture(self, timeout_s: float) -> Capture | None:
        """Return the oldest queued capture, or the next; None if none came in time. Raises ``DeviceFault``."""

    @abstractmethod
    def next_imu(self) -> ImuSample | None:
        """Return the oldest queued inertial sample; None if there is none. Raises ``DeviceFault``."""

    @abstractmethod
    def close(self) -> None:
        """Stop and release the device; may be called twice."""


class SdkDevice(KinectDevice):
    """A real device.

    Raises:
        DeviceFault: no device, none of that number, or another program uses it.
    """

    def __init__(self, sdk: Sdk, serial: str = "") -> None:
        self._sdk = sdk
        self._handle: sdk_types.Handle | None = None
        count = sdk.k4a.k4a_device_get_installed_count()
        sdk.last_error()  # clear the error that it logs without a device
        if count == 0:
            raise DeviceFault(
                "Azure Kinect: no device is connected",
                "plug it into a USB 3 port and its own power supply; `robot-runtime doctor` shows what is seen",
            )
        found, busy = [], 0
        for index in range(count):
            handle = sdk_types.Handle()
            if sdk.k4a.k4a_device_open(index, ctypes.byref(handle)) != sdk_types.SUCCEEDED:
                busy += 1
                continue
            raw = sdk.read_bytes(sdk.k4a.k4a_device_get_serialnum, handle, what="serial number", remedy=UNPLUGGED)
            self.serial = raw.rstrip(b"\0").decode()
            if serial in ("", self.serial):
                self._handle = handle
                break
            found.append(self.serial)
            sdk.k4a.k4a_device_close(handle)
        if self._handle is None:
            said = sdk.last_error()
            if busy:
                raise DeviceFault(
                    f"Azure Kinect: the device cannot be opened: {said}",
                    "end the program that uses it, and install the udev rule (docs/devices/azure-kinect.md)",
                )
            raise DeviceFault(
                f"Azure Kinect: there is no device {serial}, but {', '.join(found)}", "correct 'serial' in its options"
            )
        where = f"Azure Kinect {self.serial}: factory calibration"
        self.raw_calibration = sdk.read_bytes(
            sdk.k4a.k4a_device_get_raw_calibration, self._handle, what=where, remedy=UNPLUGGED
        )

    def start(self, configuration: Configuration) -> None:
        k4a, name = self._sdk.k4a, f"Azure Kinect {self.serial}"
        started = k4a.k4a_device_start_cameras(self._handle, ctypes.byref(configuration.raw))
        self._sdk.check(started, f"{name}: the cameras do not start", RUN_DOCTOR)
        if configuration.imu:
            self._sdk.check(k4a.k4a_device_start_imu(self._handle), f"{name}: the IMU does not start", UNPLUGGED)

    def set_control(self, control: sdk_types.ColorControl, value: int | None) -> None:
        mode = sdk_types.ControlMode.AUTO if value is None else sdk_types.ControlMode.MANUAL
        result = self._sdk.k4a.k4a_device_set_color_control(self._handle, control, mode, value or 0)
        what = f"Azure Kinect {self.serial}: {control.name.lower()} cannot be {'automatic' if value is None else value}"
        self._sdk.check(result, what, "choose another value")

    def next_capture(self, timeout_s: float) -> Capture | None:
        handle = sdk_types.Handle()
        result = self._sdk.k4a.k4a_device_get_capture(self._handle, ctypes.byref(handle), int(timeout_s * 1000))
        if result == sdk_types.TIMED_OUT:
            return None
        self._sdk.check(result, f"Azure Kinect {self.serial}: was unplugged or has failed", UNPLUGGED)
        return self._sdk.take_capture(handle)

    def next_imu(self) -> ImuSample | None:
        raw = RawImuSample()
        result = self._sdk.k4a.k4a_device_get_imu_sample(self._handle, ctypes.byref(raw), 0)
        if result == sdk_types.FAILED:
            self._sdk.check(result, f"Azure Kinect {self.serial}: the IMU has failed", UNPLUGGED)
        return imu_sample(raw) if result == sdk_types.SUCCEEDED else None

    def close(self) -> None:
        if self._handle is not None:
            self._sdk.k4a.k4a_device_stop_imu(self._handle)
            self._sdk.k4a.k4a_device_stop_cameras(self._handle)
            self._sdk.k4a.k4a_device_close(self._handle)
            self._handle = None


def imu_sample(raw: RawImuSample) -> ImuSample:
    """Convert the SDK's structure."""
    ax, ay, az = raw.acc_sample
    gx, gy, gz = raw.gyro_sample
    return ImuSample(
        float(raw.temperature), (ax, ay, az), raw.acc_timestamp_usec, (gx, gy, gz), raw.gyro_timestamp_usec
    )
