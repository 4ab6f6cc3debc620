"""Localizers that look at tags, on rendered images: how near the truth they are, and what they say when they fail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from tagged_room import CEILING, FACING_EAST, FACING_WEST, ROBOT_TAG, TAGS, tagged_robot, watched, with_tags

from drivers.apriltag.driver import make_localizer
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.transforms import transform
from robot_runtime.conformance import LocalizerConformance
from robot_runtime.errors import ConfigError, StaleData
from robot_runtime.hal import Localizer, PoseStatus, Robot
from robot_runtime.hal.events import Event
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.tag_detector import TagDetector
from robot_runtime.localization.fused import FusedLocalizer, FusedOptions
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.scene import Scene
from robot_runtime.scenes.tag_map import Tag
from sim_bridge.robot.ground_truth import MujocoGroundTruth

NEAR_M, NEAR_RAD = 0.03, math.radians(1)


@contextmanager
def connected(robot: Robot) -> Iterator[Robot]:
    """The robot of :func:`site`, facing tags that hang where they belong, with the localizers of this test."""
    simulation(robot).move_tags({tag.id: tag.matrix for tag in TAGS})
    robot.clock.sleep(0.01)
    robot.placer.place(FACING_EAST, 0.0)
    with robot.localizer, robot.referee:
        yield robot


def simulation(robot: Robot) -> MujocoGroundTruth:
    return cast(MujocoGroundTruth, robot.simulation)


def check_pose(localizer: Localizer, robot: Robot) -> None:
    truth, found = simulation(robot).pose(), localizer.at(robot.clock.now_ns(), 0.5)
    assert found.pose.distance_to(truth) < NEAR_M
    assert abs(wrap_angle(found.pose.yaw_rad - truth.yaw_rad)) < NEAR_RAD
    off = np.array([found.pose.x_m - truth.x_m, found.pose.y_m - truth.y_m])
    assert off @ np.linalg.solve(found.covariance[:2, :2], off) < 16


def events(localizer: Localizer, kind: str) -> list[Event]:
    return [event for event in localizer.arrivals().events if event.kind == kind]


def looks(robot: Robot, count: int) -> None:
    """Let the localizer look so many times at its own rate of 4 Hz."""
    robot.clock.sleep(count / 4)


@pytest.mark.slow
class TestConformance(LocalizerConformance):
    """Both localizers at once: the one through the robot's camera, and the one under the ceiling."""

    @pytest.fixture(autouse=True)
    def _place(self, room: Scene, tmp_path: Path) -> None:
        self.scene, self.folder = room, tmp_path

    def make_robot(self) -> Robot:
        robot, context = tagged_robot(self.scene, self.folder)
        return watched(with_tags(robot, context, self.folder), context)


@pytest.fixture(scope="module")
def site(room: Scene, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Robot, RobotContext]]:
    """A robot that stays connected from test to test: making what draws takes longer than drawing."""
    robot, context = tagged_robot(room, tmp_path_factory.mktemp("tags"))
    with robot:
        yield robot, context


@pytest.fixture
def robot(site: tuple[Robot, RobotContext], tmp_path: Path) -> tuple[Robot, RobotContext, Path]:
    return *site, tmp_path


def test_corners_appear_where_the_map_has_them(robot: tuple) -> None:
    made, _, _ = robot
    lens = Lens(640, 480, 500.0, 500.0, 319.5, 239.5)
    with connected(made):
        source = simulation(made).camera_pose()
        found = {item.id: item for item in TagDetector().detect(simulation(made).render_color(lens, source))}
        assert set(found) == {0, 1, 2}
        for tag in TAGS[:3]:
            expected = lens.project((tag.corners - source[:3, 3]) @ source[:3, :3])
            assert np.abs(found[tag.id].corners_px - expected).max() < 0.35


def test_the_tag_on_the_robot_goes_with_it(robot: tuple) -> None:
    made, _, _ = robot
    lens = Lens(**CEILING["lens"])
    above = transform((0.5, 0.0, 2.45), np.array([(0.0, -1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, -1.0)]))
    with connected(made):
        for pose in (SE2(0.6, -0.2, 0.1), SE2(-0.2, 0.6, 2.0)):
            made.placer.place(pose, 0.0)
            image = simulation(made).render_color(lens, above)
            (found,) = [item for item in TagDetector().detect(image) if item.id == ROBOT_TAG["id"]]
            on_robot = Tag(**ROBOT_TAG).corners
            turned = [pose.apply(x, y) for x, y, _ in on_robot]
            corners = np.column_stack([turned, on_robot[:, 2]])
            expected = lens.project((corners - above[:3, 3]) @ above[:3, :3])
            assert np.abs(found.corners_px - expected).max() < 0.35


