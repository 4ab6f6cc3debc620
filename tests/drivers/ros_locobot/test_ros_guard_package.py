"""The guard as one file for a robot's computer: complete, and of nothing but Python 3.8 and rospy or rclpy."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from python38 import python38

FOLDER = Path(__file__).parents[3] / "ros_ws" / "src" / "robot_runtime_guard"
ROS = {"diagnostic_msgs", "geometry_msgs", "rclpy", "rosgraph", "roslib", "rospy", "std_msgs", "std_srvs", "yaml"}
"""Modules that every installation of rospy or rclpy has."""


def load_builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_guard", FOLDER / "build_guard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


builder = load_builder()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("robot") / "bin" / "guard"
    builder.build(path)
    return path


def imported(path: Path) -> set[str]:
    """Modules that a file of Python 3.8 imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_its_modules_use_nothing_that_python_3_8_lacks() -> None:
    files = [str(builder.ROOT / name) for name in builder.MODULES]
    vermin = [sys.executable, "-c", "import vermin; vermin.main()", "--violations", "--target=3.8-"]
    found = subprocess.run([*vermin, *files], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("name", builder.MODULES)
def test_a_module_imports_the_standard_library_ros_and_other_modules_of_the_program(name: str) -> None:
    own = {Path(module).with_suffix("").as_posix().replace("/", ".") for module in builder.MODULES}
    assert {
        module
        for module in imported(builder.ROOT / name)
        if module not in own and module.split(".")[0] not in sys.stdlib_module_names | ROS
    } == set()


def test_the_program_holds_these_modules_and_can_be_executed_by_everybody(program: Path) -> None:
    assert program.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert program.stat().st_mode & 0o777 == 0o755
    with zipfile.ZipFile(program) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for name in builder.MODULES:
        assert files[name] == (builder.ROOT / name).read_bytes()
    others = set(files) - set(builder.MODULES)
    assert {name.rsplit("/", 1)[-1] for name in others if not name.endswith("/")} == {"__main__.py", "__init__.py"}
    assert all(not files[name] for name in others if name.endswith("__init__.py"))


def test_a_folder_without_its_repository_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="link this folder from a clone"):
        builder.build(tmp_path / "guard")


DRIVE = """
import os, sys, types
sys.path.insert(0, sys.argv[1])
os.environ["ROS_HOME"] = "/home/robot/.ros"
from drivers.ros.guard.logic import WheelGuard
from drivers.ros_locobot.guard.options import read_guard_options
from drivers.ros.guard.safety_sources import SAFETY_SOURCES, tracker_of
from robot_runtime.hal.wheels import Velocity

def core(**zones):
    return types.SimpleNamespace(**{"bumper": 0, "cliff": 0, "wheel_drop": 0, **zones})

options = read_guard_options({"family": "pyrobot-kobuki", "base": {"max_linear_m_s": 0.3}}, "/guard")
guard = WheelGuard(options.limits, tracker_of(options.family, options.topics))
guard.tracker.unpublished([])
now_ns = 0
for bumper in [0] * 50 + [7]:
    now_ns += 20_000_000
    SAFETY_SOURCES[options.family][0].take(guard.tracker, options.topics.core, core(bumper=bumper), now_ns)
    guard.command(Velocity(1.0, 0.0), now_ns, "/runtime")
    output = guard.decide(now_ns)
    if not bumper:
        driven = output
print(sys.version_info[:2], driven.velocity.linear_m_s, output.reason.value, guard.status(now_ns).bumper)
print(options.e_stop_path("/robot_runtime_guard"))
"""


def test_the_guard_decides_under_python_3_8(program: Path) -> None:
    done = subprocess.run(
        [python38(), "-I", "-W", "error", "-c", DRIVE, str(program)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "(3, 8) 0.3 contact left+center+right",
        "/home/robot/.ros/robot_runtime_guard/robot_runtime_guard.e_stop",
    ]
