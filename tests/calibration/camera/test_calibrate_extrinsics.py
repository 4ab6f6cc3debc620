"""A camera's place from tags and from the floor, against the place where it really is, over the tilt range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from mounted import NOMINAL, TRUE, ShiftedSource, guide, robot
from numpy.typing import NDArray
from raising import raises_naming

from calibration.camera.extrinsics import ExtrinsicsProcedure
from calibration.camera.floor_plane import DepthView, FloorPlaneProcedure, find_floor
from calibration.camera.mount_fit import TagView
from calibration.camera.raw_images import View, point_head
from calibration.camera.tag_corners import TagCornerDetector, corners_of, tag_poses
from calibration.camera.tagged_site import FLOOR_M, UPRIGHT_M, SiteView
from calibration.procedure import calibrate
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.common.transforms import OPTICAL_RPY_RAD, rotation_rpy, transform
from robot_runtime.errors import CalibrationFailed
from robot_runtime.hal import HeadState, Intrinsics, Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.printed_targets import Sheet, draw_sheets
from robot_runtime.imaging.camera import ImagingOptions, SourceCamera
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.robots.camera_mount import CameraMount, load_mount
from robot_runtime.scenes.tag_map import tag_image

SIZE_M = 0.16
LENS = Lens(640, 480, 388.0, 388.0, 321.0, 238.0, "brown_conrady", (0.05, -0.1, 0.001, -0.001, 0.0))
RIG = RgbdCalibration(LENS, LENS, np.eye(4), 0.001, "SN1", "factory")
OPTICAL = transform((0, 0, 0), rotation_rpy(*OPTICAL_RPY_RAD))
TILTS_DEG = (-45.0, -25.0, -5.0, 10.0)
STATIONS = (SE2(), SE2(0.0, 0.0, math.radians(30)), SE2(0.0, 0.0, math.radians(-30)), SE2(0.25, 0.0, 0.0))


def assert_same_place(found: CameraMount, tilts_deg: Sequence[float], sideways: bool) -> None:
    """5 mm and 0.3 degrees at every tilt; without ``sideways``, of height, pitch and roll only."""
    for tilt_deg in tilts_deg:
        a, b = (mount.sensor(SE2(), 0.0, math.radians(tilt_deg)) for mount in (found, TRUE))
        axes = slice(0, 3) if sideways else slice(2, 3)
        assert np.linalg.norm((a - b)[axes, 3]) < 0.005
        if sideways:
            turn, _ = cv2.Rodrigues(a[:3, :3].T @ b[:3, :3])
            assert math.degrees(np.linalg.norm(turn)) < 0.3
        else:
            assert math.degrees(math.acos(min(1.0, float(a[2, :3] @ b[2, :3])))) < 0.3


def off_level_m(made: Robot, mount: CameraMount) -> float:
    """Median error of the depth that a policy sees, against a camera that looks exactly where the head says."""
    simulation = made.simulation
    assert simulation is not None
    tilt_rad, target = -0.4, Intrinsics.from_hfov(160, 120, 50)
    options = ImagingOptions(allow_partial_coverage=True)
    point_head(made, 0.0, tilt_rad)
    level = simulation.camera_pose()
    level[:3, :3] = optical_axes(simulation.pose().yaw_rad, tilt_rad)
    expected_m = simulation.render_depth(Lens.of(target), level)
    with SourceCamera(ShiftedSource(made.clock, simulation), made.clock, target, mount, options, made.name) as camera:
        seen_m = camera.capture(made.clock.now_ns(), 1.0).depth_m
    return float(np.median(np.abs(seen_m - expected_m)[(seen_m > 0) & (expected_m > 0)]))


def site_views(
    mount: CameraMount,
    stations: Sequence[SE2],
    tilts_deg: Sequence[float],
    size_m: float = SIZE_M,
    noise_px: float = 0.15,
) -> list[SiteView]:
    """View that a robot would have of the site's tags, corners computed instead of drawn."""
    random = np.random.default_rng(1)
    tags = {n: transform((x, y, 0.0), rotation_rpy(0, -math.pi / 2, 0.3 * n)) for n, (x, y) in enumerate(FLOOR_M)}
    tags |= {n: transform(place, rotation_rpy(0, 0, math.pi + 0.2)) for n, place in enumerate(UPRIGHT_M, start=10)}
    nothing = View(0, np.zeros((1, 1, 3), np.uint8), np.zeros((1, 1), np.float32), HeadState(0, 0, 0, False), RIG)
    seen = []
    for number, base in enumerate(stations):
        for tilt_deg in tilts_deg:
            camera = mount.sensor(base, 0.0, math.radians(tilt_deg)) @ OPTICAL
            corners = {}
            for tag_id, pose in tags.items():
                pixels = LENS.project((corners_of(pose, size_m) - camera[:3, 3]) @ camera[:3, :3])
                if np.isfinite(pixels).all() and (pixels > 4).all() and (pixels < (635, 475)).all():
                    corners[tag_id] = pixels + random.normal(0, noise_px, (4, 2))
            seen.append(SiteView(TagView(number, base, 0.0, math.radians(tilt_deg), corners), nothing))
    return seen


