"""The guard of either generation of ROS: it owns the base's velocity topic and forwards only what the Guard allows.

Safety needs no master, timer or runtime: a stop is decided and sent within the callback that receives its cause, and a
loop in this process repeats the last decision.

::

    sensors ──► LevelTracker ┐
    command ───────────────► WheelGuard ──► the base's velocity topic
    e-stop, other publishers ┘         └──► status
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from drivers.ros.connection.received import Received
from drivers.ros.guard.e_stop_latch import LEFT_ENGAGED, EStopLatch
from drivers.ros.guard.logic import GuardStatus, Hold, WheelGuard
from drivers.ros.guard.options import GuardOptions
from drivers.ros.guard.safety_sources import tracker_of
from drivers.ros.guard.sensors import Sensor, subscriptions
from robot_runtime.common.clock import SystemClock, seconds_to_ns
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal.wheels import Halt, Velocity
from robot_runtime.safety.guard import STILL

NODE_NAME = "robot_runtime_guard"
STATUS_PERIOD_S = 1.0
FINAL_ZEROS = 3
"""Number of zeros sent at the end, a period apart: one may be lost, and the first may only wake a sender."""

SWITCH_INTERVAL_S = 0.0005
"""Python's thread switch interval. With the default of 5 ms a callback would wait longer for a busy thread."""

HOST = SystemClock()


class GuardTransport(ABC):
    """The guard's endpoints on a network.

    Attributes:
        name: full name of the node; ``command``, ``emergency_stop`` and ``status`` are below it.
        velocity_topic: topic of the base's velocity, resolved.
    """

    name: str
    velocity_topic: str

    @abstractmethod
    def subscribe_sensor(self, sensor: Sensor, receive: Callable[[Received], None]) -> Callable[[], bool]:
        """Subscribe to a sensor; return a test for a node that publishes its topic."""

    @abstractmethod
    def subscribe_command(self, receive: Callable[[Received], None]) -> None:
        """Subscribe to the commander's velocities."""

    @abstractmethod
    def offer_emergency_stop(
        self, receive: Callable[[Received], None], serve: Callable[[bool], tuple[bool, str]]
    ) -> None:
        """Subscribe to the topic (a std_msgs/Bool) and offer the service (a std_srvs/SetBool)."""

    @abstractmethod
    def watch(self, sensors: list[Sensor], report: Callable[[tuple[str, ...]], None]) -> None:
        """Start to look for other publishers of the velocity topic, and report them (empty for none)."""

    @abstractmethod
    def send(self, velocity: Velocity) -> None:
        """Send a velocity to the base, without blocking."""

    @abstractmethod
    def publish(self, status: GuardStatus) -> None:
        """Publish the status, latched, and as a diagnosis."""

    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """Return the network's problems, for the status."""

    @abstractmethod
    def cut_power(self) -> str:
        """Switch the motors off, again if they were, where the base can; return what this achieves."""

    def restore_power(self) -> None:
        """Switch the motors on if this node has switched them off."""

    @abstractmethod
    def log(self, text: str, is_trouble: bool) -> None:
        """Write to the node's log."""

    @abstractmethod
    def close(self) -> None:
        """End what :meth:`watch` has started."""


