"""The page of a deployment: every difference with its cost and who says so, "not known" where nobody does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from html_page import Page
from open_room import make_fake, make_task

from robot_runtime.actions.timed import Control, TrajectoryControl
from robot_runtime.cli.main import run_command
from robot_runtime.errors import PolicyMismatch
from robot_runtime.preflight.checks import PUBLISHED, UNKNOWN, Finding
from robot_runtime.preflight.page import deployment, write_page
from robot_runtime.tasks.task import Success, Task

TASK = make_task()
MOVING = replace(TASK, control=Control((-0.5, 0.5), trajectory=TrajectoryControl(period_s=0.02)))


def rows(task: Task = TASK, needs: tuple[str, ...] = ("rgb",), **options: Any) -> dict[str, Finding]:
    with make_fake(task, **options) as robot:
        return {row.what: row for row in deployment(needs, TASK, task, robot)}


def test_a_policy_that_stands_still_meanwhile_loses_nothing_by_latency() -> None:
    found = rows()
    assert {row.status for row in found.values()} == {"ok"}
    assert "stands still" in found["latency"].effect


def test_a_camera_slower_than_the_decisions_and_the_way_driven_meanwhile_are_noted() -> None:
    found = rows(MOVING)
    assert (found["images"].status, found["images"].trained) == ("note", "one per 0.02 s")
    assert "0.5 m farther for each second" in found["latency"].effect


def test_another_rule_of_success_and_a_missing_sensor_are_said() -> None:
    task = replace(TASK, success=Success("distance", 0.2))
    found = rows(task, ("rgb", "instruction"))
    assert found["success"].status == "note"
    assert "0.36" in found["success"].trained
    assert "0.2" in found["success"].found
    assert found["sensor instruction"].status == "refused"
    assert rows(needs=("exposure",))["sensor exposure"].status == "note"


def test_poses_that_are_no_simulators_have_a_cost_that_nobody_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with make_fake(TASK) as robot:
        real = replace(robot.localizer.info, is_truth=False)
        monkeypatch.setattr(type(robot.localizer), "info", property(lambda _: real))
        found = {row.what: row for row in deployment(("gps", "compass"), TASK, TASK, robot)}
    assert found["gps, compass"].source == UNKNOWN


def test_what_differs_comes_first_and_texts_are_escaped(tmp_path: Path) -> None:
    write_page(
        tmp_path / "p.html",
        "<policy>",
        "task",
        "robot",
        [Finding("same", "1", "1"), Finding("other", "1", "2", "refused", "costs", "mend it", UNKNOWN)],
    )
    page = Page(tmp_path / "p.html")
    assert page.count("tr", "refused") == page.count("tr", "ok") == 1
    assert page.text.index("other") < page.text.index("same")
    assert "<policy> on robot" in page.text
    assert UNKNOWN in page.text


def test_the_command_writes_the_page_before_it_refuses(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    low = tmp_path / "low.yaml"
    low.write_text("name: low\ndriver: drivers.fake.driver.make_robot\noptions: {camera_height_m: 0.61}\n")
    html = tmp_path / "p.html"
    assert run_command(["preflight", "--robot", str(low), "--html", str(html)]) == PolicyMismatch.exit_code
    assert str(html.name) in capfd.readouterr().out
    page = Page(html)
    assert PUBLISHED in page.text
    assert "0.27 m cost one policy 10 points" in page.text
    for what in ("forward step", "turn", "images", "latency", "success", "depth range"):
        assert what in page.text


def test_a_server_is_compared_without_being_asked(tmp_path: Path) -> None:
    """Nothing listens there: what differs is known before the server is started."""
    command = ["preflight", "--policy", "navdp://127.0.0.1:9", "--robot", "fake", "--html", str(tmp_path / "p.html")]
    assert run_command(command) == 0
    assert "one per 0.25 s" in Page(tmp_path / "p.html").text
