"""Recorded actions in the simulator: what an exact robot did repeats exactly, and what another did is told apart."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import DOWN, INTO_A_WALL, TASK, UP, F, L, R, Script, record, replayed, steps_of

from robot_runtime.actions import timed
from robot_runtime.actions.timed import Control, Decision, TrajectoryControl
from robot_runtime.common.geometry import SE2
from robot_runtime.policy import Observation
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.task import load_task
from sim_bridge.replay.action_replay import displacement_difference
from sim_bridge.replay.results import ActionReplay, Divergence, Replay, Thresholds, read_replay, write_replay

SAME_M, SAME_RAD = 1e-9, 1e-9
"""Far below what is asked for (1 mm, 0.05°): nothing but the last digits may differ."""

SHORT, ASTRAY = (-0.02, 0.01, 0.0), (0.0, 0.0, -0.05)
"""Errors of a step forward and of a turn left: meters forward and left, radians to the left."""

NONE = [[0.0, 0.0, 0.0]] * 3
BIASED = {
    "action_noise": {
        "model": "gaussian",
        "forward_m": 0.25,
        "turn_deg": 30.0,
        "actions": {
            "move_forward": {"mean": list(SHORT), "covariance": NONE},
            "turn_left": {"mean": list(ASTRAY), "covariance": NONE},
            "turn_right": {"mean": list(ASTRAY), "covariance": NONE},
        },
    }
}


def action_of(replay: Replay) -> ActionReplay:
    assert replay.action is not None, replay.notes
    return replay.action


def assert_repeats(replay: Replay, images: bool) -> None:
    """Every step where it was, and seen as it was."""
    assert replay.notes == ()
    action = action_of(replay)
    assert len(action.steps) == action.recorded_steps
    assert action.largest_error_m == pytest.approx(0, abs=SAME_M)
    assert action.largest_error_rad == pytest.approx(0, abs=SAME_RAD)
    assert action.ndtw == pytest.approx(1)
    assert action.contact_agreement == action.outcome_agreement == 1
    assert action.divergence is None
    assert all(step.tilt_replayed_rad == step.tilt_recorded_rad for step in action.steps)
    if images:
        assert all(step.image is not None and step.image.depth_identical for step in action.steps)
        assert all(step.image is not None and step.image.rgb_identical for step in action.steps)


@pytest.fixture(scope="module")
def run(room: Scene, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three episodes of one run, with looks, walls and starts of their own; the scripts in turn."""
    scripts = [INTO_A_WALL, [F, L, F, DOWN, F, UP, R, F, F], INTO_A_WALL[::-1][1:]]
    starts = [SE2(), SE2(-1.0, 0.3, 4.0), SE2(0.4, -0.7, -2.5)]
    return record(tmp_path_factory.mktemp("run"), room, scripts, starts=starts)


@pytest.mark.slow
def test_an_exact_robots_log_repeats_to_the_last_pixel(run: list[Path]) -> None:
    assert sum(step.result is not None and step.result.collided for step in steps_of(run[0])) >= 2
    for replay in replayed(run, images=True):
        assert_repeats(replay, images=True)


@pytest.mark.slow
def test_replays_do_not_depend_on_each_other_or_on_images(run: list[Path]) -> None:
    seen = {replay.log: action_of(replay) for replay in replayed(run, images=True)}
    backwards = replayed([*reversed(run), run[1]])
    assert [action_of(replay).steps for replay in backwards] == [
        tuple(replace(step, image=None) for step in seen[replay.log].steps) for replay in backwards
    ]


@pytest.mark.slow
def test_errors_of_a_noisy_simulator_are_the_logs_own_whatever_was_replayed_before(run: list[Path]) -> None:
    noisy = {"actuation": {"linear_noise_m": 0.01, "angular_noise_rad": 0.02}}
    alone = replayed(run[1:2], twin_options=noisy)
    after = replayed(run, twin_options=noisy)
    assert alone[0].action == after[1].action
    assert action_of(alone[0]).largest_error_m > 1e-4
    assert action_of(after[0]).steps[1].difference != action_of(after[2]).steps[1].difference


@pytest.mark.slow
@pytest.mark.parametrize("images", [False, True])
def test_continuous_commands_are_replayed(images: bool, room: Scene, tmp_path: Path) -> None:
    control = load_task("objectnav_hm3d2023").control
    task = replace(TASK, control=control)
    script = [
        timed.velocity(0.25, 0.4, 0.2, 1.0),
        timed.velocity(0.3, -0.3, 0.0, 2.0),
        timed.waypoint(0.4, -0.3, 1.0, -0.1, 9.0),
        timed.waypoint(-0.2, 0.1, 0.0, 0.0, 2.0),
    ]
    (replay,) = replayed(record(tmp_path, room, [script], task), images=images)
    assert_repeats(replay, images)
    assert [step.command for step in action_of(replay).steps[1:5]] == script


