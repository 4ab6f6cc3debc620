"""``robot-runtime calibrate``: board, intrinsics, extrinsics, depth, tilt-servo and latency: what a camera sees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibration import options
from robot_runtime.cli import options as shared
from robot_runtime.errors import ConfigError

PRINT_DPI = 300.0


def board(
    out: Annotated[Path, typer.Option(help="Picture to write, .png; it knows its size in print.")],
    board: options.BoardSize = "9x6",
    square_mm: options.SquareMm = 40.0,
    marker_mm: options.MarkerMm = 30.0,
) -> None:
    """Make a ChArUco board to print at 100 % and glue to something flat.

    Example:

        robot-runtime calibrate board --out board.png
    """
    from PIL import Image

    from calibration.camera.charuco import Board
    from robot_runtime.common.console import console

    made = Board.named(board, square_mm, marker_mm)
    square_px = round(square_mm / 25.4 * PRINT_DPI)
    dpi = square_px / square_mm * 25.4
    Image.fromarray(made.picture(square_px)).save(out, dpi=(dpi, dpi))
    console.print(
        f"{out}: {made.columns}x{made.rows} squares of {square_mm:g} mm, {1000 * made.width_m:g} x "
        f"{1000 * made.height_m:g} mm; print at 100 %, then measure a square",
        soft_wrap=True,
    )


def intrinsics(
    out: options.Out,
    robot: shared.Robot = "sim",
    camera: shared.Camera = None,
    camera_arg: shared.CameraArg = None,
    scene: shared.Scene = "apartment",
    board: options.BoardSize = "9x6",
    square_mm: options.SquareMm = 40.0,
    marker_mm: options.MarkerMm = 30.0,
    # Of 10 a quarter is held out, and intrinsics.MIN_VIEWS are left.
    views: Annotated[int, typer.Option(min=10, help="How many to take.")] = 32,
    time_limit_s: options.TimeLimit = 300.0,
    seed: options.Seed = 0,
    view: options.View = None,
    valid_days: options.ValidDays = options.VALID_DAYS,
    overwrite: options.Overwrite = False,
) -> None:
    """Find a colour camera's lens from views of a board, and how good its factory's calibration is.

    Name the file as 'calibration' under 'imaging' in the camera's YAML.

    Examples:

        robot-runtime calibrate intrinsics --robot my_robot.yaml --camera azure-kinect --out lens.yaml --view live

        robot-runtime calibrate intrinsics --robot sim --camera azure-kinect --out lens.yaml
    """
    from calibration.camera.charuco import Board
    from calibration.camera.intrinsics import IntrinsicsProcedure

    procedure = IntrinsicsProcedure(Board.named(board, square_mm, marker_mm), views, time_limit_s)
    chosen = options.of_camera(camera, camera_arg)
    options.run_calibration(procedure, robot, chosen, scene, seed, out, overwrite, view, valid_days)


def extrinsics(
    out: options.Out,
    robot: shared.Robot = "sim",
    camera: shared.Camera = None,
    camera_arg: shared.CameraArg = None,
    scene: shared.Scene = "apartment",
    source: Annotated[
        str, typer.Option("--from", help="tags, or floor: the depth image's floor plane alone.")
    ] = "tags",
    mount: Annotated[
        str | None,
        typer.Option(
            help="Preset (launch/mounts) or YAML file to start from; pan axis and colour sensor stay as it has them."
        ),
    ] = None,
    tag_mm: options.TagMm = 160.0,
    floor_tags: Annotated[str, typer.Option(metavar="FIRST-LAST", help="Ids of the tags on the floor.")] = "0-9",
    seed: options.Seed = 0,
    view: options.View = None,
    valid_days: options.ValidDays = options.VALID_DAYS,
    overwrite: options.Overwrite = False,
) -> None:
    """Find where the camera sits over the whole tilt range: height, pitch, roll, lateral offset.

    The file is a mount: name it as 'mount' under 'imaging' in the camera's YAML, or in the ROS robot's.

    Examples:

        robot-runtime calibrate extrinsics --robot my_robot.yaml --mount interbotix --out mount.yaml --view live

        robot-runtime calibrate extrinsics --robot my_robot.yaml --from floor --out mount.yaml

        robot-runtime calibrate extrinsics --robot sim --out mount.yaml
    """
    from calibration.camera.extrinsics import ExtrinsicsProcedure
    from calibration.camera.floor_plane import FloorPlaneProcedure
    from robot_runtime.common import config
    from robot_runtime.robots.camera_mount import load_mount

    nominal = load_mount(config.find_preset("mounts", mount)) if mount is not None else None
    procedure: ExtrinsicsProcedure | FloorPlaneProcedure
    if source == "tags":
        procedure = ExtrinsicsProcedure(options.tag_size_m(tag_mm), _ids(floor_tags), nominal)
    elif source == "floor":
        procedure = FloorPlaneProcedure(nominal)
    else:
        raise ConfigError(f"--from {source!r} is not known", "use tags or floor")
    chosen = options.of_camera(camera, camera_arg)
    options.run_calibration(procedure, robot, chosen, scene, seed, out, overwrite, view, valid_days)


def _ids(text: str) -> range:
    first, dash, last = text.partition("-")
    if not (dash and first.isdigit() and last.isdigit() and int(first) <= int(last)):
        raise ConfigError(f"--floor-tags {text!r} is not FIRST-LAST", "write it like 0-9")
    return range(int(first), int(last) + 1)


def depth(
    out: options.Out,
    robot: shared.Robot = "sim",
    camera: shared.Camera = None,
    camera_arg: shared.CameraArg = None,
    scene: shared.Scene = "apartment",
    tag_mm: options.TagMm = 160.0,
    seed: options.Seed = 0,
    view: options.View = None,
    valid_days: options.ValidDays = options.VALID_DAYS,
    overwrite: options.Overwrite = False,
) -> None:
    """Find scale and bias of the depth sensor, against AprilTags that the robot drives towards.

    Name the file as 'calibration' under 'imaging' in the camera's YAML.

    Example:

        robot-runtime calibrate depth --robot my_robot.yaml --camera my_camera.yaml --out camera.yaml --view live
    """
    from calibration.camera.depth import DepthProcedure

    procedure = DepthProcedure(options.tag_size_m(tag_mm))
    chosen = options.of_camera(camera, camera_arg)
    options.run_calibration(procedure, robot, chosen, scene, seed, out, overwrite, view, valid_days)


def tilt_servo(
    out: options.Out,
    robot: shared.Robot = "sim",
    camera: shared.Camera = None,
    camera_arg: shared.CameraArg = None,
    scene: shared.Scene = "apartment",
    mount: Annotated[
        str | None, typer.Option(help="Preset (launch/mounts) or YAML file that says where the camera sits.")
    ] = None,
    seed: options.Seed = 0,
    view: options.View = None,
    valid_days: options.ValidDays = options.VALID_DAYS,
    overwrite: options.Overwrite = False,
) -> None:
    """Find the tilt servo's zero, scale and backlash: every angle from both sides, judged by the floor in depth images.

    Name the file as 'tilt_servo' in the robot's YAML, and the camera points where the head is told.

    Example:

        robot-runtime calibrate tilt-servo --robot my_robot.yaml --mount mount.yaml --out servo.yaml
    """
    from calibration.camera.tilt_servo import TiltServoProcedure
    from robot_runtime.common import config
    from robot_runtime.robots.camera_mount import load_mount

    known = load_mount(config.find_preset("mounts", mount)) if mount is not None else None
    chosen = options.of_camera(camera, camera_arg)
    options.run_calibration(TiltServoProcedure(known), robot, chosen, scene, seed, out, overwrite, view, valid_days)


def latency(
    out: options.Out,
    camera: shared.Camera = None,
    camera_arg: shared.CameraArg = None,
    robot: shared.Robot = "sim",
    scene: shared.Scene = "apartment",
    overwrite: options.Overwrite = False,
    view: options.View = None,
    seed: options.Seed = 0,
    valid_days: options.ValidDays = options.VALID_DAYS,
) -> None:
    """Measure how late a camera's stamps are, by swinging the base while it looks.

    Name the file as 'latency' under 'imaging' in the camera's YAML; a file that is in force already is corrected.

    Example:

        robot-runtime calibrate latency --camera realsense-partial --out latency.yaml
    """
    from calibration.camera.latency import LatencyProcedure

    chosen = options.of_camera(camera, camera_arg)
    options.run_calibration(LatencyProcedure(), robot, chosen, scene, seed, out, overwrite, view, valid_days)