def test_both_are_near_the_truth_with_the_head_turned_too(robot: tuple) -> None:
    made, context, folder = robot
    made = watched(with_tags(made, context, folder), context)
    with connected(made):
        check_pose(made.localizer, made)
        check_pose(made.referee, made)
        made.head.command(0.5, 0.1)
        made.clock.sleep(1.5)
        check_pose(made.localizer, made)
        made.placer.place(SE2(0.2, 0.3, 0.9), -0.1)
        check_pose(made.localizer, made)
        check_pose(made.referee, made)


def test_a_mount_from_a_file_goes_before_what_the_camera_says(robot: tuple, tmp_path: Path) -> None:
    made, context, folder = robot
    mount = tmp_path / "mount.yaml"
    for forward_m in (0.0, 0.1):
        mount.write_text(f"pan_joint_m: [{forward_m}, 0.0, 0.88]\n", encoding="utf-8")
        with connected(with_tags(made, context, folder, mount=str(mount))) as tagged:
            found = tagged.localizer.at(tagged.clock.now_ns(), 0.5).pose.relative_to(FACING_EAST)
        assert found.x_m == pytest.approx(-forward_m, abs=NEAR_M)
        assert found.y_m == pytest.approx(0.0, abs=NEAR_M)


def test_no_pose_while_the_head_turns(robot: tuple) -> None:
    made, context, folder = robot
    made = with_tags(made, context, folder)
    with connected(made):
        made.head.command(0.8, 0.0)
        made.clock.sleep(0.05)
        with pytest.raises(StaleData, match="the head is turning"):
            made.localizer.at(made.clock.now_ns(), 0.2)


def test_tags_that_are_not_in_the_map_are_named(robot: tuple) -> None:
    made, context, folder = robot
    others = tuple(replace(tag, id=tag.id + 50) for tag in TAGS)
    made = with_tags(made, context, folder, others)
    with connected(made):
        with pytest.raises(StaleData, match="the only tags in view, 0, 1, 2, are not in the map"):
            made.localizer.latest(0.5)
        (event,) = events(made.localizer, "no_fix")
        assert "not in the map" in event.detail


def test_a_robot_that_the_camera_under_the_ceiling_does_not_see_is_asked_for_by_its_tag(robot: tuple) -> None:
    made, context, _ = robot
    blind = {"tag": {**CEILING["tag"], "id": ROBOT_TAG["id"] + 1}}
    with connected(watched(made, context, {**CEILING, **blind})) as seen, pytest.raises(StaleData) as caught:
        seen.referee.latest(0.5)
    assert f"its tag, {ROBOT_TAG['id'] + 1}," in caught.value.remedy


def test_occluded_tags_are_no_fix_until_they_are_seen_again(robot: tuple) -> None:
    made, context, folder = robot
    made = with_tags(made, context, folder)
    assert made.odometry is not None
    tags = made.localizer
    fused = FusedLocalizer(made.clock, made.odometry, made.localizer, FusedOptions(lost_after_s=2.0))
    made = replace(made, localizer=fused)
    with connected(made):
        looks(made, 4)
        assert fused.latest(0.5).status is PoseStatus.OK
        away = {tag.id: transform((0.0, 0.0, -5.0), np.eye(3)) for tag in TAGS}
        simulation(made).move_tags(away)
        looks(made, 4)
        assert [event.detail for event in events(tags, "no_fix")] == ["no tag in view"]
        assert fused.latest(0.5).status is PoseStatus.OK  # odometry carries on
        looks(made, 6)
        assert fused.latest(0.5).status is PoseStatus.LOST
        assert "no measurement" in events(fused, "lost")[0].detail
        simulation(made).move_tags({tag.id: tag.matrix for tag in TAGS})
        looks(made, 4)
        assert fused.latest(0.5).status is PoseStatus.OK
        assert [event.detail for event in events(tags, "fix")] == ["by the tags 0, 1, 2"]


