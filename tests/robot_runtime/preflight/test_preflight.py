"""The comparison of a robot with a policy's training, on the fake robot."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from open_room import CAMERA, make_fake, make_scene, make_task
from raising import raises_naming
from raw_source import NARROW, RawSource

from drivers.fake.base import FakeBase
from robot_runtime.actions.discrete import Magnitudes
from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import optical_axes
from robot_runtime.errors import DeviceFault, PolicyMismatch
from robot_runtime.hal import HeadState, Intrinsics, Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.camera import ImagingOptions, source_camera
from robot_runtime.imaging.floor import find_floor
from robot_runtime.preflight.checks import (
    Finding,
    after_contact,
    check_findings,
    cost_of_height,
    cost_of_hfov,
    cost_of_tilt,
    findings,
)
from robot_runtime.preflight.cli import print_modes
from robot_runtime.preflight.figure import draw, expected_view
from robot_runtime.preflight.observe import observe_start, open_start_pose
from robot_runtime.robots.action_errors import ActionError, ActuationModel
from robot_runtime.robots.loader import RobotContext
from robot_runtime.tasks.task import Task

PIXELS = {"width": 160, "height": 120, "depth_min_m": 0.2, "depth_max_m": 5.0}
TASK = make_task(camera=replace(CAMERA, **PIXELS))
NEEDS = ("depth", "pointgoal_with_gps_compass")


@contextmanager
def robot_for(task: Task = TASK, **options: Any) -> Iterator[Robot]:
    with make_fake(task, **options) as robot:
        robot.clock.sleep(0.2)
        yield robot


def found_on(
    robot: Robot, task: Task = TASK, needs: tuple[str, ...] = NEEDS, run_in: Task | None = None
) -> dict[str, Finding]:
    return {one.what: one for one in findings(needs, task, run_in or task, robot, observe_start(robot, task.camera))}


def refused(found: dict[str, Finding]) -> set[str]:
    return {what for what, one in found.items() if one.status == "refused"}


def test_the_robot_of_the_training_is_taken() -> None:
    with robot_for() as robot:
        found = found_on(robot)
    assert {one.status for one in found.values()} == {"ok"}
    assert found["camera height, as the floor says"].found == "0.88 m"
    check_findings("p", list(found.values()))


def test_a_lower_camera_is_refused_with_what_it_costs() -> None:
    with robot_for(camera_height_m=0.61) as robot:
        found = found_on(robot)
    assert refused(found) == {"camera height, as calibrated", "camera height, as the floor says"}
    assert "0.27 m cost one policy 10 points of success" in found["camera height, as calibrated"].effect
    with pytest.raises(
        PolicyMismatch, match=r"policy 'p' was not trained on this robot: camera height.*0\.88 m, found 0\.61"
    ):
        check_findings("p", list(found.values()))


def test_another_size_or_field_of_view_is_refused() -> None:
    with robot_for(width=128, height=96, hfov_deg=60.0) as robot:
        found = found_on(robot)
    assert refused(found) == {"image", "horizontal field of view"}
    assert "43 % larger" in found["horizontal field of view"].effect


def test_a_tilt_that_the_head_does_not_reach_is_refused() -> None:
    high = make_task(camera=replace(TASK.camera, tilt_deg=-80.0))
    with robot_for(high) as robot:
        found = found_on(robot, high)
    assert "camera tilt, as the head says" in refused(found)
    assert found["camera tilt, as the head says"].found == "-75.0°"


def test_a_camera_that_looks_elsewhere_than_its_head_says_is_found_out_by_the_floor() -> None:
    tilted = make_task(camera=replace(TASK.camera, tilt_deg=-20.0))
    with robot_for(tilted) as robot:
        seen = observe_start(robot, tilted.camera)
        # As if the servo's zero were 20 degrees off: the head says level, the picture looks down.
        lying = replace(seen, tilt_rad=0.0)
        found = {one.what: one for one in findings(NEEDS, TASK, TASK, robot, lying)}
    assert refused(found) == {"camera tilt, as the floor says"}
    assert found["camera tilt, as the floor says"].found == "-20.0°"
    assert "in proportion 74" in found["camera tilt, as the floor says"].effect
    assert "calibrate extrinsics" in found["camera tilt, as the floor says"].remedy


def test_without_a_floor_in_sight_it_says_so() -> None:
    up = make_task(camera=replace(TASK.camera, tilt_deg=45.0))
    with robot_for(up, wall_x_m=2.0) as robot:
        found = found_on(robot, up)
    assert found["camera's place, as the floor says"].status == "note"
    assert "camera height, as the floor says" not in found


def test_other_steps_are_refused() -> None:
    other = replace(TASK, magnitudes=Magnitudes(0.2, 10, 30))
    with robot_for() as robot:
        found = found_on(robot, run_in=other)
    assert refused(found) == {"forward step", "turn"}
    assert found["forward step"].effect == "every such step leads 20 % less far"
    assert (found["turn"].trained, found["turn"].found) == ("30°", "10°")


def test_steps_that_end_elsewhere_than_they_should_are_refused() -> None:
    def ends(x_m: float, turn_deg: float) -> ActionError:
        return ActionError((x_m, 0.0, math.radians(turn_deg)), ((1e-6, 0, 0), (0, 1e-6, 0), (0, 0, 1e-4)))

    right = {"move_forward": ends(0.002, 0.0), "turn_left": ends(0.0, 1.0), "turn_right": ends(0.0, -1.0)}
    wrong = {**right, "move_forward": ends(-0.05, 0.0), "turn_right": ends(0.0, 4.0)}
    with robot_for() as robot:
        taken = findings(("gps",), TASK, TASK, robot, None, ActuationModel(0.25, 30.0, right))
        found = {
            one.what: one for one in findings(("gps",), TASK, TASK, robot, None, ActuationModel(0.25, 30.0, wrong))
        }
    check_findings("p", taken)
    assert refused(found) == {"move_forward, as measured", "turn_right, as measured"}
    assert found["move_forward, as measured"].found == "0.200 m ± 1 mm"
    assert "after 10 m the robot is 2.0 m from where" in found["move_forward, as measured"].effect
    assert found["turn_right, as measured"].found == "26.00° ± 0.57°"
    assert "after a full turn the robot looks 48° past" in found["turn_right, as measured"].effect


@pytest.mark.parametrize(
    ("options", "status", "found"),
    [
        ({"rate_hz": 100.0}, "ok", "3 mm at 0.30 m/s"),
        ({"rate_hz": 50.0, "motors": {"type": "kobuki"}}, "note", "96 mm at 0.30 m/s, assumed"),
        ({"rate_hz": 50.0, "motors": {"type": "kobuki", "lag_s": 0.2}}, "note", "96 mm at 0.30 m/s, assumed"),
    ],
)
def test_the_way_after_a_contact_is_noted(options: dict[str, Any], status: str, found: str) -> None:
    with make_fake(make_task(), **options) as robot:
        row = after_contact(robot)
    assert (row.status, row.found) == (status, found)
    assert ("contact_travel_m" in row.remedy) == (status == "note")


def test_a_wider_robot_is_noted() -> None:
    with robot_for(radius_m=0.25) as robot:
        found = found_on(robot)
    assert found["robot's radius"].status == "note"
    assert "touches" in found["robot's radius"].effect


@pytest.mark.parametrize(
    ("holes", "low_m", "high_m", "status", "effect"),
    [
        ("zero", 0.05, 20.0, "refused", "like a wall"),
        ("max", 0.05, 20.0, "note", "drive into a wall"),
        ("zero", 0.05, 5.0, "ok", ""),
        ("max", 0.2, 20.0, "ok", ""),
    ],
)
def test_what_the_depth_sensor_cannot_measure_is_told_by_the_policys_rule(
    holes: str, low_m: float, high_m: float, status: str, effect: str
) -> None:
    camera = replace(TASK.camera, depth_min_m=low_m, depth_max_m=high_m, depth_holes=holes)  # type: ignore[arg-type]
    task = make_task(camera=camera)
    with robot_for(task) as robot:
        depth = found_on(robot, task)["depth range"]
    assert depth.status == status
    assert effect in depth.effect


def with_source(**arguments: Any) -> Robot:
    robot = make_fake(TASK)
    options = ImagingOptions(allow_partial_coverage=True)
    camera = source_camera(RawSource(robot, **arguments), robot, RobotContext(make_scene(), TASK.camera, 0), options)
    return replace(robot, camera=camera)


@pytest.mark.slow
def test_a_sensor_that_fills_too_little_is_noted_and_its_lenses_are_named() -> None:
    with with_source(pinhole=NARROW) as robot:
        robot.clock.sleep(0.2)
        found = found_on(robot, needs=("rgb", "depth"))
    assert found["color fills the image (used)"].found == "30 %"
    assert found["color fills the image (used)"].effect == "the rest is black"
    assert "smallest depth" in found["depth fills the image (used)"].effect
    assert found["lenses calibrated by"].found == "factory"


@pytest.mark.slow
def test_a_camera_of_color_alone_is_refused_to_who_needs_depth() -> None:
    with with_source(has_depth=False) as robot:
        robot.clock.sleep(0.2)
        assert refused(found_on(robot)) == {"depth"}


def test_a_policy_that_sees_nothing_is_judged_by_its_steps_alone() -> None:
    with robot_for() as robot:
        found = findings(("gps",), TASK, TASK, robot, None)
    assert [one.what for one in found] == ["forward step", "turn", "robot's radius"]


def test_a_head_that_never_rests_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with robot_for() as robot:
        monkeypatch.setattr(robot.head, "state", lambda _: HeadState(robot.clock.now_ns(), 0.0, 0.0, moving=True))
        with raises_naming(DeviceFault, "head", "10 s"):
            observe_start(robot, TASK.camera)


def test_effects_are_those_that_were_published() -> None:
    assert "in proportion 74" in cost_of_tilt(-20.0)
    assert "in proportion 97" in cost_of_tilt(60.0)
    assert "in proportion 10 to 71" in cost_of_height(-0.27)
    assert "smaller" in cost_of_hfov(60.0, 79.0)


# --- the floor ------------------------------------------------------------------------------------------------------

PINHOLE = Intrinsics.from_hfov(160, 120, 79.0)


def room_depth(height_m: float, tilt_rad: float, roll_rad: float) -> np.ndarray:
    """A floor, and a wall 3 m ahead."""
    roll = np.array(
        [[math.cos(roll_rad), -math.sin(roll_rad), 0], [math.sin(roll_rad), math.cos(roll_rad), 0], [0, 0, 1]]
    )
    rays = Lens.of(PINHOLE).pixel_rays() @ (optical_axes(0.0, tilt_rad) @ roll).T
    with np.errstate(divide="ignore"):
        floor = np.where(rays[..., 2] < 0, -height_m / rays[..., 2], np.inf)
        wall = np.where(rays[..., 0] > 0, 3.0 / rays[..., 0], np.inf)
    return np.minimum(floor, wall).astype(np.float32)


@pytest.mark.parametrize(("height_m", "tilt_deg", "roll_deg"), [(0.88, 0, 0), (0.61, -20, 4), (1.2, -45, -6)])
def test_the_floor_tells_height_tilt_and_roll(height_m: float, tilt_deg: float, roll_deg: float) -> None:
    depth_m = room_depth(height_m, math.radians(tilt_deg), math.radians(roll_deg))
    depth_m += np.random.default_rng(0).normal(0, 0.004, depth_m.shape).astype(np.float32)
    floor = find_floor(depth_m, PINHOLE, 0.88, math.radians(-20))
    assert floor is not None
    assert floor.height_m == pytest.approx(height_m, abs=0.01)
    assert math.degrees(floor.tilt_rad) == pytest.approx(tilt_deg, abs=0.5)
    assert math.degrees(floor.roll_rad) == pytest.approx(roll_deg, abs=0.5)


def test_a_little_floor_between_walls_is_found() -> None:
    depth_m = room_depth(0.88, 0.0, 0.0)
    depth_m[:, :100] = np.minimum(depth_m[:, :100], 1.2)  # walls from the left, up to the right middle
    depth_m += np.random.default_rng(0).normal(0, 0.002, depth_m.shape).astype(np.float32)
    floor = find_floor(depth_m, PINHOLE, 0.88, 0.0)
    assert floor is not None
    assert 0.08 < floor.share < 0.2
    assert floor.height_m == pytest.approx(0.88, abs=0.01)


def test_no_floor_is_made_of_walls_or_of_nothing() -> None:
    rays = Lens.of(PINHOLE).pixel_rays()
    wall = np.full(rays.shape[:2], 2.0, np.float32)
    assert find_floor(wall, PINHOLE, 0.88, 0.0) is None
    assert find_floor(np.zeros_like(wall), PINHOLE, 0.88, 0.0) is None


# --- the picture ----------------------------------------------------------------------------------------------------


def test_the_expected_view_is_the_robots_own_points_from_the_trainings_place() -> None:
    with robot_for(camera_height_m=0.6) as robot:
        seen = observe_start(robot, TASK.camera)
        expected = expected_view(seen.frame, robot.camera.info, seen, TASK.camera)
    with robot_for() as robot:
        truth = observe_start(robot, TASK.camera).frame
    known = expected.depth_m > 0
    assert known[70:].mean() > 0.8
    assert not known[:50].any()
    both = known & (truth.depth_m > 0)
    assert np.median(np.abs(expected.depth_m - truth.depth_m)[both]) < 0.005
    assert np.median(np.abs(expected.rgb.astype(int) - truth.rgb)[both]) <= 5


def test_the_picture_is_written(tmp_path: Path) -> None:
    with robot_for() as robot:
        draw(tmp_path / "p.png", "policy", "robot", TASK.camera, robot.camera.info, observe_start(robot, TASK.camera))
    assert cv2.imread(str(tmp_path / "p.png")).shape[1] > 800


def test_an_open_place_looks_along_free_floor() -> None:
    place = open_start_pose(make_scene(), 0.18)
    assert math.hypot(place.x_m, place.y_m) < 0.2
    # Corners are the farthest.
    assert abs(abs(math.degrees(place.yaw_rad)) % 90 - 45) < 16


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_takes_the_right_robot(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["preflight", "--policy", "pointnav-depth", "--robot", "fake"]) == 0
    said = capfd.readouterr().out
    assert "camera tilt, as the floor says" in said
    assert "this robot is what the policy was trained on" in said


@pytest.mark.slow
def test_the_command_refuses_the_wrong_one_with_its_exit_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    low = tmp_path / "low.yaml"
    low.write_text("name: low\ndriver: drivers.fake.driver.make_robot\noptions: {camera_height_m: 0.61}\n")
    picture = tmp_path / "p.png"
    assert run_command(["preflight", "--robot", str(low), "--picture", str(picture)]) == PolicyMismatch.exit_code
    out, err = capfd.readouterr()
    assert "0.27 m cost one policy 10 points" in out
    assert "camera height, as calibrated: trained with 0.88 m, found 0.61 m" in " ".join(err.split())
    assert picture.stat().st_size > 10_000


def test_the_command_shows_what_keeps_a_robot_from_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(base: FakeBase) -> None:
        raise DeviceFault("topic /hazards has no publisher", "remove the # in republisher.yaml")

    monkeypatch.setattr(FakeBase, "connect", refuse)
    asked = [
        "--policy",
        "random",
        "--task",
        "pointnav_habitat2019",
        "--robot",
        "fake",
        "--json",
        str(tmp_path / "r.json"),
    ]
    assert run_command(["preflight", *asked]) == DeviceFault.exit_code
    assert "connection" in capfd.readouterr().out
    [row] = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["findings"]
    assert (row["status"], row["found"]) == ("refused", "topic /hazards has no publisher")
    assert row["remedy"] == "remove the # in republisher.yaml"


def test_modes_are_listed_with_what_they_fill(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    with with_source(pinhole=NARROW) as robot:
        print_modes(robot.camera)
    lines = [line.split() for line in capfd.readouterr().out.splitlines()]
    assert ["color", "used", "29.8", "%", "63.7", "%", "46.7", "%", "30", "Hz", "in", "use"] in lines
    assert any(line[:3] == ["color", "wide", "100.0"] and line[-1] == "Hz" for line in lines)
    with robot_for() as robot:
        print_modes(robot.camera)
    assert "has no modes" in capfd.readouterr().out


def test_the_command_needs_to_know_the_training(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["preflight", "--policy", "random", "--robot", "fake"]) == 2
    assert "--task" in capfd.readouterr().err
    task = ["--task", "pointnav_habitat2019"]
    assert run_command(["preflight", "--policy", "random", "--robot", "fake", *task]) == 0
