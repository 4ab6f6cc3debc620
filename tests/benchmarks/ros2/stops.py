"""Stops of emulated ROS 2 bases, in .venv-ros2: ``python -m tests.benchmarks.ros2.stops TRIALS`` prints JSON."""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.ros2 import ros2_guard, ros2_network
from tests.ros2.ros2_programs import Emulator

SPEED_MPS = 0.15
BASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "create3": ("create3", ("--no-services",)),
    "create3-periodic": ("create3", ("--no-services", "--hazards", "periodic")),
    "turtlebot3": ("turtlebot3", ()),
}
CONTACT = ("contact_to_zero_p99_ms", "hazard message to zero on the wire, 99 of 100 are faster", 20.0)
KILLED = ("guard_alone_killed_to_zero_ms", "killed commander to zero on the wire, 99 of 100 are faster", 250.0)
FROZEN = ("command_loss_to_zero_ms", "frozen commander to zero on the wire, 99 of 100 are faster", 250.0)


def moves(state: dict[str, Any]) -> bool:
    """Whether the base drives at speed."""
    return bool(state["velocity"][0] > 0.8 * SPEED_MPS)


def contact_ms(base: Emulator) -> float:
    """The time to zero after a contact, which ends then."""
    base.wait(moves)
    time.sleep(random.uniform(0, 0.05))  # vary the phase between the programs
    base.tell(bump=["bump_left"])
    seconds = base.wait(lambda state: state["hazard_to_zero_s"])["hazard_to_zero_s"]
    base.tell(bump=[])
    return 1000 * float(seconds)


def loss_ms(base: Emulator, end: Callable[[], float]) -> float:
    """The time to zero after a commander's end."""
    base.wait(moves, 20.0)
    time.sleep(random.uniform(0, 0.05))
    ended_s = end()
    zero_s = base.wait(lambda state: (state["zero_at_s"] or 0.0) > ended_s)["zero_at_s"]
    base.wait(lambda state: state["stopped_at_s"])
    return 1000 * (float(zero_s) - ended_s)


@contextmanager
def guarded(name: str, domain: int, folder: Path) -> Iterator[Emulator]:
    """A base with its guard."""
    emulator, options = BASES[name]
    preset = name.removesuffix("-periodic")
    with closing(Emulator(emulator, domain, *options)) as base, closing(ros2_guard.guard(domain, folder, preset)):
        yield base


def measure(trials: int, folder: Path) -> list[dict[str, Any]]:
    """The times of every kind of stop on every base."""
    found: list[dict[str, Any]] = []

    def add(row: tuple[str, str, float], base: str, times_ms: list[float]) -> None:
        found.append({"name": row[0], "label": row[1], "base": base, "limit": row[2], "times_ms": times_ms})

    for number, name in enumerate(BASES):
        with ros2_network.domain(os.getpid() + number) as domain, guarded(name, domain, folder) as base:

            def commander(domain: int = domain) -> ros2_guard.Program:
                return ros2_guard.commander(domain, folder, "Twist", SPEED_MPS)

            if name.startswith("create3"):
                with closing(commander()):
                    base.touch(moves)
                with closing(commander()):
                    add(CONTACT, name, [contact_ms(base) for _ in range(trials)])
            ended: dict[str, list[float]] = {"kill": [], "freeze": []}
            for _ in range(trials):
                for end, times_ms in ended.items():
                    with closing(commander()) as program:
                        times_ms.append(loss_ms(base, getattr(program, end)))
            add(KILLED, name, ended["kill"])
            add(FROZEN, name, ended["freeze"])
    return found


def main() -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(ros2_network.environment(Path(folder)))
        print(json.dumps(measure(int(sys.argv[1]), Path(folder))))


if __name__ == "__main__":
    main()
