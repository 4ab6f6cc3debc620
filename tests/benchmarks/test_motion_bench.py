from __future__ import annotations

import math
from dataclasses import replace

import pytest
from raising import raises_naming

from robot_runtime.errors import RuntimeFault
from robot_runtime.hal.motors import CREATE_2_MOTORS, KOBUKI_MOTORS, KnownMotors
from robot_runtime.hal.simulated_motors import MotorOptions
from tests.benchmarks.motion import cli
from tests.benchmarks.motion.bases import BenchRobot, RandomBase, random_base
from tests.benchmarks.motion.measurement import FORWARD, LEFT, Plan, contacts, controlled, driven, identify
from tests.benchmarks.motion.rival_laws import proportional, threshold
from tests.benchmarks.motion.second_order import JITTER_S, SecondOrder, second_order_base
from tests.benchmarks.motion.time_bound import shortest_s

IDEAL = RandomBase(0, MotorOptions(), 1.0)


def test_the_bound_of_an_ideal_base_is_the_profile_s_trapezoid() -> None:
    assert shortest_s(IDEAL, FORWARD) == pytest.approx(0.25 / 0.3 + 0.3, abs=0.01)
    assert shortest_s(IDEAL, LEFT) == pytest.approx(math.radians(30) / 1.5 + 1.5 / 3.5, abs=0.01)


def test_the_bound_grows_with_every_delay() -> None:
    late = RandomBase(0, MotorOptions(dead_time_s=0.2, report_delay_s=0.05), 1.0)
    assert shortest_s(late, FORWARD) == pytest.approx(shortest_s(IDEAL, FORWARD) + 0.25, abs=0.01)
    lags = [shortest_s(RandomBase(0, MotorOptions(lag_s=lag_s), 1.0), FORWARD) for lag_s in (0.0, 0.1, 0.2)]
    assert lags == sorted(lags)


def test_bases_are_the_same_for_the_same_seed_and_within_the_ranges() -> None:
    assert random_base(7, 3) == random_base(7, 3) != random_base(8, 3)
    for number in range(40):
        motors = random_base(number, 0).motors
        assert motors.dead_time_s is not None
        assert 0 <= motors.dead_time_s <= 0.25
        assert 0.02 <= motors.report_delay_s <= 0.1


def test_a_base_is_taken_for_the_type_that_its_steps_of_speed_show() -> None:
    assert RandomBase(0, MotorOptions("create2"), 1.0).nominal == CREATE_2_MOTORS
    assert RandomBase(0, MotorOptions("kobuki", speed_quantum_m_s=0.0), 1.0).nominal == KOBUKI_MOTORS


@pytest.mark.parametrize("law", [proportional, threshold])
def test_the_rival_laws_reach_an_ideal_base_s_goal_within_their_own_tolerance(law) -> None:
    done = driven(BenchRobot(IDEAL), law, 4)
    assert all(done.reached)
    assert max(done.forward_mm) < 35  # one tick of 0.1 s at the speed of the end
    assert max(done.turn_deg) < 5.2


@pytest.mark.slow
def test_the_motors_of_a_random_base_are_identified_within_a_minute_and_a_square_meter() -> None:
    base = random_base(1, 0)
    fit, failure, drive = identify(base)
    assert failure == ""
    assert fit is not None
    assert fit.model.lag_s == pytest.approx(base.true.lag_s, abs=0.01)
    assert fit.model.dead_time_s == pytest.approx(base.true.dead_time_s, abs=0.01)
    assert fit.model.gain == pytest.approx(base.true.gain, abs=0.01)
    assert drive.seconds < 60
    assert drive.extent_m < 0.5


@pytest.mark.slow  # 12 actions of an identified base
def test_a_coarse_base_whose_lag_is_about_a_period_does_not_hunt_about_its_goal() -> None:
    base = random_base(31, 0)  # lag 29 ms, steps of 28.5 mm/s
    fit, _, _ = identify(base)
    assert fit is not None
    done = controlled(base, KnownMotors(fit.model, calibrated=True), 12)
    assert (done.details, all(done.reached)) == ([], True)


