"""All parts of a run's console, as one context."""

import multiprocessing
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from typing_extensions import Self, override

from robot_runtime.campaign.messages import give_verdict
from robot_runtime.common.time_slices import SHORT_NS, ask_for_slices
from robot_runtime.console.control import SILENCE_S, ControlServer
from robot_runtime.console.feed import Feed
from robot_runtime.console.live_video import live_video
from robot_runtime.console.protocol import Message
from robot_runtime.console.supervision import PageGuide, Supervised, Supervision
from robot_runtime.console.web import Neighbor, WebSettings, jpeg, serve_pages
from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.estop.requests import Stops
from robot_runtime.hal import RgbdFrame, Robot
from robot_runtime.placement.guide import Guided
from robot_runtime.policies.human.human import Human
from robot_runtime.policies.human.inbox import ActionInbox, Choice
from robot_runtime.policies.remote.encryption import server_context
from robot_runtime.policy import Policy
from robot_runtime.records import EndReason, EpisodeEnd, StepRecord, Subscriber
from robot_runtime.tasks.episode import Episode

PORT = 8900
SENT_S, END_S = 0.5, 1.5
"""Longest times for the last message to the page's process, and for its end; then it is killed."""

_REFERENCES = 200
_REFERENCE_WIDTH = 320


@dataclass(frozen=True)
class ConsoleSettings:
    """Settings of a console.

    Attributes:
        host: host to listen on.
        port: port of the page; the next one is the operator's. 0 for any two free ones.
        token: token that pages must show; empty for a new one.
        certificate: PEM file; None without encryption.
        key: PEM file; None without encryption.
        attended: whether no episode begins before the operator starts it.
        name: name of the robot among them; empty for its preset's.
        others: consoles of other robots that the page shows next to this one.
        silence_s: silence of the operator's page after which the robot is stopped.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    token: str = ""
    certificate: Path | None = None
    key: Path | None = None
    attended: bool = False
    name: str = ""
    others: tuple[Neighbor, ...] = ()
    silence_s: float = SILENCE_S


class Console(Subscriber):
    """The console of a robot; a context.

    Args:
        robot: connected for as long as the context lasts.
        settings: settings of the console.
        tell: gets lines for the terminal.
        policy: policy that will run; the agent ``human`` is driven from the page.
        log: returns the file of the present or last log; None where nothing is recorded.
        campaign: returns the status of the campaign that the run belongs to; None without one.
        answer: answers a campaign's question, by its number and a person's pseudonym.
        notify: called with a line when a person is needed.

    Attributes:
        url: URL of the page, with the token.
        control_port: port of the operator's server.

    Raises:
        ConfigError: the ports are not available, or certificate and key do not belong together.
    """

    def __init__(
        self,
        robot: Robot,
        settings: ConsoleSettings,
        tell: Callable[[str], None],
        policy: Policy | None = None,
        log: Callable[[], Path | None] = lambda: None,
        campaign: Callable[[], dict[str, Any]] | None = None,
        answer: Callable[[int, str], str] | None = None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings = replace(settings, token=settings.token or secrets.token_urlsafe(16))
        human = policy if isinstance(policy, Human) else None
        self._robot, self._tell, self._log, self._human = robot, tell, log, human
        self._campaign, self._answer, self._notify = campaign, answer, notify
        self._named = human is not None and bool(human.operator)
        inbox = human.inbox if human is not None else ActionInbox()
        self.supervision = Supervision(inbox, "all" if human is None else human.view, human is not None)
        self.supervision.continuous = human is not None and human.continuous
        self.supervision.paused = settings.attended
        self.stops = Stops(robot, tell)
        self._feed: Feed | None = None
        self._stack = ExitStack()
        self._references: dict[str, bytes] = {}
        self._verdicts = RunVerdicts()
        self._last: StepRecord | None = None
        self._episode: Episode | None = None
        self._ends: Counter[str] = Counter()
        self.url = ""
        self.control_port = 0

    # --- start and end ----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._say_goodbye()
        finally:
            self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        settings = self.settings
        # For this thread, the robot's, and those that begin below: a press of STOP does not wait for other programs.
        if ask_for_slices(SHORT_NS):
            stack.callback(ask_for_slices, 0)
        encryption = None
        if settings.certificate is not None and settings.key is not None:
            encryption = server_context(settings.certificate, settings.key)
        listening = stack.enter_context(_listen(settings.host, settings.port))
        port = int(listening.getsockname()[1])
        control = ControlServer(
            (settings.host, port + 1 if settings.port else 0),
            settings.token,
            self.stops,
            self._command,
            self._on_operator,
            encryption,
            settings.silence_s,
            self._tell,
        )
        stack.callback(control.close)
        files = {} if encryption is None else {"certificate": str(settings.certificate), "key": str(settings.key)}
        process, connection = self._start_web(stack, control.port, listening, files)
        feed = self._feed = Feed(
            self._robot, self.stops, self.supervision, connection, self._tell, self._notify, self._campaign, self._log
        )
        stack.callback(feed.close, SENT_S, process.kill)
        feed.start()
        stack.enter_context(live_video(self._robot, feed.show, lambda: feed.viewers > 0))
        placer = self._robot.placer
        if isinstance(placer, Guided):
            placer.guide = PageGuide(feed.show_offset, placer.guide, self.supervision, self._robot.base)
        self.control_port = control.port
        scheme = "http" if encryption is None else "https"
        self.url = f"{scheme}://{settings.host}:{port}/#token={settings.token}"

    def _say_goodbye(self) -> None:
        """Show the result on the pages, which then close."""
        feed = self._feed
        if feed is None or not feed.viewers:
            return
        lines = [f"{count} × {words}" for words, count in self._ends.items()]
        title = "The run has ended"
        if self.supervision.helped:
            lines.append(f"a person decided in episodes {', '.join(map(str, self.supervision.helped))}")
        try:
            status = {} if self._campaign is None else self._campaign()
        except RuntimeFault as error:
            status = {"title": "The campaign", "closing": [error.message]}
        if status:
            title = (
                f"{status['title']} {'has ended' if status.get('finished') else 'has stopped; run it again to go on'}"
            )
            lines = list(status.get("closing") or lines)
        feed.say_goodbye({"title": title, "lines": lines, "log": str(self._log() or "")}, SENT_S)

    def _start_web(
        self, stack: ExitStack, control_port: int, listening: socket.socket, files: dict[str, str]
    ) -> tuple[BaseProcess, Connection]:
        """Start the page's process and the thread that takes its requests; return it and the way to it."""
        context = multiprocessing.get_context("spawn")
        theirs, ours = context.Pipe(duplex=False)
        requests, asking = context.Pipe()
        settings = WebSettings(
            self.settings.token, control_port, self.settings.name or self._robot.name, self.settings.others, **files
        )
        process = context.Process(
            target=serve_pages, args=(settings, listening, theirs, asking), name="console", daemon=True
        )
        process.start()
        theirs.close()
        asking.close()
        thread = threading.Thread(target=self._take_requests, args=(requests,), name="console stops", daemon=True)
        thread.start()

        def end() -> None:
            ours.close()
            process.join(END_S)
            if process.is_alive():
                process.kill()
                process.join()
            thread.join()
            requests.close()

        stack.callback(end)
        return process, ours

    def _take_requests(self, requests: Connection) -> None:
        """Carry out the stops that come over HTTP, until the page's process has ended."""
        while True:
            try:
                request = requests.recv()
            except (EOFError, OSError):
                return
            feed = self._feed
            if feed is None:
                continue
            if isinstance(request, int):
                feed.viewers = request
                continue
            if isinstance(request, str):
                self._tell(request)
                continue
            key, id = request
            answer = self.stops.stop(id, "by a page, over HTTP")
            with suppress(OSError):  # the page's process has ended
                requests.send((key, {**asdict(answer), "e_stop": self.stops.engaged()}))

    def show(self, frame: RgbdFrame) -> None:
        """Show a picture; for any thread."""
        if self._feed is not None:
            self._feed.show(frame)

    # --- the robot's thread -----------------------------------------------------------------------------------------

    def supervised(self, policy: Policy) -> Policy:
        """The policy under the operator, who can pause, end and overrule it from now on."""
        return Supervised(policy, self.supervision)

    @contextmanager
    def episode(
        self, episode: Episode, number: int = 1, total: int = 1, reference: Path | None = None
    ) -> Iterator[None]:
        """The context of an episode, from before its start until it is over; waits first while the run is paused.

        Args:
            episode: episode to be run.
            number: number of the episode, from 1.
            total: number of episodes.
            reference: picture of the start of an earlier run, if this console has shown none.

        Raises:
            EpisodeAborted: the operator ended the episode.
        """
        assert self._feed is not None
        self._episode, self._last = episode, None
        self.supervision.begin()
        earlier = self._references.get(episode.key)
        if earlier is None and reference is not None:
            read = cv2.imread(str(reference), cv2.IMREAD_COLOR)
            earlier = None if read is None else jpeg(read[..., ::-1].astype(np.uint8))
        self._feed.begin(episode, number, total, earlier)
        try:
            self.supervision.wait_while_paused()
            yield
        finally:
            self.supervision.finish()

    @property
    def subscribers(self) -> tuple[Subscriber, ...]:
        """Subscribers for the environment, after the one that records."""
        assert self._feed is not None
        return self.supervision, self._feed, self

    @override
    def on_step(self, record: StepRecord) -> None:
        self._last = record
        if record.index == 0 and self._episode is not None:
            height, width = record.frame.rgb.shape[:2]
            size = (_REFERENCE_WIDTH, round(height * _REFERENCE_WIDTH / width))
            if self._episode.key not in self._references and len(self._references) < _REFERENCES:
                small = cv2.resize(record.frame.rgb, size, interpolation=cv2.INTER_AREA)
                self._references[self._episode.key] = jpeg(small.astype(np.uint8))

    @override
    def on_episode_end(self, end: EpisodeEnd) -> None:
        """Offer the log to those who judge, and write down who decided in the policy's place."""
        log, feed, supervision = self._log(), self._feed, self.supervision
        words = "done, as the policy said" if end.reason is EndReason.STOP else end.reason.value.replace("_", " ")
        self._ends[f"{words} ({end.detail})" if end.detail else words] += 1
        if log is None or self._last is None or feed is None or self._episode is None:
            return
        name = self._verdicts.offer(log)
        feed.put("final", (name, self._last.frame.rgb))
        feed.put("judge", {"logs": self._verdicts.judges, "newest": name})
        if supervision.interventions:
            steps = ", ".join(map(str, supervision.interventions[:20]))
            give_verdict(log, supervision.helper, note=f"decided at steps {steps}", intervention="takeover")

    # --- commands of pages, in their threads ------------------------------------------------------------------------

    def _on_operator(self, operator: str | None) -> None:
        self.supervision.operator = operator or ""
        if self._human is not None and operator is not None and not self._named:
            self._human.operator = operator
        if operator is None:
            self.supervision.inbox.release()

    def _command(self, message: Message) -> str:
        do, supervision = message.do, self.supervision
        if do == "verdict":
            text = self._verdicts.add(message)
            assert self._feed is not None
            self._feed.put("judge", {"logs": self._verdicts.judges, "newest": message.log})
            return text
        if do == "answer" and self._answer is not None:
            return self._answer(message.ask, message.by)
        if do == "release":
            return self.stops.release()
        if do == "pause":
            supervision.paused = True
        elif do in ("start", "resume"):
            supervision.paused = False
        elif do == "abort":
            supervision.abort(f"{supervision.operator} ended the episode")
        elif do == "takeover" and self._human is None:
            supervision.take_over(supervision.operator)
        elif do == "handback":
            supervision.hand_back()
        elif do in ("press", "hold", "let_go"):
            self._ask(message)
        else:
            raise ConfigError(f"there is nothing to {do}", "reload the page")
        return do

    def _ask(self, message: Message) -> None:
        inbox = self.supervision.inbox
        if message.do == "let_go":
            inbox.release()
        elif message.action is None:
            raise ConfigError("an action is missing", "reload the page")
        elif self._human is None and self.supervision.taken_over is None and not self.supervision.steers:
            raise ConfigError("the policy decides", "take over first")
        elif message.do == "hold":
            inbox.hold(Choice(message.action, "console", message.stick))
        else:
            inbox.press(Choice(message.action, "console"))


