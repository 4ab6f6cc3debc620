"""``robot-runtime gap tune``: the simulator's settings that explain a robot's logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli_options import options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from robot_runtime.policy import PolicySource


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["gap"].command("tune")(tune)


@dataclass(frozen=True)
class SettingOptions:
    """Settings of the simulator to try."""

    robot: options.Robot = "sim"
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=V1,V2",
            help="Option of the simulated robot and values to try; repeatable, all combinations are tried. Default: "
            "sliding on and off, with 0, 0.5 and 1 times PyRobot's errors of actions.",
        ),
    ] = None
    refine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=LOW:HIGH",
            help="Search between these numbers for the most likely value, from the grid's most likely setting on; "
            "repeatable.",
        ),
    ] = None
    fitted: Annotated[
        list[str] | None,
        typer.Option(metavar="ROBOT", help="Another simulated robot to try, as it is: a fit's robot.yaml; repeatable."),
    ] = None


@dataclass(frozen=True)
class PlaceOptions:
    """The scene of the logs."""

    scene: Annotated[
        str | None, typer.Option(help="Scene folder or bundled scene. Default: the one that each log names.")
    ] = None
    any_scene_version: Annotated[
        bool, typer.Option("--any-scene-version", help="Accept a scene that was changed since the logs were written.")
    ] = False


@dataclass(frozen=True)
class ResultOptions:
    """Files that a study writes."""

    out: Annotated[
        Path, typer.Option(help="Folder for tuning.json, tuning.png, and finished work, to resume from.")
    ] = Path("tuning")
    json: options.Json = None
    keep_logs: Annotated[bool, typer.Option("--keep-logs", help="Keep the logs of all runs in OUT/logs.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Discard the finished work in --out.")] = False


OtherPolicies = Annotated[
    list[str] | None,
    typer.Option(
        metavar="AGENT=POLICY", help="Policy to run instead of the agent of that name in the logs; repeatable."
    ),
]


@grouped_options
def tune(
    *,
    real: Annotated[list[Path], typer.Argument(help="Logs of episodes on the robot, of any number of policies.")],
    tried: SettingOptions,
    policy: OtherPolicies = None,
    count: Annotated[int | None, typer.Option(min=1, help="Take the first so many different episodes.")] = None,
    likelihood_only: Annotated[
        bool, typer.Option("--likelihood-only", help="Run no policy: settings by likelihood, without correlations.")
    ] = False,
    place: PlaceOptions,
    result: ResultOptions,
    parallel: options.WorkerOptions,
) -> None:
    """Find the simulator's settings that explain the robot's logs and predict which policy is better on it.

    Examples:
        robot-runtime gap tune logs/real
        robot-runtime gap tune logs/real --vary contact.behaviour=stop,slide --vary camera.latency_s=0,0.05,0.1
        robot-runtime gap tune logs/real --fitted fit/robot.yaml --workers 8
        robot-runtime gap tune logs/real --likelihood-only --refine camera.mount_error.tilt_deg=-5:5
    """
    from robot_runtime.common.console import console, print_retry, progress_bar
    from robot_runtime.parallel.map import shared_ray
    from robot_runtime.recording.log_files import find_logs
    from sim_bridge.replay.options import SceneSource
    from sim_bridge.tuning.plot import write_plot
    from sim_bridge.tuning.progress import ProgressListener
    from sim_bridge.tuning.settings import Range, SweepOptions, make_grid
    from sim_bridge.tuning.sweep import sweep, write_tuning
    from sim_bridge.tuning.table import table

    ranges = [Range.parse(text) for text in tried.refine or ()]
    settings = make_grid(tried.robot, tried.vary or (), tried.fitted or (), study=not ranges)
    sweep_options = SweepOptions(
        SceneSource(place.scene, place.any_scene_version),
        dict(map(_policy, policy or ())),
        count,
        not likelihood_only,
        result.out / "logs" if result.keep_logs else None,
        ranges,
        result.out,
        result.overwrite,
    )
    workers = parallel.counted()
    with shared_ray(workers), progress_bar() as progress:
        bar = progress.add_task("starting", total=None, note="")

        def show(what: str, done: int, total: int) -> None:
            progress.update(bar, description=what, completed=done, total=total)

        tuning = sweep(find_logs(real), settings, sweep_options, workers, ProgressListener(show, print_retry))
    console.print(table(tuning))
    document, picture = result.out / "tuning.json", result.out / "tuning.png"
    write_tuning(document, tuning)
    if result.json is not None:
        write_tuning(result.json, tuning)
    write_plot(picture, tuning)
    console.print(f"{document}, {picture}", style="dim", soft_wrap=True)


def _policy(text: str) -> tuple[str, PolicySource]:
    from robot_runtime.policy import PolicySource

    agent, equals, spec = text.partition("=")
    if not (agent and equals and spec):
        raise ConfigError(f"--policy {text!r} is not AGENT=POLICY", "write it like --policy my-agent=my_policy.zip")
    return agent, PolicySource(spec)
