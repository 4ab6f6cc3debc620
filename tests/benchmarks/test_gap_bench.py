"""A robot with hidden parameters: its campaign, the fit, and the predicted correlation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from raising import raises_naming

from robot_runtime.errors import CalibrationFailed
from robot_runtime.scoring.statistics.intervals import Interval
from tests.benchmarks.report import write_rows
from tests.benchmarks.sim.gap import rows_of, rows_of_hidden
from tests.benchmarks.sim.gap_trial import ZOO, Trial, campaign, fit, run_trial
from tests.benchmarks.sim.hidden_robot import Effect, Hidden, run_hidden
from tests.benchmarks.sim.randomized_robot import RandomizedParameters


@pytest.mark.parametrize("number", range(20))
def test_randomized_robots_differ_and_are_worth_finding(number: int) -> None:
    parameters = RandomizedParameters.draw(np.random.default_rng((0, number)))
    assert 0.04 <= abs(parameters.forward_m) / 0.25 <= 0.1
    assert 0.04 <= abs(parameters.turn_rad) / np.radians(30) <= 0.1
    assert 1.0 <= abs(parameters.tilt_deg) <= 4.0
    assert parameters.options()["contact"]["behaviour"] == ("slide" if parameters.slides else "stop")


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_fit_predicts_the_randomized_robot(tmp_path: Path) -> None:
    trial = run_trial(0, 1, tmp_path, episodes=2, further=1)
    assert trial.forward_pct < 30
    assert trial.turn_pct < 30
    assert trial.tilt_deg < 0.5
    assert trial.after > trial.before
    assert trial.held
    write_rows(tmp_path / "rows.json", "gap", rows_of([trial]))
    assert "found_sliding" in (tmp_path / "rows.json").read_text()


@pytest.mark.slow
def test_campaigns_repeat_with_the_seed_and_differ_between_worlds() -> None:
    robot = RandomizedParameters.draw(np.random.default_rng(3)).options()
    first, again, elsewhere = (campaign(robot, 1, 5, simulated=world) for world in (False, False, True))
    assert first.shape == (len(ZOO), 1)
    assert (first == again).all()
    assert (first != elsewhere).any()


@pytest.mark.slow
def test_a_fit_that_fails_says_why(tmp_path: Path) -> None:
    with raises_naming(CalibrationFailed, "empty"):
        fit(tmp_path / "empty", tmp_path / "out")


def test_rows_are_of_the_worst_robot() -> None:
    good = Trial(1.0, 2.0, 0.1, True, 0.2, 0.9, 0.5, 1.0)
    bad = Trial(20.0, 3.0, 0.6, False, 0.1, 0.4, 0.5, 1.0)
    rows = {row.id: row for row in rows_of([good, bad])}
    assert rows["found_forward_bias_pct"].value == 20.0
    assert [row.reached for row in rows.values()] == [False, True, False, False, False, None, None]
    assert rows["srcc_coverage"].value == rows["found_sliding"].value == 0.5
    assert rows["srcc_before"].value == pytest.approx(0.15)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_fit_of_the_fitted_robot_gives_it_again(tmp_path: Path) -> None:
    """All errors at once; errors of the motors are in the motors alone."""
    hidden = run_hidden(3, 1, tmp_path, episodes=2)
    for effects in (hidden.effects, hidden.again):
        assert sum(effect.covered for effect in effects) >= 0.8 * len(effects)
    names = {effect.name for effect in hidden.effects}
    assert {"dead_time_s", "threshold_left_m_s", "height_m", "radius_m", "move_forward x"} <= names
    rows = {row.id: row for row in rows_of_hidden([hidden])}
    assert rows["refit_fixed_point_pct"].reached
    assert hidden.misfits == 0


def test_rows_of_hidden_robots_count_intervals_that_hold() -> None:
    sure, wide = Interval(1.0, 0.9, 1.1), Interval(1.0, 0.0, 2.0)
    held, missed = Effect("a", 1.05, sure, 0.2), Effect("b", 2.5, wide, 0.5)
    changed = Effect("a", 1.1, Interval(1.045, 0.9, 1.2), 0.1)
    rows = {row.id: row for row in rows_of_hidden([Hidden((held, missed), (changed,), 1)] * 2)}
    assert rows["interval_coverage"].value == 0.5
    assert rows["interval_coverage"].reached is False
    assert "missed: b" in rows["interval_coverage"].note
    assert rows["interval_width_ratio"].value == pytest.approx(2.5)
    assert rows["refit_fixed_point_pct"].value == pytest.approx(5.0)
