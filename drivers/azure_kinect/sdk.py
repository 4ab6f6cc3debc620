"""The Azure Kinect Sensor SDK through ctypes: libk4a and libk4arecord of the package ``pyk4a-bundle``.

The package's Python module does not support numpy 2; only its shared libraries are used. Results are numpy arrays that
own their memory.
"""

import ctypes
import ctypes.util
import functools
import importlib.metadata
import itertools
import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.azure_kinect import sdk_types as types
from drivers.azure_kinect.sdk_types import FAILED, SUCCEEDED, ImageFormat
from robot_runtime.errors import DeviceFault, DriverMissing

DISTRIBUTION = "pyk4a-bundle"
INSTALL = "pip install 'robot-runtime[azure-kinect]'"

DEPTH_ENGINE = "depthengine"
"""The SDK's closed library that computes live depth with OpenGL."""

LOG_WARNING = 2
"""``K4A_LOG_LEVEL_WARNING``: the level of the SDK's reasons for failures."""

_MAX_MESSAGES, _SHOWN_MESSAGES = 8, 2
"""Numbers of stored and of shown messages; those after the first trace the failure through the SDK."""


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """One image of a capture.

    Attributes:
        data: uint8 (N,) for JPEG, uint16 (H, W) for depth and infrared.
        device_us: middle of the exposure, on the device's clock.
        received_ns: arrival at the host, CLOCK_MONOTONIC; 0 in recordings.
        exposure_us: duration of the exposure; 0 if unknown.
    """

    data: NDArray[Any]
    device_us: int
    received_ns: int = 0
    exposure_us: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """Images exposed together; None for missing ones.

    Attributes:
        color: JPEG.
        depth: depth image in millimeters.
        infrared: brightness.
        size: width and height of the color image; (0, 0) without one.
        temperature_c: temperature of the device; NaN if unknown.
    """

    color: Image | None
    depth: Image | None
    infrared: Image | None = None
    size: tuple[int, int] = (0, 0)
    temperature_c: float = float("nan")


@dataclass(frozen=True, slots=True)
class ImuSample:
    """One sample of the inertial sensors, in their own frame (``calibration.imu_rotation`` turns it).

    Attributes:
        acceleration_m_s2: x, y, z.
        acceleration_us: time of the acceleration on the device's clock.
        angular_rad_s: x, y, z.
        angular_us: time of the angular rate on the device's clock.
    """

    temperature_c: float
    acceleration_m_s2: tuple[float, float, float]
    acceleration_us: int
    angular_rad_s: tuple[float, float, float]
    angular_us: int


