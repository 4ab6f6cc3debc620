"""A kind of task from a package outside the product: sensor, success rule, format, generator, oracle, report panel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent / "plugin_task"
TASK = PLUGIN / "gatenav.yaml"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def command(once: Callable[..., Path]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``command(*arguments)``: robot-runtime where the package is installed."""

    def install(folder: Path) -> None:
        source = folder / "source"
        shutil.copytree(PLUGIN, source)
        options = ["-q", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
        pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder / "site"), str(source)]
        subprocess.run(pip, check=True, timeout=200)

    site = once("gatenav", install) / "site"

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "robot_runtime", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(site)}
        return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=200, check=False)

    return run


def test_the_package_is_small() -> None:
    files = [path for path in PLUGIN.rglob("*") if path.suffix in (".py", ".toml", ".yaml")]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 250


def test_a_foreign_kind_runs_is_scored_and_reported(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    episodes, logs = tmp_path / "gates.json", tmp_path / "logs"
    made = command("episodes", "generate", "--task", TASK, "--count", "2", "--seed", "1", "--out", episodes)
    assert made.returncode == 0, made.stderr
    assert json.loads(episodes.read_text(encoding="utf-8"))["format"] == "gatenav-1"

    ran = command("run", "--robot", "fake", "--task", TASK, "--agent", "oracle", "--episodes", episodes, "--out", logs)
    assert ran.returncode == 0, ran.stderr

    scored = command("score", logs, "--json", tmp_path / "scores.json")
    assert scored.returncode == 0, scored.stderr
    scores = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))["episodes"]
    assert [score["metrics"]["success"] for score in scores] == [True, True]
    assert all(score["metrics"]["gate_miss_m"] <= 0.3 for score in scores)

    reported = command("report", logs, "--out", tmp_path / "report.html")
    assert reported.returncode == 0, reported.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "passed the gate" in page
    assert "gate missed by" in page


def test_without_the_package_the_kind_is_named(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "robot_runtime", "run", "--task", str(TASK), "--out", str(tmp_path / "logs")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 2
    assert "'gatenav'" in done.stderr
