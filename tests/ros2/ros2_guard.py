"""The guard alone as a program of a test, and its commander."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import rclpy
from geometry_msgs.msg import Twist, TwistStamped
from rclpy.signals import SignalHandlerOptions

from drivers.ros2.node import PROFILES

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "/robot_runtime_guard/command"
PERIOD_S = 0.05


class Program:
    """A Python program on the test's network, in a process of its own."""

    def __init__(self, domain: int, folder: Path, *command: object, is_guard: bool = False) -> None:
        self._is_frozen = False
        environment = os.environ | {"ROS_DOMAIN_ID": str(domain), "ROS_HOME": str(folder)}
        if is_guard:
            environment.pop(PROFILES, None)  # it brings its own
        self.process = subprocess.Popen(
            [sys.executable, *map(str, command)], cwd=ROOT, env=environment, stdin=subprocess.PIPE
        )

    def kill(self) -> float:
        """Kill it as ``kill -9`` does; when, by the monotonic clock that all programs here share."""
        killed_s = time.monotonic()
        self.process.send_signal(signal.SIGKILL)
        return killed_s

    def freeze(self) -> float:
        """Stop it without ending it."""
        self._is_frozen = True
        frozen_s = time.monotonic()
        self.process.send_signal(signal.SIGSTOP)
        return frozen_s

    def thaw(self) -> None:
        """Let a frozen one go on."""
        self._is_frozen = False
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it."""
        if self.process.poll() is None:
            # A frozen one would go on commanding between SIGCONT and SIGTERM.
            self.process.send_signal(signal.SIGKILL if self._is_frozen else signal.SIGTERM)
        try:
            self.process.wait(5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()  # type: ignore[union-attr]


def guard(domain: int, folder: Path, preset: str) -> Program:
    """``robot-runtime guard PRESET``, by the program that it starts."""
    parameters = ROOT / f"launch/guards/{preset}.yaml"
    return Program(domain, folder, "-m", "drivers.ros.guard.program", parameters, is_guard=True)


def commander(domain: int, folder: Path, kind: str, v_mps: float, w_radps: float = 0.0) -> Program:
    """A commander that publishes one velocity at 20 Hz, as a Twist or a TwistStamped."""
    return Program(domain, folder, "-m", "tests.ros2.ros2_guard", kind, v_mps, w_radps)


def main(kind: str, v_mps: str, w_radps: str) -> None:
    """Command until the end."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node(f"commander_{os.getpid()}", start_parameter_services=False)
    publisher = node.create_publisher({"Twist": Twist, "TwistStamped": TwistStamped}[kind], COMMAND, 1)
    twist = Twist()
    twist.linear.x, twist.angular.z = float(v_mps), float(w_radps)
    message: Any = TwistStamped(twist=twist) if kind == "TwistStamped" else twist
    while True:
        publisher.publish(message)
        time.sleep(PERIOD_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
