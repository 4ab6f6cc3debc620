"""``robot-runtime run``: episodes on a robot, logged and scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli import completion, options
from robot_runtime.cli.option_groups import grouped_options
from robot_runtime.cli.options import DEFAULT_TASK
from robot_runtime.cli.stop import stop_keys, tell
from robot_runtime.errors import RecordingError, RuntimeFault

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from robot_runtime.env import Env
    from robot_runtime.hal import Robot
    from robot_runtime.policy import Policy
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.records import EpisodeHeader, StepRecord, Subscriber
    from robot_runtime.robots.loader import RobotContext
    from robot_runtime.tasks.episode import Episode
    from robot_runtime.tasks.task import Task

_HELP = """Run episodes and print their scores; every episode becomes one log in --out.

Examples:
    robot-runtime run
    robot-runtime run --agent goal-follower --count 20
    robot-runtime run --task objectnav_habitat2020 --agent oracle --scene scenes/house
    robot-runtime run --policy my_policy.zip --agent-arg selection=argmax
    robot-runtime run --task objectnav_robothor2021 --policy robothor:agents/random_agent.py --agent-python venv
    robot-runtime run --policy ws://gpu-machine:8000
    robot-runtime run --episodes val.json.gz --episode 3
    robot-runtime run --task objectnav_habitat2020 --sensor semantic
    robot-runtime run --episodes val.json.gz --agent my_package.agents:MyAgent --agent-arg checkpoint=policy.onnx
    robot-runtime run --robot my_robot.yaml --real-time
"""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("run", help=_HELP)(run)


@dataclass(frozen=True)
class TaskOptions:
    """The task, and sensors besides its own."""

    task: Annotated[
        str | None,
        typer.Option(
            help="Task preset (launch/tasks) or YAML file. Default: the policy's own, else pointnav_gps_compass.",
            autocompletion=completion.tasks,
        ),
    ] = None
    sensor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", autocompletion=completion.sensors, help="Sensor that the agent gets besides the task's."
        ),
    ] = None

    def load(self, policy: Policy) -> Task:
        """The task, by default the policy's own. Raises ``ConfigError``."""
        from robot_runtime.tasks.task import load_task, with_sensors

        own = policy.task if self.task is None else None
        return with_sensors(own or load_task(self.task or DEFAULT_TASK), self.sensor or ())


@grouped_options
def run(
    *,
    robot: options.RobotOptions,
    scene: options.Scene = "apartment",
    task: TaskOptions,
    policy: options.PolicyOptions,
    agent: options.AgentOptions,
    episodes: options.EpisodeOptions,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What logs call the agent: two variants of one become two policies."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of episodes, agent and simulated noise.")] = 0,
    output: options.LogOptions,
    real_time: options.RealTime = False,
    localization_patience_s: options.LocalizationPatience = 30.0,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="After an episode that cannot be read or run, go on with the next.")
    ] = False,
) -> None:
    """Run the command; its help is ``_HELP``."""
    from robot_runtime.env import Env
    from robot_runtime.policies.stepping import check_policy
    from robot_runtime.robots.loader import RobotContext
    from robot_runtime.scenes.scene import find_scene, load_scene

    failures: list[RuntimeFault] | None = [] if keep_going else None
    with ExitStack() as stack:
        loaded = stack.enter_context(closing(policy.load(agent, task.task or DEFAULT_TASK)))
        run_in = task.load(loaded)
        place = load_scene(find_scene(scene))
        check_policy(loaded, run_in)
        chosen = episodes.choose(seed, run_in, place, failures)
        folder = output.folder(name or policy.agent or loaded.name, run_in.name)
        config, context = robot.config(), RobotContext.of(run_in, place, chosen, seed, real_time)
        connected, recorder = stack.enter_context(recorded_robot(robot, context, folder))
        bar = stack.enter_context(_episode_bar(len(chosen), run_in.max_steps))
        env = Env(
            connected,
            run_in,
            place,
            (recorder, bar.subscriber()),
            seed=seed,
            robot_config=config,
            dataset=episodes.dataset,
            localization_patience_s=localization_patience_s,
        )
        _run_episodes(stack.enter_context(env), loaded, chosen, seed, name, bar, failures)
    _print_outcome(folder, bar.begun, failures or [])


