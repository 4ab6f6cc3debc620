"""Verdicts of a log: stored beside it, bound to its run, used by the score and named there."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic
import yaml
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming
from synthetic import DOWN, FORWARD, STOP

from robot_runtime.cli.main import run_command
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.metrics.settings import Rules
from robot_runtime.recording.verdict_files import add_verdict, read_objects, read_verdicts, verdicts_path
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.scoring.summary import score_log
from robot_runtime.verdicts import RunIdentity, Verdict, Verdicts

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

        monkeypatch.setattr(Path, "write_text", full)
        with raises_naming(RecordingError, "No space left"):
            add_verdict(path, "Bob", visible=False)
        assert read_verdicts(path, objectnav()) == first
        assert list(path.parent.glob("*.part")) == []

    def test_the_last_verdict_on_each_object_counts(self) -> None:
        moved = {"mug_1": ObjectPose((1.0, 1.0, 0.0))}
        first = (Verdict("a", "t", objects=MUG_AT_HOME | {"bowl": ObjectPose((0.0, 0.0, 0.0))}),)
        verdicts = Verdicts(1, RunIdentity("e", 0, 0, ""), (*first, Verdict("b", "t", objects=moved)))
        assert verdicts.objects == moved | {"bowl": ObjectPose((0.0, 0.0, 0.0))}


class TestObjects:
    def test_poses_as_an_operator_types_them(self, tmp_path: Path) -> None:
        (tmp_path / "p.yaml").write_text("mug_1: {position: [4.6, 2.2, 0.76]}\n")
        assert read_objects(tmp_path / "p.yaml") == MUG_AT_HOME

    @pytest.mark.parametrize("text", ["[]", "mug_1: {position: [1, 2]}", "mug_1: {position: [1, 2, .nan]}", "a: 3"])
    def test_a_malformed_pose_is_refused(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "p.yaml").write_text(text)
        with raises_naming(ConfigError, "p.yaml"):
            read_objects(tmp_path / "p.yaml")

    @given(st.lists(st.floats(-1, 1), min_size=4, max_size=4))
    def test_a_rotation_has_length_one(self, values: list[float]) -> None:
        w, x, y, z = values
        objects = {"mug_1": ObjectPose((0.0, 0.0, 0.0), (w, x, y, z))}
        if abs(math.hypot(w, x, y, z) - 1) < 9e-4:
            assert Verdict("a", "t", objects=objects).objects == objects
        elif abs(math.hypot(w, x, y, z) - 1) > 2e-3:
            with pytest.raises(ValueError, match="of length 1"):
                Verdict("a", "t", objects=objects)


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


def test_the_command_adds_and_the_score_says_so(record, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(objectnav(), NEAR)
    assert run_command(["verdict", str(path), "--by", "Ada", "--not-visible"]) == 0
    assert run_command(["score", str(path), "--json", str(tmp_path / "s.json")]) == 0
    assert "1 of 1 scores use verdicts of Ada" in capsys.readouterr().out
    (episode,) = json.loads((tmp_path / "s.json").read_text())["episodes"]
    assert episode["evidence"][0]["who"] == "Ada"
    assert episode["metrics"]["criterion_visibility"] is False
    assert run_command(["score", str(path), "--ignore-verdicts", "--json", str(tmp_path / "s.json")]) == 0
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
