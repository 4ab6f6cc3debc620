"""The fake camera: a checkered floor and an optional wall, rendered by exact ray casting."""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drivers.fake.device import FakeDevice
from drivers.fake.faults import LostFrames
from drivers.fake.ground_truth import GroundTruth
from robot_runtime.common.clock import SimulatedClock, seconds_to_ns, wait_for
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Camera, CameraInfo, RgbdFrame
from robot_runtime.hal.fault_schedule import Script

BUFFER_S = 1.0
"""Time for which exposures are kept."""

CHECKER_M = 0.25


@dataclass(frozen=True, slots=True)
class _Exposure:
    stamp_ns: int
    pose: SE2
    pan_rad: float
    tilt_rad: float


class FakeCamera(FakeDevice, Camera):
    """Camera that exposes at its rate, delivers ``latency_s`` later, and renders requested frames only."""

    def __init__(
        self, clock: SimulatedClock, truth: GroundTruth, script: Script, info: CameraInfo, latency_s: float
    ) -> None:
        super().__init__("camera", clock, script)
        self._truth = truth
        self._info = info
        self._latency_ns = seconds_to_ns(latency_s)
        self._period_ns = seconds_to_ns(1 / info.rate_hz)
        self._due_ns = clock.now_ns()
        self._exposures: deque[_Exposure] = deque(maxlen=max(2, math.ceil(BUFFER_S * info.rate_hz)))

    @property
    def info(self) -> CameraInfo:
        return self._info

    def capture(self, exposed_after_ns: int, timeout_s: float, semantic: bool = False) -> RgbdFrame:
        self._require_connected()
        if semantic:
            raise DeviceFault("fake camera: has no segmentation", "ask for it on a simulated robot only")
        exposure = wait_for(self._clock, lambda: self._delivered(exposed_after_ns), timeout_s, poll_s=1 / 1000)
        if exposure is None:
            raise StaleData(
                f"fake camera: no frame exposed after the instant asked for came within {timeout_s:.2f} s",
                "check the script for 'lost_frames', or allow more time",
            )
        rgb, depth_m = render(self._info, exposure.pose, exposure.pan_rad, exposure.tilt_rad, self._truth.wall_x_m)
        return RgbdFrame(exposure.stamp_ns, rgb, depth_m)

    def clear(self) -> None:
        self._exposures.clear()

    def _delivered(self, exposed_after_ns: int) -> _Exposure | None:
        for exposure in self._exposures:
            if exposure.stamp_ns >= exposed_after_ns:
                return exposure if exposure.stamp_ns + self._latency_ns <= self._clock.now_ns() else None
        return None

    def _on_step(self, now_ns: int) -> None:
        if now_ns < self._due_ns:
            return
        self._due_ns += self._period_ns
        if self._connected and not self._script.active(LostFrames, now_ns):
            truth = self._truth
            self._exposures.append(_Exposure(now_ns, truth.pose, truth.pan_rad, truth.tilt_rad))


def render(
    info: CameraInfo, pose: SE2, pan_rad: float, tilt_rad: float, wall_x_m: float | None
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Render an image.

    Args:
        info: intrinsics, mount and range of the camera.
        pose: base_link in ``map``.
        pan_rad: pan angle of the head, left positive.
        tilt_rad: tilt angle of the head, up positive.
        wall_x_m: x of the wall; None for none.

    Returns:
        Color, uint8 (H, W, 3), and depth, float32 (H, W), meters along the optical axis, 0 beyond the range.
    """
    k, mount = info.intrinsics, info.mount
    across_image, down_image = np.arange(k.width, dtype=np.float32), np.arange(k.height, dtype=np.float32)
    right, down = np.meshgrid((across_image - k.cx) / k.fx, (down_image - k.cy) / k.fy)
    axes = optical_axes(pose.yaw_rad + pan_rad, tilt_rad).astype(np.float32)
    ray_x, ray_y, up = (a * right + b * down + c for a, b, c in axes)  # per meter of depth, in map
    eye_x, eye_y = pose.apply(mount.x_m, mount.y_m)
    with np.errstate(divide="ignore"):
        floor = np.where(up < 0, -mount.z_m / up, np.inf)
        wall = np.where(ray_x > 0, (wall_x_m - eye_x) / ray_x, np.inf) if wall_x_m is not None else np.inf
    depth = np.minimum(floor, wall)
    on_floor = floor <= wall
    measured = (depth >= info.depth_min_m) & (depth <= info.depth_max_m)
    # In float32 as readers of the lattice compute it: a value off by one bit could not be logged as an integer.
    steps = np.rint(np.where(measured, depth, 0) / info.depth_unit_m).astype(np.float32)
    depth = steps * np.float32(info.depth_unit_m)
    along = np.where(on_floor, eye_x + depth * ray_x, mount.z_m + depth * up)
    across = eye_y + depth * ray_y
    dark = (np.floor(along / CHECKER_M) + np.floor(across / CHECKER_M)) % 2 == 1
    shade = np.where(dark, np.uint8(90), np.uint8(190))
    rgb = np.empty((*shade.shape, 3), np.uint8)
    rgb[..., 0] = np.where(on_floor, shade, np.uint8(220))
    rgb[..., 1] = shade
    rgb[..., 2] = np.where(on_floor, np.uint8(120), shade)
    rgb[~measured] = (150, 180, 210)
    return rgb, depth
