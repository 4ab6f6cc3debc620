"""Strict and lenient success, and agreement of judges, from verdicts to the table."""

from __future__ import annotations

import json
from pathlib import Path

import synthetic
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.recording.verdict_files import add_verdict
from robot_runtime.recording.writer import Recorder
from robot_runtime.scoring.report.export import write_json
from robot_runtime.scoring.report.terminal_table import verdict_lines
from robot_runtime.scoring.summary import score_log
from robot_runtime.verdicts import SuccessViews


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
