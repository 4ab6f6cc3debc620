"""Scores of many logs: groups, intervals, and logs that cannot be scored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.errors import RecordingError
from robot_runtime.records import EndReason, EpisodeEnd
from robot_runtime.scoring.intervals import wilson
from robot_runtime.scoring.scorer import METRICS
from robot_runtime.scoring.summary import find_logs, score_log, score_logs, summarise, write_json

GOOD = [FORWARD] * 12 + [STOP]


class TestScoreLogs:
    def test_what_cannot_be_scored_says_why_and_does_not_stop_the_others(self, record, tmp_path: Path) -> None:
        good = record(synthetic.header(), GOOD)
        torn = record(synthetic.header(), GOOD)
        torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])
        interrupted = record(synthetic.header(), [LEFT], EpisodeEnd(EndReason.INTERRUPTED, 1, 9, "Ctrl-C"))
        fault = record(synthetic.header(), [LEFT], EpisodeEnd(EndReason.FAULT, 1, 9, "base: stale"))
        (tmp_path / "logs" / "empty.mcap").touch()
        seen = []
        scores = score_logs(find_logs([tmp_path / "logs"]), on_scored=seen.append)
        assert [score.scorable for score in scores] == [True, False, False, False, False]
        assert seen == scores
        reasons = {score.path: score.reason for score in scores}
        assert reasons[good] == ""
        assert reasons[torn].startswith("no end record")
        assert reasons[interrupted] == "interrupted: Ctrl-C"
        assert reasons[fault] == "fault: base: stale"
        assert "is not a log" in reasons[tmp_path / "logs" / "empty.mcap"]

    def test_a_log_whose_end_is_recorded_is_scored_even_if_its_footer_is_torn(self, record) -> None:
        path = record(synthetic.header(), GOOD)
        whole = score_log(path)
        path.write_bytes(path.read_bytes()[:-40])
        assert score_log(path).metrics == whole.metrics

    def test_an_episode_outside_its_map_is_not_scored(self, record) -> None:
        header = synthetic.header()
        path = record(replace(header, episode=replace(header.episode, goals=(_far(),))), GOOD)
        assert "no way leads" in score_log(path).reason

    def test_key_and_provenance_go_with_the_score(self, record) -> None:
        header = synthetic.header()
        score = score_log(record(header, GOOD))
        assert score.key == header.episode.key
        assert (score.agent, score.scene, score.seed, score.end) == ("scripted", "two rooms", 3, "stop")
        assert score.provenance["commit"] == "1234567"


class TestSummarise:
    def test_groups_by_task_agent_and_scene(self, record) -> None:
        header = synthetic.header()
        other = synthetic.header(synthetic.objectnav_task())
        paths = [
            record(header, GOOD),
            record(header, [*GOOD[:3], STOP]),
            record(replace(header, agent="other"), GOOD),
            record(other, [FORWARD] * 4 + [STOP]),
            record(other, [LEFT], EpisodeEnd(EndReason.FAULT, 1, 9)),
        ]
        groups = summarise(score_logs(paths))
        assert [(g.task, g.agent, g.episodes, g.unscored) for g in groups] == [
            ("pointnav_test", "scripted", 2, 0),
            ("pointnav_test", "other", 1, 0),
            ("objectnav_visible_test", "scripted", 1, 1),
        ]
        assert tuple(groups[0].intervals) == METRICS
        assert groups[0].intervals["success"] == wilson(1, 2)
        assert groups[0].intervals["spl"].mean == pytest.approx(0.5)
        assert groups[0].intervals["steps"].mean == (13 + 4) / 2

    def test_nothing_scored(self, record) -> None:
        path = record(synthetic.header(), [LEFT], EpisodeEnd(EndReason.FAULT, 1, 9))
        (group,) = summarise(score_logs([path]))
        assert (group.episodes, group.unscored, group.intervals) == (0, 1, {})


class TestOutput:
    def test_json_holds_scores_and_every_choice(self, record, tmp_path: Path) -> None:
        paths = [record(synthetic.header(), GOOD), tmp_path / "broken.mcap"]
        paths[1].touch()
        write_json(tmp_path / "scores.json", score_logs(paths))
        document = json.loads((tmp_path / "scores.json").read_text())
        good, broken = document["episodes"]
        assert good["metrics"]["success"] is True
        assert good["choices"]["sampling"].startswith("referee pose")
        assert good["choices"]["scorer"] == document["scorer"] == 1
        assert (broken["scorable"], good["scorable"]) == (False, True)
        assert document["groups"][0]["intervals"]["spl"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
        assert document["intervals"]["resamples"] == 10_000

    def test_json_that_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(RecordingError, match="cannot be written"):
            write_json(tmp_path / "no" / "scores.json", [])


class TestFindLogs:
    def test_files_and_folders_each_once_in_order(self, tmp_path: Path) -> None:
        names = ["b/1.mcap", "b/0.mcap", "a.mcap", "b/c/9.mcap", "b/x.txt"]
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        found = find_logs([tmp_path / "a.mcap", tmp_path / "b", tmp_path / "b" / "0.mcap"])
        assert [str(p.relative_to(tmp_path)) for p in found] == ["a.mcap", "b/0.mcap", "b/1.mcap", "b/c/9.mcap"]

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(RecordingError, match="no such file or folder"):
            find_logs([tmp_path / "x"])
        with pytest.raises(RecordingError, match="holds no logs"):
            find_logs([tmp_path])


def _far():
    return replace(synthetic.pointnav_episode().goals[0], x_m=-5.0)
