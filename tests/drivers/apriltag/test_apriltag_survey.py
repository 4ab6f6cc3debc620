"""The survey of tags, on projections of a known room; the sheets to print; and both commands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from raising import raises_naming
from scipy.spatial.transform import Rotation

from drivers.apriltag.bundle_adjustment import TagView
from drivers.apriltag.pose import CameraOnRobot, FloorPrior
from drivers.apriltag.print_sheets import INCH_M, page, write_sheets
from drivers.apriltag.survey import Survey, survey
from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.common.transforms import rotation_rpy, transform
from robot_runtime.errors import CalibrationFailed, ConfigError
from robot_runtime.imaging.tag_detector import TagDetector
from robot_runtime.scenes.tag_map import Tag, TagMap, load_tag_map, tag_image, write_tag_map

FOCAL_PX, NOISE_PX = 400.0, 0.1
TAGS = {
    tag.id: tag
    for tag in (
        Tag(0, 0.16, (3.0, 0.6, 1.1), (0.0, 0.0, 180.0)),
        Tag(1, 0.16, (3.0, -0.6, 1.3), (0.0, 0.0, 180.0)),
        Tag(2, 0.16, (1.5, 2.0, 1.0), (0.0, 0.0, -90.0)),
        Tag(3, 0.16, (0.4, 2.0, 1.2), (0.0, 3.0, -90.0)),
        Tag(4, 0.16, (2.2, 2.0, 0.9), (0.0, 0.0, -90.0)),
    )
}
SIZES = {tag_id: tag.size_m for tag_id, tag in TAGS.items()}
CAMERA = transform((0.0, 0.0, 0.88), optical_axes(0.0, 0.0))
FLOOR = FloorPrior()


def tour(logged_m: float = 0.0, tags: dict[int, Tag] = TAGS, lean_deg: float = 0.0) -> list[TagView]:
    """A drive along the two walls.

    Args:
        logged_m: error of the logged poses, in which odometry has no part. lean_deg: roll that nobody knows of.
    """
    random = np.random.default_rng(1)
    poses = [SE2(0.06 * i, -0.8 + 0.05 * i, 0.08 * i - 0.3) for i in range(26)]
    odom = SE2(5.0, 1.0, 2.0)
    views = []
    for i, pose in enumerate(poses):
        if i:
            driven = pose.relative_to(poses[i - 1])
            odom = odom @ SE2(driven.x_m * 1.005, driven.y_m, driven.yaw_rad + random.normal(0, 0.003))
        base = transform((pose.x_m, pose.y_m, 0.0), rotation_rpy(math.radians(lean_deg), 0.0, pose.yaw_rad))
        rays = {}
        for tag in tags.values():
            points, _ = CameraOnRobot(CAMERA).in_camera(base, tag.corners)
            ideal = points[:, :2] / points[:, 2:]
            if points[:, 2].min() > 0.3 and np.abs(ideal).max() < 0.8:
                rays[tag.id] = ideal + random.normal(0, NOISE_PX / FOCAL_PX, ideal.shape)
        off_m = random.normal(0, logged_m, 2) if logged_m else (0.0, 0.0)
        guess = SE2(pose.x_m + off_m[0], pose.y_m + off_m[1], pose.yaw_rad + random.normal(0, logged_m / 3 or 1e-9))
        views.append(TagView(guess, odom, 0, CAMERA, rays, FOCAL_PX))
    return views


def off(found: Survey, truth: dict[int, Tag] = TAGS) -> tuple[float, float]:
    """The largest error of a place, meters, and of a direction, degrees."""
    places = [math.dist(tag.xyz_m, truth[tag.id].xyz_m) for tag in found.tags]
    turns = [
        Rotation.from_matrix(tag.matrix[:3, :3].T @ truth[tag.id].matrix[:3, :3]).magnitude() for tag in found.tags
    ]
    return max(places), math.degrees(max(turns))


def test_a_map_tied_to_one_tag_is_good_to_millimeters() -> None:
    found = survey(tour(logged_m=0.05), SIZES, {0: TAGS[0]}, FLOOR)
    assert [tag.id for tag in found.tags] == sorted(TAGS)
    assert off(found)[0] < 0.02
    assert off(found)[1] < 1.0
    assert found.rms_px == pytest.approx(NOISE_PX * math.sqrt(2), rel=0.3)
    assert found.held_out > 0
    assert found.held_out_rms_px is not None
    assert found.held_out_rms_px < 2 * found.rms_px
    assert found.doubtful == ()
    assert found.path_length_ratio == pytest.approx(1.0, abs=0.02)
    assert all(tag.looks is not None and tag.looks >= 3 for tag in found.tags)


def test_two_places_that_were_measured_tie_it_as_well() -> None:
    known = {tag_id: replace(TAGS[tag_id], rpy_deg=(0.0, 0.0, 0.0)) for tag_id in (1, 3)}
    found = survey(tour(logged_m=0.05), SIZES, known, FLOOR)
    assert off(found)[0] < 0.015


def test_without_surveyed_tags_the_logged_poses_tie_it() -> None:
    assert off(survey(tour(logged_m=0.02), SIZES, {}, FLOOR))[0] < 0.03


def test_a_camera_that_leans_a_little_spoils_nothing() -> None:
    assert off(survey(tour(logged_m=0.02, lean_deg=0.5), SIZES, {0: TAGS[0]}, FLOOR))[0] < 0.02


def test_a_tag_of_another_size_fits_badly_and_is_named() -> None:
    found = survey(tour(logged_m=0.02), {**SIZES, 2: 0.2}, {0: TAGS[0]}, FLOOR)
    assert [tag.id for tag in found.doubtful] == [2]


@pytest.mark.slow
def test_tags_of_another_size_all_together_show_in_the_way() -> None:
    found = survey(tour(), dict.fromkeys(SIZES, 0.2), {0: replace(TAGS[0], size_m=0.2)}, FLOOR)
    assert found.path_length_ratio is not None
    assert found.path_length_ratio > 1.05 or found.doubtful


def test_a_survey_of_too_little_says_so() -> None:
    with raises_naming(CalibrationFailed, "3 images", "2 of 2"):
        survey(tour()[:2], SIZES, {}, FLOOR)
    with raises_naming(CalibrationFailed, "tag 77"):
        survey(tour(), SIZES, {77: Tag(77, 0.16, (0.0, 0.0, 1.0))}, FLOOR)


def draw(tags: Sequence[Tag], pose: SE2) -> np.ndarray:
    """View of a 640x480 camera of tags without surroundings."""
    image = np.full((480, 640), 170, np.uint8)
    base = transform((pose.x_m, pose.y_m, 0.0), rotation_rpy(0.0, 0.0, pose.yaw_rad))
    for tag in tags:
        points, _ = CameraOnRobot(CAMERA).in_camera(base, (tag.corners - tag.xyz_m) * 1.25 + tag.xyz_m)
        pixels = (points[:, :2] / points[:, 2:] * FOCAL_PX + (319.5, 239.5)).astype(np.float32)
        sheet = tag_image(tag.id, 16)
        edge = sheet.shape[0] - 0.5
        corners = np.array([(-0.5, edge), (edge, edge), (edge, -0.5), (-0.5, -0.5)], np.float32)
        warp = cv2.getPerspectiveTransform(corners, pixels)
        mask = cv2.warpPerspective(np.full_like(sheet, 255), warp, (640, 480))
        image = np.where(mask > 127, cv2.warpPerspective(sheet, warp, (640, 480), flags=cv2.INTER_AREA), image)
    return cv2.GaussianBlur(image, (0, 0), 0.7)


def test_the_command_makes_a_map_of_a_folder_of_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out, known = tmp_path / "tour", tmp_path / "tags.yaml", tmp_path / "known.yaml"
    folder.mkdir()
    frames = []
    for i in range(6):
        pose = SE2(0.3 * i, -0.2 + 0.1 * i, 0.02 * i)
        cv2.imwrite(str(folder / f"{i}.png"), draw([TAGS[0], TAGS[1]], pose))
        where = {"x_m": pose.x_m + 0.01, "y_m": pose.y_m, "yaw_deg": math.degrees(pose.yaw_rad)}
        frames.append({"image": f"{i}.png", **where})
    lens = {"width": 640, "height": 480, "fx": FOCAL_PX, "fy": FOCAL_PX, "cx": 319.5, "cy": 239.5}
    document = {"lens": lens, "camera": {"xyz_m": [0.0, 0.0, 0.88]}, "frames": frames}
    (folder / "frames.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    write_tag_map(known, TagMap(1, "tag36h11", (TAGS[0],)))
    assert (
        run_command(["tags", "survey", str(folder), "--tag-m", "0.16", "--surveyed", str(known), "--out", str(out)])
        == 0
    )
    made = load_tag_map(out)
    assert math.dist(made.by_id[1].xyz_m, TAGS[1].xyz_m) < 0.02
    assert {"date", "rms_px", "tied_to"} <= set(made.survey)
    assert "2 tags from 6 images" in capsys.readouterr().out


def test_pictures_of_another_size_than_the_lens_are_refused(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "0.png"), np.zeros((48, 64), np.uint8))
    lens = {"width": 640, "height": 480, "fx": 400.0, "fy": 400.0, "cx": 319.5, "cy": 239.5}
    frames = [{"image": "0.png", "x_m": 0.0, "y_m": 0.0, "yaw_deg": 0.0}]
    document = {"lens": lens, "camera": {"xyz_m": [0.0, 0.0, 0.88]}, "frames": frames}
    (tmp_path / "frames.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    assert run_command(["tags", "survey", str(tmp_path), "--tag-m", "0.16", "--out", str(tmp_path / "t.yaml")]) == 2


@pytest.mark.parametrize(("size_m", "paper"), [(0.05, "A4"), (0.16, "A4"), (0.2, "A3")])
def test_a_printed_tag_has_its_size(tmp_path: Path, size_m: float, paper: str) -> None:
    assert write_sheets(tmp_path / "tags.pdf", (3,), size_m) == paper
    assert (tmp_path / "tags.pdf").read_bytes().startswith(b"%PDF")
    dpi = 72
    page(3, size_m, paper).savefig(tmp_path / "page.png", dpi=dpi)
    (found,) = TagDetector().detect(cv2.imread(str(tmp_path / "page.png"), cv2.IMREAD_GRAYSCALE))
    assert found.id == 3
    assert found.edge_px / dpi * INCH_M == pytest.approx(size_m, rel=0.01)


def test_sheets_are_made_by_command_and_bad_ids_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "tags.pdf"
    assert run_command(["tags", "make", "--ids", "0,2-3", "--tag-m", "0.05", "--out", str(out)]) == 0
    assert out.is_file()
    for ids in ("x", "3-", "587", ""):
        assert run_command(["tags", "make", "--ids", ids, "--out", str(out)]) == 2
    with raises_naming(ConfigError, "0.5 m", "A2"):
        write_sheets(out, (0,), 0.5)
