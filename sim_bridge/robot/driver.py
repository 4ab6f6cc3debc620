"""The simulated LoCoBot: ``driver: sim_bridge.robot.driver.make_robot``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_runtime.common import config
from robot_runtime.common.clock import SimulatedClock, SystemClock, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.common.quantities import Response
from robot_runtime.errors import EpisodeError, SceneError
from robot_runtime.hal import Intrinsics, Placer, Robot
from robot_runtime.hal.simulated_motors import MotorOptions, SimulatedMotors
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.scene import Scene
from robot_runtime.scenes.tag_map import Tag, find_tag_map, load_tag_map
from sim_bridge.noise.actions import ActionNoiseOptions
from sim_bridge.noise.drift import Drift, DriftOptions
from sim_bridge.physics.scene_model import Body, SceneModel, build_model
from sim_bridge.physics.world import World
from sim_bridge.robot.base import BaseOptions, SimBase
from sim_bridge.robot.camera import CameraOptions, SimCamera
from sim_bridge.robot.chassis import Battery, BatteryOptions, Chassis, ContactOptions
from sim_bridge.robot.ground_truth import MujocoGroundTruth
from sim_bridge.robot.head import HeadOptions, SimHead
from sim_bridge.robot.localizer import LocalizerOptions, SimLocalizer
from sim_bridge.robot.manipulator import ManipulatorOptions, SimManipulator, SimTracker
from sim_bridge.robot.wheel_slip import make_slip

ODOMETRY_HZ = 50.0
"""Rate of a Kobuki's odometry."""

CAMERA_HEIGHT_M = 0.88
DEFAULT_INTRINSICS = Intrinsics.from_hfov(640, 480, 79.0)
"""Habitat challenge 2020, where no task says otherwise."""


@dataclass(frozen=True)
class SimOptions(config.Strict):
    """The ``options`` of a simulated robot's YAML file. Without any, everything is exact and immediate.

    Attributes:
        step_s: length of a physics step; contacts are computed once per step.
        odometry: error of odometry relative to the true motion.
        actuation: error of the true motion relative to the wheels' command.
        motors: what the wheels do with their commands; None for ideal ones, over ROS for those of the variant's base.
        contact: effect of walls; by default they stop the robot, as bumpers do.
        action_noise: errors of the ends of actions that odometry does not measure; None for none.
        localizer: the pose that the policy is given; scores always use the exact one.
        manipulator: options of the manipulator, for tasks that move objects.
        tags: AprilTags that hang in the room: ``scene`` for ``tags.yaml`` in the scene's folder, or a tag map's path.
        robot_tag: an AprilTag on the robot, in base_link, for cameras that watch it.
    """

    step_s: Response = 0.005
    body: Body = field(default_factory=Body)
    base: BaseOptions = field(default_factory=BaseOptions)
    battery: BatteryOptions = field(default_factory=BatteryOptions)
    odometry: DriftOptions = field(default_factory=DriftOptions)
    actuation: DriftOptions = field(default_factory=DriftOptions)
    motors: MotorOptions | None = None
    contact: ContactOptions = field(default_factory=ContactOptions)
    action_noise: ActionNoiseOptions | None = None
    head: HeadOptions = field(default_factory=HeadOptions)
    camera: CameraOptions = field(default_factory=CameraOptions)
    localizer: LocalizerOptions = field(default_factory=LocalizerOptions)
    manipulator: ManipulatorOptions = field(default_factory=ManipulatorOptions)
    tags: str | None = None
    robot_tag: Tag | None = None

    def __post_init__(self) -> None:
        if self.step_s * self.base.rate_hz > 1:
            raise ValueError(f"step_s must not exceed one period of base.rate_hz, {1 / self.base.rate_hz} s")
        distance_m = self.base.max_linear_m_s * self.step_s
        if distance_m > 2 * self.body.bumper_travel_m:
            raise ValueError(
                f"step_s is too long: at full speed the base would pass through its bumper ({distance_m} m)"
            )


