"""The example of a camera, and the ten lines that read a log without this project."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from robot_runtime.cli.main import run_command
from robot_runtime.robots.loader import RobotContext, load_robot
from robot_runtime.scenes.scene import find_scene, load_scene

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.fixture
def _example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    source = (DOCS / "examples" / "own_camera.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 50
    (tmp_path / "own_camera_of_tests.py").write_text(source, encoding="utf-8")
    (tmp_path / "cam.yaml").write_text("{driver: own_camera_of_tests.make_camera, options: {depth_max_m: 5.0}}")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("own_camera_of_tests", None)


@pytest.mark.slow
@pytest.mark.usefixtures("_example")
def test_the_camera_of_the_example_takes_part_in_an_episode_whose_log_opens_without_this_project(
    tmp_path: Path,
) -> None:
    command = ["run", "--robot", "fake", "--camera", str(tmp_path / "cam.yaml"), "--policy", "goal-follower"]
    assert run_command([*command, "--scene", "arena", "--count", "1", "--out", str(tmp_path / "logs")]) == 0
    page = (DOCS / "how-to" / "logs-and-scores.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python file=read_mcap.py\n(.*?)^```$", page, re.M | re.S)
    assert "robot_runtime" not in code
    assert len(code.splitlines()) == 10
    (log,) = (tmp_path / "logs").glob("*.mcap")
    read = subprocess.run(
        [sys.executable, "-c", code, str(log)], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "/step" in read
    assert "move_forward" in read
    assert "/tf" in read


@pytest.mark.usefixtures("_example")
def test_options_that_were_not_read_are_a_typed_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "own_camera_of_tests.py"
    file.write_text(file.read_text(encoding="utf-8").replace("context, imaging)", "context, dict(options))"))
    command = ["run", "--robot", "fake", "--camera", str(tmp_path / "cam.yaml"), "--policy", "goal-follower"]
    assert run_command([*command, "--scene", "arena", "--count", "1", "--out", str(tmp_path / "logs")]) == 2
    message = capsys.readouterr().err
    assert "not ImagingOptions" in message
    assert "ImagingOptions()" in message


def test_a_map_of_a_robot_becomes_a_scene(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = find_scene("arena") / "map.yaml"
    out = tmp_path / "lab"
    assert run_command(["scene", "from-map", str(source), "--out", str(out)]) == 0
    scene = load_scene(out)
    assert (scene.name, scene.rooms, scene.objects) == ("lab", (), ())
    known = load_scene(find_scene("arena")).map
    assert (scene.map.cells == known.cells).all()
    assert (scene.map.origin_x_m, scene.map.resolution_m) == (known.origin_x_m, known.resolution_m)
    with load_robot("fake", RobotContext(scene, None, seed=0)) as robot:
        robot.check_ready()
    capsys.readouterr()
    assert run_command(["scene", "from-map", str(source), "--out", str(out)]) == 2
    assert "is a scene already" in capsys.readouterr().err
    (out / "scene.yaml").write_text("name: lab\n", encoding="utf-8")
    assert run_command(["scene", "info", str(out)]) != 0
    assert "\nschema: 1\nrooms: []\nobjects: []\n" in capsys.readouterr().err
    (out / "scene.yaml").unlink()
    assert run_command(["scene", "info", str(out)]) != 0
    assert "scene from-map" in capsys.readouterr().err
