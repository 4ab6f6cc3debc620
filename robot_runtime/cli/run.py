"""``robot-runtime run``: episodes on a robot, logged and scored."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli import completion, options
from robot_runtime.common.clock import utc_now_iso
from robot_runtime.errors import ConfigError, RuntimeFault

if TYPE_CHECKING:
    from robot_runtime.policy import Policy
    from robot_runtime.records import StepRecord
    from robot_runtime.scenes.scene import Scene
    from robot_runtime.tasks.episode import Episode
    from robot_runtime.tasks.task import Task

DEFAULT_TASK = "pointnav_gps_compass"

_EXAMPLES = """Run episodes and print their scores; every episode becomes one log in --out.

Examples:

    robot-runtime run

    robot-runtime run --agent goal-follower --count 20

    robot-runtime run --task objectnav_habitat2020 --agent oracle --scene scenes/house

    robot-runtime run --policy my_policy.zip --agent-arg selection=argmax

    robot-runtime run --task objectnav_robothor2021 --policy robothor:agents/random_agent.py --agent-python venv

    robot-runtime run --policy ws://gpu-machine:8000

    robot-runtime run --task objectnav_habitat2020 --sensor semantic

    robot-runtime run --episodes val.json.gz --agent my_package.agents:MyAgent --agent-arg checkpoint=policy.onnx

    robot-runtime run --robot my_robot.yaml --real-time
"""


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the command."""
    groups["root"].command("run", help=_EXAMPLES)(run)


def default_agent(task: str) -> str:
    """Who drives in a task where nobody is named: the policy that ships in the one that it was trained for."""
    return "pointnav-depth" if task == DEFAULT_TASK else "classical"


def run(
    robot: options.Robot = "sim",
    camera: options.Camera = None,
    camera_arg: options.CameraArg = None,
    localizer: options.Localizer = None,
    referee: options.Referee = None,
    scene: options.Scene = "apartment",
    task: Annotated[
        str | None,
        typer.Option(
            help="Task preset (launch/tasks) or YAML file. Default: the policy's own, else pointnav_gps_compass.",
            autocompletion=completion.tasks,
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help="pointnav-depth, random, forward-only, goal-follower, bug, oracle, classical, module:Class or "
            "file.py:Class. Default: pointnav-depth, a learned policy, in the default task; classical in any other.",
            autocompletion=completion.agents,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Instead of an agent that ships: a policy package (folder or zip); an unmodified agent in a process "
            "of its own, habitat:, habitat-2019:, robothor:, gym: or function: and module:Class or file.py:Class; "
            "or a policy server, ws://HOST:PORT.",
            metavar="POLICY",
        ),
    ] = None,
    agent_python: options.AgentPython = None,
    agent_timeout: options.AgentTimeout = None,
    agent_arg: options.AgentArg = None,
    sensor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", autocompletion=completion.sensors, help="Sensor that the agent gets besides the task's."
        ),
    ] = None,
    episodes: options.Episodes = None,
    count: options.Count = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What logs call the agent: two variants of one become two policies."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of episodes, agent and simulated noise.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the logs. Default: logs/TIME-AGENT-TASK.")] = None,
    overwrite: options.Overwrite = False,
    real_time: options.RealTime = False,
    localization_patience: options.LocalizationPatience = 30.0,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="After an episode that cannot be read or run, go on with the next.")
    ] = False,
) -> None:
    from robot_runtime.cli.score import print_scores
    from robot_runtime.common.console import console, error_console, progress_bar
    from robot_runtime.env import Env
    from robot_runtime.policies.stepping import check_policy
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.records import Subscriber
    from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot, read_robot_file
    from robot_runtime.runtime import run_episode
    from robot_runtime.scenes.scene import find_scene, load_scene
    from robot_runtime.tasks.task import load_task, with_sensors

    if agent is not None and policy is not None:
        raise ConfigError("--agent and --policy are two policies", "give one of them")
    with ExitStack() as stack:
        named = agent or default_agent(task or DEFAULT_TASK)
        chosen_policy = choose_policy(named, policy, agent_python, agent_timeout, agent_arguments(agent_arg or []))
        stack.callback(chosen_policy.close)
        own_task = chosen_policy.task if task is None else None
        chosen_task = with_sensors(own_task or load_task(task or DEFAULT_TASK), sensor or ())
        chosen_scene = load_scene(find_scene(scene))
        check_policy(chosen_policy, chosen_task)
        failures: list[RuntimeFault] = []
        chosen_episodes = choose_episodes(
            episodes, count, seed, chosen_task, chosen_scene, failures if keep_going else None
        )
        folder = log_folder(out, overwrite, name or agent or chosen_policy.name, chosen_task.name)
        parts = DeviceOverrides(camera, localizer, referee, tuple(camera_arg or ()))
        _, robot_file = read_robot_file(robot, parts)
        context = RobotContext.of(chosen_task, chosen_scene, chosen_episodes, seed, real_time)

        connected = stack.enter_context(load_robot(robot, context, parts))
        recorder = Recorder(folder)
        stack.callback(recorder.close)
        # Last in, first out: whatever happens, the user learns where the logs are after they were closed.
        stack.callback(error_console.print, f"logs: {folder}", soft_wrap=True)
        progress = stack.enter_context(progress_bar())
        bar = progress.add_task("episodes", total=len(chosen_episodes), note="")

        class StepNote(Subscriber):
            def on_step(self, record: StepRecord) -> None:
                done = index + record.index / chosen_task.max_steps
                progress.update(bar, completed=done, note=f"step {record.index}")

        env = stack.enter_context(
            Env(
                connected,
                chosen_task,
                chosen_scene,
                (recorder, StepNote()),
                seed=seed,
                robot_config=asdict(robot_file),
                dataset=str(episodes or ""),
                localization_patience_s=localization_patience,
            )
        )
        for index, episode in enumerate(chosen_episodes):
            try:
                run_episode(env, chosen_policy, episode, seed + index, name or None)
            except RuntimeFault as error:
                if not keep_going:
                    raise
                failures.append(error)
            except KeyboardInterrupt:
                where = f"episode {index + 1} of {len(chosen_episodes)}"
                error_console.print(f"{where}: the wheels are stopped, the log is closed", soft_wrap=True)
                raise
            progress.update(bar, completed=index + 1)

    if not failures or any(folder.glob("*.mcap")):
        print_scores([folder], console)
    for failure in failures:
        error_console.print(f"[yellow]not run:[/] {failure.message}", soft_wrap=True)
    if failures:
        raise failures[0]


