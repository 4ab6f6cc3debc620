"""Episodes of kinds of tasks in the flat of two rooms: recorded, scored live, and shown in a report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import synthetic
from synthetic import STOP

from robot_runtime.actions.discrete import Action
from robot_runtime.metrics.episode_metrics import EpisodeScorer
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.recording.json_output import plain
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import ANSWER, EndReason, EpisodeHeader, StepRecord
from robot_runtime.scoring.report.episode_data import EpisodeData, load_episode_data
from robot_runtime.scoring.report.pages import write_report
from robot_runtime.scoring.report.panels import panels_of
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Success, Task

MISSING = object()
ROUTE = ((1.0, 1.9, 0.0), (2.0, 1.9, 0.0), (3.0, 1.9, 0.0), (4.0, 1.9, 0.0))


def task_of(kind: str, success: Success, **changes: Any) -> Task:
    return synthetic.pointnav_task(name=f"{kind}_test", kind=kind, sensors=("rgb", "depth"), success=success, **changes)


def header_of(kind: str, success: Success, episode: Episode, **changes: Any) -> EpisodeHeader:
    return synthetic.header(task_of(kind, success, **changes), episode)


def driven(
    header: EpisodeHeader, actions: list[Action], answer: object = MISSING
) -> tuple[list[StepRecord], EndReason]:
    records = synthetic.drive(header, actions)
    if answer is not MISSING:
        records[-1] = replace(records[-1], policy_info={ANSWER: answer})
    return records, EndReason.STOP if actions[-1] is STOP else EndReason.MAX_STEPS


def scored(
    header: EpisodeHeader, actions: list[Action], rules: Rules | None = None, answer: object = MISSING
) -> tuple[Metrics, dict[str, Any]]:
    scorer = EpisodeScorer(header, rules)
    records, reason = driven(header, actions, answer)
    for record in records:
        scorer.on_step(record)
    scorer.on_end(synthetic.end_of(records, reason))
    json.dumps(plain(scorer.choices()))
    return scorer.metrics(), scorer.choices()


def recorded(folder: Path, header: EpisodeHeader, actions: list[Action], answer: object = MISSING) -> Path:
    records, reason = driven(header, actions, answer)
    recorder = Recorder(folder)
    synthetic.play(recorder, header, records, synthetic.end_of(records, reason))
    assert recorder.path is not None
    return recorder.path


def page(path: Path, folder: Path) -> str:
    write_report([path], folder / "report.html")
    return " ".join((folder / "report.html").read_text(encoding="utf-8").split())


def shown(path: Path) -> EpisodeData:
    _, data = load_episode_data(path)
    assert data is not None
    return data


def panels(path: Path) -> Any:
    data = shown(path)
    return panels_of(data.header.task.kind)(data)
