"""Recordings in the Kinect SDK's own format, written and read by the SDK itself."""

import ctypes
from pathlib import Path
from typing import BinaryIO

from drivers.azure_kinect import modes
from drivers.azure_kinect import sdk_types as types
from drivers.azure_kinect.device import Configuration, imu_sample
from drivers.azure_kinect.sdk import Capture, ImuSample, Sdk
from drivers.azure_kinect.sdk_types import END_OF_FILE, SUCCEEDED, Handle, ImageFormat
from robot_runtime.errors import DeviceFault

HEADER, SEGMENT, CLUSTER = 0x1A45DFA3, 0x18538067, 0x1F43B675
REQUIRED = {0x1549A966: "Info", 0x1654AE6B: "Tracks", 0x1C53BB6B: "Cues", CLUSTER: "Cluster"}
"""Elements that the SDK needs to play a recording; the index (Cues) is written last."""

RECORD_AGAIN = "record it again, with a program that closes its recordings"


def check_complete(path: Path) -> None:
    """Raise ``DeviceFault`` for a file that is unreadable, no Matroska file, truncated, or not closed.

    The SDK aborts the process on some of them. A file is a sequence of elements: id, size, content (RFC 8794, 9559).
    The elements of the first two levels are traversed without their content.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            _check(file, size, path)
    except OSError as error:
        raise DeviceFault(f"{path}: cannot be read: {error.strerror}", "name a recording that exists") from error


def _check(file: BinaryIO, size: int, path: Path) -> None:
    first = _element(file)
    if first is None or first[0] != HEADER:
        raise DeviceFault(f"{path}: not a Matroska file", "name a recording of the Kinect SDK, as made by k4arecorder")
    file.seek(first[1])
    segment = _element(file)
    if segment is None or segment[0] != SEGMENT:
        raise DeviceFault(f"{path}: is cut off after {size} bytes", RECORD_AGAIN)
    end = segment[1]
    if end > size:
        raise DeviceFault(f"{path}: is cut off after {size} of {end} bytes", RECORD_AGAIN)
    missing = dict(REQUIRED)
    while file.tell() < end:
        element = _element(file)
        if element is None or element[1] > end:
            raise DeviceFault(f"{path}: is damaged at byte {file.tell()}", RECORD_AGAIN)
        missing.pop(element[0], None)
        file.seek(element[1])
    if CLUSTER in missing:
        raise DeviceFault(f"no captures in {path}", RECORD_AGAIN)
    if missing:
        raise DeviceFault(f"{path}: was not closed: it lacks {', '.join(missing.values())}", RECORD_AGAIN)


def _element(file: BinaryIO) -> tuple[int, int] | None:
    """Read the header of the next element and return its id and end; None if there is none."""
    identity, size = _number(file, keep_marker=True), _number(file, keep_marker=False)
    if identity is None or size is None:
        return None
    return identity, file.tell() + size


def _number(file: BinaryIO, keep_marker: bool) -> int | None:
    """Read a number of variable length: the leading zeros of its first byte are the number of further bytes."""
    head = file.read(1)
    if not head or head[0] == 0:
        return None
    more = 8 - head[0].bit_length()
    rest = file.read(more)
    if len(rest) < more:
        return None
    value = int.from_bytes(head + rest, "big")
    return value if keep_marker else value & ~(1 << (7 * (more + 1)))


CALIBRATION = "calibration.json"


class MkvWriter:
    """Writer of captures to a new file. Raises ``DeviceFault`` if the file cannot be created."""

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


class MkvReader:
    """Reader of captures from a file.

    Attributes:
        configuration: modes and rate of the recording.
        calibration: factory calibration of its device.

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
            self.configuration = self._read_configuration()
            self.calibration = sdk.read_bytes(
                sdk.record.k4a_playback_get_raw_calibration,
                handle,
                what=f"{path}: contains no calibration",
                remedy="record it from the device itself; it stores the calibration of its lenses",
            )
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
        if not self.configuration.imu:
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

    def _read_configuration(self) -> Configuration:
        record, path = self._sdk.record, self._path
        raw = types.RecordConfiguration()
        result = record.k4a_playback_get_record_configuration(self._handle, ctypes.byref(raw))
        self._sdk.check(result, f"{path}: has no recording configuration", RECORD_AGAIN)
        color, depth = modes.name_of(raw.color_resolution, modes.COLOR), modes.name_of(raw.depth_mode, modes.DEPTH)
        if not (raw.color_track_enabled and raw.depth_track_enabled) or color is None or depth is None:
            raise DeviceFault(f"{path}: does not contain both color and depth", "record both")
        if raw.color_format != ImageFormat.COLOR_MJPG:
            raise DeviceFault(f"{path}: its color is not JPEG", "record in the SDK's default format, MJPG")
        rates = {number: rate_hz for rate_hz, number in modes.FPS.items()}
        return Configuration(color, depth, rates[raw.camera_fps], bool(raw.imu_track_enabled))
