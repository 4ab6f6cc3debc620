"""Command-line options that several commands share: single ones, and groups with the methods that use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import typer
from typing_extensions import override

from robot_runtime.cli_options import completion
from robot_runtime.common.clock import utc_now_iso
from robot_runtime.errors import ConfigError, EpisodeError, RuntimeFault

if TYPE_CHECKING:
    from robot_runtime.hal import Robot as ConnectedRobot
    from robot_runtime.parallel.map import Workers as WorkerCount
    from robot_runtime.parallel.result_journal import ResultJournal
    from robot_runtime.policy import Policy, PolicySource
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.robots.loader import DeviceOverrides, RobotContext
    from robot_runtime.scenes.scene import Scene as LoadedScene
    from robot_runtime.tasks.episode import Episode
    from robot_runtime.tasks.task import Task as LoadedTask

T = TypeVar("T")

DEFAULT_TASK = "pointnav_gps_compass"

Robot = Annotated[
    str, typer.Option(help="Robot preset (launch/robots) or YAML file.", autocompletion=completion.robots)
]
Scene = Annotated[
    str, typer.Option(help="Scene folder, or the name of a bundled scene.", autocompletion=completion.scenes)
]
Task = Annotated[str, typer.Option(help="Task preset (launch/tasks) or YAML file.", autocompletion=completion.tasks)]
RobotArg = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Option over those in the robot's file; repeatable; contact.behaviour=..."),
]
Camera = Annotated[
    str | None,
    typer.Option(
        help="Camera preset (launch/cameras) or YAML file. Default: the robot's own.", autocompletion=completion.cameras
    ),
]
CameraArg = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Option over those in the camera's file; repeatable; imaging.mount=..."),
]
Localizer = Annotated[
    str | None,
    typer.Option(
        help="Localizer preset (launch/localizers) or YAML file, for the policy. Default: the robot's own.",
        autocompletion=completion.localizers,
    ),
]
Referee = Annotated[
    str | None,
    typer.Option(
        help="Localizer preset or YAML file, for the scores. Default: the robot's own.",
        autocompletion=completion.localizers,
    ),
]
LocalizationPatience = Annotated[
    float,
    typer.Option("--localization-patience-s", min=0, max=3600, help="Seconds that the robot waits where it is lost."),
]
RealTime = Annotated[bool, typer.Option("--real-time", help="Simulate at the speed of real time.")]
AgentArg = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="Argument of agent or policy; repeatable.")
]
AgentPython = Annotated[
    Path | None,
    typer.Option(help="Interpreter of an unmodified agent: venv/bin/python or venv. Default: the runtime's."),
]
Logs = Annotated[list[Path], typer.Argument(help="Log files, or folders of them.")]


def _tables_beside_json(json: Path | None) -> Path | None:
    """Move all other output of the command to standard error if JSON goes to standard output."""
    from robot_runtime.common.console import console

    console.stderr = str(json) == "-"  # run_command resets it
    return json


Json = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=_tables_beside_json,
        help="Write the results to this file as JSON; -: to standard output, and tables to standard error.",
    ),
]


@dataclass(frozen=True)
class RobotOption:
    """A robot; subclasses add the parts that can replace its own."""

    robot: Robot = "sim"
    robot_arg: RobotArg = None

    @property
    def parts(self) -> DeviceOverrides:
        """The parts that replace the robot's own."""
        from robot_runtime.robots.loader import DeviceOverrides

        given = vars(self)
        return DeviceOverrides(
            given.get("camera"),
            given.get("localizer"),
            given.get("referee"),
            tuple(given.get("camera_arg") or ()),
            tuple(self.robot_arg or ()),
        )

    @contextmanager
    def load(self, context: RobotContext) -> Iterator[ConnectedRobot]:
        """Connect the robot, within reach of ``robot-runtime stop``. Raises ``RuntimeFault``."""
        from robot_runtime.common.console import tell
        from robot_runtime.estop.inputs import StopInputMonitor
        from robot_runtime.estop.server import StopServer
        from robot_runtime.robots.loader import load_robot

        with (
            load_robot(self.robot, context, self.parts) as robot,
            StopServer(robot, tell),
            StopInputMonitor(robot, tell),
        ):
            yield robot

    def config(self) -> dict[str, Any]:
        """The content of the robot's file with the replaced parts, for logs.

        Raises:
            ConfigError: the file cannot be read, or its driver cannot be imported.
        """
        from robot_runtime.common.config import resolve
        from robot_runtime.robots.loader import read_robot_file

        path, file = read_robot_file(self.robot, self.parts)
        resolve(file.driver, f"{path}: field 'driver'")
        return asdict(file)