@pytest.mark.slow
def test_tags_give_the_mount_over_the_tilt_range(tmp_path: Path) -> None:
    """Drawn, driven to and detected; the optical center does not lie on the tilt axis."""
    out = tmp_path / "mount.yaml"
    with robot(tmp_path) as made:
        procedure = ExtrinsicsProcedure(SIZE_M, nominal=NOMINAL, tilts_deg=TILTS_DEG)
        file = calibrate(procedure, made, guide(tmp_path), out, 30)
        assert made.simulation is not None
        assert not made.simulation.sheets
        found = load_mount(out, "sim")
        # Through the mount as found, a policy sees what a level camera sees; through the described one, it does not.
        assert off_level_m(made, found) < 0.005
        assert off_level_m(made, NOMINAL) > 0.03
    assert_same_place(found, (-60, -45, -20, 0, 10, 30), sideways=True)
    assert (found.pan_joint_m, found.color) == (NOMINAL.pan_joint_m, NOMINAL.color)
    assert file.stamp.held_out["position_mm"] < 5
    assert file.stamp.held_out["rotation_deg"] < 0.3
    assert (tmp_path / "live.png").exists()


@pytest.mark.slow
def test_the_floor_alone_gives_height_pitch_and_roll(tmp_path: Path) -> None:
    out = tmp_path / "mount.yaml"
    with robot(tmp_path) as made:
        file = calibrate(FloorPlaneProcedure(NOMINAL), made, guide(), out, 30)
    assert_same_place(load_mount(out, "sim"), (-60, -45, -20, 0, 10), sideways=False)
    # Where no floor was seen the mount is extrapolated: who reads the file can tell.
    assert "6 tilts from -60° to -15°" in file.stamp.method


def test_computed_corners_give_the_mount_though_odometry_slips() -> None:
    random = np.random.default_rng(5)
    views = []
    for view in site_views(TRUE, STATIONS, TILTS_DEG):
        slip = np.random.default_rng(view.tags.station).normal(0, 1, 3) * (0.002, 0.002, math.radians(0.3))
        odom = view.tags.odom @ SE2(*slip.tolist()) if view.tags.station else view.tags.odom
        corners = dict(view.tags.corners)
        if random.random() < 0.3 and corners:  # one tag half in the shade
            corners[min(corners)] = corners[min(corners)] + random.normal(0, 3, (4, 2))
        views.append(replace(view, tags=replace(view.tags, odom=odom, corners=corners)))
    procedure = ExtrinsicsProcedure(SIZE_M, nominal=NOMINAL)
    training, held_out = procedure.split(views)
    fit = procedure.solve(training)
    assert_same_place(fit.solution.mount, (-45, -20, 0, 10), sideways=True)
    assert procedure.verify(fit.solution, held_out)["rotation_deg"] < 0.3


@pytest.mark.parametrize(
    ("views", "things"),
    [
        (site_views(TRUE, STATIONS[:1], TILTS_DEG)[:3], ("3 views",)),
        (site_views(TRUE, STATIONS, (-45.0, -40.0)), ("5°", "20°")),
        (site_views(TRUE, STATIONS[:1], (-45.0, -35.0, -25.0, -15.0, -5.0, 0.0, 5.0)), ("one side",)),
        (site_views(TRUE, STATIONS, (5.0, 15.0, 30.0)), ("1 tags", "floor")),
        (site_views(TRUE, STATIONS, TILTS_DEG, size_m=0.2), ("mm", "160", "--tag-m")),
    ],
    ids=["few", "tilt", "one side", "no floor", "size"],
)
def test_views_that_say_too_little_are_refused(views: list[SiteView], things: tuple[str, ...]) -> None:
    with raises_naming(CalibrationFailed, *things):
        ExtrinsicsProcedure(SIZE_M, nominal=NOMINAL).solve(views)


def test_stations_that_hardly_turn_leave_the_lateral_offset_open() -> None:
    stations = (SE2(), SE2(0.0, 0.0, math.radians(2)), SE2(0.05, 0.0, 0.0))
    with raises_naming(CalibrationFailed, "lateral_sigma_mm"):
        ExtrinsicsProcedure(SIZE_M, nominal=NOMINAL).solve(site_views(TRUE, stations, TILTS_DEG))


