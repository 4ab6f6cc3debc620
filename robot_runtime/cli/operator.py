"""Options of commands that people operate while they run: the console, and devices for driving by hand."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robot_runtime.cli_options.addresses import check_token, reached_as
from robot_runtime.common.console import tell
from robot_runtime.errors import ConfigError, DriverMissing, RuntimeFault

if TYPE_CHECKING:
    from robot_runtime.console.console import Console, ConsoleSettings
    from robot_runtime.hal import Robot
    from robot_runtime.policy import Policy
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.records import Subscriber
    from robot_runtime.tasks.episode import Episode

TOKEN_VARIABLE = "ROBOT_RUNTIME_CONSOLE_TOKEN"


@dataclass(frozen=True)
class ConsoleOptions:
    """The console of a run or a campaign."""

    console: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Serve a page with live images, map and STOP there, for this machine unless a host is given. Needs "
            "[console], and the next port as well.",
        ),
    ] = None
    console_token: Annotated[
        str | None, typer.Option(envvar=TOKEN_VARIABLE, help="What pages must show. Default: a new one, printed.")
    ] = None
    console_certificate: Annotated[Path | None, typer.Option(help="PEM file: the page is then https://.")] = None
    console_key: Annotated[Path | None, typer.Option(help="PEM file with its private key.")] = None
    attended: Annotated[
        bool, typer.Option("--attended", help="No episode begins before the operator starts it on the page.")
    ] = False
    console_silence_s: Annotated[
        float, typer.Option(min=0.2, max=30, help="Silence of the operator's page after which the robot is stopped.")
    ] = 0.5

    @property
    def address(self) -> tuple[str, int]:
        """Host and port. Raises ``ConfigError``."""
        text = self.console or ""
        host, _, port = text.rpartition(":")
        if not (port.isdecimal() and 0 <= int(port) < 65535):
            raise ConfigError(
                f"--console {text!r} has no port", "write a port, or HOST:PORT, as in --console 0.0.0.0:8900"
            )
        return host.strip("[]") or "127.0.0.1", int(port)

    def check(self) -> None:
        """Raise ``ConfigError`` for options that do not fit each other, ``DriverMissing`` without ``[console]``."""
        if self.console is None:
            if self.attended:
                raise ConfigError("--attended waits for the page of a console", "add --console 8900")
            return
        try:
            importlib.import_module("robot_runtime.console.console")
        except ModuleNotFoundError as error:
            raise DriverMissing(f"the console needs {error.name!r}", "pip install 'robot-runtime[console]'") from error
        if self.console_token is not None:
            check_token(self.console_token, self.address[0])
        if (self.console_certificate is None) != (self.console_key is None):
            raise ConfigError("--console-certificate and --console-key belong together", "give both, or neither")

    def settings(self) -> ConsoleSettings:
        """Settings of the console; after :meth:`check`."""
        from robot_runtime.console.console import ConsoleSettings

        return ConsoleSettings(
            *self.address,
            token=self.console_token or "",
            certificate=self.console_certificate,
            key=self.console_key,
            attended=self.attended,
            silence_s=self.console_silence_s,
        )


@dataclass(frozen=True)
class OperatorOptions(ConsoleOptions):
    """The console and the gamepad of a run."""

    notify_desktop: Annotated[
        bool, typer.Option("--notify-desktop", help="Show a desktop notification when a person is needed.")
    ] = False
    notify_hook: Annotated[str | None, typer.Option(metavar="URL", help="Post JSON there when a person is needed.")] = (
        None
    )
    gamepad: Annotated[
        Path | None, typer.Option(metavar="DEVICE", help="Gamepad for --agent human: /dev/input/eventN, or auto.")
    ] = None

    @contextmanager
    def operated(self, robot: Robot, policy: Policy, recorder: Recorder) -> Iterator[Operation]:
        """The operator's devices while a robot runs a policy.

        Raises:
            RuntimeFault: a device or an address is not available.
        """
        self.check()
        with ExitStack() as stack:
            if self.gamepad is not None:
                from robot_runtime.policies.human.gamepad import Gamepad, find_gamepad
                from robot_runtime.policies.human.human import Human

                if not isinstance(policy, Human):
                    raise ConfigError("--gamepad drives a robot without a policy", "add --agent human")
                path = find_gamepad() if str(self.gamepad) == "auto" else self.gamepad
                stack.enter_context(Gamepad(path, policy.inbox, _stop(robot)))
            if self.console is None:
                yield Operation(None)
                return
            from robot_runtime.console.console import Console

            console = Console(robot, self.settings(), tell, policy, lambda: recorder.path, notify=self._notify())
            stack.enter_context(console)
            tell(f"console: {shown(console)}")
            yield Operation(console)

    def _notify(self) -> Callable[[str], None]:
        from robot_runtime.campaign.messages import Notifier
        from robot_runtime.campaign.plan import Help
        from robot_runtime.common.config import parse

        notifier = Notifier(parse({"desktop": self.notify_desktop, "hook": self.notify_hook}, Help, "--notify"), tell)
        return lambda text: notifier.ask(text, {})


def shown(console: Console) -> str:
    """The console's address as browsers reach it."""
    host = console.settings.host
    return console.url.replace(f"//{host}:", f"//{reached_as(host)}:")


@dataclass(frozen=True)
class Operation:
    """Additions of the operator's devices to a run."""

    console: Console | None

    @property
    def subscribers(self) -> tuple[Subscriber, ...]:
        """Subscribers for the environment, after the recorder."""
        return () if self.console is None else self.console.subscribers

    def supervised(self, policy: Policy) -> Policy:
        """The policy under the operator."""
        return policy if self.console is None else self.console.supervised(policy)

    def episode(
        self, episode: Episode, number: int, total: int, reference: Path | None = None
    ) -> AbstractContextManager[None]:
        """The context of an episode; ``reference`` as of the console."""
        return nullcontext() if self.console is None else self.console.episode(episode, number, total, reference)


def press_key(policy: Policy) -> Callable[[str], object] | None:
    """Function for the keys of the terminal: for a person as agent, one press is one action; None for other agents."""
    if policy.name != "human":
        return None
    from robot_runtime.policies.human.human import Human
    from robot_runtime.policies.human.inbox import Choice
    from robot_runtime.policies.human.keys import HELP, KEYS

    if not isinstance(policy, Human):
        return None
    inbox = policy.inbox
    tell(f"one press is one action: {HELP}")

    def press(name: str) -> None:
        if name in KEYS:
            inbox.press(Choice(KEYS[name], "keyboard"))

    return press


def _stop(robot: Robot) -> Callable[[str], None]:
    from robot_runtime.estop.requests import carry_out

    def stop(reason: str) -> None:
        try:
            tell(f"{carry_out('stop', robot)} ({reason})")
        except RuntimeFault as error:
            tell(error.message)

    return stop
