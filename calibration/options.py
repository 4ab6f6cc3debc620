"""What every ``robot-runtime calibrate`` command has: its options, the robot that they name, and its last words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from calibration.procedure import Procedure
    from robot_runtime.robots.loader import DeviceOverrides

Out = Annotated[Path, typer.Option(help="File to write.")]

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file.")]

View = Annotated[
    Path | None, typer.Option(help="Folder for live pictures, coverage and plots of the result; kept up to date.")
]

Seed = Annotated[int, typer.Option(min=0, help="Of a simulated robot's noise and of what is moved before its camera.")]

ValidDays = Annotated[float, typer.Option(help="Days after which the file is refused.")]

VALID_DAYS = 180.0

TimeLimit = Annotated[float, typer.Option(min=1, max=3600, help="Seconds for a person to show everything.")]

BoardSize = Annotated[str, typer.Option(metavar="COLUMNSxROWS", help="Squares of the ChArUco board.")]

SquareMm = Annotated[float, typer.Option(help="Edge of its squares, as measured on the print.")]

MarkerMm = Annotated[float, typer.Option(help="Edge of the black markers in its white squares.")]

TagMm = Annotated[float, typer.Option(help="Edge of the tags' black squares, as measured on the print.")]


def tag_size_m(tag_mm: float) -> float:
    """What ``--tag-mm`` says, in meters. Raises ``ConfigError``."""
    if not 10 <= tag_mm <= 2000:
        raise ConfigError(f"--tag-mm {tag_mm:g} is no tag's size", "give the edge of the black square in millimeters")
    return tag_mm / 1000


def of_camera(camera: str | None, camera_arg: list[str] | None) -> DeviceOverrides:
    """The robot with the camera of these options."""
    from robot_runtime.robots.loader import DeviceOverrides

    return DeviceOverrides(camera=camera, camera_options=tuple(camera_arg or ()))


def run_calibration(
    procedure: Procedure[Any, Any],
    robot: str,
    chosen: DeviceOverrides,
    scene: str,
    seed: int,
    out: Path,
    overwrite: bool,
    view: Path | None,
    valid_days: float,
) -> None:
    """Carry out a calibration on the robot that the options name, and say what came of it.

    Raises:
        ConfigError: a bad option. CalibrationFailed: see ``calibrate``. RuntimeFault: whatever a device has.
    """
    from calibration.operator_guide import Guide
    from calibration.procedure import calibrate
    from robot_runtime.common.console import console
    from robot_runtime.robots.loader import RobotContext, load_robot
    from robot_runtime.scenes.scene import find_scene, load_scene

    if out.exists() and not overwrite:
        raise ConfigError(f"{out}: is there already", "choose another --out, or add --overwrite")
    if not valid_days > 0:
        raise ConfigError(f"--valid-days {valid_days} is not positive", "give days, such as 180")
    context = RobotContext(load_scene(find_scene(scene)), None, seed)
    with load_robot(robot, context, chosen) as connected:
        guide = Guide(console, view, attended=connected.simulation is None)
        file = calibrate(procedure, connected, guide, out, valid_days)
    stamp = file.stamp
    for title, figures in (("residuals", stamp.residuals), ("held out", stamp.held_out)):
        shown = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
        console.print(f"{title:10} {shown}", soft_wrap=True, markup=False)
    console.print(f"{out}: {stamp.kind} of robot {stamp.robot!r}, valid for {stamp.valid_days:g} days", soft_wrap=True)
