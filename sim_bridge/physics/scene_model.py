"""A scene folder as a MuJoCo model with the robot in it.

Every asset's visual meshes become geoms that are drawn and touch nothing; its contact shapes become geoms that touch
the robot and are not drawn. The robot is one upright cylinder on planar joints that is not drawn either: the camera
sits inside it.

Where a task moves objects, those that the scene calls movable become free bodies under gravity, see
:mod:`sim_bridge.physics.movable_objects`. Otherwise everything but the robot is part of the fixed world.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from robot_runtime.common.config import NonNegative, Positive, Strict
from robot_runtime.common.quantities import BodyRadius, Response
from robot_runtime.errors import SceneError
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.scenes.scene import Asset, Collision, Scene, SceneObject, Visual
from robot_runtime.scenes.tag_map import Tag
from sim_bridge.physics import movable_objects, tags

TOLERANCE_M = 0.03
"""Greatest height above or below z = 0 of a surface that carries a wheel."""

_SAMPLES = 64


def has_floor(model: mujoco.MjModel, data: mujoco.MjData, groups: tuple[int, ...], x_m: float, y_m: float) -> bool:
    """Whether a ray straight down from under the robot's body meets a surface near z = 0."""
    distance_m = mujoco.mj_ray(
        model, data, (x_m, y_m, TOLERANCE_M), (0.0, 0.0, -1.0), _group_mask(groups), 1, -1, np.empty(1, np.int32), None
    )
    return bool(0 <= distance_m <= 2 * TOLERANCE_M)


