"""Strict and lenient success, and agreement of judges, from verdicts to the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import synthetic
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.recording.verdict_files import add_verdict
from robot_runtime.recording.writer import Recorder
from robot_runtime.scoring.report.export import write_json
from robot_runtime.scoring.report.terminal_table import verdict_lines
from robot_runtime.scoring.statistics.agreement import agreements
from robot_runtime.scoring.summary import score_log
from robot_runtime.verdicts import EpisodeVerdict, SuccessViews, Verdict, success_by_person, success_views


def said(who: str, judgment: EpisodeVerdict | None = None, helped: bool | None = None) -> Verdict:
    return Verdict(who, "2026-11-23T10:00:00Z", judgment=judgment, intervention=helped)


@pytest.mark.parametrize(
    ("verdicts", "by_metrics", "strict", "lenient"),
    [
        ([], True, True, True),
        ([said("Ada", helped=True)], True, False, True),
        ([said("Ada", helped=True), said("Bob", helped=False)], True, True, True),
        ([said("Ada", "success"), said("Bob", "fail")], False, False, True),
        ([said("Ada", "fail"), said("Ada", "success")], False, True, True),
        ([said("Ada", "fail"), said("Bob", "fail")], True, False, False),
        ([said("Ada", "success", helped=True)], False, False, True),
        ([said("Ada", "fail"), said("Ada", "invalid")], True, True, True),
    ],
)
def test_views(verdicts: list[Verdict], by_metrics: bool, strict: bool, lenient: bool) -> None:
    assert success_views(verdicts, by_metrics) == SuccessViews(strict, lenient)


def test_agreement_counts_the_last_verdict_of_each_and_each_pair_of_people() -> None:
    both = [said("Ada", "fail"), said("Bob", "success"), said("Ada", "success")]
    assert success_by_person(both) == {"Ada": True, "Bob": True}
    episodes = [both, [said("Bob", "fail"), said("Ada", "success")], [said("Ada", "fail")], []]
    found = agreements(map(success_by_person, episodes))
    assert found.keys() == {("Ada", "Bob")}
    assert (found["Ada", "Bob"].episodes, found["Ada", "Bob"].disagreements) == (2, 1)


def test_the_table_states_both_results_and_kappa(tmp_path: Path) -> None:
    recorder, paths = Recorder(tmp_path), []
    for actions in ([FORWARD] * 12 + [STOP], [LEFT, STOP], [FORWARD] * 12 + [STOP]):
        header = synthetic.header()
        synthetic.play(recorder, header, synthetic.drive(header, actions))
        assert recorder.path is not None
        paths.append(recorder.path)
    add_verdict(paths[0], "Ada", intervention=True)
    for path, first, second in ((paths[1], "fail", "success"), (paths[2], "success", "success")):
        add_verdict(path, "Ada", judgment=first)  # type: ignore[arg-type]
        add_verdict(path, "Bob", judgment=second)  # type: ignore[arg-type]
    scores = [score_log(path) for path in paths]
    assert [score.views for score in scores] == [
        SuccessViews(False, True),
        SuccessViews(False, True),
        SuccessViews(True, True),
    ]
    views, kappa = verdict_lines(scores)
    assert "success strict 33.3 %" in views
    assert "lenient 100.0 %" in views
    assert "2 episodes judged by Ada and Bob: they disagree on 1, Cohen's κ 0.00" in kappa
    write_json(tmp_path / "scores.json", scores)
    written = json.loads((tmp_path / "scores.json").read_text())
    assert (written["judges"][0]["names"], written["judges"][0]["disagreements"]) == (["Ada", "Bob"], 1)
    assert written["episodes"][0]["views"] == {"strict": False, "lenient": True}
