"""Verdicts of a log: stored beside it, bound to its run, used by the score and named there."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import synthetic
import yaml
from raising import raises_naming
from synthetic import DOWN, FORWARD, STOP

from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.metrics.settings import Rules
from robot_runtime.recording.verdict_files import add_verdict, read_objects, read_verdicts, verdicts_path
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scoring.summary import score_log
from robot_runtime.verdicts import RunIdentity

NEAR = [FORWARD] * 4 + [DOWN, STOP]
MUG_AT_HOME = {"mug_1": ObjectPose((4.6, 2.2, 0.76))}


def objectnav(rule: str = "visible"):
    return synthetic.header(synthetic.objectnav_task(rule))


class TestFile:
    def test_verdicts_are_appended_and_the_log_stays_as_it_is(self, record) -> None:
        path = record(objectnav(), NEAR)
        before = path.read_bytes()
        add_verdict(path, "Ada", visible=True)
        verdicts = add_verdict(path, "Bob", visible=False, note="behind the bottle")
        assert path.read_bytes() == before
        assert [(one.who, one.visible, one.note) for one in verdicts.statements] == [
            ("Ada", True, ""),
            ("Bob", False, "behind the bottle"),
        ]
        assert read_verdicts(path, objectnav()) == verdicts
        assert verdicts.on_visibility == verdicts.statements[1]
        assert all(one.when.endswith(("Z", "+00:00")) for one in verdicts.statements)

    def test_no_file_says_nothing(self, record) -> None:
        verdicts = read_verdicts(record(objectnav(), NEAR), objectnav())
        assert (verdicts.statements, verdicts.on_visibility, verdicts.objects) == ((), None, {})

    def test_a_file_of_another_run_makes_the_log_unscorable(self, record) -> None:
        old, new = record(objectnav(), NEAR), record(replace(objectnav(), seed=4), NEAR)
        add_verdict(old, "Ada", visible=True)
        verdicts_path(old).rename(verdicts_path(new))
        reason = score_log(new).reason
        assert verdicts_path(new).name in reason
        assert "another run" in reason
        assert score_log(old).scorable

    def test_the_format_of_files_is_stable(self, record) -> None:
        path = record(objectnav(), NEAR)
        pose = {"position": [4.6, 2.2, 0.76], "quaternion": [1.0, 0.0, 0.0, 0.0], "openness": None}
        judge = {"low": 0.2, "high": 0.8, "positives": 9, "true_positives": 8, "negatives": 7, "true_negatives": 6}
        said = [
            {"who": "judge a", "when": "t", "visible": True, "judge": judge},
            {"who": "Ada", "when": "t", "objects": {"mug_1": pose}, "note": "n", "judgment": "fail"},
        ]
        run = asdict(RunIdentity.of(objectnav()))
        verdicts_path(path).write_text(yaml.safe_dump({"schema": 1, "run": run, "statements": said}))
        add_verdict(path, "Bob", intervention=True)
        document = yaml.safe_load(verdicts_path(path).read_text())
        assert list(document) == ["schema", "run", "statements"]
        assert document["statements"][:2] == said
        assert document["statements"][2].keys() == {"who", "when", "intervention"}

    @pytest.mark.parametrize(
        ("change", "said"),
        [({"visible": "yes"}, "visible"), ({"who": " "}, "needs the name"), ({"seen": True}, "no such field")],
    )
    def test_a_field_that_is_wrong_is_named_and_the_others_still_score(self, record, change: dict, said: str) -> None:
        path = record(objectnav(), NEAR)
        add_verdict(path, "Ada", visible=True)
        document = yaml.safe_load(verdicts_path(path).read_text())
        document["statements"][0] |= change
        verdicts_path(path).write_text(yaml.safe_dump(document))
        reason = score_log(path).reason
        assert said in reason
        assert verdicts_path(path).name in reason

    def test_a_verdict_needs_a_content_and_a_task_that_has_use_for_it(self, record) -> None:
        path = record(objectnav(), NEAR)
        with raises_naming(ConfigError, path, "visibility", "poses"):
            add_verdict(path, "Ada")
        with raises_naming(ConfigError, "pointnav"):
            add_verdict(record(synthetic.header(), [STOP]), "Ada", visible=True)
        with raises_naming(ConfigError, path, "objects"):
            add_verdict(path, "Ada", objects=MUG_AT_HOME)

    def test_no_room_to_write_leaves_what_was_there(self, record, monkeypatch: pytest.MonkeyPatch) -> None:
        path = record(objectnav(), NEAR)
        first = add_verdict(path, "Ada", visible=True)

        def full(*_: object, **__: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("robot_runtime.recording.verdict_files.os.fsync", full)
        with raises_naming(RecordingError, "No space left"):
            add_verdict(path, "Bob", visible=False)
        assert read_verdicts(path, objectnav()) == first
        assert list(path.parent.glob("*.part")) == []


class TestObjects:
    def test_poses_as_an_operator_types_them(self, tmp_path: Path) -> None:
        (tmp_path / "p.yaml").write_text("mug_1: {position: [4.6, 2.2, 0.76]}\n")
        assert read_objects(tmp_path / "p.yaml") == MUG_AT_HOME

    @pytest.mark.parametrize("text", ["[]", "mug_1: {position: [1, 2]}", "mug_1: {position: [1, 2, .nan]}", "a: 3"])
    def test_a_malformed_pose_is_refused(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "p.yaml").write_text(text)
        with raises_naming(ConfigError, "p.yaml"):
            read_objects(tmp_path / "p.yaml")


class TestScore:
    @pytest.mark.parametrize("rule", ["visible", "distance"])
    @pytest.mark.parametrize("visible", [True, False])
    def test_the_verdict_decides_visibility_and_success(self, record, rule: str, visible: bool) -> None:
        path = record(objectnav(rule), NEAR)
        measured = score_log(path)
        add_verdict(path, "Ada", visible=visible)
        judged = score_log(path)
        assert judged.metrics["criterion_visibility"] is visible
        assert judged.metrics["criterion_proximity"] is True
        assert judged.metrics["success"] is visible
        assert "operator" in judged.choices["criterion_visibility"]
        assert judged.verdicts[0].who == "Ada"
        assert score_log(path, Rules(verdicts="ignore")).metrics == measured.metrics

    def test_seen_from_afar_is_no_success(self, record) -> None:
        path = record(objectnav(), [STOP])
        add_verdict(path, "Ada", visible=True)
        metrics = score_log(path).metrics
        assert (metrics["success"], metrics["criterion_visibility"], metrics["criterion_proximity"]) == (
            False,
            True,
            False,
        )

    def test_seen_without_a_stop_is_no_success(self, record) -> None:
        path = record(objectnav(), NEAR[:-1], synthetic.EpisodeEnd(synthetic.EndReason.MAX_STEPS, 5, 99))
        add_verdict(path, "Ada", visible=True)
        assert score_log(path).metrics["success"] is False


@pytest.mark.parametrize("ignore", ["--ignore-verdicts", "--ignore-evidence"])
def test_the_command_adds_and_the_score_says_so(
    record, tmp_path: Path, capsys: pytest.CaptureFixture[str], ignore: str
) -> None:
    path = record(objectnav(), NEAR)
    assert run_command(["verdict", str(path), "--by", "Ada", "--not-visible"]) == 0
    assert run_command(["score", str(path), "--json", str(tmp_path / "s.json")]) == 0
    assert "1 of 1 scores use verdicts of Ada" in capsys.readouterr().out
    (episode,) = json.loads((tmp_path / "s.json").read_text())["episodes"]
    assert episode["evidence"][0]["who"] == "Ada"
    assert episode["metrics"]["criterion_visibility"] is False
    assert run_command(["score", str(path), ignore, "--json", str(tmp_path / "s.json")]) == 0
    (episode,) = json.loads((tmp_path / "s.json").read_text())["episodes"]
    assert (episode["evidence"], episode["metrics"]["criterion_visibility"]) == ([], True)


@pytest.mark.parametrize(
    ("option", "success", "reason"),
    [
        ("--success", True, ""),
        ("--fail", False, ""),
        ("--intervention", False, ""),
        ("--invalid", None, "invalid, says Ada: the start was wrong"),
    ],
)
@pytest.mark.parametrize("actions", [NEAR, [STOP]])
def test_a_person_judges_an_episode(
    record, actions: list[synthetic.Action], option: str, success: bool | None, reason: str
) -> None:
    path = record(objectnav(), actions)
    measured = score_log(path)
    assert run_command(["verdict", str(path), "--by", "Ada", option, "--note", "the start was wrong"]) == 0
    judged = score_log(path)
    assert (judged.metrics.get("success"), judged.reason) == (success, reason)
    if success is not None:
        assert (judged.metrics["spl"] > 0) is success
        assert "person" in judged.choices["success_by"]
    assert score_log(path, Rules(verdicts="ignore")).metrics == measured.metrics


def test_options_that_contradict_each_other_are_refused(record, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(objectnav(), NEAR)
    assert run_command(["verdict", str(path), "--by", "Ada", "--success", "--intervention"]) == 2
    assert "exclude" in capsys.readouterr().err
    assert run_command(["verdict", str(path), "--by", "Ada", "--intervention"]) == 0
    assert run_command(["verdict", str(path), "--by", "Bob", "--success"]) == 0
    assert score_log(path).metrics["success"] is False, "a later verdict does not undo the help"
