"""Contact, camera, depth and stamps from logs, on data whose truth is chosen."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logged_actions import COMMANDS, STEP_S, episode_of, make_header, make_step
from open_room import make_scene
from raising import raises_naming

from calibration.fitting.actions import Size
from calibration.fitting.camera import FloorFrame, camera_of, changes_by_bias, described_mount
from calibration.fitting.contact import fit_contact, log_ratio, touch_distance_m
from calibration.fitting.depth import at_edge, flicker_m, static_pairs
from calibration.fitting.latency import fit_source
from calibration.fitting.map_distance import Walls
from calibration.fitting.replay_results import depth_bias, held_out_gain, read_replays
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Intrinsics, PoseEstimate, Zone
from robot_runtime.hal.lens import Lens
from robot_runtime.records import ActionResult, Outcome
from robot_runtime.robots.action_errors import ActionError, ActuationModel
from robot_runtime.robots.camera_mount import CameraMount
from robot_runtime.scoring.statistics.intervals import Interval

ROUND = 1e-4 * np.eye(2)
EXACT = ((0.0,) * 3,) * 3
STILL = ActuationModel(
    0.25,
    30.0,
    {name: ActionError((0.0, 0.0, 0.0), EXACT) for name in ("move_forward", "turn_left", "turn_right")},  # type: ignore[arg-type]
)


def open_room() -> Walls:
    """Walls at ±2.95 m, the inner edges of the map's outermost cells."""
    return Walls(make_scene().map, 0.18)


# --- contact --------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(touch_m=st.floats(0.0, 0.15), wall_deg=st.floats(-65, 65).filter(lambda angle: abs(angle) > 15))
def test_an_end_on_its_own_line_was_a_stop_and_one_along_the_wall_a_slide(touch_m: float, wall_deg: float) -> None:
    wall_rad = math.radians(wall_deg)
    left_m = (0.25 - touch_m) * math.cos(wall_rad)
    slid = np.array([touch_m + left_m * math.cos(wall_rad), left_m * math.sin(wall_rad)])
    assert log_ratio(slid, touch_m, wall_rad, 0.25, ROUND) > 0.5
    assert log_ratio(np.array([touch_m, 0.0]), touch_m, wall_rad, 0.25, ROUND) < -0.5


def test_a_head_on_contact_tells_little_and_an_end_that_nothing_explains_tells_nothing() -> None:
    assert abs(log_ratio(np.array([0.1, 0.0]), 0.1, math.pi / 2, 0.25, ROUND)) < 2.0
    assert abs(log_ratio(np.array([-0.2, 0.3]), 0.1, 0.6, 0.25, ROUND)) < 1e-3


def test_walls_are_as_far_as_the_map_says_between_cells_too() -> None:
    walls = open_room()
    x_m = np.array([1.0, 2.0, 2.5, 2.73, 2.9])
    assert walls.distance_m(x_m, np.zeros(5)) == pytest.approx(2.95 - x_m, abs=0.013)
    assert walls.away(2.7, 0.3) == pytest.approx((-1.0, 0.0), abs=1e-6)
    assert walls.away(0.3, -2.7) == pytest.approx((0.0, 1.0), abs=1e-6)
    assert touch_distance_m(walls, SE2(2.6), 0.25, 0.18) == pytest.approx(0.17, abs=0.03)
    assert touch_distance_m(walls, SE2(2.6, 0.0, math.pi), 0.25, 0.18) is None
    assert touch_distance_m(walls, SE2(2.77, 0.0, math.pi / 2), 0.25, 0.18) is None, "along a wall is not into it"


def pushing(slides: bool, count: int, head_on: bool = False) -> list:
    """Episodes of a robot of radius 0.18 m that drives into the east wall at 50 degrees, from other places each."""
    forward = COMMANDS[Action.MOVE_FORWARD]
    random = np.random.default_rng(0)
    steps = []
    for number in range(count):
        yaw_rad = 0.0 if head_on else math.radians(50)
        touch_m = random.uniform(0.02, 0.1)
        start = SE2(2.77 - touch_m * math.cos(yaw_rad), 0.2 * number - 1.9, yaw_rad)
        touch = start @ SE2(touch_m)
        slid_m = (0.25 - touch_m) * math.sin(yaw_rad) if slides else 0.0
        end = SE2(touch.x_m, touch.y_m + slid_m, yaw_rad)
        outcome = Outcome.REACHED if slides else Outcome.CONTACT
        zone = Zone.NONE if slides else Zone.RIGHT
        result = ActionResult(outcome, forward, forward, zone, 1.0)
        steps += [make_step(2 * number, None, None, start), make_step(2 * number + 1, Action.MOVE_FORWARD, result, end)]
    return [episode_of(steps)]


