"""Modes of a camera and their lenses: nominal before it is connected, the device's own afterwards."""

import math
import re
from collections.abc import Iterable
from typing import Any

from drivers.realsense.sdk import rs
from robot_runtime.errors import DeviceFault
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.source import Sensor, SensorMode

NAME = re.compile(r"^([1-9]\d{1,4})x([1-9]\d{1,4})$")

MAX_M = 10.0
"""Depth beyond which the D400 series' disparity disappears in noise (datasheet 337029, table 4-4)."""

_COLOR_FULL_F = 960 / math.tan(math.radians(69.4) / 2)
"""Focal length of a D435's color sensor, 1920x1080 pixels; smaller modes scale it by their height."""

_DEPTH_FULL_F = 640 / math.tan(math.radians(87.0) / 2)
"""Focal length of its imagers, 1280x800 pixels. Modes of 16:9 crop to 720 lines; the others scale all 800."""

_COLOR = (("1920x1080", 30), ("1280x720", 30), ("960x540", 60), ("848x480", 60), ("640x480", 60), ("640x360", 60))
_DEPTH = (
    ("1280x720", 30, 0.28),
    ("848x480", 90, 0.195),
    ("640x480", 90, 0.175),
    ("640x360", 90, 0.15),
    ("480x270", 90, 0.12),
    ("424x240", 90, 0.105),
)
"""Name, fastest rate over USB 3, and least measured distance (datasheet 337029, tables 4-3 and 4-6)."""

_NEAREST_M = {name: near_m for name, _, near_m in _DEPTH}

_LENS_MODELS = {
    rs.distortion.none: "pinhole",
    rs.distortion.brown_conrady: "brown_conrady",
    # Depth images are rectified: of the "inverse" and the "modified" model only the color sensor has coefficients.
    rs.distortion.inverse_brown_conrady: "inverse_brown_conrady",
    rs.distortion.modified_brown_conrady: "inverse_brown_conrady",
}


def size_of(name: str) -> tuple[int, int]:
    """Return width and height of a mode's name. Raises ``ValueError``."""
    match = NAME.match(name)
    if match is None:
        raise ValueError(f"a mode is written like 1280x720, got {name!r}")
    return int(match[1]), int(match[2])


def nominal_lens(sensor: Sensor, name: str) -> Lens:
    """Return an ideal D435's lens in a mode: the datasheet's field of view, undistorted, centered."""
    width, height = size_of(name)
    wide = width * 9 >= height * 15  # 16:9 and sizes near it, such as 848x480
    lines = 1080 if sensor == "color" else 720 if wide else 800
    f = (_COLOR_FULL_F if sensor == "color" else _DEPTH_FULL_F) * height / lines
    return Lens(width, height, f, f, (width - 1) / 2, (height - 1) / 2)


def nominal_mode(sensor: Sensor, name: str, rate_hz: float) -> SensorMode:
    """Return a D435's mode by the datasheet."""
    return _mode(sensor, name, nominal_lens(sensor, name), rate_hz)


def nominal_modes() -> tuple[SensorMode, ...]:
    """Return all modes of a D435 with their fastest rates."""
    color = [nominal_mode("color", name, rate_hz) for name, rate_hz in _COLOR]
    return (*color, *(nominal_mode("depth", name, rate_hz) for name, rate_hz, _ in _DEPTH))


def device_modes(sensors: Iterable[Any]) -> tuple[SensorMode, ...]:
    """Return the modes that a device's sensors report: color as RGB8, depth as Z16, each with its fastest rate."""
    fastest: dict[tuple[Sensor, str], tuple[float, Any]] = {}
    for sensor in sensors:
        for profile in sensor.get_stream_profiles():
            if not profile.is_video_stream_profile():
                continue
            kind = _WANTED.get((profile.stream_type(), profile.format()))
            if kind is None:
                continue
            video = profile.as_video_stream_profile()
            key = (kind, f"{video.width()}x{video.height()}")
            if key not in fastest or fastest[key][0] < profile.fps():
                fastest[key] = (float(profile.fps()), video)
    return tuple(
        _mode(kind, name, lens_of(video.intrinsics), rate_hz) for (kind, name), (rate_hz, video) in fastest.items()
    )


def lens_of(intrinsics: Any) -> Lens:
    """Return the SDK's intrinsics as a lens. Raises ``DeviceFault`` for a distortion that no D400 camera has."""
    model = _LENS_MODELS.get(intrinsics.model)
    if model is None:
        raise DeviceFault(
            f"RealSense: a lens of the model {intrinsics.model} is not supported", "use a camera of the D400 series"
        )
    coefficients = tuple(float(value) for value in intrinsics.coeffs)
    if model == "pinhole" or not any(coefficients):
        model, coefficients = "pinhole", ()
    return Lens(
        intrinsics.width,
        intrinsics.height,
        intrinsics.fx,
        intrinsics.fy,
        intrinsics.ppx,
        intrinsics.ppy,
        model,  # type: ignore[arg-type]
        coefficients,
    )


_WANTED: dict[tuple[Any, Any], Sensor] = {
    (rs.stream.color, rs.format.rgb8): "color",
    (rs.stream.depth, rs.format.z16): "depth",
}


def _mode(sensor: Sensor, name: str, lens: Lens, rate_hz: float) -> SensorMode:
    if sensor == "color":
        return SensorMode(sensor, name, lens, rate_hz)
    return SensorMode(sensor, name, lens, rate_hz, _NEAREST_M.get(name, 0.28), MAX_M)
