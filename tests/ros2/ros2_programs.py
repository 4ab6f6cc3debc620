"""Emulators as programs of a test, and a client on the other DDS vendor."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import rclpy
from geometry_msgs.msg import Twist, TwistStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data

from drivers.ros2 import forged

ROOT = Path(__file__).resolve().parents[2]
START_S = 20.0
"""Limit of a program's start on a busy computer."""


class Emulator:
    """An emulated base, and its state.

    Args:
        name: module in ``tests.ros2.emulators``.
        domain: of the network.
        *options: of the program.
    """

    def __init__(self, name: str, domain: int, *options: object) -> None:
        command = [sys.executable, "-m", f"tests.ros2.emulators.{name}", "--domain", str(domain), *map(str, options)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert self.process.stdin
        assert self.process.stdout
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        assert json.loads(self._stdout.readline())["ready"]

    def tell(self, **commands: Any) -> dict[str, Any]:
        """Give commands; the state after them."""
        self._stdin.write(json.dumps(commands) + "\n")
        answer = json.loads(self._stdout.readline())
        assert "error" not in answer, answer
        return dict(answer)

    @property
    def state(self) -> dict[str, Any]:
        """The state now."""
        return self.tell(state=True)

    def wait(self, reached: Callable[[dict[str, Any]], object], limit_s: float = 10.0) -> dict[str, Any]:
        """The first state in which something is reached."""
        end_s = time.monotonic() + limit_s
        while not reached(state := self.state):
            assert time.monotonic() < end_s, state
            time.sleep(0.01)
        return state

    def touch(self, reached: Callable[[dict[str, Any]], object], limit_s: float = 20.0) -> None:
        """Press and release the bumper until something is reached, as a person does at a start."""
        end_s = time.monotonic() + limit_s
        while not reached(state := self.state):
            assert time.monotonic() < end_s, state
            self.tell(bump=["bump_left"])
            time.sleep(0.1)
            self.tell(bump=[])
            with suppress(AssertionError):  # pressed too early
                self.wait(reached, 1.5)

    def close(self) -> None:
        """End the program."""
        self._stdin.close()
        try:
            self.process.wait(5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._stdout.close()


class Client:
    """A ROS 2 program of somebody else, on Fast DDS. It does something only within :meth:`wait` and :meth:`drive`.

    Args:
        domain: of the network.
    """

    def __init__(self, domain: int) -> None:
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.node = rclpy.create_node("somebody", context=self._context, start_parameter_services=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)

    def close(self) -> None:
        """Leave the network."""
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()

    def listen(self, topic: str, kind: Any, quality: Any = qos_profile_sensor_data) -> list[Any]:
        """The messages of a topic, as they come; ``kind`` is a class, or the name of a type that rclpy lacks."""
        received: list[Any] = []
        if isinstance(kind, str):
            self.node.create_subscription(
                forged.stand_in(kind), topic, lambda data: received.append(forged.decode(kind, data)), quality, raw=True
            )
        else:
            self.node.create_subscription(kind, topic, lambda message: received.append(message), quality)
        return received

    def wait(self, reached: Callable[[], object], limit_s: float = 15.0) -> None:
        """Receive messages until something is reached."""
        end_s = time.monotonic() + limit_s
        while not reached():
            assert time.monotonic() < end_s
            self._executor.spin_once(timeout_sec=0.02)

    def rest(self, seconds: float) -> None:
        """Receive messages for a while."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left_s)

    def commander(self, topic: str = "/cmd_vel", stamped: bool = False) -> Callable[..., None]:
        """A function that publishes a velocity; it waits until the base listens."""
        publisher = self.node.create_publisher(TwistStamped if stamped else Twist, topic, 10)
        self.wait(publisher.get_subscription_count)

        def command(v_mps: float = 0.0, w_radps: float = 0.0) -> None:
            twist = Twist()
            twist.linear.x, twist.angular.z = v_mps, w_radps
            publisher.publish(TwistStamped(twist=twist) if stamped else twist)

        return command

    def drive(
        self,
        command: Callable[..., None],
        v_mps: float,
        w_radps: float,
        until: Callable[[], object],
        limit_s: float = 15.0,
    ) -> None:
        """Command a velocity at 20 Hz until something is reached."""
        end_s = time.monotonic() + limit_s
        while not until():
            assert time.monotonic() < end_s
            command(v_mps, w_radps)
            self.rest(0.05)

    def call(self, kind: Any, service: str, request: Any) -> Any:
        """The answer of a service."""
        client = self.node.create_client(kind, service)
        self.wait(client.service_is_ready)
        future = client.call_async(request)
        self.wait(future.done)
        return future.result()