@pytest.mark.parametrize("slides", [False, True])
def test_whether_it_slides_is_found_and_how_wide_it_is(slides: bool) -> None:
    episodes = pushing(slides, 20)
    walls = {episodes[0].header.scene.digest: open_room()}
    fit = fit_contact(episodes, walls, Size(0.25, 30.0), STILL)
    assert fit.behaviour == ("slide" if slides else "stop")
    assert (fit.log_ratio > 20) is slides
    assert len(fit.contacts) == 20
    assert fit.felt == (0 if slides else 20)
    assert fit.radius_m is not None
    assert fit.radius_m.mean == pytest.approx(0.18, abs=0.015)
    assert fit.radius_m.low < 0.18 - 0.025 < 0.18 + 0.025 < fit.radius_m.high, "cells hide the obstacle's edge"
    assert fit.model is not None
    assert fit.model.behaviour == fit.behaviour


def test_few_contacts_or_head_on_ones_alone_decide_nothing() -> None:
    walls = {make_scene().digest: open_room()}
    few = fit_contact(pushing(True, 4), walls, Size(0.25, 30.0), STILL)
    assert (few.behaviour, few.model) == (None, None)
    assert "not enough contacts: 4" in few.reason
    ahead = fit_contact(pushing(False, 20, head_on=True), walls, Size(0.25, 30.0), STILL)
    assert ahead.behaviour is None
    assert "not enough contacts: 0 of" in ahead.reason


def test_a_corner_that_the_map_lacks_is_one_mistake_however_often_the_robot_is_caught_there() -> None:
    forward = COMMANDS[Action.MOVE_FORWARD]
    held = ActionResult(Outcome.TIMED_OUT, forward, Displacement(), Zone.NONE, 1.0)
    caught = []
    for number in range(60):
        at = SE2(2.77 - 0.002 * (number % 3), 1.5 + 0.004 * (number % 4), math.radians(50 + number % 5))
        caught += [make_step(2 * number, None, None, at), make_step(2 * number + 1, Action.MOVE_FORWARD, held, at)]
    episodes = [*pushing(True, 12), episode_of(caught), episode_of(caught)]
    walls = {episodes[0].header.scene.digest: open_room()}
    fit = fit_contact(episodes, walls, Size(0.25, 30.0), STILL)
    assert len(fit.contacts) <= 14
    assert fit.behaviour == "slide"


def test_pushing_again_from_the_same_place_tells_it_once() -> None:
    forward = COMMANDS[Action.MOVE_FORWARD]
    held = ActionResult(Outcome.CONTACT, forward, Displacement(), Zone.RIGHT, 0.1)
    at = SE2(2.77, 0.0, 0.8)
    steps = [make_step(0, None, None, at)] + [make_step(i, Action.MOVE_FORWARD, held, at) for i in range(1, 20)]
    fit = fit_contact([episode_of(steps)], {make_scene().digest: open_room()}, Size(0.25, 30.0), STILL)
    assert len(fit.contacts) == 1


# --- camera ---------------------------------------------------------------------------------------------------------


def floor_frame(episode: int, tilt_deg: float, height_m: float = 0.02, roll_deg: float = -1.0) -> FloorFrame:
    return FloorFrame(episode, 1, 0.0, math.radians(tilt_deg), math.radians(roll_deg), height_m, 0.3)


def test_the_camera_is_where_most_frames_say() -> None:
    random = np.random.default_rng(0)
    frames = [floor_frame(i % 6, 2.0 + random.normal(0, 0.1)) for i in range(40)]
    frames += [floor_frame(0, -7.0, 0.1, 4.0), floor_frame(3, 9.0, -0.12)]
    fit = camera_of(frames, 60)
    assert fit.tilt_deg is not None
    assert fit.tilt_deg.mean == pytest.approx(2.0, abs=0.1)
    assert fit.tilt_deg.low < 2.0 < fit.tilt_deg.high
    assert fit.roll_deg is not None
    assert fit.roll_deg.mean == pytest.approx(-1.0)
    assert fit.height_m is not None
    assert fit.height_m.mean == pytest.approx(0.02)
    assert len(fit.frames) >= 38


