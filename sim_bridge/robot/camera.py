"""The simulated RGB-D camera on the pan-tilt."""

import functools
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.common.clock import Clock, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.common.quantities import DepthUnit, FarDepth, Latency, Misalignment, NearDepth, PartOffset, Rate
from robot_runtime.common.transforms import Offset, opengl_rotation, rotation_rpy, rpy_of, transform
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Camera, CameraInfo, Intrinsics, Lens, Mount, RgbdFrame
from robot_runtime.hal.printed_targets import draw_sheets
from robot_runtime.hal.simulation import CameraMotion, Pose3
from robot_runtime.robots.camera_mount import CameraMount, load_mount
from sim_bridge.noise.models import color_noise, depth_noise
from sim_bridge.physics.scene_model import NEAR_M, SKY_M
from sim_bridge.physics.world import World
from sim_bridge.rendering.renderer import Rotation, SceneRenderer, Vector
from sim_bridge.robot.device import SimDevice
from sim_bridge.robot.head import SimHead


@dataclass(frozen=True)
class MountError(config.Strict):
    """The true camera relative to the described one; the defaults mean none.

    Attributes:
        tilt_deg: rotation about the tilt axis, up positive; the camera turns about that axis, not its own center.
        pan_deg: rotation about the upright axis of what the tilt axis carries, left positive.
        roll_deg: rotation about its forward axis, clockwise in the image positive.
        height_m: upward offset of the complete pan-tilt.
        forward_m: forward offset of the complete pan-tilt.
    """

    tilt_deg: float = 0.0
    pan_deg: float = 0.0
    roll_deg: float = 0.0
    height_m: Misalignment = 0.0
    forward_m: Misalignment = 0.0


def apply_mount_error(mount: CameraMount, error: MountError) -> CameraMount:
    """The true mount of a camera that is described by ``mount``; ``mount`` itself without any error."""
    if error == MountError():
        return mount
    turn = rotation_rpy(*np.radians((error.roll_deg, -error.tilt_deg, error.pan_deg)).tolist())
    camera = transform((0.0, 0.0, 0.0), turn) @ mount.camera.matrix
    x_m, y_m, z_m = mount.pan_joint_m
    offset_x_m, offset_y_m, offset_z_m = camera[:3, 3].tolist()
    roll_rad, pitch_rad, yaw_rad = rpy_of(camera[:3, :3])
    return replace(
        mount,
        pan_joint_m=(x_m + error.forward_m, y_m, z_m + error.height_m),
        camera=Offset(
            (offset_x_m, offset_y_m, offset_z_m),
            (math.degrees(roll_rad), math.degrees(pitch_rad), math.degrees(yaw_rad)),
        ),
        calibration=None,
    )


_DIFFERENCE_S = 1e-3
"""Interval of the finite differences that give velocities."""

STILL = 1e-6
"""Velocities below this one, in meters and radians per second, count as standstill."""


@dataclass(frozen=True)
class CameraOptions(config.Strict):
    """Options of the camera.

    Attributes:
        rate_hz: rate of the exposures.
        latency_s: time from exposure to delivery.
        depth_min_m: smallest measured depth; below it depth is 0.
        depth_max_m: largest measured depth; beyond it depth is 0. The default range is wider than any policy's.
        depth_unit_m: quantum of the depth values; 0 for continuous depth.
        forward_m: distance of the pan-tilt's axis in front of the base's axis.
        mount: a preset of ``launch/mounts`` or a YAML file (``robot_runtime.robots.camera_mount``); without one the
            camera is as high as the training camera and turns about its own optical center.
        mount_error: true offset from the mount, absent from the camera's description and the logs.
        depth_noise: a model of ``sim_bridge.noise.models`` and its options; empty for none.
        color_noise: a color model of ``sim_bridge.noise.models`` and its options; empty for none.
    """

    rate_hz: Rate = 30.0
    latency_s: Latency = 0.0
    depth_min_m: NearDepth = 0.05
    depth_max_m: FarDepth = 25.0
    depth_unit_m: DepthUnit = 0.001
    forward_m: PartOffset = 0.0
    mount: str | None = None
    mount_error: MountError = field(default_factory=MountError)
    depth_noise: dict[str, Any] = field(default_factory=dict)
    color_noise: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not NEAR_M <= self.depth_min_m < self.depth_max_m <= SKY_M:
            raise ValueError(
                f"need {NEAR_M} <= depth_min_m < depth_max_m <= {SKY_M}, got {self.depth_min_m} and {self.depth_max_m}"
            )


