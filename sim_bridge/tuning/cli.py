"""``robot-runtime gap tune``: the simulator's settings that explain a robot's logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli import options
from robot_runtime.cli.option_groups import grouped_options
from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from rich.progress import Progress

    from robot_runtime.parallel.workers import WorkerLoss
    from robot_runtime.policy import PolicySource
    from sim_bridge.tuning.progress import ProgressListener
    from sim_bridge.tuning.refinement import Range
    from sim_bridge.tuning.results import Tuning
    from sim_bridge.tuning.settings import Setting


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

    def ranges(self) -> list[Range]:
        """The ranges to refine. Raises ``ConfigError``."""
        from sim_bridge.tuning.refinement import Range

        return [Range.parse(text) for text in self.refine or ()]

    def grid(self, study: bool) -> Sequence[Setting]:
        """The settings to try; with ``study``, the default ones if none are given. Raises ``ConfigError``."""
        from sim_bridge.tuning.settings import make_grid

        return make_grid(self.robot, self.vary or (), self.fitted or (), study=study)


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
    keep_logs: Annotated[bool, typer.Option("--keep-logs", help="Keep the logs of all runs in OUT/logs.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Discard the finished work in --out.")] = False


@grouped_options
def tune(
    *,
    real: Annotated[list[Path], typer.Argument(help="Logs of episodes on the robot, of any number of policies.")],
    tried: SettingOptions,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AGENT=POLICY", help="Policy to run instead of the agent of that name in the logs; repeatable."
        ),
    ] = None,
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
    from robot_runtime.common.console import progress_bar
    from robot_runtime.parallel.map import shared_ray
    from robot_runtime.scoring.summary import find_logs
    from sim_bridge.replay.scene_source import SceneSource
    from sim_bridge.tuning.sweep import SweepOptions, sweep

    ranges = tried.ranges()
    settings = tried.grid(study=not ranges)
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
        tuning = sweep(find_logs(real), settings, sweep_options, workers, _bar(progress))
    _write(result.out, tuning)


def _write(out: Path, tuning: Tuning) -> None:
    """Print the table; write the results and their plot."""
    from robot_runtime.common.console import console
    from sim_bridge.tuning.plot import write_plot
    from sim_bridge.tuning.results import write_tuning
    from sim_bridge.tuning.table import table

    console.print(table(tuning))
    write_tuning(out / "tuning.json", tuning)
    write_plot(out / "tuning.png", tuning)
    console.print(f"{out / 'tuning.json'}, {out / 'tuning.png'}", style="dim", soft_wrap=True)


def _bar(progress: Progress) -> ProgressListener:
    from robot_runtime.common.console import print_retry
    from sim_bridge.tuning.progress import ProgressListener

    bar = progress.add_task("starting", total=None, note="")

    class Bar(ProgressListener):
        def on_step(self, what: str, done: int, total: int) -> None:
            progress.update(bar, description=what, completed=done, total=total)

        def on_retry(self, log: Path, how: WorkerLoss) -> None:
            print_retry(log, how)

    return Bar()


def _policy(text: str) -> tuple[str, PolicySource]:
    from robot_runtime.policy import PolicySource

    agent, equals, spec = text.partition("=")
    if not (agent and equals and spec):
        raise ConfigError(f"--policy {text!r} is not AGENT=POLICY", "write it like --policy my-agent=my_policy.zip")
    return agent, PolicySource(spec)
