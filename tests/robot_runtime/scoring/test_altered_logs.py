"""Scores of logs that were altered, that contradict themselves, or that are damaged inside."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from rich.console import Console
from synthetic import FORWARD, STOP

from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2
from robot_runtime.recording.writer import Recorder
from robot_runtime.scoring.contradictions import NO_CHAIN
from robot_runtime.scoring.groups import summarize_groups
from robot_runtime.scoring.report.terminal_table import table
from robot_runtime.scoring.summary import EpisodeScore, score_log, score_logs
from robot_runtime.tasks.episode import Goal
from robot_runtime.tasks.task import Success, load_task
from tests.benchmarks.runtime.log_edits import LogEdit

GOOD = [FORWARD] * 12 + [STOP]


@pytest.fixture
def edit(record) -> LogEdit:
    return LogEdit(record(synthetic.header(), GOOD))


def shown(scores: list[EpisodeScore]) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table(scores))
    return capture.get()


def noted(folder: Path, shift_m: Callable[[int], float]) -> str:
    """Notes of twelve steps forward whose referee's poses are shifted along x."""
    header = synthetic.header()
    steps = [
        replace(step, referee=replace(step.referee, pose=replace(pose, x_m=pose.x_m + shift_m(number))))
        for number, step in enumerate(synthetic.drive(header, GOOD))
        for pose in (step.referee.pose,)
    ]
    recorder = Recorder(folder / "logs")
    synthetic.play(recorder, header, steps)
    assert recorder.path is not None
    score = score_log(recorder.path)
    assert score.scorable, score.reason
    assert score.notes == score.impossible
    return "; ".join(score.notes)


def noted_at(folder: Path, driver: str | None, start: SE2, forward: int) -> str:
    """Notes of steps forward from a place, whatever stands there: wheels and referee agree."""
    config = {} if driver is None else {"driver": driver}
    goal = Goal(*start.apply(0.25 * forward if start.yaw_rad == 0 else 0.0, 0.0))
    open_floor = synthetic.header(episode=synthetic.pointnav_episode(start=SE2(1.0, 1.9, 0.0)))
    header = synthetic.header(episode=synthetic.pointnav_episode(goals=(goal,)), robot_config=config)
    shift = start @ SE2(1.0, 1.9, 0.0).inverse()
    steps = [
        replace(
            step,
            referee=replace(step.referee, pose=shift @ step.referee.pose),
            base=replace(step.base, odom=shift @ step.base.odom),
        )
        for step in synthetic.drive(open_floor, [FORWARD] * forward + [STOP])
    ]
    recorder = Recorder(folder / "logs")
    synthetic.play(recorder, header, steps)
    assert recorder.path is not None
    score = score_log(recorder.path)
    assert score.scorable, score.reason
    assert score.notes == score.impossible
    return "; ".join(score.notes)


class TestChain:
    def test_an_altered_step_is_refused_and_the_others_are_scored(self, record, edit: LogEdit, tmp_path: Path) -> None:
        good = record(synthetic.header(seed=1), GOOD)
        edit.change("/step", 5, lambda d: d["result"].update(outcome="reached", contact=["left"]))
        altered, scored = score_logs([edit.write(tmp_path / "altered.mcap"), good])
        assert "step 5" in altered.reason
        assert scored.scorable
        assert scored.notes == ()

    def test_a_log_without_chain_is_scored_with_a_note(self, edit: LogEdit, tmp_path: Path) -> None:
        edit.unchain()
        score = score_log(edit.write(tmp_path / "old.mcap"))
        assert score.scorable
        assert score.notes == (NO_CHAIN,)
        assert NO_CHAIN in shown([score])


