"""Odometry, localizers, battery, cliffs, clocks and repeatability of the simulated LoCoBot."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import numpy as np
import pytest
from raising import raises_naming

from robot_runtime.common.clock import NS_PER_S, SimulatedClock
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Halt, PoseEstimate, Robot, Velocity, Zone
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import Scene
from sim_bridge.noise.drift import Drift, DriftOptions
from sim_bridge.physics.scene_model import Group, build_model
from sim_bridge.physics.world import World
from sim_bridge.robot.driver import make_robot


def drive(robot: Robot, velocity: Velocity, seconds: float) -> None:
    """Repeat a command every 20 ms, then stop."""
    for _ in range(round(seconds / 0.02)):
        robot.base.command(velocity)
        robot.clock.sleep(0.02)
    robot.base.stop()
    robot.clock.sleep(0.1)


def connect_without_camera(robot: Robot) -> Robot:
    """Everything that needs no OpenGL."""
    for device in (robot.base, robot.head, robot.localizer, robot.referee):
        device.connect()
    return robot


def fingerprint(robot: Robot) -> str:
    """Hash of all that a robot senses on a short tour."""
    digest = hashlib.sha256()
    with robot:
        robot.placer.place(SE2(-1.0, 0.3, 0.2), -0.2)
        for velocity in (Velocity(0.3, 0.0), Velocity(0.2, 0.8), Velocity(0.0, -1.0)):
            drive(robot, velocity, 0.5)
            frame = robot.camera.capture(robot.clock.now_ns(), 1.0, semantic=True)
            state = robot.base.state(0.1)
            estimate = robot.localizer.at(frame.stamp_ns, 3.0)
            for array in (frame.rgb, frame.depth_m, frame.semantic):
                digest.update(np.ascontiguousarray(array).tobytes())
            digest.update(repr((frame.stamp_ns, state, estimate.pose)).encode())
    return digest.hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["sim", "sim-noisy"])
def test_the_same_seed_gives_the_same_bits(room: Scene, preset: str) -> None:
    first, second = (fingerprint(load_robot(preset, RobotContext(room, None, seed=7))) for _ in range(2))
    assert first == second


def test_another_seed_gives_other_errors(room: Scene) -> None:
    first, second = (fingerprint(load_robot("sim-noisy", RobotContext(room, None, seed=s))) for s in (7, 8))
    assert first != second


def test_each_placement_draws_errors_of_its_own(sim: Callable[..., Robot]) -> None:
    robot = connect_without_camera(sim({"localizer": {"noise_m": 0.1}}))
    seen = []
    for _ in range(2):
        robot.placer.place(SE2(0.0, 0.0, 0.0), 0.0)
        seen.append(robot.localizer.latest(0.1).pose)
    assert seen[0] != seen[1]


class TestOdometry:
    """Wheel odometry."""

    def test_without_drift_it_is_the_true_motion(self, sim: Callable[..., Robot]) -> None:
        robot = connect_without_camera(sim())
        start = SE2(-1.0, 0.3, 0.7)
        robot.placer.place(start, 0.0)
        assert robot.base.state(0.1).odom == SE2()
        drive(robot, Velocity(0.3, 0.5), 2.0)
        truth = robot.referee.at(robot.clock.now_ns(), 0.1).pose.relative_to(start)
        odom = robot.base.state(0.1).odom
        assert odom.distance_to(truth) < 1e-9
        assert odom.yaw_rad == pytest.approx(truth.yaw_rad, abs=1e-9)

    def test_an_arc_is_driven_as_commanded(self, sim: Callable[..., Robot]) -> None:
        """A semicircle of 0.6 m radius; ramps are left out by starting the clock at full speed."""
        robot = connect_without_camera(
            sim({"base": {"max_linear_accel_m_s2": 100.0, "max_angular_accel_rad_s2": 300.0}})
        )
        robot.placer.place(SE2(-1.0, -0.9, 0.0), 0.0)
        for _ in range(314):
            robot.base.command(Velocity(0.3, 0.5))
            robot.clock.sleep(0.02)
        odom = robot.base.state(0.1).odom
        turned = 0.5 * 0.02 * 314
        assert odom.x_m == pytest.approx(0.6 * math.sin(turned), abs=0.002)
        assert odom.y_m == pytest.approx(0.6 * (1 - math.cos(turned)), abs=0.002)

    def test_scales_are_applied(self, sim: Callable[..., Robot]) -> None:
        robot = connect_without_camera(sim({"odometry": {"linear_scale": 1.1, "angular_scale": 0.9}}))
        robot.placer.place(SE2(-1.0, 0.0, 0.0), 0.0)
        drive(robot, Velocity(0.3, 0.0), 2.0)
        truth = robot.referee.at(robot.clock.now_ns(), 0.1).pose
        assert robot.base.state(0.1).odom.x_m == pytest.approx(1.1 * (truth.x_m + 1.0), rel=1e-6)
        drive(robot, Velocity(0.0, 0.5), 1.0)
        truth = robot.referee.at(robot.clock.now_ns(), 0.1).pose
        assert robot.base.state(0.1).odom.yaw_rad == pytest.approx(0.9 * truth.yaw_rad, rel=1e-6)

    def test_noise_grows_with_the_root_of_the_way_whatever_the_step(self) -> None:
        options = DriftOptions(linear_noise_m=0.02, angular_noise_rad=0.03, heading_noise_rad=0.04)
        for steps in (1, 100):
            drift = Drift(options)
            drift.restart(np.random.default_rng(3))
            ends = np.array(
                [np.sum([drift.distort(4.0 / steps, 1.0 / steps) for _ in range(steps)], axis=0) for _ in range(1000)]
            )
            assert ends.mean(axis=0) == pytest.approx([4.0, 1.0], abs=0.01)
            assert ends[:, 0].std() == pytest.approx(0.02 * 2, rel=0.1)
            assert ends[:, 1].std() == pytest.approx(math.hypot(0.03, 0.04 * 2), rel=0.1)

    def test_a_robot_at_rest_does_not_drift(self) -> None:
        drift = Drift(DriftOptions(linear_noise_m=1.0, angular_noise_rad=1.0))
        assert drift.distort(0.0, 0.0) == (0.0, 0.0)

    def test_actuation_moves_the_robot_otherwise_than_told(self, sim: Callable[..., Robot]) -> None:
        robot = connect_without_camera(sim({"actuation": {"linear_scale": 0.8}}))
        robot.placer.place(SE2(-1.0, 0.0, 0.0), 0.0)
        drive(robot, Velocity(0.3, 0.0), 2.0)
        exact = connect_without_camera(sim())
        exact.placer.place(SE2(-1.0, 0.0, 0.0), 0.0)
        drive(exact, Velocity(0.3, 0.0), 2.0)
        way_m, exact_m = (r.base.state(0.1).odom.x_m for r in (robot, exact))
        assert way_m == pytest.approx(0.8 * exact_m, rel=1e-6)


class TestLocalizer:
    """Ground truth, sampled badly on purpose."""

    def observe(self, robot: Robot, seconds: float) -> list[PoseEstimate]:
        """Every new estimate, as it arrives."""
        seen: list[PoseEstimate] = []
        for _ in range(round(seconds / 0.005)):
            robot.clock.sleep(0.005)
            try:
                estimate = robot.localizer.latest(10.0)
            except DeviceFault:
                continue
            if not seen or estimate.stamp_ns != seen[-1].stamp_ns:
                seen.append(estimate)
        return seen

    def test_rate(self, sim: Callable[..., Robot]) -> None:
        seen = self.observe(connect_without_camera(sim({"localizer": {"rate_hz": 20.0}})), 5.0)
        assert len(seen) in (100, 101)
        assert set(np.diff([e.stamp_ns for e in seen])) == {50_000_000}

    def test_latency(self, sim: Callable[..., Robot]) -> None:
        robot = connect_without_camera(sim({"localizer": {"rate_hz": 20.0, "latency_s": 0.12}}))
        robot.clock.sleep(1.0)
        age_ns = robot.clock.now_ns() - robot.localizer.latest(1.0).stamp_ns
        assert 120_000_000 <= age_ns <= 170_000_000
        asked_ns = robot.clock.now_ns()
        assert robot.localizer.at(asked_ns, 1.0).stamp_ns == asked_ns
        assert robot.clock.now_ns() >= asked_ns + 120_000_000

    def test_noise(self, sim: Callable[..., Robot]) -> None:
        options = {"rate_hz": 100.0, "noise_m": 0.05, "noise_deg": 2.0}
        robot = connect_without_camera(sim({"localizer": options}))
        seen = self.observe(robot, 10.0)
        poses = np.array([(e.pose.x_m, e.pose.y_m, math.degrees(e.pose.yaw_rad)) for e in seen])
        assert poses.mean(axis=0) == pytest.approx([0, 0, 0], abs=0.3)
        assert poses.std(axis=0) == pytest.approx([0.05, 0.05, 2.0], rel=0.1)
        assert np.sqrt(np.diag(seen[0].covariance)) == pytest.approx([0.05, 0.05, math.radians(2.0)])

    def test_dropouts(self, sim: Callable[..., Robot]) -> None:
        options = {"rate_hz": 50.0, "dropout_probability": 0.05, "dropout_s": 0.1}
        seen = self.observe(connect_without_camera(sim({"localizer": options})), 20.0)
        gaps_ns = np.diff([e.stamp_ns for e in seen])
        assert gaps_ns.max() > 100_000_000
        lost = 1 - len(seen) / 1000
        # Each sample starts an outage of 5 samples with 5 %: an alternating renewal of runs.
        assert 0.1 < lost < 0.35

    def test_scores_use_the_exact_pose(self, sim: Callable[..., Robot]) -> None:
        robot = connect_without_camera(sim({"localizer": {"noise_m": 0.3}}))
        assert robot.referee.info.frame == "map"
        robot.placer.place(SE2(0.5, 0.5, 1.0), 0.0)
        assert robot.referee.latest(0.1).pose == SE2(0.5, 0.5, 1.0)

    def test_odometry_can_be_the_localizer(self, sim: Callable[..., Robot]) -> None:
        robot = connect_without_camera(
            sim({"localizer": {"source": "odometry", "rate_hz": 50.0}, "odometry": {"linear_scale": 1.2}})
        )
        assert robot.localizer.info.frame == "odom"
        robot.placer.place(SE2(-1.0, 0.5, 1.0), 0.0)
        assert robot.localizer.latest(0.1).pose == SE2()
        drive(robot, Velocity(0.3, 0.0), 1.0)
        robot.clock.sleep(0.1)
        assert robot.localizer.latest(0.1).pose == robot.base.state(0.1).odom
        assert robot.localizer.latest(0.1).pose.x_m > 0.2

    def test_placing_the_robot_is_no_motion(self, sim: Callable[..., Robot]) -> None:
        robot = connect_without_camera(sim())
        robot.clock.sleep(1.0)
        robot.placer.place(SE2(1.0, 0.0, 0.0), 0.0)
        now_ns = robot.clock.now_ns()
        robot.clock.sleep(0.2)
        between = robot.referee.at(now_ns + NS_PER_S // 100, 1.0).pose
        assert between == SE2(1.0, 0.0, 0.0)


class TestBattery:
    """Voltage and charge."""

    def test_it_drains_with_time_and_faster_while_driving(self, sim: Callable[..., Robot]) -> None:
        options = {"capacity_wh": 1.0, "idle_w": 36.0, "drive_w": 36.0, "full_v": 16.0, "empty_v": 12.0}
        robot = connect_without_camera(sim({"battery": options}))
        robot.clock.sleep(10.0)
        state = robot.base.state(0.1)
        assert state.battery_fraction == pytest.approx(0.9, abs=1e-3)
        assert state.battery_v == pytest.approx(15.6, abs=1e-2)
        for _ in range(500):
            robot.base.command(Velocity(0.0, 0.5))
            robot.clock.sleep(0.02)
        assert robot.base.state(0.1).battery_fraction == pytest.approx(0.7, abs=1e-2)

    def test_an_empty_one_drives_nothing(self, sim: Callable[..., Robot]) -> None:
        robot = connect_without_camera(sim({"battery": {"start_fraction": 0.0}}))
        with raises_naming(DeviceFault, "battery"):
            robot.base.command(Velocity(0.3, 0.0))
        robot.clock.sleep(0.5)
        assert robot.base.state(0.1).odom == SE2()


class TestFloor:
    """The scene's floor ends at x = 1."""

    @pytest.fixture
    def robot(self, sim: Callable[..., Robot], make_room: Callable[..., Scene]) -> Robot:
        return connect_without_camera(sim(scene=make_room(hole=True)))

    def test_a_cliff_stops_the_base_with_its_wheels_on_the_floor(self, robot: Robot) -> None:
        robot.placer.place(SE2(0.5, 0.0, 0.0), 0.0)
        drive(robot, Velocity(0.3, 0.0), 3.0)
        state = robot.base.state(0.1)
        assert state.cliff == Zone.CENTER
        assert state.wheel_drop == Zone.NONE
        robot.base.command(Velocity(0.3, 0.0))
        robot.clock.sleep(0.02)
        assert robot.base.state(0.1).halt is Halt.CLIFF
        assert robot.referee.at(robot.clock.now_ns(), 0.1).pose.x_m < 1.0 - 0.12

    def test_reverse_leads_away_from_a_cliff(self, robot: Robot) -> None:
        robot.placer.place(SE2(0.5, 0.0, 0.0), 0.0)
        drive(robot, Velocity(0.3, 0.0), 3.0)
        drive(robot, Velocity(-0.2, 0.0), 1.0)
        assert robot.base.state(0.1).cliff == Zone.NONE

    @pytest.mark.parametrize(("yaw_rad", "zone"), [(math.pi / 2, Zone.RIGHT), (-math.pi / 2, Zone.LEFT)])
    def test_one_wheel_over_the_edge_drops(self, robot: Robot, yaw_rad: float, zone: Zone) -> None:
        robot.placer.place(SE2(0.95, 0.0, yaw_rad), 0.0)
        state = robot.base.state(0.1)
        assert state.wheel_drop == zone
        assert state.cliff == zone
        drive(robot, Velocity(-0.3, 0.0), 0.5)
        assert robot.base.state(0.1).odom == SE2()

    def test_a_floor_that_is_out_of_view_still_carries(self, room: Scene) -> None:
        compiled = build_model(room)
        world = World(compiled)
        compiled.model.geom_group[compiled.model.geom_group == Group.VISUAL] = Group.CULLED
        assert world.has_floor(0.0, 0.0)

    def test_where_there_is_floor_nothing_is_reported(self, sim: Callable[..., Robot]) -> None:
        robot = connect_without_camera(sim())
        drive(robot, Velocity(0.2, 1.0), 3.0)
        state = robot.base.state(0.1)
        assert state.cliff == state.wheel_drop == Zone.NONE


def test_simulated_time_waits_for_the_real_one_when_asked(room: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    wall = SimulatedClock(1_000_000)
    monkeypatch.setattr("sim_bridge.robot.driver.SystemClock", lambda: wall)
    paced, free = (
        connect_without_camera(make_robot(RobotContext(room, None, 0, real_time), "test", {}, "test options"))
        for real_time in (True, False)
    )
    for robot in (paced, free):
        drive(robot, Velocity(0.3, 0.2), 1.0)
    assert wall.now_ns() == paced.clock.now_ns() == free.clock.now_ns() > NS_PER_S
    assert paced.base.state(0.1) == free.base.state(0.1)


def test_control_is_at_100_hz_or_more(sim: Callable[..., Robot]) -> None:
    assert sim().base.info.rate_hz >= 100
    assert sim().base.info.radius_m == 0.18
