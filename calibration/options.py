"""Options of ``robot-runtime calibrate``, and the run of a calibration on the robot that they name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robot_runtime.cli_options import options as shared
from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from calibration.procedure import Procedure
    from robot_runtime.robots.camera_mount import CameraMount

ValidDays = Annotated[float, typer.Option(help="Days after which the file is refused.")]

VALID_DAYS = 180.0

TagM = Annotated[float, typer.Option(help="Edge of the tags' black squares, as measured on the print.")]


@dataclass(frozen=True)
class RunOptions:
    """Scene, result and pictures of a calibration."""

    out: Annotated[Path, typer.Option(help="File to write.")]
    scene: shared.Scene = "apartment"
    seed: Annotated[
        int, typer.Option(min=0, help="Of a simulated robot's noise and of what is moved before its camera.")
    ] = 0
    view: Annotated[
        Path | None, typer.Option(help="Folder for live pictures, coverage and plots of the result; kept up to date.")
    ] = None
    valid_days: ValidDays = VALID_DAYS
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False

    def calibrate(self, procedure: Procedure[Any, Any], robot: shared.RobotOption) -> None:
        """Carry out a calibration on a robot, and print the result.

        Raises:
            ConfigError: an option is wrong.
            CalibrationFailed: see ``calibrate``.
            RuntimeFault: a device fails.
        """
        from calibration.operator_guide import Guide
        from calibration.procedure import calibrate
        from robot_runtime.common.console import console, say
        from robot_runtime.robots.loader import RobotContext
        from robot_runtime.scenes.scene import find_scene, load_scene

        check_result(self.out, self.valid_days, self.overwrite)
        with robot.load(RobotContext(load_scene(find_scene(self.scene)), None, self.seed)) as connected:
            guide = Guide(console, self.view, attended=connected.simulation is None)
            file = calibrate(procedure, connected, guide, self.out, self.valid_days)
        stamp = file.stamp
        for title, figures in (("residuals", stamp.residuals), ("held out", stamp.held_out)):
            shown = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
            say(f"{title:10} {shown}")
        say(f"{self.out}: {stamp.kind} of robot {stamp.robot!r}, valid for {stamp.valid_days:g} days")


def check_result(path: Path, valid_days: float, overwrite: bool) -> None:
    """Raise ``ConfigError`` for a file that exists and may not be replaced, or a validity that is not positive."""
    if path.exists() and not overwrite:
        raise ConfigError(f"{path}: exists already", "choose another --out, or add --overwrite")
    if not valid_days > 0:
        raise ConfigError(f"--valid-days {valid_days} is not positive", "give days, such as 180")


def check_tag(tag_m: float) -> float:
    """The value of ``--tag-m``. Raises ``ConfigError``."""
    if not 0.01 <= tag_m <= 2:
        raise ConfigError(f"--tag-m {tag_m:g} is not a tag's size", "give the edge of the black square in meters")
    return tag_m


def find_mount(mount: str | None) -> CameraMount | None:
    """The camera mount of a preset's name or a YAML file. Raises ``ConfigError``."""
    from robot_runtime.common import config
    from robot_runtime.robots.camera_mount import load_mount

    return None if mount is None else load_mount(config.find_preset("mounts", mount))
