"""MuJoCo as a twin: a simulated robot of the runtime, driven by the very environment and motion control of a real run.

What the recorded robot did by itself (placing, resting, waiting for poses), this one does at the same instants after
the same whole second; that is why a log of an exact simulated robot repeats bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.continuous import Decision, VelocityCommand, WaypointCommand
from robot_runtime.actions.discrete import Action
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, DeviceFault, InvalidStart, SceneError
from robot_runtime.hal import Placer, Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import Pose3
from robot_runtime.motion.continuous import Steering
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import EpisodeHeader, Outcome, StepRecord
from robot_runtime.robots.loader import RobotContext, RobotFile, build_robot, read_robot_file
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.task import Task
from sim_bridge.replay.backends.base import Twin, TwinFactory, TwinStep, TwinUnable
from sim_bridge.robot.base import SimBase
from sim_bridge.robot.driver import Teleport

RECORDED = "recorded"
"""``--into recorded``: the robot that the log says it was recorded on, if it was a simulated one."""

OWN_DRIVER = "sim_bridge.robot.driver.make_robot"

ENDLESS = {"idle_w": 0.0, "drive_w": 0.0}
"""A twin lives through thousands of episodes, and its battery must not end one of them."""

RECORD_TO = "record_to"
"""What drivers call the option that has a camera record everything to a new file: a twin's records nothing."""

START_REACH_M = 0.15
"""How far from the recorded start a free one is looked for: what a referee may be off, and a placed object."""

_RINGS_M = (0.003, 0.006, 0.01, 0.02, 0.03, 0.045, 0.06, 0.08, 0.10, 0.125, START_REACH_M)
_BEARINGS = 16


def factory(into: str) -> TwinFactory:
    """What makes twins of a simulated robot's preset or YAML file, or of the recorded robot."""

    def make(
        header: EpisodeHeader, scene: Scene | None, images: bool, options: Mapping[str, Any], where: str
    ) -> MujocoTwin:
        return MujocoTwin(into, header, scene, images, options, where)

    return make


