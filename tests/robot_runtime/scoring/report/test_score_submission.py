"""Submissions: the schema of each challenge, field by field, from worked episodes."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from raising import raises_naming
from synthetic import DOWN, FORWARD, LEFT, STOP

from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.scoring.report.submission import habitat_lines, habitat_result, write_habitat
from robot_runtime.scoring.summary import EpisodeScore, score_logs
from robot_runtime.task_kinds.objectnav.format_robothor import AGENT_HEIGHT_M
from robot_runtime.task_kinds.objectnav.report import write_robothor

VAL = "robothor/dataset/val/episodes/FloorPlan_Val1_1.json.gz"


def read(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.fixture
def header():
    """From (3, 1.9), looking along x, to a mug at 1.7 m; the dataset states a shortest path of 0.8 m."""
    episode = synthetic.objectnav_episode(shortest_path_m=0.8, info={"start_y": 0.9})
    return synthetic.header(synthetic.objectnav_task(), episode, dataset=VAL)


class TestRobothor:
    def test_an_episode_pose_by_pose(self, record, header, tmp_path: Path) -> None:
        scores = score_logs([record(header, [FORWARD, DOWN, LEFT, STOP])])
        write_robothor(tmp_path / "metrics.json.gz", scores)
        document = read(tmp_path / "metrics.json.gz")
        assert list(document) == ["val"]
        assert list(document["val"]) == ["episodes", "ep_len", "success", "spl"]
        (episode,) = document["val"]["episodes"].values()
        assert list(document["val"]["episodes"]) == ["m/1"]
        assert list(episode) == ["trajectory", "actions_taken", "success"]
        assert [list(pose) for pose in episode["trajectory"]] == [["x", "y", "z", "rotation", "horizon"]] * 5
        # THOR's x is right of ROS's x axis, its z is ROS's x; left turns count down; looking down is positive.
        rows = [[pose[k] for k in ("x", "y", "z", "rotation", "horizon")] for pose in episode["trajectory"]]
        assert rows == [
            pytest.approx([-1.9, 0.9, 3.0, 0.0, 0.0]),
            pytest.approx([-1.9, 0.9, 3.25, 0.0, 0.0]),
            pytest.approx([-1.9, 0.9, 3.25, 0.0, 30.0]),
            pytest.approx([-1.9, 0.9, 3.25, 330.0, 30.0]),
            pytest.approx([-1.9, 0.9, 3.25, 330.0, 30.0]),
        ]
        assert episode["actions_taken"] == [
            {"action": word, "success": True} for word in ("MoveAhead", "LookDown", "RotateLeft", "Stop")
        ]
        assert "-0.0" not in json.dumps(document)
        assert document["val"]["ep_len"] == 5

    def test_spl_divides_by_the_path_of_the_dataset(self, record, header, tmp_path: Path) -> None:
        good = record(header, [FORWARD] * 4 + [STOP], tilt_rad=math.radians(-20))
        bad = record(replace(header, episode=replace(header.episode, id="m/2")), [LEFT])
        scores = score_logs([good, bad])
        assert [score.metrics["success"] for score in scores] == [True, False]
        write_robothor(tmp_path / "metrics.json.gz", scores)
        val = read(tmp_path / "metrics.json.gz")["val"]
        assert [episode["success"] for episode in val["episodes"].values()] == [True, False]
        assert val["success"] == 0.5
        assert val["spl"] == pytest.approx((0.8 / 1.0) / 2)
        assert val["ep_len"] == (6 + 2) / 2

    def test_a_blocked_action_has_not_succeeded(self, record, header, tmp_path: Path) -> None:
        scores = score_logs([record(header, [FORWARD] * 8 + [STOP])])
        write_robothor(tmp_path / "metrics.json.gz", scores)
        (episode,) = read(tmp_path / "metrics.json.gz")["val"]["episodes"].values()
        assert {"action": "MoveAhead", "success": False} in episode["actions_taken"]

    def test_a_test_split_tells_no_success(self, record, header, tmp_path: Path) -> None:
        scores = score_logs([record(replace(header, dataset="dataset/test/episodes"), [STOP])])
        write_robothor(tmp_path / "metrics.json.gz", scores)
        document = read(tmp_path / "metrics.json.gz")
        assert list(document["test"]) == ["episodes", "ep_len"]
        assert list(document["test"]["episodes"]["m/1"]) == ["trajectory", "actions_taken"]

    def test_logs_without_a_dataset_need_a_split_and_stand_at_the_agents_height(self, record, tmp_path: Path) -> None:
        scores = score_logs([record(synthetic.header(synthetic.objectnav_task()), [STOP])])
        with raises_naming(ConfigError, "split", "--split") as caught:
            write_robothor(tmp_path / "metrics.json.gz", scores)
        assert "--split" in caught.value.remedy
        assert not list(tmp_path.glob("metrics*"))
        write_robothor(tmp_path / "metrics.json.gz", scores, split="val")
        assert read(tmp_path / "metrics.json.gz")["val"]["episodes"]["m/1"]["trajectory"][0]["y"] == AGENT_HEIGHT_M

    def test_the_same_logs_give_the_same_bytes(self, record, header, tmp_path: Path) -> None:
        scores = score_logs([record(header, [STOP])])
        for name in ("a.json.gz", "b.json.gz"):
            write_robothor(tmp_path / name, scores)
        assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()

    def test_two_logs_of_one_episode_are_refused(self, record, header, tmp_path: Path) -> None:
        scores = score_logs([record(header, [STOP]), record(header, [LEFT, STOP])])
        with raises_naming(RecordingError, "m/1", "val"):
            write_robothor(tmp_path / "metrics.json.gz", scores)

    def test_what_fails_half_way_leaves_the_old_file(self, record, header, tmp_path: Path) -> None:
        scores = score_logs([record(header, [STOP])])
        old = tmp_path / "metrics.json.gz"
        old.write_bytes(b"old")
        scores[0].path.write_bytes(b"gone")
        with raises_naming(RecordingError, "log"):
            write_robothor(old, scores)
        assert [file.name for file in tmp_path.glob("metrics*")] == [old.name]
        assert old.read_bytes() == b"old"


class TestHabitat:
    SCORES = tuple(
        EpisodeScore(
            Path(f"{i}"),
            task="t",
            agent="g",
            metrics={
                "success": i > 0,
                "spl": i / 4,
                "soft_spl": 0.5,
                "distance_to_goal": 2.0,
                "collisions": i,
                "steps": 9,
            },
        )
        for i in range(3)
    )

    def test_means_under_habitats_names(self) -> None:
        result = habitat_result(self.SCORES)
        assert result == {
            "distance_to_goal": 2.0,
            "success": pytest.approx(2 / 3),
            "spl": 0.25,
            "soft_spl": 0.5,
            "collisions/count": 1.0,
            "num_steps": 9.0,
        }
        assert habitat_lines(result).splitlines()[:3] == [
            "distance_to_goal: 2.0",
            "success: 0.6666666666666666",
            "spl: 0.25",
        ]

    def test_files(self, tmp_path: Path) -> None:
        write_habitat(tmp_path / "result.txt", self.SCORES)
        write_habitat(tmp_path / "result.json", self.SCORES)
        assert (tmp_path / "result.txt").read_text() == habitat_lines(habitat_result(self.SCORES))
        assert json.loads((tmp_path / "result.json").read_text()) == habitat_result(self.SCORES)
        (tmp_path / "no").touch()
        with raises_naming(RecordingError, tmp_path):
            write_habitat(tmp_path / "no" / "result.json", self.SCORES)

    def test_one_policy_on_one_task(self) -> None:
        with raises_naming(ConfigError, "task", "t, u"):
            habitat_result([self.SCORES[0], replace(self.SCORES[1], task="u")])
        with raises_naming(ConfigError, "agent"):
            habitat_result([self.SCORES[0], replace(self.SCORES[1], agent="h")])
        with raises_naming(RecordingError):
            habitat_result([EpisodeScore(Path("x"), reason="torn")])


class TestCommand:
    def test_robothor(self, record, header, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        good = record(header, [STOP])
        (good.parent / "torn.mcap").touch()
        out = tmp_path / "metrics.json.gz"
        assert run_command(["score", str(good.parent), "--submission", "robothor", "--out", str(out)]) == 0
        shown = capsys.readouterr().out
        assert f"robothor submission of 1 episodes: {out}; 1 logs without a score are not in it" in shown
        assert list(read(out)["val"]["episodes"]) == ["m/1"]

    def test_habitat(self, record, header, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "result.json"
        assert run_command(["score", str(record(header, [STOP])), "--submission", "habitat", "--out", str(out)]) == 0
        assert "\nnum_steps: 1.0\n" in capsys.readouterr().out
        assert json.loads(out.read_text())["success"] == 0.0

    def test_a_submission_of_several_robots_says_so(self, record, header, tmp_path: Path, capsys) -> None:
        logs = [str(record(replace(header, robot=robot), [STOP])) for robot in ("sim", "sim-noisy")]
        out = str(tmp_path / "result.json")
        assert run_command(["score", *logs, "--submission", "habitat", "--out", out]) == 0
        assert "it mixes 2 robots: robot sim; robot sim-noisy" in capsys.readouterr().out

    def test_a_challenge_needs_a_file(self, record, header, capsys: pytest.CaptureFixture[str]) -> None:
        assert run_command(["score", str(record(header, [STOP])), "--submission", "habitat"]) == 2
        assert "--submission and --out go together" in capsys.readouterr().err
