"""Replay backend of MuJoCo: a simulated robot of the runtime, with the environment and motion control of a real run.

Placing, resting and waiting for poses happen at the same instants after the same full second as in the recorded run,
so that a log of an exact simulated robot repeats bit for bit.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision, TimedAction
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, DeviceFault, InvalidStart, SceneError
from robot_runtime.hal import Lens, Placer, Robot
from robot_runtime.hal.simulation import Pose3
from robot_runtime.motion.controller import MotionController
from robot_runtime.motion.steering import Steering
from robot_runtime.records import EpisodeHeader, Outcome, StepRecord
from robot_runtime.robots.loader import RobotContext, RobotFile, build_robot, read_robot_file
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.task import Task
from sim_bridge.replay.backends.base import BackendFactory, SimulatedStep, SimulatorBackend, UnsupportedBySimulator
from sim_bridge.robot.base import SimBase
from sim_bridge.robot.driver import Teleport

RECORDED = "recorded"
"""Value of ``--into`` for the robot that the log was recorded on, if it was a simulated one."""

OWN_DRIVER = "sim_bridge.robot.driver.make_robot"

ENDLESS = {"idle_w": 0.0, "drive_w": 0.0}
"""Battery options without consumption, because one simulated robot runs thousands of episodes."""

RECORD_TO = "record_to"
"""Option of camera drivers that records to a file; it is removed for replays."""

START_REACH_M = 0.15
"""Search radius for a free start around the recorded one: the error of a referee and of a placed object."""

_RINGS_M = (0.003, 0.006, 0.01, 0.02, 0.03, 0.045, 0.06, 0.08, 0.10, 0.125, START_REACH_M)
_BEARINGS = 16


def factory(into: str) -> BackendFactory:
    """The factory of backends for a simulated robot's preset or YAML file, or for the recorded robot."""

    def make(
        header: EpisodeHeader, scene: Scene | None, images: bool, options: Mapping[str, Any], where: str
    ) -> MujocoBackend:
        return MujocoBackend(into, header, scene, images, options, where)

    return make


class MujocoBackend(SimulatorBackend):
    """A simulated robot in the log's scene.

    Args:
        into: preset, YAML file or :data:`RECORDED`.
        header: header of the log.
        scene: scene with meshes.
        images: whether steps have frames; without them an action takes a quarter of the time.
        options: options over those in the robot's file, merged mapping by mapping.
        where: source of the options, for error messages.

    Raises:
        SceneError: there is no scene.
        ConfigError: there is no such robot, or an option is invalid.
        UnsupportedBySimulator: the robot is not simulated in this process.
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
        file = _without_recording(replace(file, options=_merged(file.options, options)))
        if file.driver == OWN_DRIVER:
            file = replace(file, options=_merged({"battery": ENDLESS}, file.options))
        self._into, self.scene, self._images = into, scene, images
        self.robot_file = file
        context = RobotContext.of(header.task, scene, [header.episode], header.seed)
        robot = build_robot(file, path, replace(context, images=images))
        if robot.simulation is None:
            raise UnsupportedBySimulator(
                f"{where}: robot {robot.name!r} is not simulated in this process", "name a simulated robot: sim"
            )
        self._simulation = robot.simulation
        self._placer = NearestFreePlacer(robot.placer)
        self.robot: Robot = replace(robot, placer=self._placer)
        self._stack = ExitStack()
        self._stack.enter_context(self.robot)
        self._env: Env | None = None

    @property
    def name(self) -> str:
        return self._into if self._into.endswith((".yaml", ".yml")) else self.robot.name

    def begin(self, header: EpisodeHeader, start: SE2, tilt_rad: float) -> SimulatedStep:
        env = self._environment(header.task)
        self.restart(header.seed)
        try:
            env.reset(replace(header.episode, start=start, start_tilt_rad=tilt_rad), header.agent, header.seed)
        except DeviceFault as error:
            raise UnsupportedBySimulator(f"{self.name}: {error.message}", error.remedy) from error
        return self._step(env.record)

    def next_phase_at(self, start: SE2) -> None:
        self._placer.override = start

    def act(self, decision: Decision, infer_s: float = 0.0) -> SimulatedStep:
        env = self._current_env()
        if env.episode_over:
            end = env.end
            raise UnsupportedBySimulator(
                f"{self.name}: the episode is over there after {end.steps} actions: "
                f"{end.reason.value}{f' ({end.detail})' if end.detail else ''}",
                "replay it into a robot without errors: sim",
            )
        try:
            env.step(decision, infer_s=infer_s)
        except DeviceFault as error:
            raise UnsupportedBySimulator(f"{self.name}: {error.message}", error.remedy) from error
        return self._step(env.record)

    def act_from(self, before: StepRecord, decision: Decision) -> tuple[SE2, SimulatedStep] | None:
        robot, task = self.robot, self._current_env().task
        if decision is Action.GRAB_RELEASE or (isinstance(decision, TimedAction) and not decision.settle):
            return None
        try:
            if Action.GRAB_RELEASE in task.actions:
                robot.placer.place_objects(before.state.poses)
            self._placer.override = None
            self._placer.place(before.referee.pose, before.head.tilt_rad)
        except InvalidStart:
            return None
        self._remove(before.state.held)
        began = self._simulation.pose()
        motion = MotionController(robot.clock, robot.base, robot.head, robot.motion)
        motion.rest()
        if isinstance(decision, TimedAction):
            assert task.control is not None
            steering = Steering(robot.clock, robot.base, robot.head, motion)
            result = steering.execute(decision, task.control)
        else:
            result = motion.execute(task.magnitudes.displacement(decision))
        _, tilted_rad = self._simulation.head_angles()
        ended = self._simulation.pose()
        return began, SimulatedStep(ended, tilted_rad, result.collided, result.outcome, None, result.duration_s)

    def put_objects(self, poses: Mapping[str, ObjectPose], held: Collection[str]) -> None:
        self.robot.placer.place_objects(poses)
        self._remove(held)

    def render(self, lens: Lens, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        return self._simulation.render(lens, map_from_camera)

    def restart(self, seed: int) -> None:
        """Reseed the errors of the simulated robot, as if it were made with this seed."""
        if isinstance(self._placer.inner, Teleport):
            self._placer.inner.reseed(seed)
        self._placer.override = None

    def close(self) -> None:
        self._stack.close()

    def _remove(self, held: Collection[str]) -> None:
        """Remove the objects that the recorded robot holds."""
        if held and isinstance(self.robot.base, SimBase):
            for object_id in held:
                self.robot.base.world.objects.remove(object_id)

    def _environment(self, task: Task) -> Env:
        """The environment that executes the task's actions, without observations and scores."""
        task = replace(task, sensors=())
        if self._env is None or self._env.task != task:
            self._env = Env(self.robot, task, self.scene, judged=False)
        return self._env

    def _current_env(self) -> Env:
        if self._env is None:
            raise UnsupportedBySimulator(f"{self.name}: no episode has begun", "call begin() first")
        return self._env

    def _step(self, record: StepRecord) -> SimulatedStep:
        result = record.result
        return SimulatedStep(
            record.referee.pose,
            record.head.tilt_rad,
            result is not None and result.outcome is Outcome.CONTACT,
            None if result is None else result.outcome,
            record.frame if self._images else None,
            None if result is None else result.duration_s,
            record.state.poses,
            None if record.state.grab is None else record.state.grab.outcome,
        )


