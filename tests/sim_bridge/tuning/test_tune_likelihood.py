"""Statistics of logs, and likelihoods of settings."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import InvalidStart
from robot_runtime.hal import PoseEstimate
from robot_runtime.scenes.scene import Scene
from sim_bridge.noise.actions import PyRobotOptions, RobothorOptions, action_noise
from sim_bridge.noise.drift import DriftOptions
from sim_bridge.physics.world import World
from sim_bridge.replay.options import SceneSource
from sim_bridge.robot.chassis import ContactOptions
from sim_bridge.robot.driver import SimOptions
from sim_bridge.tuning.evaluation import Evaluation
from sim_bridge.tuning.likelihood import ActionErrorsOf, Spread, camera_part, delay_part, motion_part
from sim_bridge.tuning.log_statistics import FloorOffset, Motion, displacement, read_log_statistics
from sim_bridge.tuning.one_step_prediction import Prediction, drift_covariances, predict, scene_model
from sim_bridge.tuning.settings import make_grid

FORWARD, LEFT = Displacement(forward_m=0.25), Displacement(turn_rad=math.radians(30))
EAST_WALL_X_M, RADIUS_M = 3.0, 0.18
SPREAD = Spread((0.003, 0.002, 0.002), 0.002)


def motion(start: SE2, commanded: Displacement = FORWARD, moved: tuple[float, float, float] = (0.25, 0, 0)) -> Motion:
    action = Action.MOVE_FORWARD if commanded.forward_m else Action.TURN_LEFT
    return Motion(1, action, commanded, start, np.array(moved), np.zeros((3, 3)), contact=False)


class TestLogStatistics:
    """``read_log_statistics``."""

    def test_a_log_shows_motions_camera_and_delays(self, real_logs: list[Path]) -> None:
        one = read_log_statistics(real_logs[0])
        assert one.delay_s == pytest.approx(0.1, abs=0.001)
        assert len(one.motions) == len(one.actions)
        assert one.floor is not None
        assert math.degrees(one.floor.tilt_rad) == pytest.approx(2.0, abs=0.2)
        assert one.floor.height_m == pytest.approx(0.02, abs=0.006)
        motions = [m for log in real_logs for m in read_log_statistics(log).motions]
        turned = [m.moved[2] for m in motions if m.action is Action.TURN_LEFT]
        assert np.mean(turned) == pytest.approx(LEFT.turn_rad - 0.04, abs=0.015)

    @given(
        start=st.builds(SE2, st.floats(-2, 2), st.floats(-2, 2), st.floats(-3, 3)),
        end=st.builds(SE2, st.floats(-2, 2), st.floats(-2, 2), st.floats(-3, 3)),
    )
    @settings(max_examples=15)
    def test_a_displacements_noise_is_that_of_poses_drawn(self, start: SE2, end: SE2) -> None:
        covariance = np.diag([1e-4, 4e-4, 1e-4])
        moved, noise = displacement(PoseEstimate(0, start, "map", covariance), PoseEstimate(0, end, "map", covariance))
        random = np.random.default_rng(0)
        off = random.multivariate_normal(np.zeros(3), covariance, (4000, 2))
        first, last = (np.array([p.x_m, p.y_m, p.yaw_rad]) + off[:, i] for i, p in enumerate((start, end)))
        cos, sin = np.cos(first[:, 2]), np.sin(first[:, 2])
        dx, dy = (last - first)[:, 0], (last - first)[:, 1]
        yaw = (last - first)[:, 2]
        drawn = np.stack([cos * dx + sin * dy, cos * dy - sin * dx, yaw - yaw.mean()], axis=1)
        assert np.cov(drawn, rowvar=False) == pytest.approx(noise, abs=0.15 * noise.diagonal().max())
        assert moved[:2] == pytest.approx(drawn[:, :2].mean(axis=0), abs=0.01)


def test_logs_without_data_decide_nothing(real_logs: list[Path]) -> None:
    empty = replace(read_log_statistics(real_logs[0]), motions=(), floor=None, delay_s=None)
    stop, slide = make_grid("sim", ["contact.behaviour=slide"])
    evaluation = Evaluation([empty], SceneSource())
    assert (evaluation.total(stop), evaluation.total(slide), evaluation.unknown) == (0.0, 0.0, 0)


class TestPrediction:
    """Predictions of one action from any start."""

    def test_free_motions_go_all_the_way(self, room: Scene) -> None:
        model = scene_model(room, SimOptions())
        motions = [motion(SE2(0.0, 0.0, 0.3)), motion(SE2(-1.0, 0.5, 2.0), LEFT)]
        (ahead, turned) = predict(model, SimOptions(), motions)
        assert ahead is not None
        assert turned is not None
        assert ahead.moved == pytest.approx([0.25, 0, 0], abs=0.002)
        assert turned.moved == pytest.approx([0, 0, LEFT.turn_rad], abs=0.002)
        assert (ahead.contact, ahead.touching, ahead.share) == (False, False, pytest.approx(1.0, abs=0.01))

    @pytest.mark.parametrize("gap_m", [-0.008, 0.0, 0.05])
    def test_walls_stop_or_let_slide_even_where_the_start_touches(self, room: Scene, gap_m: float) -> None:
        start = SE2(EAST_WALL_X_M - RADIUS_M - gap_m, -0.3, math.radians(60))
        found = {}
        for behaviour in ("stop", "slide"):
            options = SimOptions(contact=ContactOptions(behaviour))
            (found[behaviour],) = predict(scene_model(room, options), options, [motion(start)])
        stopped, slid = found["stop"], found["slide"]
        assert stopped is not None
        assert slid is not None
        assert stopped.contact
        assert np.hypot(*stopped.moved[:2]) < max(0.0, gap_m) / math.cos(math.radians(60)) + 0.01
        assert slid.contact
        assert slid.touching
        along_m = slid.moved[0] * math.sin(math.radians(60)) + slid.moved[1] * math.cos(math.radians(60))
        assert along_m == pytest.approx(0.25 * math.sin(math.radians(60)), abs=0.01)

    def test_inside_of_something_nothing_is_predicted(self, room: Scene) -> None:
        assert list(predict(scene_model(room, SimOptions()), SimOptions(), [motion(SE2(1.5, 1.2, 0.0))])) == [None]

    def test_poses_beyond_reach_are_refused_by_name(self, room: Scene) -> None:
        with raises_naming(InvalidStart, "1.5"):
            World(scene_model(room, SimOptions())).place_near(SE2(1.5, 1.2, 0.0))

    @pytest.mark.slow
    def test_random_errors_of_wheels_are_measured(self, room: Scene) -> None:
        exact = drift_covariances(room, SimOptions(), [(Action.MOVE_FORWARD, FORWARD)])
        assert (exact[Action.MOVE_FORWARD] == 0).all()
        options = SimOptions(odometry=DriftOptions(linear_noise_m=0.02))
        spread = drift_covariances(room, options, [(Action.MOVE_FORWARD, FORWARD)])[Action.MOVE_FORWARD]
        assert math.sqrt(spread[0, 0]) == pytest.approx(0.02 * math.sqrt(0.25), rel=0.4)


class TestParts:
    """The likelihood's parts."""

    def likelihood(self, options: SimOptions, moved: tuple[float, float, float], contact: bool = False) -> float:
        predicted = Prediction(np.array([0.25, 0.0, 0.0]), 1.0, contact, contact)
        return motion_part([motion(SE2(), moved=moved)], [predicted], ActionErrorsOf(options, {}))[0]

    def test_an_exact_robot_expects_exact_ends(self) -> None:
        exact = SimOptions()
        assert (
            self.likelihood(exact, (0.25, 0, 0))
            > self.likelihood(exact, (0.255, 0, 0))
            > self.likelihood(exact, (0.3, 0, 0))
        )

    def test_strays_cost_no_more_than_a_stray(self) -> None:
        assert self.likelihood(SimOptions(), (0.25, 0, 0)) - self.likelihood(SimOptions(), (0.1, 0.1, 0.2)) < 25

    def test_noise_is_expected_where_a_setting_has_it(self) -> None:
        noisy = SimOptions(action_noise=RobothorOptions("robothor", multiplier=4.0))
        assert self.likelihood(noisy, (0.27, 0, 0)) > self.likelihood(SimOptions(), (0.27, 0, 0))
        assert self.likelihood(noisy, (0.25, 0, 0)) < self.likelihood(SimOptions(), (0.25, 0, 0))

    def test_unpredicted_contacts_reduce_the_likelihood(self) -> None:
        predicted = Prediction(np.array([0.25, 0.0, 0.0]), 1.0, True, True)
        errors = ActionErrorsOf(SimOptions(), {})
        assert motion_part([motion(SE2())], [predicted], errors)[1] == pytest.approx(math.log(0.02))

    def test_motions_without_prediction_are_left_out(self) -> None:
        assert motion_part([motion(SE2())], [None], ActionErrorsOf(SimOptions(), {})) == (0.0, 0.0)

    @pytest.mark.parametrize("action", [Action.MOVE_FORWARD, Action.TURN_RIGHT])
    def test_moments_are_those_of_what_is_drawn(self, action: Action) -> None:
        noise = action_noise(PyRobotOptions("pyrobot", controller="Proportional", multiplier=0.5))
        random = np.random.default_rng(1)
        drawn = np.array([noise.draw(action, random) for _ in range(4000)])
        mean, covariance = noise.moments(action)
        sigmas = np.sqrt(covariance.diagonal())
        assert drawn.mean(axis=0) == pytest.approx(mean, abs=4 * sigmas.max() / math.sqrt(4000))
        assert drawn.std(axis=0) == pytest.approx(sigmas, rel=0.05)

    def test_mounts_and_delays_peak_where_they_are(self) -> None:
        seen = FloorOffset(0.01, 0.03, 0.0, 4)
        right = camera_part(seen, (0.01, 0.03, 0.0), SPREAD)
        assert right > camera_part(seen, (0.01, 0.02, 0.0), SPREAD) > camera_part(seen, (0.0, 0.0, 0.0), SPREAD)
        assert delay_part(0.1, 0.1, SPREAD) > delay_part(0.1, 0.09, SPREAD) > delay_part(0.1, 0.0, SPREAD)