class RunVerdicts:
    """Verdicts from pages on the episodes of a run that have ended; for any thread.

    Episodes are numbered in the order in which they ended: the names of logs and runs may tell the policy.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logs: dict[str, str] = {}
        self._judges: dict[str, list[str]] = {}

    def offer(self, log: Path) -> str:
        """Add the log of an episode that has ended; return its name for pages."""
        with self._lock:
            name = f"episode {len(self._logs) + 1}"
            self._logs[name], self._judges[name] = str(log.resolve()), []
        return name

    @property
    def judges(self) -> dict[str, list[str]]:
        """Name of each episode -> pseudonyms of those who gave a verdict on it."""
        with self._lock:
            return {name: judges[:] for name, judges in self._judges.items()}

    def add(self, message: Message) -> str:
        """Write down a person's verdict; return what became of it.

        Raises:
            ConfigError: the episode is unknown, that person gave a verdict on it, or the message says nothing.
            RecordingError: it cannot be written.
        """
        log = self._logs.get(message.log)
        if log is None:
            raise ConfigError("that episode is not known here", "reload the page")
        with self._lock:
            judges = self._judges[message.log]
            if message.judgment is not None and message.by in judges:
                raise ConfigError(f"{message.by} has judged this episode", "let somebody else be the second judge")
            helped: Literal["help"] | None = "help" if message.helped else None
            give_verdict(Path(log), message.by, message.visible, None, message.note, message.judgment, helped)
            if message.judgment is not None:
                judges.append(message.by)
        return f"{message.log}: {message.judgment or ('helped' if message.helped else 'noted')}"


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise ConfigError(
            f"the console cannot listen on {host}:{port}: {error.strerror}", "choose another --console HOST:PORT"
        ) from error
