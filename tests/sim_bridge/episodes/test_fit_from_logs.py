"""``robot-runtime fit`` on logs of simulated robots whose hidden settings it must find, from the logs alone."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from calibration.fitting.actions import trial_of
from calibration.fitting.fit import RobotFit, fit_robot, of_one_robot, read_all
from calibration.fitting.log_samples import read_episode
from calibration.fitting.replay_results import ReplayedCamera
from calibration.fitting.simulator_options import options, settings
from calibration.fitting.table import notes
from robot_runtime.actions.discrete import Action
from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.recording.log_files import find_logs
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import Outcome
from robot_runtime.robots.action_errors import MOVES, load_actuation
from robot_runtime.robots.loader import RobotContext, load_robot, read_robot_file
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.statistics.intervals import Interval
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import load_task

pytestmark = pytest.mark.slow  # what they share takes far longer than each test

FORWARD_M, TURN_RAD = -0.0125, math.radians(-1.5)
"""5 % of an action, each; a single action scatters by 4 mm and 0.7 degrees."""

TILT_DEG, ROLL_DEG, HEIGHT_M = 2.0, -1.0, 0.015


def erring() -> dict[str, Any]:
    """Hidden errors of actions."""
    turn = [[4e-6, 0, 0], [0, 4e-6, 0], [0, 0, 1.5e-4]]
    return {
        "model": "gaussian",
        "forward_m": 0.25,
        "turn_deg": 30.0,
        "actions": {
            "move_forward": {
                "mean": [FORWARD_M, 0.002, 0.0],
                "covariance": [[1.6e-5, 0, 0], [0, 1e-5, 1e-5], [0, 1e-5, 1e-4]],
            },
            "turn_left": {"mean": [0.0, 0.0, TURN_RAD], "covariance": turn},
            "turn_right": {"mean": [0.0, 0.0, -TURN_RAD], "covariance": turn},
        },
    }


def campaign(
    folder: Path, scene: Scene, robot: Path, episodes: int, steps: int, seed: int, size: tuple[int, int] = (48, 36)
) -> Path:
    """Log episodes of an agent that goes where chance leads it, mostly ahead, and looks down and up once."""
    task = load_task("pointnav_gps_compass")
    camera = replace(task.camera, width=size[0], height=size[1])
    actions = (*task.actions, Action.LOOK_UP, Action.LOOK_DOWN)
    task = replace(task, camera=camera, actions=actions, max_steps=steps)
    random = np.random.default_rng(seed)
    runs = [
        Episode(str(number), scene.name, SE2(-1.0 + 0.5 * (number % 4), 0.2, 0.8 * number), (Goal(2.0, 0.0),))
        for number in range(episodes)
    ]
    recorder = Recorder(folder)
    _, file = read_robot_file(str(robot))
    with (
        load_robot(str(robot), RobotContext.of(task, scene, runs, seed)) as connected,
        Env(connected, task, scene, (recorder,), seed=seed, robot_config=asdict(file)) as env,
    ):
        for run in runs:
            env.reset(run, "wanderer")
            ways = random.choice(MOVES, steps - 3, p=[0.56, 0.22, 0.22]).tolist()  # type: ignore[arg-type]
            for action in [Action.LOOK_DOWN, *ways[:4], Action.LOOK_UP, *ways[4:], Action.STOP]:
                env.step(action)
    recorder.close()
    return folder


def robot_file(folder: Path, **options: Any) -> Path:
    """A simulated robot with these options."""
    path = folder / "hidden.yaml"
    document = {"name": "lab-1", "driver": "sim_bridge.robot.driver.make_robot", "options": options}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def sliding(room: Scene, once: Callable[..., Path]) -> Path:
    """Logs of a robot that slides, slips, looks askew through a camera that flickers, and is late."""

    def log(folder: Path) -> None:
        folder.mkdir()
        robot = robot_file(
            folder,
            action_noise=erring(),
            contact={"behaviour": "slide"},
            camera={
                "mount_error": {"tilt_deg": TILT_DEG, "roll_deg": ROLL_DEG, "height_m": HEIGHT_M},
                "depth_noise": {"model": "fitted", "sigma": [0.002, 0.0, 0.002]},
                "latency_s": 0.03,
            },
            localizer={"rate_hz": 20.0, "latency_s": 0.06, "noise_m": 0.02, "noise_deg": 1.0},
        )
        campaign(folder / "logs", room, robot, 8, 40, 1)

    return once("sliding", log) / "logs"


@pytest.fixture(scope="module")
def fitted(sliding: Path, once: Callable[..., Path]) -> Path:
    """Result of ``fit`` on them."""

    def fit(out: Path) -> None:
        assert run_command(["fit", str(sliding), "--out", str(out), "--frames", "40"]) == 0

    return once("fitted", fit)


def test_hidden_settings_are_found(fitted: Path) -> None:
    robot = yaml.safe_load((fitted / "robot.yaml").read_text(encoding="utf-8"))
    assert robot["name"] == "lab-1-fitted"
    found = robot["options"]
    actions = found["action_noise"]["actions"]
    assert actions["move_forward"]["mean"][0] == pytest.approx(FORWARD_M, rel=0.1)
    turned = (actions["turn_left"]["mean"][2] - actions["turn_right"]["mean"][2]) / 2
    assert turned == pytest.approx(TURN_RAD, rel=0.1)
    assert math.sqrt(actions["turn_left"]["covariance"][2][2]) == pytest.approx(math.sqrt(1.5e-4), rel=0.25)
    assert found["contact"] == {"behaviour": "slide"}
    assert found["camera"]["mount_error"]["tilt_deg"] == pytest.approx(TILT_DEG, abs=0.25)
    assert found["camera"]["mount_error"]["roll_deg"] == pytest.approx(ROLL_DEG, abs=0.25)
    assert found["camera"]["mount_error"]["height_m"] == pytest.approx(HEIGHT_M, abs=0.005)
    c0, c1, c2 = found["camera"]["depth_noise"]["sigma"]
    for depth_m in (1.0, 2.0):
        assert c0 + c1 * depth_m + c2 * depth_m**2 == pytest.approx(0.002 + 0.002 * depth_m**2, rel=0.2)
    localizer = found["localizer"]
    assert localizer["rate_hz"] == pytest.approx(20.0, rel=0.02)
    assert localizer["latency_s"] == pytest.approx(0.06, abs=0.012)
    assert localizer["noise_m"] == pytest.approx(0.02, rel=0.1)
    assert localizer["noise_deg"] == pytest.approx(1.0, rel=0.1)


def test_everything_is_written_and_stamped(fitted: Path) -> None:
    model = load_actuation(fitted / "actuation.yaml")
    assert model.contact is not None
    assert model.contact.behaviour == "slide"
    document = json.loads((fitted / "fit.json").read_text(encoding="utf-8"))
    assert document["held_out"]["rivals"][0]["gain"]["low"] > 0
    assert document["contact"]["felt"] > 0
    page = (fitted / "fit.html").read_text(encoding="utf-8")
    for picture in ("actions", "likelihood", "contacts", "camera", "depth"):
        assert (fitted / f"{picture}.png").stat().st_size > 5000
    assert page.count("data:image/png") == 5
    assert "PyRobot LoCoBot ILQR" in page


def fit_of(logs: Path) -> RobotFit:
    """Without pictures, and of one frame: most of a fit's time."""
    episodes, unused = read_all(find_logs([logs]))
    return fit_robot(*of_one_robot(episodes, None), unused, max_frames=1)


