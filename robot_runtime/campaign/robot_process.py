"""Process of a robot of a campaign: it runs one episode after the other, as the campaign's process asks for them.

Requests come on stdin, answers go to stdout, a JSON object per line; everything else that is printed goes to stderr.
The first request names the plan and the robot. The end of stdin, SIGTERM and SIGHUP end an episode as Ctrl-C does: the
wheels stop, and the log is closed. A lock that lasts as long as the process shows the next campaign process that the
robot is still driven.

Requests: ``{"do": "run", ...}`` (:class:`RunRequest`), ``{"do": "status"}``, ``{"do": "quit"}``.
Answers: ``{"is": "ready"}``, ``begun``, ``step``, ``ended``, ``refused`` (nothing was recorded), ``failed`` (it
ends), ``asks`` (a person), ``answered``, each with ``battery`` where it is known.
"""

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from typing_extensions import override

from robot_runtime.actions.timed import Decision
from robot_runtime.campaign.counting import LINK_LOST
from robot_runtime.campaign.facts import finite
from robot_runtime.campaign.ledger import take_lock
from robot_runtime.campaign.placing import StartPicture, placer_of
from robot_runtime.campaign.plan import Plan, PlannedRobot
from robot_runtime.common import config
from robot_runtime.common.closing import Closing
from robot_runtime.common.signals import interrupted_by_signals
from robot_runtime.common.threads import short_collections
from robot_runtime.datasets.files import load_episodes
from robot_runtime.env import Env
from robot_runtime.errors import ConfigError, DeviceFault, LinkLost, PolicyError, RuntimeFault, UnknownAction
from robot_runtime.estop.requests import wait_for_release
from robot_runtime.estop.server import StopServer
from robot_runtime.hal import Robot
from robot_runtime.policies import load_source
from robot_runtime.policies.stepping import check_policy
from robot_runtime.policies.wrapper import PolicyWrapper
from robot_runtime.policy import Observation, Policy, PolicySource, World
from robot_runtime.recording.writer import Recorder
from robot_runtime.records import EpisodeHeader, StepRecord, Subscriber
from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot, read_robot_file
from robot_runtime.runtime import run_episode
from robot_runtime.scenes.scene import find_scene, load_scene
from robot_runtime.scoring.failure_causes import CONTACT_LIMIT
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


class ContactCount(Subscriber):
    """Number of actions of the present episode that ended in contact."""

    def __init__(self) -> None:
        self.contacts = 0

    @override
    def on_episode_start(self, header: EpisodeHeader) -> None:
        self.contacts = 0

    @override
    def on_step(self, record: StepRecord) -> None:
        self.contacts += record.result is not None and record.result.collided


class SupervisedPolicy(PolicyWrapper):
    """A policy under the plan's name, whose run ends at the plan's number of contacts.

    Args:
        policy: policy that decides; the caller closes it.
        name: name in logs.
        contacts: counter that gets the environment's steps.
        limit: number of contacts that ends a run; None for none.
        commitment: commitment of a sealed policy: its source in logs. What it says of its decisions is not logged, its
            errors do not name it, and its task and its kind of memory are not told. Empty for a policy that is not
            sealed.
    """

    def __init__(
        self, policy: Policy, name: str, contacts: ContactCount, limit: int | None = None, commitment: str = ""
    ) -> None:
        super().__init__(policy, name)
        self._contacts, self._limit, self._sealed = contacts, limit, bool(commitment)
        if commitment:
            self.source = PolicySource(f"sealed:{name}", digest=commitment)
            self.task, self.follows = None, False  # type: ignore[misc]

    @override
    def reset(self, task: Task, seed: int, world: World | None = None) -> None:
        try:
            self.inner.reset(task, seed, world)
        except (Exception, SystemExit) as error:
            raise self._named(error) from error

    @override
    def act(self, observation: Observation) -> Decision:
        if self._limit is not None and self._contacts.contacts >= self._limit:
            raise PolicyError(
                f"{CONTACT_LIMIT}: contact {self._contacts.contacts}, at {self._limit} the plan ends a run",
                "see the plan's limits",
            )
        try:
            return self.inner.act(observation)
        except (Exception, SystemExit) as error:
            raise self._named(error) from error

    @override
    def info(self) -> dict[str, Any]:
        return {} if self._sealed else self.inner.info()

    def _named(self, error: BaseException) -> BaseException:
        """The error with what the facts of the run need, and without what names a sealed policy."""
        if isinstance(error, LinkLost):
            return LinkLost(f"{LINK_LOST} {error.message}", error.remedy)
        if isinstance(error, UnknownAction) or not self._sealed:
            return error
        return PolicyError(f"policy {self.name} failed", "the holder of the key finds why in the server's output")


