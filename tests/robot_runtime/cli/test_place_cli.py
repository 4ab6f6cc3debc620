"""``robot-runtime place`` on the fake robot, which stands in the middle of an empty room and has no simulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from robot_runtime.cli.main import run_command
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap


@pytest.fixture
def room(tmp_path: Path) -> str:
    """A scene of 6 x 6 m."""
    folder = tmp_path / "room"
    folder.mkdir()
    cells = np.full((120, 120), Cell.FREE, np.uint8)
    cells[[0, -1], :] = cells[:, [0, -1]] = Cell.OCCUPIED
    OccupancyMap(cells, 0.05, -3.0, -3.0).save(folder / "map.yaml")
    document = {"schema": 1, "name": "room", "rooms": [], "objects": []}
    (folder / "scene.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(folder)


def robot(tmp_path: Path, **options: object) -> str:
    path = tmp_path / "robot.yaml"
    document = {"name": "mine", "driver": "drivers.fake.driver.make_robot", "options": {"width": 32, "height": 24}}
    document["options"] |= options  # type: ignore[operator]
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(path)


def test_it_drives_there_and_says_how_well(room: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--robot", robot(tmp_path), "--scene", room, "--drive", "--within-m", "0.03", "--within-deg", "2"]
    assert run_command(["place", *arguments, "--episode", "1"]) == 0
    shown = capsys.readouterr()
    assert "The robot drives itself to x" in shown.err
    assert "within 3 cm and 2°" in shown.err
    assert "episode 1: the robot stands" in shown.out
    assert "(drive), as fake referee sees it" in shown.out
    error_cm = float(shown.out.split("stands ")[1].split(" cm")[0])
    assert error_cm <= 3


def test_a_person_is_asked_and_not_waited_for_for_ever(
    room: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["place", "--robot", robot(tmp_path), "--scene", room, "--timeout-s", "3"]) == 5
    shown = capsys.readouterr().err
    assert "Bring the robot to x" in shown
    assert "was not brought to" in shown


def test_a_contact_is_an_error(room: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wall that the map does not know, on the way to the other half of the room."""
    for episode in range(6):
        code = run_command(
            ["place", "--robot", robot(tmp_path, wall_x_m=0.3), "--scene", room, "--drive", "--episode", str(episode)]
        )
        shown = capsys.readouterr().err
        if code:
            break
    assert code == 5
    assert "touched something" in shown
    assert "remedy:" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--within-m", "0"), 2, "--within-m 0.0"),
        (("--timeout-s", "inf"), 2, "--timeout-s inf"),
        (("--episode", "nobody"), 5, "there is no episode 'nobody'"),
        (("--localizer", "marvelmnd"), 2, "there is no localizer preset 'marvelmnd'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    room: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    assert run_command(["place", "--robot", robot(tmp_path), "--scene", room, *arguments]) == code
    shown = " ".join(capsys.readouterr().err.split())
    assert said in shown
    assert "Traceback" not in shown
