"""Adds every calibration to ``robot-runtime calibrate``."""

from __future__ import annotations

import typer

from calibration import actuation, depth, extrinsics, intrinsics, latency, localization, odometry, tilt_servo


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands to the groups of ``robot-runtime``."""
    group = groups["calibrate"]
    group.command("board")(intrinsics.board)
    group.command("intrinsics")(intrinsics.intrinsics)
    group.command("extrinsics")(extrinsics.extrinsics)
    group.command("depth")(depth.depth)
    group.command("tilt-servo")(tilt_servo.tilt_servo)
    group.command("localization")(localization.command)
    group.command("odometry")(odometry.command)
    group.command("actuation")(actuation.command)
    group.command("latency")(latency.command)