def test_bases_of_second_order_are_the_same_for_the_same_seed_and_within_the_ranges() -> None:
    assert second_order_base(7, 3) == second_order_base(7, 3) != second_order_base(8, 3)
    for number in range(40):
        parameters = second_order_base(number, 0).parameters
        assert JITTER_S <= parameters.dead_time_s <= 0.25
        assert 0.5 <= parameters.damping <= 1.2
        assert all(low < high for low, high in zip(parameters.kinetic_m_s, parameters.breakaway_m_s, strict=True))


def test_wheels_of_second_order_overshoot_start_at_their_breakaway_and_stop_dead() -> None:
    wheels = replace(
        second_order_base(0, 0), parameters=SecondOrder(0.1, 12.0, 0.5, (0.05, 0.05), (0.02, 0.02), (1.0, 1.0), seed=0)
    ).simulated()

    def speeds_m_s(command_m_s: float, seconds: float) -> list[float]:
        nonlocal now_ns
        driven = []
        for _ in range(round(seconds / 0.02)):
            driven.append(wheels.drive(command_m_s, 0.0, now_ns, 0.02)[0])
            now_ns += 20_000_000
        return driven

    now_ns = 0
    assert max(speeds_m_s(0.045, 1.0)) == 0.0
    started = speeds_m_s(0.2, 1.0)
    assert started[:3] == [0.0] * 3
    assert 0.22 < max(started) < 0.24
    assert started[-1] == pytest.approx(0.2, abs=0.002)
    assert speeds_m_s(0.03, 1.0)[-1] == pytest.approx(0.03, abs=0.002)  # kinetic friction is less than the breakaway
    assert speeds_m_s(0.0, 1.0)[-1] == 0.0


@pytest.mark.slow
def test_a_base_whose_short_motions_fall_short_of_the_model_reaches_its_goals() -> None:
    base = second_order_base(9, 0)  # a command of 40 ms moves its wheels by a tenth of what a lag of first order would
    fit, failure, _ = identify(base)
    assert failure == ""
    assert fit is not None
    done = controlled(base, KnownMotors(fit.model, calibrated=True), 12)
    assert (done.details, all(done.reached)) == ([], True)


def test_a_base_with_one_sticking_wheel_reaches_its_goals_before_it_was_measured() -> None:
    base = random_base(54, 0)  # thresholds of 0.114 and 0.017 m/s, slow firmware
    done = controlled(base, KnownMotors(base.nominal), 8)
    assert (done.details, all(done.reached)) == ([], True)


def test_the_way_after_contact_grows_with_the_delay() -> None:
    assert max(contacts(0.0, 0)) < 10 < 30 < max(contacts(0.4, 0))


@pytest.mark.slow  # every law on a whole base
def test_every_row_is_measured() -> None:
    rows = {row.id: row for row in cli.motion_rows(list(Plan(0, 4)([0])))}
    assert list(rows) == [
        "reached_calibrated",
        "forward_p95_mm_calibrated",
        "turn_p95_deg_calibrated",
        "time_over_bound",
        "reached_uncalibrated",
        "forward_p95_mm_uncalibrated",
        "turn_p95_deg_uncalibrated",
        "identified_lag_ms",
        "identified_threshold_mm_s",
        "time_vs_proportional",
    ]
    assert rows["identified_lag_ms"].reached
    others = {row.id: row for row in cli.second_order_rows(list(Plan(0, 4, second_order=True)([0])))}
    assert [row_id for row_id in others if row_id.startswith("reached")] == [
        "reached_second_order",
        "reached_second_order_unknown",
    ]


@pytest.mark.slow
def test_a_run_with_faults_does_not_end_with_success() -> None:
    (result,) = Plan(0, 4, second_order=True)([0])
    cli.refuse_faults([result])
    next(iter(result.laws.values())).details.append("fault: base: silent")
    with raises_naming(RuntimeFault, "1 actions", "base: silent"):
        cli.refuse_faults([result])