class SimCamera(SimDevice, Camera):
    """A camera that exposes at multiples of its period and renders a frame only on request.

    Its OpenGL context belongs to the thread that connected it, and so must all use.

    Without ``images``, frames are black, and no OpenGL context is needed.
    """

    def __init__(
        self,
        clock: Clock,
        world: World,
        head: SimHead,
        intrinsics: Intrinsics,
        height_m: float,
        options: CameraOptions,
        images: bool = True,
    ) -> None:
        super().__init__("camera")
        self._clock, self._world, self._head = clock, world, head
        self._options, self._images = options, images
        mount = CameraMount((options.forward_m, 0.0, height_m))
        if options.mount is not None:
            mount = load_mount(config.find_preset("mounts", options.mount))
        self._mount = apply_mount_error(mount, options.mount_error)
        self._info = CameraInfo(
            intrinsics,
            Mount(*mount.sensor(SE2(), 0.0, 0.0)[:3, 3].tolist()),
            options.rate_hz,
            options.depth_min_m,
            options.depth_max_m,
            options.depth_unit_m,
            has_semantic=True,
        )
        self._lens = Lens.of(intrinsics)
        self._noise = CameraNoise(options, intrinsics)
        self._renderer: SceneRenderer | None = None
        self._thread = 0
        self._render_s = 0.0

    @property
    def info(self) -> CameraInfo:
        return self._info

    @property
    def render_s(self) -> float:
        """Host seconds spent inside MuJoCo's rendering since the camera was made."""
        return self._render_s + (self._renderer.render_s if self._renderer is not None else 0.0)

    def connect(self) -> None:
        if self._renderer is None and self._images:
            self._renderer = SceneRenderer(self._world.scene_model, self._info.intrinsics)
            self._thread = threading.get_ident()
        super().connect()

    def close(self) -> None:
        super().close()
        if self._renderer is not None:
            self._render_s += self._renderer.render_s
            self._renderer.close()
            self._renderer = None

    def capture(self, exposed_after_ns: int, timeout_s: float, semantic: bool = False) -> RgbdFrame:
        """The next pair exposed at or after both ``exposed_after_ns`` and now: nothing is drawn in advance."""
        self._require_connected()
        if self._renderer is not None and threading.get_ident() != self._thread:
            raise DeviceFault(
                "simulated camera: used outside the thread that connected it, where its OpenGL context lives",
                "connect and capture in one thread",
            )
        now_ns = self._clock.now_ns()
        exposure_ns = self._next_exposure_ns(max(exposed_after_ns, now_ns))
        latency_ns = seconds_to_ns(self._options.latency_s)
        deadline_ns = now_ns + seconds_to_ns(timeout_s)
        if exposure_ns + latency_ns > deadline_ns:
            self._clock.sleep_until(deadline_ns)
            raise StaleData(
                f"simulated camera: no frame exposed at or after {ns_to_seconds(exposed_after_ns):.3f} s arrived "
                f"within {timeout_s:.2f} s",
                "wait longer, or raise the camera's rate_hz",
            )
        self._clock.sleep_until(exposure_ns)
        frame = self._expose(semantic)
        self._clock.sleep_until(frame.stamp_ns + latency_ns)
        return frame

    def _next_exposure_ns(self, after_ns: int) -> int:
        """The first step of the world, at or after ``after_ns``, at which a multiple of the period is reached."""
        step_ns, rate_hz = self._world.step_ns, self._options.rate_hz
        number = math.floor((after_ns - step_ns) / 1e9 * rate_hz)
        while True:
            exposure_ns = math.ceil(seconds_to_ns(number / rate_hz) / step_ns) * step_ns
            if exposure_ns >= after_ns:
                return exposure_ns
            number += 1

    @functools.cached_property
    def _rays(self) -> NDArray[np.float64]:
        return self._lens.pixel_rays()

    @functools.cached_property
    def _blank_frame(self) -> RgbdFrame:
        """A frame without color, depth and objects."""
        shape = self._info.intrinsics.height, self._info.intrinsics.width
        images = np.zeros((*shape, 3), np.uint8), np.zeros(shape, np.float32), np.full(shape, -1, np.int32)
        for image in images:
            image.flags.writeable = False
        return RgbdFrame(0, *images)

    def viewpoint(self) -> tuple[Vector, Rotation]:
        """Present position of the optical center in ``map``, and the camera's rotation."""
        sensor = self._mount.sensor(self._world.pose, *self._head.camera_angles(self._clock.now_ns()))
        return sensor[:3, 3], opengl_rotation(sensor)

    def pose(self) -> Pose3:
        """Of the optical frame (x right, y down, z forward) in ``map``, now."""
        position, rotation = self.viewpoint()
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = rotation * (1, -1, -1), position
        return pose

    def motion(self) -> CameraMotion:
        """Present motion of the camera."""
        return camera_motion(self._mount, self._world, self._head, self._clock.now_ns())

    def restart(self, random: np.random.Generator) -> None:
        """Draw errors from ``random`` after the robot was placed."""
        self._noise.restart(random)

    def _expose(self, semantic: bool) -> RgbdFrame:
        stamp_ns, renderer = self._clock.now_ns(), self._renderer
        if renderer is None:
            return replace(self._blank_frame, stamp_ns=stamp_ns)
        position, rotation = self.viewpoint()
        renderer.update_scene(self._world.data)
        rgb, depth = renderer.render(position, rotation)
        if self._world.sheets:
            draw_sheets(self._world.sheets.values(), self._rays, self.pose(), rgb, depth)
        ids = renderer.segment(position, rotation) if semantic else None
        rgb, depth = self._noise.apply(rgb, depth, self.motion)
        return RgbdFrame(stamp_ns, rgb, quantized(depth, self._options), ids)