class TestContradictions:
    def test_a_forged_last_pose_contradicts_the_wheels(self, tmp_path: Path) -> None:
        header = synthetic.header()
        steps = synthetic.drive(header, [FORWARD] * 4 + [STOP])
        moved = replace(steps[-1].referee, pose=SE2(4.0, 1.9, 0.0))
        steps[-1] = replace(steps[-1], referee=moved)
        recorder = Recorder(tmp_path / "logs")
        synthetic.play(recorder, header, steps)
        assert recorder.path is not None
        score = score_log(recorder.path)
        (note,) = score.notes
        assert "at step 5 the referee's pose moved 2.00 m, the wheels 0.00 m" in note

    @pytest.mark.parametrize("bend_m", [0.04, 0.1, 0.4])
    def test_poses_bent_along_the_path_contradict_the_wheels(self, tmp_path: Path, bend_m: float) -> None:
        note = noted(tmp_path, lambda number: bend_m * number)
        assert "more than odometry drifts" in note
        assert "from step 0" in note

    @pytest.mark.parametrize("scale", [-0.05, 0.02, 0.05])
    def test_odometry_that_drifts_has_no_note(self, tmp_path: Path, scale: float) -> None:
        assert noted(tmp_path, lambda number: scale * 0.25 * number) == ""

    def test_noise_of_a_localizer_has_no_note(self, tmp_path: Path) -> None:
        assert noted(tmp_path, lambda number: 0.08 * (-1) ** number) == ""

    @pytest.mark.parametrize("driver", ["sim_bridge.robot.driver.make_robot", "drivers.fake.driver.make_robot", None])
    def test_a_path_through_a_wall_is_shorter_than_any_way_around(self, tmp_path: Path, driver: str | None) -> None:
        note = noted_at(tmp_path, driver, SE2(2.5, 0.3, 0.0), 4)
        if driver is None or driver.startswith("drivers.fake"):  # robots without physics, or of which nothing is known
            assert note == ""
        else:
            assert "path of 1.00 m and the" in note
            assert "shorter than any way around" in note

    @pytest.mark.parametrize(("y_m", "deep"), [(3.3, True), (2.85, False)])
    def test_poses_deep_in_a_wall_are_said(self, tmp_path: Path, y_m: float, deep: bool) -> None:
        note = noted_at(tmp_path, "sim_bridge.robot.driver.make_robot", SE2(1.25, y_m, math.pi), 3)
        assert ("2 of the referee's poses lie up to 0.38 m deep" in note) is deep
        assert bool(note) is deep

    def test_a_way_through_a_door_or_close_to_a_corner_has_no_note(self, tmp_path: Path) -> None:
        for number, y_m in enumerate((1.9, 1.35, 1.3)):  # the last two: a localizer that is 20 cm off
            assert noted_at(tmp_path / f"{number}", "sim_bridge.robot.driver.make_robot", SE2(2.5, y_m, 0.0), 4) == ""

    def test_robots_that_drive_as_they_say_have_no_note(self, record) -> None:
        assert score_log(record(synthetic.header(), GOOD)).notes == ()

    def test_a_task_with_other_settings_than_its_preset(self, record, edit: LogEdit, tmp_path: Path) -> None:
        preset = load_task("pointnav_gps_compass")
        task = synthetic.pointnav_task(
            name=preset.name,
            success=Success("distance", 100.0),
            magnitudes=preset.magnitudes,
            max_steps=preset.max_steps,
        )
        task = replace(task, robot_radius_m=preset.robot_radius_m, max_seconds=preset.max_seconds)
        (note,) = score_log(record(synthetic.header(task), GOOD)).notes
        assert "pointnav_gps_compass" in note
        assert f"success.distance_m 100.0, not {preset.success.distance_m}" in note
        assert "max_steps" not in note

    def test_other_settings_in_one_row_are_said(self, record) -> None:
        lenient = synthetic.pointnav_task(success=Success("distance", 100.0))
        scores = score_logs([record(synthetic.header(task), GOOD) for task in (synthetic.pointnav_task(), lenient)])
        (group,) = summarize_groups(scores)
        assert group.mixed == ("success.distance_m: 0.36 (1), 100.0 (1)",)
        assert "mixes logs with other settings: success.distance_m: 0.36 (1), 100.0 (1)" in shown(scores)

    def test_another_map_under_the_same_name_is_said(self, record) -> None:
        header = synthetic.header()
        other = replace(header, scene=replace(header.scene, digest="1" * 64))
        (group,) = summarize_groups(score_logs([record(header, GOOD), record(other, GOOD)]))
        assert len(group.mixed) == 1
        assert "two rooms" in group.mixed[0]


