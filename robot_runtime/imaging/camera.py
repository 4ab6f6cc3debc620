"""Camera of a robot over any source of raw pairs: the training camera's images, fresh, paired, and checked.

A driver of an RGB-D camera implements :class:`~robot_runtime.imaging.source.RgbdSource`, and its factory ends with
:func:`source_camera`.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime import errors
from robot_runtime.common import config
from robot_runtime.common.clock import Clock, ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.quantities import DepthUnit, Exposure, FarDepth, Latency, NearDepth, check_depth_range
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, rotation_rpy
from robot_runtime.hal import Camera, CameraInfo, Intrinsics, Mount, RgbdFrame, Robot
from robot_runtime.hal.stand_ins import MissingCamera
from robot_runtime.imaging.coverage import Coverage, check_coverage, coverage
from robot_runtime.imaging.latency import KIND as LATENCY
from robot_runtime.imaging.latency import CameraLatency
from robot_runtime.imaging.reproject import Reprojector
from robot_runtime.imaging.rig import RgbdCalibration, load_calibration
from robot_runtime.imaging.source import RawRgbd, RgbdSource, SensorMode
from robot_runtime.robots.calibration_file import load_content
from robot_runtime.robots.camera_mount import CameraMount, load_mount
from robot_runtime.robots.loader import RobotContext

BLIND_FRAMES = 5
"""Consecutive pairs without any depth after which the depth sensor counts as blind; a single one may be a flash."""

MOVED_M = 0.05
MOVED_RAD = math.radians(5)
"""Motion of base or head after which an unchanged picture counts as frozen: beyond odometry's noise and the slip of
wheels at a wall, and less than any policy's step.
"""

MAX_RANGE_M = 65.0
"""Largest depth in counts of a millimeter."""


@dataclass(frozen=True)
class ImagingOptions(config.Strict):
    """The options of every camera's YAML under ``imaging``.

    Attributes:
        mount: pose of the camera: a name in ``launch/mounts``, or a file of ``calibrate extrinsics``; None for the
            robot's own description.
        calibration: file of ``calibrate intrinsics`` or ``calibrate depth``; None for the factory's.
        latency: file of ``calibrate latency``; None for the driver's stamps as they are.
        allow_partial_coverage: run even if the sensors cannot fill the training camera's image.
        allow_blind_depth: deliver images without any depth as all holes, as of a robot closer to a wall than the
            sensor's minimum range.
        exposure_s: the longest exposure; half of it passes between the end of a motion and the middle of an exposure
            without motion blur.
        max_skew_s: largest time between the middles of the exposures of a pair.
        depth_min_m: the sensor's minimum range; None for the mode's rated one.
        depth_max_m: the sensor's maximum range; None for the mode's rated one.
        depth_unit_m: resolution of the delivered depth; logs of integer millimeters take a fifth of the space. 0:
            continuous.
    """

    mount: str | None = None
    calibration: str | None = None
    latency: str | None = None
    allow_partial_coverage: bool = False
    allow_blind_depth: bool = False
    exposure_s: Exposure = 0.0
    max_skew_s: Latency = 0.05
    depth_min_m: NearDepth | None = None
    depth_max_m: FarDepth | None = None
    depth_unit_m: DepthUnit = 0.001

    def __post_init__(self) -> None:
        if self.depth_min_m is not None and self.depth_max_m is not None:
            check_depth_range(self.depth_min_m, self.depth_max_m)


@dataclass(frozen=True, slots=True)
class Posture:
    """Pose of base and head by their own sensors."""

    odom: SE2
    pan_rad: float
    tilt_rad: float

    def moved_from(self, other: "Posture") -> bool:
        """Whether a camera on this robot must see something else than in another posture."""
        turns = (self.odom.yaw_rad - other.odom.yaw_rad, self.pan_rad - other.pan_rad, self.tilt_rad - other.tilt_rad)
        turned = any(abs(wrap_angle(turn)) > MOVED_RAD for turn in turns)
        return turned or self.odom.distance_to(other.odom) > MOVED_M


class SourceCamera(Camera):
    """A source's pairs, reprojected into the training camera.

    Args:
        source: connected and closed with this camera.
        clock: the robot's.
        target: the training camera's pinhole.
        mount: mount of the color sensor; images are rotated so that the target's direction is exactly that of pan and
            tilt.
        options: options of the camera.
        robot: its name; calibrations must carry it.
        posture: returns the current posture; None disables the check for frozen pictures.

    Raises:
        ConfigError: a file that the options name does not exist.
    """

    def __init__(
        self,
        source: RgbdSource,
        clock: Clock,
        target: Intrinsics,
        mount: CameraMount,
        options: ImagingOptions,
        robot: str = "",
        posture: Callable[[], Posture] | None = None,
    ) -> None:
        if missing := [name for name in (options.calibration, options.latency) if name and not Path(name).exists()]:
            raise errors.ConfigError(
                f"{missing[0]}: no such file", "check the path, or make it: `robot-runtime calibrate --help`"
            )
        self.source = source
        self._clock = clock
        self._options = options
        self._robot = robot
        self._posture = posture
        self._turn = color_from_target(mount)
        self._reprojector: Reprojector | None = None
        self._blind = 0
        self._last: tuple[RawRgbd, Posture] | None = None
        self._lock = threading.Lock()
        """A localizer that uses this camera captures in a thread of its own."""
        self.latency_s = 0.0
        """Delay of the source's stamps beyond its own correction, to be subtracted. Known once connected."""
        x_m, y_m, z_m = (float(value) for value in mount.sensor(SE2(), 0.0, 0.0)[:3, 3])
        near_m, far_m = self._depth_range()
        self._info = CameraInfo(
            target,
            Mount(x_m, y_m, z_m),
            source.rate_hz,
            near_m,
            far_m,
            options.depth_unit_m,
            has_semantic=False,
            has_depth=source.has_depth,
        )

    @property
    def info(self) -> CameraInfo:
        """The training camera's pinhole, with the sensor's rate and depth range."""
        return self._info

    @property
    def calibration(self) -> RgbdCalibration:
        """The calibration in use: by the options' file once the device is known, else the device's own."""
        return self._reprojector.calibration if self._reprojector is not None else self.source.calibration

    def coverage(self, modes: tuple[SensorMode, ...] | None = None) -> tuple[Coverage, ...]:
        """Fraction of the target that modes fill: by default those in use."""
        rig = self.calibration
        if modes is None:
            modes = (replace(self.source.color_mode, lens=rig.color),)
            if self.source.has_depth:
                modes += (replace(self.source.depth_mode, lens=rig.depth),)
        return tuple(coverage(mode, self._info.intrinsics, self._turn, rig.color_from_depth) for mode in modes)

    def check_coverage(self) -> None:
        """Raise ``ConfigError`` if the modes in use fill too little of the target, unless the options allow it."""
        if self._options.allow_partial_coverage:
            return
        used = self.coverage()
        if not all(part.enough for part in used):
            check_coverage(used, self.coverage(self.source.modes), self._info.intrinsics, self.source.name)

    def connect(self) -> None:
        """Connect the source, and compile and warm up the reprojection.

        Raises:
            DeviceFault: of the source.
            ConfigError: the modes fill too little of the target.
            CalibrationError: the calibration file belongs to another robot or device, is too old or altered.
        """
        if self._reprojector is not None:
            return
        self.source.connect()
        try:
            rig = self.source.calibration
            if self._options.calibration is not None:
                rig = load_calibration(Path(self._options.calibration), self._robot, rig.serial)
            if self._options.latency is not None:
                latency = Path(self._options.latency)
                self.latency_s = load_content(latency, CameraLatency, LATENCY, self._robot).latency_s
            near_m, far_m = self._depth_range()
            self._info = replace(self._info, rate_hz=self.source.rate_hz, depth_min_m=near_m, depth_max_m=far_m)
            reprojector = Reprojector(rig, self._info.intrinsics, self._turn, (near_m, far_m))
            reprojector.warm_up()
            self._reprojector = reprojector
            self.check_coverage()
        except BaseException:
            self.close()
            raise
        self._blind, self._last = 0, None

    @override
    def close(self) -> None:
        self._reprojector = None
        self._last = None
        self.source.close()

    def capture(self, exposed_after_ns: int, timeout_s: float, semantic: bool = False) -> RgbdFrame:
        """The first pair whose exposures began at or after ``exposed_after_ns``, reprojected.

        Raises:
            StaleData: none came in time.
            UnpairedImages: color and depth were not exposed together.
            FrozenCamera: the picture is the one from before the robot moved.
            BlindCamera: ``BLIND_FRAMES`` consecutive pairs had no depth at all.
            DeviceFault: the device is gone, or ``semantic`` was requested.
        """
        reprojector = self._reprojector
        if reprojector is None:
            raise errors.NotConnected(f"{self.source.name}: is not connected", "call connect() before using it")
        if semantic:
            raise errors.DeviceFault(f"{self.source.name}: has no segmentation", "ask for it on a simulated robot only")
        with self._lock:
            raw = self._read(exposed_after_ns, timeout_s)
            self._check_alive(raw)
            seen = reprojector(raw.color, raw.depth if self.source.has_depth else None)
            stamp_ns = raw.color_stamp_ns - seconds_to_ns(self.latency_s)
            return RgbdFrame(stamp_ns, seen.rgb.copy(), self._quantized(seen.depth_m))

    def _read(self, exposed_after_ns: int, timeout_s: float) -> RawRgbd:
        """A pair with depth, both exposed together after the instant."""
        deadline_ns = self._clock.now_ns() + seconds_to_ns(timeout_s)
        after_ns = exposed_after_ns + seconds_to_ns(self._options.exposure_s / 2 + self.latency_s)
        while True:
            left_s = max(0.0, ns_to_seconds(deadline_ns - self._clock.now_ns()))
            try:
                raw = self.source.read(after_ns, left_s)
            except errors.StaleData:
                if self._blind:
                    raise self._blind_error() from None
                raise
            skew_s = ns_to_seconds(abs(raw.color_stamp_ns - raw.depth_stamp_ns)) if self.source.has_depth else 0.0
            if skew_s > self._options.max_skew_s:
                raise errors.UnpairedImages(
                    f"{self.source.name}: color and depth of a pair were exposed {skew_s:.3f} s apart, "
                    f"{self._options.max_skew_s:g} s are allowed",
                    "synchronize the sensors in the camera's options, or increase 'max_skew_s' under 'imaging'",
                )
            if not self.source.has_depth or self._options.allow_blind_depth or raw.depth.any():
                self._blind = 0
                return raw
            self._blind += 1
            if self._blind >= BLIND_FRAMES:
                raise self._blind_error()
            after_ns = max(raw.color_stamp_ns, raw.depth_stamp_ns) + 1

    def _blind_error(self) -> errors.BlindCamera:
        return errors.BlindCamera(
            f"{self.source.name}: {self._blind} depth images in succession without a single measurement",
            "check whether something covers the sensor or the sun blinds it; if the robot only stands close to a wall, "
            "set 'allow_blind_depth: true' under 'imaging'",
        )

    def _check_alive(self, raw: RawRgbd) -> None:
        """Raise ``FrozenCamera`` if the picture did not change although the robot moved."""
        if self._posture is None:
            return
        now = self._posture()
        if self._last is None or not _is_same(raw, self._last[0]):
            self._last = raw, now
        elif now.moved_from(self._last[1]):
            frozen_s = ns_to_seconds(raw.color_stamp_ns - self._last[0].color_stamp_ns)
            raise errors.FrozenCamera(
                f"{self.source.name}: the same picture for {frozen_s:.1f} s under new stamps, while the robot moved",
                "restart the camera and check its USB cable",
            )

    def _quantized(self, depth_m: NDArray[np.float32]) -> NDArray[np.float32]:
        unit_m, delivered = self._options.depth_unit_m, np.array(depth_m, np.float32)
        if unit_m:
            delivered *= np.float32(1 / unit_m)
            np.rint(delivered, out=delivered)
            # Multiplied last, as logs restore integer millimeters.
            delivered *= np.float32(unit_m)
        return delivered

    def _depth_range(self) -> tuple[float, float]:
        mode, options = self.source.depth_mode, self._options
        near_m = max(mode.min_m, 0.01) if options.depth_min_m is None else options.depth_min_m
        far_m = min(mode.max_m, MAX_RANGE_M) if options.depth_max_m is None else options.depth_max_m
        try:
            check_depth_range(near_m, far_m)
        except ValueError as error:
            remedy = f"change it under 'imaging'; the mode measures from {mode.min_m:g} to {mode.max_m:g} m"
            raise errors.ConfigError(f"{self.source.name}: {error}", remedy) from error
        return near_m, far_m


