"""What a simulated robot is made to do otherwise than it says: walls along which it slides, cameras that sit askew."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.common.transforms import Offset
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Robot, Velocity, Zone
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome
from robot_runtime.robots.camera_mount import CameraMount, load_mount
from sim_bridge.noise.actions import action_noise
from sim_bridge.robot.camera import MountError, apply_mount_error
from sim_bridge.robot.driver import SimOptions

SimFactory = Callable[..., Robot]

FORWARD = Displacement(forward_m=0.25)
EAST_WALL_X_M, RADIUS_M, TRAVEL_M = 3.0, 0.18, 0.002
SLIDE = {"contact": {"behaviour": "slide"}}


def true_pose(robot: Robot) -> SE2:
    return robot.referee.at(robot.clock.now_ns(), 0.5).pose


def at_wall(robot: Robot, heading_rad: float, gap_m: float = 0.01) -> MotionController:
    """The robot ``gap_m`` in front of the east wall."""
    robot.placer.place(SE2(EAST_WALL_X_M - RADIUS_M - gap_m, -0.3, heading_rad), 0.0)
    return MotionController(robot.clock, robot.base, robot.head)


class TestSliding:
    """``contact: {behaviour: slide}``."""

    @pytest.mark.slow
    @settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(heading_deg=st.floats(-80, 80))
    def test_the_body_keeps_the_way_along_the_wall_and_the_wheels_believe_all(
        self, sim: SimFactory, heading_deg: float
    ) -> None:
        heading_rad = math.radians(heading_deg)
        with sim(SLIDE) as robot:
            motion = at_wall(robot, heading_rad)
            start = true_pose(robot)
            result = motion.execute(FORWARD)
            end, state = true_pose(robot), robot.base.state(0.1)
        assert result.outcome is Outcome.CONTACT, "habitat-sim counts a shortened move as a collision"
        assert result.collided
        assert result.contact is not Zone.NONE
        assert state.bumper is Zone.NONE, "the bumper would stop the base"
        assert end.y_m - start.y_m == pytest.approx(0.25 * math.sin(heading_rad), abs=0.002)
        assert end.x_m == pytest.approx(EAST_WALL_X_M - RADIUS_M + TRAVEL_M, abs=0.001) or heading_deg > 79
        assert wrap_angle(end.yaw_rad - heading_rad) == pytest.approx(0, abs=1e-6)
        assert result.measured.forward_m == pytest.approx(0.25, abs=0.0015)
        assert state.odom.x_m == pytest.approx(0.25, abs=0.0015)
        assert state.odom.y_m == pytest.approx(0, abs=1e-6)

    def test_a_wall_head_on_holds_the_body_while_the_wheels_turn(self, sim: SimFactory) -> None:
        with sim(SLIDE) as robot:
            motion = at_wall(robot, 0.0)
            results = [motion.execute(FORWARD) for _ in range(3)]
            assert true_pose(robot).x_m == pytest.approx(EAST_WALL_X_M - RADIUS_M + TRAVEL_M, abs=0.001)
            assert robot.base.state(0.1).odom.x_m == pytest.approx(0.75, abs=0.003)
        assert {(result.outcome, result.contact) for result in results} == {(Outcome.CONTACT, Zone.CENTER)}

    def test_the_wheels_measure_their_own_speed(self, sim: SimFactory) -> None:
        with sim(SLIDE) as robot:
            at_wall(robot, 0.0, gap_m=0.0)
            for _ in range(30):
                robot.base.command(Velocity(0.3, 0.0))
                robot.clock.sleep(0.02)
            assert robot.base.state(0.1).velocity.linear_m_s == pytest.approx(0.3, abs=0.001)

    def test_away_from_walls_nothing_is_different(self, sim: SimFactory) -> None:
        def ends(options: dict[str, object]) -> list[SE2]:
            with sim(options) as robot:
                robot.placer.place(SE2(-1.0, 0.0, 0.2), 0.0)
                motion = MotionController(robot.clock, robot.base, robot.head)
                found = []
                for command in (FORWARD, Displacement(turn_rad=0.5), FORWARD):
                    motion.execute(command)
                    found.append(true_pose(robot))
                return found

        for stopping, sliding in zip(ends({}), ends(SLIDE), strict=True):
            # Odometry rounds differently, and the controller drives by it.
            assert stopping.distance_to(sliding) < 1e-6
            assert stopping.yaw_rad == pytest.approx(sliding.yaw_rad, abs=1e-6)

    def test_errors_of_actions_slide_as_well(self, sim: SimFactory) -> None:
        noise = {"action_noise": gaussian((0.05, 0.0, 0.0))}
        with sim({**SLIDE, **noise}) as robot:
            motion = at_wall(robot, math.radians(60))
            start = true_pose(robot)
            result = motion.execute(FORWARD)
            assert true_pose(robot).y_m - start.y_m == pytest.approx(0.3 * math.sin(math.radians(60)), abs=0.003)
        assert result.measured.forward_m == pytest.approx(0.25, abs=0.002)

    def test_other_behaviors_are_refused(self) -> None:
        with raises_naming(ConfigError, "contact.behaviour"):
            config.parse({"contact": {"behaviour": "bounce"}}, SimOptions, "robot.yaml")


def gaussian(mean: tuple[float, float, float], sigma: float = 0.0, multiplier: float = 1.0) -> dict[str, object]:
    """Options of a robot whose every action errs alike."""
    covariance = np.diag([sigma**2] * 3).tolist()
    actions = {
        name: {"mean": list(mean), "covariance": covariance} for name in ("move_forward", "turn_left", "turn_right")
    }
    return {"model": "gaussian", "forward_m": 0.25, "turn_deg": 30.0, "actions": actions, "multiplier": multiplier}


class TestActionNoise:
    """Models written out, and multipliers."""

    def test_written_out_it_errs_as_the_file_does(self) -> None:
        options = config.parse({"action_noise": gaussian((0.01, -0.02, 0.03), 0.004)}, SimOptions, "here").action_noise
        assert options is not None
        noise, random = action_noise(options), np.random.default_rng(0)
        drawn = np.array([noise.draw(Action.TURN_LEFT, random) for _ in range(2000)])
        assert drawn.mean(axis=0) == pytest.approx([0.01, -0.02, 0.03], abs=0.0005)
        assert drawn.std(axis=0) == pytest.approx([0.004] * 3, rel=0.06)

    @pytest.mark.parametrize(
        "options",
        [
            gaussian((0.01, -0.02, 0.03), 0.004),
            {"model": "robothor"},
            {"model": "pyrobot", "controller": "Proportional"},
        ],
    )
    def test_a_multiplier_scales_every_error(self, options: dict[str, object]) -> None:
        def drawn(multiplier: float) -> np.ndarray:
            document = {"action_noise": {**options, "multiplier": multiplier}}
            noise = config.parse(document, SimOptions, "here").action_noise
            assert noise is not None
            made, random = action_noise(noise), np.random.default_rng(5)
            return np.array([made.draw(Action.MOVE_FORWARD, random) for _ in range(5)])

        assert drawn(0.5) == pytest.approx(0.5 * drawn(1.0))
        assert (drawn(0.0) == 0).all()


class TestMountError:
    """``camera: {mount_error: ...}``."""

    def test_no_error_is_the_mount_itself(self) -> None:
        mount = CameraMount((0.0, 0.0, 0.88))
        assert apply_mount_error(mount, MountError()) is mount

    @pytest.mark.parametrize("tilt_deg", [-30.0, 0.0, 20.0])
    def test_a_tilt_error_is_a_tilt(self, tilt_deg: float) -> None:
        mount = CameraMount((0.1, 0.0, 0.5), (0.05, 0.0, 0.02), Offset((0.04, 0.01, 0.03), (1.0, 2.0, 3.0)))
        wrong = apply_mount_error(mount, MountError(tilt_deg=4.0))
        seen = wrong.sensor(SE2(1, 2, 0.3), 0.2, math.radians(tilt_deg))
        assert seen == pytest.approx(mount.sensor(SE2(1, 2, 0.3), 0.2, math.radians(tilt_deg + 4.0)))

    @given(st.floats(-20, 20), st.floats(-20, 20), st.floats(-20, 20))
    @settings(max_examples=20)
    def test_every_angle_turns_its_own_way(self, tilt_deg: float, pan_deg: float, roll_deg: float) -> None:
        mount = CameraMount((0.0, 0.0, 0.88))
        forward = apply_mount_error(mount, MountError(tilt_deg=tilt_deg)).sensor(SE2(), 0.0, 0.0)[:3, 0]
        assert math.degrees(math.asin(forward[2])) == pytest.approx(tilt_deg, abs=1e-6)
        forward = apply_mount_error(mount, MountError(pan_deg=pan_deg)).sensor(SE2(), 0.0, 0.0)[:3, 0]
        assert math.degrees(math.atan2(forward[1], forward[0])) == pytest.approx(pan_deg, abs=1e-6)
        up = apply_mount_error(mount, MountError(roll_deg=roll_deg)).sensor(SE2(), 0.0, 0.0)[:3, 2]
        # Rolled clockwise, its top leans to the right: away from +y.
        assert math.degrees(math.asin(-up[1])) == pytest.approx(roll_deg, abs=1e-6)

    def test_the_picture_changes_and_what_the_camera_says_of_itself_does_not(self, sim: SimFactory) -> None:
        def center_m(error: dict[str, float]) -> tuple[float, object]:
            with sim({"camera": {"mount_error": error}}) as robot:
                robot.placer.place(SE2(0.0, 0.0, 0.0), math.radians(-30))
                depth = robot.camera.capture(0, 1.0).depth_m
                return float(depth[239:241, 319:321].mean()), robot.camera.info

        straight_m, info = center_m({})
        assert straight_m == pytest.approx(0.88 / math.sin(math.radians(30)), abs=0.005)
        tilted_m, same = center_m({"tilt_deg": -6.0, "height_m": 0.05})
        assert tilted_m == pytest.approx(0.93 / math.sin(math.radians(36)), abs=0.005)
        assert same == info

    def test_shipped_mounts_can_be_bent(self) -> None:
        mount = load_mount(config.find_preset("mounts", "habitat"))
        bent = apply_mount_error(mount, MountError(height_m=-0.02, forward_m=0.03))
        moved = bent.sensor(SE2(), 0.0, 0.0)[:3, 3] - mount.sensor(SE2(), 0.0, 0.0)[:3, 3]
        assert moved == pytest.approx([0.03, 0.0, -0.02])
