"""The magic pointer: grabs the object under the crosshair into a backpack and releases it again.

Batra et al. 2020, "Rearrangement": 3.2.1 (the abstraction), A.5 (grab/release with a crosshair and a reach, one object,
"released at the same relative location to the agent as it was picked"). What the paper leaves open is an option here,
with the choice of the published tutorial (habitat-lab v0.1.6, Interactive Tasks) in addition to the default.
"""

import math
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common import config
from robot_runtime.common.clock import Clock, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import InvalidCommand
from robot_runtime.hal import Manipulator, ObjectTracker, TrackerInfo, fresh
from robot_runtime.scenes.objects import Grab, GrabOutcome, ObjectPose, ObjectSource, TrackedObjects
from robot_runtime.scenes.occupancy_map import Cell
from sim_bridge.physics.scene_model import Group
from sim_bridge.physics.world import World
from sim_bridge.rendering.renderer import Vector
from sim_bridge.robot.camera import SimCamera
from sim_bridge.robot.device import SimDevice

OVERLAP_M = 0.01
"""Greatest overlap of a released object with others: an object that lies on another one touches it."""

HIT_MARGIN_M = 0.02
"""The path to a released object may be obstructed in its last part of this length."""

SETTLE_S = 2.0
"""Longest wait for objects to come to rest: they fall at most 2 m (0.6 s) and roll."""

POLL_S = 0.05


@dataclass(frozen=True)
class ManipulatorOptions(config.Strict):
    """Choices that the paper leaves open.

    Attributes:
        release: ``settle``: a released object falls until it lies on something, as in 3.2.1 and as on a real site;
            ``stay``: it stays where it was let go, in the air if need be, as A.5 says word by word.
        spot: where an object may be let go: ``free``: where nothing stands in its way or in the way to it;
            ``navigable``: in addition, above floor that the map says is free, as in the tutorial.
    """

    release: Literal["settle", "stay"] = "settle"
    spot: Literal["free", "navigable"] = "free"


@dataclass(frozen=True)
class _HeldObject:
    """A grabbed object: its pose, the point by which it was grabbed and the camera, all in base_link."""

    object_id: str
    pose: ObjectPose
    taken_at: Vector
    camera: Vector


