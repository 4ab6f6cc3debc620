"""``robot-runtime run``: episodes on a robot, logged and scored."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli.groups import headed_command
from robot_runtime.cli.operator import Operation, OperatorOptions, press_key
from robot_runtime.cli_options import completion, options
from robot_runtime.cli_options.option_groups import grouped_options
from robot_runtime.cli_options.options import DEFAULT_TASK
from robot_runtime.common.console import progress_bar, tell
from robot_runtime.errors import ConfigError, EpisodeAborted, EpisodeError, OtherFloor, RecordingError, RuntimeFault

if TYPE_CHECKING:
    from rich.progress import Progress

    from robot_runtime.campaign.single_run import RunLedger
    from robot_runtime.env import Env
    from robot_runtime.policy import Policy
    from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord, Subscriber
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
    robot-runtime run --episodes val.json.gz --out logs/val --resume
    robot-runtime run --task objectnav_habitat2020 --sensor semantic
    robot-runtime run --episodes val.json.gz --agent my_package.agents:MyAgent --agent-arg checkpoint=policy.onnx
    robot-runtime run --robot my_robot.yaml --real-time
    robot-runtime run --robot my_robot.yaml --console 0.0.0.0:8900 --attended
"""

HEADINGS = {
    "Task and episodes": ("task", "sensor", "scene", "episodes", "count", "episode", "seed"),
    "Policy": (
        *("policy", "agent", "name", "agent_arg", "agent_python", "agent_timeout_s"),
        *("detector", "answerer", "answerer_model", "answerer_timeout_s"),
    ),
    "Robot": (
        *("robot", "robot_arg", "camera", "camera_arg", "localizer", "referee"),
        *("real_time", "localization_patience_s"),
    ),
    "Operator": (
        *("attended", "gamepad", "console", "console_token", "console_certificate", "console_key"),
        *("console_silence_s", "notify_desktop", "notify_hook"),
    ),
    "Logs": ("out", "overwrite", "resume", "json", "print_config", "keep_going"),
}
"""Headings of the help text, each with the names of its parameters."""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("run", cls=headed_command(HEADINGS), help=_HELP)(run)


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
        """The task, by default the policy's own, with the sensors asked for and needed. Raises ``ConfigError``."""
        from robot_runtime.tasks.task import load_task, with_sensors

        own, asked = policy.task if self.task is None else None, self.sensor or ()
        task = own or load_task(self.task or DEFAULT_TASK)
        with suppress(ConfigError):  # check_policy() refuses what the task cannot show, and says why
            return with_sensors(task, (*asked, *policy.needs))
        return with_sensors(task, asked)


@dataclass(frozen=True)
class ModelOptions:
    """Models in addition to the agent: a detector that shows it objects, a service that answers in its place."""

    detector: Annotated[
        Path | None, typer.Option(help="YAML file of an ONNX detector that makes the agent's sensor 'semantic'.")
    ] = None
    answerer: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Let a service with OpenAI's chat interface answer from the last image, as in http://localhost:8080/v1.",
        ),
    ] = None
    answerer_model: Annotated[str, typer.Option(help="Name of the model there.")] = "default"
    answerer_timeout_s: Annotated[float, typer.Option(min=0.1, help="Time limit of an answer.")] = 20.0

    def wrap(self, policy: Policy) -> Policy:
        """The policy with the models that are given. Raises ``ConfigError``."""
        if self.detector is not None:
            from robot_runtime.policies.detector import Detecting, Detector

            policy = Detecting(policy, Detector(self.detector))
        if self.answerer is not None:
            from robot_runtime.policies.answerers import answered

            policy = answered(policy, self.answerer, self.answerer_model, self.answerer_timeout_s)
        return policy


@grouped_options
def run(
    *,
    robot: options.RobotOptions,
    scene: options.Scene = "apartment",
    task: TaskOptions,
    policy: options.PolicyOptions,
    agent: options.AgentOptions,
    models: ModelOptions,
    episodes: options.EpisodeOptions,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What logs call the agent: two variants of one become two policies."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of episodes, agent and simulated noise.")] = 0,
    output: options.ResumableLogOptions,
    real_time: options.RealTime = False,
    localization_patience_s: options.LocalizationPatience = 30.0,
    operator: OperatorOptions,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Continue after an episode that cannot be read or run.")
    ] = False,
) -> None:
    """Run the command; its help is ``_HELP``."""
    run_policy(
        lambda: policy.load(agent, task.task or DEFAULT_TASK),
        robot,
        scene,
        task,
        episodes,
        output,
        operator,
        name=name,
        label=name or policy.agent,
        seed=seed,
        real_time=real_time,
        localization_patience_s=localization_patience_s,
        keep_going=keep_going,
        wrap=models.wrap,
    )


