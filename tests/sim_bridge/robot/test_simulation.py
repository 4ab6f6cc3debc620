"""Interface of a simulated robot for emulated devices."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable

import mujoco
import numpy as np
import pytest

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Intrinsics, Robot, Velocity
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import CameraMotion, Simulation
from sim_bridge.physics.scene_model import Group
from sim_bridge.rendering.lens_renderer import pinhole_views, pixel_rays
from sim_bridge.robot.base import SimBase

PINHOLE = Lens.of(Intrinsics.from_hfov(160, 120, 79.0))
CURVED = Lens(160, 144, 126.0, 126.5, 81.0, 85.0, "rational", (0.3, 0.0, 2e-4, -1e-4, 0.0, 0.63, 0.039, 0.0), 1.74)
WIDE = Lens(128, 128, 63.0, 63.0, 63.5, 64.0, "rational", (0.3, 0.0, 0.0, 0.0, 0.0, 0.6333, 0.0388, 0.0), 1.74)
"""A narrow and a wide mode of an Azure Kinect, smaller."""


def simulation_of(robot: Robot) -> Simulation:
    assert robot.simulation is not None
    return robot.simulation


def cast(robot: Robot, lens: Lens, map_from_camera: np.ndarray) -> np.ndarray:
    """Depth by ray casting of the same meshes, in every third row and column; 0 elsewhere."""
    assert isinstance(robot.base, SimBase)
    world, groups = robot.base.world, np.zeros(mujoco.mjNGROUP, np.uint8)
    groups[[Group.VISUAL, Group.CULLED]] = 1
    depth_m = np.zeros((lens.height, lens.width))
    for row, column in itertools.product(range(1, lens.height, 3), range(1, lens.width, 3)):
        direction = map_from_camera[:3, :3] @ pixel_rays(lens)[row, column]
        length = float(np.linalg.norm(direction))
        if np.isfinite(length):
            hit = np.full(1, -1, np.int32)
            model, data = world.scene_model.model, world.data
            far_m = mujoco.mj_ray(model, data, map_from_camera[:3, 3], direction / length, groups, 1, -1, hit, None)
            depth_m[row, column] = max(far_m, 0) / length
    return depth_m


@pytest.mark.parametrize("lens", [PINHOLE, CURVED, WIDE], ids=["pinhole", "curved", "wide"])
def test_depth_through_any_lens_is_that_of_ray_casting(sim: Callable[..., Robot], lens: Lens) -> None:
    robot = sim()
    with robot:
        robot.placer.place(SE2(-0.5, 0.2, 0.6), -0.3)
        simulation = simulation_of(robot)
        pose = simulation.camera_pose()
        rgb, depth_m = simulation.render(lens, pose)
        truth_m = cast(robot, lens, pose)
        assert np.array_equal(simulation.render_depth(lens, pose), depth_m)
        assert np.array_equal(simulation.render_color(lens, pose), rgb)
    seen = truth_m > 0
    error_m = np.abs(depth_m - truth_m)[seen]
    assert np.median(error_m) < 2e-5
    assert np.percentile(error_m, 90) < 5e-4
    # At an edge a pixel shows one side or the other, as a ray through its middle does but for a fraction of a pixel.
    assert np.mean(error_m > 0.01) < 0.03
    blind = ~np.isfinite(pixel_rays(lens)[..., 0])
    assert not depth_m[blind].any()
    assert not rgb[blind].any()
    assert depth_m[seen].all()


def test_a_lens_is_drawn_by_as_many_pinholes_as_it_needs() -> None:
    assert len(pinhole_views(PINHOLE)) == len(pinhole_views(CURVED)) == 1
    assert len(pinhole_views(WIDE)) == 4
    for part in pinhole_views(WIDE):
        assert math.degrees(2 * math.atan(part.pinhole.width / 2 / part.pinhole.fx)) < 90


def test_no_depth_is_made_up_between_a_near_thing_and_what_is_behind(sim: Callable[..., Robot]) -> None:
    robot = sim()
    with robot:
        robot.placer.place(SE2(-0.5, -1.2, math.pi), -0.3)  # the vase stands before the west wall
        depth_m = simulation_of(robot).render_depth(CURVED, simulation_of(robot).camera_pose())
    middle = depth_m[80:90, 50:110]
    front, wall = middle[middle < 1.8].max(), middle[middle > 1.8].min()
    assert middle.min() > 0.8
    assert front < 1.1
    assert wall > 2.2


def test_only_the_thread_that_drew_first_may_draw(sim: Callable[..., Robot]) -> None:
    robot = sim()
    faults: list[str] = []

    def draw() -> None:
        try:
            simulation.render_depth(PINHOLE, simulation.camera_pose())
        except DeviceFault as fault:
            faults.append(fault.message)

    with robot:
        simulation = simulation_of(robot)
        simulation.render_depth(PINHOLE, simulation.camera_pose())
        other = threading.Thread(target=draw)
        other.start()
        other.join()
    assert faults == ["simulation: drawn outside the thread that drew first, where its OpenGL context lives"]


def test_callbacks_come_at_multiples_of_their_period_until_they_are_closed(sim: Callable[..., Robot]) -> None:
    robot = sim()
    simulation = simulation_of(robot)
    robot.clock.sleep(0.033)
    tens: list[int] = []
    thirties: list[int] = []
    ten = simulation.every(10.0, tens.append)
    thirty = simulation.every(30.0, thirties.append)
    robot.clock.sleep_until(210_000_000)
    assert tens == [100_000_000, 200_000_000]
    # Steps of 5 ms: at the first one at or after each multiple.
    assert thirties == [70_000_000, 100_000_000, 135_000_000, 170_000_000, 200_000_000]
    ten.close()
    ten.close()
    robot.clock.sleep_until(400_000_000)
    assert len(tens) == 2
    assert len(thirties) == 11
    thirty.close()
    for rate_hz in (0.0, -1.0, 201.0, float("nan")):
        with pytest.raises(ValueError, match="rate_hz"):
            simulation.every(rate_hz, tens.append)


def test_placing_the_robot_is_told_and_starts_other_random_numbers(sim: Callable[..., Robot]) -> None:
    robot, told = sim(seed=5), []
    simulation = simulation_of(robot)
    subscription = simulation.on_placed(lambda: told.append(simulation.pose()))
    with robot:
        before = simulation.random("lidar").random()
        assert simulation.random("lidar").random() == before
        assert simulation.random("sonar").random() != before
        robot.placer.place(SE2(0.5, 0.5, 0.0), 0.0)
        assert told == [SE2(0.5, 0.5, 0.0)]
        assert simulation.random("lidar").random() != before
        subscription.close()
        robot.placer.place(SE2(0.0, 0.5, 0.0), 0.0)
        assert len(told) == 1
    assert simulation_of(sim(seed=5)).random("lidar").random() == before
    assert simulation_of(sim(seed=6)).random("lidar").random() != before


def test_the_cameras_motion_is_the_robots(sim: Callable[..., Robot]) -> None:
    robot = sim({"camera": {"forward_m": 0.2}})
    simulation = simulation_of(robot)
    with robot:
        assert simulation.camera_motion() == CameraMotion()
        assert simulation.camera_motion().still
        for _ in range(30):
            robot.base.command(Velocity(0.2, 0.5))
            robot.clock.sleep(0.02)
        motion = simulation.camera_motion()
        # Forward is along the optical axis; turning left moves a camera in front of the axis to the left.
        assert motion.linear_m_s == pytest.approx((-0.5 * 0.2, 0.0, 0.2), abs=2e-3)
        assert motion.angular_rad_s == pytest.approx((0.0, -0.5, 0.0), abs=2e-3)
        robot.base.stop()
        robot.clock.sleep(0.5)
        robot.head.command(0.0, 0.5)
        robot.clock.sleep(0.1)
        # Tilting up turns about the axis that points right.
        assert simulation.camera_motion().angular_rad_s == pytest.approx((math.radians(90), 0.0, 0.0), abs=1e-2)
        assert simulation.head_angles() == pytest.approx((0.0, math.radians(9)), abs=0.01)
