"""Raw images with their calibration, from any camera."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.clock import NS_PER_S, wait_for
from robot_runtime.errors import CalibrationFailed, DeviceFault
from robot_runtime.hal import Camera, HeadState, Lens, Robot
from robot_runtime.imaging.camera import SourceCamera
from robot_runtime.imaging.rig import RgbdCalibration

CAPTURE_TIMEOUT_S = 2.0
HEAD_AGE_S = 0.5
HEAD_TIMEOUT_S = 10.0
POLL_S = 0.02


@dataclass(frozen=True, eq=False)
class View:
    """One exposure, unrectified if the camera supports it.

    Attributes:
        stamp_ns: time of the color exposure.
        rgb: uint8 (H, W, 3), through ``rig.color``.
        depth_m: float32 (h, w), through ``rig.depth``; 0 without measurement.
        head: pan and tilt of the head, at rest during the exposure.
    """

    stamp_ns: int
    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    head: HeadState
    rig: RgbdCalibration


def rig_of(camera: Camera) -> RgbdCalibration:
    """Return the calibration of :func:`take_view`: the sensors', or the pinhole of a camera without raw images."""
    if isinstance(camera, SourceCamera):
        return camera.calibration
    lens = Lens.of(camera.info.intrinsics)
    return RgbdCalibration(lens, lens, np.eye(4), camera.info.depth_unit_m or 0.001, "", "nominal")


def factory_of(camera: Camera) -> RgbdCalibration:
    """Return the device's own calibration, independent of calibration files."""
    return camera.source.calibration if isinstance(camera, SourceCamera) else rig_of(camera)


def take_view(robot: Robot, rig: RgbdCalibration) -> View:
    """Return the next exposure of a robot at rest.

    Raises:
        StaleData: no image came in time.
        DeviceFault: the head does not come to rest.
    """
    head = wait_for_head(robot)
    now_ns, camera = robot.clock.now_ns(), robot.camera
    if isinstance(camera, SourceCamera):
        raw = camera.source.read(now_ns, CAPTURE_TIMEOUT_S)
        depth_m = raw.depth * np.float32(rig.depth_unit_m)
        depth_m[raw.depth > 0] += np.float32(rig.depth_bias_m)
        return View(raw.color_stamp_ns, raw.color, depth_m, head, rig)
    frame = camera.capture(now_ns, CAPTURE_TIMEOUT_S)
    return View(frame.stamp_ns, frame.rgb, frame.depth_m, head, rig)


def require_depth(camera: Camera) -> None:
    """Raise ``CalibrationFailed`` for a camera that measures no depth."""
    if not camera.info.has_depth:
        raise CalibrationFailed("this camera measures no depth", "calibrate extrinsics with `--from tags`")


def wait_for_head(robot: Robot) -> HeadState:
    """Wait until the head rests, and return its state. Raises ``DeviceFault`` at the time limit."""

    def rested() -> HeadState | None:
        state = robot.head.state(HEAD_AGE_S)
        return None if state.moving else state

    state = wait_for(robot.clock, rested, HEAD_TIMEOUT_S, POLL_S)
    if state is None:
        raise DeviceFault(f"head: still moving after {HEAD_TIMEOUT_S:g} s", "check whether something blocks the head")
    return state


def point_head(robot: Robot, pan_rad: float, tilt_rad: float) -> HeadState:
    """Turn the head and wait until it rests there. Raises ``DeviceFault``."""
    robot.head.command(pan_rad, tilt_rad)
    # The head's state may lag its command by a period.
    robot.clock.sleep_until(robot.clock.now_ns() + NS_PER_S // 10)
    return wait_for_head(robot)