@pytest.mark.slow
def test_a_robot_simulated_by_the_fit_errs_as_the_logs_do(fitted: Path, room: Scene, tmp_path: Path) -> None:
    first = load_actuation(fitted / "actuation.yaml")
    second = fit_of(campaign(tmp_path / "again", room, fitted / "robot.yaml", 5, 30, 9, (16, 12)))
    for name, error in second.model.actions.items():
        other = first.actions[name]
        spread = np.sqrt(np.diag(other.matrix) * (1 / error.count + 1 / other.count)) + 3e-4
        assert (np.abs(np.array(error.mean) - other.mean) < 3.5 * spread).all(), name
        assert math.sqrt(error.matrix[2, 2]) == pytest.approx(math.sqrt(other.matrix[2, 2]), rel=0.5)
    assert second.contact.log_ratio > 0
    assert second.contact.felt > 0


@pytest.mark.slow
def test_a_robot_that_stops_is_told_from_one_that_slides(room: Scene, tmp_path: Path) -> None:
    logs = campaign(
        tmp_path / "logs",
        room,
        robot_file(tmp_path, action_noise=erring(), camera={"mount": "habitat"}),
        5,
        34,
        4,
        (16, 12),
    )
    fit = fit_of(logs)
    assert fit.contact.behaviour == "stop"
    assert fit.contact.felt > 0
    set_by_it = options(settings(fit))
    assert "localizer" not in set_by_it, "an exact one stays exact"
    assert set_by_it["camera"]["mount"] == "habitat"
    assert "mount_error" not in set_by_it["camera"], "of one frame nothing is claimed"
    sure, unsure = Interval(1.5, 1.4, 1.6), Interval(1.5, 0.5, 2.5)
    replayed = ReplayedCamera(3, sure, sure, unsure, None, Interval(-0.01, -0.012, -0.008), (0.0, 0.0, 0.004), 3.0)
    by_replays = options(settings(replace(fit, replayed=replayed, depth=replace(fit.depth, bias=replayed.bias))))
    assert by_replays["camera"]["mount_error"] == {"tilt_deg": 1.5, "pan_deg": 1.5, "forward_m": -0.01}
    assert by_replays["camera"]["depth_noise"] == {"model": "fitted", "bias": [0.0, 0.0, 0.004]}
    floor = replace(fit.camera, tilt_deg=Interval(1.7, 1.6, 1.8))
    (tilt,) = [
        one for one in settings(replace(fit, camera=floor, replayed=replayed)) if one.option.endswith("tilt_deg")
    ]
    assert tilt.found.startswith("1.50 [1.30, 1.70]"), "the floor says 1.7 degrees"
    campaign(tmp_path / "runs", room, robot_file(tmp_path, **by_replays), 1, 6, 0, (16, 12))


