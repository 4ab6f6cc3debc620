"""``robot-runtime preflight``: comparison of a robot with the one that a policy was trained on."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from robot_runtime.cli_options import completion, options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.common.console import console, say
from robot_runtime.errors import ConfigError, DeviceFault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robot_runtime.hal import Camera, Robot
    from robot_runtime.preflight.checks import Finding
    from robot_runtime.preflight.observe import StartView
    from robot_runtime.scenes.scene import Scene
    from robot_runtime.tasks.task import Task


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("preflight")(preflight)


TaskToRunIn = Annotated[
    str | None,
    typer.Option(
        help="Task preset or YAML file to run in. Default: the policy's own.", autocompletion=completion.tasks
    ),
]


@dataclass(frozen=True)
class OutputOptions:
    """Results in addition to the table of findings."""

    picture: Annotated[
        Path | None, typer.Option(help="PNG to write: what the policy expects next to what the robot sees.")
    ] = None
    json: options.Json = None
    html: Annotated[
        Path | None,
        typer.Option(help="Page to write: every difference from the training, what it costs, and who says so."),
    ] = None
    modes: Annotated[
        bool, typer.Option("--modes", help="Also list what each mode of the camera fills of the policy's image.")
    ] = False


@grouped_options
def preflight(
    *,
    policy: Annotated[
        str,
        typer.Option(
            help="Policy package, or an agent that ships.", metavar="POLICY", autocompletion=completion.agents
        ),
    ] = "pointnav-depth",
    robot: options.CameraRobotOptions,
    scene: options.Scene = "apartment",
    task: TaskToRunIn = None,
    actuation: Annotated[
        Path | None, typer.Option(help="File of `calibrate actuation`: where this robot's steps really end.")
    ] = None,
    output: OutputOptions,
    seed: Annotated[int, typer.Option(min=0, help="Of simulated noise.")] = 0,
) -> None:
    """Check the robot's calibration and camera against the policy's training setup.

    Nothing moves but the head. What differs beyond tolerance is refused with what it is expected to cost (exit code 9),
    and so is a robot that cannot be connected or read, or whose battery is too low (exit code 7).

    Examples:
        robot-runtime preflight --policy my_policy.zip --robot my_robot.yaml --picture preflight.png
        robot-runtime preflight --policy pointnav-depth --camera azure-kinect
    """
    from robot_runtime.policies import load_policy
    from robot_runtime.preflight import checks, page
    from robot_runtime.robots.action_errors import load_actuation
    from robot_runtime.robots.loader import RobotContext
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    with ExitStack() as stack:
        loaded = stack.enter_context(closing(load_policy(policy)))
        run_in = load_task(task) if task is not None else loaded.task
        if run_in is None:
            raise ConfigError(f"policy {policy!r} names no task that it was trained in", "name one with --task")
        trained = loaded.task or run_in
        place = load_scene(find_scene(scene))
        steps = load_actuation(actuation) if actuation is not None else None
        try:
            connected = stack.enter_context(robot.load(RobotContext.of(trained, place, [], seed)))
            run_in.check_base(connected.base.info)
            view = look_around(connected, trained, place) if checks.IMAGES & set(loaded.needs) else None
            found = checks.findings(loaded.needs, trained, run_in, connected, view, steps)
            shown = [*found, checks.after_contact(connected), checks.battery(connected)]
        except DeviceFault as fault:
            print_findings(loaded.name, robot.robot, [checks.faulty(fault)], output.json)
            raise
        print_findings(loaded.name, connected.name, shown, output.json)
        if output.html is not None:
            rows = [*shown, *page.deployment(loaded.needs, trained, run_in, connected)]
            page.write_page(output.html, loaded.name, trained.name, connected.name, rows)
            say(f"page: {output.html}")
        _show_camera(output, loaded.name, connected, trained, view)
        checks.check_findings(loaded.name, found)
        connected.check_ready()
        console.print("[green]this robot is what the policy was trained on[/]")


def _show_camera(output: OutputOptions, policy: str, robot: Robot, trained: Task, view: StartView | None) -> None:
    if output.modes:
        print_modes(robot.camera)
    if output.picture is not None and view is not None:
        from robot_runtime.preflight.figure import draw

        draw(output.picture, policy, robot.name, trained.camera, robot.camera.info, view)
        say(f"picture: {output.picture}")


def look_around(robot: Robot, task: Task, scene: Scene) -> StartView:
    """View of the robot with its head as at an episode's start; a simulated robot is put on free floor first."""
    from robot_runtime.preflight.observe import observe_start, open_start_pose

    if robot.simulation is not None:
        robot.placer.place(open_start_pose(scene, robot.base.info.radius_m), task.camera.tilt_rad)
    return observe_start(robot, task.camera)


def print_modes(camera: Camera) -> None:
    """Share of the training camera's image that each mode of the camera fills, if it has modes."""
    from robot_runtime.imaging.camera import SourceCamera

    if not isinstance(camera, SourceCamera):
        console.print("this camera delivers the policy's image itself and has no modes")
        return
    used = {(mode.sensor, mode.name) for mode in (camera.source.color_mode, camera.source.depth_mode)}
    k = camera.info.intrinsics
    title = f"{camera.source.name}: of {k.width}x{k.height} at {k.hfov_deg:.1f}°"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("sensor", "mode", "fills", "middle row", "middle column", "range", "rate", ""):
        table.add_column(heading, justify="left" if heading in ("sensor", "mode", "") else "right")
    for part in camera.coverage(camera.source.modes):
        mode = part.mode
        table.add_row(
            mode.sensor,
            mode.name,
            *(f"{100 * share:.1f} %" for share in (part.fraction, part.columns, part.rows)),
            f"{mode.min_m:g}-{mode.max_m:g} m" if mode.sensor == "depth" else "",
            f"{mode.rate_hz:g} Hz",
            "in use" if (mode.sensor, mode.name) in used else "" if part.enough else "too little",
        )
    console.print(table)


def print_findings(policy: str, robot: str, found: Sequence[Finding], json: Path | None) -> None:
    """The table, and under it what each difference is expected to cost; the findings as JSON if a file is given."""
    from robot_runtime.recording.json_output import write_json

    write_json(json, {"policy": policy, "robot": robot, "findings": found})

    marks = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "refused": "[red]refused[/]"}
    table = Table(title=f"{policy} on {robot}", title_justify="left", box=None, pad_edge=False)
    for heading in ("", "trained", "found", ""):
        table.add_column(heading)
    for one in found:
        table.add_row(one.what, one.trained, one.found, marks[one.status])
    console.print(table)
    for one in found:
        if one.status != "ok" and one.effect:
            console.print(f"{marks[one.status]} {one.what}: {one.effect}", soft_wrap=True)
