"""Panels of kinds of tasks from packages outside, and their defaults."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import outside_packages
import pytest
import synthetic
from kind_episodes import page, panels
from synthetic import FORWARD, STOP

from robot_runtime.scoring.report.panels import PANELS, ReportPanels, outcome, panels_of, submission_formats
from robot_runtime.scoring.summary import EpisodeScore

GATES = """
from markupsafe import Markup
from robot_runtime.scoring.report.panels import ReportPanels
from robot_runtime.scoring.report.submission import SubmissionFormat
class GatePanels(ReportPanels):
    submissions = {"gates": SubmissionFormat("gates.txt", print)}
    @classmethod
    def failure(cls, score):
        return "missed the gate"
    def subject(self):
        return "red gate"
    def statements(self):
        return Markup("<p>Drive through the gate.</p>")
    def tables(self):
        return Markup("<table class='gates'></table>")
"""


def test_plain_navigation_has_the_defaults(record, tmp_path: Path) -> None:
    path = record(synthetic.header(), [FORWARD, STOP])
    assert type(panels(path)) is ReportPanels
    text = page(path, tmp_path)
    assert "shortest path</span>" in text
    assert text.count('class="goal"') == 1


def test_submissions_are_those_of_all_kinds() -> None:
    assert set(submission_formats()) >= {"habitat", "robothor"}


def test_a_kind_from_outside(record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offers = {"pointnav": "gate_panels_of_tests:GatePanels", "lostnav": "gate_panels_of_tests:Lost"}
    outside_packages.install(tmp_path / "site", "gate_panels_of_tests", {PANELS.group: offers}, GATES)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    try:
        missed: dict[str, Any] = {"success": False}
        assert outcome(EpisodeScore(Path("x"), kind="pointnav", metrics=missed)) == ("lost", "failed: missed the gate")
        assert panels_of("pointnav").submissions["gates"].suffix == "gates.txt"
        assert "gates" in submission_formats()
        text = page(record(synthetic.header(), [FORWARD, STOP]), tmp_path)
        for shown in ("<p>Drive through the gate.</p>", "<table class='gates'></table>", "<span>red gate</span>"):
            assert shown in text
    finally:
        sys.modules.pop("gate_panels_of_tests", None)