def is_missing(model: mujoco.MjModel, groups: tuple[int, ...], occupancy: OccupancyMap) -> bool:
    """Whether most of the map's free cells have no floor: the scene's meshes leave it out."""
    free = np.argwhere(occupancy.cells == Cell.FREE)
    if len(free) == 0:
        return False
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    sampled = free[:: max(1, len(free) // _SAMPLES)]
    points = [occupancy.to_point(row, column) for row, column in sampled.tolist()]
    carried = sum(has_floor(model, data, groups, x_m, y_m) for x_m, y_m in points)
    return 2 * carried < len(points)


@functools.cache
def _group_mask(groups: tuple[int, ...]) -> NDArray[np.uint8]:
    mask = np.zeros(mujoco.mjNGROUP, np.uint8)
    mask[list(groups)] = 1
    return mask


class Group(IntEnum):
    """MuJoCo's geom groups, used to choose what is drawn and what rays hit."""

    VISUAL = 0
    COLLISION = 1
    ROBOT = 2
    GROUND = 3
    CULLED = 4


SOLID = (Group.VISUAL, Group.CULLED, Group.COLLISION)
"""Groups that can carry a wheel, including geoms outside the camera's view."""

_MULTIPLE_CONTACTS = int(getattr(mujoco.mjtDisableBit, "mjDSBL_MULTICCD", 0))
"""MuJoCo's search for several contacts of two convex shapes, which earlier versions do only on request.

Objects lie still on several contacts. A cylinder at the edge of a box is pushed along the normal of a face by them.
"""

_UNTURNED = 1e6
"""Factor on the robot's rotational inertia."""

NEAR_M = 0.04
"""Nearest depth that is drawn; the robot's own radius keeps everything farther away than that."""

FAR_M = 60.0
"""The far plane, in scenes that are not larger. MuJoCo draws its sky at 0.7 of it and hides what lies behind."""

SKY_M = FAR_M / 2
"""Depths below this one belong to surfaces of the scene."""


@dataclass(frozen=True)
class Body(Strict):
    """The robot's shape and mass, as physics sees them.

    The shape is a rigid cylinder of ``radius_m - bumper_travel_m``, as in the simulators that policies are trained in,
    from ``bottom_m`` to ``top_m``, the heights at which a scene's map counts an obstacle. A bumper ring of ``radius_m``
    surrounds it up to ``bumper_top_m``. As on the real robot, what is higher above the floor, such as a tabletop, stops
    the body unfelt, and the wheels slip.

    Attributes:
        bumper_top_m: the Kobuki's is 0.1 m high; ``top_m`` makes every contact press the bumper.
        bumper_travel_m: more than the way of a physics step, so that the base stops before the rigid part touches.
        mass_kg: LoCoBot (PyRobot's URDF).
        response_s: time constant with which the wheels take up a velocity.
        bumper_force_n: the robot pushes along what resists with less than this; all else presses the bumper.
    """

    radius_m: Annotated[BodyRadius, Field(gt=0)] = 0.18
    bumper_travel_m: Positive = 0.002
    bottom_m: NonNegative = 0.03
    bumper_top_m: Positive = 0.10
    top_m: Positive = 0.90
    mass_kg: Positive = 7.5
    response_s: Response = 0.001
    bumper_force_n: Positive = 10.0

    def __post_init__(self) -> None:
        if self.bumper_travel_m >= self.radius_m:
            raise ValueError(f"bumper_travel_m ({self.bumper_travel_m}) must be less than radius_m ({self.radius_m})")
        if not self.bottom_m < self.bumper_top_m <= self.top_m:
            raise ValueError(
                f"need bottom_m ({self.bottom_m}) < bumper_top_m ({self.bumper_top_m}) <= top_m ({self.top_m})"
            )


@dataclass(frozen=True)
class SceneModel:
    """A compiled scene.

    Attributes:
        model: planar joints x, y, yaw are qpos 0, 1, 2 in the scene's frame ``map``; actuators 0, 1, 2 set their
            velocities; renderers place camera 0.
        geom_object: int32 (ngeom,), index into ``scene.objects`` of the object that a geom belongs to, -1 for none.
        geom_owner: name of each geom's asset, for messages.
        robot_geom: number of the geom of the robot's base, surrounded by the bumper.
        mast_geom: number of the geom above it; -1 if the bumper reaches up to the top.
        movable: the objects that are free bodies; none where the task moves none.
    """

    scene: Scene
    body: Body
    model: mujoco.MjModel
    geom_object: NDArray[np.int32]
    geom_owner: tuple[str, ...]
    robot_geom: int
    mast_geom: int = -1
    movable: tuple[movable_objects.Movable, ...] = ()


def build_model(
    scene: Scene,
    step_s: float = 0.005,
    body: Body | None = None,
    objects_move: bool = False,
    added: tuple[SceneObject, ...] = (),
    room_tags: tuple[Tag, ...] = (),
    robot_tag: Tag | None = None,
) -> SceneModel:
    """Compile a scene.

    Args:
        scene: scene with meshes.
        step_s: length of a physics step.
        body: shape and mass of the robot.
        objects_move: whether the scene's movable objects are free bodies.
        added: further free bodies that episodes add: boxes, out of the world until they are placed.
        room_tags: AprilTags in the room.
        robot_tag: AprilTag on the robot, in base_link.

    Raises:
        SceneError: the scene has no meshes, or MuJoCo refuses one of them; names the file.
    """
    if not scene.file.assets:
        raise SceneError(
            f"{scene.folder / 'scene.yaml'}: has no 'assets', so this scene cannot be simulated",
            "make one with `robot-runtime scene generate`, or import the site's mesh with `robot-runtime scene import`",
        )
    body = body or Body()
    builder = _Builder(scene)
    free = [item for item in scene.objects if item.movable] if objects_move else []
    # The robot's joints come first in the state, whatever else can move.
    if free or added:
        builder.add_robot(body)
    builder.add_free_bodies(free, added)
    for asset in scene.file.assets:
        builder.add_asset(asset)
    builder.add_surroundings()
    if not (free or added):
        builder.add_robot(body)
    builder.add_tags(room_tags, robot_tag)
    model = builder.compile(step_s)
    ground = builder.ground.id
    if is_missing(model, SOLID, scene.map):
        model.geom_group[ground] = Group.VISUAL
    index = {item.id: i for i, item in enumerate(scene.objects)}
    geom_object = np.full(model.ngeom, -1, np.int32)
    geom_owner = [""] * model.ngeom
    for geom, name, object_id in builder.owners:
        geom_owner[geom.id] = name
        geom_object[geom.id] = index.get(object_id or "", -1)
    found = tuple(movable_objects.find(model, item, item in added) for item in (*free, *added))
    robot_geom, mast_geom = (mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name) for name in ("robot", "mast"))
    return SceneModel(scene, body, model, geom_object, tuple(geom_owner), robot_geom, mast_geom, found)


class _Builder:
    """Fills one MjSpec.

    Attributes:
        owners: each geom of the scene, the name of its asset, and the object that it belongs to, if any.
        ground: the ground's geom. Geoms have their numbers once the model is compiled.
    """

    def __init__(self, scene: Scene) -> None:
        self.owners: list[tuple[mujoco.MjsGeom, str, str | None]] = []
        self.ground: mujoco.MjsGeom
        self._scene = scene
        self._free: dict[str, tuple[SceneObject, mujoco.MjsBody]] = {}
        self._spec = mujoco.MjSpec()
        self._world = self._spec.worldbody
        self._meshes: set[str] = set()
        self._add_materials()

    def add_free_bodies(self, free: Sequence[SceneObject], added: Sequence[SceneObject]) -> None:
        """Bodies for what can be moved. Their geoms come with the assets; an object that has no asset is its box."""
        if free or added:
            movable_objects.enable_sleep(self._spec)
        drawn = {asset.object for asset in self._scene.file.assets}
        for item in (*free, *added):
            body = movable_objects.add_body(self._world, item)
            self._free[item.id] = item, body
            if item in added or item.id not in drawn:
                for geom in movable_objects.add_box(body, item, Group.VISUAL, Group.COLLISION):
                    self.owners.append((geom, item.id, item.id))

    def add_asset(self, asset: Asset) -> None:
        parent, position, quaternion = self._world, asset.position, asset.quaternion
        if asset.object in self._free:
            item, parent = self._free[asset.object]
            position, quaternion = movable_objects.in_object(item, asset)
        frame = parent.add_frame(pos=position, quat=quaternion)
        for visual in asset.visual:
            self._add_geom(asset, frame, parent, self._visual(visual))
        for shape in asset.collision:
            self._add_geom(asset, frame, parent, self._collision(shape))

    def add_surroundings(self) -> None:
        """Sky, light, and a ground that is off until needed.

        Light from two sides makes walls at right angles differ; what a real floor throws back lights the ceiling.
        """
        self._spec.add_texture(
            name="sky",
            type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
            builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
            rgb1=(0.75, 0.85, 0.95),
            rgb2=(0.95, 0.95, 0.95),
            width=64,
            height=384,
        )
        for direction, brightness in (
            ((0.45, 0.25, -0.85), 0.38),
            ((-0.6, -0.75, -0.3), 0.22),
            ((0.1, 0.1, 1.0), 0.28),
        ):
            light = self._world.add_light(
                type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, dir=direction, castshadow=False, pos=(0, 0, 10)
            )
            light.diffuse, light.ambient, light.specular = (brightness,) * 3, (0.0,) * 3, (0.1,) * 3
        # Objects lie on the ground; the robot has wheels.
        touches = movable_objects.ONLY_OBJECTS if self._free else 0
        self.ground = self._world.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=(0, 0, 1),
            rgba=(0.6, 0.58, 0.55, 1),
            contype=touches,
            conaffinity=touches,
            group=Group.GROUND,
        )
        self._world.add_camera(name="robot")

    def add_robot(self, body: Body) -> None:
        robot = self._world.add_body(name="robot", sleep=mujoco.mjtSleepPolicy.mjSLEEP_NEVER)
        # Nothing turns an upright cylinder without friction. Contact points of meshes that lie next to the true ones
        # would, between two walls; the response of the wheels does not depend on its inertia.
        inertia = _UNTURNED * 0.5 * body.mass_kg * body.radius_m**2
        robot.mass, robot.inertia, robot.ipos, robot.explicitinertial = (
            body.mass_kg,
            (inertia, inertia, inertia),
            (0, 0, 0),
            True,
        )
        slide, hinge = mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE
        for name, kind, axis, moved in (
            ("x", slide, (1, 0, 0), body.mass_kg),
            ("y", slide, (0, 1, 0), body.mass_kg),
            ("yaw", hinge, (0, 0, 1), inertia),
        ):
            robot.add_joint(name=name, type=kind, axis=axis)
            wheel = self._spec.add_actuator(name=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, target=name)
            wheel.set_to_velocity(kv=moved / body.response_s)
        parts = [("robot", body.bottom_m, body.bumper_top_m)]
        if body.bumper_top_m < body.top_m:
            parts.append(("mast", body.bumper_top_m, body.top_m))
        for name, bottom_m, top_m in parts:
            robot.add_geom(
                name=name,
                type=mujoco.mjtGeom.mjGEOM_CYLINDER,
                size=(body.radius_m - body.bumper_travel_m, (top_m - bottom_m) / 2, 0),
                pos=(0, 0, (top_m + bottom_m) / 2),
                # Within the gap a contact is reported and exerts no force: that is the bumper's travel.
                gap=body.bumper_travel_m,
                condim=1,
                priority=movable_objects.PRIORITY + 1,
                solref=(0.01, 1.0),
                solimp=(0.99, 0.99, 0.001, 0.5, 2.0),
                group=Group.ROBOT,
            )

    def add_tags(self, room_tags: tuple[Tag, ...], robot_tag: Tag | None) -> None:
        """Add sheets of paper to the room and to the robot."""
        made = tags.add_tags(self._spec, room_tags, self._spec.body("robot"), robot_tag, Group.VISUAL)
        self.owners.extend((geom, name, None) for geom, name in made)

    def compile(self, step_s: float) -> mujoco.MjModel:
        spec, scene = self._spec, self._scene
        spec.option.timestep = step_s
        if not self._free:
            spec.option.disableflags |= _MULTIPLE_CONTACTS
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.gravity = (0, 0, -movable_objects.GRAVITY_M_S2 if self._free else 0)
        spec.visual.headlight.ambient = (0.42,) * 3
        spec.visual.headlight.diffuse = (0.2,) * 3
        spec.visual.headlight.specular = (0.0,) * 3
        spec.visual.quality.offsamples = 0
        spec.visual.quality.shadowsize = 0  # no shadow is drawn: without its map a renderer is ready sooner
        # With this extent, the planes' distances are meters.
        spec.stat.extent = 1.0
        spec.visual.map.znear = NEAR_M
        spec.visual.map.zfar = max(FAR_M, 4 * math.hypot(*scene.map.size_m))
        try:
            return spec.compile()
        except ValueError as error:
            raise SceneError(
                f"{scene.folder}: MuJoCo cannot use this scene: {error}",
                "repair that mesh or texture, or import the scene again",
            ) from error

    def _add_materials(self) -> None:
        for name, material in self._scene.file.materials.items():
            made = self._spec.add_material(
                name=name,
                rgba=material.rgba,
                specular=material.specular,
                emission=material.emission,
                shininess=0.3,
                reflectance=0.0,
            )
            if material.texture is not None:
                if self._spec.texture(material.texture) is None:
                    path = self._scene.folder / material.texture
                    self._spec.add_texture(
                        name=material.texture, type=mujoco.mjtTexture.mjTEXTURE_2D, file=str(path.resolve())
                    )
                made.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = material.texture

    def _add_geom(self, asset: Asset, frame: mujoco.MjsFrame, parent: mujoco.MjsBody, settings: dict[str, Any]) -> None:
        if asset.object in self._free and settings["group"] is Group.COLLISION:
            settings = {**settings, **movable_objects.CONTACT}
        geom = parent.add_geom(**settings)
        geom.set_frame(frame)
        self.owners.append((geom, asset.name, asset.object))

    def _visual(self, visual: Visual) -> dict[str, Any]:
        return {
            "type": mujoco.mjtGeom.mjGEOM_MESH,
            "meshname": self._mesh(visual.mesh),
            "material": visual.material,
            "contype": 0,
            "conaffinity": 0,
            "group": Group.VISUAL,
        }

    def _collision(self, shape: Collision) -> dict[str, Any]:
        half = math.radians(shape.yaw_deg) / 2
        common = {"pos": shape.center, "quat": (math.cos(half), 0, 0, math.sin(half)), "group": Group.COLLISION}
        x, y, z = shape.size
        if shape.shape == "box":
            return {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": (x / 2, y / 2, z / 2), **common}
        if shape.shape == "cylinder":
            return {"type": mujoco.mjtGeom.mjGEOM_CYLINDER, "size": (x / 2, z / 2, 0), **common}
        assert shape.mesh is not None, "Collision checks it"
        return {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": self._mesh(shape.mesh), **common}

    def _mesh(self, file: str) -> str:
        if file not in self._meshes:
            self._meshes.add(file)
            # Shell inertia is the only kind that open and flat meshes have.
            self._spec.add_mesh(
                name=file,
                file=str((self._scene.folder / file).resolve()),
                inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
            )
        return file