class NearestFreePlacer(Placer):
    """Placer that uses the nearest free pose, within :data:`START_REACH_M`, where the requested one is not free.

    Neither measured poses nor scenes are exact.

    Attributes:
        inner: the placer of the robot.
        override: pose to use in place of the requested ones; None for none.
    """

    def __init__(self, inner: Placer) -> None:
        self.inner, self.way = inner, inner.way
        self.override: SE2 | None = None

    def place(self, pose: SE2, tilt_rad: float) -> None:
        wanted = self.override or pose
        refused = self._try(wanted, tilt_rad)
        if refused is None or any(self._try(near, tilt_rad) is None for near in around(wanted)):
            return
        raise InvalidStart(
            f"{refused.message}; nor is any pose free within {START_REACH_M:g} m of it",
            "compare the log's referee and the scene: they must be in one frame (`robot-runtime scene align`)",
        ) from refused

    def _try(self, pose: SE2, tilt_rad: float) -> InvalidStart | None:
        """Place the robot; the error if it does not fit."""
        try:
            self.inner.place(pose, tilt_rad)
        except InvalidStart as error:
            return error
        return None

    def place_objects(self, poses: Mapping[str, ObjectPose]) -> None:
        self.inner.place_objects(poses)


def around(pose: SE2) -> Iterator[SE2]:
    """Poses with the same heading on growing circles around one, up to :data:`START_REACH_M`."""
    for radius_m in _RINGS_M:
        for number in range(_BEARINGS):
            bearing_rad = 2 * math.pi * number / _BEARINGS
            x_m, y_m = radius_m * math.cos(bearing_rad), radius_m * math.sin(bearing_rad)
            yield SE2(pose.x_m + x_m, pose.y_m + y_m, pose.yaw_rad)


def _robot_file(into: str, header: EpisodeHeader, where: str) -> tuple[str, RobotFile]:
    """Name and content of a robot's configuration."""
    if into != RECORDED:
        path, file = read_robot_file(into)
        return str(path), file
    recorded = {key: value for key, value in header.robot_config.items() if key != "calibrations"}
    if not recorded:
        raise ConfigError(
            f"{where}: the log has no configuration of its robot {header.robot!r}", "name a robot: --into sim"
        )
    return "the log's robot", config.parse(recorded, RobotFile, f"{where}: the log's robot", recorded=True)


def _without_recording(file: RobotFile) -> RobotFile:
    if file.camera is None:
        return file
    options = {key: value for key, value in file.camera.options.items() if key != RECORD_TO}
    return replace(file, camera=replace(file.camera, options=options))


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``under`` overridden by ``over``, mapping by mapping."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(below, value) if both else value  # type: ignore[arg-type]
    return merged
