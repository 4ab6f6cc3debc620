"""Scores of many logs: groups, intervals, and logs that cannot be scored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
from raising import raises_naming
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.metrics.measures import COMMON
from robot_runtime.metrics.settings import Rules
from robot_runtime.parallel.map import Workers
from robot_runtime.recording.log_files import find_logs
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EndReason, EpisodeEnd, EpisodeHeader, StepRecord
from robot_runtime.scoring.groups import summarize_groups
from robot_runtime.scoring.statistics.intervals import wilson
from robot_runtime.scoring.summary import EpisodeScore, score_log, score_logs

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

    def test_an_episode_that_the_policy_broke_has_failed_if_the_rules_say_so(self, record) -> None:
        raised = record(synthetic.header(), GOOD[:-1], EpisodeEnd(EndReason.FAULT, 12, 99, "raised", of_policy=True))
        cliff = record(synthetic.header(), [LEFT], EpisodeEnd(EndReason.INTERRUPTED, 1, 9, "cliff", of_policy=True))
        base = record(synthetic.header(), [LEFT], EpisodeEnd(EndReason.FAULT, 1, 9, "base: stale"))
        paths = [raised, cliff, base]
        assert [score.scorable for score in score_logs(paths)] == [False, False, False]
        counted = score_logs(paths, Rules(policy_faults="failure"))
        assert [score.scorable for score in counted] == [True, True, False]
        assert [score.metrics["success"] for score in counted[:2]] == [False, False]
        assert counted[0].metrics["spl"] == 0.0
        assert counted[0].choices["policy_faults"] == "failure"

    def test_a_log_whose_end_is_recorded_is_scored_even_if_its_footer_is_torn(self, record) -> None:
        path = record(synthetic.header(), GOOD)
        whole = score_log(path)
        path.write_bytes(path.read_bytes()[:-40])
        assert score_log(path).metrics == whole.metrics

    def test_an_episode_outside_its_map_is_not_scored(self, record) -> None:
        header = synthetic.header()
        path = record(replace(header, episode=replace(header.episode, goals=(_far(),))), GOOD)
        assert "no way leads" in score_log(path).reason

    def test_a_pose_that_is_not_finite_names_its_step(self, tmp_path: Path) -> None:
        header = synthetic.header()
        steps = synthetic.drive(header, GOOD)
        lost = replace(steps[4].referee, pose=SE2(math.nan, 1.9, 0.0))
        steps[4] = replace(steps[4], referee=lost)
        score = score_log(_play(tmp_path, header, steps))
        assert "step 4: the referee's pose (nan, 1.9, 0.0) is not finite" in score.reason
        assert (score.episode, score.metrics) == ("7", {})

    def test_an_unknown_category_is_named(self, tmp_path: Path) -> None:
        header = synthetic.header(synthetic.objectnav_task())
        unknown = replace(header, episode=replace(header.episode, category="Unicorn", goals=()))
        score = score_log(_play(tmp_path, unknown, synthetic.drive(header, [STOP])))
        assert score.reason == "episode 'm/1': category 'Unicorn' is not in task 'objectnav_visible_test'"

    def test_the_same_log_named_twice_is_scored_once(self, record, monkeypatch: pytest.MonkeyPatch) -> None:
        path = record(synthetic.header(), GOOD)
        monkeypatch.chdir(path.parent)
        assert find_logs([path, Path(path.name), Path(".")]) == [path]

    @pytest.mark.slow
    def test_any_number_of_processes_gives_the_same_scores(self, record) -> None:
        recorded = [record(synthetic.header(seed=seed), [FORWARD] * seed + [STOP]) for seed in range(3)]
        paths = [recorded[0].with_name(f"copy{i:03d}.mcap") for i in range(200)]
        for i, path in enumerate(paths):
            path.write_bytes(recorded[i % 3].read_bytes() if i % 50 != 7 else b"no log")
        seen: list[EpisodeScore] = []
        scores = score_logs(paths, on_scored=seen.append, workers=Workers(2))
        assert scores == seen == score_logs(paths)
        assert [score.path for score in scores] == paths
        assert [score.path for score in scores if not score.scorable] == paths[7::50]
        assert len({id(score.choices) for score in scores if score.scorable}) == 1, "held once"

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
        groups = summarize_groups(score_logs(paths))
        assert [(g.task, g.agent, g.episodes, g.unscored) for g in groups] == [
            ("pointnav_test", "scripted", 2, 0),
            ("pointnav_test", "other", 1, 0),
            ("objectnav_visible_test", "scripted", 1, 1),
        ]
        assert tuple(groups[0].intervals) == tuple(metric.name for metric in COMMON)
        assert groups[0].intervals["success"] == wilson(1, 2)
        assert groups[0].intervals["spl"].mean == pytest.approx(0.5)
        assert groups[0].intervals["steps"].mean == (13 + 4) / 2

    def test_robots_referees_and_localizers_are_never_averaged(self, record) -> None:
        header = synthetic.header()
        sources = {"policy": ("odometry", "beacons"), "referee": ("truth",)}
        variants = [
            {"robot": "sim"},
            {"robot": "sim-noisy"},
            {"robot": "sim", "localizers": sources},
            {"robot": "sim", "localizers": {**sources, "referee": ("mocap",)}},
            {"robot": "sim-noisy"},
        ]
        groups = summarize_groups(score_logs([record(replace(header, **changes), GOOD) for changes in variants]))
        assert [(g.robot, g.localizer, g.referee, g.episodes) for g in groups] == [
            ("sim", "", "", 1),
            ("sim-noisy", "", "", 2),
            ("sim", "odometry and beacons", "truth", 1),
            ("sim", "odometry and beacons", "mocap", 1),
        ]

    def test_a_split_is_one_group_over_its_scenes_and_a_scene_without_split_is_its_own(self) -> None:
        metrics = {**{metric.name: 1.0 for metric in COMMON}, "success": True}
        made = [("val.json.gz", "a"), ("val.json.gz", "b"), ("", "a"), ("", "b"), ("train.json.gz", "a")]
        scores = [
            EpisodeScore(Path("x"), task="t", agent="g", scene=scene, dataset=dataset, metrics=metrics)
            for dataset, scene in made
        ]
        groups = [(g.split, g.scene, g.episodes) for g in summarize_groups(scores)]
        assert groups == [("val", "2 scenes", 2), ("", "a", 1), ("", "b", 1), ("train", "a", 1)]

    def test_a_metric_that_an_episode_lacks_is_not_counted_as_zero(self) -> None:
        made = [{"success": True, "spl": 0.5}, {"success": True, "spl": None}]
        (group,) = summarize_groups([EpisodeScore(Path("x"), task="t", metrics=metrics) for metrics in made])
        assert group.intervals["spl"].mean == 0.5
        assert (group.counts["spl"], group.counts["success"], group.episodes) == (1, 2, 2)
        assert "soft_spl" not in group.intervals

    def test_nothing_scored(self, record) -> None:
        path = record(synthetic.header(), [LEFT], EpisodeEnd(EndReason.FAULT, 1, 9))
        (group,) = summarize_groups(score_logs([path]))
        assert (group.episodes, group.unscored, group.intervals) == (0, 1, {})


class TestFindLogs:
    def test_files_and_folders_each_once_in_order(self, tmp_path: Path) -> None:
        names = ["b/1.mcap", "b/0.mcap", "a.mcap", "b/c/9.mcap", "b/x.txt"]
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        found = find_logs([tmp_path / "a.mcap", tmp_path / "b", tmp_path / "b" / "0.mcap"])
        assert [str(p.relative_to(tmp_path)) for p in found] == ["a.mcap", "b/0.mcap", "b/1.mcap", "b/c/9.mcap"]

    def test_nothing_there(self, tmp_path: Path) -> None:
        with raises_naming(RecordingError, tmp_path):
            find_logs([tmp_path / "x"])
        with raises_naming(RecordingError, "*.mcap"):
            find_logs([tmp_path])


def _play(folder: Path, header: EpisodeHeader, steps: Sequence[StepRecord]) -> Path:
    recorder = Recorder(folder / "played")
    synthetic.play(recorder, header, steps)
    assert recorder.path is not None
    return recorder.path


def _far():
    return replace(synthetic.pointnav_episode().goals[0], x_m=-5.0)