class MujocoTwin(Twin):
    """A simulated robot in the log's scene.

    Args:
        into: preset, YAML file or :data:`RECORDED`.
        options: over those in the robot's file; mappings reach into its mappings.
        images: whether steps have frames; without them an action costs a fourth.

    Attributes:
        robot: that drives. robot_file: what it was made of. scene: in which.

    Raises:
        SceneError: no scene. ConfigError: no such robot, or a bad option. TwinUnable: the robot is not simulated here.
    """

    def __init__(
        self,
        into: str,
        header: EpisodeHeader,
        scene: Scene | None,
        images: bool,
        options: Mapping[str, Any],
        where: str,
    ) -> None:
        if scene is None:
            raise SceneError(f"{where}: needs the log's scene, with its meshes", "name its folder with --scene")
        path, file = _robot_file(into, header, where)
        file = _unrecorded(replace(file, options=_merged(file.options, options)))
        if file.driver == OWN_DRIVER:
            file = replace(file, options=_merged({"battery": ENDLESS}, file.options))
        self._into, self.scene, self._images = into, scene, images
        self.robot_file = file
        context = RobotContext.of(header.task, scene, [header.episode], header.seed)
        robot = build_robot(file, path, replace(context, images=images))
        if robot.simulation is None:
            raise TwinUnable(
                f"{where}: robot {robot.name!r} is not simulated in this process", "name a simulated robot: sim"
            )
        self._simulation = robot.simulation
        self._placer = NearestFree(robot.placer)
        self.robot: Robot = replace(robot, placer=self._placer)
        self._stack = ExitStack()
        self._stack.enter_context(self.robot)
        self._env: Env | None = None

    @property
    def name(self) -> str:
        return self._into if self._into.endswith((".yaml", ".yml")) else self.robot.name

    def begin(self, header: EpisodeHeader, start: SE2, tilt_rad: float) -> TwinStep:
        env = self._environment(header.task)
        self.restart(header.seed)
        try:
            env.reset(replace(header.episode, start=start, start_tilt_rad=tilt_rad), header.agent, header.seed)
        except DeviceFault as error:
            raise TwinUnable(f"{self.name}: {error.message}", error.remedy) from error
        return self._step(env.record)

    def next_phase_at(self, start: SE2) -> None:
        self._placer.elsewhere = start

    def act(self, decision: Decision) -> TwinStep:
        env = self._running()
        if env.episode_over:
            end = env.end
            raise TwinUnable(
                f"{self.name}: the episode is over there after {end.steps} actions: "
                f"{end.reason.value}{f' ({end.detail})' if end.detail else ''}",
                "replay it into a robot without errors: sim",
            )
        try:
            env.step(decision)
        except DeviceFault as error:
            raise TwinUnable(f"{self.name}: {error.message}", error.remedy) from error
        return self._step(env.record)

    def act_from(self, before: StepRecord, decision: Decision) -> tuple[SE2, TwinStep] | None:
        robot, task = self.robot, self._running().task
        if decision is Action.GRAB_RELEASE:
            return None
        try:
            if task.rearrangement is not None:
                robot.placer.place_objects(before.objects)
            self._placer.elsewhere = None
            self._placer.place(before.referee.pose, before.head.tilt_rad)
        except InvalidStart:
            return None
        self._take(before.held)
        began = self._simulation.pose()
        motion = MotionController(robot.clock, robot.base, robot.head)
        motion.rest()
        if isinstance(decision, VelocityCommand | WaypointCommand):
            assert task.control is not None
            steering = Steering(robot.clock, robot.base, robot.head, motion)
            result = steering.execute(decision, task.control)
        else:
            result = motion.execute(task.magnitudes.displacement(decision))
        _, tilted_rad = self._simulation.head_angles()
        ended = self._simulation.pose()
        return began, TwinStep(ended, tilted_rad, result.collided, result.outcome, None, result.duration_s)

    def put_objects(self, poses: Mapping[str, ObjectPose], held: Collection[str]) -> None:
        self.robot.placer.place_objects(poses)
        self._take(held)

    def view(self, lens: Lens, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        return self._simulation.render(lens, map_from_camera)

    def restart(self, seed: int) -> None:
        """Errors of the simulated robot are from now on those of one that was made with this seed."""
        if isinstance(self._placer.inner, Teleport):
            self._placer.inner.reseed(seed)
        self._placer.elsewhere = None

    def close(self) -> None:
        self._stack.close()

    def _take(self, held: Collection[str]) -> None:
        """Out of the world what the recorded robot carries."""
        if held and isinstance(self.robot.base, SimBase):
            for object_id in held:
                self.robot.base.world.objects.take_away(object_id)

    def _environment(self, task: Task) -> Env:
        """Where the task's actions are driven but not judged, and nobody looks at observations."""
        task = replace(task, sensors=())
        if self._env is None or self._env.task != task:
            self._env = Env(self.robot, task, self.scene, judged=False)
        return self._env

    def _running(self) -> Env:
        if self._env is None:
            raise TwinUnable(f"{self.name}: stands nowhere yet", "call begin() first")
        return self._env

    def _step(self, record: StepRecord) -> TwinStep:
        result = record.result
        return TwinStep(
            record.referee.pose,
            record.head.tilt_rad,
            result is not None and result.outcome is Outcome.CONTACT,
            None if result is None else result.outcome,
            record.frame if self._images else None,
            None if result is None else result.duration_s,
            record.objects,
            None if record.grab is None else record.grab.outcome,
        )


class NearestFree(Placer):
    """Puts the robot where it is wanted or, where that is not free, as near as it is, within :data:`START_REACH_M`.

    A pose that was measured is never exactly where the robot stood, nor is a scene exactly the place.

    Attributes:
        inner: who places it. elsewhere: where it is to stand instead of where it is asked for, from now on.
    """

    def __init__(self, inner: Placer) -> None:
        self.inner, self.way = inner, inner.way
        self.elsewhere: SE2 | None = None

    def place(self, pose: SE2, tilt_rad: float) -> None:
        wanted = self.elsewhere or pose
        refused = self._refuses(wanted, tilt_rad)
        if refused is None or any(self._refuses(near, tilt_rad) is None for near in around(wanted)):
            return
        raise InvalidStart(
            f"{refused.message}; nor is any pose free within {START_REACH_M:g} m of it",
            "compare the log's referee and the scene: they must be in one frame (`robot-runtime scene align`)",
        ) from refused

    def _refuses(self, pose: SE2, tilt_rad: float) -> InvalidStart | None:
        """Why the robot cannot stand there; None if it stands there now."""
        try:
            self.inner.place(pose, tilt_rad)
        except InvalidStart as error:
            return error
        return None

    def place_objects(self, poses: Mapping[str, ObjectPose]) -> None:
        self.inner.place_objects(poses)


def around(pose: SE2) -> Iterator[SE2]:
    """Poses of the same heading around one, farther and farther away, up to :data:`START_REACH_M`."""
    for radius_m in _RINGS_M:
        for number in range(_BEARINGS):
            bearing_rad = 2 * math.pi * number / _BEARINGS
            x_m, y_m = radius_m * math.cos(bearing_rad), radius_m * math.sin(bearing_rad)
            yield SE2(pose.x_m + x_m, pose.y_m + y_m, pose.yaw_rad)


def _robot_file(into: str, header: EpisodeHeader, where: str) -> tuple[str, RobotFile]:
    """Where a robot is described, and what it says there."""
    if into != RECORDED:
        path, file = read_robot_file(into)
        return str(path), file
    recorded = {key: value for key, value in header.robot_config.items() if key != "calibrations"}
    if not recorded:
        raise ConfigError(
            f"{where}: the log does not say how its robot {header.robot!r} was made", "name a robot: --into sim"
        )
    return "the log's robot", config.parse(recorded, RobotFile, f"{where}: the log's robot")


def _unrecorded(file: RobotFile) -> RobotFile:
    if file.camera is None:
        return file
    options = {key: value for key, value in file.camera.options.items() if key != RECORD_TO}
    return replace(file, camera=replace(file.camera, options=options))


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``under`` with what ``over`` says instead, mapping by mapping."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(below, value) if both else value  # type: ignore[arg-type]
    return merged