def test_a_bias_of_depth_is_in_the_intervals_of_the_camera() -> None:
    """A camera that measures 1 % too far hangs 1 % too high by the floor, whatever the number of frames."""
    header = make_header(intrinsics=Intrinsics.from_hfov(160, 120, 79.0), depth_unit_m=0.0)
    down_rad, mount = math.radians(-30), CameraMount(header.mount)
    rays = Lens.of(header.intrinsics).rays(np.mgrid[0:160, 0:120].reshape(2, -1).T.astype(np.float64))
    falls = -(rays @ optical_axes(0.0, down_rad)[2]).reshape(160, 120).T
    depth_m = np.where(falls > 0.05, 0.88 / np.maximum(falls, 0.05), 0.0).astype(np.float32)
    seen = FloorFrame(0, 1, down_rad, 0.0, 0.0, 0.0, 0.5)
    changes = changes_by_bias(seen, header, mount, (0.0, down_rad), depth_m)
    assert changes[1] == pytest.approx((0.0, 0.0, 0.01 * 0.88), abs=2e-4)
    frames = [floor_frame(i % 6, 0.0, 0.01 * 0.88, 0.0) for i in range(40)]
    alone, joint = camera_of(frames, 40), camera_of(frames, 40, biased=changes)
    for fit, covers in ((alone, False), (joint, True)):
        assert fit.height_m is not None
        assert (fit.height_m.low <= 0.0 <= fit.height_m.high) is covers
        assert fit.height_m.mean == pytest.approx(0.0088)


def test_too_little_floor_is_said() -> None:
    assert "3 of 60 frames" in camera_of([floor_frame(i, 2.0) for i in range(3)], 60).reason
    assert "0 of 0 frames" in camera_of([], 0).reason


def test_the_description_is_the_mount_that_the_log_names_or_its_height(tmp_path: Path) -> None:
    path = tmp_path / "mount.yaml"
    path.write_text("pan_joint_m: [0.1, 0.0, 0.9]\ncamera: {rpy_deg: [0.0, 10.0, 0.0]}\n", encoding="utf-8")
    named = make_header(robot_config={"options": {"camera": {"mount": str(path)}}})
    mount, name = described_mount(named)
    assert name == str(path)
    height_m, tilt_rad, roll_rad = mount.pointing(0.0, math.radians(4))
    assert (height_m, math.degrees(tilt_rad), roll_rad) == pytest.approx((0.9, -6.0, 0.0), abs=1e-9)
    gone = make_header(robot_config={"options": {"camera": {"mount": "gone.yaml"}}})
    assert described_mount(gone)[1] is None
    assert described_mount(gone)[0].pointing(0.0, 0.1) == pytest.approx((0.88, 0.1, 0.0))


# --- depth ----------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), sigma_m=st.floats(0.0006, 0.05), unit_m=st.sampled_from([0.0, 0.001]))
def test_noise_is_found_from_changes_in_spite_of_rounding_and_outliers(
    seed: int, sigma_m: float, unit_m: float
) -> None:
    random = np.random.default_rng(seed)
    frames = 2.0 + random.normal(0, sigma_m, (2, 20_000))
    if unit_m:
        frames = np.rint(frames / unit_m) * unit_m
    changes = frames[1] - frames[0]
    changes[:100] = 3.0
    assert flicker_m(changes, unit_m) == pytest.approx(sigma_m, rel=0.08)


def test_edges_are_between_surfaces_not_on_slopes_or_in_noise() -> None:
    rows, columns = np.mgrid[0:60, 0:80]
    slope = (1.0 + 0.02 * rows).astype(np.float32)
    noise = np.random.default_rng(0).normal(0, 0.005, (2, 60, 80)).astype(np.float32)
    assert at_edge(slope + noise[0], slope + noise[1]).mean() < 0.03
    step = np.where(columns < 40, 1.0, 2.0).astype(np.float32)
    edges = at_edge(step + noise[0], step + noise[1])
    assert edges[:, 38:42].any(axis=1).mean() > 0.95
    assert edges[:, :36].mean() < 0.02