def make_robot(context: RobotContext, name: str, options: Mapping[str, Any], where: str) -> Robot:
    """A simulated LoCoBot in ``context.scene``, disconnected, standing at the map's origin until it is placed.

    Raises:
        ConfigError: for a bad option.
        SceneError: without a scene that has meshes, or, for a task that moves objects, without objects to move.
    """
    parsed = config.parse(dict(options), SimOptions, where)
    if context.scene is None:
        raise SceneError(
            f"robot {name!r} is simulated and was given no scene", "name a scene folder, e.g. with `--scene`"
        )
    world = World(_model(context, context.scene, parsed, where))
    clock = SimulatedClock(seconds_to_ns(parsed.step_s), SystemClock() if context.real_time else None)
    drifts, slip = (Drift(parsed.odometry), Drift(parsed.actuation)), make_slip(parsed.action_noise, world)
    motors = parsed.motors or MotorOptions()
    chassis = Chassis(world, *drifts, Battery(parsed.battery), slip, parsed.contact, SimulatedMotors(motors))
    base = SimBase(clock, chassis, parsed.base, motors)
    head = SimHead(clock, parsed.head)
    camera = context.camera
    seen = (camera.intrinsics, camera.height_m) if camera else (DEFAULT_INTRINSICS, CAMERA_HEIGHT_M)
    rgbd = SimCamera(clock, world, head, *seen, parsed.camera, context.images)
    referee = SimLocalizer("ground truth", "map", clock, lambda: world.pose, LocalizerOptions())
    if parsed.localizer == LocalizerOptions():
        localizer = referee
    elif parsed.localizer.source == "odometry":
        localizer = SimLocalizer("odometry", "odom", clock, lambda: base.odom, parsed.localizer)
    else:
        localizer = SimLocalizer("localizer", "map", clock, lambda: world.pose, parsed.localizer)
    odometry_source = localizer
    if parsed.localizer.source != "odometry":
        exact = LocalizerOptions("odometry", rate_hz=min(ODOMETRY_HZ, parsed.base.rate_hz))
        odometry_source = SimLocalizer("odometry", "odom", clock, lambda: base.odom, exact)
    localizers = tuple(dict.fromkeys((localizer, referee, odometry_source)))
    clock.add_listener(base.on_step)
    for source in localizers:
        clock.add_listener(source.on_step)
    manipulator = SimManipulator(clock, world, rgbd, parsed.manipulator) if context.objects_move else None
    tracker = SimTracker(clock, world, manipulator) if manipulator is not None else None
    simulation = MujocoGroundTruth(clock, world, head, rgbd, base.chassis, context.seed)
    placer = Teleport(world, base, head, rgbd, localizers, context.seed, simulation, manipulator)
    devices = base, head, rgbd, localizer, referee, placer, manipulator, tracker
    return Robot(name, clock, *devices, odometry=odometry_source, simulation=simulation)


def _model(context: RobotContext, scene: Scene, options: SimOptions, where: str) -> SceneModel:
    hung: tuple[Tag, ...] = ()
    if options.tags is not None:
        hung = load_tag_map(find_tag_map(options.tags, scene, f"{where}: tags")).tags
    model = build_model(
        scene, options.step_s, options.body, context.objects_move, context.added_objects, hung, options.robot_tag
    )
    if context.objects_move and not model.movable:
        raise SceneError(
            f"{scene.folder / 'scene.yaml'}: has no object that can be moved",
            "write 'movable: true' at some of its objects, or generate a scene",
        )
    return model


class Teleport(Placer):
    """A placer that moves the robot to any free pose. Each placement starts its own sequence of errors."""

    def __init__(
        self,
        world: World,
        base: SimBase,
        head: SimHead,
        camera: SimCamera,
        localizers: tuple[SimLocalizer, ...],
        seed: int,
        simulation: MujocoGroundTruth,
        manipulator: SimManipulator | None = None,
    ) -> None:
        self._world, self._base, self._head, self._localizers = world, base, head, localizers
        self._camera, self._simulation, self._manipulator = camera, simulation, manipulator
        self._objects: Mapping[str, ObjectPose] | None = None
        self._seed, self._placements = seed, 0
        self._restart()

    def place(self, pose: SE2, tilt_rad: float) -> None:
        self._world.place(pose)
        if self._objects is not None:
            # Once more: the robot may have stood among them.
            self._world.objects.put(self._objects)
            self._objects = None
        self._head.place(tilt_rad)
        self._placements += 1
        self._restart()
        self._simulation.placed()

    def reseed(self, seed: int) -> None:
        """Draw errors, from the next placement on, as a new robot with this seed would."""
        self._seed, self._placements = seed, 0
        self._simulation.reseed(seed)

    def place_objects(self, poses: Mapping[str, ObjectPose]) -> None:
        world, scene = self._world, self._world.scene_model.scene
        if self._manipulator is None:
            super().place_objects(poses)
        known = {item.id for item in scene.objects}
        for object_id, pose in poses.items():
            fault = pose.fault
            if object_id not in world.objects.by_id:
                what = "is not movable" if object_id in known else "does not exist"
                raise EpisodeError(
                    f"scene {scene.name!r}: object {object_id!r} {what}",
                    "write 'movable: true' in scene.yaml"
                    if object_id in known
                    else "list the scene's objects with "
                    "`robot-runtime scene info`, and run the episode in its own scene",
                )
            if fault is None and pose.openness is not None:
                fault = "it opens, and the simulated scenes have nothing that opens"
            if fault is not None:
                raise EpisodeError(f"scene {scene.name!r}: object {object_id!r}: {fault}", "correct the episode")
        world.objects.put(poses)
        self._objects = dict(poses)
        if self._manipulator is not None:
            self._manipulator.empty()

    def _restart(self) -> None:
        # A sequence of its own for each part, so that one part's options do not change another's errors.
        streams = np.random.SeedSequence((self._seed, self._placements)).spawn(2 + len(self._localizers))
        self._base.restart(np.random.default_rng(streams[0]))
        for source, stream in zip(self._localizers, streams[1:-1], strict=True):
            source.restart(np.random.default_rng(stream))
        self._camera.restart(np.random.default_rng(streams[-1]))
