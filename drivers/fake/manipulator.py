"""The fake robot's hand and object tracker: objects are points that can be grabbed, carried and released."""

import math
from collections.abc import Mapping

import numpy as np

from drivers.fake.device import FakeDevice
from drivers.fake.ground_truth import GroundTruth
from robot_runtime.common.clock import SimulatedClock
from robot_runtime.common.geometry import optical_axes
from robot_runtime.errors import EpisodeError, InvalidCommand
from robot_runtime.hal import CameraInfo, Manipulator, ObjectTracker, TrackerInfo, fresh
from robot_runtime.hal.fault_schedule import Script
from robot_runtime.scenes.objects import Grab, GrabOutcome, ObjectPose, ObjectSource, TrackedObjects

OBJECT_RADIUS_M = 0.1
"""Radius of an object for the hand; the camera does not show objects."""


class FakeObjects:
    """True poses of the objects, held ones included.

    Args:
        at: initial positions in ``map`` by id.
    """

    def __init__(self, at: Mapping[str, tuple[float, float, float]]) -> None:
        self._home = {name: ObjectPose(position) for name, position in at.items()}
        self.poses = dict(self._home)
        self.held: list[tuple[str, ObjectPose]] = []
        """Held objects with their pose relative to base_link, in the order of grabbing."""

    def put(self, poses: Mapping[str, ObjectPose]) -> None:
        """Set the poses of objects and reset the others. Raises ``EpisodeError``, without moving any."""
        for name, pose in poses.items():
            fault = pose.fault if name in self._home else "is not among the fake robot's 'objects'"
            if fault is not None:
                raise EpisodeError(f"object {name!r}: {fault}", "correct the episode or the robot's YAML")
        self.poses = {**self._home, **poses}
        self.held.clear()


class FakeManipulator(FakeDevice, Manipulator):
    """Hand that grabs the nearest object on the crosshair's ray and releases anywhere before the wall."""

    def __init__(
        self, clock: SimulatedClock, truth: GroundTruth, script: Script, fake_objects: FakeObjects, camera: CameraInfo
    ) -> None:
        super().__init__("manipulator", clock, script)
        self._truth, self._objects, self._camera = truth, fake_objects, camera

    @property
    def held(self) -> tuple[str, ...]:
        self._require_connected()
        return tuple(name for name, _ in self._objects.held)

    def grab_release(self, crosshair: tuple[float, float], reach_m: float, capacity: int) -> Grab:
        self._require_connected()
        if not all(0 <= part <= 1 for part in crosshair):
            raise InvalidCommand(f"crosshair {crosshair} is not in the image", "give fractions between 0 and 1")
        if not (math.isfinite(reach_m) and reach_m > 0) or capacity < 1:
            raise InvalidCommand(f"reach {reach_m} m, capacity {capacity}", "give a positive reach and capacity")
        if len(self._objects.held) < capacity:
            name = self._object_at(crosshair, reach_m)
            if name is not None:
                pose = self._objects.poses.pop(name).moved(self._truth.pose.inverse())
                self._objects.held.append((name, pose))
                return Grab(GrabOutcome.GRABBED, name)
        if not self._objects.held:
            return Grab(GrabOutcome.NOTHING, None, f"nothing is under the crosshair within {reach_m:g} m")
        return self._release()

    def _release(self) -> Grab:
        name, relative = self._objects.held[-1]
        pose = relative.moved(self._truth.pose)
        wall_x_m = self._truth.wall_x_m
        if wall_x_m is not None and pose.position[0] >= wall_x_m:
            return Grab(GrabOutcome.NOTHING, name, f"{name} cannot be released inside the wall")
        self._objects.held.pop()
        self._objects.poses[name] = pose
        return Grab(GrabOutcome.RELEASED, name)

    def _object_at(self, crosshair: tuple[float, float], reach_m: float) -> str | None:
        k, mount, truth = self._camera.intrinsics, self._camera.mount, self._truth
        optical = ((crosshair[0] - 0.5) * k.width / k.fx, (crosshair[1] - 0.5) * k.height / k.fy, 1.0)
        ray = optical_axes(truth.pose.yaw_rad + truth.pan_rad, truth.tilt_rad) @ np.array(optical)
        ray /= np.linalg.norm(ray)
        eye = np.array([*truth.pose.apply(mount.x_m, mount.y_m), mount.z_m])
        met = []
        for name, pose in self._objects.poses.items():
            to = np.array(pose.position) - eye
            along_m = float(to @ ray)
            beside_m = float(np.linalg.norm(to - along_m * ray))
            hit_m = along_m - math.sqrt(max(0.0, OBJECT_RADIUS_M**2 - beside_m**2))
            if beside_m <= OBJECT_RADIUS_M and 0 <= hit_m <= reach_m:
                met.append((hit_m, name))
        return min(met)[1] if met else None


class FakeTracker(FakeDevice, ObjectTracker):
    """Tracker of all objects that are not carried, without latency."""

    def __init__(self, clock: SimulatedClock, script: Script, fake_objects: FakeObjects, rate_hz: float) -> None:
        super().__init__("tracker", clock, script)
        self._objects = fake_objects
        self._info = TrackerInfo("fake tracker", ObjectSource.TRACKER, rate_hz)

    @property
    def info(self) -> TrackerInfo:
        return self._info

    def objects(self, max_age_s: float) -> TrackedObjects:
        self._require_connected()
        now_ns = self._clock.now_ns()
        held = tuple(name for name, _ in self._objects.held)
        return fresh("objects", TrackedObjects(now_ns, dict(self._objects.poses), held), now_ns, max_age_s)
