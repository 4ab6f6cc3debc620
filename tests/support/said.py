"""What commands and loaders say about an input."""

from __future__ import annotations

from pathlib import Path

import pytest

from robot_runtime.cli.main import run_command
from robot_runtime.errors import RuntimeFault
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.scene import load_scene
from robot_runtime.tasks.task import load_task


def command_says(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What a command prints, in one line; an error with its remedy."""
    run_command(list(map(str, arguments)))
    printed = capsys.readouterr()
    return " ".join(f"{printed.out} {printed.err}".split())


def loading_fault(action: object, *arguments: object) -> RuntimeFault | None:
    try:
        action(*arguments)  # type: ignore[operator]
    except RuntimeFault as error:
        return error
    return None


def context() -> RobotContext:
    return RobotContext(load_scene("apartment"), load_task("pointnav_quick").camera, 0)
