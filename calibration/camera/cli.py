"""``robot-runtime calibrate board``, ``intrinsics``, ``extrinsics``, ``depth``, ``tilt-servo`` and ``latency``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibration import options
from robot_runtime.cli import options as shared
from robot_runtime.cli.option_groups import grouped_options
from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from calibration.camera.charuco import Board

PRINT_DPI = 300.0


@dataclass(frozen=True)
class BoardOptions:
    """A ChArUco board."""

    board: Annotated[str, typer.Option(metavar="COLUMNSxROWS", help="Squares of the ChArUco board.")] = "9x6"
    square_m: Annotated[float, typer.Option(help="Edge of its squares, as measured on the print.")] = 0.04
    marker_m: Annotated[float, typer.Option(help="Edge of the black markers in its white squares.")] = 0.03

    def made(self) -> Board:
        """The board. Raises ``ConfigError``."""
        from calibration.camera.charuco import Board

        return Board.named(self.board, 1000 * self.square_m, 1000 * self.marker_m)


@grouped_options
def board(
    *,
    out: Annotated[Path, typer.Option(help="Picture to write, .png; it knows its size in print.")],
    board: BoardOptions,
) -> None:
    """Make a ChArUco board to print at 100 % and glue to something flat.

    Example:
        robot-runtime calibrate board --out board.png
    """
    from PIL import Image

    from robot_runtime.common.console import console

    made, square_mm = board.made(), 1000 * board.square_m
    square_px = round(square_mm / 25.4 * PRINT_DPI)
    dpi = square_px / square_mm * 25.4
    Image.fromarray(made.picture(square_px)).save(out, dpi=(dpi, dpi))
    console.print(
        f"{out}: {made.columns}x{made.rows} squares of {square_mm:g} mm, {1000 * made.width_m:g} x "
        f"{1000 * made.height_m:g} mm; print at 100 %, then measure a square",
        soft_wrap=True,
    )


@grouped_options
def intrinsics(
    *,
    run: options.RunOptions,
    robot: shared.CameraRobotOptions,
    board: BoardOptions,
    # Of 10 a quarter is held out, and intrinsics.MIN_VIEWS are left.
    views: Annotated[int, typer.Option(min=10, help="How many to take.")] = 32,
    timeout_s: Annotated[float, typer.Option(min=1, max=3600, help="Seconds for a person to show everything.")] = 300.0,
) -> None:
    """Find a color camera's lens from views of a board, and how good its factory's calibration is.

    Name the file as 'calibration' under 'imaging' in the camera's YAML.

    Examples:
        robot-runtime calibrate intrinsics --robot my_robot.yaml --camera azure-kinect --out lens.yaml --view live
        robot-runtime calibrate intrinsics --robot sim --camera azure-kinect --out lens.yaml
    """
    from calibration.camera.intrinsics import IntrinsicsProcedure

    run.calibrate(IntrinsicsProcedure(board.made(), views, timeout_s), robot)


@grouped_options
def extrinsics(
    *,
    run: options.RunOptions,
    robot: shared.CameraRobotOptions,
    source: Annotated[
        str, typer.Option("--from", help="tags, or floor: the depth image's floor plane alone.")
    ] = "tags",
    mount: Annotated[
        str | None,
        typer.Option(
            help="Preset (launch/mounts) or YAML file to start from; pan axis and color sensor stay as it has them."
        ),
    ] = None,
    tag_m: options.TagM = 0.16,
    floor_tags: Annotated[str, typer.Option(metavar="FIRST-LAST", help="Ids of the tags on the floor.")] = "0-9",
) -> None:
    """Find where the camera sits over the full tilt range: height, pitch, roll, lateral offset.

    The file is a mount: name it as 'mount' under 'imaging' in the camera's YAML, or in the ROS robot's.

    Examples:
        robot-runtime calibrate extrinsics --robot my_robot.yaml --mount interbotix --out mount.yaml --view live
        robot-runtime calibrate extrinsics --robot my_robot.yaml --from floor --out mount.yaml
        robot-runtime calibrate extrinsics --robot sim --out mount.yaml
    """
    from calibration.camera.extrinsics import ExtrinsicsProcedure
    from calibration.camera.floor_plane import FloorPlaneProcedure

    nominal = options.find_mount(mount)
    procedure: ExtrinsicsProcedure | FloorPlaneProcedure
    if source == "tags":
        procedure = ExtrinsicsProcedure(options.check_tag(tag_m), _ids(floor_tags), nominal)
    elif source == "floor":
        procedure = FloorPlaneProcedure(nominal)
    else:
        raise ConfigError(f"--from {source!r} is not known", "use tags or floor")
    run.calibrate(procedure, robot)


def _ids(text: str) -> range:
    first, dash, last = text.partition("-")
    if not (dash and first.isdigit() and last.isdigit() and int(first) <= int(last)):
        raise ConfigError(f"--floor-tags {text!r} is not FIRST-LAST", "write it like 0-9")
    return range(int(first), int(last) + 1)


@grouped_options
def depth(
    *,
    run: options.RunOptions,
    robot: shared.CameraRobotOptions,
    tag_m: options.TagM = 0.16,
) -> None:
    """Find scale and bias of the depth sensor, against AprilTags that the robot drives towards.

    Name the file as 'calibration' under 'imaging' in the camera's YAML.

    Example:
        robot-runtime calibrate depth --robot my_robot.yaml --camera my_camera.yaml --out camera.yaml --view live
    """
    from calibration.camera.depth import DepthProcedure

    procedure = DepthProcedure(options.check_tag(tag_m))
    run.calibrate(procedure, robot)


@grouped_options
def tilt_servo(
    *,
    run: options.RunOptions,
    robot: shared.CameraRobotOptions,
    mount: Annotated[
        str | None, typer.Option(help="Preset (launch/mounts) or YAML file that says where the camera sits.")
    ] = None,
) -> None:
    """Find the tilt servo's zero, scale and backlash: every angle from both sides, judged by the floor in depth images.

    Name the file as 'tilt_servo' in the robot's YAML, and the camera points where the head is told.

    Example:
        robot-runtime calibrate tilt-servo --robot my_robot.yaml --mount mount.yaml --out servo.yaml
    """
    from calibration.camera.tilt_servo import TiltServoProcedure

    known = options.find_mount(mount)
    run.calibrate(TiltServoProcedure(known), robot)


@grouped_options
def latency(
    *,
    run: options.RunOptions,
    robot: shared.CameraRobotOptions,
) -> None:
    """Measure how late a camera's stamps are, by swinging the base while it looks.

    Name the file as 'latency' under 'imaging' in the camera's YAML; a file that is in force already is corrected.

    Example:
        robot-runtime calibrate latency --camera realsense-partial --out latency.yaml
    """
    from calibration.camera.latency import LatencyProcedure

    run.calibrate(LatencyProcedure(), robot)