def run_policy(
    load: Callable[[], Policy],
    robot: options.RobotOptions,
    scene: str,
    task: TaskOptions,
    episodes: options.EpisodeOptions,
    output: options.ResumableLogOptions,
    operator: OperatorOptions,
    *,
    name: str | None = None,
    label: str | None = None,
    seed: int = 0,
    real_time: bool = False,
    localization_patience_s: float = 30.0,
    keep_going: bool = False,
    wrap: Callable[[Policy], Policy] = lambda policy: policy,
) -> None:
    """Run episodes with the policy that ``load`` and ``wrap`` give, and print their scores; the rest is as for ``run``.

    Raises:
        RuntimeFault: as ``run``.
    """
    from robot_runtime.campaign.single_run import RunLedger
    from robot_runtime.common.threads import short_collections
    from robot_runtime.common.yaml_text import dump_yaml
    from robot_runtime.env import Env
    from robot_runtime.policies.stepping import check_policy
    from robot_runtime.recording.json_output import plain
    from robot_runtime.robots.loader import RobotContext
    from robot_runtime.scenes.scene import find_scene, load_scene

    failures: list[RuntimeFault] = []
    with ExitStack() as stack:
        stack.callback(_tell_failures, failures)
        config = robot.config()  # first, so that a base install is told of the simulator
        loaded = wrap(stack.enter_context(closing(load())))
        run_in = task.load(loaded)
        place = load_scene(find_scene(scene))
        check_policy(loaded, run_in)
        chosen = episodes.choose(seed, run_in, place, failures if keep_going else None)
        context = RobotContext.of(run_in, place, chosen, seed, real_time)
        settings = {
            "task": run_in,
            "scene": place.digest,
            "robot": config,
            "policy": (name or loaded.name, loaded.source),
            "dataset": episodes.dataset,
            "seed": seed,
            "real_time": real_time,
        }
        if output.print_config:
            typer.echo(dump_yaml(plain({**settings, "episodes": [one.id for one in chosen]})), nl=False)
            return
        folder = output.folder(label or loaded.name, run_in.name)
        ledger = stack.enter_context(RunLedger(folder, settings, [one.key for one in chosen], tell))
        if not ledger.left:
            _print_outcome(folder, len(chosen), failures, 0, output.json)
            return
        connected, recorder = stack.enter_context(robot.recorded(context, folder, press_key(loaded)))
        operation = stack.enter_context(operator.operated(connected, loaded, recorder))
        progress = stack.enter_context(progress_bar())
        bar = _EpisodeBar(progress, len(chosen), len(ledger.logs), run_in.max_steps)
        env = Env(
            connected,
            run_in,
            place,
            (recorder, bar.subscriber(), *operation.subscribers),
            seed=seed,
            robot_config=config,
            dataset=episodes.dataset,
            localization_patience_s=localization_patience_s,
        )
        stack.enter_context(env)
        stack.enter_context(short_collections())
        _run_episodes(env, loaded, chosen, ledger, seed, name, bar, failures, keep_going, operation)
    _print_outcome(folder, bar.begun, failures, len(ledger.left), output.json)


class _EpisodeBar:
    """Progress over episodes, and over the steps of the current one; without a terminal, a line for each episode."""

    def __init__(self, progress: Progress, count: int, done: int, max_steps: int) -> None:
        self._progress, self._count, self._max_steps = progress, count, max_steps
        self._bar = progress.add_task("episodes", total=count, note="")
        self._finished = self.begun = done

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

            def on_episode_end(_, end: EpisodeEnd) -> None:  # noqa: N805 (self is the bar)
                if self._progress.disable:
                    tell(f"episode {self.begun} of {self._count}: {end.reason.value} after {end.steps} steps")

        return Steps()


def _run_episodes(
    env: Env,
    policy: Policy,
    episodes: Sequence[Episode],
    ledger: RunLedger,
    seed: int,
    name: str | None,
    bar: _EpisodeBar,
    failures: list[RuntimeFault],
    keep_going: bool,
    operation: Operation,
) -> None:
    """Run the episodes that are left; an error ends the run, or goes to ``failures`` if it is to keep going.

    Neither an episode that the operator ends nor one of another floor ends the run.
    """
    from robot_runtime.estop.requests import wait_for_release
    from robot_runtime.runtime import run_episode

    for index in ledger.left:
        episode = episodes[index]
        try:
            wait_for_release(env.robot, tell)
            env.robot.check_ready()  # else the ledger would tell of an episode that never began
            with ledger.episode(index), operation.episode(episode, index + 1, len(episodes)):
                run_episode(env, operation.supervised(policy), episode, seed + index, name or None)
        except EpisodeAborted as error:
            tell(f"episode {index + 1} of {len(episodes)}: {error.message}")
        except RuntimeFault as error:
            if not (keep_going or isinstance(error, OtherFloor)):
                raise
            failures.append(error)
        except KeyboardInterrupt:
            where = f"episode {index + 1} of {len(episodes)}"
            tell(f"{where}: the wheels are stopped, the log is closed")
            raise
        bar.finish_episode()


def _tell_failures(failures: Sequence[RuntimeFault]) -> None:
    for failure in failures:
        tell(f"not run: {failure.message}")


def _print_outcome(folder: Path, begun: int, failures: Sequence[RuntimeFault], left: int, json: Path | None) -> None:
    """Print the scores; raise the first failure, or an error if not every episode counts."""
    from robot_runtime.scoring.cli.score import print_scores

    found = sum(1 for _ in folder.glob("*.mcap"))
    if found:
        print_scores([folder], json)
        tell(f"next: robot-runtime report {shlex.quote(str(folder))}")
    if found != begun:
        raise RecordingError(
            f"{folder}: {begun} episodes were run, and {found} logs are there",
            "look for what else writes or deletes there, and run the missing episodes again",
        )
    if failures:
        raise failures[0]
    if left:
        raise EpisodeError(
            f"{folder}: {left} of {begun} episodes ended early and do not count",
            f"repeat the command with `--resume --out {folder}`",
        )