@dataclass(frozen=True)
class CameraRobotOptions(RobotOption):
    """A robot and its camera."""

    camera: Camera = None
    camera_arg: CameraArg = None


@dataclass(frozen=True)
class LocalizedRobotOptions(RobotOption):
    """A robot and its sources of poses."""

    localizer: Localizer = None
    referee: Referee = None


@dataclass(frozen=True)
class RobotOptions(LocalizedRobotOptions, CameraRobotOptions):
    """A robot and all parts that can replace its own."""

    @contextmanager
    def recorded(
        self, context: RobotContext, folder: Path, on_key: Callable[[str], object] | None = None
    ) -> Iterator[tuple[ConnectedRobot, Recorder]]:
        """Connect the robot and record to a folder, whose name is printed at the end if a log is in it."""
        from robot_runtime.common.console import tell
        from robot_runtime.estop.cli import stop_keys
        from robot_runtime.recording.writer import Recorder

        with self.load(context) as robot, stop_keys(robot, on_key), Recorder(folder) as recorder:
            try:
                yield robot, recorder
            finally:
                if recorder.path is not None:
                    tell(f"logs: {folder}")


@dataclass(frozen=True)
class AgentOptions:
    """Interpreter, time limit and arguments of an agent or policy."""

    agent_python: AgentPython = None
    agent_timeout_s: Annotated[
        float | None, typer.Option(help="Seconds that an unmodified agent has for each action. Default: 30.")
    ] = None
    agent_arg: AgentArg = None

    def source(self, spec: str) -> PolicySource:
        """The policy that ``spec`` names, with these options. Raises ``ConfigError``."""
        from robot_runtime.policy import PolicySource

        python = None if self.agent_python is None else str(self.agent_python)
        return PolicySource(spec, agent_arguments(self.agent_arg), python, self.agent_timeout_s)

    def load(self, spec: str) -> Policy:
        """Load the policy that ``spec`` names; the caller closes it. Raises ``RuntimeFault``."""
        from robot_runtime.policies import load_source

        return load_source(self.source(spec))


def agent_arguments(pairs: Sequence[str] | None) -> dict[str, str]:
    """Parse the values ``KEY=VALUE`` of ``--agent-arg``. Raises ``ConfigError``."""
    arguments = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (equals and key.isidentifier()):
            raise ConfigError(f"--agent-arg {pair!r} is not KEY=VALUE", "write it like --agent-arg radius=0.2")
        arguments[key] = value
    return arguments


@dataclass(frozen=True)
class PolicyOptions:
    """A policy under either of two spellings."""

    policy: Annotated[
        str | None,
        typer.Option(
            help="Name of an agent that `robot-runtime info` lists; module:Class or file.py:Class; a policy package "
            "(folder or zip); an unmodified agent in a process of its own, SCHEME:module:Class or "
            "SCHEME:file.py:Class, with a scheme that `robot-runtime info` lists; or a policy server, ws://HOST:PORT. "
            "Default: pointnav-depth, a learned policy, in the default task; classical in any other.",
            metavar="POLICY",
            autocompletion=completion.agents,
        ),
    ] = None
    agent: Annotated[
        str | None, typer.Option(help="The same as --policy.", metavar="POLICY", autocompletion=completion.agents)
    ] = None

    def load(self, options: AgentOptions, task: str) -> Policy:
        """Load the policy, by default the task's; the caller closes it. Raises ``RuntimeFault``."""
        if self.agent is not None and self.policy is not None:
            raise ConfigError("--agent and --policy are two policies", "give one of them")
        return options.load(self.policy or self.agent or default_agent(task))


def default_agent(task: str) -> str:
    """The agent for a task in which none is named: the policy that ships, in the task that it was trained for."""
    return "pointnav-depth" if task == DEFAULT_TASK else "classical"


