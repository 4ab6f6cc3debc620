"""Common part of the adapters of other simulators, whose own agent is the body and whose free camera is the sensor.

The simulator moves its agent and reports contacts. Images are rendered from the pose that the *log's* camera would have
on a robot there: at the recorded mount, not at the height of the simulator's agent.
"""

import importlib
import math
from abc import abstractmethod
from collections.abc import Callable
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Decision, TimedAction
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DriverMissing, InvalidStart
from robot_runtime.hal import Lens, RgbdFrame
from robot_runtime.hal.simulation import Pose3
from robot_runtime.records import EpisodeHeader, Outcome, StepRecord
from robot_runtime.scenes.scene import Scene
from sim_bridge.replay.backends.base import SimulatedStep, SimulatorBackend, UnsupportedBySimulator
from sim_bridge.replay.backends.pinhole_camera import PinholeCamera, pinhole_camera
from sim_bridge.replay.camera_pose import logged_camera, measured_by
from sim_bridge.robot.camera import quantized

PLACED_M = 0.15
"""Largest distance from the requested pose at which the simulator may place the robot."""


class ExternalBackend(SimulatorBackend):
    """Adapter of another simulator."""

    def __init__(self, header: EpisodeHeader, scene: Scene | None, images: bool) -> None:
        self.scene = scene
        self.task = header.task
        self._images = images
        self._camera = logged_camera(header)
        self._lens = Lens.of(header.intrinsics)
        self._measured = measured_by(header)
        self._begun = False

    # --- implemented by each adapter --------------------------------------------------------------------------------

    @abstractmethod
    def place(self, pose: SE2, tilt_rad: float) -> None:
        """Move the body to ``pose`` (``map``), or as near as it fits, and the head to ``tilt_rad``.

        Raises:
            InvalidStart: it does not fit there.
        """

    @abstractmethod
    def robot_state(self) -> tuple[SE2, float]:
        """Pose of the body in ``map``, and tilt of the head, up positive."""

    @abstractmethod
    def move(self, action: Action) -> bool:
        """Execute a discrete action of body or head, and return whether there was a contact.

        Raises:
            UnsupportedBySimulator: there is no such action.
        """

    def drive(self, command: TimedAction) -> bool:
        """Execute a velocity command, as :meth:`move`."""
        raise self.unsupported("has no velocity control")

    @abstractmethod
    def draw(self, camera: PinholeCamera, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Render the uncropped image of ``camera``; otherwise as :meth:`SimulatorBackend.render`."""

    # --- SimulatorBackend -------------------------------------------------------------------------------------------

    def begin(self, header: EpisodeHeader, start: SE2, tilt_rad: float) -> SimulatedStep:
        self.task = header.task
        if Action.GRAB_RELEASE in header.task.actions:
            raise self.unsupported("cannot move objects; the task needs it")
        self.place(start, tilt_rad)
        self._begun = True
        return self._step(None)

    def act(self, decision: Decision, infer_s: float = 0.0) -> SimulatedStep:
        if not self._begun:
            raise UnsupportedBySimulator(f"{self.name}: no episode has begun", "call begin() first")
        return self._step(self._execute(decision))

    def act_from(self, before: StepRecord, decision: Decision) -> tuple[SE2, SimulatedStep] | None:
        try:
            self.place(before.referee.pose, before.head.tilt_rad)
        except InvalidStart:
            return None
        began, _ = self.robot_state()
        contact = self._execute(decision)
        ended, tilt_rad = self.robot_state()
        return began, SimulatedStep(ended, tilt_rad, contact, _outcome(contact), None, None)

    def render(self, lens: Lens, map_from_camera: Pose3) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        camera = pinhole_camera(lens, self.name)
        rgb, depth_m = self.draw(camera, map_from_camera)
        return camera.crop(rgb), camera.crop(depth_m)

    def unsupported(self, what: str) -> UnsupportedBySimulator:
        """The error for something that this simulator does not support and MuJoCo does."""
        return UnsupportedBySimulator(f"{self.name}: {what}", "replay it into sim")

    def check_place(self, wanted: SE2, placed: SE2, call: str) -> None:
        """Raise ``InvalidStart``, naming the library's ``call``, unless it placed the robot near the requested pose."""
        apart_m = wanted.distance_to(placed)
        if not apart_m <= PLACED_M:
            where = f"({wanted.x_m:.2f}, {wanted.y_m:.2f})"
            raise InvalidStart(
                f"{self.name}: {call}: the robot does not fit at {where}: the next place where it does is "
                + (f"{apart_m:.2f} m away" if math.isfinite(apart_m) else "nowhere"),
                "check that the simulator's scene is the log's, and how it lies in the map (--twin-arg)",
            )

    def _execute(self, decision: Decision) -> bool:
        action = decision.action if isinstance(decision, TimedAction) else decision
        if isinstance(decision, TimedAction) and decision.settle and action is Action.VELOCITY_CONTROL:
            return self.drive(decision)
        if isinstance(decision, TimedAction) or action is Action.GRAB_RELEASE:
            raise self.unsupported(f"has no {action}")
        return False if action is Action.STOP else self.move(action)

    def _step(self, contact: bool | None) -> SimulatedStep:
        """The current state; ``contact`` is None at the start."""
        pose, tilt_rad = self.robot_state()
        frame = None
        if self._images:
            rgb, depth_m = self.render(self._lens, self._camera.pose_from(pose, 0.0, tilt_rad))
            frame = RgbdFrame(0, rgb, quantized(depth_m, self._measured))
        outcome = None if contact is None else _outcome(contact)
        return SimulatedStep(pose, tilt_rad, bool(contact), outcome, frame, None)


def imported(module: str, where: str, install: str) -> ModuleType:
    """Import a simulator's module. Raises ``DriverMissing``, whose remedy is ``install``."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DriverMissing(f"{where}: cannot import {module}: {error}", install) from error


def axes_from(ros_position: Callable[[float, float, float], tuple[float, float, float]]) -> NDArray[np.float64]:
    """The rotation (3, 3) from ROS axes to a simulator's, from its conversion of positions."""
    return np.stack([ros_position(*axis) for axis in np.eye(3)], axis=1)


def _outcome(contact: bool) -> Outcome:
    return Outcome.CONTACT if contact else Outcome.REACHED
