"""What twins of other simulators have in common: their own agent is the body, and a free camera is the eye.

The simulator moves its agent and says what it touched. What is seen is drawn from where the *log's* camera would be on
a robot that stands there: at the recorded mount, not at the height of the simulator's own agent.
"""

from __future__ import annotations

import importlib
import math
from abc import abstractmethod
from collections.abc import Callable
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.continuous import Decision, VelocityCommand, WaypointCommand
from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DriverMissing, InvalidStart
from robot_runtime.hal import RgbdFrame
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import Pose3
from robot_runtime.records import EpisodeHeader, Outcome, StepRecord
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.task import Task
from sim_bridge.replay.backends.base import Twin, TwinStep, TwinUnable
from sim_bridge.replay.backends.pinhole_camera import PlainCamera, plain_camera
from sim_bridge.replay.camera_pose import logged_camera, measured_by
from sim_bridge.robot.camera import as_measured

PLACED_M = 0.15
"""How far from where it is wanted the simulator may put the robot."""


class ForeignTwin(Twin):
    """A twin in a simulator that is not ours.

    Args:
        header: of the log. images: whether steps have frames.

    Attributes:
        scene: of the log, by which episodes are judged; None if there is none.
    """

    def __init__(self, header: EpisodeHeader, scene: Scene | None, images: bool) -> None:
        self.scene = scene
        self._task = header.task
        self._images = images
        self._camera = logged_camera(header)
        self._lens = Lens.of(header.intrinsics)
        self._measured = measured_by(header)
        self._stands = False

    # --- what a simulator must do -----------------------------------------------------------------------------------

    @abstractmethod
    def place(self, pose: SE2, tilt_rad: float) -> None:
        """Body to ``pose`` (``map``), or as near as it fits; head to ``tilt_rad``. Raises ``InvalidStart``."""

    @abstractmethod
    def stands_at(self) -> tuple[SE2, float]:
        """Where the body is, in ``map``, and the head's tilt, up positive."""

    @abstractmethod
    def move(self, action: Action) -> bool:
        """Carry out a discrete action that moves body or head; whether something stopped it. Raises ``TwinUnable``."""

    def drive(self, command: VelocityCommand) -> bool:
        """Carry out a velocity command; likewise."""
        raise self.unable("has no velocity control")

    @abstractmethod
    def draw(self, camera: PlainCamera, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """The whole image of ``camera``, colour and depth as in :meth:`Twin.view`. Raises ``TwinUnable``."""

    # --- Twin -------------------------------------------------------------------------------------------------------

    def begin(self, header: EpisodeHeader, start: SE2, tilt_rad: float) -> TwinStep:
        self._task = header.task
        if header.task.kind == "rearrangement":
            raise self.unable("moves no objects, which the task does")
        self.place(start, tilt_rad)
        self._stands = True
        return self._step(None)

    def act(self, decision: Decision) -> TwinStep:
        if not self._stands:
            raise TwinUnable(f"{self.name}: stands nowhere yet", "call begin() first")
        return self._step(self._carry_out(decision))

    def act_from(self, before: StepRecord, decision: Decision) -> tuple[SE2, TwinStep] | None:
        try:
            self.place(before.referee.pose, before.head.tilt_rad)
        except InvalidStart:
            return None
        began, _ = self.stands_at()
        contact = self._carry_out(decision)
        ended, tilt_rad = self.stands_at()
        return began, TwinStep(ended, tilt_rad, contact, _outcome(contact), None, None)

    def view(self, lens: Lens, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        camera = plain_camera(lens, self.name)
        rgb, depth_m = self.draw(camera, map_from_camera)
        return camera.cut(rgb), camera.cut(depth_m)

    @property
    def task(self) -> Task:
        """Of the present episode."""
        return self._task

    def unable(self, what: str) -> TwinUnable:
        """The error of something that this simulator does not do, and ours does."""
        return TwinUnable(f"{self.name}: {what}", "replay it into sim")

    def check_place(self, wanted: SE2, found: SE2) -> None:
        """Whether the simulator put the robot near enough to where it was wanted. Raises ``InvalidStart``."""
        apart_m = wanted.distance_to(found)
        if not apart_m <= PLACED_M:
            where = f"({wanted.x_m:.2f}, {wanted.y_m:.2f})"
            raise InvalidStart(
                f"{self.name}: the robot does not fit at {where}: the next place where it does is "
                + (f"{apart_m:.2f} m away" if math.isfinite(apart_m) else "nowhere"),
                "check that the simulator's scene is the log's, and how it lies in the map (--twin-arg)",
            )

    def _carry_out(self, decision: Decision) -> bool:
        if isinstance(decision, VelocityCommand):
            return self.drive(decision)
        if isinstance(decision, WaypointCommand) or decision is Action.GRAB_RELEASE:
            what = decision.action if isinstance(decision, WaypointCommand) else decision
            raise self.unable(f"has no {what.value}")
        return False if decision is Action.STOP else self.move(decision)

    def _step(self, contact: bool | None) -> TwinStep:
        """Where the twin is now; ``contact`` is None at the start."""
        pose, tilt_rad = self.stands_at()
        frame = None
        if self._images:
            rgb, depth_m = self.view(self._lens, self._camera.seen_from(pose, 0.0, tilt_rad))
            frame = RgbdFrame(0, rgb, as_measured(depth_m, self._measured))
        outcome = None if contact is None else _outcome(contact)
        return TwinStep(pose, tilt_rad, bool(contact), outcome, frame, None)


def imported(module: str, where: str, install: str) -> ModuleType:
    """A simulator's Python module. Raises ``DriverMissing`` with how to ``install`` it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DriverMissing(f"{where}: cannot import {module}: {error}", install) from error


def axes_from(ros_position: Callable[[float, float, float], tuple[float, float, float]]) -> NDArray[np.float64]:
    """What takes vectors along the ROS axes to a simulator's, (3, 3), by how it converts positions."""
    return np.stack([ros_position(*axis) for axis in np.eye(3)], axis=1)


def _outcome(contact: bool) -> Outcome:
    return Outcome.CONTACT if contact else Outcome.REACHED