@pytest.mark.slow
def test_actions_in_motion_are_replayed_with_their_ages(
    room: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decisions' own times count: no latency is given."""
    decided = Script.act

    def slowly(self: Script, observation: Observation) -> Decision:
        time.sleep(0.03 * (len(self._left) % 3))
        return decided(self, observation)

    monkeypatch.setattr(Script, "act", slowly)
    task = replace(TASK, control=Control((-0.5, 0.5), trajectory=TrajectoryControl()))
    arc = timed.trajectory([(0.05 * k, 0.001 * k * k) for k in range(1, 9)], 0.25)
    turn = timed.velocity(0.2, -0.4, settle=False)
    script: list[Decision] = [*[arc] * 6, *[turn] * 4, F, arc, arc]
    (log,) = record(tmp_path, room, [script], task)
    assert len({step.phase_s["age"] for step in steps_of(log) if "age" in step.phase_s}) > 1
    (replay,) = replayed([log])
    assert_repeats(replay, images=False)


@pytest.mark.slow
def test_a_biased_simulator_is_blamed_action_by_action(room: Scene, tmp_path: Path) -> None:
    """Each action's own error is the same wherever the others have led; distances add up."""
    logs = record(tmp_path, room, [[F, F, L, F, L, F, F, F, F]], starts=[SE2(-2.0, -1.0, 0.3)])
    (replay,) = replayed(logs, twin_options=BIASED, forced=True)
    action = action_of(replay)
    assert replay.notes == ()
    for step in action.steps[1:-1]:
        x_m, y_m, yaw_rad = SHORT if step.action is F else ASTRAY
        for moved in (step.difference, step.forced):
            assert moved is not None
            assert (moved.x_m, moved.y_m) == pytest.approx((x_m, y_m), abs=3e-3)
            assert moved.yaw_rad == pytest.approx(yaw_rad, abs=math.radians(0.2))
    divergence = action.divergence
    assert divergence is not None
    at = [step.distance_m or 0.0 for step in action.steps]
    assert at[divergence.index - 1] <= action.thresholds.position_m
    assert divergence.by == ("position",)
    assert at[divergence.index] > action.thresholds.position_m
    assert action.end_error_m == at[-1]
    assert action.end_error_rad == pytest.approx(2 * abs(ASTRAY[2]), abs=math.radians(0.4))
    assert 0 < action.ndtw < 1


@pytest.mark.slow
def test_a_wall_that_was_not_reached_yet_is_told_from_one_that_is_not_there(room: Scene, tmp_path: Path) -> None:
    """Shorter steps touch the wall later; from the recorded poses every contact is found."""
    logs = record(tmp_path, room, [[F] * 13], starts=[SE2(0.0, 0.0, 0.0)])
    far = Thresholds(position_m=5.0, heading_deg=180.0)
    (late,) = replayed(logs, twin_options=BIASED, forced=True, thresholds=far)
    action = action_of(late)
    first = next(step for step in action.steps if step.contact_recorded)
    assert not first.contact_replayed
    assert action.divergence == Divergence(first.index, ("contact", "outcome"))
    assert all(step.contact_forced == step.contact_recorded for step in action.steps[1:])
    assert action.departure is None
    assert action.contact_agreement is not None
    assert 0.5 < action.contact_agreement < 1
    (sliding,) = replayed(logs, twin_options={"contact": {"behaviour": "slide"}}, forced=True)
    # A wall that is met head-on holds a robot that slides as well, and its moves are shortened.
    assert all(step.contact_forced == step.contact_recorded for step in action_of(sliding).steps[1:])
    assert action_of(sliding).departure is None


@given(*[st.builds(SE2, *[st.floats(-9, 9)] * 3)] * 4)
def test_an_actions_own_difference_knows_nothing_of_where_it_began(a: SE2, moved: SE2, b: SE2, error: SE2) -> None:
    """The same displacement elsewhere is no difference; an error at its end is one, in the frame of its start."""
    same = displacement_difference(a, a @ moved, b, b @ moved)
    assert same is not None
    assert (same.x_m, same.y_m, same.yaw_rad) == pytest.approx((0, 0, 0), abs=1e-9)
    off = displacement_difference(a, a @ moved, b, b @ SE2(moved.x_m + error.x_m, moved.y_m + error.y_m, moved.yaw_rad))
    assert off is not None
    assert (off.x_m, off.y_m, off.yaw_rad) == pytest.approx((error.x_m, error.y_m, 0), abs=1e-9)


def test_results_survive_their_file(run: list[Path], tmp_path: Path) -> None:
    for replay in replayed(run[:1], images=True, forced=True):
        write_replay(tmp_path / "replay.json", replay)
        assert read_replay(tmp_path / "replay.json") == replay
