"""The simulated camera against geometry worked out by hand."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from raising import raises_naming

from robot_runtime.common.clock import NS_PER_S
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault, InvalidStart, StaleData
from robot_runtime.hal import Intrinsics, Robot
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.task import TrainingCamera
from sim_bridge.robot.driver import make_robot

HEIGHT_M = 0.88
ROOM_X_M, ROOM_Y_M, WALL_TOP_M = 3.0, 2.0, 2.5
SLOW_HEAD = {"speed_deg_s": 60.0, "settle_s": 0.1}


@pytest.fixture
def robot(sim: Callable[..., Robot]) -> Iterator[Robot]:
    """A connected robot in the room."""
    with sim() as robot:
        yield robot


def empty_room_depth(intrinsics: Intrinsics, pose: SE2, pan_rad: float, tilt_rad: float) -> NDArray[np.float64]:
    """Depth along the optical axis of the floor or wall that each pixel sees; 0 above the walls, (H, W)."""
    v, u = np.mgrid[: intrinsics.height, : intrinsics.width]
    right = (u - intrinsics.cx) / intrinsics.fx
    up = -(v - intrinsics.cy) / intrinsics.fy
    heading = pose.yaw_rad + pan_rad
    level = math.cos(tilt_rad) - up * math.sin(tilt_rad)
    ray_x = level * math.cos(heading) + right * math.sin(heading)
    ray_y = level * math.sin(heading) - right * math.cos(heading)
    ray_z = math.sin(tilt_rad) + up * math.cos(tilt_rad)
    with np.errstate(divide="ignore"):
        to_wall = np.minimum(
            (np.copysign(ROOM_X_M, ray_x) - pose.x_m) / ray_x, (np.copysign(ROOM_Y_M, ray_y) - pose.y_m) / ray_y
        )
        to_floor = np.where(ray_z < 0, -HEIGHT_M / ray_z, np.inf)
    depth = np.minimum(to_wall, to_floor)
    depth[HEIGHT_M + depth * ray_z > WALL_TOP_M] = 0
    return depth


def capture_with_ids(robot: Robot, pose: SE2, pan_rad: float, tilt_rad: float) -> tuple[NDArray, NDArray, NDArray]:
    """Color, depth and ids from a pose."""
    robot.placer.place(pose, tilt_rad)
    robot.head.command(pan_rad, tilt_rad)
    robot.clock.sleep(2.5)
    frame = robot.camera.capture(robot.clock.now_ns(), 1.0, semantic=True)
    assert frame.semantic is not None
    return frame.rgb, frame.depth_m, frame.semantic


@pytest.mark.parametrize(
    ("pose", "pan_deg", "tilt_deg"),
    [
        (SE2(0.0, 0.0, 0.0), 0, 0),
        (SE2(0.5, -0.4, 0.3), 0, 0),
        (SE2(0.5, -0.4, 0.3), 0, -30),
        (SE2(-1.0, 0.6, 2.0), 0, 30),
        (SE2(-2.0, 1.0, -2.5), 0, -60),
        (SE2(0.0, 0.3, -1.2), 40, -15),
        (SE2(2.0, -1.5, math.pi), -70, 10),
    ],
)
def test_depth_is_exact_to_2_mm_in_every_pixel(robot: Robot, pose: SE2, pan_deg: float, tilt_deg: float) -> None:
    """Wrong HFOV, height, tilt axis or pixel center would each show here."""
    pan_rad, tilt_rad = math.radians(pan_deg), math.radians(tilt_deg)
    _, depth, ids = capture_with_ids(robot, pose, pan_rad, tilt_rad)
    expected = empty_room_depth(robot.camera.info.intrinsics, pose, pan_rad, tilt_rad)
    # Pixels on the outline of an object or of the wall's top belong to one side or the other.
    outline = (ids >= 0) | (expected == 0)
    compared = cv2.dilate(outline.astype(np.uint8), np.ones((3, 3), np.uint8)) == 0
    assert compared.mean() > 0.5
    assert np.abs(depth - expected)[compared].max() <= 0.002
    above_walls = cv2.erode((expected == 0).astype(np.uint8), np.ones((3, 3), np.uint8)) == 1
    assert (depth[above_walls] == 0).all()


def test_the_camera_is_the_tasks(room: Scene) -> None:
    camera = TrainingCamera(256, 192, 90.0, 1.25, 0.5, 5.0, depth_normalized=True)
    robot = make_robot(RobotContext(scene=room, camera=camera, seed=0), "test", {}, "test options")
    assert robot.camera.info.intrinsics == camera.intrinsics
    assert robot.camera.info.intrinsics.hfov_deg == pytest.approx(90.0)
    with robot:
        robot.placer.place(SE2(), -math.pi / 4)
        frame = robot.camera.capture(robot.clock.now_ns(), 1.0)
    assert frame.rgb.shape == (192, 256, 3)
    assert frame.depth_m[95:97, 127:129].mean() == pytest.approx(1.25 * math.sqrt(2), abs=0.002)


def test_without_a_task_the_camera_is_habitats(robot: Robot) -> None:
    info = robot.camera.info
    assert (info.intrinsics.width, info.intrinsics.height) == (640, 480)
    assert info.intrinsics.hfov_deg == pytest.approx(79.0)
    assert (info.mount.x_m, info.mount.y_m, info.mount.z_m) == (0.0, 0.0, 0.88)


def test_depth_lies_on_the_millimeter_lattice(robot: Robot) -> None:
    frame = robot.camera.capture(robot.clock.now_ns(), 1.0)
    millimeters = np.rint(frame.depth_m / np.float32(0.001))
    assert np.array_equal(millimeters * np.float32(0.001), frame.depth_m)
    assert len(np.unique(millimeters)) > 100


def test_depth_outside_the_sensors_range_is_a_hole(sim: Callable[..., Robot]) -> None:
    with sim({"camera": {"depth_min_m": 1.5, "depth_max_m": 2.5, "depth_unit_m": 0}}) as robot:
        _, depth, ids = capture_with_ids(robot, SE2(), 0.0, 0.0)
    expected = empty_room_depth(robot.camera.info.intrinsics, SE2(), 0, 0)
    assert (depth[(expected > 2.51) & (ids < 0)] == 0).all()
    inside = depth[depth > 0]
    assert len(inside)
    assert inside.min() >= 1.5
    assert inside.max() <= 2.5


@pytest.mark.parametrize(("object_id", "pose"), [("crate", SE2(0.2, 0.2, 0.7)), ("vase", SE2(-0.3, -0.2, -2.4))])
def test_segmentation_marks_the_object_and_nothing_else(robot: Robot, room: Scene, object_id: str, pose: SE2) -> None:
    rgb, depth, ids = capture_with_ids(robot, pose, 0.0, -0.3)
    index = [item.id for item in room.objects].index(object_id)
    assert set(np.unique(ids)) == {-1, index}
    item = room.object(object_id)
    distance_m = math.hypot(item.center[0] - pose.x_m, item.center[1] - pose.y_m)
    mine = ids == index
    assert mine.sum() > 1000
    assert abs(np.median(depth[mine]) - distance_m) < 0.5
    red, green, blue = rgb[mine].reshape(-1, 3).mean(axis=0)
    assert (red > 2 * green) if object_id == "crate" else (green > 2 * max(red, blue))


def test_the_texture_is_seen(robot: Robot) -> None:
    robot.placer.place(SE2(), 0.0)
    rgb = robot.camera.capture(robot.clock.now_ns(), 1.0).rgb
    wall = rgb[200, 280:360].astype(int)
    assert np.ptp(wall[:, 2]) > 50, "stripes across the wall ahead"


def test_exposures_lie_on_the_rates_grid_and_follow_the_asked_instant(robot: Robot) -> None:
    asked_ns, stamps = robot.clock.now_ns(), []
    for _ in range(8):
        frame = robot.camera.capture(asked_ns, 1.0)
        assert frame.stamp_ns >= asked_ns
        stamps.append(frame.stamp_ns)
        asked_ns = frame.stamp_ns + 1
    step_ns, period_ns = 5_000_000, NS_PER_S / 30
    for stamp_ns in stamps:
        assert stamp_ns - math.floor(stamp_ns / period_ns + 1e-6) * period_ns < step_ns
    assert np.diff(stamps).mean() == pytest.approx(period_ns, rel=0.05)


def test_latency_delays_delivery_not_the_exposure(sim: Callable[..., Robot]) -> None:
    with sim({"camera": {"latency_s": 0.1}}) as robot:
        frame = robot.camera.capture(robot.clock.now_ns(), 1.0)
        assert robot.clock.now_ns() == frame.stamp_ns + 100_000_000
        now_ns = robot.clock.now_ns()
        with raises_naming(StaleData, "simulated camera"):
            robot.camera.capture(now_ns, 0.05)
        assert robot.clock.now_ns() == now_ns + 50_000_000


def test_the_frame_shows_the_instant_of_exposure(sim: Callable[..., Robot]) -> None:
    """The head is turning; the picture must be that of the angle at the stamp."""
    with sim({"head": SLOW_HEAD}) as robot:
        robot.placer.place(SE2(), 0.0)
        begin_ns = robot.clock.now_ns()
        robot.head.command(0.0, -1.0)
        frame = robot.camera.capture(begin_ns + NS_PER_S // 4, 1.0)
    tilt_rad = -math.radians(60.0) * (frame.stamp_ns - begin_ns) / NS_PER_S
    expected = empty_room_depth(robot.camera.info.intrinsics, SE2(), 0.0, tilt_rad)
    assert frame.depth_m[300, 320] == pytest.approx(expected[300, 320], abs=0.002)


def test_another_thread_is_refused(robot: Robot) -> None:
    errors: list[BaseException] = []

    def use() -> None:
        try:
            robot.camera.capture(0, 1.0)
        except DeviceFault as error:
            errors.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "one thread" in str(errors[0])


class TestHead:
    """The pan-tilt under the camera."""

    def test_it_turns_at_its_speed_and_settles(self, sim: Callable[..., Robot]) -> None:
        robot = sim({"head": SLOW_HEAD})
        robot.head.connect()
        robot.head.command(0.0, math.radians(-30))
        robot.clock.sleep(0.25)
        state = robot.head.state(0.1)
        assert math.degrees(state.tilt_rad) == pytest.approx(-15)
        assert state.moving
        robot.clock.sleep(0.25)
        state = robot.head.state(0.1)
        assert math.degrees(state.tilt_rad) == pytest.approx(-30)
        assert state.moving, "settling"
        robot.clock.sleep(0.1)
        assert not robot.head.state(0.1).moving

    def test_a_new_goal_starts_from_the_present_angle(self, sim: Callable[..., Robot]) -> None:
        robot = sim({"head": SLOW_HEAD})
        robot.head.connect()
        robot.head.command(math.radians(60), 0.0)
        robot.clock.sleep(0.5)
        robot.head.command(0.0, 0.0)
        assert math.degrees(robot.head.state(0.1).pan_rad) == pytest.approx(30)
        robot.clock.sleep(0.5)
        assert robot.head.state(0.1).pan_rad == pytest.approx(0)

    def test_limits_are_the_locobots(self, sim: Callable[..., Robot]) -> None:
        robot = sim()
        robot.head.connect()
        pan_rad, tilt_rad = robot.head.command(4.0, -4.0)
        assert (math.degrees(pan_rad), math.degrees(tilt_rad)) == (pytest.approx(90), pytest.approx(-75))
        assert math.degrees(robot.head.command(0.0, 4.0)[1]) == pytest.approx(90)

    def test_a_start_tilt_out_of_reach_is_refused(self, sim: Callable[..., Robot]) -> None:
        with raises_naming(InvalidStart, "-80"):
            sim().placer.place(SE2(), math.radians(-80))


def test_seconds_spent_rendering_are_counted_across_connections(robot: Robot) -> None:
    robot.camera.capture(0, 1.0)
    first_s = robot.camera.render_s
    assert first_s > 0
    robot.camera.close()
    robot.camera.connect()
    robot.camera.capture(robot.clock.now_ns(), 1.0)
    assert robot.camera.render_s > first_s


def test_a_frame_is_the_callers_to_keep(robot: Robot) -> None:
    first = robot.camera.capture(robot.clock.now_ns(), 1.0)
    kept = replace(first, rgb=first.rgb.copy(), depth_m=first.depth_m.copy())
    robot.placer.place(SE2(0.5, 0.5, 2.0), 0.3)
    robot.camera.capture(robot.clock.now_ns(), 1.0, semantic=True)
    assert np.array_equal(first.rgb, kept.rgb)
    assert np.array_equal(first.depth_m, kept.depth_m)
