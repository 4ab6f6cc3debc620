"""A tracker of the simulated objects, exact and always available."""

from __future__ import annotations

from robot_runtime.common.clock import Clock
from robot_runtime.hal import ObjectTracker, TrackerInfo
from robot_runtime.hal.streams import fresh
from robot_runtime.scenes.objects import ObjectSource, TrackedObjects
from sim_bridge.physics.world import World
from sim_bridge.robot.device import SimDevice
from sim_bridge.robot.manipulator import SimManipulator


class SimTracker(SimDevice, ObjectTracker):
    """Reads the objects' poses from physics."""

    def __init__(self, clock: Clock, world: World, manipulator: SimManipulator) -> None:
        super().__init__("tracker")
        self._clock, self._world, self._manipulator = clock, world, manipulator
        self._info = TrackerInfo("physics", ObjectSource.SIMULATOR, 1 / world.step_s)

    @property
    def info(self) -> TrackerInfo:
        return self._info

    def objects(self, max_age_s: float) -> TrackedObjects:
        self._require_connected()
        now_ns = self._clock.now_ns()
        tracked = TrackedObjects(now_ns, self._world.objects.poses(), self._manipulator.held)
        return fresh("objects", tracked, now_ns, max_age_s)
