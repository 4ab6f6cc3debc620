"""Operator as the source of object poses: ``driver: drivers.object_tracker.manual.make_tracker``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robot_runtime.common import config
from robot_runtime.errors import NotConnected, StaleData
from robot_runtime.hal import ObjectTracker, Robot, TrackerInfo
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.objects import ObjectSource, TrackedObjects


class OperatorTracker(ObjectTracker):
    """Tracker without measurements: an operator states the objects' poses afterwards (`robot-runtime verdict`).

    The log of such a run has no object poses; its score requires the operator's verdict and names its source.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._connected = False

    @property
    def info(self) -> TrackerInfo:
        return TrackerInfo("operator", ObjectSource.OPERATOR, 1.0)

    def connect(self) -> None:
        self._connected = True

    def close(self) -> None:
        self._connected = False

    def objects(self, max_age_s: float) -> TrackedObjects:
        if not self._connected:
            raise NotConnected("operator's tracker: is not connected", "call connect() before using it")
        if max_age_s < 0:
            raise StaleData("operator's tracker: nothing is younger than now", "allow an age of 0 s or more")
        hand = self._robot.manipulator
        return TrackedObjects(self._robot.clock.now_ns(), {}, hand.held if hand is not None else ())


@dataclass(frozen=True)
class OperatorOptions(config.Strict):
    """The ``options`` of the operator's tracker: there are none."""


def make_tracker(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> ObjectTracker:
    """Return the tracker. Raises ``ConfigError`` for any option."""
    config.parse(dict(options), OperatorOptions, where)
    return OperatorTracker(robot)
