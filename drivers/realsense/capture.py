"""Pairs of color and depth images of the same exposure, from a running pipeline.

Properties of the SDK (2.59.1) handled here:

* A set may hold images of different instants, an old one in place of a missing one; such a set is not a pair.
* The arrays of a frame are views of a memory pool. Retained frames exhaust it, so they are copied.
* The stamp is that of the readout. The device's metadata holds the interval from the middle of the exposure to it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.realsense.filters import FilterChain
from drivers.realsense.modes import lens_of
from drivers.realsense.sdk import rs
from robot_runtime.errors import DeviceFault
from robot_runtime.hal.lens import Lens

NS_PER_MS = 1_000_000
NS_PER_US = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class FramePair:
    """Color and depth of a capture.

    Attributes:
        color_ns: middle of the color exposure, in nanoseconds of ``domain``'s clock.
        depth_ns: middle of the depth exposure on the same clock.
        domain: ``rs.timestamp_domain``.
        color: uint8 (H, W, 3), its own memory.
        depth: unfiltered frame of the SDK, to be released soon.
    """

    color_ns: int
    depth_ns: int
    domain: Any
    color: NDArray[np.uint8]
    depth: Any


class Capture:
    """Reader of pairs from a running pipeline.

    Images more than half a period of the camera apart are of different exposures.
    """

    def __init__(self, pipeline: Any, name: str, period_ms: float) -> None:
        self._pipeline, self._name = pipeline, name
        self._slack_ms = period_ms / 2
        self.sets = self.unpaired = 0

    def take(self, wait_ms: int = 0) -> FramePair | None:
        """Return the next pair; None if none is available, or none comes within ``wait_ms`` of the host's time.

        Raises:
            DeviceFault: the SDK reports that the device or file failed.
        """
        try:
            if wait_ms:
                came, frames = self._pipeline.try_wait_for_frames(wait_ms)
            else:
                frames = self._pipeline.poll_for_frames()
                came = bool(frames.size())
        except RuntimeError as error:
            raise DeviceFault(
                f"{self._name}: stopped delivering: {error}", "check its cable and power, then start again"
            ) from error
        return self._pair(frames) if came else None

    def _pair(self, frames: Any) -> FramePair | None:
        self.sets += 1
        color, depth = frames.get_color_frame(), frames.get_depth_frame()
        if not color or not depth or abs(color.get_timestamp() - depth.get_timestamp()) > self._slack_ms:
            self.unpaired += 1
            return None
        return FramePair(
            _exposure_ns(color),
            _exposure_ns(depth),
            depth.get_frame_timestamp_domain(),
            np.array(color.get_data(), np.uint8),
            depth,
        )


def filtered(chain: FilterChain, pair: FramePair, decimation: int | None) -> tuple[NDArray[np.uint16], Lens]:
    """Return a pair's filtered depth, its own memory, and its lens."""
    frame = chain.process(pair.depth)
    intrinsics = frame.profile.as_video_stream_profile().intrinsics
    if decimation is not None:
        # The SDK only divides the principal point; the center of the first block is not that of its first pixel.
        shift = 0.5 - 0.5 / decimation
        intrinsics.ppx -= shift
        intrinsics.ppy -= shift
    return np.array(frame.get_data(), np.uint16), lens_of(intrinsics)


def _exposure_ns(frame: Any) -> int:
    stamp_ns: int = round(frame.get_timestamp() * NS_PER_MS)
    middle, readout = rs.frame_metadata_value.sensor_timestamp, rs.frame_metadata_value.frame_timestamp
    if frame.supports_frame_metadata(middle) and frame.supports_frame_metadata(readout):
        stamp_ns -= (frame.get_frame_metadata(readout) - frame.get_frame_metadata(middle)) * NS_PER_US
    return stamp_ns