def source_camera(source: RgbdSource, robot: Robot, context: RobotContext, options: ImagingOptions) -> SourceCamera:
    """The camera of a robot over ``source``, disconnected: the return value of a driver's factory.

    Raises:
        ConfigError: there is no such mount, or the modes, as far as they are known yet, fill too little of the training
            camera's image; or ``options`` are not read yet.
        CalibrationError: the mount is another robot's, too old or altered.
    """
    if not isinstance(options, ImagingOptions):
        raise errors.ConfigError(
            f"{source.name}: the options of imaging are a {type(options).__name__}, not ImagingOptions",
            "pass ImagingOptions(), or config.parse(dict(options), ImagingOptions, where)",
        )
    trained = context.camera
    mount = mount_of(robot, options)
    target = robot.camera.info.intrinsics if trained is None else trained.intrinsics
    camera = SourceCamera(source, robot.clock, target, mount, options, robot.name, lambda: posture_of(robot))
    if trained is not None:
        camera.check_coverage()
    return camera


def mount_of(robot: Robot, options: ImagingOptions) -> CameraMount:
    """The mount by the options, else by the robot's own description. Raises ``ConfigError`` if neither has one."""
    if options.mount is not None:
        return load_mount(config.find_preset("mounts", options.mount), robot.name)
    if isinstance(robot.camera, MissingCamera):
        raise errors.ConfigError(
            f"nothing says where the camera sits on robot {robot.name!r}",
            "give the camera's option imaging: {mount: ...}: a preset of launch/mounts, or the file that "
            "`robot-runtime calibrate extrinsics` wrote",
        )
    own = robot.camera.info.mount
    return CameraMount((own.x_m, own.y_m, own.z_m))


def posture_of(robot: Robot) -> Posture:
    """The posture of a connected robot. Raises ``StaleData``."""
    base, head = robot.base_state(), robot.head_state()
    return Posture(base.odom, head.pan_rad, head.tilt_rad)


def color_from_target(mount: CameraMount) -> NDArray[np.float64]:
    """Rotation from the training camera to the color sensor, float64 (3, 3).

    The training camera points in the direction of pan and tilt, without roll.
    """
    sensor = mount.sensor(SE2(), 0.0, 0.0)[:3, :3]
    optical = rotation_rpy(*OPTICAL_RPY_RAD)
    return np.asarray(optical.T @ sensor.T @ optical)


def _is_same(a: RawRgbd, b: RawRgbd) -> bool:
    return np.array_equal(a.color, b.color) and np.array_equal(a.depth, b.depth)
