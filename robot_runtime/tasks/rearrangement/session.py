"""What an episode in which objects are moved needs beside the robot's motion: phases, layouts, the hand, the tracker.

A task with ``goal: experience`` has two phases: in ``walkthrough`` the objects stand as they are to be in the end and
cannot be taken; then robot and objects are brought to the start of ``unshuffle``, where they are put right. Every other
task that moves objects has ``unshuffle`` alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from robot_runtime.actions.discrete import Action
from robot_runtime.common.clock import wait_for
from robot_runtime.errors import ConfigError, InvalidStart, StaleData
from robot_runtime.hal import Robot
from robot_runtime.hal.streams import STREAMS
from robot_runtime.scenes.objects import Grab, GrabOutcome, ObjectPose, ObjectSource, TrackedObjects
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Rearrangement, Task

WALKTHROUGH = "walkthrough"
UNSHUFFLE = "unshuffle"

LAYOUT_TOLERANCE_M = 0.10
"""How far from its start an object may be seen when the episode begins: what a person with a tape measure achieves."""


def goal_state(episode: Episode) -> dict[str, ObjectPose]:
    """Where every object of the episode is to be in the end."""
    return {item.id: item.goal or item.start for item in episode.objects}


def start_state(episode: Episode) -> dict[str, ObjectPose]:
    """Where every object of the episode is when the robot begins to move them."""
    return {item.id: item.start for item in episode.objects}


class RearrangementSession:
    """The moving of objects on one robot, by the rules of one task.

    Attributes:
        phases: names of the phases of an episode, in order.

    Raises:
        ConfigError: the robot has no hand, or nobody says where the objects are.
    """

    def __init__(self, robot: Robot, task: Task, rules: Rearrangement) -> None:
        lacking = [
            what
            for what, part in (("manipulator, which moves objects,", robot.manipulator), ("tracker", robot.tracker))
            if part is None
        ]
        if robot.manipulator is None or robot.tracker is None:
            raise ConfigError(
                f"task {task.name!r} moves objects, and robot {robot.name!r} has no {' and no '.join(lacking)}",
                "run it in simulation, or name a manipulator and a tracker in the robot's YAML",
            )
        self.phases = (WALKTHROUGH, UNSHUFFLE) if rules.walkthrough_steps else (UNSHUFFLE,)
        self._robot, self._rules = robot, rules
        self._hand, self._tracker = robot.manipulator, robot.tracker

    @property
    def source(self) -> ObjectSource:
        """Who says where the objects are."""
        return self._tracker.info.source

    def put_objects(self, poses: Mapping[str, ObjectPose]) -> None:
        """Objects to a state of the episode, before the robot is placed. Raises what ``Placer.place_objects`` does."""
        self._robot.placer.place_objects(poses)

    def check_layout(self, poses: Mapping[str, ObjectPose]) -> None:
        """Whether every object is seen where it was to be put; a person who tells it later cannot tell it now.

        Raises:
            InvalidStart: naming the first object that is not.
            StaleData: the tracker does not see one of them.
        """
        if self.source is ObjectSource.OPERATOR:
            return
        seen = self.tracked(self._robot.clock.now_ns()).poses
        for name, wanted in poses.items():
            off_m = math.dist(seen[name].position, wanted.position) if name in seen else math.inf
            if off_m > LAYOUT_TOLERANCE_M:
                found = f"is {off_m:.2f} m from its start" if name in seen else "is not seen by the tracker"
                raise InvalidStart(
                    f"object {name!r} {found}, more than {LAYOUT_TOLERANCE_M:g} m is no start",
                    "put it there and run the episode again",
                )

    def ends_walkthrough(self, phase: str, chosen: Action, index: int) -> bool:
        """Whether an action is the last of the walkthrough: ``stop``, or as many as there may be."""
        return phase == WALKTHROUGH and (chosen is Action.STOP or index >= self._rules.walkthrough_steps)

    def grab_release(self, phase: str) -> Grab:
        """What ``grab_release`` does in a phase: see ``Manipulator``."""
        if phase == WALKTHROUGH:
            return Grab(GrabOutcome.NOTHING, None, "nothing is moved in the walkthrough")
        rules = self._rules
        return self._hand.grab_release(rules.crosshair, rules.reach_m, rules.capacity)

    @property
    def shows_goal(self) -> bool:
        """Whether the agent is given an image of the goal state."""
        return self._rules.goal == "image"

    def tracked(self, after_ns: int) -> TrackedObjects:
        """Where the objects are, measured at ``after_ns`` or later.

        Raises:
            StaleData: if that takes longer than an object's pose may be old.
        """
        max_age_s = STREAMS["objects"].max_age_s

        def probe() -> TrackedObjects | None:
            tracked = self._tracker.objects(max_age_s)
            return tracked if tracked.stamp_ns >= after_ns else None

        tracked = wait_for(self._robot.clock, probe, max_age_s, poll_s=1 / STREAMS["objects"].rate_hz)
        if tracked is None:
            raise StaleData(
                f"tracker {self._tracker.info.name!r}: has not measured every object since the action ended",
                "check that it sees all of them and how often it reports",
            )
        return tracked
