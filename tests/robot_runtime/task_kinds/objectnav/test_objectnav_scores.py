"""Measures of ObjectNav, computed by hand, and their panels in a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from kind_episodes import page, panels, scored, shown
from synthetic import FORWARD, LEFT, STOP

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.metrics.settings import Metrics
from robot_runtime.recording.verdict_files import add_verdict
from robot_runtime.records import EndReason, EpisodeEnd
from robot_runtime.scenes.scene import SceneObject
from robot_runtime.scoring.report.panels import outcome


def criteria(metrics: Metrics) -> tuple[Any, ...]:
    names = ("intentionality", "validity", "proximity", "visibility")
    return tuple(metrics[f"criterion_{name}"] for name in names)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        pytest.param([FORWARD] * 4 + [STOP], (True, True, True, True), id="success"),
        pytest.param([FORWARD] * 4, (False, True, True, None), id="no stop: nothing was framed on purpose"),
        pytest.param([FORWARD, STOP], (True, True, False, True), id="seen from afar"),
        pytest.param([FORWARD] * 4 + [LEFT] * 6 + [STOP], (True, True, True, False), id="turned away"),
    ],
)
def test_each_criterion_by_pixels(actions: list[Action], expected: tuple[Any, ...]) -> None:
    metrics, _ = scored(synthetic.header(synthetic.objectnav_task(width=160, height=120)), actions)
    assert criteria(metrics) == expected
    assert metrics["success"] is all(expected)


@pytest.mark.parametrize(
    ("start", "actions", "expected"),
    [
        pytest.param(SE2(4.0, 2.2, 1.0), [STOP], (True, True, True, True), id="at a view point, looking elsewhere"),
        pytest.param(SE2(4.0, 2.2, 1.0), [LEFT], (False, True, True, True), id="no stop"),
        pytest.param(SE2(3.75, 2.2, 0.0), [STOP], (True, True, True, False), id="near, but at no view point"),
        pytest.param(SE2(1.0, 1.9, 0.0), [STOP], (True, True, False, False), id="far"),
    ],
)
def test_each_criterion_by_oracle_visibility(start: SE2, actions: list[Action], expected: tuple[Any, ...]) -> None:
    header = synthetic.header(synthetic.objectnav_task("distance"), synthetic.objectnav_episode(start=start))
    metrics, choices = scored(header, actions)
    assert criteria(metrics) == expected
    assert metrics["success"] is all(expected)
    assert choices["criterion_visibility"].startswith("oracle")
    assert choices["criterion_proximity"]["distance_m"] == 1.0


@pytest.mark.parametrize("success", ["distance", "visible"])
@pytest.mark.parametrize("actions", [[FORWARD] * n + [STOP] for n in range(7)] + [[FORWARD] * 4])
def test_success_is_that_all_four_criteria_are_met(success: str, actions: list[Action]) -> None:
    episode = synthetic.objectnav_episode(start=SE2(3.0, 2.2, 0.0))
    metrics, _ = scored(synthetic.header(synthetic.objectnav_task(success, width=160, height=120), episode), actions)
    assert metrics["success"] is all(criteria(metrics))


def test_at_a_view_point_that_is_farther_than_a_meter_the_object_is_near() -> None:
    """View points reach to 1.0 m from the box, and success begins 0.1 m before them."""
    episode = synthetic.objectnav_episode(start=SE2(4.0, 2.2, 1.0))
    header = synthetic.header(synthetic.objectnav_task("distance"), episode)
    mug = replace(synthetic.MUG, center=(5.08, 2.2, 0.76))  # 1.02 m from the view point at (4.0, 2.2)
    file = replace(header.scene.file, objects=(mug,))
    metrics, choices = scored(replace(header, scene=replace(header.scene, file=file)), [STOP])
    assert criteria(metrics) == (True, True, True, True)
    assert metrics["success"] is True
    assert "at a view point always" in choices["criterion_proximity"]["to"]


def test_proximity_is_to_the_surface() -> None:
    plank = SceneObject("x", "Mug", (0.0, 0.0, 0.5), (1.0, 0.2, 0.2), 90.0)
    assert [plank.distance_m(*point) for point in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.4))] == pytest.approx([0.9, 0.5, 0])
    assert plank.distance_m(0.4, 0.9) == pytest.approx(0.5)


class TestObjectNav:
    def test_a_failure_says_which_criterion_it_missed(self, record) -> None:
        path = record(synthetic.header(synthetic.objectnav_task()), [FORWARD, STOP])
        shown_criteria = panels(path).criteria()
        assert [criterion.met for criterion in shown_criteria] == [True, True, False, True]
        assert "limit 1 m" in shown_criteria[2].detail
        assert outcome(shown(path).score) == ("lost", "failed: not near")

    def test_a_criterion_that_is_not_known_is_neither_met_nor_missed(self, record, tmp_path: Path) -> None:
        end = EpisodeEnd(EndReason.MAX_STEPS, 4, 99)
        path = record(synthetic.header(synthetic.objectnav_task()), [FORWARD] * 4, end)
        assert [criterion.met for criterion in panels(path).criteria()] == [False, True, True, None]
        assert "sees the object?" in page(path, tmp_path)

    def test_a_verdict_is_named_with_who_and_when(self, record, tmp_path: Path) -> None:
        path = record(synthetic.header(synthetic.objectnav_task()), [FORWARD] * 4 + [STOP])
        add_verdict(path, "Ada", visible=False, note="a bottle stood before it")
        text = page(path, tmp_path)
        for expected in ("Ada&#39;s", "the object was not visible: a bottle", "Some scores use verdicts of Ada"):
            assert expected in text, expected
