"""Options of commands that people operate while they run: the console, and devices for driving by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robot_runtime.cli.addresses import check_token, reached_as
from robot_runtime.cli.stop import tell
from robot_runtime.errors import ConfigError, DriverMissing, RuntimeFault

if TYPE_CHECKING:
    from robot_runtime.console.console import Console
    from robot_runtime.hal import Robot
    from robot_runtime.policy import Policy
    from robot_runtime.recording.writer import Recorder
    from robot_runtime.records import Subscriber
    from robot_runtime.tasks.episode import Episode

TOKEN_VARIABLE = "ROBOT_RUNTIME_CONSOLE_TOKEN"


@dataclass(frozen=True)
class OperatorOptions:
    """The console and the gamepad of a run."""

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
    gamepad: Annotated[
        Path | None,
        typer.Option(metavar="DEVICE", help="Gamepad for --agent human: /dev/input/eventN, or auto."),
    ] = None

    @contextmanager
    def operated(
        self,
        robot: Robot,
        policy: Policy | None,
        recorder: Recorder,
        campaign: Callable[[], dict[str, Any]] | None = None,
    ) -> Iterator[Operation]:
        """The operator's devices while a robot runs a policy; ``campaign`` as of the console.

        Raises:
            RuntimeFault: a device or an address is not available.
        """
        from robot_runtime.teleop.gamepad import Gamepad, find_gamepad
        from robot_runtime.teleop.human import Human

        with ExitStack() as stack:
            if self.gamepad is not None:
                if not isinstance(policy, Human):
                    raise ConfigError("--gamepad drives a robot without a policy", "add --agent human")
                path = find_gamepad() if str(self.gamepad) == "auto" else self.gamepad
                stack.enter_context(Gamepad(path, policy.inbox, _stop(robot)))
            yield Operation(self._console(stack, robot, policy, recorder, campaign))

    def _console(
        self,
        stack: ExitStack,
        robot: Robot,
        policy: Policy | None,
        recorder: Recorder,
        campaign: Callable[[], dict[str, Any]] | None,
    ) -> Console | None:
        if self.console is None:
            if self.attended:
                raise ConfigError("--attended waits for the page of a console", "add --console 8900")
            return None
        try:
            from robot_runtime.console.console import Console, ConsoleSettings
        except ModuleNotFoundError as error:
            raise DriverMissing(f"the console needs {error.name!r}", "pip install 'robot-runtime[console]'") from error
        host, port = _address(self.console)
        if self.console_token is not None:
            check_token(self.console_token, host)
        if (self.console_certificate is None) != (self.console_key is None):
            raise ConfigError("--console-certificate and --console-key belong together", "give both, or neither")
        settings = ConsoleSettings(
            host, port, self.console_token or "", self.console_certificate, self.console_key, self.attended
        )
        console = stack.enter_context(Console(robot, settings, tell, policy, lambda: recorder.path, campaign))
        tell(f"console: {console.url.replace(f'//{host}:', f'//{reached_as(host)}:')}")
        return console


@dataclass(frozen=True)
class Operation:
    """What the operator's devices add to a run."""

    console: Console | None

    @property
    def subscribers(self) -> tuple[Subscriber, ...]:
        """Subscribers for the environment, after the recorder."""
        return () if self.console is None else self.console.subscribers

    def supervised(self, policy: Policy) -> Policy:
        """The policy under the operator."""
        return policy if self.console is None else self.console.supervised(policy)

    def episode(self, episode: Episode, number: int, total: int) -> AbstractContextManager[None]:
        """The context of an episode."""
        return nullcontext() if self.console is None else self.console.episode(episode, number, total)


def press_key(policy: Policy) -> Callable[[str], object] | None:
    """Function for the keys of the terminal: for a person as agent, one press is one action; None for other agents."""
    from robot_runtime.teleop.human import Human
    from robot_runtime.teleop.inbox import Choice
    from robot_runtime.teleop.keys import HELP, KEYS

    if not isinstance(policy, Human):
        return None
    inbox = policy.inbox
    tell(f"one press is one action: {HELP}")

    def press(name: str) -> None:
        if name in KEYS:
            inbox.press(Choice(KEYS[name], "keyboard"))

    return press


def _stop(robot: Robot) -> Callable[[str], None]:
    from robot_runtime.servers.emergency_stop import carry_out

    def stop(reason: str) -> None:
        try:
            tell(f"{carry_out('stop', robot)} ({reason})")
        except RuntimeFault as error:
            tell(error.message)

    return stop


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isdecimal() and 0 <= int(port) < 65535):
        raise ConfigError(f"--console {text!r} has no port", "write a port, or HOST:PORT, as in --console 0.0.0.0:8900")
    return host.strip("[]") or "127.0.0.1", int(port)
