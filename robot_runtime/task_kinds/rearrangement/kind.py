"""The kind of task ``rearrangement``: bring objects to where they should be."""

import math
from collections.abc import Callable, Mapping
from typing import ClassVar, TypeVar

from typing_extensions import override

from robot_runtime.actions.discrete import Action
from robot_runtime.common.clock import wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, InvalidStart, StaleData
from robot_runtime.hal import RgbdFrame, Robot
from robot_runtime.hal.streams import STREAMS, across_gap
from robot_runtime.scenes.objects import Grab, GrabOutcome, ObjectPose, ObjectSource, TrackedObjects
from robot_runtime.scenes.scene import Scene
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.rearrangement.crosshair import settings
from robot_runtime.task_kinds.rearrangement.sensors import (
    REARRANGEMENT_SENSORS,
    STATE_FORMAT,
    UNSHUFFLE,
    WALKTHROUGH,
    RearrangementGoal,
    RearrangementState,
)
from robot_runtime.task_kinds.rearrangement.settings import Rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.kind import TaskKind
from robot_runtime.tasks.sensor import Sensor
from robot_runtime.tasks.session import Observed, TaskSession
from robot_runtime.tasks.state import StateFormat
from robot_runtime.tasks.task import Task

T = TypeVar("T")

LAYOUT_TOLERANCE_M = 0.10
"""Largest distance of an object from its start when a phase begins: the accuracy of a person with a tape measure."""


class RearrangementSession(TaskSession):
    """Session of a task that moves objects: phases, layouts of the objects, grab and release.

    A task with ``goal: experience`` has two phases: in ``walkthrough`` the objects stand at their goals and cannot be
    grabbed; then robot and objects are brought to the start of ``unshuffle``, in which the objects are moved. Every
    other task has ``unshuffle`` alone.

    Raises:
        ConfigError: the robot has no manipulator or no tracker.
    """

    def __init__(self, robot: Robot, task: Task) -> None:
        parts = {"manipulator, which moves objects,": robot.manipulator, "tracker": robot.tracker}
        if robot.manipulator is None or robot.tracker is None:
            lacking = " and no ".join(name for name, part in parts.items() if part is None)
            raise ConfigError(
                f"task {task.name!r} moves objects, and robot {robot.name!r} has no {lacking}",
                "run it in simulation, or name a manipulator and a tracker in the robot's YAML",
            )
        self._robot, self._settings = robot, settings(task)
        self._manipulator, self._tracker = robot.manipulator, robot.tracker
        self._episode: Episode | None = None
        self._goal_frame: RgbdFrame | None = None
        self._grab: Grab | None = None
        self.phase = ""
        self.object_source = self._tracker.info.source

    @override
    def begin_episode(self, episode: Episode, place: Callable[[], object]) -> Episode:
        self._episode, self.phase = episode, ""
        self._goal_frame = self._grab = None
        if self._settings.goal == "image":
            self._arrange(_goals(episode), place)
            robot = self._robot
            timeout_s = STREAMS["rgb"].max_age_s + robot.patience_s
            self._goal_frame = robot.camera.capture(robot.clock.now_ns(), timeout_s)
        return episode

    @override
    def begin_phase(self, place: Callable[[], T]) -> T:
        assert self._episode is not None
        walks = self._settings.walkthrough_steps > 0 and not self.phase
        self.phase = WALKTHROUGH if walks else UNSHUFFLE
        return self._arrange(_goals(self._episode) if walks else _starts(self._episode), place)

    @property
    @override
    def scored(self) -> bool:
        return self.phase != WALKTHROUGH

    @override
    def after_action(self, action: Action, index: int) -> bool:
        walks = self.phase == WALKTHROUGH
        self._grab = None
        if action is Action.GRAB_RELEASE and walks:
            self._grab = Grab(GrabOutcome.NOTHING, None, "nothing is moved in the walkthrough")
        elif action is Action.GRAB_RELEASE:
            hand = self._settings
            self._grab = self._manipulator.grab_release(hand.crosshair, hand.reach_m, hand.capacity)
        return walks and (action is Action.STOP or index >= self._settings.walkthrough_steps)

    @override
    def observe(self, after_ns: int) -> Observed:
        assert self._episode is not None
        tracked = self._tracked(after_ns)
        goal = RearrangementGoal(self._episode, self._goal_frame, tracked.held, self.phase)
        return Observed(RearrangementState(tracked.poses, tracked.held, self._grab, self.phase), goal)

    def _arrange(self, layout: Mapping[str, ObjectPose], place: Callable[[], T]) -> T:
        """Bring the objects to a layout and the robot to its start; check where the objects are seen.

        Poses by an operator are not checked, because they are stated after the run.

        Raises:
            InvalidStart: naming the first object that is elsewhere.
            StaleData: the tracker does not see one of them.
        """
        self._robot.placer.place_objects(layout)
        placed = place()
        if self.object_source is ObjectSource.OPERATOR:
            return placed
        seen = self._tracked(self._robot.clock.now_ns()).poses
        for name, wanted in layout.items():
            off_m = math.dist(seen[name].position, wanted.position) if name in seen else math.inf
            if off_m > LAYOUT_TOLERANCE_M:
                found = f"is {off_m:.2f} m from its start" if name in seen else "is not seen by the tracker"
                raise InvalidStart(
                    f"object {name!r} {found}, more than the tolerance of {LAYOUT_TOLERANCE_M:g} m",
                    "put it there and run the episode again",
                )
        return placed

    def _tracked(self, after_ns: int) -> TrackedObjects:
        """The objects' poses, measured at ``after_ns`` or later. Raises ``StaleData``."""
        robot, stream = self._robot, STREAMS["objects"]

        def probe() -> TrackedObjects | None:
            tracked = across_gap(robot.clock, lambda: self._tracker.objects(stream.max_age_s), robot.patience_s)
            return tracked if tracked.stamp_ns >= after_ns else None

        tracked = wait_for(robot.clock, probe, stream.max_age_s, poll_s=1 / stream.rate_hz)
        if tracked is None:
            raise StaleData(
                f"tracker {self._tracker.info.name!r}: has not measured every object since the action ended",
                "check that it sees all of them and how often it reports",
            )
        return tracked


