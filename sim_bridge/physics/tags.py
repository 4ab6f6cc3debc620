"""AprilTags in a simulated room, and one on the robot, at the poses that a tag map gives them.

To use them, write ``tags.yaml`` (:mod:`robot_runtime.scenes.tag_map`) next to ``scene.yaml`` and set ``tags: scene`` in
the options of a simulated robot; ``tags: PATH`` takes those of another file, and ``robot_tag: {id, size_m, xyz_m,
rpy_deg}`` puts one on the robot, in base_link. ``launch/robots/sim-tags.yaml`` does so in the bundled apartment. From
Python: ``build_model(scene, room_tags=load_tag_map(path).tags, robot_tag=tag)``.

A tag is a sheet of paper: a quad with the tag's picture, with its white rim, that touches nothing. One cell of the
picture has :data:`CELL_PX` texels, so that edges stay sharp for a camera that is near; from afar the renderer's
mipmaps even them out over about a pixel, as a real lens and sensor do.
"""

from collections.abc import Iterable, Mapping

import mujoco
import numpy as np

from robot_runtime.common.transforms import Matrix
from robot_runtime.errors import ConfigError
from robot_runtime.scenes.tag_map import CELLS, Tag, tag_image, unit_corners

CELL_PX = 32

SHEET = (CELLS + 2) / CELLS
"""Edge of the sheet of paper, with the rim, over the edge of the black square."""

LIFT_M = 0.0005
"""The sheet lies this far in front of its pose, so that it shows on the wall that it is pasted to."""


def add_tags(
    spec: mujoco.MjSpec, tags: Iterable[Tag], robot: mujoco.MjsBody | None, robot_tag: Tag | None, group: int
) -> list[tuple[mujoco.MjsGeom, str]]:
    """Add tags to a model that is being built; return the geoms with a name of each for messages.

    Every tag hangs on a body of its own that :func:`move_tags` can move.
    """
    made = []
    for tag in tags:
        body = spec.worldbody.add_body(name=_name(tag.id), mocap=True, pos=tag.xyz_m, quat=_quaternion(tag.matrix))
        made.append((_sheet(spec, body, tag, np.eye(4), group), _name(tag.id)))
    if robot_tag is not None and robot is not None:
        made.append((_sheet(spec, robot, robot_tag, robot_tag.matrix, group), f"the robot's {_name(robot_tag.id)}"))
    return made


def geoms(model: mujoco.MjModel) -> list[int]:
    """Numbers of all tags' geoms in a compiled model."""
    return [geom for geom in range(model.ngeom) if model.geom(geom).name.startswith("tag ")]


def move_tags(model: mujoco.MjModel, data: mujoco.MjData, poses: Mapping[int, Matrix]) -> None:
    """Move tags of the room at run time, visibly from the next physics step on.

    Args:
        model: the compiled scene.
        data: its state.
        poses: the tags' frames in ``map`` by id, float64 (4, 4).

    Raises:
        ConfigError: no tag of that id hangs in the room.
    """
    bodies = {model.body(body).name: model.body_mocapid[body] for body in range(model.nbody)}
    for tag_id, matrix in poses.items():
        number = bodies.get(_name(tag_id), -1)
        if number < 0:
            raise ConfigError(f"no tag {tag_id} hangs in the room", "name one of its tag map")
        data.mocap_pos[number] = matrix[:3, 3]
        data.mocap_quat[number] = _quaternion(matrix)


def _sheet(spec: mujoco.MjSpec, body: mujoco.MjsBody, tag: Tag, pose: Matrix, group: int) -> mujoco.MjsGeom:
    name = f"tag {body.name} {tag.id}"
    image = tag_image(tag.id, CELL_PX)
    texture = spec.add_texture(
        name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, width=image.shape[1], height=image.shape[0], nchannel=3
    )
    texture.data = np.repeat(image[:, :, None], 3, axis=2).tobytes()
    material = spec.add_material(name=name, specular=0.0, reflectance=0.0)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
    corners = unit_corners() * tag.size_m * SHEET + (LIFT_M, 0.0, 0.0)
    spec.add_mesh(
        name=name,
        uservert=corners.ravel(),
        userface=[0, 1, 2, 0, 2, 3],
        usertexcoord=[0, 1, 1, 1, 1, 0, 0, 0],
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
    )
    return body.add_geom(
        name=name,
        type=mujoco.mjtGeom.mjGEOM_MESH,
        meshname=name,
        material=name,
        pos=pose[:3, 3],
        quat=_quaternion(pose),
        contype=0,
        conaffinity=0,
        group=group,
    )


def _name(tag_id: int) -> str:
    return f"tag {tag_id}"


def _quaternion(matrix: Matrix) -> np.ndarray:
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(matrix[:3, :3]).ravel())
    return quaternion
