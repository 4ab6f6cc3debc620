"""A robot without physics: exact kinematics, a synthetic camera, and faults by script. See README.md."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from drivers.fake.base import FakeBase
from drivers.fake.camera import FakeCamera
from drivers.fake.faults import Fault
from drivers.fake.ground_truth import GroundTruth
from drivers.fake.head import FakeHead
from drivers.fake.localizer import FakeLocalizer
from drivers.fake.manipulator import FakeManipulator, FakeObjects, FakeTracker
from robot_runtime.common import config, quantities
from robot_runtime.common.clock import SimulatedClock, SystemClock, seconds_to_ns, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, InvalidStart
from robot_runtime.hal import BaseInfo, CameraInfo, HeadLimits, Intrinsics, Mount, Placer, Robot
from robot_runtime.hal.fault_schedule import Script
from robot_runtime.hal.simulated_motors import MotorOptions
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.objects import ObjectPose

HEAD_TIMEOUT_S = 10.0
PAUSE_S = 0.2
"""Pause for all sensors to measure at the new place."""


class FakePlacer(Placer):
    """Placer that teleports: odometry continues; poses and frames of the old place are dropped."""

    def __init__(
        self,
        clock: SimulatedClock,
        truth: GroundTruth,
        base: FakeBase,
        head: FakeHead,
        camera: FakeCamera,
        localizers: Sequence[FakeLocalizer],
        fake_objects: FakeObjects | None = None,
    ) -> None:
        self._clock = clock
        self._truth = truth
        self._base = base
        self._head = head
        self._camera = camera
        self._localizers = tuple(localizers)
        self._objects = fake_objects

    def place_objects(self, poses: Mapping[str, ObjectPose]) -> None:
        if self._objects is None:
            super().place_objects(poses)
        else:
            self._objects.put(poses)

    def place(self, pose: SE2, tilt_rad: float) -> None:
        if not pose.x_m <= self._truth.max_x_m:
            raise InvalidStart(
                f"the robot does not fit at x = {pose.x_m:.3f} m: the wall allows up to {self._truth.max_x_m:.3f} m",
                "start elsewhere, or move 'wall_x_m' in the robot's YAML",
            )
        self._head.limits.check_start(tilt_rad)
        self._base.stop()
        self._head.command(0.0, tilt_rad)
        self._truth.pose = pose
        self._camera.clear()
        for localizer in self._localizers:
            localizer.clear()
        settled = wait_for(self._clock, self._settled, HEAD_TIMEOUT_S, poll_s=1 / 1000)
        if settled is None:
            raise DeviceFault(
                f"fake head: has not reached tilt {tilt_rad:.3f} rad in {HEAD_TIMEOUT_S:g} s",
                "check the script for 'stuck_head'",
            )
        self._clock.sleep(PAUSE_S)

    def _settled(self) -> bool | None:
        return None if self._head.state(max_age_s=1.0).moving else True


@dataclass(frozen=True)
class FakeOptions(config.Strict):
    """The YAML's ``options``. Limits and speeds default to a Kobuki's and a LoCoBot's pan-tilt.

    Attributes:
        rate_hz: rate of the clock, the base and the head.
        wall_x_m: a wall along x = ``wall_x_m`` in ``map``, the robot on its lower side; None for open space.
        width: width of the image; None for the policy's training camera's, or 640.
        height: height of the image; None for the policy's training camera's, or 480.
        hfov_deg: horizontal field of view; None for the policy's training camera's, or 79.
        camera_height_m: height of the camera; None for the policy's training camera's, or 0.88.
        camera_latency_s: time from exposure to delivery.
        pose_latency_s: time from measurement to delivery.
        battery_fraction: constant charge of the battery.
        motors: what the wheels do with their commands.
        objects: positions in ``map`` of objects that the hand can take, by id; the robot has no hand without any.
        faults: see ``drivers/fake/faults.py``.
    """

    rate_hz: quantities.Rate = 100.0
    radius_m: quantities.BodyRadius = 0.18
    max_linear_m_s: float = 0.7
    max_angular_rad_s: float = math.pi
    max_linear_accel_m_s2: float = 0.5
    max_angular_accel_rad_s2: quantities.AngularAcceleration = 3.5
    head_speed_rad_s: float = 2.0
    head_settle_s: quantities.ShortTime = 0.1
    wall_x_m: float | None = None
    width: int | None = None
    height: int | None = None
    hfov_deg: quantities.FieldOfView | None = None
    camera_height_m: quantities.CameraHeight | None = None
    camera_rate_hz: quantities.Rate = 30.0
    camera_latency_s: quantities.Latency = 0.03
    pose_rate_hz: quantities.Rate = 30.0
    pose_latency_s: quantities.Latency = 0.05
    battery_fraction: quantities.Fraction = 1.0
    motors: MotorOptions = field(default_factory=MotorOptions)
    objects: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name in ("wall_x_m", "motors", "objects", "faults") or value is None:
                continue
            may_be_zero = name.endswith(("latency_s", "settle_s"))
            if not (math.isfinite(value) and (value > 0 or (may_be_zero and value == 0))):
                raise ValueError(f"{name} must be a positive number, got {value}")


def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
    """Return the fake robot, disconnected, at the origin of ``map``. Raises ``ConfigError`` for a bad option."""
    chosen = config.parse(dict(options), FakeOptions, where)
    clock = SimulatedClock(seconds_to_ns(1 / chosen.rate_hz), pacer=SystemClock() if context.real_time else None)
    script = Script(chosen.faults)
    truth = GroundTruth(chosen.radius_m, chosen.wall_x_m)
    # The clock advances them in this order: first the base, so that all others measure its present pose.
    info = _base_info(name, chosen)
    base = FakeBase(clock, truth, script, info, chosen.motors, chosen.battery_fraction)
    head = FakeHead(clock, truth, script, _head_limits(chosen))
    camera = FakeCamera(clock, truth, script, _camera_info(chosen, context), chosen.camera_latency_s)
    localizer = FakeLocalizer("localizer", clock, truth, script, chosen.pose_rate_hz, chosen.pose_latency_s)
    referee = FakeLocalizer("referee", clock, truth, Script(), chosen.rate_hz, latency_s=0.0)
    odometry = FakeLocalizer("odometry", clock, truth, Script(), chosen.rate_hz, latency_s=0.0, frame="odom")
    fake_objects = FakeObjects(chosen.objects) if chosen.objects else None
    placer = FakePlacer(clock, truth, base, head, camera, (localizer, referee, odometry), fake_objects)
    robot = Robot(name, clock, base, head, camera, localizer, referee, placer, odometry=odometry)
    if fake_objects is None:
        return robot
    hand = FakeManipulator(clock, truth, script, fake_objects, camera.info)
    return replace(robot, manipulator=hand, tracker=FakeTracker(clock, script, fake_objects, chosen.rate_hz))


def _base_info(name: str, options: FakeOptions) -> BaseInfo:
    return BaseInfo(
        name=name,
        radius_m=options.radius_m,
        max_linear_m_s=options.max_linear_m_s,
        max_angular_rad_s=options.max_angular_rad_s,
        max_linear_accel_m_s2=options.max_linear_accel_m_s2,
        max_angular_accel_rad_s2=options.max_angular_accel_rad_s2,
        rate_hz=options.rate_hz,
    )


def _head_limits(options: FakeOptions) -> HeadLimits:
    return HeadLimits(
        min_pan_rad=math.radians(-90),
        max_pan_rad=math.radians(90),
        min_tilt_rad=math.radians(-75),
        max_tilt_rad=math.radians(90),
        max_speed_rad_s=options.head_speed_rad_s,
        settle_s=options.head_settle_s,
    )


def _camera_info(options: FakeOptions, context: RobotContext) -> CameraInfo:
    training = context.camera
    width = options.width or (training.width if training else 640)
    height = options.height or (training.height if training else 480)
    hfov_deg = options.hfov_deg or (training.hfov_deg if training else 79.0)
    height_m = options.camera_height_m or (training.height_m if training else 0.88)
    return CameraInfo(
        intrinsics=Intrinsics.from_hfov(width, height, hfov_deg),
        mount=Mount(0.0, 0.0, height_m),
        rate_hz=options.camera_rate_hz,
        depth_min_m=0.1,
        depth_max_m=10.0,
        depth_unit_m=0.001,
        has_semantic=False,
    )
