"""A base and a runtime for the guard node to stand between, both played by the test process."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rospy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist
from kobuki_msgs.msg import SensorState
from ros_processes import LIMIT_S, Program, eventually
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from drivers.ros.guard.logic import GuardStatus

GUARD = ("-m", "drivers.ros_locobot.guard")
PERIOD_S = 0.02


class Rig:
    """Everything around a guard, on topics below ``name``.

    Attributes:
        core: what the base says 50 times a second; None for a base that says nothing.
        requested: the runtime's velocity, 50 times a second; None for a runtime that is gone.
        wire: ``(time.monotonic(), linear, angular)`` of all that arrived at the base.
        statuses: the guard's statuses, in order.
        told_s: their times by the guard's own clock (Unix time).
    """

    def __init__(self, name: str, folder: Path, spawn: Callable[..., Program], **parameters: Any) -> None:
        self.name = name
        self.core: SensorState | None = SensorState()
        self.requested: tuple[float, float] | None = None
        self.wire: list[tuple[float, float, float]] = []
        self.statuses: list[GuardStatus] = []
        self.told_s: list[float] = []
        self._spawn = spawn
        self._stop = threading.Event()
        topics = {"velocity": "velocity", "core": "core", "odom": "odom"}
        topics |= {kind: kind for kind in ("bumper", "cliff", "wheel_drop", "diagnostics", "motor_power")}
        self.topics = {field: f"{name}/{topic}" for field, topic in topics.items()}
        e_stop_file = str(folder / "e_stop")
        defaults = {"family": "pyrobot-kobuki", "topics": self.topics, "master": {"monitor_period_s": 0.1}}
        defaults["e_stop_file"] = e_stop_file
        rospy.set_param(self.guard_name, defaults | parameters)
        self._endpoints: list[Any] = [
            rospy.Subscriber(self.topics["velocity"], Twist, self._on_velocity, tcp_nodelay=True),
            rospy.Subscriber(f"{self.guard_name}/status", DiagnosticArray, self._on_status),
        ]
        self._core = self.publisher("core", SensorState)
        self._command = self.publisher(f"{self.guard_name}/command", Twist)
        self.guard = self.start()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    @property
    def guard_name(self) -> str:
        return f"{self.name}_guard"

    def start(self) -> Program:
        """(Re)start the guard node."""
        self.guard = self._spawn(*GUARD, f"__name:={self.guard_name.lstrip('/')}")
        return self.guard

    def publisher(self, topic: str, message: Any) -> rospy.Publisher:
        """A publisher on one of the base's topics, or on a full name."""
        made = rospy.Publisher(self.topics.get(topic, topic), message, queue_size=10, tcp_nodelay=True)
        self._endpoints.append(made)
        return made

    def press(self, bumper: int = 0, cliff: int = 0, wheel_drop: int = 0) -> None:
        self.core = SensorState(bumper=bumper, cliff=cliff, wheel_drop=wheel_drop)

    def emergency_stop(self, engaged: bool) -> str:
        rospy.wait_for_service(f"{self.guard_name}/emergency_stop", timeout=LIMIT_S)
        return str(rospy.ServiceProxy(f"{self.guard_name}/emergency_stop", SetBool)(engaged).message)

    def emergency_stop_topic(self) -> rospy.Publisher:
        return self.publisher(f"{self.guard_name}/emergency_stop", Bool)

    def moves(self, linear: float | None = None, angular: float | None = None) -> bool:
        """Whether, from now on, such a velocity comes through."""
        seen = len(self.wire)

        def like(wanted: float | None, got: float) -> bool:
            return wanted is None or math.isclose(wanted, got, abs_tol=1e-9)

        return bool(
            eventually(
                lambda: any(like(linear, x) and like(angular, w) and (x or w) for _, x, w in self.wire[seen:]),
                alive=self.guard,
            )
        )

    def stands(self, reason: str, count: int = 10) -> bool:
        """Whether ``count`` zeros in a row come now, and the guard says why."""
        if not eventually(lambda: self.status and self.status.reason == reason, alive=self.guard):
            return False
        seen = len(self.wire)

        def stood() -> bool:
            wire = self.wire[seen:]  # what was sent before the reason was told may come after it: another topic
            return len(wire) >= count and not any(x or w for _, x, w in wire[-count:])

        return bool(eventually(stood, alive=self.guard))

    @property
    def status(self) -> GuardStatus | None:
        return self.statuses[-1] if self.statuses else None

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for endpoint in self._endpoints:
            endpoint.unregister()

    def _play(self) -> None:
        while not self._stop.wait(PERIOD_S):
            core, requested = self.core, self.requested
            if core is not None:
                self._core.publish(core)
            if requested is not None:
                twist = Twist()
                twist.linear.x, twist.angular.z = requested
                self._command.publish(twist)

    def _on_velocity(self, message: Twist) -> None:
        self.wire.append((time.monotonic(), message.linear.x, message.angular.z))

    def _on_status(self, message: DiagnosticArray) -> None:
        self.told_s.append(message.header.stamp.to_sec())
        self.statuses.append(GuardStatus.of(message))