def set_path(*keys: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        inner: Any = data
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return change


DAMAGE: dict[str, Callable[[LogEdit], object]] = {
    "header is a list": lambda e: e.put(e.numbers("/episode")[0], b"[]"),
    "header is no JSON": lambda e: e.put(e.numbers("/episode")[0], b"\xff{"),
    "header without format": lambda e: e.change("/episode", 0, lambda d: d.pop("format")),
    "format is a list": lambda e: e.change("/episode", 0, set_path("format", value=[1])),
    "mount of two numbers": lambda e: e.change("/episode", 0, set_path("mount", value=[0, 0])),
    "agent is a number": lambda e: e.change("/episode", 0, set_path("agent", value=7)),
    "scene is null": lambda e: e.change("/episode", 0, set_path("scene", value=None)),
    "localizers is a list": lambda e: e.change("/episode", 0, set_path("localizers", value=[1])),
    "map without resolution": lambda e: e.attachments.update({"map.yaml": b'{"image": "map.pgm"}'}),
    "map is no image": lambda e: e.attachments.update({"map.pgm": b"P5 nonsense"}),
    "host time is text": lambda e: e.change("/step/host", 3, set_path("phase_s", value={"act": "soon"})),
    "host time is infinite": lambda e: e.change("/step/host", 3, set_path("phase_s", value={"act": "Infinity"})),
    "host times are missing": lambda e: e.change("/step/host", 3, lambda d: d.pop("phase_s")),
    "step is text": lambda e: e.put(e.numbers("/step")[3], b'"step"'),
    "huge index": lambda e: e.change("/step", 3, set_path("index", value=10**30)),
    "step without pose": lambda e: e.change("/step", 3, lambda d: d.pop("pose")),
    "odd covariance": lambda e: e.change("/step", 3, set_path("referee", "covariance", value=[[1, 2], [3]])),
    "unknown type of array": lambda e: e.change("/step", 3, set_path("observation", "gps", "dtype", value="O")),
    "end of a list": lambda e: e.put(e.numbers("/end")[0], b"[1]"),
    "unknown reason": lambda e: e.change("/end", 0, set_path("reason", value="bored")),
}


@pytest.mark.parametrize("chained", [True, False])
@pytest.mark.parametrize("name", DAMAGE)
def test_a_log_that_is_damaged_inside_costs_only_itself(
    record, edit: LogEdit, tmp_path: Path, name: str, chained: bool
) -> None:
    good = record(synthetic.header(seed=1), GOOD)
    DAMAGE[name](edit)
    if not chained:
        edit.unchain()
    damaged, scored = score_logs([edit.write(tmp_path / "damaged.mcap"), good])
    assert damaged.reason
    assert "cannot be scored" not in damaged.reason, "a typed error of the log, not a surprise"
    assert scored.scorable


@pytest.mark.slow
@pytest.mark.parametrize("command", ["score", "report", "compare", "gap"])
def test_commands_go_on_after_a_damaged_log(record, edit: LogEdit, tmp_path: Path, command: str, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    logs = record(synthetic.header(seed=1), GOOD).parent
    edit.change("/episode", 0, set_path("mount", value="high"))
    edit.write(logs / "damaged.mcap")
    arguments = {"score": [logs], "report": [logs, "--out", "r.html"], "compare": [logs, logs], "gap": [logs, logs]}
    assert run_command([command, *map(str, arguments[command])]) == 0


def test_another_map_under_the_same_digest_does_not_change_other_scores(record, edit: LogEdit, tmp_path: Path) -> None:
    good = record(synthetic.header(), GOOD)
    alone = score_log(good).metrics
    edit.attachments["map.pgm"] = edit.attachments["map.pgm"].replace(b"\xfe", b"\x00")
    edit.unchain()
    spoilt = edit.write(tmp_path / "spoilt.mcap")
    assert score_logs([spoilt, good])[1].metrics == alone
    assert not math.isnan(float(alone["spl"] or 0))