def _goals(episode: Episode) -> dict[str, ObjectPose]:
    return {item.id: item.goal or item.start for item in Layout.of(episode).objects}


def _starts(episode: Episode) -> dict[str, ObjectPose]:
    return {item.id: item.start for item in Layout.of(episode).objects}


class RearrangementKind(TaskKind):
    """Rearrangement. The rule ``objects``: every object is as it should be, and nothing was harmed."""

    settings_field: ClassVar[str] = "rearrangement"
    settings_type: ClassVar[type] = Rearrangement
    details_type: ClassVar[type] = rearrangement.Layout
    sensors: ClassVar[Mapping[str, Sensor]] = REARRANGEMENT_SENSORS
    success_rules: ClassVar[tuple[str, ...]] = ("objects",)
    distance_rules: ClassVar[tuple[str, ...]] = ()
    actions: ClassVar[frozenset[Action]] = frozenset({Action.GRAB_RELEASE})
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"objects"})
    session: ClassVar[type[TaskSession]] = RearrangementSession
    state: ClassVar[StateFormat] = STATE_FORMAT

    @override
    def resolve_goals(self, task: Task, scene: Scene, episode: Episode) -> Episode:
        return rearrangement.resolve_goals(task, scene, episode)

    @override
    def targets(self, task: Task, episode: Episode, scene: Scene) -> list[tuple[float, float]]:
        return rearrangement.targets(task, episode, scene)

    @override
    def goal(self, task: Task, scene: Scene, episode: Episode, start: SE2) -> object:
        return RearrangementGoal(episode)


KIND = RearrangementKind()
