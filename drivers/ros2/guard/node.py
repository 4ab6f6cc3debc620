"""The guard node on ROS 2: its endpoints, and the watch for other publishers.

Discovery is this participant's own, so the watch asks nobody. A message names its sender since Kilted only; before, two
commanders cannot be told apart, and neither is obeyed.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from drivers.ros.connection.received import UNKNOWN, Received
from drivers.ros.guard.logic import GuardStatus
from drivers.ros.guard.node import NODE_NAME, GuardNode, GuardTransport, run_program
from drivers.ros.guard.options import GuardOptions, parse_guard_options
from drivers.ros.guard.sensors import Sensor
from drivers.ros.topics import ROS_2_FAMILIES, robot_state_node
from drivers.ros2.node import SET_PARAMETERS, Node, message_class, repeated_hazards, write_profile
from robot_runtime.common.clock import SystemClock, unix_now_ns
from robot_runtime.errors import DeviceFault, RuntimeFault
from robot_runtime.hal.wheels import Velocity
from robot_runtime.safety.guard import STILL

SENSOR_DEPTH = 100
"""Changes of hazards are not repeated; none may be dropped."""

NO_SWITCH = "this base has no switch of motor power: between this node's zeros it follows the other node"

PRIORITY = 10
"""Real-time: on a busy computer, a contact would wait for its turn. All threads that the node creates have it."""

KEEPER = "_keeper"
"""End of the name of the node that sends zeros once the guard has been killed."""

KEEPER_PERIOD_S, KEEPER_ZEROS, KEEPER_START_S = 0.02, 50, 20.0

DIAGNOSTICS = "diagnostic_msgs/DiagnosticArray"

log = logging.getLogger(NODE_NAME)


class RclpyTransport(GuardTransport):
    """The guard's endpoints.

    Args:
        options: options of the node.
        node: node with the name of the guard.
    """

    def __init__(self, options: GuardOptions, node: Node) -> None:
        self.name, self.velocity_topic = node.name, options.topics.velocity
        self._node, self._kind, self._period_s = node, options.velocity_kind, options.monitor_period_s
        self._allowed = frozenset((f"{self.name}{KEEPER}", *options.silent_publishers))
        self._wheels = node.advertise(self.velocity_topic, self._kind)
        self._twist, self._velocity = message_class(("geometry_msgs/Twist",)), message_class((self._kind,))
        self._status = node.advertise(f"{self.name}/status", DIAGNOSTICS, 4, is_latched=True)
        self._diagnostics = node.advertise("/diagnostics", DIAGNOSTICS, 4)
        self._array, self._diagnosis, self._pair = (
            message_class((f"diagnostic_msgs/{kind}",)) for kind in ("DiagnosticArray", "DiagnosticStatus", "KeyValue")
        )
        state = robot_state_node(options.family, options.topics.hazards)
        self._state = node.client(SET_PARAMETERS, f"{state}/set_parameters") if state else None
        self._doubled: tuple[str, ...] = ()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def subscribe_sensor(self, sensor: Sensor, receive: Callable[[Received], None]) -> Callable[[], bool]:
        self._node.subscribe(sensor.topic, sensor.kinds, receive, SENSOR_DEPTH)
        return lambda: bool(self._node.publishers_info(sensor.topic))

    def subscribe_command(self, receive: Callable[[Received], None]) -> None:
        topic = f"{self.name}/command"

        def on_command(received: Received) -> None:
            publishers = self._node.publishers(topic)
            self._doubled = publishers if received.sender == UNKNOWN and len(publishers) > 1 else ()
            if not self._doubled:
                receive(received)

        self._node.subscribe(topic, (self._kind,), on_command)

    def offer_emergency_stop(
        self, receive: Callable[[Received], None], serve: Callable[[bool], tuple[bool, str]]
    ) -> None:
        def on_request(request: Any, response: Any) -> Any:
            response.success, response.message = serve(request.data)
            return response

        self._node.subscribe(f"{self.name}/emergency_stop", ("std_msgs/Bool",), receive)
        self._node.serve("std_srvs/SetBool", f"{self.name}/emergency_stop", on_request)

    def watch(self, sensors: list[Sensor], report: Callable[[tuple[str, ...]], None]) -> None:
        def look() -> None:
            is_asked = False
            while not self._stop.wait(self._period_s):
                found = self._node.publishers(self.velocity_topic)
                report(tuple(node for node in found if node not in self._allowed))
                if self._state is not None and is_asked != self._state.service_is_ready():
                    is_asked = not is_asked  # again after a restart of the base
                    if is_asked:
                        self._state.call_async(self._state.srv_type.Request(parameters=repeated_hazards()))

        self._thread = threading.Thread(target=look, name="publisher watch", daemon=True)
        self._thread.start()

    def send(self, velocity: Velocity) -> None:
        twist = self._twist()
        twist.linear.x, twist.angular.z = float(velocity.linear_m_s), float(velocity.angular_rad_s)
        message = twist
        if self._velocity is not self._twist:
            message = self._velocity()
            message.twist, message.header.frame_id = twist, "base_link"
            _set_stamp(message.header)
        self._wheels.publish(message)

    def publish(self, status: GuardStatus) -> None:
        array = self._array()
        _set_stamp(array.header)
        values = [self._pair(key=key, value=value) for key, value in status.values().items()]
        level = bytes([status.level])
        array.status = [
            self._diagnosis(level=level, name=NODE_NAME, message=status.text, hardware_id=NODE_NAME, values=values)
        ]
        self._status.publish(array)
        self._diagnostics.publish(array)

    def notes(self) -> tuple[str, ...]:
        notes = []
        if not self._wheels.get_subscription_count():
            notes.append(f"no node subscribes to {self.velocity_topic}")
        for info in self._node.subscribers_info(self.velocity_topic):
            kind = info.topic_type.replace("/msg/", "/")
            if kind != self._kind:
                notes.append(f"{info.node_name} takes {kind} on {self.velocity_topic}, this guard sends {self._kind}")
        if self._doubled:
            notes.append(f"commands are refused, because {' and '.join(self._doubled)} send them: stop one")
        return tuple(notes)

    def cut_power(self) -> str:
        return NO_SWITCH

    def log(self, text: str, is_trouble: bool) -> None:
        log.log(logging.WARNING if is_trouble else logging.INFO, "%s", text)

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(1.0)


def start_keeper(options: GuardOptions) -> int:
    """Fork a process that sends zeros to the base when this one has died, however it was killed.

    A base without a timeout of its own, such as a TurtleBot 3, would keep its last velocity.

    Returns:
        The end of a pipe that tells the keeper of this process's death; it must stay open.

    Raises:
        DeviceFault: The keeper does not start.
    """
    ear, voice = os.pipe()
    ready, tell = os.pipe()
    if os.fork():
        os.close(ear)
        os.close(tell)
        answers, _, _ = select.select([ready], [], [], KEEPER_START_S)
        if not (answers and os.read(ready, 1)):
            os.close(voice)
            raise DeviceFault(
                "the process that stops the wheels after this one's death did not start",
                "read its error above; start the guard again",
            )
        os.close(ready)
        return voice
    try:
        os.close(voice)
        os.close(ready)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        keeper = RclpyTransport(options, Node(f"{NODE_NAME}{KEEPER}"))
        os.write(tell, b"1")
        os.read(ear, 1)
        for _ in range(KEEPER_ZEROS):
            keeper.send(STILL)
            SystemClock().sleep(KEEPER_PERIOD_S)
    except (RuntimeFault, RuntimeError, OSError):
        log.exception("the keeper ends")
    finally:
        os._exit(0)


def _set_stamp(header: Any) -> None:
    header.stamp.sec, header.stamp.nanosec = divmod(unix_now_ns(), 1_000_000_000)


def run(parameters: Any, where: str) -> None:
    """Run the guard until SIGTERM or Ctrl-C.

    Args:
        parameters: content of the YAML file.
        where: name of the file.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    opened: list[Node] = []

    def make(stop: threading.Event) -> GuardNode:
        options = parse_guard_options(parameters, where, ROS_2_FAMILIES)
        write_profile(options.discovery_server, shares_memory=False)
        with suppress(OSError):  # few systems permit it to ordinary users
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
        start_keeper(options)
        opened.append(Node(NODE_NAME))
        return GuardNode(options, RclpyTransport(options, opened[0]))

    run_program(make, lambda: opened[0].close())
