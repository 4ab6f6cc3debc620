"""Modes of an Azure Kinect by name, and their valid combinations.

Sizes, rates and rated ranges: Microsoft's "Azure Kinect DK hardware specifications", sections on the depth camera's and
the color camera's operating modes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from drivers.azure_kinect.sdk_types import ColorResolution, DepthMode, Fps
from robot_runtime.errors import ConfigError

MAX_RATE_HZ = 30


@dataclass(frozen=True, slots=True)
class ColorKind:
    """A color mode: its number in the SDK, its size, and its greatest rate."""

    number: ColorResolution
    width: int
    height: int
    rate_hz: int = MAX_RATE_HZ


@dataclass(frozen=True, slots=True)
class DepthKind:
    """A depth mode.

    Attributes:
        number: number of the mode in the SDK.
        min_m: near end of the rated range.
        max_m: far end of the rated range.
        rate_hz: greatest rate.
        hexagon: whether the illuminator leaves the corners dark.
    """

    number: DepthMode
    width: int
    height: int
    min_m: float
    max_m: float
    rate_hz: int = MAX_RATE_HZ
    hexagon: bool = False


COLOR: dict[str, ColorKind] = {
    "720p": ColorKind(ColorResolution.P720, 1280, 720),
    "1080p": ColorKind(ColorResolution.P1080, 1920, 1080),
    "1440p": ColorKind(ColorResolution.P1440, 2560, 1440),
    "1536p": ColorKind(ColorResolution.P1536, 2048, 1536),
    "2160p": ColorKind(ColorResolution.P2160, 3840, 2160),
    "3072p": ColorKind(ColorResolution.P3072, 4096, 3072, rate_hz=15),
}

DEPTH: dict[str, DepthKind] = {
    "nfov": DepthKind(DepthMode.NFOV_UNBINNED, 640, 576, 0.5, 3.86, hexagon=True),
    "nfov_2x2": DepthKind(DepthMode.NFOV_2X2BINNED, 320, 288, 0.5, 5.46, hexagon=True),
    "wfov": DepthKind(DepthMode.WFOV_UNBINNED, 1024, 1024, 0.25, 2.21, rate_hz=15),
    "wfov_2x2": DepthKind(DepthMode.WFOV_2X2BINNED, 512, 512, 0.25, 2.88),
}

FPS: dict[int, Fps] = {5: Fps.FPS_5, 15: Fps.FPS_15, 30: Fps.FPS_30}

HEXAGON = ((-0.03, 0.52), (0.23, 0.0), (0.78, 0.0), (1.07, 0.52), (0.81, 1.0), (0.23, 1.0))
"""Outline of a narrow mode's illumination, fractions of width and height, clockwise from the left corner, measured on a
published recording of a real unit (pyk4a's test asset)."""


def check(color: str, depth: str, rate_hz: int, where: str) -> None:
    """Raise ``ConfigError`` for an unknown mode, or an invalid combination."""
    for field, name, known in (("color", color, COLOR), ("depth", depth, DEPTH)):
        if name not in known:
            raise ConfigError(f"{where}: {field}: there is no mode {name!r}", f"use one of {', '.join(known)}")
    if rate_hz not in FPS:
        raise ConfigError(f"{where}: rate_hz: {rate_hz} is not a rate of an Azure Kinect", "use 5, 15 or 30")
    for field, name, max_rate_hz in (("color", color, COLOR[color].rate_hz), ("depth", depth, DEPTH[depth].rate_hz)):
        if rate_hz > max_rate_hz:
            raise ConfigError(
                f"{where}: {field} mode {name} does not run at {rate_hz} Hz", f"set rate_hz to {max_rate_hz}, or less"
            )


def outline(kind: DepthKind) -> tuple[tuple[float, float], ...]:
    """Return the convex polygon of valid pixels of a depth mode; empty for the full image."""
    return tuple((x * kind.width - 0.5, y * kind.height - 0.5) for x, y in HEXAGON) if kind.hexagon else ()


def name_of(number: int, kinds: Mapping[str, ColorKind | DepthKind]) -> str | None:
    """Return the name of a mode, one of ``COLOR`` or ``DEPTH``, by the SDK's number."""
    return next((name for name, kind in kinds.items() if kind.number == number), None)
