"""An emulated base as a program: a network, a step every 5 ms, and a test's commands on standard input.

Every line on standard input is a JSON object of commands; the answer on standard output is the state as one line. The
first line on standard output says that the topics are up. The program ends with its standard input.

Commands of every base: those of its class, and
``mute`` (topics that go silent), ``twice`` (topics that send everything twice), ``stamp_offset_s`` (a clock that is
wrong), ``odom_fault`` (``nan``, ``tilted`` or null), ``power_cycle`` (seconds until it is back).
"""

from __future__ import annotations

import argparse
import json
import math
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.ros2.emulators import dds
from tests.ros2.emulators.base import STEP_S, Base, quaternion
from tests.ros2.emulators.world import MOTOR_TAU_S

ODOM_S = 0.05


def arguments(description: str) -> argparse.ArgumentParser:
    """The options of every base."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--namespace", default="")
    parser.add_argument("--pose", type=float, nargs=3, default=(0.0, 0.0, 0.0), metavar=("X", "Y", "YAW"))
    parser.add_argument("--wall", type=float, nargs=4, action="append", default=[], metavar=("X0", "Y0", "X1", "Y1"))
    parser.add_argument("--start-up-s", type=float, default=0.0, help="until its topics are up")
    parser.add_argument("--best-effort", action="store_true", help="publish without retransmission")
    parser.add_argument("--dead-time-s", type=float, default=0.0, help="of the motors")
    parser.add_argument("--lag-s", type=float, default=MOTOR_TAU_S, help="of the motors")
    parser.add_argument("--without-tf", action="store_true", help="publish_odom_tfs: false")
    return parser


class Program:
    """A base on the network; subclasses add topics.

    Args:
        base: that moves.
        args: of :func:`arguments`.
        child_frame: of the odometry.
    """

    def __init__(self, base: Base, args: argparse.Namespace, child_frame: str) -> None:
        self.base, self.args, self.child_frame = base, args, child_frame
        base.wheels.dead_time_s, base.wheels.lag_s = args.dead_time_s, args.lag_s
        self.commands: queue.Queue[tuple[dict[str, Any], bool] | None] = queue.Queue()
        self.network: dds.Network | None = None
        self._up_at_s = time.monotonic() + args.start_up_s
        self._muted: set[str] = set()
        self._twice: set[str] = set()
        self._stamp_offset_s = 0.0
        self._odom_fault: str | None = None

    def connect(self) -> None:
        """Create readers and writers."""
        reliability = dds.BEST_EFFORT if self.args.best_effort else dds.RELIABLE
        self.network = dds.Network(self.args.domain, self.args.namespace, reliability)
        self._kinds: dict[str, str] = {}
        self._writers: dict[str, Any] = {}
        self._readers: list[tuple[Any, Callable[[Any], None]]] = []
        self._timers: list[list[Any]] = []
        self.offer()
        self._writers = {name: self.network.writer(name, kind) for name, kind in self._kinds.items()}

    def offer(self) -> None:
        """Announce topics, and subscribe."""
        self.publish_every(ODOM_S, self._odometry, odom="nav_msgs/msg/Odometry")
        if not self.args.without_tf:
            self._kinds["tf"] = "tf2_msgs/msg/TFMessage"

    def disconnect(self) -> None:
        """Leave the network."""
        if self.network:
            self._writers.clear()
            self._readers.clear()
            self.network.close()
            self.network = None

    def publish_every(self, period_s: float, publish: Callable[[], None], **kinds: str) -> None:
        """Announce topics, and publish in a period."""
        self._kinds |= kinds
        self._timers.append([time.monotonic(), period_s, publish])

    def listen(self, name: str, kind: str, receive: Callable[[Any], None], **quality: Any) -> None:
        """Subscribe."""
        assert self.network
        self._readers.append((self.network.reader(name, kind, **quality), receive))

    def drive(self, twist: Any) -> None:
        """Take a Twist."""
        self.base.receive(twist.linear.x, twist.angular.z, time.monotonic())

    def header(self, frame: str) -> dds.Header:
        """A header of this base's clock."""
        return dds.Header(dds.stamp(self._stamp_offset_s), frame)

    def publish(self, name: str, message: Any) -> bool:
        """Send a message, unless a fault says otherwise; whether it was sent."""
        if name in self._muted or name not in self._writers:
            return False
        for _ in range(1 + (name in self._twice)):
            self._writers[name].write(message)
        return True

    def command(self, name: str, value: Any) -> None:
        """Take a test's command."""
        if name == "mute":
            self._muted = set(value)
        elif name == "twice":
            self._twice = set(value)
        elif name == "stamp_offset_s":
            self._stamp_offset_s = float(value)
        elif name == "odom_fault":
            self._odom_fault = value
        elif name == "power_cycle":
            self.disconnect()
            self._up_at_s = time.monotonic() + float(value)
            self.base.restart()
        elif name != "state":
            self.base.command(name, value)

    def run(self) -> None:
        """Run until standard input ends."""
        threading.Thread(target=self._read, daemon=True).start()
        next_s, is_announced = time.monotonic(), False
        while True:
            now_s = time.monotonic()
            if self.network is None and now_s >= self._up_at_s:
                self.connect()
            if not is_announced and (self.network or self.args.start_up_s):
                print(json.dumps({"ready": True, "up": self.network is not None}), flush=True)
                is_announced = True
            if now_s >= next_s:
                next_s = max(next_s + STEP_S, now_s)
                self.base.step(now_s)
                self._publish_due(now_s)
            if not self._obey():
                self.disconnect()
                return
            left_s = next_s - time.monotonic()
            if self.network is None:
                time.sleep(max(left_s, 0.0))
            elif left_s > 0:
                self.network.wait(left_s)
            for reader, receive in self._readers if self.network else ():
                for message in dds.taken(reader):
                    receive(message)

    def stepped(self) -> None:
        """Publish what depends on the step that was just made."""

    def _publish_due(self, now_s: float) -> None:
        if not self.network:
            return
        self.stepped()
        for timer in self._timers:
            if now_s >= timer[0]:
                timer[0] = max(timer[0] + timer[1], now_s - timer[1])
                timer[2]()

    def _odometry(self) -> None:
        base = self.base
        x_m, y_m, yaw = base.odometry.x_m, base.odometry.y_m, base.odometry.yaw_rad
        if self._odom_fault == "nan":
            x_m = math.nan
        orientation = dds.Quaternion(*quaternion(yaw, math.radians(30) if self._odom_fault == "tilted" else 0.0))
        header = self.header("odom")
        pose = dds.PoseWithCovariance(pose=dds.Pose(dds.Point(x_m, y_m, 0.0), orientation))
        velocity = dds.Twist(dds.Vector3(base.wheels.v_mps), dds.Vector3(z=base.wheels.w_radps))
        twist = dds.TwistWithCovariance(twist=velocity)
        self.publish("odom", dds.Odometry(header, self.child_frame, pose, twist))
        transform = dds.Transform(dds.Vector3(x_m, y_m, 0.0), orientation)
        self.publish("tf", dds.TFMessage([dds.TransformStamped(header, self.child_frame, transform)]))

    def _read(self) -> None:
        for line in sys.stdin:
            self.commands.put((json.loads(line), True))
        self.commands.put(None)

    def _obey(self) -> bool:
        """Carry out the commands that wait; False at the end of them all."""
        while not self.commands.empty():
            item = self.commands.get()
            if item is None:
                return False
            asked, wants_answer = item
            answer: dict[str, Any] = {}
            try:
                for name, value in asked.items():
                    self.command(name, value)
            except (ValueError, TypeError) as error:
                answer["error"] = str(error)
            if wants_answer:
                print(json.dumps(answer | {"up": self.network is not None} | self.base.state()), flush=True)
        return True