def test_a_tag_that_is_moved_during_the_run_is_found_out(robot: tuple) -> None:
    made, context, folder = robot
    made = with_tags(made, context, folder)
    with connected(made):
        looks(made, 3)
        simulation(made).move_tags({1: replace(TAGS[1], xyz_m=(3.0, 0.4, 1.2)).matrix})
        looks(made, 5)
        check_pose(made.localizer, made)
        (event,) = events(made.localizer, "anchor_moved")
        assert event.detail.startswith("tag 1 is 0.3")
        # Where it is the only one that is left, it is not believed.
        simulation(made).move_tags({n: transform((0.0, 0.0, -5.0), np.eye(3)) for n in (0, 2)})
        made.clock.sleep(0.1)
        with pytest.raises(StaleData, match="the only tags in view, 1, are not where the map has them"):
            made.localizer.at(made.clock.now_ns(), 0.3)
        simulation(made).move_tags({tag.id: tag.matrix for tag in TAGS})
        looks(made, 5)
        check_pose(made.localizer, made)
        assert events(made.localizer, "fix")[-1].detail == "tag 1 is where the map has it again"


def test_of_two_tags_that_contradict_each_other_odometry_says_which(robot: tuple) -> None:
    made, context, folder = robot
    made = with_tags(made, context, folder)
    gone = {n: transform((0.0, 0.0, -5.0), np.eye(3)) for n in (2,)}
    with connected(made):
        simulation(made).move_tags(gone)
        looks(made, 3)
        simulation(made).move_tags({0: replace(TAGS[0], xyz_m=(3.0, 1.2, 0.9)).matrix})
        looks(made, 5)
        # By the other one alone, which is seen from so far that it does not tell much.
        assert made.localizer.latest(0.5).pose.distance_to(FACING_EAST) < 0.15
        assert "tag 0" in events(made.localizer, "anchor_moved")[0].detail


def test_a_tag_of_another_size_than_the_map_says_is_named_with_its_size(robot: tuple) -> None:
    made, context, folder = robot
    wrong = tuple(replace(tag, size_m=0.3) if tag.id == 1 else tag for tag in TAGS)
    made = with_tags(made, context, folder, wrong)
    with connected(made):
        looks(made, 5)
        check_pose(made.localizer, made)
        (event,) = events(made.localizer, "scale")
        assert event.detail.startswith("tag 1 is where the map has it, but 0.2")


def test_tags_that_a_printer_scaled_are_no_fix(robot: tuple) -> None:
    made, context, folder = robot
    made = with_tags(made, context, folder, tuple(replace(tag, size_m=0.24 / 0.8) for tag in TAGS))
    with connected(made):
        with pytest.raises(StaleData, match="contradict each other"):
            made.localizer.at(made.clock.now_ns(), 0.3)
        (event,) = events(made.localizer, "scale")
        percent = float(event.detail.split("if they are ")[1].split(" ")[0])
        assert abs(percent - 80) < 1.5


def test_a_robot_that_faces_a_bare_wall_has_no_fix(robot: tuple) -> None:
    made, context, folder = robot
    made = with_tags(made, context, folder)
    with connected(made):
        made.placer.place(FACING_WEST, 0.0)
        with pytest.raises(StaleData, match="no tag in view"):
            made.localizer.latest(0.5)


def test_options_that_cannot_be_are_refused(robot: tuple) -> None:
    made, context, folder = robot
    for options, words in (
        ({"tags": "nowhere.yaml"}, "no tag map nowhere.yaml"),
        ({"tags": "scene"}, "no tag map"),
        ({"rate_hz": 0.0}, "rate_hz"),
        ({"detector": {"decimate": 0.5}}, "decimate"),
        ({"accuracy": {"corner_sd_px": 0.0}}, "corner_sd_px"),
    ):
        with pytest.raises(ConfigError, match=words):
            make_localizer(made, context, options, "test options")
    # Simulated, but not by anything that draws a room: its time passes only where somebody sleeps on it.
    with pytest.raises(ConfigError, match="sim-tags"):
        with_tags(replace(made, simulation=None), context, folder)
    with pytest.raises(ConfigError, match="latency_s"):
        watched(made, context, {**CEILING, "latency_s": -1.0})
    with pytest.raises(ConfigError, match="rpy_deg"):
        watched(made, context, {k: v for k, v in CEILING.items() if k != "rpy_deg"})
