"""NavDP's servers: what the network of each would see, and what their answers mean. Against the emulator."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from navigator_servers import STEPS, STILL, STRAIGHT, TURN_LEFT_NAVDP, TURN_RIGHT_DDPPO, Emulator, emulated
from open_room import CAMERA, Witness, fake_robot, make_episode, make_scene, make_task
from raising import raises_naming

from robot_runtime.actions.discrete import Action
from robot_runtime.actions.timed import Control, TimedAction, TrajectoryControl
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, PolicyError, PolicyMismatch
from robot_runtime.policies import check_source, load_policy
from robot_runtime.policies.remote.dialects import navdp
from robot_runtime.policies.remote.dialects.images import depth_png, points_of
from robot_runtime.policies.remote.navigators import NavDP, Navigator
from robot_runtime.policy import Observation, PolicySource
from robot_runtime.records import EndReason
from robot_runtime.runtime import run_episode
from robot_runtime.tasks.task import Task

TASK = make_task(control=Control((-0.5, 0.5), trajectory=TrajectoryControl()))


def seen(rho_m: float = 2.0, azimuth_rad: float = 0.5) -> Observation:
    """A smooth image whose channels differ, half of it far; a hole; a goal."""
    rgb = np.zeros((24, 32, 3), np.uint8)
    rgb[:] = (200, 90, 20)
    depth = np.full((24, 32, 1), 0.5, np.float32)
    depth[:, 16:] = 1.0
    depth[0, 0] = 0.0
    return {"rgb": rgb, "depth": depth, navdp.POINT_SENSOR: np.array([rho_m, azimuth_rad], np.float32)}


@contextmanager
def client(emulator: Emulator, task: Task = TASK, kind: type[Navigator] = NavDP, **options: Any) -> Iterator[Navigator]:
    with emulated(emulator) as place:
        policy = kind(f"navdp://{place}", options)
        policy.check(task)
        policy.reset(task, 0)
        yield policy


# --- what is sent ---------------------------------------------------------------------------------------------------


def test_the_network_sees_the_colors_meters_and_the_goal() -> None:
    emulator = Emulator()
    with client(emulator) as policy:
        policy.act(seen())
    (step,) = emulator.seen
    assert step.route == "pointgoal_step"
    # Their client gives RGB to an encoder of BGR: the network sees RGB.
    np.testing.assert_allclose(step.rgb[12, 12], (200, 90, 20), atol=6)
    assert step.depth_m.shape == (24, 32)
    assert step.depth_m[5, 5] == pytest.approx(0.5 * (CAMERA.depth_min_m + CAMERA.depth_max_m), abs=1e-4)
    assert step.depth_m[5, 20] == pytest.approx(CAMERA.depth_max_m, abs=1e-4)
    assert step.depth_m[0, 0] == 0.0
    assert step.goal == pytest.approx((2 * math.cos(0.5), 2 * math.sin(0.5)), abs=1e-6)


def test_depth_beyond_the_images_reach_is_clipped() -> None:
    camera = replace(CAMERA, depth_min_m=0.0, depth_max_m=10.0, depth_normalized=False)
    emulator = Emulator()
    task = replace(TASK, camera=camera)
    with client(emulator, task) as policy:
        policy.act({**seen(), "depth": np.full((24, 32, 1), 8.0, np.float32)})
    assert emulator.seen[0].depth_m.max() == pytest.approx(6.5535)
    assert len(depth_png(np.zeros((24, 32, 1), np.float32), camera)) > 0


def test_a_reset_sets_the_server_up_and_clears_its_memory() -> None:
    emulator = Emulator("vint")
    with client(emulator, stop_threshold=-3.0) as policy:
        policy.reset(TASK, 1)
    assert [route for route, _ in emulator.resets] == ["navigator_reset", "navigator_reset_env"] * 2
    setup, cleared = emulator.resets[0][1], emulator.resets[1][1]
    k = CAMERA.intrinsics
    assert setup == {
        "intrinsic": [[k.fx, 0, k.cx], [0, k.fy, k.cy], [0, 0, 1]],
        "stop_threshold": -3.0,
        "batch_size": 1,
    }
    assert cleared == {"env_id": 0}


@pytest.mark.parametrize("algorithm", sorted(STEPS))
@pytest.mark.parametrize("sensors", [(), (navdp.POINT_SENSOR,), (navdp.IMAGE_SENSOR,)])
def test_each_server_is_asked_for_a_goal_that_it_takes(algorithm: str, sensors: tuple[str, ...]) -> None:
    """By a table: a route that a server lacks is status 404."""
    takes = {route.removesuffix("_step") for route in STEPS[algorithm]}
    if sensors != (navdp.POINT_SENSOR,) and "nogoal" not in takes:
        with raises_naming(PolicyError, algorithm, navdp.POINT_SENSOR, "pointnav_trajectory"):
            navdp.route(algorithm, sensors, "navdp://x")
        return
    goal = navdp.route(algorithm, sensors, "navdp://x")
    assert goal in takes
    if sensors == (navdp.POINT_SENSOR,) and "pointgoal" in takes:
        assert goal == navdp.POINT
    if sensors == (navdp.IMAGE_SENSOR,) and "imagegoal" in takes:
        assert goal == navdp.IMAGE


@pytest.mark.parametrize("algorithm", ["gnm", "navdp"])
def test_an_image_goal_of_any_size_is_sent_like_the_image(algorithm: str, tmp_path: Path) -> None:
    goal = np.full((48, 40, 3), (10, 150, 250), np.uint8)
    cv2.imwrite(str(tmp_path / "goal.png"), goal[:, :, ::-1])
    emulator = Emulator(algorithm)
    with client(emulator, goal_image=str(tmp_path / "goal.png")) as policy:
        policy.act(seen())
        assert policy.info()["goal"] == "imagegoal"
    assert emulator.seen[0].route == "imagegoal_step"
    shown = emulator.seen[0].image_goal
    assert shown is not None
    assert shown.shape == (48, 40, 3)
    np.testing.assert_allclose(shown[12, 12], (10, 150, 250), atol=6)


def test_a_goal_that_is_no_image_or_for_a_server_without_image_goals_is_refused(tmp_path: Path) -> None:
    (tmp_path / "goal.png").write_bytes(b"no image")
    for file in (tmp_path / "goal.png", tmp_path / "none.png"):
        with raises_naming(ConfigError, file, "goal_image="), client(Emulator("gnm"), goal_image=str(file)):
            pass
    cv2.imwrite(str(tmp_path / "goal.png"), np.zeros((4, 4, 3), np.uint8))
    goal = str(tmp_path / "goal.png")
    with raises_naming(PolicyError, "ddppo", navdp.POINT_SENSOR), client(Emulator("ddppo"), goal_image=goal):
        pass


# --- what is answered -----------------------------------------------------------------------------------------------


def decided(answer: Any, algorithm: str = "navdp", observation: Observation | None = None, **options: Any) -> Any:
    emulator = Emulator(algorithm, lambda _: answer)
    with client(emulator, **options) as policy:
        return policy.act(seen() if observation is None else observation)


def test_all_points_at_the_robot_mean_stop() -> None:
    assert decided(STILL) is Action.STOP
    assert decided([[0.01, -0.01]], "nomad") is Action.STOP


def test_a_line_to_the_side_is_a_turn() -> None:
    assert decided(TURN_LEFT_NAVDP) is Action.TURN_LEFT
    assert decided(TURN_RIGHT_DDPPO, "ddppo") is Action.TURN_RIGHT


def test_a_trajectory_is_followed_at_one_speed_from_the_place_of_the_image() -> None:
    action = decided(STRAIGHT, speed_m_s=0.3)
    assert isinstance(action, TimedAction)
    assert not action.settle
    assert action.exposure_ns is None
    last = action.points[-1]
    assert last.pose is not None
    assert (last.pose.x_m, last.pose.y_m, last.pose.yaw_rad) == pytest.approx((2.4, 0.0, 0.0))
    assert last.after_s == pytest.approx(2.4 / 0.3)
    assert [point.after_s for point in action.points] == pytest.approx([0.1 / 0.3 * k for k in range(1, 25)])


def test_points_that_coincide_take_no_time_and_the_tasks_speed_holds() -> None:
    action = decided([[0.0, 0.0], [0.5, 0.0], [0.5, 0.0], [0.5, 0.5]], "nomad", speed_m_s=5.0)
    assert isinstance(action, TimedAction)
    assert action.points[-1].after_s == pytest.approx(1.0 / 0.5)
    assert all(a.after_s < b.after_s for a, b in zip(action.points, action.points[1:], strict=False))


def test_a_goal_behind_is_said_to_be_another_one_for_the_server() -> None:
    with client(Emulator()) as policy:
        policy.act(seen(2.0, 2.5))
        assert policy.info()["goal_taken_m"] == pytest.approx((0.0, 2 * math.sin(2.5)), abs=1e-6)
        policy.act(seen(2.0, 0.5))
        assert "goal_taken_m" not in policy.info()
        json.dumps(policy.info())
    assert navdp.taken_goal((7.9, 0.8), "ddppo") == (5.0, 0.8)
    assert navdp.taken_goal((-6.4, 4.8), "viplanner") is None


def test_the_robot_stops_where_the_task_counts_success_for_no_server_does() -> None:
    emulator = Emulator()
    with client(emulator) as policy:
        assert policy.act(seen(TASK.success.distance_m - 0.01)) is Action.STOP
        assert "does not say" in policy.info()["stop"]
    assert not emulator.seen
    assert decided(STRAIGHT, observation=seen(0.2), stop_within_m=0.1) is not Action.STOP


def test_an_episode_is_driven_to_its_goal_and_stops_there() -> None:
    """Trajectories to the goal, as the network sees it; the log has what was driven and who asked."""
    emulator = Emulator()
    emulator.answer = lambda step: [[share * x for x in emulator.seen[step].goal or ()] for share in (0.5, 1.0)]
    witness = Witness()
    with emulated(emulator) as place, fake_robot(TASK) as robot:
        policy = load_policy(f"navdp://{place}")
        end = run_episode(Env(robot, TASK, make_scene(), [witness]), policy, make_episode(), seed=7)
        assert robot.base.state(1.0).velocity.linear_m_s == 0.0
    assert end.reason is EndReason.STOP
    assert {str(step.action) for step in witness.steps[1:-1]} == {"trajectory_control"}
    last = witness.steps[-1].pose.pose
    moved_m = math.hypot(last.x_m, last.y_m)
    assert moved_m > 1.0 - TASK.success.distance_m - 0.05
    info = witness.steps[1].policy_info
    assert (info["algorithm"], info["goal"]) == ("navdp", "pointgoal")
    assert info["answer_s"] >= 0


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ([[1.0]], "(1, 1)"),
        ([[1.0, 2.0, 3.0, 4.0]], "(1, 4)"),
        ([[1.0, float("nan")]], "not finite"),
        ([[1.0, float("inf")]], "not finite"),
        ([[1.0, 2.0], [3.0]], "not rows"),
        ([], "not rows"),
        ([["a", "b"]], "not rows"),
        ([[10**400, 0]], "not rows"),
        ([[0.0, 0.0]] * 2000, "(2000, 2)"),
    ],
)
def test_an_answer_that_is_no_trajectory_is_refused(answer: Any, named: str) -> None:
    with raises_naming(PolicyError, "server", named):
        points_of(answer, "server")


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[1]", "not a JSON object"),
        (b"{}", "not one trajectory"),
        (b'{"trajectory": [[[1, 0]], [[1, 0]]]}', "not one trajectory"),
        (b'{"trajectory": [[[NaN, 0]]]}', "not finite"),
        (b" " * ((1 << 20) + 1), "more than 1048576 bytes"),
    ],
)
def test_bytes_that_are_no_answer_are_refused(raw: bytes, named: str) -> None:
    with client(Emulator(raw=lambda _: raw)) as policy, raises_naming(PolicyError, "127.0.0.1", named):
        policy.act(seen())


def test_arguments_and_tasks_that_cannot_work_are_refused_before_the_robot_moves() -> None:
    with raises_naming(ConfigError, "speed_m_s"):
        NavDP("navdp://there", {"speed_m_s": 0})
    with raises_naming(ConfigError, "spede_m_s"):
        NavDP("navdp://there", {"spede_m_s": 1})
    with raises_naming(ConfigError, "navdp://there:8888/pointgoal_step", "navdp://host:port"):
        NavDP("navdp://there:8888/pointgoal_step", {})
    with raises_naming(ConfigError, "there:x"):
        NavDP("navdp://there:x", {})
    with raises_naming(ConfigError, "stop_threshold"):
        check_source(PolicySource("navdp://there", {"stop_threshold": "low"}))
    with raises_naming(PolicyMismatch, "trajectory", "pointnav_trajectory"):
        NavDP("navdp://there", {}).check(make_task())
