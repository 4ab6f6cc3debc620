"""A scene's meshes as one GLB: everything stands where the simulator has it, in the axes of glTF."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import synthetic
import trimesh
from raising import raises_naming

from robot_runtime.common.geometry import SE2, habitat_to_ros_position
from robot_runtime.errors import SceneError
from robot_runtime.hal import Intrinsics
from robot_runtime.hal.lens import Lens
from robot_runtime.robots.camera_mount import CameraMount
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.tasks.task import load_task
from sim_bridge.replay.camera_pose import LoggedCamera
from sim_bridge.scenes.habitat_export import write_glb


def first_hits(triangles: np.ndarray, eye: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """Along each ray (N, 3), in units of its length, how far it is to the nearest of the triangles (M, 3, 3)."""
    a, u, v = triangles[:, 0], triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    hits = []
    for ray in rays:
        across = np.cross(ray, v)
        with np.errstate(divide="ignore", invalid="ignore"):
            determinant = np.einsum("ij,ij->i", across, u)
            first = np.einsum("ij,ij->i", across, eye - a) / determinant
            around = np.cross(eye - a, u)
            second = around @ ray / determinant
            hit = np.einsum("ij,ij->i", around, v) / determinant
        inside = (first >= 0) & (second >= 0) & (first + second <= 1) & (hit > 0.01)
        hits.append(hit[inside].min(initial=np.inf))
    return np.array(hits)


@pytest.mark.slow
def test_rays_meet_what_the_simulator_draws(tmp_path: Path):
    scene = load_scene(find_scene("apartment"))
    write_glb(scene, tmp_path / "apartment.glb")
    loaded = trimesh.load_scene(tmp_path / "apartment.glb")
    assert any(getattr(g.visual.material, "baseColorTexture", None) for g in loaded.geometry.values())
    corners = np.asarray(loaded.to_mesh().triangles)
    in_map = np.stack(habitat_to_ros_position(*np.moveaxis(corners, -1, 0)), axis=-1)
    camera = LoggedCamera(CameraMount((0.0, 0.0, 0.88)))
    lens = Lens.of(Intrinsics.from_hfov(12, 9, 79.0))
    context = RobotContext(scene, load_task("pointnav_gps_compass").camera, 0)
    with load_robot("sim", context) as robot:
        assert robot.simulation is not None
        free = np.argwhere(scene.map.navigable(0.3))
        for number, (row, column) in enumerate(np.random.default_rng(1).choice(free, 4)):
            pose = SE2(*scene.map.to_point(int(row), int(column)), 1.7 * number)
            map_from_camera = camera.pose_from(pose, 0.0, -0.2)
            _, depth_m = robot.simulation.render(lens, map_from_camera)
            rays = lens.pixel_rays().reshape(-1, 3) @ map_from_camera[:3, :3].T
            hits = first_hits(in_map, map_from_camera[:3, 3], rays)
            apart = np.abs(hits - depth_m.ravel())
            assert np.median(apart) < 0.002
            assert (apart < 0.02).mean() > 0.9  # the others meet an edge


def test_a_scene_without_meshes_is_named():
    flat = synthetic.scene()
    with raises_naming(SceneError, "flat"):
        write_glb(replace(flat), Path("flat.glb"))


def test_a_file_that_is_gone_is_named(tmp_path: Path):
    scene = load_scene(find_scene("apartment"))
    with raises_naming(SceneError, "assets/"):
        write_glb(replace(scene, folder=tmp_path), tmp_path / "a.glb")
