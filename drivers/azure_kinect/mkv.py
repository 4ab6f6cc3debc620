"""Recordings in the Kinect SDK's own format, written and read by the SDK itself."""

import ctypes
from dataclasses import dataclass
from pathlib import Path

from drivers.azure_kinect import modes
from drivers.azure_kinect import sdk_types as types
from drivers.azure_kinect.device import Configuration, imu_sample
from drivers.azure_kinect.matroska import RECORD_AGAIN, check_complete
from drivers.azure_kinect.sdk import Capture, ImuSample, Sdk
from drivers.azure_kinect.sdk_types import END_OF_FILE, SUCCEEDED, Handle, ImageFormat
from robot_runtime.errors import DeviceFault

CALIBRATION = "calibration.json"


class MkvWriter:
    """Writer of captures to a new file.

    Args:
        sdk: the loaded libraries.
        path: path of the file.
        configuration: configuration of the device.
        calibration: the factory's JSON document.

    Raises:
        DeviceFault: the file cannot be created.
    """

    def __init__(self, sdk: Sdk, path: Path, configuration: Configuration, calibration: bytes) -> None:
        self._sdk, self._path = sdk, path
        self._handle: Handle | None = None
        record, handle = sdk.record, Handle()
        result = record.k4a_record_create(str(path).encode(), None, configuration.raw, ctypes.byref(handle))
        sdk.check(result, f"{path}: cannot be written", "choose a folder that exists, with room and permission")
        self._handle = handle
        self._check(
            record.k4a_record_add_attachment(handle, CALIBRATION.encode(), calibration, len(calibration)), "calibration"
        )
        self._check(record.k4a_record_add_tag(handle, b"K4A_CALIBRATION_FILE", CALIBRATION.encode()), "calibration")
        if configuration.imu:
            self._check(record.k4a_record_add_imu_track(handle), "IMU track")
        self._check(record.k4a_record_write_header(handle), "header")

    def write(self, capture: Capture) -> None:
        """Append a capture. Raises ``DeviceFault``."""
        handle = self._sdk.make_capture(capture)
        try:
            self._check(self._sdk.record.k4a_record_write_capture(self._handle, handle), "capture")
        finally:
            self._sdk.k4a.k4a_capture_release(handle)

    def write_imu(self, sample: ImuSample) -> None:
        """Append an inertial sample. Raises ``DeviceFault``."""
        raw = types.ImuSample(
            sample.temperature_c,
            sample.acceleration_m_s2,
            sample.acceleration_us,
            sample.angular_rad_s,
            sample.angular_us,
        )
        self._check(self._sdk.record.k4a_record_write_imu_sample(self._handle, raw), "IMU sample")

    def close(self) -> None:
        """Write the remaining data and the index; may be called twice."""
        if self._handle is not None:
            self._sdk.record.k4a_record_close(self._handle)
            self._handle = None

    def _check(self, result: int, what: str) -> None:
        self._sdk.check(result, f"{self._path}: its {what} cannot be written", "see whether the disk is full")


@dataclass(frozen=True, slots=True)
class Recorded:
    """Header of a recording."""

    configuration: Configuration
    calibration: bytes
    length_us: int


class MkvReader:
    """Reader of captures from a file.

    Args:
        sdk: the loaded libraries.
        path: path of the file.

    Attributes:
        recorded: header of the recording.

    Raises:
        DeviceFault: the file is missing, truncated, no recording of an Azure Kinect, or lacks a calibration, JPEG
            color, or depth in a supported mode.
    """

    def __init__(self, sdk: Sdk, path: Path) -> None:
        self._sdk, self._path = sdk, path
        self._handle: Handle | None = None
        self._read = 0
        check_complete(path)
        handle = Handle()
        if sdk.record.k4a_playback_open(str(path).encode(), ctypes.byref(handle)) != SUCCEEDED:
            raise DeviceFault(
                f"{path}: the Kinect SDK cannot read it: it is damaged, or of another camera", RECORD_AGAIN
            )
        self._handle = handle
        try:
            self.recorded = self._read_header()
        except BaseException:
            self.close()
            raise

    def next_capture(self) -> Capture | None:
        """Return the next capture; None at the end. Raises ``DeviceFault`` where the file is damaged."""
        handle = Handle()
        result = self._sdk.record.k4a_playback_get_next_capture(self._handle, ctypes.byref(handle))
        if result == END_OF_FILE:
            return None
        if result != SUCCEEDED:
            raise DeviceFault(f"{self._path}: is damaged after {self._read} captures", RECORD_AGAIN)
        self._read += 1
        return self._sdk.take_capture(handle)

    def next_imu(self) -> ImuSample | None:
        """Return the next inertial sample; None at the end, or if none were recorded. Raises ``DeviceFault``."""
        if not self.recorded.configuration.imu:
            return None
        raw = types.ImuSample()
        result = self._sdk.record.k4a_playback_get_next_imu_sample(self._handle, ctypes.byref(raw))
        if result == END_OF_FILE:
            return None
        self._sdk.check(result, f"{self._path}: its IMU track is damaged", RECORD_AGAIN)
        return imu_sample(raw)

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._handle is not None:
            self._sdk.record.k4a_playback_close(self._handle)
            self._handle = None

    def _read_header(self) -> Recorded:
        record, path = self._sdk.record, self._path
        raw = types.RecordConfiguration()
        result = record.k4a_playback_get_record_configuration(self._handle, ctypes.byref(raw))
        self._sdk.check(result, f"{path}: has no recording configuration", RECORD_AGAIN)
        color, depth = modes.color_name(raw.color_resolution), modes.depth_name(raw.depth_mode)
        if not (raw.color_track_enabled and raw.depth_track_enabled) or color is None or depth is None:
            raise DeviceFault(f"{path}: does not contain both color and depth", "record both")
        if raw.color_format != ImageFormat.COLOR_MJPG:
            raise DeviceFault(f"{path}: its color is not JPEG", "record in the SDK's default format, MJPG")
        rates = {number: rate_hz for rate_hz, number in modes.FPS.items()}
        configuration = Configuration(color, depth, rates[raw.camera_fps], bool(raw.imu_track_enabled))
        calibration = self._sdk.read_bytes(
            record.k4a_playback_get_raw_calibration,
            self._handle,
            what=f"{path}: contains no calibration",
            remedy="record it from the device itself; it stores the calibration of its lenses",
        )
        return Recorded(configuration, calibration, record.k4a_playback_get_recording_length_usec(self._handle))