def floor_points(tilt_deg: float, random: np.random.Generator, noise: float, rug: bool) -> DepthView:
    """Depth of an empty floor, or of one with a rug that is 1 cm thick, seen by the true mount."""
    camera = TRUE.sensor(SE2(), 0.0, math.radians(tilt_deg)) @ OPTICAL
    rays = LENS.pixel_rays()[4::8, 4::8].reshape(-1, 3)
    down = rays @ camera[:3, :3].T
    ground = down[:, 2] < -0.1
    depth_m = -camera[2, 3] / down[ground, 2]
    at = camera[:3, 3] + down[ground] * depth_m[:, None]
    if rug:
        on_rug = (at[:, 1] > 0.1) & (at[:, 0] > 1.0)
        depth_m = np.where(on_rug, (0.01 - camera[2, 3]) / down[ground, 2], depth_m)
    points = rays[ground] * (depth_m * (1 + random.normal(0, noise, depth_m.shape)))[:, None]
    walls = random.uniform(-2, 2, (len(points) // 3, 3)) + np.array([0, 0, 2.5])
    return DepthView(0.0, math.radians(tilt_deg), np.concatenate([points, walls]), "SN1")


@pytest.mark.parametrize(("noise", "rug"), [(0.003, False), (0.001, True), (0.01, False)])
def test_the_floor_is_found_among_other_things(noise: float, rug: bool) -> None:
    random = np.random.default_rng(0)
    for tilt_deg in (-50, -25):
        floor = find_floor(floor_points(tilt_deg, random, noise, rug), NOMINAL)
        camera = TRUE.sensor(SE2(), 0.0, math.radians(tilt_deg)) @ OPTICAL
        assert floor.height_m == pytest.approx(camera[2, 3], abs=0.003)
        assert math.degrees(math.acos(min(1.0, float(floor.up @ camera[2, :3])))) < 0.2


@pytest.mark.slow
def test_no_floor_is_said_with_the_tilt() -> None:
    random = np.random.default_rng(0)
    walls = DepthView(0.0, -0.5, random.uniform(-2, 2, (3000, 3)) + np.array([0, 0, 2.5]), "")
    with raises_naming(CalibrationFailed, "depth image", "-29°", "--mount"):
        find_floor(walls, NOMINAL)
    with raises_naming(CalibrationFailed, "20°", "6 depth images"):
        FloorPlaneProcedure(NOMINAL).solve([floor_points(-40 - n, random, 0.0, False) for n in range(6)])


def drawn(pose: NDArray[np.float64], tag_id: int) -> NDArray[np.uint8]:
    rgb = np.full((480, 640, 3), 110, np.uint8)
    depth_m = np.zeros((480, 640), np.float32)
    edge_m = SIZE_M * 10 / 8
    draw_sheets([Sheet(tag_image(tag_id, 24), edge_m, edge_m, pose)], LENS.pixel_rays(), OPTICAL, rgb, depth_m)
    return rgb


@pytest.mark.parametrize("place", [(1.0, 0.2, 0.1), (2.0, -0.8, -0.4), (0.7, -0.3, 0.25)])
def test_corners_are_found_to_a_tenth_of_a_pixel(place: tuple[float, float, float]) -> None:
    pose = transform(place, rotation_rpy(0.1, 0.3, math.pi - 0.5))
    rgb = drawn(pose, 7)
    noisy = np.clip(rgb + np.random.default_rng(0).normal(0, 2, rgb.shape), 0, 255).astype(np.uint8)
    seen = TagCornerDetector().detect(noisy, LENS)
    expected = LENS.project(corners_of(pose, SIZE_M) @ OPTICAL[:3, :3])
    assert list(seen) == [7]
    assert np.linalg.norm(seen[7] - expected, axis=1).max() < 0.15
    assert np.abs((OPTICAL @ tag_poses(LENS, seen[7], SIZE_M)[0])[:3, 3] - place).max() < 0.01


@pytest.mark.parametrize("yaw_rad", [-0.9, -0.2, 0.0, 0.4, 1.0])
@pytest.mark.parametrize("roll_rad", [0.0, 1e-6, 0.02])
def test_the_pose_of_an_upright_tag_is_found(yaw_rad: float, roll_rad: float) -> None:
    pose = OPTICAL.T @ transform((1.4, 0.3, -0.2), rotation_rpy(roll_rad, 0.0, math.pi + yaw_rad))
    poses = tag_poses(LENS, LENS.project(corners_of(pose, SIZE_M)), SIZE_M)
    assert min(np.abs(found - pose).max() for found in poses) < 1e-4


def test_tags_that_are_small_cut_off_or_twice_there_do_not_count() -> None:
    detector = TagCornerDetector()
    facing = rotation_rpy(0, 0, math.pi)
    assert not detector.detect(drawn(transform((8.0, 0.0, 0.0), facing), 7), LENS)
    edge = drawn(transform((0.6, 0.0, 0.0), facing), 7)
    assert not detector.detect(np.ascontiguousarray(np.roll(edge, 275, axis=1)), LENS)
    twice = np.maximum(0, np.concatenate([edge[:, 160:480], edge[:, 160:480]], axis=1))
    assert not detector.detect(twice, LENS)
