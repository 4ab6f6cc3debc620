"""Benchmark of the guard node's stops: time from a contact, or from the last command, to zero on the velocity topic.

This process emulates base and runtime, at 50 Hz each, over real topics; the guard is a process of its own. The times
include this process's receiving thread, so the guard itself is faster.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import rospy
from geometry_msgs.msg import Twist
from kobuki_msgs.msg import SensorState

from drivers.ros.topics import topic_names
from robot_runtime.common.clock import SystemClock
from robot_runtime.errors import DeviceFault
from tests.benchmarks.report import Row
from tests.benchmarks.ros_locobot.network import Network

PERIOD_S = 0.02
SPEED_M_S = 0.05
"""A low speed, for a short ramp."""

LIMIT_S = 10.0


@dataclass(frozen=True)
class Stops:
    """Durations of all trials in milliseconds."""

    contact_ms: list[float]
    loss_ms: list[float]


def guard_rows(network: Network, trials: int, advance: Callable[[], None]) -> list[Row]:
    """Return both figures over ``trials`` trials each; ``advance`` is called after each of them."""
    stops = measure_stops(network, trials, advance)
    contact, loss = (np.asarray(values) for values in (stops.contact_ms, stops.loss_ms))
    note = f"{trials} trials, median and longest in brackets"
    return [
        Row(
            "contact_to_zero_p50_ms",
            "contact on the topic to zero velocity on the topic, median",
            float(np.median(contact)),
            "ms",
            5,
            "<=",
            note=f"{trials} trials, from the message: the contact was up to 20 ms earlier",
        ),
        Row(
            "contact_to_zero_p99_ms",
            "the same, 99 of 100 are faster",
            float(np.percentile(contact, 99)),
            "ms",
            20,
            "<=",
            low=float(np.median(contact)),
            high=float(contact.max()),
            note=note,
        ),
        Row(
            "command_loss_to_zero_ms",
            "last command to zero velocity on the topic, 99 of 100 are faster",
            float(np.percentile(loss, 99)),
            "ms",
            250,
            "<=",
            low=float(np.median(loss)),
            high=float(loss.max()),
            note=note,
        ),
    ]


def measure_stops(network: Network, trials: int, advance: Callable[[], None]) -> Stops:
    """Start a guard, drive, and interrupt it ``trials`` times in each of the two ways."""
    rospy.set_param("/robot_runtime_guard", {"family": "pyrobot-kobuki"})
    guard = network.start("-m", "drivers.ros_locobot.guard")
    rig = _Rig()
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    random = np.random.default_rng(0)
    stops = Stops([], [])
    try:
        for values, interrupt in ((stops.contact_ms, rig.press), (stops.loss_ms, rig.stop_commands)):
            for _ in range(trials):
                rig.drive()
                rig.pause(float(random.uniform(0, PERIOD_S)))  # vary the phase between the two loops
                values.append(interrupt() / 1e6)
                advance()
    finally:
        sys.setswitchinterval(interval_s)
        rig.close()
        network.stop(guard)
    return stops


class _Rig:
    """An emulated base and runtime."""

    def __init__(self) -> None:
        topics = topic_names("pyrobot-kobuki", "")
        self._clock = SystemClock()
        self._changed = threading.Condition()
        self._pressed = self._silent = False
        self._sent_ns = self._zero_ns = self._commanded_ns = 0
        self._moving = False
        self._stop = threading.Event()
        self._core = rospy.Publisher(topics["core"], SensorState, queue_size=1, tcp_nodelay=True)
        self._command = rospy.Publisher("/robot_runtime_guard/command", Twist, queue_size=1, tcp_nodelay=True)
        self._wheels = rospy.Subscriber(topics["velocity"], Twist, self._on_wheels, tcp_nodelay=True)
        self._threads = [
            threading.Thread(target=loop, daemon=True) for loop in (self._emulate_base, self._emulate_runtime)
        ]
        for thread in self._threads:
            thread.start()

    def drive(self) -> None:
        """Drive until the commanded speed has been reached."""
        with self._changed:
            self._pressed = self._silent = False
            self._wait(lambda: self._moving, "the wheels to turn")

    def press(self) -> int:
        """Press the bumper; return the nanoseconds from that message to the first zero."""
        with self._changed:
            self._zero_ns = self._sent_ns = 0
            self._pressed = True
            self._wait(lambda: 0 < self._sent_ns <= self._zero_ns, "a stop after contact")
            return self._zero_ns - self._sent_ns

    def stop_commands(self) -> int:
        """Stop commanding; return the nanoseconds from the last command to the first zero."""
        with self._changed:
            self._zero_ns = 0
            self._silent = True
            self._wait(lambda: self._zero_ns > 0, "a stop after the last command")
            return self._zero_ns - self._commanded_ns

    def pause(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for endpoint in (self._core, self._command, self._wheels):
            endpoint.unregister()

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        if not self._changed.wait_for(done, LIMIT_S):
            raise DeviceFault(f"waited {LIMIT_S:g} s for {what}", "see the guard's output above")

    def _emulate_base(self) -> None:
        while not self._stop.wait(PERIOD_S):
            with self._changed:
                message = SensorState(bumper=SensorState.BUMPER_CENTRE if self._pressed else 0)
                if self._pressed and self._sent_ns == 0:
                    self._sent_ns = self._clock.now_ns()
            self._core.publish(message)

    def _emulate_runtime(self) -> None:
        message = Twist()
        message.linear.x = SPEED_M_S
        while not self._stop.wait(PERIOD_S):
            with self._changed:
                if self._silent:
                    continue
                self._commanded_ns = self._clock.now_ns()
            self._command.publish(message)

    def _on_wheels(self, message: Twist) -> None:
        now_ns = self._clock.now_ns()
        with self._changed:
            self._moving = message.linear.x == SPEED_M_S
            if message.linear.x == 0 and self._zero_ns == 0:
                self._zero_ns = now_ns
            self._changed.notify_all()
