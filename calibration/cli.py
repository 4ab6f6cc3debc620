"""Registration of the calibrations in ``robot-runtime calibrate``."""

from __future__ import annotations

import typer

from calibration.camera import cli as camera
from calibration.motion import cli as motion


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    group = groups["calibrate"]
    group.command("board")(camera.board)
    group.command("intrinsics")(camera.intrinsics)
    group.command("extrinsics")(camera.extrinsics)
    group.command("depth")(camera.depth)
    group.command("tilt-servo")(camera.tilt_servo)
    group.command("localization")(motion.localization)
    group.command("odometry")(motion.odometry)
    group.command("motors")(motion.motors)
    group.command("actuation")(motion.actuation)
    group.command("latency")(camera.latency)