class GuardNode:
    """Connects :class:`WheelGuard` to a network.

    Decisions and their sending happen under one lock, so that no older velocity overtakes a stop.

    Args:
        options: options of the node.
        transport: endpoints.
        now_ns: time in nanoseconds from an arbitrary origin: this computer's monotonic clock, whatever the network's
            time is; a simulator may give its own.
    """

    def __init__(
        self, options: GuardOptions, transport: GuardTransport, now_ns: Callable[[], int] = HOST.now_ns
    ) -> None:
        self._options, self._transport, self._now_ns = options, transport, now_ns
        self._latch = EStopLatch(options.e_stop_path(transport.name))
        self._topics = options.topics
        self._logic = WheelGuard(
            options.limits, tracker_of(options.family, self._topics, periodic=options.periodic_hazards)
        )
        self._lock = threading.Lock()
        self._sent = STILL
        self._reported: GuardStatus | None = None
        self._reported_ns = 0
        self._sensors = subscriptions(options.family, self._topics, self._logic.tracker, now_ns)
        self._published: dict[str, Callable[[], bool]] = {}

    def start(self) -> None:
        """Subscribe. Until the sensors have reported, the wheels are held at zero.

        Raises:
            ConfigError: The emergency stop cannot be remembered.
        """
        transport = self._transport
        if self._latch.begin():
            self._logic.emergency_stop(True, self._now_ns(), LEFT_ENGAGED)
        for sensor in self._sensors:
            self._published[sensor.topic] = transport.subscribe_sensor(sensor, self._deciding(sensor.receive))
        transport.subscribe_command(self._deciding(self._command))
        transport.offer_emergency_stop(self._deciding(self._e_stop_message), self._e_stop_service)
        transport.watch(self._sensors, self._on_publishers)

    def run(self, stop: threading.Event) -> None:
        """Repeat the decision until ``stop``; zero is sent at the end in any case."""
        period_s = 1 / self._options.publish_hz
        try:
            while not stop.wait(period_s):
                with self._lock:
                    self._send()
                self._report()
        finally:
            with self._lock:
                self._logic.hold(Hold.ENDED, "")
                self._send()
            self._report()  # before the last zeros, so that the network's threads have time to send it
            for _ in range(FINAL_ZEROS):
                threading.Event().wait(period_s)
                with self._lock:
                    self._send()
            self._transport.close()
        self._latch.end(self._logic.e_stop)

    def _deciding(self, receive: Callable[[Received], object]) -> Callable[[Received], None]:
        """Return a callback that decides at once, and sends if that changes the velocity."""

        def on_message(received: Received) -> None:
            with self._lock:
                try:
                    receive(received)
                except Exception as error:  # noqa: BLE001 - any fault must stop the wheels
                    self._logic.hold(Hold.FAULT, f"{type(error).__name__}: {error}")
                    self._transport.log(traceback.format_exc(), is_trouble=True)
                self._send(only_changes=True)

        return on_message

    def _command(self, received: Received) -> None:
        twist = getattr(received.message, "twist", received.message)
        velocity = Velocity(twist.linear.x, twist.angular.z)
        self._logic.command(velocity, self._now_ns(), received.sender)

    def _e_stop_message(self, received: Received) -> None:
        self._logic.emergency_stop(received.message.data, self._now_ns())

    def _e_stop_service(self, engage: bool) -> tuple[bool, str]:
        with self._lock:
            self._logic.emergency_stop(engage, self._now_ns())
            self._send()
        return True, "stopped: all commands are refused" if engage else "released"

    def _on_publishers(self, nodes: tuple[str, ...]) -> None:
        with self._lock:
            if not nodes:
                self._logic.release(Hold.FOREIGN_PUBLISHER)
                self._transport.restore_power()
                self._send(only_changes=True)
                return
            names = ", ".join(nodes)
            self._logic.hold(Hold.FOREIGN_PUBLISHER, names)
            self._send(only_changes=True)  # before the switch: a base without power still obeys its newest velocity
            self._logic.hold(Hold.FOREIGN_PUBLISHER, f"{names}; {self._transport.cut_power()}")

    def _send(self, only_changes: bool = False) -> None:
        """Decide and send. Called under the lock."""
        tracker, published = self._logic.tracker, self._published
        tracker.unpublished(
            [topic for topic in tracker.quiet_topics if topic not in published or not published[topic]()]
        )
        velocity = self._logic.decide(self._now_ns()).velocity
        if not only_changes or velocity != self._sent:
            self._transport.send(velocity)
            self._sent = velocity

    def _report(self) -> None:
        """Publish the status when it changes, and at its period."""
        notes = self._transport.notes()
        with self._lock:
            now_ns = self._now_ns()
            status = self._logic.status(now_ns, notes)
        before = self._reported
        # The text contains ages, which always change.
        changed = before is None or replace(status, text="") != replace(before, text="")
        if changed or now_ns - self._reported_ns >= seconds_to_ns(STATUS_PERIOD_S):
            if before is None or status.reason != before.reason:
                # The start without sensors and the end are no trouble.
                normal = before is None or status.reason in (Halt.NONE.value, Hold.ENDED.value)
                self._transport.log(status.text, is_trouble=not normal)
            self._reported, self._reported_ns = status, now_ns
            self._transport.publish(status)


def run_program(make_guard: Callable[[threading.Event], GuardNode], end: Callable[[], Any]) -> None:
    """Run a guard until SIGTERM or Ctrl-C. A wrong parameter prints one line; the exit status is 2.

    Args:
        make_guard: joins the network and makes the guard; the event is set when the program shall end.
        end: leaves the network.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    try:
        guard = make_guard(stop)
        guard.start()
    except RuntimeFault as error:
        print(f"{NODE_NAME}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    try:
        guard.run(stop)
    finally:
        end()
