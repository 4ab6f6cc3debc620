"""Movable objects as free bodies of a MuJoCo model.

A body's origin is the middle of the object's box, so that its pose is an :class:`ObjectPose`. Objects sleep (MuJoCo's
term: at rest, out of the solver) until the robot or another object touches them, so that a scene stays exactly as
it was placed, and costs nothing. Carried and absent objects sleep in a store far outside the scene.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from robot_runtime.scenes.objects import ObjectPose, Point3, Quaternion
from robot_runtime.scenes.scene import Asset, SceneObject

GRAVITY_M_S2 = 9.81

FRICTION = 0.5
"""Between household goods and wood, tiles or each other; the robot's own skin has none."""

PRIORITY = 1
"""Of an object's contact parameters over the fixed world's."""

ONLY_OBJECTS = 2
"""Bit of MuJoCo's contype and conaffinity of what objects touch and the robot does not."""

CONTACT = {
    "contype": 1 | ONLY_OBJECTS,
    "conaffinity": 1 | ONLY_OBJECTS,
    "priority": PRIORITY,
    "friction": (FRICTION, 0.005, 0.0001),
}
"""Settings of an object's contact shapes."""

STORE_Z_M = 1000.0
"""Height of the first object that is out of the world: far beyond the camera's far plane."""

STORE_SPACING_M = 10.0

_AWAKE = -11
"""``tree_asleep`` of what has just moved: minus one, minus MuJoCo's mjMINAWAKE."""


@dataclass(frozen=True)
class Movable:
    """One free body.

    Attributes:
        item: the object as the scene describes it.
        added: whether episodes add it to the scene.
        body: MuJoCo's id of its body.
        tree: id of its kinematic tree.
        qpos: address of its 7 positions.
        dof: address of its 6 velocities.
    """

    item: SceneObject
    added: bool
    body: int
    tree: int
    qpos: int
    dof: int
    geoms: frozenset[int]


def mass_kg(size: Point3) -> float:
    """Approximate mass of an object by its box: 0.25 kg for a liter, and less per liter the larger it is.

    The rule fits a mug (1.2 l, 0.3 kg), a laptop (18 l of box, 1.6 kg) and a potted plant (80 l, 4 kg).
    """
    liters = 1000 * math.prod(max(edge_m, 0.005) for edge_m in size)
    return float(0.25 * liters**0.65)


def enable_sleep(spec: mujoco.MjSpec) -> None:
    """Turn on sleeping, so that objects at rest are left out of the solver."""
    spec.option.enableflags |= mujoco.mjtEnableBit.mjENBL_SLEEP


def add_body(world: mujoco.MjsBody, item: SceneObject) -> mujoco.MjsBody:
    """A free body at the object's place, asleep, without geoms."""
    body = world.add_body(name=_name(item), pos=item.pose.position, quat=item.pose.quaternion)
    body.sleep = mujoco.mjtSleepPolicy.mjSLEEP_INIT
    x, y, z = (max(edge_m, 0.005) for edge_m in item.size)
    mass = mass_kg(item.size)
    body.mass, body.ipos, body.explicitinertial = mass, (0, 0, 0), True
    body.inertia = tuple(mass / 12 * (a * a + b * b) for a, b in ((y, z), (x, z), (x, y)))
    body.add_freejoint()
    return body


def add_box(body: mujoco.MjsBody, item: SceneObject, visual: int, collision: int) -> list[mujoco.MjsGeom]:
    """The object as its box, drawn and solid; for objects without meshes."""
    shape = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": tuple(max(edge_m, 0.005) / 2 for edge_m in item.size)}
    # The hue depends on the category, so that boxes differ.
    hue = (sum(map(ord, item.category)) * 0.61803) % 1.0
    rgb = 0.5 + 0.35 * np.cos(2 * math.pi * (hue + np.array([0, 1 / 3, 2 / 3])))
    return [
        body.add_geom(**shape, rgba=(*rgb, 1.0), contype=0, conaffinity=0, group=visual),
        body.add_geom(**shape, **CONTACT, group=collision),
    ]


def in_object(item: SceneObject, asset: Asset) -> tuple[Point3, Quaternion]:
    """Pose of an asset in the frame of the object that it belongs to."""
    turn = Rotation.from_euler("z", -item.yaw_deg, degrees=True)
    x, y, z = turn.apply(np.subtract(asset.position, item.center)).tolist()
    w, i, j, k = asset.quaternion
    i, j, k, w = (turn * Rotation.from_quat([i, j, k, w])).as_quat().tolist()
    return (x, y, z), (w, i, j, k)


def find(model: mujoco.MjModel, item: SceneObject, added: bool) -> Movable:
    """The ids of an object that :func:`add_body` added, in the compiled model."""
    body = model.body(_name(item)).id
    joint = model.body_jntadr[body]
    return Movable(
        item,
        added,
        body,
        int(model.body_treeid[body]),
        int(model.jnt_qposadr[joint]),
        int(model.jnt_dofadr[joint]),
        frozenset(np.flatnonzero(model.geom_bodyid == body).tolist()),
    )


def _name(item: SceneObject) -> str:
    return f"object {item.id}"


