"""Motors from logged commands and odometry, on logs whose motors are chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from logged_actions import COMMANDS, STEP_S, episode_of, make_step

from calibration.fitting.log_samples import LoggedEpisode
from calibration.fitting.motors import MotorsOfLogs, fit_logged_motors
from calibration.fitting.simulator_options import motor_settings
from calibration.fitting.simulator_options import options as options_of
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common import config
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.hal import PoseEstimate, Zone
from robot_runtime.hal.motors import MotorModel
from robot_runtime.hal.simulated_motors import MotorOptions, SimulatedMotors
from robot_runtime.motion.identification import MotorFit
from robot_runtime.records import ActionResult, Outcome, SentCommand

TICK_S = 0.02
HIDDEN = MotorOptions(dead_time_s=0.12, lag_s=0.08, gain=(0.98, 1.03), threshold_m_s=(0.02, 0.05))


def logged(actions: int, contact: Zone = Zone.NONE) -> LoggedEpisode:
    """An episode whose commands grow, hold and end; its odometry is what the hidden motors do with them."""
    steps = [make_step(0, None, None, SE2())]
    commands, poses, odom, motors = [], [], SE2(), SimulatedMotors(HIDDEN)
    for index in range(1, actions + 1):
        action = tuple(COMMANDS)[index % 3]
        result = ActionResult(Outcome.REACHED, COMMANDS[action], Displacement(), contact, 1.0)
        steps.append(make_step(index, action, result, SE2()))
        for tick in range(round(STEP_S / TICK_S)):
            now_ns = seconds_to_ns(index * STEP_S + tick * TICK_S)
            share = min(1.0, tick / 15) if tick < 30 else 0.0
            forward = action is Action.MOVE_FORWARD
            turn = 0.0 if forward else (1.2 if action is Action.TURN_LEFT else -1.2)
            velocity = (0.3 * share if forward else 0.0), turn * share
            if tick < 60:
                commands.append(SentCommand(now_ns, *velocity))
            linear_m_s, angular_rad_s = motors.drive(*velocity, now_ns, TICK_S)
            odom = odom @ SE2.arc(linear_m_s * TICK_S, angular_rad_s * TICK_S)
            poses.append(PoseEstimate(now_ns + seconds_to_ns(TICK_S), odom, "odom", np.zeros((3, 3))))
    return replace(episode_of(steps), commands=commands, arrivals=[(None, {"wheels": poses})])


@pytest.mark.slow
def test_motors_are_found_in_logs_of_ordinary_actions() -> None:
    found = fit_logged_motors([logged(18)])
    assert found.fit is not None
    model = found.fit.model
    assert found.actions == 18
    assert model.dead_time_s == pytest.approx(0.12, abs=0.01)
    assert model.lag_s == pytest.approx(0.08, abs=0.01)
    assert model.gain == pytest.approx((0.98, 1.03), abs=0.01)
    # These ramps grow by 20 mm/s a tick.
    assert model.threshold_m_s == pytest.approx((0.02, 0.05), abs=0.02)


def test_a_simulated_robot_gets_motors_that_differ_from_ideal_ones() -> None:
    fit = MotorFit(replace(HIDDEN.true, lag_s=0.08123456), np.full(7, 0.001), 0.0)
    options = options_of([*motor_settings(MotorsOfLogs(fit, 30))])
    assert config.parse(options["motors"], MotorOptions, "motors").true.lag_s == 0.0812
    ideal = MotorFit(MotorModel(lag_s=0.002), np.full(7, 0.001), 0.0)
    assert options_of([*motor_settings(MotorsOfLogs(ideal, 30))]) == {}
    assert [setting.note for setting in motor_settings(MotorsOfLogs(None, 3, "3 actions"))] == ["3 actions"]


def test_older_logs_and_contacts_tell_nothing() -> None:
    found = fit_logged_motors([replace(logged(18), commands=())])
    assert found.fit is None
    assert found.reason
    assert fit_logged_motors([logged(18, Zone.CENTER)]).fit is None
