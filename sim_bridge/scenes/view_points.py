"""View points: poses from which a robot sees an object within 1 m.

Habitat's ObjectNav (Batra et al. 2020, section 3): navigable, at most 1 m from the object's oriented box, and the
object visible from the camera's height when the camera may be aimed at will ("oracle framing").
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.common.creating import creating
from robot_runtime.scenes.occupancy_map import OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneObject, load_scene
from sim_bridge.physics.scene_model import Group, SceneModel, build_model
from sim_bridge.scenes.progress import Progress, silent
from sim_bridge.scenes.shapes import spread

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ViewRule:
    """Conditions of a view point.

    Attributes:
        reach_m: farthest from the object's box, in the plane.
        radius_m: radius of the robot that must fit.
        camera_m: height of its camera.
        grid_m: spacing of the candidates. Success is measured to within 0.1 m of a view point; on this grid no valid
            place is farther than 0.088 m from one (Habitat's own grid is 0.09 m, and twice as many points).
        rays: sent from each candidate to points spread over the object's surface.
        min_seen: share of the rays that must meet the object first.
    """

    reach_m: float = 1.0
    radius_m: float = 0.18
    camera_m: float = 0.88
    grid_m: float = 0.125
    rays: int = 48
    min_seen: float = 0.1


def compute_view_points(
    scene: Scene, report: Progress = silent, rule: ViewRule | None = None
) -> dict[str, list[list[float]]]:
    """``{object id: [[x, y, yaw], ...]}`` in ``map``; objects that are seen from nowhere are left out.

    Poses face the object's center. Candidates are tried in a fixed order, so equal scenes give equal points.

    Raises:
        SceneError: the scene has no meshes.
    """
    rule = rule or ViewRule()
    built = build_model(scene)
    data = mujoco.MjData(built.model)
    mujoco.mj_forward(built.model, data)
    navigable = _main_area(scene.map, rule.radius_m)
    found: dict[str, list[list[float]]] = {}
    for index, item in enumerate(scene.objects):
        report("view points", index, len(scene.objects))
        poses = _object_points(built, data, navigable, index, item, rule)
        if poses:
            found[item.id] = poses
    report("view points", len(scene.objects), len(scene.objects))
    return found


def write_view_points(folder: Path, report: Progress = silent) -> dict[str, list[list[float]]]:
    """Compute a scene folder's view points and write ``view_points.json``.

    Raises:
        SceneError: the folder is not a scene, or has no meshes.
    """
    path = folder / "view_points.json"
    path.unlink(missing_ok=True)
    found = compute_view_points(load_scene(folder), report)
    lines = [f"{json.dumps(name)}: {json.dumps(poses)}" for name, poses in found.items()]
    with creating(path) as draft:
        draft.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return found


def _main_area(occupancy: OccupancyMap, radius_m: float) -> NDArray[np.bool_]:
    """Cells of the largest connected area in which the robot fits."""
    labels, count = ndimage.label(occupancy.navigable(radius_m))
    if not count:
        return np.zeros(occupancy.cells.shape, bool)
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    return np.asarray(labels == sizes.argmax())


def _object_points(
    built: SceneModel, data: mujoco.MjData, navigable: NDArray[np.bool_], index: int, item: SceneObject, rule: ViewRule
) -> list[list[float]]:
    targets = _surface_samples(built, data, index, rule.rays)
    if targets is None:
        return []
    poses = []
    for x, y in _candidates(built.scene.map, navigable, item, rule):
        origin = np.array([x, y, rule.camera_m])
        if _seen(built, data, origin, targets, index) >= rule.min_seen:
            yaw = math.atan2(item.center[1] - y, item.center[0] - x)
            poses.append([round(x, 4), round(y, 4), round(yaw, 4)])
    return poses


def _candidates(
    occupancy: OccupancyMap, navigable: NDArray[np.bool_], item: SceneObject, rule: ViewRule
) -> list[tuple[float, float]]:
    """Navigable grid points within reach of the object's box, row by row. The grid starts at the map's origin."""
    c, s = math.cos(math.radians(item.yaw_deg)), math.sin(math.radians(item.yaw_deg))
    half_x, half_y = item.size[0] / 2, item.size[1] / 2
    span = math.hypot(half_x, half_y) + rule.reach_m
    step = max(1, round(rule.grid_m / occupancy.resolution_m))
    found = []
    row_low, column_low = occupancy.to_cell(item.center[0] - span, item.center[1] - span)
    row_high, column_high = occupancy.to_cell(item.center[0] + span, item.center[1] + span)
    rows, columns = occupancy.cells.shape
    for row in range(max(0, -(-row_low // step) * step), min(rows, row_high + 1), step):
        for column in range(max(0, -(-column_low // step) * step), min(columns, column_high + 1), step):
            if not navigable[row, column]:
                continue
            x, y = occupancy.to_point(row, column)
            dx, dy = x - item.center[0], y - item.center[1]
            out_x, out_y = max(0.0, abs(c * dx + s * dy) - half_x), max(0.0, abs(c * dy - s * dx) - half_y)
            if math.hypot(out_x, out_y) <= rule.reach_m:
                found.append((x, y))
    return found


def _surface_samples(built: SceneModel, data: mujoco.MjData, index: int, count: int) -> Array | None:
    """Points (count, 3) in ``map`` spread over the object's visual meshes by area; None if it has no mesh."""
    model = built.model
    triangles = []
    for geom in np.flatnonzero(built.geom_object == index):
        if model.geom_group[geom] != Group.VISUAL or model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_MESH:
            continue
        mesh = model.geom_dataid[geom]
        first, faces = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
        vertices = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]]
        corners = vertices[model.mesh_face[first : first + faces]].astype(np.float64)
        triangles.append(corners @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom])
    return spread(triangles, count, index)


def _seen(built: SceneModel, data: mujoco.MjData, origin: Array, targets: Array, index: int) -> float:
    """Share of the rays from ``origin`` towards ``targets`` (N, 3) that meet object ``index`` before anything else."""
    directions = targets - origin
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    count = len(targets)
    geoms = np.full(count, -1, np.int32)
    distances = np.zeros(count)
    rays, nearest = directions.ravel(), (geoms, distances, None, count, mujoco.mjMAXVAL)
    mujoco.mj_multiRay(built.model, data, origin, rays, _VISUAL_ONLY, 1, -1, *nearest)
    hit = geoms >= 0
    return float((built.geom_object[geoms[hit]] == index).sum()) / count


_VISUAL_ONLY = np.array([group == Group.VISUAL for group in range(mujoco.mjNGROUP)], np.uint8)