LOCK_S = 60.0
"""Wait for the process of an earlier session that still drives the robot."""


@dataclass(frozen=True)
class RunRequest(config.Strict):
    """One run.

    Attributes:
        attempt: its name.
        folder: folder for its log.
        episode: number in the plan's file.
        policy: name in the plan.
        seed: seed of the policy.
        reference: picture of the start of the run before from the same start; None for the first.
    """

    attempt: str
    folder: str
    episode: int
    policy: str
    seed: int
    reference: str | None = None


class Channel(Subscriber):
    """Answers to the campaign's process, among them the steps of an episode."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def say(self, word: str, **content: Any) -> None:
        """Write an answer. A campaign's process that is gone is noticed at stdin."""
        line = json.dumps({"is": word, **content}, allow_nan=False).encode() + b"\n"
        try:
            os.write(self._descriptor, line)
        except BrokenPipeError:
            return

    @override
    def on_episode_start(self, header: EpisodeHeader) -> None:
        self.say("begun")

    @override
    def on_step(self, record: StepRecord) -> None:
        self.say("step", index=record.index, battery=finite(record.base.battery_fraction))


class Operation(Protocol):
    """An operator's devices, such as a console."""

    @property
    def subscribers(self) -> tuple[Subscriber, ...]:
        """Subscribers for the environment, after the recorder."""

    def supervised(self, policy: Policy) -> Policy:
        """The policy under an operator who can pause and overrule it."""

    def episode(
        self, episode: Episode, number: int, total: int, reference: Path | None
    ) -> AbstractContextManager[None]:
        """The context of an episode; ``reference`` is a picture of an earlier run's start."""


Operate = Callable[[Robot, Recorder, int, Callable[[str], None]], AbstractContextManager[Operation]]
"""Makes an operator's devices for a robot: connected robot, recorder, number in the plan, output for a person."""


