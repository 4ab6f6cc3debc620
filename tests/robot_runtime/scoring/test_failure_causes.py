"""Causes of failures that were planted in logs, and where they are shown."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from robot_runtime.metrics.settings import Rules
from robot_runtime.recording.verdict_files import add_verdict
from robot_runtime.scoring.report.export import write_json, write_parquet
from robot_runtime.scoring.report.terminal_table import table
from robot_runtime.scoring.summary import EpisodeScore, Maps, score_log
from tests.benchmarks.runtime.log_edits import LogEdit
from tests.benchmarks.runtime.planted_failures import Planted, plant

COUNT = 20
"""Each cause in PointNav and in ObjectNav."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> list[Planted]:
    return list(plant(tmp_path_factory.mktemp("planted"), COUNT, seed=11))


@pytest.fixture(scope="module")
def scores(planted: list[Planted]) -> list[EpisodeScore]:
    maps = Maps()
    return [score_log(one.path, maps=maps) for one in planted]


def test_finds_the_planted_causes(planted: list[Planted], scores: list[EpisodeScore]) -> None:
    causes = [score.cause for score in scores if score.cause is not None]
    assert [cause.name for cause in causes] == [one.cause for one in planted]
    assert all(cause.evidence and cause.step is not None for cause in causes)


def test_an_aborted_episode_has_a_cause_without_a_score(scores: list[EpisodeScore]) -> None:
    aborted = [score for score in scores if not score.scorable]
    assert {score.cause.name for score in aborted if score.cause is not None} >= {"operator", "policy_fault", "unknown"}


@pytest.mark.parametrize(("driven", "cause"), [("contact_loop", "contact_loop"), ("timeout", "too_many_contacts")])
def test_a_limit_of_contacts_is_no_fault_of_the_policys_program(
    planted: list[Planted], tmp_path: Path, driven: str, cause: str
) -> None:
    log = LogEdit(next(one.path for one in planted if one.cause == driven))
    ended = {"reason": "fault", "detail": "contact limit: contact 10, at 10 the plan ends a run", "of_policy": True}
    log.change("/end", 0, lambda end: end.update(ended))
    log.chain_again()
    log.write(tmp_path / "limited.mcap")
    found = score_log(tmp_path / "limited.mcap", Rules(policy_faults="failure"))
    assert found.cause is not None
    assert found.cause.name == cause
    assert "contact" in found.cause.evidence


def test_help_by_a_person_is_the_cause_unless_verdicts_are_ignored(planted: list[Planted]) -> None:
    path = planted[0].path
    add_verdict(path, "Ann", intervention=True)
    try:
        helped, alone = score_log(path), score_log(path, Rules(verdicts="ignore"))
    finally:
        path.with_suffix(".evidence.yaml").unlink()
    assert helped.cause is not None
    assert (helped.cause.name, helped.cause.evidence) == ("operator", "Ann helped the robot")
    assert alone.cause is not None
    assert alone.cause.name == "stopped_too_early"


def test_the_table_counts_causes_with_an_example(scores: list[EpisodeScore]) -> None:
    out = StringIO()
    Console(file=out, width=120).print(table(scores))
    assert "why it failed" in out.getvalue()
    assert "contact loop" in out.getvalue()


def test_exports_have_cause_and_evidence(scores: list[EpisodeScore], planted: list[Planted], tmp_path: Path) -> None:
    write_json(tmp_path / "scores.json", scores)
    episodes = json.loads((tmp_path / "scores.json").read_text())["episodes"]
    assert [episode["cause"]["name"] for episode in episodes] == [one.cause for one in planted]
    pyarrow = pytest.importorskip("pyarrow.parquet")
    write_parquet(tmp_path / "scores.parquet", scores)
    rows = pyarrow.read_table(tmp_path / "scores.parquet").to_pylist()
    assert [row["cause"] for row in rows] == [one.cause for one in planted]
    assert all(row["cause_evidence"] for row in rows)
