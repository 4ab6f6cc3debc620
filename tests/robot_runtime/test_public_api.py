"""The names that ``robot_runtime`` offers itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import robot_runtime
from robot_runtime.scenes.scene import find_scene, load_scene


@pytest.mark.parametrize("name", robot_runtime.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(robot_runtime, name) is not None
    assert name in dir(robot_runtime)


def test_the_package_alone_imports_nothing_heavy() -> None:
    program = "import robot_runtime, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"numpy", "scipy", "pydantic", "yaml"}
    assert {name for name in loaded if name.startswith("robot_runtime.")} == {
        "robot_runtime.common",
        "robot_runtime.common.version",
    }


def test_type_checkers_see_the_same_names_as_the_interpreter() -> None:
    tree = ast.parse(Path(robot_runtime.__file__).read_text(encoding="utf-8"))
    block = next(part for part in tree.body if isinstance(part, ast.If))
    seen = {alias.name for part in block.body if isinstance(part, ast.ImportFrom) for alias in part.names}
    assert {*seen, "__version__"} == set(robot_runtime.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = robot_runtime.no_such_name


def test_a_bundled_scene_is_loaded_by_its_name() -> None:
    assert load_scene("apartment").digest == load_scene(find_scene("apartment")).digest
