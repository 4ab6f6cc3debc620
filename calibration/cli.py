"""Adds every calibration to ``robot-runtime calibrate``."""

from __future__ import annotations

import typer

from calibration import base_commands, camera_commands


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands to the groups of ``robot-runtime``."""
    group = groups["calibrate"]
    group.command("board")(camera_commands.board)
    group.command("intrinsics")(camera_commands.intrinsics)
    group.command("extrinsics")(camera_commands.extrinsics)
    group.command("depth")(camera_commands.depth)
    group.command("tilt-servo")(camera_commands.tilt_servo)
    group.command("localization")(base_commands.localization)
    group.command("odometry")(base_commands.odometry)
    group.command("actuation")(base_commands.actuation)
    group.command("latency")(camera_commands.latency)
