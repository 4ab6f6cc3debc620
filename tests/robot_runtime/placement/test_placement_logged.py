"""Accuracy of placements, measured at each start, in log, scores and report; and the view of the operator."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import synthetic
from open_room import Witness, fake_robot, make_episode, make_scene, make_task
from rich.console import Console
from synthetic import FORWARD, STOP

from robot_runtime.cli.place_view import ARROWS, LiveGuide, picture, view
from robot_runtime.common.geometry import SE2
from robot_runtime.env import Env
from robot_runtime.hal import Robot
from robot_runtime.placement.driving import DrivingPlacer
from robot_runtime.placement.guide import Guide
from robot_runtime.placement.offset import Offset, Tolerance
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import Placement
from robot_runtime.scoring.report.export import write_json
from robot_runtime.scoring.report.pages import write_report
from robot_runtime.scoring.report.terminal_table import table
from robot_runtime.scoring.summary import score_logs

HAND = Placement("operator", "beacons", SE2(1.0, 2.0, 0.5), SE2(1.03, 2.0, 0.6), 0.03, 0.1, 0.02)
DRIVEN = replace(HAND, way="drive", error_m=0.011, error_rad=None)


def placed_by_driving(robot: Robot) -> Robot:
    parts = (robot.clock, robot.base, robot.head, robot.localizer, robot.referee)
    return replace(robot, placer=DrivingPlacer(*parts, guide=Guide(lambda line: None)))


def test_the_start_is_measured_by_the_referee_and_its_error_is_in_the_header() -> None:
    witness = Witness()
    with fake_robot(make_task()) as robot:
        placed = placed_by_driving(robot)
        env = Env(placed, make_task(), make_scene(), (witness,))
        env.reset(make_episode(SE2(0.5, 0.5, 1.0)))
        truth = robot.referee.latest(0.5).pose
        env.close()
    found = witness.headers[0].placement
    assert found is not None
    assert (found.way, found.source) == ("drive", "fake referee")
    assert found.goal == SE2(0.5, 0.5, 1.0)
    assert found.pose.distance_to(truth) < 1e-6
    assert found.error_m == pytest.approx(truth.distance_to(found.goal))
    assert found.error_m <= 0.025
    assert found.error_rad == pytest.approx(truth.yaw_rad - 1.0, abs=1e-9)


def test_a_teleport_is_measured_too() -> None:
    witness = Witness()
    with fake_robot(make_task()) as robot, Env(robot, make_task(), make_scene(), (witness,)) as env:
        env.reset(make_episode())
    found = witness.headers[0].placement
    assert found is not None
    assert (found.way, found.error_m, found.error_rad) == ("teleport", 0.0, 0.0)


@pytest.mark.parametrize("placement", [HAND, DRIVEN, None])
def test_a_log_keeps_it(record: Any, placement: Placement | None) -> None:
    path = record(synthetic.header(placement=placement), [FORWARD, STOP])
    with LogReader(path) as log:
        assert log.header.placement == placement


def test_scores_and_reports_show_it(record: Any, tmp_path: Path) -> None:
    paths = [record(synthetic.header(placement=found), [FORWARD, STOP]) for found in (HAND, DRIVEN, None)]
    scores = score_logs(paths)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table(scores))
    shown = console.export_text()
    assert "1 of 3 robots placed by hand, in the median 3.0 cm (at most 3.0 cm), 5.7° (at most 5.7°) off" in shown
    assert "1 of 3 robots drove to their starts, in the median 1.1 cm (at most 1.1 cm) off" in shown
    write_json(tmp_path / "scores.json", scores)
    episodes = json.loads((tmp_path / "scores.json").read_text())["episodes"]
    assert [episode["placement"] and episode["placement"]["error_m"] for episode in episodes] == [0.03, 0.011, None]
    write_report(paths, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "at the start the robot stood 3.0 cm and 5.7° off (operator), as beacons sees it" in page


# --- what a person sees ---------------------------------------------------------------------------------------------


def text(renderable: object) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def test_the_picture_says_how_far_and_where_to_push() -> None:
    offset = Offset.of(SE2(0.0, 0.0, math.radians(90)), SE2(-0.3, 0.4, math.radians(45)))
    shown = text(picture(offset, "let go of it", Tolerance()))
    for part in ("50.0 cm", "45.0°", "40.0 cm", "ahead", "30.0 cm", "left", "right", "let go of it", "R"):
        assert part in shown
    assert "no fix" in text(picture(None, "no fix", Tolerance()))


@pytest.mark.parametrize(
    ("goal", "row", "side", "arrow", "reach"),
    [
        (SE2(0.5, 0.0, 0.0), "above", "middle", "↑", "1 m"),
        (SE2(0.0, 0.1, math.pi / 2), "middle", "left", "←", "20 cm"),
        (SE2(-3.0, -3.0, math.pi), "below", "right", "↓", "5 m"),
        (SE2(8.0, 0.0, -math.pi / 4), "above", "middle", "↗", "8 m"),
    ],
)
def test_the_start_is_drawn_where_it_is(goal: SE2, row: str, side: str, arrow: str, reach: str) -> None:
    rows = view(Offset.of(SE2(), goal))
    (robot_row,) = (i for i, line in enumerate(rows) if "R" in line)
    (goal_row,) = (i for i, line in enumerate(rows[:-1]) if any(sign in line for sign in ARROWS))
    column = rows[goal_row].index(arrow) - rows[robot_row].index("R")
    assert {"above": goal_row < robot_row, "middle": goal_row == robot_row, "below": goal_row > robot_row}[row]
    assert {"left": column < 0, "middle": column == 0, "right": column > 0}[side]
    assert reach in rows[-1]


def test_a_terminal_shows_the_picture_live() -> None:
    console = Console(force_terminal=True, width=100, record=True, file=io.StringIO())
    with LiveGuide(console) as guide:
        guide.begin(SE2(1.0, 0.0, 0.0), Tolerance(), drives=False)
        guide.show(0, Offset.of(SE2(), SE2(1.0, 0.0, 0.0)), "")
        guide.show(1, None, "no fix")
        guide.done(Offset.of(SE2(), SE2(0.01, 0.0, 0.0)))
    assert "The robot stands at the start, 1.0 cm and 0.0° off." in console.export_text()
