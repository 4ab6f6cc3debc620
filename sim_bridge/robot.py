"""The simulated LoCoBot: ``driver: sim_bridge.robot.make_robot``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_runtime import config
from robot_runtime.clock import SimulatedClock, SystemClock, seconds_to_ns
from robot_runtime.errors import SceneError
from robot_runtime.geometry import SE2
from robot_runtime.hal import Intrinsics, Placer, Robot
from robot_runtime.robots import RobotContext
from sim_bridge.base import BaseOptions, SimBase
from sim_bridge.battery import Battery, BatteryOptions
from sim_bridge.camera import CameraOptions, SimCamera
from sim_bridge.head import HeadOptions, SimHead
from sim_bridge.localizer import LocalizerOptions, SimLocalizer
from sim_bridge.model import Body, build_model
from sim_bridge.noise import Drift, DriftOptions, Positive
from sim_bridge.world import World

CAMERA_HEIGHT_M = 0.88
DEFAULT_INTRINSICS = Intrinsics.from_hfov(640, 480, 79.0)
"""Habitat challenge 2020, where no task says otherwise."""


@dataclass(frozen=True)
class SimOptions:
    """The ``options`` of a simulated robot's YAML file. Without any, everything is exact and immediate.

    Attributes:
        step_s: length of one physics step; contact is looked for once per step.
        odometry: how odometry departs from the true motion.
        actuation: how the true motion departs from what the wheels are told.
        localizer: the pose that the policy is given; scores always use the exact one.
    """

    step_s: Positive = 0.005
    body: Body = field(default_factory=Body)
    base: BaseOptions = field(default_factory=BaseOptions)
    battery: BatteryOptions = field(default_factory=BatteryOptions)
    odometry: DriftOptions = field(default_factory=DriftOptions)
    actuation: DriftOptions = field(default_factory=DriftOptions)
    head: HeadOptions = field(default_factory=HeadOptions)
    camera: CameraOptions = field(default_factory=CameraOptions)
    localizer: LocalizerOptions = field(default_factory=LocalizerOptions)

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if self.step_s * self.base.rate_hz > 1:
            raise ValueError(f"step_s must not exceed one period of base.rate_hz, {1 / self.base.rate_hz} s")
        way_m = self.base.max_linear_m_s * self.step_s
        if way_m > 2 * self.body.bumper_travel_m:
            raise ValueError(f"step_s is too long: at full speed the base would pass through its bumper ({way_m} m)")


def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
    """A simulated LoCoBot in ``context.scene``, disconnected, standing at the map's origin until it is placed.

    Raises:
        ConfigError: for a bad option. SceneError: without a scene that has meshes.
    """
    parsed = config.parse(dict(options), SimOptions, where)
    if context.scene is None:
        raise SceneError(
            f"robot {name!r} is simulated and was given no scene", "name a scene folder, e.g. with `--scene`"
        )
    world = World(build_model(context.scene, parsed.step_s, parsed.body))
    clock = SimulatedClock(seconds_to_ns(parsed.step_s), SystemClock() if context.real_time else None)
    odometry, actuation = Drift(parsed.odometry), Drift(parsed.actuation)
    base = SimBase(clock, world, parsed.base, odometry, actuation, Battery(parsed.battery))
    head = SimHead(clock, parsed.head)
    camera = context.camera
    rgbd = SimCamera(
        clock,
        world,
        head,
        camera.intrinsics if camera else DEFAULT_INTRINSICS,
        camera.height_m if camera else CAMERA_HEIGHT_M,
        parsed.camera,
    )
    referee = SimLocalizer("ground truth", "map", clock, lambda: world.pose, LocalizerOptions())
    if parsed.localizer == LocalizerOptions():
        localizer = referee
    elif parsed.localizer.source == "odometry":
        localizer = SimLocalizer("odometry", "odom", clock, lambda: base.odom, parsed.localizer)
    else:
        localizer = SimLocalizer("localizer", "map", clock, lambda: world.pose, parsed.localizer)
    localizers = tuple(dict.fromkeys((localizer, referee)))
    clock.add_listener(base.on_step)
    for source in localizers:
        clock.add_listener(source.on_step)
    placer = Teleport(world, base, head, localizers, context.seed)
    return Robot(name, clock, base, head, rgbd, localizer, referee, placer)


class Teleport(Placer):
    """Puts the robot anywhere that is free. Each placement starts its own sequence of errors."""

    def __init__(
        self, world: World, base: SimBase, head: SimHead, localizers: tuple[SimLocalizer, ...], seed: int
    ) -> None:
        self._world, self._base, self._head, self._localizers = world, base, head, localizers
        self._seed = seed
        self._placements = 0
        self._restart()

    def place(self, pose: SE2, tilt_rad: float) -> None:
        self._world.place(pose)
        self._head.place(tilt_rad)
        self._placements += 1
        self._restart()

    def _restart(self) -> None:
        # A sequence of its own for each part, so that one part's options do not change another's errors.
        streams = np.random.SeedSequence((self._seed, self._placements)).spawn(1 + len(self._localizers))
        self._base.restart(np.random.default_rng(streams[0]))
        for source, stream in zip(self._localizers, streams[1:], strict=True):
            source.restart(np.random.default_rng(stream))