def test_the_same_view_is_seen_again_after_pushing_and_after_looking_up_and_down() -> None:
    forward, still = COMMANDS[Action.MOVE_FORWARD], Displacement()
    look = ActionResult(Outcome.REACHED, Displacement(tilt_rad=-0.5), Displacement(tilt_rad=-0.5), Zone.NONE, 1.0)
    held = ActionResult(Outcome.CONTACT, forward, still, Zone.CENTER, 0.1)
    gone = ActionResult(Outcome.REACHED, forward, forward, Zone.NONE, 1.0)
    unsure = np.diag([0.02, 0.02, 0.02]) ** 2  # a referee that could not tell
    steps = [
        make_step(0, None, None, SE2(), unsure),
        make_step(1, Action.LOOK_DOWN, look, SE2(0.01), unsure, tilt_rad=-0.5),
        make_step(2, Action.LOOK_UP, look, SE2(-0.01), unsure),
        make_step(3, Action.MOVE_FORWARD, gone, SE2(0.25), unsure),
        make_step(4, Action.MOVE_FORWARD, held, SE2(0.26), unsure),
        make_step(5, Action.MOVE_FORWARD, gone, SE2(0.0), unsure),
    ]
    assert list(static_pairs(episode_of(steps))) == [(0, 2), (3, 4)]
    sure = [make_step(i, None, None, SE2(0.1 * (i % 2))) for i in range(4)]
    moved = ActionResult(Outcome.REACHED, forward, forward, Zone.NONE, 1.0)
    there_and_back = [sure[0], *(make_step(i, Action.MOVE_FORWARD, moved, SE2(0.1 * (i % 2))) for i in range(1, 4))]
    assert list(static_pairs(episode_of(there_and_back))) == [(0, 2), (1, 3)]


def replay_of(
    path: Path, tilt_deg: float, biases: list[tuple[float, float]], robot: str = "r", log: str = "0.mcap"
) -> None:
    """Output of `robot-runtime replay`, as far as a fit reads it."""
    estimate = {"value": tilt_deg, "error": 0.02}
    offset = {"tilt_deg": estimate, "roll_deg": estimate, "pan_deg": None, "forward_mm": None, "up_mm": None}
    offset["biases"] = [{"depth_m": depth_m, "bias_mm": bias_mm} for depth_m, bias_mm in biases]
    path.write_text(json.dumps({"robot": robot, "log": f"/logs/{log}", "pose": {"offset": offset}}), encoding="utf-8")


def test_the_camera_of_replays_is_the_middle_of_them_with_its_bias_by_distance(tmp_path: Path) -> None:
    assert read_replays([], "r") is None
    for number, tilt_deg in enumerate((-3.0, -2.9, -3.1, -3.0, 2.0)):  # the last one is of a cramped place
        biases = [(z, 5 + 4 * z * z + (100 if number == 4 else 0)) for z in (0.6, 1.1, 1.6, 2.2, 3.1)]
        replay_of(tmp_path / f"{number}.json", tilt_deg, biases)
    found = read_replays([tmp_path], "r")
    assert found is not None
    assert found.tilt_deg is not None
    assert found.tilt_deg.mean == -3.0
    assert found.tilt_deg.low <= -3.0 < found.tilt_deg.high
    assert (found.replays, found.pan_deg, found.farthest_m) == (5, None, 3.1)
    z = np.array([0.6, 1.5, 3.0])
    assert np.polynomial.polynomial.polyval(z, found.bias) == pytest.approx(0.005 + 0.004 * z * z, abs=0.0015)


def test_a_single_replay_is_no_surer_than_it_says(tmp_path: Path) -> None:
    replay_of(tmp_path / "replay.json", -3.0, [])
    found = read_replays([tmp_path / "replay.json"], "r")
    assert found is not None
    assert found.tilt_deg is not None
    assert (found.tilt_deg.low, found.tilt_deg.high) == pytest.approx((-3.0392, -2.9608))
    assert (found.bias, found.farthest_m) == ((0.0, 0.0, 0.0), 0.0)


def test_a_forward_offset_and_a_bias_of_depth_are_found_together() -> None:
    """A camera that measures 1 % too far, which replays mistook for one 12.8 mm farther back."""
    biases = [(z, 0.01 * z - 0.0128) for z in (0.6, 1.1, 1.6, 2.2, 3.1)]
    bias, forward_m = depth_bias(biases, Interval(-0.0128, -0.0133, -0.0087))
    assert forward_m is not None
    assert forward_m.low < 0.0 < forward_m.high
    assert forward_m.mean == pytest.approx(0.0, abs=0.003)
    z = np.array([1.0, 2.0, 3.0])
    assert np.polynomial.polynomial.polyval(z, bias) == pytest.approx(0.01 * z, abs=0.003)


