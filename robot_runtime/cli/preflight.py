"""``robot-runtime preflight``: whether this robot is the one that a policy was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli import completion, options

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


def preflight(
    policy: Annotated[
        str,
        typer.Option(
            help="Policy package (folder or zip), or an agent that ships.",
            metavar="POLICY",
            autocompletion=completion.agents,
        ),
    ] = "pointnav-depth",
    robot: options.Robot = "sim",
    camera: options.Camera = None,
    camera_arg: options.CameraArg = None,
    scene: options.Scene = "apartment",
    task: Annotated[
        str | None,
        typer.Option(
            help="Task preset or YAML file to run in. Default: the policy's own.", autocompletion=completion.tasks
        ),
    ] = None,
    actuation: Annotated[
        Path | None, typer.Option(help="File of `calibrate actuation`: where this robot's steps really end.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="PNG to write: what the policy expects beside what the robot sees.")
    ] = None,
    modes: Annotated[
        bool, typer.Option("--modes", help="Also list what each mode of the camera fills of the policy's image.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of simulated noise.")] = 0,
) -> None:
    """Compare the robot, as it is calibrated and as it sees, with the camera and steps of a policy's training.

    Nothing moves but the head. What differs beyond tolerance is refused with what it is expected to cost (exit code 9).

    Examples:

        robot-runtime preflight --policy my_policy.zip --robot my_robot.yaml --picture preflight.png

        robot-runtime preflight --policy pointnav-depth --camera azure-kinect
    """
    from contextlib import ExitStack

    from robot_runtime.common.console import console
    from robot_runtime.errors import ConfigError
    from robot_runtime.policies import load_policy
    from robot_runtime.preflight import checks
    from robot_runtime.robots.action_errors import load_actuation
    from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task

    with ExitStack() as stack:
        chosen_policy = load_policy(policy)
        stack.callback(chosen_policy.close)
        run_in = load_task(task) if task is not None else chosen_policy.task
        if run_in is None:
            raise ConfigError(f"policy {policy!r} was trained in no task that it names", "say which with --task")
        trained = chosen_policy.task or run_in
        chosen_scene = load_scene(find_scene(scene))
        context = RobotContext.of(trained, chosen_scene, [], seed)
        parts = DeviceOverrides(camera, camera_options=tuple(camera_arg or ()))
        connected = stack.enter_context(load_robot(robot, context, parts))
        seen = look_around(connected, trained, chosen_scene) if needs_images(chosen_policy.needs) else None
        measured = load_actuation(actuation) if actuation is not None else None
        found = checks.findings(chosen_policy.needs, trained, run_in, connected, seen, measured)
        print_findings(chosen_policy.name, connected, found)
        if modes:
            print_modes(connected.camera)
        if picture is not None and seen is not None:
            from robot_runtime.preflight.figure import draw

            draw(picture, chosen_policy.name, connected.name, trained.camera, connected.camera.info, seen)
            console.print(f"picture: {picture}", soft_wrap=True)
        checks.check_findings(chosen_policy.name, found)
        console.print("[green]this robot is what the policy was trained on[/]")


def needs_images(needs: Sequence[str]) -> bool:
    """Whether a policy of these sensors sees anything."""
    from robot_runtime.preflight.checks import IMAGES

    return bool(IMAGES & set(needs))


def look_around(robot: Robot, task: Task, scene: Scene) -> StartView:
    """What the robot sees with its head as at an episode's start; a simulated one is put on free floor first."""
    from robot_runtime.preflight.observe import observe_start, open_start_pose

    if robot.simulation is not None:
        robot.placer.place(open_start_pose(scene, robot.base.info.radius_m), task.camera.tilt_rad)
    return observe_start(robot, task.camera)


def print_modes(camera: Camera) -> None:
    """What each mode fills of the training camera's image, if the camera has modes."""
    from rich.table import Table

    from robot_runtime.common.console import console
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


def print_findings(policy: str, robot: Robot, found: Sequence[Finding]) -> None:
    """The table, and under it what each difference is expected to cost."""
    from rich.table import Table

    from robot_runtime.common.console import console

    marks = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "refused": "[red]refused[/]"}
    table = Table(title=f"{policy} on {robot.name}", title_justify="left", box=None, pad_edge=False)
    for heading in ("", "trained", "found", ""):
        table.add_column(heading)
    for one in found:
        table.add_row(one.what, one.trained, one.found, marks[one.verdict])
    console.print(table)
    for one in found:
        if one.verdict != "ok" and one.effect:
            console.print(f"{marks[one.verdict]} {one.what}: {one.effect}", soft_wrap=True)
