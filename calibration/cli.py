"""``robot-runtime calibrate``: the commands of camera and motion."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibration import options
from robot_runtime.cli_options import options as shared
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.errors import ConfigError, writing

VALID_DAYS = 365.0
"""Days for which an imported calibration is valid; its own age is unknown."""


def import_file(
    file: Annotated[Path, typer.Argument(help="ROS, Kalibr, OpenCV, RealSense, Azure Kinect or apriltag_ros file.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="YAML file to write; it must not exist.")],
    robot: Annotated[str, typer.Option(help="Name of the robot that the camera is on, as in its YAML.")] = "",
    serial: Annotated[str, typer.Option(help="Serial number of the device, if the driver knows one.")] = "",
    size: Annotated[str | None, typer.Option(metavar="WIDTHxHEIGHT", help="Image size that the file lacks.")] = None,
    at: Annotated[str, typer.Option(metavar="X,Y,Z,YAW_DEG", help="Pose of a tag bundle in map, meters.")] = "0,0,0,0",
) -> None:
    """Convert another program's calibration or tag map; name what has no equal.

    Name a calibration as 'calibration' under 'imaging' in the camera's YAML; `preflight` verifies it as any other.

    Examples:
        robot-runtime calibrate import head_camera.yaml --robot lab-1 --out lens.yaml
        robot-runtime calibrate import tags.yaml --at 3.0,1.5,1.0,180 --out my_flat/tags.yaml
    """
    from dataclasses import replace

    from calibration import foreign
    from robot_runtime.common.console import say
    from robot_runtime.robots.calibration_file import Stamp, write_calibration
    from robot_runtime.scenes.tag_map import write_tag_map

    if out.exists():
        raise ConfigError(f"{out}: exists", "give another file with --out, or remove it")
    if foreign.is_tag_file(file):
        tags, left_out = foreign.read_tags(file, foreign.planar(*_numbers(at)))
        with writing(out):
            write_tag_map(out, tags)
        say(f"{out}: {len(tags.tags)} tags of family tag36h11, the bundle at {at}")
        for sentence in left_out:
            say(f"left out: {sentence}")
        return
    if not robot:
        raise ConfigError("a calibration belongs to a robot", "add --robot NAME, as in the robot's YAML")
    rig, kind = foreign.read_rig(file, _size(size))
    rig = replace(rig, serial=serial or rig.serial)
    stamp = Stamp.now("intrinsics", robot, rig.serial, VALID_DAYS, f"imported from {kind}: {file.name}", {}, {})
    with writing(out):
        write_calibration(out, stamp, rig.to_document())
    lens = rig.color
    say(
        f"{out}: {kind}, {lens.width}x{lens.height}, {lens.model}, fx {lens.fx:.2f} px. Check it: "
        "`robot-runtime preflight`"
    )


def _numbers(text: str) -> tuple[float, float, float, float]:
    try:
        x_m, y_m, z_m, yaw_deg = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"--at {text}: is not X,Y,Z,YAW_DEG", "write four numbers: --at 3.0,1.5,1.0,180") from None
    return x_m, y_m, z_m, yaw_deg


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,5}x[0-9]{1,5}", text):
        raise ConfigError(f"--size {text}: is not WIDTHxHEIGHT", "write for example --size 1280x720")
    width, height = map(int, text.split("x"))
    return width, height


if TYPE_CHECKING:
    from calibration.camera.charuco import Board

PRINT_DPI = 300.0

ROUNDS = 5
"""Rounds of a drive. One is held out; from four the scales of a Kobuki are known to 0.2 % each."""

CYCLES = 40
"""Repetitions of an action. Without the held-out quarter they give a standard deviation to 13 %."""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    camera, motion = (board, intrinsics, extrinsics, depth, tilt_servo), (localization, odometry, motors, actuation)
    for command in (*camera, *motion, latency):
        groups["calibrate"].command()(command)
    groups["calibrate"].command("import")(import_file)


# --- camera ---------------------------------------------------------------------------------------------------------


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

    from robot_runtime.common.console import say
    from robot_runtime.common.creating import creating

    made, square_mm = board.made(), 1000 * board.square_m
    square_px = round(square_mm / 25.4 * PRINT_DPI)
    dpi = square_px / square_mm * 25.4
    with creating(out) as draft:
        Image.fromarray(made.picture(square_px)).save(draft, dpi=(dpi, dpi))
    say(
        f"{out}: {made.columns}x{made.rows} squares of {square_mm:g} mm, {1000 * made.width_m:g} x "
        f"{1000 * made.height_m:g} mm; print at 100 %, then measure a square"
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
def depth(*, run: options.RunOptions, robot: shared.CameraRobotOptions, tag_m: options.TagM = 0.16) -> None:
    """Find scale and bias of the depth sensor, against AprilTags that the robot drives towards.

    Name the file as 'calibration' under 'imaging' in the camera's YAML.

    Example:
        robot-runtime calibrate depth --robot my_robot.yaml --camera my_camera.yaml --out camera.yaml --view live
    """
    from calibration.camera.depth import DepthProcedure

    run.calibrate(DepthProcedure(options.check_tag(tag_m)), robot)


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

    run.calibrate(TiltServoProcedure(options.find_mount(mount)), robot)


@grouped_options
def latency(*, run: options.RunOptions, robot: shared.CameraRobotOptions) -> None:
    """Measure how late a camera's stamps are, by swinging the base while it looks.

    Name the file as 'latency' under 'imaging' in the camera's YAML; a file that is in force already is corrected.

    Example:
        robot-runtime calibrate latency --camera realsense-partial --out latency.yaml
    """
    from calibration.camera.latency import LatencyProcedure

    run.calibrate(LatencyProcedure(), robot)


# --- motion and poses -----------------------------------------------------------------------------------------------


class HeadingSource(str, Enum):
    """``robot_runtime.robots.corrected_odometry.Heading`` as a command line takes it."""

    GYRO = "gyro"
    WHEELS = "wheels"


@dataclass(frozen=True)
class RefereedRobotOptions(shared.RobotOption):
    """A robot and its referee."""

    referee: shared.Referee = None


@dataclass(frozen=True)
class LocalizerRobotOptions(shared.RobotOption):
    """A robot and the localizer that is calibrated."""

    localizer: shared.Localizer = None


@grouped_options
def odometry(
    *,
    run: options.RunOptions,
    robot: RefereedRobotOptions,
    heading: Annotated[
        HeadingSource, typer.Option(help="What the base takes its heading from; a Kobuki from its gyro.")
    ] = HeadingSource.GYRO,
    wheel_radius_m: Annotated[
        float, typer.Option(min=0.001, max=1, help="That the base computes with; a Kobuki with 0.035.")
    ] = 0.035,
    wheel_separation_m: Annotated[
        float, typer.Option(min=0.001, max=10, help="That the base computes with; a Kobuki with 0.23.")
    ] = 0.23,
    rounds: Annotated[int, typer.Option(min=2, help="Of squares and turns; the last one is held out.")] = ROUNDS,
) -> None:
    """Find how many meters and radians the base reports per meter and radian that it moves.

    Name the file as 'odometry' in the robot's YAML, and base and odometry are put right from then on.

    Example:
        robot-runtime calibrate odometry --robot sim-noisy --out odometry.yaml
    """
    from calibration.motion.odometry import OdometryProcedure

    run.calibrate(OdometryProcedure(heading.value, wheel_radius_m, wheel_separation_m, rounds), robot)


@grouped_options
def motors(*, run: options.RunOptions, robot: shared.RobotOption) -> None:
    """Find the dead time, lag, thresholds and gains of the base's motors; the robot drives alone for half a minute.

    Name the file as 'motors' in the robot's YAML, and the motion controller plans with it.

    Example:
        robot-runtime calibrate motors --robot my_robot.yaml --out motors.yaml
    """
    from calibration.motion.motors import MotorProcedure

    run.calibrate(MotorProcedure(), robot)


@grouped_options
def actuation(
    *,
    run: options.RunOptions,
    robot: RefereedRobotOptions,
    forward_m: Annotated[float, typer.Option(min=0.05, help="Of move_forward.")] = 0.25,
    turn_deg: Annotated[float, typer.Option(min=5, max=90, help="Of a turn.")] = 30.0,
    cycles: Annotated[int, typer.Option(min=12, help="Number of repetitions of each action.")] = CYCLES,
) -> None:
    """Measure where discrete actions really end, for a simulated robot that errs in the same way.

    In its YAML: 'action_noise: {model: fitted, file: actuation.yaml}' under 'options'.

    Example:
        robot-runtime calibrate actuation --robot sim-noisy --out actuation.yaml
    """
    from calibration.motion.action_errors import ActuationProcedure

    run.calibrate(ActuationProcedure(forward_m, turn_deg, cycles), robot)


@grouped_options
def localization(
    *,
    run: options.RunOptions,
    robot: LocalizerRobotOptions,
    start: Annotated[
        tuple[float, float, float] | None,
        typer.Option(metavar="X Y YAW", help="Where in map the robot stands when the drive begins: m, m, degrees."),
    ] = None,
    points: Annotated[
        Path | None, typer.Option(help="YAML of surveyed points to stand on, instead of a drive.")
    ] = None,
    lever_m: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="FORWARD LEFT", help="Where on the robot the mark sits. Default: solved for."),
    ] = None,
) -> None:
    """Find what takes a localizer's own frame to the scene's map, on a short guided drive or on surveyed points.

    The localizer must give poses in its own frame, of its mark as it sees it: leave out the options that the file will
    replace ('alignment'; of beacons also 'beacons_in_map').

    Example:
        robot-runtime calibrate localization --localizer marvelmind-own-frame --start 2.0 1.5 90 --out alignment.yaml
    """
    from calibration.motion.localizer_alignment import LocalizationCalibration, SurveyedPoints
    from robot_runtime.common import config
    from robot_runtime.common.geometry import SE2

    if (start is None) == (points is None):
        raise ConfigError("--start begins a drive and --points replaces it", "give one of them")
    surveyed = config.load(points, SurveyedPoints).points if points is not None else ()
    if points is not None and len(surveyed) < 3:
        raise ConfigError(f"{points}: {len(surveyed)} points, 3 are needed", "survey more, not all on one line")
    poses = [SE2(point.x_m, point.y_m, math.radians(point.yaw_deg)) for point in surveyed]
    x_m, y_m, yaw_deg = start or (0.0, 0.0, 0.0)
    procedure = LocalizationCalibration(SE2(x_m, y_m, math.radians(yaw_deg)), poses, lever_m)
    run.calibrate(procedure, robot)
