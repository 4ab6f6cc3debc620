"""Errors of actions: as their tables say, and where the simulated robot really ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from raising import raises_naming

from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common import config
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.errors import ConfigError
from robot_runtime.hal import Robot
from robot_runtime.motion.controller import MotionController
from robot_runtime.records import Outcome
from robot_runtime.robots.action_errors import load_actuation
from robot_runtime.robots.published_action_errors import PYROBOT
from sim_bridge.noise.actions import PyRobotOptions, RobothorOptions, action_noise
from sim_bridge.robot.driver import SimOptions

STILL = [[0.0] * 3] * 3
FORWARD = Displacement(forward_m=0.25)
LEFT = Displacement(turn_rad=math.radians(30))


def fitted(path: Path, mean: tuple[float, float, float], covariance: list[list[float]] = STILL) -> dict[str, object]:
    """Options of a robot whose every action errs like this."""
    names = ("move_forward", "turn_left", "turn_right")
    errors = {name: {"mean": list(mean), "covariance": covariance, "count": 9} for name in names}
    path.write_text(yaml.safe_dump({"forward_m": 0.25, "turn_deg": 30.0, "actions": errors}), encoding="utf-8")
    return {"action_noise": {"model": "fitted", "file": str(path)}}


@pytest.mark.parametrize(
    ("action", "mean"),
    [
        (Action.MOVE_FORWARD, (0.017, -0.042, 0.031)),
        (Action.TURN_LEFT, (0.001, -0.005, 0.043)),
        (Action.TURN_RIGHT, (0.001, -0.005, -0.043)),
    ],
)
def test_pyrobots_errors_are_its_tables(action: Action, mean: tuple[float, float, float]) -> None:
    noise = action_noise(
        PyRobotOptions("pyrobot", controller="Proportional", multiplier=0.5, turn_deg=360.0, forward_m=9.0)
    )
    random = np.random.default_rng(0)
    drawn = np.array([noise.draw(action, random) for _ in range(4000)])
    errors, motion = PYROBOT["LoCoBot"]["Proportional"], "move" if action is Action.MOVE_FORWARD else "turn"
    sigma = np.sqrt([*getattr(errors, f"{motion}_variance"), getattr(errors, f"{motion}_yaw_variance")])
    # A normal distribution that is cut off at 3 sigma has 98.7 % of its deviation.
    assert drawn.std(axis=0) == pytest.approx(0.5 * 0.987 * sigma, rel=0.04)
    assert drawn.mean(axis=0) == pytest.approx(0.5 * np.array(mean), abs=4 * 0.5 * sigma.max() / math.sqrt(4000))
    assert (np.abs(drawn - 0.5 * np.array(mean)) <= 0.5 * 3 * sigma + 1e-12).all()


def test_an_action_goes_a_twentieth_of_its_way_at_least() -> None:
    noise = action_noise(PyRobotOptions("pyrobot", robot="LoCoBot-Lite", controller="Movebase"))
    random = np.random.default_rng(1)
    forward = [noise.draw(Action.MOVE_FORWARD, random)[0] for _ in range(500)]
    turns = [noise.draw(Action.TURN_RIGHT, random)[2] for _ in range(500)]
    assert min(forward) >= -0.95 * 0.25
    assert max(turns) <= 0.95 * math.radians(30)


def test_robothors_errors_are_along_the_action_alone() -> None:
    noise = action_noise(RobothorOptions("robothor"))
    random = np.random.default_rng(2)
    forward = np.array([noise.draw(Action.MOVE_FORWARD, random) for _ in range(2000)])
    turns = np.array([noise.draw(Action.TURN_LEFT, random) for _ in range(2000)])
    assert forward.std(axis=0) == pytest.approx([0.005, 0, 0], rel=0.06)
    assert np.degrees(turns.std(axis=0)) == pytest.approx([0, 0, 0.5], rel=0.06)


@pytest.mark.parametrize("command", [FORWARD, LEFT, Displacement(turn_rad=-LEFT.turn_rad)])
def test_the_robot_ends_where_the_error_says_and_does_not_know(
    sim: Callable[..., Robot], tmp_path: Path, command: Displacement
) -> None:
    error = (0.03, -0.02, 0.15)
    with sim(fitted(tmp_path / "actuation.yaml", error)) as robot:
        robot.placer.place(SE2(-2.0, -1.0, 0.3), 0.0)
        motion = MotionController(robot.clock, robot.base, robot.head)
        for _ in range(3):
            robot.clock.sleep(0.05)  # as for an observation: without it, two actions are one to the wheels
            start, odom = robot.referee.latest(0.5).pose, robot.base.state(0.1).odom
            result = motion.execute(command)
            assert result.outcome is Outcome.REACHED
            end = robot.referee.at(robot.clock.now_ns(), 0.5).pose.relative_to(start)
            assert end.x_m == pytest.approx(command.forward_m + error[0], abs=0.002)
            assert end.y_m == pytest.approx(error[1], abs=0.002)
            assert wrap_angle(end.yaw_rad - command.turn_rad) == pytest.approx(error[2], abs=0.004)
            believed = robot.base.state(0.1).odom.relative_to(odom)
            assert believed.x_m == pytest.approx(command.forward_m, abs=0.002)
            assert believed.yaw_rad == pytest.approx(command.turn_rad, abs=0.004)


def test_each_placement_errs_in_its_own_way_and_again_with_the_same_seed(sim: Callable[..., Robot]) -> None:
    def ends(seed: int) -> list[SE2]:
        options = {"action_noise": {"model": "pyrobot", "multiplier": 0.3}}
        with sim(options, seed=seed) as robot:
            found = []
            for _ in range(2):
                robot.placer.place(SE2(), 0.0)
                MotionController(robot.clock, robot.base, robot.head).execute(LEFT)
                found.append(robot.referee.at(robot.clock.now_ns(), 0.5).pose)
            return found

    first = ends(1)
    assert first == ends(1)
    assert first[0] != first[1]
    assert first[0] != ends(2)[0]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"model": "pyrobot", "controller": "LQR"}, "controller"),
        ({"model": "robot"}, "action_noise"),
        ({"model": "fitted"}, "file"),
        ({"model": "robothor", "multiplier": -2.0}, "multiplier"),
    ],
)
def test_bad_options_name_their_field(options: dict[str, object], field: str) -> None:
    with raises_naming(ConfigError, field):
        config.parse({"action_noise": options}, SimOptions, "robot.yaml")


def test_what_is_no_covariance_is_refused(tmp_path: Path) -> None:
    fitted(tmp_path / "a.yaml", (0, 0, 0), [[1.0, 0, 0], [0, -1.0, 0], [0, 0, 1.0]])
    with raises_naming(ConfigError, "covariance"):
        load_actuation(tmp_path / "a.yaml")