class SimManipulator(SimDevice, Manipulator):
    """The magic pointer of a simulated robot."""

    def __init__(self, clock: Clock, world: World, camera: SimCamera, options: ManipulatorOptions) -> None:
        super().__init__("manipulator")
        self._clock, self._world, self._camera, self._options = clock, world, camera, options
        self._backpack: list[_HeldObject] = []

    @property
    def held(self) -> tuple[str, ...]:
        self._require_connected()
        return tuple(item.object_id for item in self._backpack)

    def empty(self) -> None:
        """Empty the backpack after its objects were placed elsewhere."""
        self._backpack.clear()

    def grab_release(self, crosshair: tuple[float, float], reach_m: float, capacity: int) -> Grab:
        self._require_connected()
        if not all(0 <= part <= 1 for part in crosshair):
            raise InvalidCommand(f"crosshair {crosshair} is not in the image", "give fractions between 0 and 1")
        if not (math.isfinite(reach_m) and reach_m > 0) or capacity < 1:
            raise InvalidCommand(
                f"a reach of {reach_m} m and a backpack for {capacity}", "give a positive reach and capacity"
            )
        if len(self._backpack) < capacity:
            grab = self._grab(crosshair, reach_m)
            if grab.outcome is GrabOutcome.GRABBED or not self._backpack:
                return self._settled(grab)
        return self._settled(self._release())

    def _settled(self, grab: Grab) -> Grab:
        """The same result, after all objects have come to rest."""
        objects = self._world.objects
        wait_for(self._clock, lambda: objects.all_at_rest() or None, SETTLE_S, poll_s=POLL_S)
        return grab

    def _grab(self, crosshair: tuple[float, float], reach_m: float) -> Grab:
        camera, axes = self._camera.viewpoint()
        k = self._camera.info.intrinsics
        right = (crosshair[0] - 0.5) * k.width / k.fx
        down = (crosshair[1] - 0.5) * k.height / k.fy
        ray = axes @ np.array([right, -down, -1.0])
        ray /= np.linalg.norm(ray)
        geom, distance_m = self._first_hit(camera, ray, (Group.VISUAL, Group.CULLED))
        if geom < 0 or distance_m > reach_m:
            return Grab(GrabOutcome.NOTHING, None, f"nothing is under the crosshair within {reach_m:g} m")
        object_id = self._world.objects.of_geom(geom)
        if object_id is None:
            what = self._world.scene_model.geom_owner[geom] or "the ground"
            return Grab(GrabOutcome.NOTHING, None, f"{what}, at {distance_m:.2f} m, cannot be moved")
        base = self._world.pose
        pose = self._world.objects.pose(object_id)
        hand = camera + distance_m * ray
        self._backpack.append(
            _HeldObject(object_id, pose.moved(base.inverse()), _to_base(base, hand), _to_base(base, camera))
        )
        self._world.objects.remove(object_id)
        return Grab(GrabOutcome.GRABBED, object_id)

    def _release(self) -> Grab:
        held = self._backpack[-1]
        pose = held.pose.moved(self._world.pose)
        refusal = self._release_obstacle(held, pose)
        if refusal is not None:
            return Grab(GrabOutcome.NOTHING, held.object_id, f"{held.object_id} cannot be released: {refusal}")
        self._backpack.pop()
        self._world.objects.insert(held.object_id, pose, settle=self._options.release == "settle")
        return Grab(GrabOutcome.RELEASED, held.object_id)

    def _release_obstacle(self, held: _HeldObject, pose: ObjectPose) -> str | None:
        """The reason why an object cannot be released at ``pose``; None if it can."""
        scene, owners = self._world.scene_model.scene, self._world.scene_model.geom_owner
        x_m, y_m, _ = pose.position
        cell = scene.map.cells[scene.map.to_cell(x_m, y_m)] if scene.map.contains(x_m, y_m) else Cell.UNKNOWN
        if cell == Cell.UNKNOWN:
            return "there is no floor"
        if self._options.spot == "navigable" and cell != Cell.FREE:
            return "the map says that the floor there is not free"
        base = self._world.pose
        camera, hand = _to_map(base, held.camera), _to_map(base, held.taken_at)
        path = hand - camera
        length_m = float(np.linalg.norm(path))
        geom, distance_m = self._first_hit(camera, path / length_m, (Group.VISUAL, Group.CULLED, Group.COLLISION))
        if geom >= 0 and distance_m < length_m - HIT_MARGIN_M:
            return f"{owners[geom] or 'the ground'} is in the way"
        geom, depth_m = self._world.objects.deepest_overlap(held.object_id, pose)
        if depth_m > OVERLAP_M:
            return f"{owners[geom] or self._solid(geom)} stands there"
        return None

    def _solid(self, geom: int) -> str:
        compiled = self._world.scene_model
        return "the robot" if geom in (compiled.robot_geom, compiled.mast_geom) else "the floor"

    def _first_hit(self, start: Vector, direction: Vector, groups: tuple[Group, ...]) -> tuple[int, float]:
        """The first geom of these groups along a ray, and how far it is; (-1, -1.0) if there is none."""
        counted = np.zeros(mujoco.mjNGROUP, np.uint8)
        counted[list(groups)] = 1
        hit: NDArray[np.int32] = np.full(1, -1, np.int32)
        data = self._world.data
        model = self._world.scene_model.model
        distance_m = mujoco.mj_ray(model, data, start, direction, counted, 1, -1, hit, None)
        return int(hit[0]), float(distance_m)


def _to_base(base: SE2, point: Vector) -> Vector:
    return _to_map(base.inverse(), point)


def _to_map(base: SE2, point: Vector) -> Vector:
    return np.array([*base.apply(float(point[0]), float(point[1])), point[2]])


class SimTracker(SimDevice, ObjectTracker):
    """A tracker that reads the objects' poses from physics, exact and always available."""

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
