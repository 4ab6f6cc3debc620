"""What an installation lacks, or has too much, is named before anything else happens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

from robot_runtime.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
BASE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mujoco", "onnxruntime", "trimesh"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""
COMMAND = "import sys; from robot_runtime.cli.main import main; main(sys.argv[1:])"


def run(folder: Path, program: str, *arguments: str, path: str = "") -> tuple[int, str]:
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.slow
def test_the_default_command_of_a_base_install_names_the_simulators_extra(tmp_path: Path) -> None:
    code, said = run(tmp_path, BASE + COMMAND, "run", "--count", "1", "--out", "logs")
    assert code == ConfigError.exit_code
    assert "pip install 'robot-runtime[sim]'" in said
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("name", ["calibration", "drivers", "sim_bridge"])
def test_a_foreign_package_of_an_own_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "other" / name).mkdir(parents=True)
    (tmp_path / "other" / name / "__init__.py").touch()
    code, said = run(tmp_path, COMMAND, "info", path=str(tmp_path / "other"))
    assert code == ConfigError.exit_code
    assert str(tmp_path / "other" / name) in said
    assert "PYTHONPATH" in said


def test_bundles_name_extras_that_there_are() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for bundle in ("desk", "robot"):
        (parts,) = extras[bundle]
        assert set(parts.removeprefix("robot-runtime[").removesuffix("]").split(",")) <= extras.keys() - {bundle}