class Sdk:
    """The loaded libraries."""

    def __init__(self, folder: Path, k4a: ctypes.CDLL, record: ctypes.CDLL) -> None:
        self.folder, self.k4a, self.record = folder, k4a, record
        self._messages: deque[str] = deque(maxlen=_MAX_MESSAGES)
        self._buffers: dict[int, NDArray[np.uint8]] = {}
        self._numbers = itertools.count(1)
        for library, functions in ((k4a, types.FUNCTIONS), (record, types.RECORD_FUNCTIONS)):
            for name, (result, arguments) in functions.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
        # Referenced here, because the SDK continues to call them.
        self._log = types.LogHandler(self._record_message)
        self._release = types.ReleaseHandler(self._release_buffer)
        k4a.k4a_set_debug_message_handler(self._log, None, LOG_WARNING)

    def _record_message(self, _context: int, _level: int, _file: bytes, _line: int, message: bytes) -> None:
        self._messages.append(message.decode(errors="replace"))

    def _release_buffer(self, _buffer: int, number: int) -> None:
        self._buffers.pop(number, None)

    def last_error(self) -> str:
        """Return and clear libk4a's messages since the last call; empty if there are none."""
        said = "; ".join(list(dict.fromkeys(self._messages))[:_SHOWN_MESSAGES])
        self._messages.clear()
        return said

    def check(self, result: int, what: str, remedy: str) -> None:
        """Raise ``DeviceFault`` with the SDK's reason unless a call succeeded."""
        said = self.last_error()
        if result != SUCCEEDED:
            raise DeviceFault(f"{what}: {said}" if said else what, remedy)

    def read_bytes(self, function: Any, *arguments: Any, what: str, remedy: str) -> bytes:
        """Return bytes from a function of the SDK that first reports the size of the buffer."""
        size = ctypes.c_size_t(0)
        if function(*arguments, None, ctypes.byref(size)) == FAILED:
            self.check(FAILED, what, remedy)
        buffer = ctypes.create_string_buffer(size.value)
        pointer = ctypes.cast(buffer, function.argtypes[-2])
        self.check(function(*arguments, pointer, ctypes.byref(size)), what, remedy)
        return buffer.raw[: size.value]

    def calibration(self, raw: bytes, depth_mode: int, color_resolution: int, where: str) -> types.Calibration:
        """Return a factory calibration for one pair of modes. Raises ``DeviceFault`` naming its origin ``where``."""
        calibration = types.Calibration()
        text = raw if raw.endswith(b"\0") else raw + b"\0"
        result = self.k4a.k4a_calibration_get_from_raw(
            text, len(text), depth_mode, color_resolution, ctypes.byref(calibration)
        )
        self.check(
            result, f"{where}: no factory calibration that the SDK can read", "use the unmodified file or device"
        )
        return calibration

    def take_capture(self, handle: ctypes.c_void_p) -> Capture:
        """Return the content of a capture, and release the handle."""
        try:
            color, size = self._take_image(self.k4a.k4a_capture_get_color_image(handle))
            depth, _ = self._take_image(self.k4a.k4a_capture_get_depth_image(handle))
            infrared, _ = self._take_image(self.k4a.k4a_capture_get_ir_image(handle))
            return Capture(color, depth, infrared, size, float(self.k4a.k4a_capture_get_temperature_c(handle)))
        finally:
            self.k4a.k4a_capture_release(handle)

    def make_capture(self, capture: Capture) -> ctypes.c_void_p:
        """Return a handle of the SDK; release it with ``k4a_capture_release``."""
        handle = types.Handle()
        self.check(self.k4a.k4a_capture_create(ctypes.byref(handle)), "no memory for a capture", "free memory")
        for image, kind, put in (
            (capture.color, ImageFormat.COLOR_MJPG, self.k4a.k4a_capture_set_color_image),
            (capture.depth, ImageFormat.DEPTH16, self.k4a.k4a_capture_set_depth_image),
            (capture.infrared, ImageFormat.IR16, self.k4a.k4a_capture_set_ir_image),
        ):
            if image is not None:
                size = capture.size if kind is ImageFormat.COLOR_MJPG else image.data.shape[::-1]
                made = self._make_image(image, kind, *size)
                put(handle, made)
                self.k4a.k4a_image_release(made)
        if np.isfinite(capture.temperature_c):
            self.k4a.k4a_capture_set_temperature_c(handle, capture.temperature_c)
        return handle

    def _take_image(self, handle: int | None) -> tuple[Image | None, tuple[int, int]]:
        if not handle:
            return None, (0, 0)
        k4a = self.k4a
        try:
            width, height = k4a.k4a_image_get_width_pixels(handle), k4a.k4a_image_get_height_pixels(handle)
            size = k4a.k4a_image_get_size(handle)
            buffer = (ctypes.c_uint8 * size).from_address(k4a.k4a_image_get_buffer(handle))
            data: NDArray[Any] = np.frombuffer(buffer, np.uint8)
            if k4a.k4a_image_get_format(handle) in (ImageFormat.DEPTH16, ImageFormat.IR16):
                data = data.view(np.uint16).reshape(height, width)
            image = Image(
                data.copy(),
                k4a.k4a_image_get_device_timestamp_usec(handle),
                k4a.k4a_image_get_system_timestamp_nsec(handle),
                k4a.k4a_image_get_exposure_usec(handle),
            )
            return image, (width, height)
        finally:
            k4a.k4a_image_release(handle)

    def _make_image(self, image: Image, kind: ImageFormat, width: int, height: int) -> ctypes.c_void_p:
        # The recorder uses images until it has written them, after the call.
        data = np.ascontiguousarray(image.data).reshape(-1).view(np.uint8).copy()
        number = next(self._numbers)
        self._buffers[number] = data
        handle = types.Handle()
        stride = 0 if kind is ImageFormat.COLOR_MJPG else 2 * width
        result = self.k4a.k4a_image_create_from_buffer(
            kind, width, height, stride, data.ctypes.data, data.size, self._release, number, ctypes.byref(handle)
        )
        self.check(result, f"the SDK rejects a {kind.name} image of {width}x{height}", "use the modes of the device")
        self.k4a.k4a_image_set_device_timestamp_usec(handle, image.device_us)
        if image.exposure_us:
            self.k4a.k4a_image_set_exposure_usec(handle, image.exposure_us)
        return handle


@functools.cache
def load_sdk() -> Sdk:
    """Return the SDK's libraries, loaded once per process.

    Raises:
        DriverMissing: they are not installed, or lack a dependency; names what to install.
    """
    # Set before loading: its messages become reasons of errors instead.
    os.environ.setdefault("K4A_ENABLE_LOG_TO_STDOUT", "0")
    paths = find_libraries()
    try:
        # The second needs the symbols of the first.
        k4a = ctypes.CDLL(str(paths["k4a"]), mode=ctypes.RTLD_GLOBAL)
        record = ctypes.CDLL(str(paths["k4arecord"]))
    except OSError as error:
        raise DriverMissing(
            f"Azure Kinect SDK in {paths['k4a'].parent}: {error}",
            "run `robot-runtime doctor`; it lists what is missing",
        ) from error
    return Sdk(paths["k4a"].parent, k4a, record)


def find_libraries() -> dict[str, Path]:
    """Return the paths of ``k4a``, ``k4arecord`` and ``depthengine``. Raises ``DriverMissing``."""
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError as error:
        raise DriverMissing(f"Azure Kinect: the package {DISTRIBUTION} is not installed", INSTALL) from error
    found = {}
    for name in ("k4a", "k4arecord", DEPTH_ENGINE):
        matches = [file for file in files if file.name.startswith((f"lib{name}-", f"lib{name}.so"))]
        paths = [Path(str(file.locate())) for file in matches]
        if not paths or not paths[0].is_file():
            raise DriverMissing(f"Azure Kinect: the package {DISTRIBUTION} lacks lib{name}", f"{INSTALL} again")
        found[name] = paths[0]
    return found