def choose_policy(
    agent: str, policy: str | None, python: Path | None, timeout_s: float | None, arguments: dict[str, str]
) -> Policy:
    """What ``--agent``, ``--policy`` and their options name; the caller closes it. Raises ``RuntimeFault``."""
    from robot_runtime.policies import has_own_process, is_remote, load_source
    from robot_runtime.policies.package.files import read_manifest
    from robot_runtime.policy import PolicySource

    source = PolicySource(policy or agent, arguments, None if python is None else str(python), timeout_s)
    isolated = python is not None or timeout_s is not None
    if policy is not None and not (has_own_process(policy) or is_remote(policy) or isolated):
        read_manifest(Path(policy))  # says what is wrong with something that is no package
    return load_source(source)


def choose_episodes(
    path: Path | None, count: int | None, seed: int, task: Task, scene: Scene, unreadable: list[RuntimeFault] | None
) -> list[Episode]:
    """The first ``count``; one that cannot be read goes to ``unreadable`` if that is a list, else ends everything."""
    from robot_runtime.datasets import iter_readable
    from robot_runtime.datasets.generate import generate_episodes

    if path is None:
        return generate_episodes(scene, task, count or 3, seed)
    read = []
    for found in islice(iter_readable(path), count):
        if not isinstance(found, RuntimeFault):
            read.append(found)
        elif unreadable is None:
            raise found
        else:
            unreadable.append(found)
    if unreadable and not read:
        raise unreadable[0]
    return read


def agent_arguments(pairs: list[str]) -> dict[str, str]:
    """What ``--agent-arg KEY=VALUE`` said. Raises ``ConfigError``."""
    arguments = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (equals and key.isidentifier()):
            raise ConfigError(f"--agent-arg {pair!r} is not KEY=VALUE", "write it like --agent-arg radius=0.2")
        arguments[key] = value
    return arguments


def log_folder(out: Path | None, overwrite: bool, agent: str, task: str) -> Path:
    """Where logs go, emptied of logs if it may be. Raises ``ConfigError``."""
    if out is None:
        stamp = utc_now_iso().split("+")[0].replace(":", "").replace("-", "")
        out = Path("logs") / f"{stamp}-{re.sub(r'[:/]+', '.', agent)}-{task}"
    present = sorted(out.glob("*.mcap")) if out.is_dir() else []
    if present and not overwrite:
        raise ConfigError(f"{out}: already holds {len(present)} logs", "choose another --out, or add --overwrite")
    for log in present:
        log.unlink()
    return out