@pytest.mark.parametrize(("tilts_deg", "better"), [((-3.0, -2.9, -3.1, -3.0), True), ((4.0, -6.0, 5.0, -7.0), False)])
def test_replays_are_kept_where_held_out_logs_are_likelier(
    tmp_path: Path, tilts_deg: tuple[float, ...], better: bool
) -> None:
    """The floor says -2.8 degrees; replays agree with each other on -3, or not at all."""
    logs = [f"{number}.mcap" for number in range(4)]
    for log, tilt_deg in zip(logs, tilts_deg, strict=True):
        replay_of(tmp_path / f"{log}.json", tilt_deg, [(1.0, 0.0), (2.0, 0.0)], log=log)
    biased = ((-0.05, 0.0, 0.003), (0.0, 0.0, 0.009), (0.1, 0.0, 0.0))
    camera = camera_of([floor_frame(number % 4, -2.8, 0.0, -3.0) for number in range(40)], 40, biased=biased)
    replayed = read_replays([tmp_path], "r")
    assert replayed is not None
    gain = held_out_gain(camera, replayed, logs)
    assert gain is not None
    assert (gain > 0) is better
    only = read_replays([tmp_path / "0.mcap.json"], "r")
    assert only is not None
    assert held_out_gain(camera, only, logs) is None


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("{}", "'robot'"),
        ("not json", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"robot": "r", "pose": null}', "--poses"),
        ('{"robot": "r", "pose": {"offset": null}}', "--poses"),
        ('{"robot": "r", "pose": {"offset": {}}}', "--overwrite"),
        ('{"robot": "other", "pose": {"offset": null}}', "'other'"),
    ],
)
def test_what_is_no_replay_of_this_robot_is_named(tmp_path: Path, text: str, thing: str) -> None:
    path = tmp_path / "replay.json"
    path.write_text(text, encoding="utf-8")
    with raises_naming(ConfigError, "replay.json", thing):
        read_replays([path], "r")


# --- stamps ---------------------------------------------------------------------------------------------------------


def arriving(latency_s: float, rate_hz: float, late_stamps_s: float = 0.0, lost: float = 0.0) -> list:
    """Episodes of a robot that turns to and fro, whose beacons report so, and whose wheels report at once."""
    random = np.random.default_rng(0)
    steps = [make_step(i, None, None, SE2()) for i in range(40)]
    told = [step.times.observed_ns for step in steps]

    def heading(at_s: np.ndarray) -> np.ndarray:
        return np.sin(at_s * 2 * math.pi / 3.1)

    end_s = 40 * STEP_S
    beacons = np.arange(0.0, end_s, 1 / rate_hz)
    beacons = beacons[random.random(beacons.size) >= lost]
    wheels = np.arange(0.0, end_s, 0.02)
    arrivals = []
    for index, until_ns in enumerate(told):
        since_ns = told[index - 1] if index else -1
        batch = {}
        for name, stamps_s, delay_s, shift_s in (
            ("beacons", beacons, latency_s, late_stamps_s),
            ("wheels", wheels, 0.0, 0.0),
        ):
            came_ns = [seconds_to_ns(s + delay_s) for s in stamps_s]
            batch[name] = [
                PoseEstimate(seconds_to_ns(s), SE2(0, 0, float(heading(s - shift_s))), "map")
                for s, at in zip(stamps_s, came_ns, strict=True)
                if since_ns < at <= until_ns
            ]
        arrivals.append((index, batch))
    return [episode_of(steps, arrivals=arrivals)]


@pytest.mark.parametrize(("latency_s", "rate_hz"), [(0.0, 30.0), (0.083, 10.7), (0.15, 8.3)])
def test_latency_is_closed_in_by_what_had_arrived(latency_s: float, rate_hz: float) -> None:
    source = fit_source("beacons", arriving(latency_s, rate_hz), "wheels")
    assert source is not None
    assert source.rate_hz == pytest.approx(rate_hz, rel=0.01)
    assert source.latency_s is not None
    assert source.latency_s.low - 1e-6 <= latency_s <= source.latency_s.high + 1e-6
    assert source.latency_s.high - source.latency_s.low < 0.5 / rate_hz
    assert (source.out_of_order, source.lost) == (0, 0.0)


def test_stamps_that_are_late_and_poses_that_never_come_are_found() -> None:
    source = fit_source("beacons", arriving(0.05, 20.0, late_stamps_s=0.04, lost=0.2), "wheels")
    assert source is not None
    assert source.lost == pytest.approx(0.2, abs=0.04)
    assert source.stamps_late_s is not None
    assert source.stamps_late_s.mean == pytest.approx(0.04, abs=0.002)


def test_a_source_that_the_logs_do_not_have_is_not_judged() -> None:
    assert fit_source("mocap", arriving(0.05, 20.0), "wheels") is None
