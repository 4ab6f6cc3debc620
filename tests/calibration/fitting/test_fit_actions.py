"""Errors of actions from logs: what was hidden in them is found, what tells nothing is left out, rivals are judged."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logged_actions import COMMANDS, episode_of, make_header, make_step, wandering
from raising import raises_naming

from calibration.fitting.actions import Selection, consecutive_correlation, fit_actions, inliers, select, size_of
from calibration.fitting.fit import by_robot, of_one_robot
from calibration.fitting.log_samples import LoggedEpisode, check_referee
from calibration.fitting.map_distance import Walls
from calibration.fitting.validation import validate
from robot_runtime.actions.discrete import Action, Displacement
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import CalibrationFailed, ConfigError
from robot_runtime.hal import Zone
from robot_runtime.records import ActionResult, Outcome
from robot_runtime.robots.action_errors import MOVES, ActionError, ActuationModel
from robot_runtime.robots.published_action_errors import published_models

NAMES = tuple(action.name.lower() for action in MOVES)


def one_model(mean: tuple[float, float, float], covariance: np.ndarray) -> ActuationModel:
    rows = tuple(tuple(float(value) for value in row) for row in covariance)
    return ActuationModel(0.25, 30.0, dict.fromkeys(NAMES, ActionError(mean, rows)))  # type: ignore[arg-type]


MEAN = (-0.0125, 0.004, 0.02)
COVARIANCE = np.array([[6.4e-5, 1e-5, 4e-5], [1e-5, 4e-5, 6e-5], [4e-5, 6e-5, 3e-4]])
HIDDEN = one_model(MEAN, COVARIANCE)


def walls_of(episodes: list[LoggedEpisode]) -> dict[str, Walls]:
    scene = episodes[0].header.scene
    return {scene.digest: Walls(scene.map, 0.18)}


def selected(episodes: list[LoggedEpisode]) -> Selection:
    return select(episodes, walls_of(episodes))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("referee_std", [(0.0, 0.0, 0.0), (0.01, 0.01, 0.01)])
def test_bias_and_whole_covariance_are_found_whatever_the_referees_scatter(
    seed: int, referee_std: tuple[float, float, float]
) -> None:
    random = np.random.default_rng(seed)
    episodes = [wandering(HIDDEN, random, 30, referee_std) for _ in range(30)]
    fits = fit_actions(selected(episodes))
    wide = np.sqrt(np.diag(COVARIANCE) + 2 * np.square(referee_std))
    for fit in fits.values():
        off = np.abs(np.array(fit.error.mean) - MEAN)
        assert (off < 4.5 * wide / math.sqrt(fit.error.count)).all()
        scale = np.sqrt(np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE)))
        reach = 6 * np.outer(wide, wide) / scale / math.sqrt(fit.error.count)
        assert (np.abs(fit.error.matrix - COVARIANCE) / scale < reach).all()
        assert all(
            interval.low <= mean <= interval.high for interval, mean in zip(fit.bias, fit.error.mean, strict=True)
        )
        assert fit.noise[0] == pytest.approx(math.sqrt(2) * referee_std[0], rel=0.1, abs=1e-9)


def test_what_the_controller_makes_up_for_is_no_error_of_the_action() -> None:
    """By odometry each turn ends 0.3° off, and the next begins by putting that right: no slip at all."""
    random = np.random.default_rng(1)
    exact = one_model((0.0, 0.0, 0.0), np.zeros((3, 3)))
    episodes = [wandering(exact, random, 40, residual_rad=math.radians(0.3)) for _ in range(6)]
    selection = selected(episodes)
    turned = [s.trial.error[2] for s in selection.samples]
    assert np.std(turned) == pytest.approx(math.radians(0.3), rel=0.15)
    correlation, pairs = consecutive_correlation(selection.samples)
    assert pairs > 100
    assert abs(correlation[2]) < 0.25
    # Without the chain the same errors would be counted twice, and follow each other with the opposite sign.
    raw = [
        action.move.truth.yaw_rad - action.result.commanded.turn_rad
        for episode in episodes
        for action in episode.actions
    ]
    assert np.std(raw) == pytest.approx(math.sqrt(2) * math.radians(0.3), rel=0.15)


def test_a_referees_scatter_shows_as_opposite_errors_of_actions_that_follow() -> None:
    random = np.random.default_rng(2)
    episodes = [wandering(one_model((0, 0, 0), 1e-6 * np.eye(3)), random, 40, (0.02, 0.02, 0.02)) for _ in range(6)]
    correlation, _ = consecutive_correlation(selected(episodes).samples)
    assert correlation[2] == pytest.approx(-0.5, abs=0.12)


def test_what_tells_nothing_of_free_motion_is_left_out_and_counted() -> None:
    forward = COMMANDS[Action.MOVE_FORWARD]
    done = ActionResult(Outcome.REACHED, forward, forward, Zone.NONE, 1.0)
    half = Displacement(forward_m=0.1)
    left = COMMANDS[Action.TURN_LEFT]
    lost = replace(make_step(6, Action.MOVE_FORWARD, done, SE2(0.85)), stationary=None)
    steps = [
        make_step(0, None, None, SE2()),
        make_step(1, Action.MOVE_FORWARD, done, SE2(0.25)),
        make_step(2, Action.MOVE_FORWARD, replace(done, outcome=Outcome.CONTACT, contact=Zone.CENTER), SE2(0.3)),
        make_step(3, Action.MOVE_FORWARD, done, SE2(0.55), touching=True),
        make_step(4, Action.MOVE_FORWARD, replace(done, outcome=Outcome.TIMED_OUT), SE2(0.6)),
        make_step(5, Action.MOVE_FORWARD, replace(done, commanded=half, measured=half), SE2(0.7)),
        lost,
        make_step(7, Action.TURN_LEFT, replace(done, commanded=left, measured=left), SE2(0.85, 0, 0.5)),
        make_step(8, Action.TURN_LEFT, replace(done, commanded=left, measured=left), SE2(0.85, 0, 1.02)),
        make_step(9, Action.STOP, replace(done, commanded=Displacement()), SE2(0.85, 0, 1.02)),
        make_step(10, None, None, SE2(2.6, 0, 0)),
        make_step(11, Action.MOVE_FORWARD, done, SE2(2.8, 0, 0)),
    ]
    selection = selected([episode_of(steps)])
    assert selection.left_out == {
        "move_forward": {
            "contact": 1,
            "touching": 1,
            "timed out": 1,
            "another size": 1,
            "referee lost": 1,
            "near a wall": 1,
        },
        "turn_left": {"referee lost": 1},
        "turn_right": {},
    }
    assert [(sample.step, sample.trial.action) for sample in selection.samples] == [
        (1, Action.MOVE_FORWARD),
        (8, Action.TURN_LEFT),
    ]


@settings(max_examples=20)
@given(st.integers(0, 1000), st.floats(0.08, 0.3))
def test_a_pushed_robot_is_no_part_of_the_others(seed: int, far_m: float) -> None:
    random = np.random.default_rng(seed)
    errors = random.multivariate_normal(MEAN, COVARIANCE, 60)
    pushed = np.vstack([errors, [[far_m, 0.0, 0.0], [0.0, -far_m, 0.3]]])
    good = inliers(pushed)
    assert not good[-2:].any()
    assert good[:-2].sum() >= 54
    assert inliers(errors).sum() >= 54


def test_too_few_actions_one_way_of_turning_or_none_at_all_are_refused() -> None:
    random = np.random.default_rng(3)
    with raises_naming(CalibrationFailed, "1 episodes", 20):
        fit_actions(selected([wandering(HIDDEN, random, 20)]))
    with raises_naming(CalibrationFailed, "in 2 episodes", "in 5"):
        fit_actions(selected([wandering(HIDDEN, random, 200) for _ in range(2)]))
    turn = COMMANDS[Action.TURN_LEFT]
    steps = [make_step(0, None, None, SE2())] + [
        make_step(i, Action.TURN_LEFT, ActionResult(Outcome.REACHED, turn, turn, Zone.NONE, 1.0), SE2(0, 0, i * 0.52))
        for i in range(1, 30)
    ]
    with raises_naming(CalibrationFailed, "forward motions"):
        size_of([episode_of(steps)])
    both = [wandering(HIDDEN, random, 60) for _ in range(6)]
    one_way = [
        replace(episode, actions=tuple(a for a in episode.actions if a.action is not Action.TURN_RIGHT))
        for episode in both
    ]
    with raises_naming(CalibrationFailed, "turn_right", 0):
        fit_actions(selected(one_way))


def test_continuous_commands_are_no_actions_and_end_the_chain_of_headings() -> None:
    turn = COMMANDS[Action.TURN_LEFT]
    short = ActionResult(Outcome.REACHED, turn, Displacement(turn_rad=turn.turn_rad - 0.01), Zone.NONE, 1.0)
    drive = ActionResult(Outcome.REACHED, Displacement(0.1, 0.2), Displacement(0.1, 0.2), Zone.NONE, 1.0)
    look = ActionResult(Outcome.REACHED, Displacement(tilt_rad=0.5), Displacement(tilt_rad=0.5), Zone.NONE, 1.0)
    steps = [
        make_step(0, None, None, SE2()),
        make_step(1, Action.TURN_LEFT, short, SE2()),
        make_step(2, Action.LOOK_UP, look, SE2()),
        make_step(3, Action.TURN_LEFT, short, SE2()),
        make_step(4, Action.VELOCITY_CONTROL, drive, SE2()),
        make_step(5, Action.TURN_LEFT, short, SE2()),
    ]
    actions = episode_of(steps).actions
    assert [(logged.step, round(logged.carried_rad, 6)) for logged in actions] == [(1, 0.0), (3, 0.01), (5, 0.0)]


def test_a_referee_that_is_odometry_is_refused() -> None:
    wheels = make_header(localizers={"policy": ("wheels",), "referee": ("wheels",), "odometry": ("wheels",)})
    with raises_naming(CalibrationFailed, "referee", "odometry"):
        check_referee(wheels, Path("a.mcap"))
    fused = {"policy": ("wheels",), "referee": ("wheels", "beacons"), "odometry": ("wheels",)}
    check_referee(make_header(localizers=fused), Path("a.mcap"))
    check_referee(make_header(localizers={}), Path("old.mcap"))


def test_robots_and_controllers_are_fitted_one_at_a_time() -> None:
    random = np.random.default_rng(4)
    configurations = {"gain": 1}, {"gain": 2}
    headers = [make_header("lab-1", robot_config=c) for c in configurations] + [make_header("lab-2")]
    episodes = [wandering(HIDDEN, random, 3, header=header) for header in headers]
    assert of_one_robot(episodes[2:], None) == ("lab-2", episodes[2:])
    names = list(by_robot(episodes))
    assert [name.partition("@")[0] for name in names] == ["lab-1", "lab-1", "lab-2"]
    with raises_naming(ConfigError, 3, "--robot"):
        of_one_robot(episodes, None)
    with raises_naming(ConfigError, "'lab-3'"):
        of_one_robot(episodes, "lab-3")
    assert of_one_robot(episodes, names[1])[1] == [episodes[1]]


def test_a_fit_beats_every_published_model_of_another_robot() -> None:
    random = np.random.default_rng(5)
    validation = validate(selected([wandering(HIDDEN, random, 40) for _ in range(8)]))
    assert validation.nats is not None
    assert {rival.name for rival in validation.rivals} == set(published_models(0.25, 30.0))
    for rival in validation.rivals:
        assert rival.verdict == "better"
        assert rival.gain.mean == pytest.approx(validation.nats - rival.nats)
        assert set(rival.by_action) == set(NAMES)
    assert validation.rivals[0].nats >= validation.rivals[-1].nats


def test_of_a_robot_that_errs_as_published_nothing_better_is_claimed() -> None:
    random = np.random.default_rng(6)
    truth = published_models(0.25, 30.0)["Habitat challenge"]
    # Free floor without end: these errors lead a robot through the room's walls.
    episodes = [wandering(truth, random, 40) for _ in range(8)]
    far = Walls(episodes[0].header.scene.map, -10.0)
    validation = validate(select(episodes, {episodes[0].header.scene.digest: far}))
    own = next(rival for rival in validation.rivals if rival.name == "Habitat challenge")
    assert own.verdict != "better"
    assert abs(own.gain.mean) < 0.2
    assert all(rival.verdict == "better" for rival in validation.rivals if rival is not own)


def test_too_few_to_hold_some_out_is_said() -> None:
    random = np.random.default_rng(7)
    validation = validate(selected([wandering(HIDDEN, random, 40) for _ in range(3)]))
    assert validation.nats is None
    assert "too few to hold some out" in validation.reason
    assert not validation.rivals


def test_densities_are_those_of_the_normal_distribution() -> None:
    from scipy.stats import multivariate_normal

    error = HIDDEN.actions["move_forward"]
    points = np.random.default_rng(8).normal(0, 0.02, (5, 3))
    noise = np.stack([k * 1e-4 * np.eye(3) for k in range(5)])
    expected = [
        multivariate_normal(MEAN, COVARIANCE + extra).logpdf(point) for point, extra in zip(points, noise, strict=True)
    ]
    assert error.log_densities(points, noise) == pytest.approx(expected)


@pytest.mark.parametrize("name", list(published_models(0.25, 30.0)))
def test_published_moments_turn_with_the_turn(name: str) -> None:
    model = published_models(0.25, 30.0)[name]
    left, right = model.actions["turn_left"], model.actions["turn_right"]
    assert left.mean[:2] == right.mean[:2]
    assert left.mean[2] == -right.mean[2]
    assert left.covariance == right.covariance