@contextmanager
def recorded_robot(
    robot: options.RobotOptions, context: RobotContext, folder: Path
) -> Iterator[tuple[Robot, Recorder]]:
    """Connect a robot and record to a folder, whose name is printed at the end if a log is in it."""
    from robot_runtime.common.console import error_console
    from robot_runtime.recording.writer import Recorder

    with ExitStack() as stack:
        connected = stack.enter_context(robot.load(context))
        stack.enter_context(stop_keys(connected))
        recorder = Recorder(folder)
        stack.callback(recorder.close)
        try:
            yield connected, recorder
        finally:
            if recorder.path is not None:
                error_console.print(f"logs: {folder}", soft_wrap=True)


class _EpisodeBar:
    """Progress over episodes, and over the steps of the current one."""

    def __init__(self, progress: Progress, bar: TaskID, max_steps: int) -> None:
        self._progress, self._bar, self._max_steps = progress, bar, max_steps
        self._finished = 0
        self.begun = 0

    def finish_episode(self) -> None:
        """Count an episode."""
        self._finished += 1
        self._progress.update(self._bar, completed=self._finished)

    def subscriber(self) -> Subscriber:
        """A subscriber to an environment's steps that shows them, and counts the episodes that have begun."""
        from robot_runtime.records import Subscriber

        class Steps(Subscriber):
            def on_episode_start(_, header: EpisodeHeader) -> None:  # noqa: N805 (self is the bar)
                self.begun += 1

            def on_step(_, record: StepRecord) -> None:  # noqa: N805 (self is the bar)
                completed = self._finished + record.index / self._max_steps
                note = f"step {record.index} · battery {record.base.battery}"
                self._progress.update(self._bar, completed=completed, note=note)

        return Steps()


@contextmanager
def _episode_bar(count: int, max_steps: int) -> Iterator[_EpisodeBar]:
    from robot_runtime.common.console import progress_bar

    with progress_bar() as progress:
        yield _EpisodeBar(progress, progress.add_task("episodes", total=count, note=""), max_steps)


def _run_episodes(
    env: Env,
    policy: Policy,
    episodes: Sequence[Episode],
    seed: int,
    name: str | None,
    bar: _EpisodeBar,
    failures: list[RuntimeFault] | None,
) -> None:
    """Run episodes; errors go to ``failures``, or end the run if that is None."""
    from robot_runtime.common.console import error_console
    from robot_runtime.runtime import run_episode
    from robot_runtime.servers.emergency_stop import wait_for_release

    for index, episode in enumerate(episodes):
        try:
            if index:  # by then the base has reported its state
                wait_for_release(env.robot, tell)
            run_episode(env, policy, episode, seed + index, name or None)
        except RuntimeFault as error:
            if failures is None:
                raise
            failures.append(error)
        except KeyboardInterrupt:
            where = f"episode {index + 1} of {len(episodes)}"
            error_console.print(f"{where}: the wheels are stopped, the log is closed", soft_wrap=True)
            raise
        bar.finish_episode()


def _print_outcome(folder: Path, begun: int, failures: Sequence[RuntimeFault]) -> None:
    """Print the scores and the failures; raise the first failure, or an error if not every episode has its log."""
    from robot_runtime.cli.score import print_scores
    from robot_runtime.common.console import console, error_console

    found = sum(1 for _ in folder.glob("*.mcap"))
    if found:
        print_scores([folder], console)
    for failure in failures:
        error_console.print(f"not run: {failure.message}", style="yellow", soft_wrap=True, markup=False)
    if found != begun:
        raise RecordingError(
            f"{folder}: {begun} episodes were run, and {found} logs are there",
            "look for what else writes or deletes there, and run the missing episodes again",
        )
    if failures:
        raise failures[0]
