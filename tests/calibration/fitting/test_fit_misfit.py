"""A fit says where its model of actions does not hold, and only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from logged_actions import COMMANDS, episode_of, make_header, make_step, wandering

from calibration.fitting.actions import fit_actions
from calibration.fitting.actions import select as select_actions
from calibration.fitting.map_distance import Walls
from calibration.fitting.misfit import misfits
from calibration.fitting.motors import MotorsOfLogs
from calibration.fitting.simulator_options import motor_options
from calibration.motion.trajectories import StationaryPose
from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import Zone
from robot_runtime.hal.motors import MotorModel
from robot_runtime.motion.identification import MotorFit
from robot_runtime.records import ActionResult, Outcome
from robot_runtime.robots.action_errors import MOVES, ActionError, ActuationModel
from tests.benchmarks.sim.drawn_errors import Array, Change, named, rough, selection, slipping, sloping, unchanged


@pytest.mark.parametrize(
    ("change", "action", "effects"),
    [
        (slipping, "move_forward", {"outliers", "ahead"}),
        (sloping, "move_forward", {"to the left"}),
        (rough, "turn_left", {"spread", "outliers"}),
    ],
)
def test_the_room_where_the_model_does_not_hold_is_named(change: Change, action: str, effects: set[str]) -> None:
    for seed in range(5):
        found = misfits(selection(np.random.default_rng(seed), 120, change))
        assert {misfit.room for misfit in found} - {""} == {"kitchen"}
        assert effects & {misfit.effect for misfit in found if misfit.action == action}
        assert any("in kitchen" in str(misfit) for misfit in found)


def test_what_is_rare_everywhere_is_named_without_a_room() -> None:
    def pushed(random: np.random.Generator, action: Action, error: Array) -> Array:
        return np.add(error, (0.2, 0, 0)) if random.random() < 0.08 else error

    found = misfits(selection(np.random.default_rng(1), 150, pushed, ""))
    assert {(misfit.effect, misfit.room) for misfit in found} == {("outliers", "")}
    assert {misfit.action for misfit in found} == {action.name.lower() for action in MOVES}


@pytest.mark.slow
def test_a_robot_as_the_model_has_it_fits() -> None:
    for seed in range(10):
        for actions in (20, 40, 120):
            assert misfits(selection(np.random.default_rng(seed), actions, unchanged)) == ()


@pytest.mark.slow
def test_most_faults_are_named_and_few_robots_are_accused() -> None:
    found, false = named(1, 20)
    assert found >= 19
    assert false == 0


def test_rooms_and_outliers_come_from_the_logs() -> None:
    header = make_header()
    walls = {header.scene.digest: Walls(header.scene.map, -10.0)}
    errors = ActionError((0.0, 0.0, 0.0), ((1e-5, 0, 0), (0, 1e-5, 0), (0, 0, 1e-4)))
    model = ActuationModel(0.25, 30.0, {action.name.lower(): errors for action in MOVES})
    episodes = [wandering(model, np.random.default_rng(2), 60, header=header)]
    last = episodes[0].steps[-1]
    assert last.stationary is not None
    done = ActionResult(Outcome.REACHED, COMMANDS[Action.MOVE_FORWARD], COMMANDS[Action.MOVE_FORWARD], Zone.NONE, 1.0)
    stuck = make_step(last.index + 1, Action.MOVE_FORWARD, done, last.stationary.truth)
    selected = select_actions([episode_of([*episodes[0].steps, stuck], header)], walls)
    assert [sample.step for sample in selected.outliers] == [stuck.index]
    assert {sample.room for sample in (*selected.samples, *selected.outliers)} == {"hall"}


def test_what_odometry_measured_is_no_slip() -> None:
    """Every forward motion goes 5 mm too far by its motors, and 1 mm of its way to the left by slip."""
    header = make_header()
    odom = truth = SE2()
    steps = [make_step(0, None, None, truth)]
    for index in range(1, 101):
        action = MOVES[index % 3]
        command = COMMANDS[action]
        by_wheels = SE2(command.forward_m + 0.005 * (command.forward_m > 0), 0.0, command.turn_rad)
        odom @= by_wheels
        truth @= SE2(by_wheels.x_m, 0.001, by_wheels.yaw_rad)
        step = make_step(index, action, ActionResult(Outcome.REACHED, command, command, Zone.NONE, 1.0), truth)
        steps.append(replace(step, stationary=StationaryPose(odom, truth, np.zeros((3, 3)))))
    episodes = [episode_of(steps, header)] * 5
    selected = select_actions(episodes, {header.scene.digest: Walls(header.scene.map, -10.0)})
    assert np.mean([s.trial.error for s in selected.of(Action.MOVE_FORWARD)], axis=0) == pytest.approx(
        [0.005, 0.001, 0]
    )
    for fit in fit_actions(selected, slip=True).values():
        assert fit.error.mean == pytest.approx((0.0, 0.001, 0.0), abs=1e-9)
        assert (fit.bias[1].low, fit.bias[1].high) == pytest.approx((0.001, 0.001))


def test_motors_that_only_turn_at_another_speed_are_not_ideal() -> None:
    def options(model: MotorModel) -> object:
        return motor_options(MotorsOfLogs(MotorFit(model, np.full(7, 0.001), 0.0), 30))

    assert options(MotorModel(gain=(1.001, 0.999))) is None
    assert options(MotorModel(gain=(0.97, 1.02))) is not None