class RobotSession(Closing):
    """A connected robot in one scene with its environment and the operator's devices; a context."""

    def __init__(
        self,
        plan: Plan,
        planned: PlannedRobot,
        scene: str,
        episodes: Sequence[Episode],
        channel: Channel,
        operate: Operate | None = None,
    ) -> None:
        self.scene = scene
        self._plan, self._planned, self._channel = plan, planned, channel
        self._operate = operate
        self._operation: Operation | None = None
        self._episodes = episodes
        self._contacts = ContactCount()
        self._policies: dict[str, Policy] = {}
        with ExitStack() as stack:
            self._open(stack)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Disconnect the robot, and close what it needs."""
        self._stack.close()

    def _open(self, stack: ExitStack) -> None:
        plan, planned = self._plan, self._planned
        task, scene = plan.limited_task(), load_scene(find_scene(self.scene))
        parts = DeviceOverrides(planned.camera, planned.localizer, planned.referee)
        context = RobotContext.of(task, scene, self._episodes, plan.order.seed, planned.real_time)
        robot = stack.enter_context(load_robot(planned.robot, context, parts))
        stack.enter_context(StopServer(robot, self._tell))
        self.picture = StartPicture(robot)
        steered = self._operate is not None
        placer = placer_of(planned, robot, scene, plan.pairs.placement, self.picture, self._channel.say, steered)
        self.robot = replace(robot, placer=placer)
        self._recorder = Recorder(Path())
        stack.callback(self._recorder.close)
        subscribers: tuple[Subscriber, ...] = (self._recorder, self.picture, self._contacts, self._channel)
        if self._operate is not None:
            number = plan.robots.index(planned)
            self._operation = stack.enter_context(self._operate(self.robot, self._recorder, number, self._tell))
            subscribers = (self._recorder, *self._operation.subscribers, *subscribers[1:])
        robot_config = config.unparse(read_robot_file(planned.robot, parts)[1])
        env = Env(self.robot, task, scene, subscribers, plan.order.seed, robot_config, plan.episodes)
        self._env = stack.enter_context(env)
        stack.enter_context(short_collections())
        stack.callback(self._close_policies)

    def run(self, request: RunRequest) -> None:
        """Run an episode; its log is in the request's folder. Raises as ``run_episode``."""
        folder = Path(request.folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._recorder.folder = folder
        reference = None if request.reference is None else Path(request.reference)
        self.picture.write_to(folder, reference)
        wait_for_release(self.robot, lambda text: self._channel.say("asks", text=text))
        policy, episode = self._policy(request.policy), self._episodes[request.episode]
        if self._operation is None:
            run_episode(self._env, policy, episode, request.seed)
            return
        with self._operation.episode(episode, request.episode + 1, len(self._episodes), reference):
            run_episode(self._env, policy, episode, request.seed)

    def battery(self) -> float | None:
        """The charge, 0 to 1; None if unknown."""
        return finite(self.robot.base_state().battery_fraction)

    def _policy(self, name: str) -> Policy:
        if name not in self._policies:
            planned = self._plan.policies[name]
            loaded = load_source(planned.source)
            limit = self._plan.limits.contacts
            policy: Policy = SupervisedPolicy(loaded, name, self._contacts, limit, planned.commitment)
            if self._operation is not None:
                policy = self._operation.supervised(policy)
            self._policies[name] = policy
            check_policy(self._policies[name], self._env.task)
        return self._policies[name]

    def _close_policies(self) -> None:
        for policy in self._policies.values():
            policy.close()

    def _tell(self, text: str) -> None:
        self._channel.say("note", text=text)


def serve(channel: Channel, requests: queue.Queue[Mapping[str, Any]], operate: Operate | None = None) -> None:
    """Carry out requests until ``quit``."""
    first = requests.get()
    plan = config.parse(first["plan"], Plan, "the plan")
    number = int(first["robot"])
    episodes = load_episodes(Path(plan.episodes))
    scenes = [plan.scene(episode.scene) for episode in episodes]

    def open_in(scene: str) -> RobotSession:
        return RobotSession(plan, plan.robots[number], scene, episodes, channel, operate)

    with _lock(Path(first["lock"])), ExitStack() as stack:
        session = stack.enter_context(open_in(scenes[int(first["episode"])]))
        channel.say("ready", battery=_charge(session))
        while (request := requests.get())["do"] != "quit":
            if request["do"] == "status":
                channel.say("status", battery=_charge(session))
                continue
            run = config.parse({key: value for key, value in request.items() if key != "do"}, RunRequest, "the request")
            if scenes[run.episode] != session.scene:
                stack.close()
                session = stack.enter_context(open_in(scenes[run.episode]))
            carry_out(session, run, channel)


def carry_out(session: RobotSession, run: RunRequest, channel: Channel) -> None:
    """Run an episode, and answer how it ended."""
    content = {}
    try:
        session.run(run)
    except RuntimeFault as error:
        content = {"error": type(error).__name__, "message": error.message, "remedy": error.remedy}
    word = "ended" if any(Path(run.folder).glob("*.mcap")) else "refused"
    channel.say(word, attempt=run.attempt, battery=_charge(session), **content)


def _charge(session: RobotSession) -> float | None:
    try:
        return session.battery()
    except DeviceFault:
        return None


def _lock(path: Path) -> Any:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a")

    if not take_lock(file, LOCK_S):
        raise ConfigError(f"{path}: another process still drives the robot", "end it, and repeat the command")
    return file


def _read(requests: queue.Queue[Mapping[str, Any]]) -> None:
    """Queue the lines of stdin; at its end, interrupt the main thread as SIGTERM does."""
    rest = b""
    while data := os.read(0, 1 << 16):  # sys.stdin's lock would be held at the interpreter's end
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            requests.put(json.loads(line))
    os.kill(os.getpid(), signal.SIGTERM)


def main(operate: Operate | None = None) -> int:
    """Run the process; returns its exit code."""
    channel = Channel(os.dup(1))
    os.dup2(2, 1)
    requests: queue.Queue[Mapping[str, Any]] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), name="requests", daemon=True).start()
    with interrupted_by_signals():
        try:
            serve(channel, requests, operate)
        except KeyboardInterrupt:
            channel.say("interrupted")
            return 130
        except RuntimeFault as error:
            channel.say("failed", error=type(error).__name__, message=error.message, remedy=error.remedy)
            return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
