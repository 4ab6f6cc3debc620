"""``robot-runtime place``: the robot to an episode's start, by hand or by its own wheels."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli import completion, options
from robot_runtime.errors import ConfigError, EpisodeError, PlacementFailed

if TYPE_CHECKING:
    from robot_runtime.hal import Placer, Robot
    from robot_runtime.placement.guide import Guide
    from robot_runtime.placement.offset import Tolerance
    from robot_runtime.scenes.scene import Scene
    from robot_runtime.tasks.episode import Episode

STAND_S = 1.0
"""For how long the robot is measured where it was left."""

_HELP = """Bring the robot to where an episode begins, with the error shown live; `run` then starts from there.

A person pushes or carries the robot and sees how far off it is, or with --drive it drives there itself, around what the
map knows of: any contact stops it and ends the placement. It is placed once it stands within the tolerance, at rest.
`run` asks for the same when it needs to, and logs where the robot really stood.

Examples:

    robot-runtime place --robot my_robot.yaml --scene scenes/lab --episodes val.json.gz --episode 3

    robot-runtime place --robot my_robot.yaml --scene scenes/lab --localizer fused-marvelmind --drive --within-cm 3

    robot-runtime place --drive --begin 2.0 1.5 90
"""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("place", help=_HELP)(place)


def place(
    robot: options.Robot = "sim",
    localizer: options.Localizer = None,
    referee: options.Referee = None,
    scene: options.Scene = "apartment",
    task: Annotated[
        str, typer.Option(help="Task preset (launch/tasks) or YAML file.", autocompletion=completion.tasks)
    ] = "pointnav_gps_compass",
    episodes: Annotated[
        Path | None, typer.Option(help="Episode file. Without it, the episodes that `run` would generate.")
    ] = None,
    episode: Annotated[str, typer.Option(help="Which one: its number in the file, from 0, or its id.")] = "0",
    drive: Annotated[bool, typer.Option("--drive", help="The robot drives itself.")] = False,
    within_cm: Annotated[float, typer.Option(help="How near is near enough.")] = 5.0,
    within_deg: Annotated[float, typer.Option(help="How well turned is well enough.")] = 5.0,
    timeout_s: Annotated[float, typer.Option("--timeout", help="Seconds that it may take.")] = 300.0,
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
    from robot_runtime.cli.place_view import LiveGuide
    from robot_runtime.cli.run import choose_episodes
    from robot_runtime.common.console import console, error_console
    from robot_runtime.common.geometry import SE2
    from robot_runtime.placement.guide import Guide
    from robot_runtime.placement.measured import placement
    from robot_runtime.placement.offset import Tolerance
    from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    for option, value in (("--within-cm", within_cm), ("--within-deg", within_deg), ("--timeout", timeout_s)):
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"{option} {value} is no tolerance", "give a positive number")
    tolerance = Tolerance(within_cm / 100, within_deg, timeout_s)
    chosen_task, chosen_scene = load_task(task), load_scene(find_scene(scene))
    count = int(episode) + 1 if episode.isdecimal() and episodes is None else None
    chosen = _find(choose_episodes(episodes, count, seed, chosen_task, chosen_scene, None), episode)
    context = RobotContext.of(chosen_task, chosen_scene, [chosen], seed, real_time)
    with ExitStack() as stack:
        connected = stack.enter_context(load_robot(robot, context, DeviceOverrides(None, localizer, referee)))
        connected.clock.sleep(1.0)  # until every source has said something
        if drive and connected.simulation is not None:
            x_m, y_m, yaw_deg = begin or (*chosen_scene.map.most_open_point(), 0.0)
            connected.placer.place(SE2(x_m, y_m, math.radians(yaw_deg)), 0.0)
        guide = stack.enter_context(LiveGuide(error_console)) if error_console.is_terminal else Guide()
        placer = _placer(connected, chosen_scene, drive, tolerance, guide)
        tilt_rad = chosen_task.camera.tilt_rad if chosen.start_tilt_rad is None else chosen.start_tilt_rad
        placer.place(chosen.start, tilt_rad)
        stood_ns = connected.clock.now_ns()
        connected.clock.sleep(STAND_S)
        placed = placement(replace(connected, placer=placer), chosen.start, stood_ns)
    if placed is None:
        raise PlacementFailed(
            f"episode {chosen.id}: nobody sees where the robot stands", "name a --localizer or --referee that does"
        )
    console.print(f"episode {chosen.id}: the robot stands {placed}", soft_wrap=True, markup=False)


def _placer(robot: Robot, scene: Scene, drive: bool, tolerance: Tolerance, guide: Guide) -> Placer:
    from robot_runtime.placement.driving import DrivingPlacer
    from robot_runtime.placement.operator import OperatorPlacer

    parts = (robot.clock, robot.base, robot.head, robot.localizer, robot.referee, tolerance, guide)
    if drive:
        return DrivingPlacer(*parts, occupancy=scene.map)
    return OperatorPlacer(*parts) if robot.simulation is None else robot.placer


def _find(episodes: list[Episode], which: str) -> Episode:
    """The episode of a number or an id. Raises ``EpisodeError``."""
    named = [episode for episode in episodes if episode.id == which]
    if named:
        return named[0]
    if which.isdecimal() and int(which) < len(episodes):
        return episodes[int(which)]
    raise EpisodeError(
        f"there is no episode {which!r} among {len(episodes)}", "give its number, from 0, or its id as in the file"
    )
