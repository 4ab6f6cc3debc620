"""``robot-runtime replay``: replay of logged episodes in simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli_options import completion, options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.errors import ConfigError

if TYPE_CHECKING:
    from robot_runtime.policy import PolicySource
    from sim_bridge.replay.options import ReplayOptions
    from sim_bridge.replay.results import Part
    from sim_bridge.replay.summary import ReplaySummary


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("replay")(replay)


def _simulators(incomplete: str) -> list[str]:
    others = ("ai2thor", "habitat", "recorded")
    return [*completion.robots(incomplete), *(name for name in others if name.startswith(incomplete))]


@dataclass(frozen=True)
class PartOptions:
    """Parts of a replay."""

    poses: Annotated[
        bool | None, typer.Option("--poses/--no-poses", help="Render the recorded poses: sensor against sensor.")
    ] = None
    actions: Annotated[
        bool | None, typer.Option("--actions/--no-actions", help="Carry out the recorded actions: path against path.")
    ] = None
    open_loop: Annotated[
        bool | None, typer.Option("--open-loop/--no-open-loop", help="Ask the policy about the recorded images.")
    ] = None
    closed_loop: Annotated[
        bool | None, typer.Option("--closed-loop/--no-closed-loop", help="Run the policy from the recorded start.")
    ] = None

    def chosen(self) -> tuple[Part, ...]:
        """The parts that are asked for; if none is, all that are not excluded. Raises ``ConfigError``."""
        options: dict[Part, bool | None] = {
            "pose": self.poses,
            "action": self.actions,
            "open": self.open_loop,
            "closed": self.closed_loop,
        }
        wanted = tuple(part for part, want in options.items() if want)
        wanted = wanted or tuple(part for part, want in options.items() if want is not False)
        if not wanted:
            raise ConfigError("every part of the replay is excluded", "leave out one of the --no options")
        return wanted


@dataclass(frozen=True)
class PolicyOptions:
    """The policy in place of the one that a log names."""

    policy: Annotated[
        str | None, typer.Option(help="Policy package or address, in place of the one that the log names.")
    ] = None
    agent: Annotated[
        str | None,
        typer.Option(help="Agent, in place of the policy that the log names.", autocompletion=completion.agents),
    ] = None
    agent_arg: options.AgentArg = None
    agent_python: options.AgentPython = None

    def source(self) -> PolicySource | None:
        """The policy, or None for the one that each log names. Raises ``ConfigError``."""
        if self.policy is not None and self.agent is not None:
            raise ConfigError("--policy and --agent exclude each other", "name one of them")
        spec = self.policy or self.agent
        if spec is not None:
            return options.AgentOptions(self.agent_python, None, self.agent_arg).source(spec)
        if self.agent_arg or self.agent_python is not None:
            raise ConfigError("--agent-arg and --agent-python are of a policy", "name it with --policy or --agent")
        return None


@dataclass(frozen=True)
class SimulatorOptions:
    """The simulator, its options and its scene."""

    into: Annotated[
        list[str] | None,
        typer.Option(
            help="Simulator: a robot's preset or YAML file, recorded (the log's own), habitat or ai2thor; repeat it to "
            "show several side by side. Default: sim.",
            autocompletion=_simulators,
        ),
    ] = None
    scene: Annotated[
        str | None,
        typer.Option(help="Scene folder or bundled scene. Default: the log's.", autocompletion=completion.scenes),
    ] = None
    any_scene_version: Annotated[
        bool, typer.Option("--any-scene-version", help="Accept another version of the scene than the recorded one.")
    ] = False
    twin_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Option of the simulator; repeatable. Of several: habitat.scene=lab.glb."
        ),
    ] = None

    def check(self) -> None:
        """Raise ``ConfigError`` or ``SceneError``, before the first log, for what is wrong for every log."""
        from robot_runtime.robots.loader import read_robot_file
        from robot_runtime.scenes.scene import find_scene
        from sim_bridge.replay.backends.mujoco import RECORDED
        from sim_bridge.replay.options import ADAPTERS

        for into in self.worlds():
            if into != RECORDED and into not in ADAPTERS:
                read_robot_file(into)
        if self.scene is not None:
            find_scene(self.scene)

    def worlds(self) -> dict[str, list[str]]:
        """The options of each simulator, by its name. Raises ``ConfigError``."""
        from sim_bridge.replay.options import world_name

        changes, simulators = self.twin_arg or [], self.into or ["sim"]
        names = {world_name(into): into for into in simulators}
        if len(names) < len(simulators):
            raise ConfigError(f"--into names a simulator twice: {', '.join(simulators)}", "name each once")
        if len(names) == 1:
            return dict.fromkeys(simulators, changes)
        for change in changes:
            if change.partition(".")[0] not in names:
                raise ConfigError(
                    f"--twin-arg {change}: is the option of none of {', '.join(names)}",
                    f"begin it with the simulator's name: {next(iter(names))}.{change}",
                )
        return {
            into: [change.partition(".")[2] for change in changes if change.partition(".")[0] == name]
            for name, into in names.items()
        }


@dataclass(frozen=True)
class ComparisonOptions:
    """Comparison of a replay with its log."""

    action_images: Annotated[
        bool, typer.Option("--action-images", help="Compare images where replayed actions lead, too.")
    ] = False
    forced: Annotated[
        bool, typer.Option("--forced", help="Also replay every action from the pose recorded before it.")
    ] = False
    within_m: Annotated[float, typer.Option(min=0.001, help="Distance beyond which paths have diverged.")] = 0.1
    within_deg: Annotated[float, typer.Option(min=0.01, help="Difference beyond which headings have diverged.")] = 10.0


@dataclass(frozen=True)
class ResultOptions:
    """Files that a replay writes."""

    out: Annotated[Path, typer.Option(help="Folder for pages, JSON files and closed loops' logs.")] = Path("replay")
    pages: Annotated[bool, typer.Option("--pages/--no-pages", help="Write a page per log.")] = True
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replay finished logs again; by default they are skipped.")
    ] = False
    json: options.Json = None


@grouped_options
def replay(
    *,
    logs: options.Logs,
    simulator: SimulatorOptions,
    parts: PartOptions,
    policy: PolicyOptions,
    comparison: ComparisonOptions,
    result: ResultOptions,
    parallel: options.WorkerOptions,
) -> None:
    """Replay logs in simulation and compare images, actions and decisions on a page with a time slider.

    Everything that a log allows is done by default; --poses, --actions, --open-loop or --closed-loop select parts,
    --no-poses and so on exclude them. Parts that cannot be done are reported, with the reason.

    Examples:
        robot-runtime replay logs/run/0000_lab_a.mcap --into sim
        robot-runtime replay logs/real --into fitted/robot.yaml --out replays --workers 8
        robot-runtime replay logs/real --into sim --scene scenes/lab --actions --forced
        robot-runtime replay logs/real --into sim --open-loop --policy my_new_policy.zip
        robot-runtime replay logs/real --into sim --twin-arg contact.behaviour=slide --closed-loop
        robot-runtime replay logs/real --into habitat --twin-arg scene=lab.glb
        robot-runtime replay logs/real --into sim --into habitat
    """
    from robot_runtime.common.console import error_console, print_retry, progress_bar, say
    from robot_runtime.recording.log_files import find_logs
    from sim_bridge.replay.batch import named, replay_logs, write_comparison, write_summaries

    simulator.check()
    chosen = _replay_options(simulator, parts, policy, comparison, result.out)
    jobs = named(find_logs(logs))
    worlds: dict[str, list[ReplaySummary]] = {}
    with progress_bar() as progress:
        bar = progress.add_task("replaying", total=len(jobs) * len(chosen), note="")

        def show(summary: ReplaySummary) -> None:
            progress.advance(bar)
            if summary.reason and len(jobs) == 1:  # the table of several logs has the reasons
                error_console.print(summary.failure, style="yellow", soft_wrap=True, markup=False)

        for one in chosen:
            worlds[one.into] = replay_logs(
                jobs, one, parallel.counted(), result.pages, result.overwrite, show, print_retry
            )
    _print_summaries(worlds, result.out)
    if result.json is not None:
        write_summaries(result.json, worlds)
    if len(chosen) > 1 and result.pages:
        write_comparison(result.out / "index.html", worlds)
        say(f"page: {result.out / 'index.html'}")
    else:
        _print_page(worlds[chosen[0].into], result.out, result.pages)
    if all(each.empty for summaries in worlds.values() for each in summaries):
        raise typer.Exit(1)


def _replay_options(
    simulator: SimulatorOptions, parts: PartOptions, policy: PolicyOptions, comparison: ComparisonOptions, out: Path
) -> list[ReplayOptions]:
    """The options of each simulator; of several, each has its own folder in ``out``."""
    from robot_runtime.robots.loader import changed_options
    from sim_bridge.replay.options import ReplayOptions, world_name
    from sim_bridge.replay.results import Thresholds

    worlds = simulator.worlds()
    return [
        ReplayOptions(
            into=into,
            twin_options=changed_options({}, changes),
            parts=parts.chosen(),
            scene=simulator.scene,
            any_scene_version=simulator.any_scene_version,
            images=comparison.action_images,
            forced=comparison.forced,
            policy=policy.source(),
            out=out if len(worlds) == 1 else out / world_name(into),
            thresholds=Thresholds(comparison.within_m, comparison.within_deg),
        )
        for into, changes in worlds.items()
    ]


def _print_summaries(worlds: Mapping[str, Sequence[ReplaySummary]], out: Path) -> None:
    from robot_runtime.common.console import console
    from sim_bridge.replay import tables
    from sim_bridge.replay.results import read_replay

    summaries = next(iter(worlds.values()))
    if len(worlds) > 1:
        console.print(tables.several(worlds), crop=False)
    elif len(summaries) > 1:
        console.print(tables.many(summaries), crop=False)
    elif not summaries[0].reason:
        console.print(tables.one(read_replay(out / f"{summaries[0].name}.json")), crop=False)


def _print_page(summaries: Sequence[ReplaySummary], out: Path, pages: bool) -> None:
    from robot_runtime.common.console import say

    if pages and not all(summary.reason for summary in summaries):
        page = out / ("index.html" if len(summaries) > 1 else f"{summaries[0].name}.html")
        say(f"page: {page}")
