"""``robot-runtime calibrate odometry``, ``motors``, ``actuation`` and ``localization``: motion and poses of a robot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from calibration import options
from robot_runtime.cli import options as shared
from robot_runtime.cli.option_groups import grouped_options
from robot_runtime.errors import ConfigError

ROUNDS = 5
"""Rounds of a drive. One is held out; from four the scales of a Kobuki are known to 0.2 % each."""

CYCLES = 40
"""Repetitions of an action. Without the held-out quarter they give a standard deviation to 13 %."""


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

    procedure = OdometryProcedure(heading.value, wheel_radius_m, wheel_separation_m, rounds)
    run.calibrate(procedure, robot)


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
    cycles: Annotated[int, typer.Option(min=12, help="How often each action is carried out.")] = CYCLES,
) -> None:
    """Measure where discrete actions really end, for a simulated robot that errs in the same way.

    In its YAML: 'action_noise: {model: fitted, file: actuation.yaml}' under 'options'.

    Example:
        robot-runtime calibrate actuation --robot sim-noisy --out actuation.yaml
    """
    from calibration.motion.action_errors import ActuationProcedure

    procedure = ActuationProcedure(forward_m, turn_deg, cycles)
    run.calibrate(procedure, robot)


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
