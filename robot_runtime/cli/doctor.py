"""``robot-runtime doctor``: libraries, permissions and devices of this computer, and a complete robot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from robot_runtime.cli_options import options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.common.clock import utc_now_iso
from robot_runtime.common.console import console
from robot_runtime.errors import CalibrationError, DeviceFault

if TYPE_CHECKING:
    from robot_runtime.common.host_checks import Finding
    from robot_runtime.robots.loader import DeviceOverrides


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("doctor")(doctor)


@grouped_options
def doctor(
    *,
    subjects: Annotated[
        list[str] | None, typer.Argument(help="What to look at, e.g. azure-kinect; all by default.", show_default=False)
    ] = None,
    robot: Annotated[
        str | None, typer.Option(help="Robot whose devices to check: a preset, or a YAML file.", show_default=False)
    ] = None,
    camera: options.Camera = None,
    localizer: options.Localizer = None,
    referee: options.Referee = None,
    scene: options.Scene = "apartment",
    json: options.Json = None,
) -> None:
    """Check driver dependencies and suggest fixes, or check a complete robot with --robot.

    With --robot it connects every device and reads it: rates, battery, servos, images, poses, age of calibrations.
    Nothing moves. Exits with 7 if the robot, or a subject that was named, fails; without names, it only tells, and
    absent devices are one line.

    Examples:
        robot-runtime doctor
        robot-runtime doctor computer hardware
        robot-runtime doctor --robot my_robot.yaml --localizer fused-marvelmind
    """
    from robot_runtime.common.host_checks import NO_DEVICES, Status, examine
    from robot_runtime.recording.json_output import write_json
    from robot_runtime.robots.loader import DeviceOverrides

    everything: dict[str, Sequence[Finding]] = {}
    if robot is not None:
        found = robot_findings(robot, DeviceOverrides(camera, localizer, referee), scene)
        everything[f"robot {robot}"] = show(f"robot {robot}", found)
    absent = []
    if robot is None or subjects:
        for subject, results in examine(subjects or ()).items():
            if not subjects and subject not in NO_DEVICES:
                if any(finding.absent for finding in results):
                    absent.append(subject)
                    continue
                results = [replace(one, status=Status.WARN) if one.status is Status.FAIL else one for one in results]
            everything[subject] = show(subject, results)
    if absent:
        why = f"[bold]not here[/]\n  {', '.join(absent)}; `robot-runtime doctor {absent[0]}` says what it needs"
        console.print(why, soft_wrap=True)
    write_json(json, {**everything, "not here": absent})
    failed = [one.what for findings in everything.values() for one in findings if one.status is Status.FAIL]
    if failed and (robot or subjects):
        raise DeviceFault(f"doctor: failed: {', '.join(failed)}", "follow the remedies above")


def robot_findings(robot: str, chosen: DeviceOverrides, scene: str) -> Iterable[Finding]:
    """Check a robot's calibrations and devices. Raises ``ConfigError`` for a bad file or option."""
    from robot_runtime.common.host_checks import Finding, Status
    from robot_runtime.preflight.devices import check_calibrations, check_devices
    from robot_runtime.robots.loader import RobotContext, build_robot, read_robot_file
    from robot_runtime.scenes.scene import find_scene, load_scene

    path, file = read_robot_file(robot, chosen)
    yield from check_calibrations(asdict(file), file.name, utc_now_iso())
    try:
        built = build_robot(file, str(path), RobotContext(load_scene(find_scene(scene)), None, seed=0), chosen)
    except CalibrationError as error:
        yield Finding("robot", Status.FAIL, error.message, error.remedy)
        return
    yield from check_devices(built)


def show(subject: str, found: Iterable[Finding]) -> list[Finding]:
    """Print findings as they come, and return them."""
    from robot_runtime.common.host_checks import Status

    marks = {Status.OK: "[green]ok[/]  ", Status.WARN: "[yellow]warn[/]", Status.FAIL: "[red]fail[/]"}
    console.print(f"[bold]{escape(subject)}[/]", soft_wrap=True)
    shown = []
    for finding in found:
        shown.append(finding)
        # Details and remedies name extras, robot-runtime[sim], which are not markup.
        what, detail = escape(finding.what), escape(finding.detail)
        console.print(f"  {marks[finding.status]}  {what}: {detail}", soft_wrap=True)
        if finding.remedy:
            console.print(f"      remedy: {escape(finding.remedy)}", soft_wrap=True)
    return shown