@dataclass(frozen=True)
class EpisodeOptions:
    """Episodes of a file, or generated ones."""

    episodes: Annotated[
        Path | None, typer.Option(help="Episode file (Habitat or RoboTHOR). Without it, episodes are generated.")
    ] = None
    count: Annotated[
        int | None, typer.Option(min=1, help="How many episodes: of the file all by default, generated 3.")
    ] = None
    episode: Annotated[
        str | None, typer.Option(metavar="WHICH", help="Only this one: its number in the file, from 0, or its id.")
    ] = None

    @property
    def dataset(self) -> str:
        """Name of the file, for logs; empty without one."""
        return str(self.episodes or "")

    def choose(
        self, seed: int, task: LoadedTask, scene: LoadedScene, unreadable: list[RuntimeFault] | None = None
    ) -> list[Episode]:
        """Return the episodes; ``unreadable`` takes the errors of unreadable ones; without it, the first is raised.

        Raises:
            ConfigError: both ``--count`` and ``--episode``.
            RuntimeFault: an episode cannot be read or generated, or none can be read.
        """
        from robot_runtime.datasets.formats import generate_episodes

        which = self.episode
        if which is not None and self.count is not None:
            raise ConfigError("--count and --episode both choose episodes", "give one of them")
        if self.episodes is not None:
            found = self._read(unreadable)
        else:
            count = self.count or (int(which) + 1 if which is not None and which.isdecimal() else 3)
            found = generate_episodes(scene, task, count, seed)
        return found if which is None else [episode_of(found, which)]

    def _read(self, unreadable: list[RuntimeFault] | None) -> list[Episode]:
        """The episodes of the file."""
        from robot_runtime.datasets.files import iter_readable

        assert self.episodes is not None
        read = []
        for found in islice(iter_readable(self.episodes), self.count):
            if not isinstance(found, RuntimeFault):
                read.append(found)
            elif unreadable is None:
                raise found
            else:
                unreadable.append(found)
        if unreadable and not read:
            raise unreadable[0]
        return read


def episode_of(episodes: Sequence[Episode], which: str) -> Episode:
    """The episode of that id, else of that number. Raises ``EpisodeError``."""
    named = [episode for episode in episodes if episode.id == which]
    if named:
        return named[0]
    if which.isdecimal() and int(which) < len(episodes):
        return episodes[int(which)]
    raise EpisodeError(
        f"there is no episode {which!r} among {len(episodes)}", "give its number, from 0, or its id as in the file"
    )


@dataclass(frozen=True)
class LogOptions:
    """Folder of new logs."""

    out: Annotated[Path | None, typer.Option(help="Folder for the logs. Default: logs/TIME-AGENT-TASK.")] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the logs in --out.")] = False
    _remedy: ClassVar[str] = "choose another --out, or add --overwrite"

    def folder(self, agent: str, task: str) -> Path:
        """Return the folder, after deleting its logs if that is allowed. Raises ``ConfigError``."""
        from robot_runtime.recording.log_files import LEDGER_FILE

        out = self.out
        if out is None:
            stamp = utc_now_iso().split("+")[0].replace(":", "").replace("-", "")
            out = Path("logs") / f"{stamp}-{re.sub(r'[:/]+', '.', agent)}-{task}"
        present = [*sorted(out.glob("*.mcap")), *out.glob(LEDGER_FILE)] if out.is_dir() else []
        if present and not self.overwrite:
            raise ConfigError(f"{out}: already holds logs, {present[0].name} among them", self._remedy)
        for log in present:
            log.unlink()
        return out


@dataclass(frozen=True)
class ResumableLogOptions(LogOptions):
    """Folder of logs of a run that can be resumed."""

    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the run in --out: its episodes without a log that counts.")
    ] = False
    json: Json = None
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print task, robot, policy and episodes as YAML, and run nothing.")
    ] = False
    _remedy: ClassVar[str] = "add --resume to continue, or --overwrite to restart, or choose another --out"

    @override
    def folder(self, agent: str, task: str) -> Path:
        if not self.resume:
            return super().folder(agent, task)
        if self.out is None or self.overwrite:
            raise ConfigError("--resume needs the --out of the run, and no --overwrite", "repeat the command as it was")
        return self.out


@dataclass(frozen=True)
class WorkerOptions:
    """Processes on this machine, or a Ray cluster."""

    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes. Default: one; to score and draw, one per core; with --ray, one per CPU."),
    ] = None
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Work on this Ray cluster: HOST:PORT or auto; or local. Needs [cluster]."),
    ] = None

    def counted(self, default: int | None = 1) -> WorkerCount:
        """The workers; without options, ``default`` processes, or one per core if that is None."""
        from robot_runtime.parallel.map import Workers

        return Workers(default if self.workers is None and self.ray is None else self.workers, self.ray)


@dataclass(frozen=True)
class JournalOptions(WorkerOptions):
    """Workers, and a file of results from which a repeated command resumes."""

    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep each result here as it is made; the same command resumes from it."),
    ] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Restart --ledger.")] = False


def resumed(journal: ResultJournal[T, Any], items: Sequence[T]) -> str:
    """Message about the results that a journal has already."""
    return f"{journal.path}: {sum(map(journal.has, items))} of {len(items)} are done already"
