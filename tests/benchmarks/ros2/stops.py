"""Stops of emulated ROS 2 bases by the guard alone, by the clock that all programs of this computer share."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivers.ros2.guard.node import PRIORITY
from tests.benchmarks.report import Row
from tests.ros2 import ros2_guard, ros2_network
from tests.ros2.ros2_programs import Emulator

SPEED_MPS = 0.15
CREATE_3 = ("create3", "--no-services")
COMMAND_S = 0.05
"""Period of the commander."""


@dataclass(frozen=True)
class Base:
    """An emulated base.

    Attributes:
        programs: emulators with their options; the first has the wheels.
        preset: of the guard.
        kind: type of its velocities.
        senses_contact: whether it tells of contacts.
        tells_changes: whether of changes only, so that it must be touched once.
    """

    programs: tuple[tuple[str, ...], ...]
    preset: str
    kind: str = "Twist"
    senses_contact: bool = True
    tells_changes: bool = True


BASES = {
    "create3": Base((CREATE_3,), "create3"),
    "create3-periodic": Base(((*CREATE_3, "--hazards", "periodic"),), "create3", tells_changes=False),
    "locobot-create3": Base(((*CREATE_3, "--namespace", "/locobot/mobile_base"),), "locobot-create3"),
    "turtlebot4-jazzy": Base(
        ((*CREATE_3, "--namespace", "/_do_not_use"), ("turtlebot4_republisher", "--add", "hazard_detection")),
        "turtlebot4-jazzy",
        "TwistStamped",
    ),
    "turtlebot3": Base((("turtlebot3",),), "turtlebot3", senses_contact=False, tells_changes=False),
}


def moves(state: dict[str, Any]) -> bool:
    """Whether the base drives at speed by a command: after a zero it coasts."""
    return bool(state["zero_at_s"] is None and state["velocity"][0] > 0.8 * SPEED_MPS)


def contact_ms(base: Emulator) -> float:
    """The time to zero after a contact, which ends then."""
    base.wait(lambda state: state["zero_at_s"] is None)
    time.sleep(random.uniform(0, COMMAND_S))  # vary the phase between the programs
    base.tell(bump=["bump_left"])
    seconds = base.wait(lambda state: state["hazard_to_zero_s"])["hazard_to_zero_s"]
    base.tell(bump=[])
    return 1000 * float(seconds)


def loss_ms(base: Emulator, end: Callable[[], float]) -> float:
    """The time to zero after a commander's end."""
    base.wait(moves, 20.0)
    time.sleep(random.uniform(0, COMMAND_S))
    ended_s = end()
    zero_s = base.wait(lambda state: (state["zero_at_s"] or 0.0) > ended_s)["zero_at_s"]
    base.wait(lambda state: state["stopped_at_s"])
    return 1000 * (float(zero_s) - ended_s)


@contextmanager
def guarded(made: Base, domain: int, folder: Path) -> Iterator[Emulator]:
    """A base with its guard."""
    with ExitStack() as stack:
        with _real_time():
            bases = [stack.enter_context(closing(Emulator(name, domain, *options))) for name, *options in made.programs]
        stack.enter_context(closing(ros2_guard.guard(domain, folder, made.preset)))
        yield bases[0]


@contextmanager
def _real_time() -> Iterator[None]:
    """Give the programs that start meanwhile real-time priority, as a base's firmware has, where it is permitted."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def stop_rows(folder: Path, contacts: int, trials: int) -> Iterator[Row]:
    """The rows of every base.

    Args:
        folder: of this run.
        contacts: number of contacts of each base.
        trials: number of commanders that are killed, and that freeze, at each base.
    """
    for number, (name, made) in enumerate(BASES.items()):
        with ros2_network.domain(os.getpid() + number) as domain, guarded(made, domain, folder) as base:

            def commander(domain: int = domain, kind: str = made.kind) -> ros2_guard.Program:
                return ros2_guard.commander(domain, folder, kind, SPEED_MPS)

            with closing(commander()) as program:
                if made.tells_changes:
                    base.touch(moves)
                base.wait(moves, 20.0)
                if made.senses_contact:
                    yield _row(
                        "contact_to_zero_p99_ms",
                        "hazard message to zero on the wire",
                        name,
                        20.0,
                        [contact_ms(base) for _ in range(contacts)],
                    )
                frozen = []
                for _ in range(trials):
                    frozen.append(loss_ms(base, program.freeze))
                    program.thaw()
            killed = []
            for _ in range(trials):
                with closing(commander()) as program:
                    killed.append(loss_ms(base, program.kill))
            yield _row("guard_alone_killed_to_zero_ms", "killed commander to zero on the wire", name, 250.0, killed)
            yield _row("command_loss_to_zero_ms", "frozen commander to zero on the wire", name, 250.0, frozen)


def _row(name: str, label: str, base: str, limit: float, times_ms: list[float]) -> Row:
    ordered = sorted(times_ms)
    value, middle = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))], ordered[len(ordered) // 2]
    note = f"{len(ordered)} trials on {base}, median and longest in brackets"
    label = f"{label}, 99 of 100 are faster"
    return Row(f"{name}.{base}", label, value, "ms", limit, "<=", low=middle, high=ordered[-1], note=note)