class MovableObjects:
    """The free bodies of a model in one state; empty in a scene without movable objects."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, found: tuple[Movable, ...]) -> None:
        self.by_id = {movable.item.id: movable for movable in found}
        self.in_store: set[str] = set()
        self._model, self._data = model, data
        self._robot_tree = int(model.body_treeid[model.body("robot").id])
        self._of_geom = {geom: movable.item.id for movable in found for geom in movable.geoms}
        self._place_in_store = {
            name: (0.0, 0.0, STORE_Z_M + STORE_SPACING_M * number) for number, name in enumerate(self.by_id)
        }
        if found:
            self.put({})

    def of_geom(self, geom: int) -> str | None:
        """The object that a geom belongs to."""
        return self._of_geom.get(geom)

    def pose(self, object_id: str) -> ObjectPose:
        """Pose of an object in ``map``."""
        start = self.by_id[object_id].qpos
        x, y, z, w, i, j, k = self._data.qpos[start : start + 7].tolist()
        return ObjectPose((x, y, z), (w, i, j, k))

    def poses(self) -> dict[str, ObjectPose]:
        """Poses of all objects in the world."""
        return {name: self.pose(name) for name in self.by_id if name not in self.in_store}

    def put(self, poses: Mapping[str, ObjectPose]) -> None:
        """Place all objects at rest; one without a pose goes to the scene's, an added one out of the world."""
        self.in_store.clear()
        for name, movable in self.by_id.items():
            pose = poses.get(name)
            if pose is None and movable.added:
                self._store(movable)
            else:
                self._set(movable, pose or movable.item.pose)
        self._apply(self._asleep(awake=self.by_id))
        self._apply(self._asleep(asleep=self.by_id))

    def remove(self, object_id: str) -> None:
        """Take one object out of the world and wake those that it touched; they may have lain on it."""
        movable = self.by_id[object_id]
        neighbors = self._touching(movable)
        self._store(movable)
        self._apply(self._asleep(awake=[object_id]))
        self._apply(self._asleep(asleep=[object_id], awake=neighbors))

    def insert(self, object_id: str, pose: ObjectPose, settle: bool) -> None:
        """Insert one object at ``pose``: it falls if ``settle``, else it stays until something touches it."""
        before = self._asleep()
        self._set(self.by_id[object_id], pose)
        self._apply(self._asleep(awake=[object_id]))
        if not settle:
            self._apply(before)

    def deepest_overlap(self, object_id: str, pose: ObjectPose) -> tuple[int, float]:
        """The deepest overlap that an object in the store would have at ``pose``.

        Returns:
            Id of the other geom and the depth in meters; (-1, 0.0) without overlap. The object stays in the store.
        """
        movable = self.by_id[object_id]
        before = self._asleep()
        self._set(movable, pose)
        self._apply(self._asleep(awake=[object_id]))
        worst, depth_m = -1, 0.0
        for pair, distance_m in zip(self._data.contact.geom.tolist(), self._data.contact.dist.tolist(), strict=True):
            for geom, other in (pair, pair[::-1]):
                if geom in movable.geoms and -distance_m > depth_m:
                    worst, depth_m = other, -distance_m
        self._store(movable)
        self._apply(self._asleep(awake=[object_id]))
        self._apply(before)
        return worst, depth_m

    def wake_all(self) -> None:
        """Wake all objects in the world, to find out whether they are at rest."""
        self._apply(self._asleep(awake=[name for name in self.by_id if name not in self.in_store]))

    def at_rest(self, object_id: str) -> bool:
        """Whether an object has come to rest."""
        return bool(self._data.tree_asleep[self.by_id[object_id].tree] >= 0)

    def all_at_rest(self) -> bool:
        """Whether everything has come to rest."""
        return all(map(self.at_rest, self.by_id))

    def _touching(self, movable: Movable) -> list[str]:
        before = self._asleep()
        self._apply(self._asleep(awake=[movable.item.id]))
        names = {
            self._of_geom.get(other)
            for pair in self._data.contact.geom.tolist()
            for geom, other in (pair, pair[::-1])
            if geom in movable.geoms
        }
        self._apply(before)
        return sorted(name for name in names if name is not None)

    def _store(self, movable: Movable) -> None:
        self._set(movable, ObjectPose(self._place_in_store[movable.item.id]))
        self.in_store.add(movable.item.id)

    def _set(self, movable: Movable, pose: ObjectPose) -> None:
        self.in_store.discard(movable.item.id)
        w, i, j, k = np.divide(pose.quaternion, math.hypot(*pose.quaternion)).tolist()
        self._data.qpos[movable.qpos : movable.qpos + 7] = (*pose.position, w, i, j, k)
        self._data.qvel[movable.dof : movable.dof + 6] = 0
        self._data.qacc_warmstart[movable.dof : movable.dof + 6] = 0

    def _asleep(self, asleep: Iterable[str] = (), awake: Iterable[str] = ()) -> NDArray[np.int32]:
        """A copy of ``tree_asleep`` with the state of these objects changed."""
        state: NDArray[np.int32] = self._data.tree_asleep.copy()
        for name in asleep:
            state[self.by_id[name].tree] = self.by_id[name].tree
        for name in awake:
            state[self.by_id[name].tree] = _AWAKE
        return state

    def _apply(self, asleep: NDArray[np.int32]) -> None:
        """Recompute the state with these trees asleep; whatever an awake one touches wakes up.

        MuJoCo updates its internal lists from ``tree_asleep`` only when it wakes a tree itself. So the robot, which
        never sleeps, is marked asleep: MuJoCo wakes it at once and takes everything else as written.
        """
        data, robot = self._data, self._robot_tree
        data.tree_asleep[:] = asleep
        data.tree_awake[:] = asleep < 0
        data.tree_asleep[robot] = robot
        data.tree_awake[robot] = 1
        mujoco.mj_step1(self._model, data)