def camera_motion(mount: CameraMount, world: World, head: SimHead, now_ns: int) -> CameraMotion:
    """Motion of a camera on the head, by finite differences of the motion of base and head."""
    linear_m_s, angular_rad_s = world.velocity
    base = world.pose @ SE2(linear_m_s * _DIFFERENCE_S, 0.0, angular_rad_s * _DIFFERENCE_S)
    now = mount.sensor(world.pose, *head.camera_angles(now_ns))
    then = mount.sensor(base, *head.camera_angles(now_ns + seconds_to_ns(_DIFFERENCE_S)))
    optical, later = (opengl_rotation(sensor) * (1, -1, -1) for sensor in (now, then))
    turn = optical.T @ later
    spin = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
    rates = np.concatenate([optical.T @ (then - now)[:3, 3], spin]) / _DIFFERENCE_S
    vx, vy, vz, wx, wy, wz = np.where(np.abs(rates) < STILL, 0.0, rates).tolist()
    return CameraMotion((vx, vy, vz), (wx, wy, wz))


class CameraNoise:
    """The noise models of a camera's options; no random numbers are drawn without a model."""

    def __init__(self, options: CameraOptions, intrinsics: Intrinsics) -> None:
        self._lens = Lens.of(intrinsics)
        self._none = not (options.depth_noise or options.color_noise)
        self._depth = depth_noise(options.depth_noise, "camera: depth_noise")
        self._color = color_noise(options.color_noise, "camera: color_noise")
        self._random = np.random.default_rng(0)

    def restart(self, random: np.random.Generator) -> None:
        """Draw errors from ``random`` after the robot was placed."""
        self._random = random

    def apply(
        self, rgb: NDArray[np.uint8], depth_m: NDArray[np.float32], motion: Callable[[], CameraMotion]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """The measured pair of an exact one; the exact pair may be modified."""
        if self._none:
            return rgb, depth_m
        depth_m[depth_m > SKY_M] = 0
        rgb = self._color.expose(rgb, depth_m, self._lens, motion(), self._random)
        return rgb, self._depth.measure(depth_m, self._lens, self._random)


def quantized(depth_m: NDArray[np.float32], options: CameraOptions) -> NDArray[np.float32]:
    """True depth rounded to the sensor's quantum, and 0 outside its range, computed in place."""
    # Depth rarely leaves the range, and two extrema cost less than a mask.
    outside = None
    if depth_m.min() < options.depth_min_m or depth_m.max() > options.depth_max_m:
        outside = (depth_m < options.depth_min_m) | (depth_m > options.depth_max_m)
    if options.depth_unit_m:
        depth_m *= np.float32(1 / options.depth_unit_m)
        np.rint(depth_m, out=depth_m)
        depth_m *= np.float32(options.depth_unit_m)
    if outside is not None:
        depth_m[outside] = 0
    return depth_m
