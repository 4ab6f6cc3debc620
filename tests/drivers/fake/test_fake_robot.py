"""The fake robot moves exactly, touches its wall, and does wrong what its script says and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from drivers.fake.driver import make_robot
from drivers.fake.ground_truth import GroundTruth
from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, DeviceFault, InvalidStart, NotConnected, StaleData
from robot_runtime.hal import Halt, PoseStatus, Robot, Velocity, Zone
from robot_runtime.recording.images import decode_depth, encode_depth
from robot_runtime.robots.loader import RobotContext
from robot_runtime.tasks.task import TrainingCamera

FORWARD = Velocity(0.3, 0.0)


def robot(*faults: dict[str, Any], **options: Any) -> Robot:
    small = {"width": 32, "height": 24, **options, "faults": list(faults)}
    made = make_robot(RobotContext(None, None, seed=0), "fake", small, "test")
    made.connect()
    return made


def drive(r: Robot, wish: Velocity, seconds: float) -> None:
    for _ in range(round(seconds / 0.02)):
        r.base.command(wish)
        r.clock.sleep(0.02)


def truth(r: Robot) -> SE2:
    return r.referee.latest(1.0).pose


# --- motion -----------------------------------------------------------------------------------------------------------


@given(st.floats(-1, 1), st.floats(-3, 3), st.floats(0, 2))
def test_an_arc_is_the_limit_of_small_steps(linear_m_s: float, angular_rad_s: float, seconds: float) -> None:
    pose = SE2()
    for _ in range(200):
        turn_rad = angular_rad_s * seconds / 200
        pose = pose @ SE2(yaw_rad=turn_rad / 2) @ SE2(linear_m_s * seconds / 200) @ SE2(yaw_rad=turn_rad / 2)
    exact = SE2.arc(linear_m_s * seconds, angular_rad_s * seconds)
    assert exact.distance_to(pose) < 1e-3
    assert math.cos(exact.yaw_rad - pose.yaw_rad) == pytest.approx(1)


def test_odometry_and_truth_share_the_motion_but_not_the_origin() -> None:
    r = robot()
    r.placer.place(SE2(1.0, 2.0, math.pi / 2), 0.0)
    drive(r, FORWARD, 2.0)
    r.base.stop()
    r.clock.sleep(0.1)
    odom = r.base.state(0.1).odom
    assert odom.x_m > 0.4
    assert odom.y_m == pytest.approx(0, abs=1e-12)
    assert truth(r).x_m == pytest.approx(1.0, abs=1e-9)
    assert truth(r).y_m == pytest.approx(2.0 + odom.x_m, abs=1e-9)


@pytest.mark.parametrize(
    ("yaw_deg", "zone"),
    [(0, Zone.CENTER), (29, Zone.CENTER), (-29, Zone.CENTER), (45, Zone.RIGHT), (-45, Zone.LEFT), (80, Zone.RIGHT)],
)
def test_the_wall_presses_the_bumper_that_meets_it_and_the_robot_holds(yaw_deg: float, zone: Zone) -> None:
    r = robot(wall_x_m=0.5)
    r.placer.place(SE2(0.25, 0.0, math.radians(yaw_deg)), 0.0)
    drive(r, FORWARD, 5.0)
    state = r.base.state(0.1)
    assert (state.bumper, state.halt) == (zone, Halt.CONTACT)
    pressed_zone = truth(r)
    assert pressed_zone.x_m == pytest.approx(0.5 - 0.18, abs=1e-4)
    drive(r, FORWARD, 0.5)
    assert truth(r) == pressed_zone, "it neither pushes nor slides"
    drive(r, Velocity(0.0, 0.5), 0.5)
    assert truth(r).yaw_rad != pressed_zone.yaw_rad, "turning is allowed"
    drive(r, Velocity(-0.2, 0.0), 1.0)
    assert r.base.state(0.1).bumper is Zone.NONE, "and so is backing off"


def test_the_back_meets_the_wall_without_a_bumper() -> None:
    r = robot(wall_x_m=0.5)
    r.placer.place(SE2(0.25, 0.0, math.pi), 0.0)
    drive(r, Velocity(-0.3, 0.0), 2.0)
    assert truth(r).x_m == pytest.approx(0.32, abs=1e-4)
    assert r.base.state(0.1).bumper is Zone.NONE


@given(st.floats(-1, 0.32), st.floats(-4, 4), st.lists(st.tuples(st.floats(-0.7, 0.7), st.floats(-3, 3)), max_size=60))
def test_no_drive_goes_through_the_wall(x_m: float, yaw_rad: float, drives: list[tuple[float, float]]) -> None:
    world = GroundTruth(0.18, 0.5, SE2(x_m, 0.0, yaw_rad))
    for linear_m_s, angular_rad_s in drives:
        world.drive(Velocity(linear_m_s, angular_rad_s), 0.02)
        assert world.pose.x_m <= 0.32 + 1e-4


# --- placing ----------------------------------------------------------------------------------------------------------


def test_placing_turns_the_head_and_forgets_the_old_place() -> None:
    r = robot()
    r.clock.sleep(1.0)
    before_ns = r.clock.now_ns()
    r.placer.place(SE2(5.0, -3.0, 1.0), math.radians(-30))
    assert r.head.state(0.1).tilt_rad == pytest.approx(math.radians(-30))
    assert r.localizer.latest(0.2).pose == SE2(5.0, -3.0, 1.0)
    with raises_naming(StaleData, "oldest"):
        r.localizer.at(before_ns, 0.1)
    assert r.camera.capture(0, 1.0).stamp_ns > before_ns


@pytest.mark.parametrize(
    ("pose", "tilt_rad", "things"),
    [
        (SE2(0.4, 0.0), 0.0, ("0.400 m", "0.320 m")),
        (SE2(math.nan, 0.0), 0.0, ("nan m", "wall_x_m")),
        (SE2(), 2.0, ("head", "2.000 rad")),
        (SE2(), math.nan, ("head", "nan rad")),
    ],
)
def test_an_impossible_start_is_refused_and_nothing_moves(pose: SE2, tilt_rad: float, things: tuple[str, ...]) -> None:
    r = robot(wall_x_m=0.5)
    r.clock.sleep(0.1)
    with raises_naming(InvalidStart, *things):
        r.placer.place(pose, tilt_rad)
    assert truth(r) == SE2()
    assert not r.head.state(0.1).moving


# --- camera -----------------------------------------------------------------------------------------------------------


def test_depth_is_the_floor_and_the_wall() -> None:
    r = robot(wall_x_m=3.0, width=65, height=49, camera_height_m=1.0)
    depth_m = r.camera.capture(0, 1.0).depth_m
    assert depth_m[24, 32] == pytest.approx(3.0), "straight ahead: the wall, 3 m along the optical axis"
    assert np.all(depth_m[24] == depth_m[24, 32]), "a wall square to the axis has one depth"
    k = r.camera.info.intrinsics
    floor_m = k.fy / (48 - k.cy)
    assert depth_m[48, 32] == pytest.approx(floor_m, abs=0.001)
    r.placer.place(SE2(0.0, 0.0, math.pi), 0.0)
    assert r.camera.capture(r.clock.now_ns(), 1.0).depth_m[24, 32] == 0, "nothing within range is a hole"
    r.placer.place(SE2(), math.radians(-45))
    looking_down = r.camera.capture(r.clock.now_ns(), 1.0).depth_m
    assert looking_down[24, 32] == pytest.approx(math.sqrt(2), abs=0.001)


def test_depth_is_logged_as_16_bit_millimeters_without_loss() -> None:
    camera = robot(wall_x_m=2.345, width=65, height=49, camera_height_m=1.0).camera
    frame = camera.capture(0, 1.0)
    message = encode_depth(frame, camera.info.depth_unit_m)
    assert message.encoding == "16UC1"
    assert np.array_equal(decode_depth(message.to_bytes()), frame.depth_m)


def test_frames_are_a_function_of_the_pose() -> None:
    first, second, third = robot(), robot(), robot()
    third.placer.place(SE2(0.1, 0.0, 0.1), 0.0)
    frames = [r.camera.capture(r.clock.now_ns(), 1.0) for r in (first, second, third)]
    assert np.array_equal(frames[0].rgb, frames[1].rgb)
    assert not np.array_equal(frames[0].rgb, frames[2].rgb)


def test_the_training_camera_is_the_default_and_options_win() -> None:
    training = TrainingCamera(64, 48, 60.0, 1.2, 0.0, 10.0, depth_normalized=False)
    context = RobotContext(None, training, seed=0)
    info = make_robot(context, "fake", {}, "test").camera.info
    assert (info.intrinsics.width, info.intrinsics.height, info.mount.z_m) == (64, 48, 1.2)
    assert info.intrinsics.hfov_deg == pytest.approx(60)
    info = make_robot(context, "fake", {"width": 32, "camera_height_m": 0.5}, "test").camera.info
    assert (info.intrinsics.width, info.intrinsics.height, info.mount.z_m) == (32, 48, 0.5)
    assert make_robot(RobotContext(None, None, 0), "fake", {}, "test").camera.info.intrinsics.width == 640


# --- faults -----------------------------------------------------------------------------------------------------------


def test_lost_frames_come_back() -> None:
    r = robot({"kind": "lost_frames", "from_s": 1, "to_s": 2})
    r.camera.capture(r.clock.now_ns(), 0.5)
    r.clock.sleep_until(NS_PER_S)
    with raises_naming(StaleData, "fake camera", "0.53 s"):
        r.camera.capture(r.clock.now_ns(), 0.5 + 1 / 30)
    assert r.camera.capture(r.clock.now_ns(), 1.0).stamp_ns >= 2 * NS_PER_S


def test_late_poses_are_late_and_true() -> None:
    r = robot({"kind": "late_poses", "from_s": 1, "latency_s": 0.7}, pose_latency_s=0.0, pose_rate_hz=50)
    r.clock.sleep_until(3 * NS_PER_S)
    with raises_naming(StaleData, "'fake localizer'", "0.7"):
        r.localizer.latest(0.5)
    with raises_naming(StaleData, "fake localizer"):
        r.localizer.at(3 * NS_PER_S, timeout_s=0.5)
    assert r.localizer.at(3 * NS_PER_S, timeout_s=0.5).pose == SE2()


def test_dropped_poses_leave_a_gap_that_is_not_bridged() -> None:
    r = robot({"kind": "dropped_poses", "from_s": 1, "to_s": 2})
    r.clock.sleep_until(2 * NS_PER_S)
    with pytest.raises(StaleData):
        r.localizer.latest(0.5)
    r.clock.sleep(0.5)
    r.localizer.latest(0.5)
    with raises_naming(StaleData, "fake localizer", "1."):
        r.localizer.at(NS_PER_S * 3 // 2, 0.1)
    r.referee.at(NS_PER_S * 3 // 2, 0.1)


def test_lost_tracking_says_so() -> None:
    r = robot({"kind": "lost_tracking", "from_s": 1, "to_s": 2})
    statuses = []
    for _ in range(30):
        r.clock.sleep(0.1)
        statuses.append(r.localizer.latest(0.5).status)
    assert set(statuses[:9]) == set(statuses[22:]) == {PoseStatus.OK}
    assert set(statuses[12:19]) == {PoseStatus.LOST}


@pytest.mark.parametrize(
    ("fault", "halt", "may_turn"),
    [
        ({"kind": "stuck_bumper", "zone": "right"}, Halt.CONTACT, True),
        ({"kind": "cliff", "zone": "center"}, Halt.CLIFF, False),
        ({"kind": "wheel_drop", "zone": "left"}, Halt.WHEEL_DROP, False),
    ],
)
def test_safety_sensors_halt_while_the_fault_lasts(fault: dict[str, Any], halt: Halt, may_turn: bool) -> None:
    r = robot({**fault, "from_s": 1, "to_s": 2})
    drive(r, FORWARD, 1.02)
    assert r.base.state(0.1).halt is halt
    held = truth(r)
    drive(r, FORWARD, 0.4)
    assert truth(r) == held
    drive(r, Velocity(0.0, 0.5), 0.4)
    assert (truth(r) != held) is may_turn
    drive(r, FORWARD, 1.0)
    assert truth(r).distance_to(held) > 0.1


def test_a_silent_base_stops_itself() -> None:
    r = robot({"kind": "silent_base", "from_s": 1, "to_s": 3})
    drive(r, FORWARD, 1.2)
    with raises_naming(StaleData, "'base'"):
        r.base.state(0.1)
    held = truth(r)
    drive(r, FORWARD, 1.0)
    assert truth(r) == held
    drive(r, FORWARD, 1.0)
    assert r.base.state(0.1).halt is Halt.NONE


def test_a_stuck_head_never_arrives() -> None:
    r = robot({"kind": "stuck_head", "from_s": 1})
    r.clock.sleep(1.0)
    r.head.command(0.0, -0.5)
    r.clock.sleep(5.0)
    state = r.head.state(0.1)
    assert state.moving
    assert state.tilt_rad == 0
    with raises_naming(DeviceFault, "fake head", "stuck_head"):
        r.placer.place(SE2(), -0.5)


@pytest.mark.parametrize("device", ["base", "head", "camera", "localizer"])
def test_a_refused_connection_leaves_nothing_open(device: str) -> None:
    options = {"faults": [{"kind": "refused_connection", "device": device, "to_s": 1}]}
    r = make_robot(RobotContext(None, None, 0), "fake", options, "test")
    with raises_naming(DeviceFault, f"fake {device}", "refused_connection"):
        r.connect()
    uses: tuple[Callable[[], object], ...] = (lambda: r.base.state(1), lambda: r.head.state(1))
    for use in uses:
        with pytest.raises(NotConnected):
            use()
    r.clock.sleep(1.0)
    with r:
        assert r.base.state(0.1).halt is Halt.NONE


def test_a_base_that_is_closed_while_it_drives_stops() -> None:
    r = robot()
    drive(r, FORWARD, 1.0)
    r.base.close()
    held = truth(r)
    r.clock.sleep(1.0)
    assert truth(r) == held


def test_a_single_device_can_be_used_in_a_with_block() -> None:
    r = make_robot(RobotContext(None, None, 0), "fake", {}, "test")
    with r.head as head:
        assert not head.state(0.1).moving
    with pytest.raises(NotConnected):
        r.head.state(0.1)


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "thing"),
    [
        ({"radius_m": -1}, "radius_m"),
        ({"pose_latency_s": -0.1}, "pose_latency_s"),
        ({"width": 0}, "width"),
        ({"wall_x_m": math.nan}, "field 'wall_x_m'"),
        ({"faults": [{"kind": "late_poses", "latency_s": "long"}]}, "'long'"),
        ({"faults": [{"from_s": 1}]}, "field 'faults.0"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], thing: str) -> None:
    with raises_naming(ConfigError, thing):
        make_robot(RobotContext(None, None, 0), "fake", options, "test")


def test_zero_latency_is_allowed() -> None:
    r = robot(camera_latency_s=0, pose_latency_s=0, head_settle_s=0)
    r.clock.sleep(0.1)
    assert r.localizer.latest(0.1).pose == SE2()
