"""``robot-runtime hardware``: ports, udev rules and live readings."""

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from robot_runtime.errors import ConfigError, DeviceFault


def register(groups: dict[str, typer.Typer]) -> None:
    """Add the commands."""
    groups["hardware"].command("find-port")(find_port)
    groups["hardware"].command("echo")(echo)
    groups["hardware"].command("udev")(udev)


def find_port(
    timeout_s: Annotated[float, typer.Option(min=1, max=600, help="Seconds to wait for each step.")] = 60.0,
) -> None:
    """Identify a device's serial port: unplug the device when asked, and plug it in again.

    Example:
        robot-runtime hardware find-port
    """
    from drivers.hardware.ports import usb_ports, wait_for_change
    from robot_runtime.common.clock import SystemClock
    from robot_runtime.common.console import say

    clock, before = SystemClock(), usb_ports()
    for port in before.values():
        say(f"  {port}")
    say("unplug the device now" if before else "there is no serial port on USB: plug the device in now")
    if before:
        gone = wait_for_change(clock, before, appears=False, timeout_s=timeout_s)
        if gone is None:
            raise DeviceFault(
                f"no port vanished in {timeout_s:g} s", "is the device connected to this computer by USB?"
            )
        say(f"{gone.path} is gone: plug it in again")
    found = wait_for_change(clock, usb_ports(), appears=True, timeout_s=timeout_s)
    if found is None:
        raise DeviceFault(f"no port appeared in {timeout_s:g} s", "plug it in again; try another cable or port")
    say(f"{found}")
    stable = [f"/dev/{name}" for name in found.names if Path(f"/dev/{name}").exists()]
    say(f"in the robot's file, write port: {(stable or [found.by_id or found.path])[0]}")
    if found.names and not stable:
        say("`robot-runtime hardware udev --install` gives it a name of its own")


def echo(
    device: Annotated[str, typer.Argument(help="What is connected: dynamixel, marvelmind, ...", metavar="DEVICE")],
    port: Annotated[str | None, typer.Option(help="Port. Default: the name that the udev rule gives it.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="Readings, then end. Default: until Ctrl-C.")] = None,
) -> None:
    """Show what a device on a serial port reports. Nothing is switched on or moved.

    Examples:
        robot-runtime hardware echo dynamixel
        robot-runtime hardware echo marvelmind --port /dev/ttyACM0 --count 10
    """
    from drivers.hardware.echo import ECHOES
    from robot_runtime.common.console import console

    if device not in ECHOES:
        raise ConfigError(f"there are no readings of {device!r}", f"name one of {', '.join(ECHOES)}")
    for line in islice(ECHOES[device](port or f"/dev/{device}"), count):
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def udev(
    install: Annotated[bool, typer.Option("--install", help="Copy the rules; needs root.")] = False,
    into: Annotated[Path, typer.Option(help="Folder of the rules.", file_okay=False)] = Path("/etc/udev/rules.d"),
) -> None:
    """Show whether the udev rules of all drivers are installed, or install them: names, permissions, short latency.

    Examples:
        robot-runtime hardware udev
        sudo robot-runtime hardware udev --install
    """
    from drivers.hardware.udev import install as install_rules
    from drivers.hardware.udev import rule_files
    from robot_runtime.common.console import say

    if install:
        install_rules(rule_files(), into)
    for file in rule_files():
        names = ", ".join(f"/dev/{rule.link}" for rule in file.rules)
        say(f"{file.path.name}: {file.state(into)}{f' ({names})' if names else ''}")
