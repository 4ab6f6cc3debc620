"""A network link between two namespaces of this computer that delays packets, loses some, and is cut for a while.

::

    python -m tests.benchmarks.ros_locobot.lossy_link ROBOT DESK

Runs as root. Standard input: ``delay LOW HIGH`` (seconds), ``loss SHARE``, ``cut SECONDS``; each line is answered by
``ok``. Packets keep their order. The link ends with its standard input.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
from dataclasses import dataclass

from robot_runtime.common.clock import Clock, SystemClock, seconds_to_ns

ADDRESSES = ("10.79.0.1", "10.79.0.2")
"""Of the two ends, in the order of the namespaces."""

_INTERFACE = "link0"
_CLONE_NEWNET = 0x40000000
_SET_INTERFACE = 0x400454CA
_TUN_WITHOUT_HEADER = 0x1001


@dataclass
class Conditions:
    """What the link does with a packet."""

    low_s: float = 0.0
    high_s: float = 0.0
    loss: float = 0.0
    cut_until_ns: int = 0

    def change(self, line: str, now_ns: int) -> None:
        """Carry out a line of standard input."""
        name, *values = line.split()
        if name == "delay":
            self.low_s, self.high_s = map(float, values)
        elif name == "loss":
            self.loss = float(values[0])
        elif name == "cut":
            self.cut_until_ns = now_ns + seconds_to_ns(float(values[0]))
        else:
            raise ValueError(f"unknown command {line!r}")


def open_end(namespace: str, address: str) -> int:
    """Return the file descriptor of a new interface in a namespace; this process stays in the last one."""
    library = ctypes.CDLL(None, use_errno=True)
    with open(f"/var/run/netns/{namespace}") as entered:
        if library.setns(entered.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"namespace {namespace} cannot be entered")
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, _SET_INTERFACE, struct.pack("16sH", _INTERFACE.encode(), _TUN_WITHOUT_HEADER))
    for command in (f"addr add {address}/24 dev {_INTERFACE}", f"link set {_INTERFACE} up", "link set lo up"):
        subprocess.run(["ip", *command.split()], check=True)
    return end


def forward(ends: tuple[int, int], clock: Clock) -> None:
    """Carry packets from each end to the other until standard input closes."""
    conditions, chance = Conditions(), random.Random(0)
    latest_ns = dict.fromkeys(ends, 0)
    waiting: list[tuple[int, int, int, bytes]] = []
    number = 0
    while True:
        pause_s = 0.5 if not waiting else max(0.0, (waiting[0][0] - clock.now_ns()) / 1e9)
        ready, _, _ = select.select([*ends, sys.stdin], [], [], min(pause_s, 0.5))
        now_ns = clock.now_ns()
        if sys.stdin in ready:
            line = sys.stdin.readline()
            if not line:
                return
            conditions.change(line, now_ns)
            print("ok", flush=True)
        for end, other in (ends, ends[::-1]):
            while end in ready:
                try:
                    packet = os.read(end, 65536)
                except BlockingIOError:
                    break
                if now_ns < conditions.cut_until_ns or chance.random() < conditions.loss:
                    continue
                delay_ns = seconds_to_ns(chance.uniform(conditions.low_s, conditions.high_s))
                latest_ns[end] = max(latest_ns[end], now_ns + delay_ns)
                number += 1
                heapq.heappush(waiting, (latest_ns[end], number, other, packet))
        while waiting and waiting[0][0] <= clock.now_ns():
            _, _, end, packet = heapq.heappop(waiting)
            try:
                os.write(end, packet)
            except OSError:
                continue  # a full queue loses packets, as a network card's does


if __name__ == "__main__":
    robot, desk = sys.argv[1:]
    both = open_end(robot, ADDRESSES[0]), open_end(desk, ADDRESSES[1])
    print("up", flush=True)
    forward(both, SystemClock())
