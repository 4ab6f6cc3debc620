"""``robot-runtime place``: the robot at an episode's start, pushed by hand or driven by itself."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli_options import options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.common.console import error_console, say
from robot_runtime.errors import ConfigError, PlacementFailed

if TYPE_CHECKING:
    from robot_runtime.common.geometry import SE2
    from robot_runtime.hal import Placer, Robot
    from robot_runtime.placement.guide import Guide
    from robot_runtime.placement.offset import Tolerance
    from robot_runtime.records import Placement
    from robot_runtime.scenes.scene import Scene
    from robot_runtime.tasks.episode import Episode
    from robot_runtime.tasks.task import Task

STAND_S = 1.0
"""Seconds for which the pose of the placed robot is measured."""

_HELP = """Bring the robot to where an episode begins, with the error shown live; `run` then starts from there.

A person pushes or carries the robot and sees how far off it is, or with --drive it drives there itself, around what the
map knows of: any contact stops it and ends the placement. It is placed once it stands within the tolerance, at rest.
`run` asks for the same when it needs to, and logs where the robot really stood.

Examples:
    robot-runtime place --robot my_robot.yaml --scene scenes/lab --episodes val.json.gz --episode 3
    robot-runtime place --robot my_robot.yaml --scene scenes/lab --localizer fused-marvelmind --drive --within-m 0.03
    robot-runtime place --drive --begin 2.0 1.5 90
"""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("place", help=_HELP)(place)


@dataclass(frozen=True)
class ChosenEpisode:
    """The episode to whose start the robot is brought."""

    episodes: Annotated[
        Path | None, typer.Option(help="Episode file. Without it, the episodes that `run` would generate.")
    ] = None
    episode: Annotated[str, typer.Option(help="Which one: its number in the file, from 0, or its id.")] = "0"

    def find(self, seed: int, task: Task, scene: Scene) -> Episode:
        """The episode of that number or id. Raises ``EpisodeError``."""
        return options.EpisodeOptions(self.episodes, episode=self.episode).choose(seed, task, scene)[0]


@dataclass(frozen=True)
class ToleranceOptions:
    """Accuracy of the placement, and its time limit."""

    within_m: Annotated[float, typer.Option(help="How near is near enough.")] = 0.05
    within_deg: Annotated[float, typer.Option(help="How well turned is well enough.")] = 5.0
    timeout_s: Annotated[float, typer.Option(help="Seconds that it may take.")] = 300.0

    def tolerance(self) -> Tolerance:
        """The tolerance. Raises ``ConfigError`` for a value that is not positive."""
        from robot_runtime.placement.offset import Tolerance

        values = {"--within-m": self.within_m, "--within-deg": self.within_deg, "--timeout-s": self.timeout_s}
        for option, value in values.items():
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"{option} {value} is not positive and finite", "give a positive number")
        return Tolerance(self.within_m, self.within_deg, self.timeout_s)


@grouped_options
def place(
    *,
    robot: options.LocalizedRobotOptions,
    scene: options.Scene = "apartment",
    task: options.Task = options.DEFAULT_TASK,
    chosen: ChosenEpisode,
    drive: Annotated[bool, typer.Option("--drive", help="The robot drives itself.")] = False,
    accuracy: ToleranceOptions,
    begin: Annotated[
        tuple[float, float, float] | None,
        typer.Option(
            metavar="X Y YAW",
            help="Where a simulated robot stands before it drives: m, m, degrees. Default: where most room is.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of episodes and simulated noise.")] = 0,
    real_time: options.RealTime = False,
) -> None:
    """Run the command; its help is ``_HELP``."""
    from robot_runtime.common.geometry import SE2
    from robot_runtime.robots.loader import RobotContext
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    tolerance = accuracy.tolerance()
    place_in, run_in = load_scene(find_scene(scene)), load_task(task)
    episode = chosen.find(seed, run_in, place_in)
    with robot.load(RobotContext.of(run_in, place_in, [episode], seed, real_time)) as connected:
        connected.clock.sleep(1.0)  # until every source of poses has reported
        if drive and connected.simulation is not None:
            x_m, y_m, yaw_deg = begin or (*place_in.map.most_open_point(), 0.0)
            connected.placer.place(SE2(x_m, y_m, math.radians(yaw_deg)), 0.0)
        tilt_rad = run_in.camera.tilt_rad if episode.start_tilt_rad is None else episode.start_tilt_rad
        placed = _bring_to_start(connected, place_in, episode.start, tilt_rad, drive, tolerance)
    if placed is None:
        raise PlacementFailed(
            f"episode {episode.id}: no localizer reports the robot's pose", "name a --localizer or --referee that does"
        )
    say(f"episode {episode.id}: the robot stands {placed}")


def _bring_to_start(
    robot: Robot, scene: Scene, start: SE2, tilt_rad: float, drive: bool, tolerance: Tolerance
) -> Placement | None:
    """Place the robot and measure where it stands; None if no localizer reports a pose."""
    from robot_runtime.cli.place_view import LiveGuide
    from robot_runtime.placement.guide import Guide
    from robot_runtime.placement.measured import placement

    with ExitStack() as stack:
        guide = stack.enter_context(LiveGuide(error_console)) if error_console.is_terminal else Guide()
        placer = _placer(robot, scene, drive, tolerance, guide)
        placer.place(start, tilt_rad)
        stood_ns = robot.clock.now_ns()
        robot.clock.sleep(STAND_S)
        return placement(replace(robot, placer=placer), start, stood_ns)


def _placer(robot: Robot, scene: Scene, drive: bool, tolerance: Tolerance, guide: Guide) -> Placer:
    from robot_runtime.placement.driving import DrivingPlacer
    from robot_runtime.placement.placer import OperatorPlacer

    parts = (robot.clock, robot.base, robot.head, robot.localizer, robot.referee, tolerance, guide)
    if drive:
        return DrivingPlacer(*parts, scene.map, robot.motion)
    return OperatorPlacer(*parts) if robot.simulation is None else robot.placer
