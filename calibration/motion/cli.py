"""``robot-runtime calibrate``: odometry, actuation and localization: how a robot moves, and where."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from calibration import options
from robot_runtime.cli import options as shared
from robot_runtime.errors import ConfigError

ROUNDS = 5
"""One is held out; four tell the scales of a Kobuki with its noise to 0.2 % each."""

CYCLES = 40
"""Tell a standard deviation to 13 %, after a quarter of them has been held out."""


class HeadingSource(str, Enum):
    """``robot_runtime.robots.corrected_odometry.Heading`` as a command line takes it."""

    GYRO = "gyro"
    WHEELS = "wheels"


def odometry(
    out: options.Out,
    robot: shared.Robot = "sim",
    referee: shared.Referee = None,
    scene: shared.Scene = "apartment",
    heading: Annotated[
        HeadingSource, typer.Option(help="What the base takes its heading from; a Kobuki from its gyro.")
    ] = HeadingSource.GYRO,
    wheel_radius_mm: Annotated[
        float, typer.Option(min=1, help="That the base computes with; a Kobuki with 35.")
    ] = 35.0,
    wheel_separation_mm: Annotated[
        float, typer.Option(min=1, help="That the base computes with; a Kobuki with 230.")
    ] = 230.0,
    rounds: Annotated[int, typer.Option(min=2, help="Of squares and turns; the last one is held out.")] = ROUNDS,
    overwrite: options.Overwrite = False,
    view: options.View = None,
    seed: options.Seed = 0,
    valid_days: options.ValidDays = options.VALID_DAYS,
) -> None:
    """Find how many metres and radians the base reports per metre and radian that it moves.

    Name the file as 'odometry' in the robot's YAML, and base and odometry are put right from then on.

    Example:

        robot-runtime calibrate odometry --robot sim-noisy --out odometry.yaml
    """
    from calibration.motion.odometry import OdometryProcedure
    from robot_runtime.robots.loader import DeviceOverrides

    procedure = OdometryProcedure(heading.value, wheel_radius_mm / 1e3, wheel_separation_mm / 1e3, rounds)
    chosen = DeviceOverrides(referee=referee)
    options.run_calibration(procedure, robot, chosen, scene, seed, out, overwrite, view, valid_days)


def actuation(
    out: options.Out,
    robot: shared.Robot = "sim",
    referee: shared.Referee = None,
    scene: shared.Scene = "apartment",
    forward: Annotated[float, typer.Option(min=0.05, help="Metres of move_forward.")] = 0.25,
    turn: Annotated[float, typer.Option(min=5, max=90, help="Degrees of a turn.")] = 30.0,
    cycles: Annotated[int, typer.Option(min=12, help="How often each action is carried out.")] = CYCLES,
    overwrite: options.Overwrite = False,
    view: options.View = None,
    seed: options.Seed = 0,
    valid_days: options.ValidDays = options.VALID_DAYS,
) -> None:
    """Measure where discrete actions really end, for a simulated robot that errs in the same way.

    In its YAML: 'action_noise: {model: fitted, file: actuation.yaml}' under 'options'.

    Example:

        robot-runtime calibrate actuation --robot sim-noisy --out actuation.yaml
    """
    from calibration.motion.action_errors import ActuationProcedure
    from robot_runtime.robots.loader import DeviceOverrides

    procedure = ActuationProcedure(forward, turn, cycles)
    chosen = DeviceOverrides(referee=referee)
    options.run_calibration(procedure, robot, chosen, scene, seed, out, overwrite, view, valid_days)


def localization(
    out: options.Out,
    localizer: shared.Localizer = None,
    robot: shared.Robot = "sim",
    scene: shared.Scene = "apartment",
    start: Annotated[
        tuple[float, float, float] | None,
        typer.Option(metavar="X Y YAW", help="Where in map the robot stands when the drive begins: m, m, degrees."),
    ] = None,
    points: Annotated[
        Path | None, typer.Option(help="YAML of surveyed points to stand on, instead of a drive.")
    ] = None,
    lever: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="FORWARD LEFT", help="Where on the robot the mark sits, m. Default: solved for."),
    ] = None,
    overwrite: options.Overwrite = False,
    view: options.View = None,
    seed: options.Seed = 0,
    valid_days: options.ValidDays = options.VALID_DAYS,
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
    from robot_runtime.robots.loader import DeviceOverrides

    if (start is None) == (points is None):
        raise ConfigError("--start begins a drive and --points replaces it", "give one of them")
    surveyed = config.load(points, SurveyedPoints).points if points is not None else ()
    if points is not None and len(surveyed) < 3:
        raise ConfigError(f"{points}: {len(surveyed)} points, 3 are needed", "survey more, not all on one line")
    poses = [SE2(point.x_m, point.y_m, math.radians(point.yaw_deg)) for point in surveyed]
    x_m, y_m, yaw_deg = start or (0.0, 0.0, 0.0)
    procedure = LocalizationCalibration(SE2(x_m, y_m, math.radians(yaw_deg)), poses, lever)
    chosen = DeviceOverrides(localizer=localizer)
    options.run_calibration(procedure, robot, chosen, scene, seed, out, overwrite, view, valid_days)