def test_the_motion_controllers_chain_of_headings_is_followed(room: Scene, tmp_path: Path) -> None:
    """A slow base ends turns off by some hundredths of a degree, and the next motion puts that right."""
    robot = robot_file(tmp_path, base={"rate_hz": 25.0})
    logs = campaign(tmp_path / "logs", room, robot, 1, 30, 2, (16, 12))
    episode = read_episode(next(iter(logs.glob("*.mcap"))))
    ahead = [
        logged
        for logged in episode.actions
        if logged.action is Action.MOVE_FORWARD and logged.result.outcome is Outcome.REACHED and not logged.felt
    ]
    turned_rad = [logged.move.truth.yaw_rad for logged in ahead]
    assert max(map(abs, turned_rad)) > 3e-4, "what it made up for"
    assert max(abs(trial_of(logged).error[2]) for logged in ahead) < 1e-5


@pytest.mark.slow
def test_torn_logs_count_as_far_as_they_go_and_others_say_why_not(sliding: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(sliding, logs)
    first, second, *_ = sorted(logs.glob("*.mcap"))
    whole = first.read_bytes()
    first.write_bytes(whole[: int(0.6 * len(whole))])
    second.write_bytes(b"no log at all")
    fit = fit_of(logs)
    assert [path for path, _ in fit.unused] == [second]
    assert len(fit.episodes) == 7
    assert 0 < len(fit.episodes[0].steps) < len(fit.episodes[1].steps)
    (torn,) = fit.truncated
    assert f"{first}: ends after step" in torn
    assert [line.partition(":")[0] for line in notes(fit)][-2:] == ["not used", "in part"]
    many = replace(fit, episodes=fit.episodes * 10)
    assert "latencies and travel after touch: of the first 60 of 70 logs" in notes(many)


def test_what_cannot_be_fitted_is_said(
    sliding: Path, fitted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = next(iter(sorted(sliding.glob("*.mcap"))))
    for arguments, parts in (
        ([str(one), "--out", str(tmp_path / "a")], ("usable actions", "add logs")),
        ([str(sliding), "--out", str(tmp_path / "b"), "--robot", "lab-9"], ("lab-9", "lab-1 (8 logs)")),
        ([str(tmp_path / "nowhere"), "--out", str(tmp_path / "c")], ("no such file",)),
        ([str(sliding), "--out", str(fitted)], ("robot.yaml", "--overwrite")),
    ):
        assert run_command(["fit", *arguments]) != 0
        message = " ".join(capsys.readouterr().err.split())
        assert all(part in message for part in parts), message
    assert not any((tmp_path / name).exists() for name in "abc"), "nothing is written for what is not known"
