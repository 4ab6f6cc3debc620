"""A judge of visibility with known errors: calibrated, applied to logs, named and corrected for by the score."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import synthetic
import yaml
from detector_files import boxes
from raising import raises_naming
from synthetic import DOWN, FORWARD, STOP

from robot_runtime.cli.main import run_command
from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.policies.detector import Detector
from robot_runtime.recording.verdict_files import add_verdict
from robot_runtime.task_kinds.objectnav.visibility_judge import Facts, JudgeFile, fit_judge
from robot_runtime.verdicts import Judge

NEAR = [FORWARD] * 4 + [DOWN, STOP]
KNOWN = Judge(0.3, 0.7, 60, 57, 60, 57)


def test_two_weak_facts_make_a_judge_that_agrees_where_it_decides() -> None:
    random, truth = np.random.default_rng(0), np.arange(400) % 2 == 0
    facts = [
        Facts(float(np.clip(random.normal(0.7 if yes else 0.3, 0.3), 0, 1)), int(random.poisson(300 if yes else 3)))
        for yes in truth
    ]
    made = fit_judge(facts, list(truth), "digest")
    verdicts = [made.judge.verdict(made.score(one)) for one in facts]
    right = [verdict == yes for verdict, yes in zip(verdicts, truth, strict=True) if verdict is not None]
    assert len(right) >= 0.9 * len(truth)
    assert np.mean(right) >= 0.98
    assert made.judge.positives <= 100  # errors are counted on the half that nothing was fitted to


def test_few_frames_calibrate_no_judge() -> None:
    with raises_naming(ConfigError, "1 of 3 frames"):
        fit_judge([Facts(0.1, 0)] * 3, [True, False, False], "digest")


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    return boxes(tmp_path, [([0, 0, 8, 8], 0.8, 1)], labels=["", "Mug"])


def judge_file(folder: Path, detector: Path) -> Path:
    path, digest = folder / "known.yaml", Detector(detector).digest
    path.write_text(yaml.safe_dump(config.unparse(JudgeFile(digest, (0.0, 0.0, 1.0), KNOWN))))
    return path


def test_scores_say_who_judged_and_are_corrected(
    record, detector: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = [str(record(synthetic.header(synthetic.objectnav_task("visible")), actions)) for actions in (NEAR, [STOP])]
    by = judge_file(tmp_path, detector)
    assert run_command(["verdict", "judge", *logs, "--detector", str(detector), "--judge", str(by)]) == 0
    assert "visible in 2, not in 0, left open 0" in capsys.readouterr().out
    assert run_command(["score", *logs, "--json", str(tmp_path / "s.json")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "visibility judged by judge known: 1 stops decided" in said
    assert "success corrected for these errors" in said
    content = json.loads((tmp_path / "s.json").read_text())
    (judged,) = content["groups"][0]["judged"]
    assert (judged["judged"], judged["failed"], judged["abstained"]) == (1, 1, 0)
    assert judged["success"]["low"] < judged["success"]["mean"] < judged["success"]["high"]
    assert [one["metrics"]["success"] for one in content["episodes"]] == [True, False]


def test_a_person_overrules_a_judge(record, detector: Path, tmp_path: Path) -> None:
    log = record(synthetic.header(synthetic.objectnav_task("visible")), NEAR)
    add_verdict(log, "Ada", visible=False)
    by = judge_file(tmp_path, detector)
    assert run_command(["verdict", "judge", str(log), "--detector", str(detector), "--judge", str(by)]) == 0
    assert run_command(["score", str(log), "--json", str(tmp_path / "s.json")]) == 0
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["groups"][0]["judged"] == []
    assert content["episodes"][0]["metrics"]["success"] is False


def test_another_detector_is_refused(
    record, detector: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, by = record(synthetic.header(synthetic.objectnav_task("visible")), NEAR), judge_file(tmp_path, detector)
    detector.write_text(detector.read_text() + "min_score: 0.7\n")
    assert run_command(["verdict", "judge", str(log), "--detector", str(detector), "--judge", str(by)]) != 0
    assert "another detector" in capsys.readouterr().err


def test_a_judge_is_calibrated_or_judges(
    record, detector: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["verdict", "judge", str(record(synthetic.header(synthetic.objectnav_task("visible")), NEAR))]
    arguments += ["--detector", str(detector)]
    both = ["--judge", str(judge_file(tmp_path, detector)), "--out", str(tmp_path / "made.yaml")]
    for given in ([], both):
        assert run_command([*arguments, *given]) == ConfigError.exit_code
        assert "one of --judge and --out" in capsys.readouterr().err
