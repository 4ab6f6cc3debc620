"""The simulated RGB-D camera on the pan-tilt."""

from __future__ import annotations

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
from robot_runtime.common.config import NonNegative, Positive
from robot_runtime.common.geometry import SE2
from robot_runtime.common.transforms import opengl_rotation
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.hal import Camera, CameraInfo, Intrinsics, Mount, RgbdFrame
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.printed_targets import draw_sheets
from robot_runtime.hal.simulation import CameraMotion, Pose3
from robot_runtime.robots.camera_mount import CameraMount, load_mount
from sim_bridge.noise.models import color_noise, depth_noise
from sim_bridge.physics.scene_model import NEAR_M, SKY_M
from sim_bridge.physics.world import World
from sim_bridge.rendering.renderer import Rotation, SceneRenderer, Vector
from sim_bridge.robot.camera_misalignment import MountError, misplaced
from sim_bridge.robot.device import SimDevice
from sim_bridge.robot.head import SimHead

_MOMENT_S = 1e-3
"""Over which velocities are taken."""

STILL = 1e-6
"""Meters and radians per second that are no motion."""


@dataclass(frozen=True)
class CameraOptions:
    """How the camera delivers.

    Attributes:
        latency_s: from exposure to delivery.
        depth_min_m, depth_max_m: outside, depth is a hole (0). By default the range is wider than any policy's, which
            clips depth for itself.
        depth_unit_m: lattice of the depth values; 0 for continuous depth.
        forward_m: of the pan-tilt's axis, in front of the base's.
        mount: where the camera sits: a preset of ``launch/mounts`` or a YAML file
        (``robot_runtime.robots.camera_mount``).
            Without one it is as high as the training camera and turns about its own optical center.
        mount_error: how far from there it truly sits; the camera's description and the logs do not know.
        depth_noise, color_noise: a model of ``sim_bridge.noise.models`` and its options; empty for none.
    """

    rate_hz: Positive = 30.0
    latency_s: NonNegative = 0.0
    depth_min_m: Positive = 0.05
    depth_max_m: Positive = 25.0
    depth_unit_m: NonNegative = 0.001
    forward_m: float = 0.0
    mount: str | None = None
    mount_error: MountError = field(default_factory=MountError)
    depth_noise: dict[str, Any] = field(default_factory=dict)
    color_noise: dict[str, Any] = field(default_factory=dict)

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not NEAR_M <= self.depth_min_m < self.depth_max_m <= SKY_M:
            raise ValueError(
                f"need {NEAR_M} <= depth_min_m < depth_max_m <= {SKY_M}, got {self.depth_min_m} and {self.depth_max_m}"
            )


class SimCamera(SimDevice, Camera):
    """Exposes at multiples of its period, and draws an exposure only when somebody asks for it.

    Must be used in the thread that connected it: that is where its OpenGL context lives.

    Args:
        height_m: of the optical center.
        images: whether anybody looks at them; without, frames are dark, and no OpenGL context is needed.
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
        self._images = images
        self._clock = clock
        self._world = world
        self._head = head
        self._options = options
        mount = CameraMount((options.forward_m, 0.0, height_m))
        if options.mount is not None:
            mount = load_mount(config.find_preset("mounts", options.mount))
        self._mount = misplaced(mount, options.mount_error)
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
        self._noise = Noise(options, intrinsics)
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
    def _dark(self) -> RgbdFrame:
        """Neither color nor depth nor objects."""
        shape = self._info.intrinsics.height, self._info.intrinsics.width
        images = np.zeros((*shape, 3), np.uint8), np.zeros(shape, np.float32), np.full(shape, -1, np.int32)
        for image in images:
            image.flags.writeable = False
        return RgbdFrame(0, *images)

    def viewpoint(self) -> tuple[Vector, Rotation]:
        """Where the optical center is now, in ``map``, and how the camera is turned."""
        sensor = self._mount.sensor(self._world.pose, *self._head.pointing(self._clock.now_ns()))
        return sensor[:3, 3], opengl_rotation(sensor)

    def pose(self) -> Pose3:
        """Of the optical frame (x right, y down, z forward) in ``map``, now."""
        position, rotation = self.viewpoint()
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = rotation * (1, -1, -1), position
        return pose

    def motion(self) -> CameraMotion:
        """How the camera moves now."""
        return camera_motion(self._mount, self._world, self._head, self._clock.now_ns())

    def restart(self, random: np.random.Generator) -> None:
        """The robot was placed: draw errors from ``random``."""
        self._noise.restart(random)

    def _expose(self, semantic: bool) -> RgbdFrame:
        stamp_ns, renderer = self._clock.now_ns(), self._renderer
        if renderer is None:
            return replace(self._dark, stamp_ns=stamp_ns)
        position, rotation = self.viewpoint()
        renderer.update_scene(self._world.data)
        rgb, depth = renderer.render(position, rotation)
        if self._world.sheets:
            draw_sheets(self._world.sheets.values(), self._rays, self.pose(), rgb, depth)
        ids = renderer.segment(position, rotation) if semantic else None
        rgb, depth = self._noise.spoil(rgb, depth, self.motion)
        return RgbdFrame(stamp_ns, rgb, as_measured(depth, self._options), ids)


def camera_motion(mount: CameraMount, world: World, head: SimHead, now_ns: int) -> CameraMotion:
    """How a camera on the head moves, by where it will be a moment later if base and head go on as they do."""
    linear_m_s, angular_rad_s = world.velocity
    base = world.pose @ SE2(linear_m_s * _MOMENT_S, 0.0, angular_rad_s * _MOMENT_S)
    now = mount.sensor(world.pose, *head.pointing(now_ns))
    then = mount.sensor(base, *head.pointing(now_ns + seconds_to_ns(_MOMENT_S)))
    optical, later = (opengl_rotation(sensor) * (1, -1, -1) for sensor in (now, then))
    turn = optical.T @ later
    spin = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
    rates = np.concatenate([optical.T @ (then - now)[:3, 3], spin]) / _MOMENT_S
    vx, vy, vz, wx, wy, wz = np.where(np.abs(rates) < STILL, 0.0, rates).tolist()
    return CameraMotion((vx, vy, vz), (wx, wy, wz))


class Noise:
    """The noise models that options name; draws nothing where they name none."""

    def __init__(self, options: CameraOptions, intrinsics: Intrinsics) -> None:
        self._lens = Lens.of(intrinsics)
        self._none = not (options.depth_noise or options.color_noise)
        self._depth = depth_noise(options.depth_noise, "camera: depth_noise")
        self._color = color_noise(options.color_noise, "camera: color_noise")
        self._random = np.random.default_rng(0)

    def restart(self, random: np.random.Generator) -> None:
        """The robot was placed: draw errors from ``random``."""
        self._random = random

    def spoil(
        self, rgb: NDArray[np.uint8], depth_m: NDArray[np.float32], motion: Callable[[], CameraMotion]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """What the sensors make of an exact pair, which may be changed."""
        if self._none:
            return rgb, depth_m
        depth_m[depth_m > SKY_M] = 0
        rgb = self._color.expose(rgb, depth_m, self._lens, motion(), self._random)
        return rgb, self._depth.measure(depth_m, self._lens, self._random)


def as_measured(depth_m: NDArray[np.float32], options: CameraOptions) -> NDArray[np.float32]:
    """True depth as the sensor delivers it, computed in place: on its lattice, 0 outside its range."""
    # Rarely is anything outside, and two extrema cost less than a mask.
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
