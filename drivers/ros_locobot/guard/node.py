"""The guard node: it owns the base's velocity topic and forwards only the velocities that the Guard allows.

Started by ``ros_ws/src/robot_runtime_guard``, whose README has the topics and parameters. Safety needs no master, timer
or runtime: a stop is decided and sent within the callback that receives its cause, and a loop in this process repeats
the last decision.

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
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import rosgraph
import rospy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Twist
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, SetBoolRequest, SetBoolResponse

from drivers.ros_locobot.connection.errors import MasterGone
from drivers.ros_locobot.connection.master import Master, wait_until
from drivers.ros_locobot.guard.e_stop_latch import LEFT_ENGAGED, EStopLatch
from drivers.ros_locobot.guard.logic import GuardStatus, Hold, WheelGuard
from drivers.ros_locobot.guard.master_monitor import MasterMonitor
from drivers.ros_locobot.guard.options import CONNECT_TIMEOUT_S, MASTER_TIMEOUT_S, GuardOptions, read_guard_options
from drivers.ros_locobot.guard.safety_sources import tracker_of
from drivers.ros_locobot.guard.sensors import has_publisher, message_class, subscriptions
from robot_runtime.common.clock import SystemClock, seconds_to_ns
from robot_runtime.errors import RuntimeFault
from robot_runtime.hal.wheels import Halt, Velocity
from robot_runtime.safety.guard import STILL

NODE_NAME = "robot_runtime_guard"
STATUS_PERIOD_S = 1.0
FINAL_ZEROS = 3
"""Number of zeros sent at the end, a period apart: one may be lost, and the first only wakes rospy's sender."""

SWITCH_INTERVAL_S = 0.0005
"""Python's thread switch interval. With the default of 5 ms a callback would wait longer for a busy thread."""

HOST = SystemClock()

NO_SWITCH = (
    "this base has no switch of motor power: between this node's zeros it follows the other node and creeps at a part "
    "of the speed"
)


class MotorSwitch:
    """The switch of a Kobuki's motors: off while another node commands the base.

    A base executes the newest velocity, so this node's zeros only slow another node's commands. kobuki_node ignores all
    velocities while motor power is off; a Create's driver has no such switch. Not thread-safe: the node calls it under
    its lock.

    Args:
        topic: topic of type ``kobuki_msgs/MotorPower``; empty if the base has none.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._is_off = False
        if topic:
            self._message = message_class(("kobuki_msgs/MotorPower",))
            self._publisher = rospy.Publisher(topic, self._message, queue_size=1, tcp_nodelay=True)

    def cut(self) -> str:
        """Switch the motors off, again if they were; return what this achieves, for the status."""
        if not self._topic:
            return NO_SWITCH
        self._is_off = True
        self._publisher.publish(self._message(self._message.OFF))
        if not self._publisher.get_num_connections():
            return f"motor power stays on, because no node subscribes to {self._topic}"
        return "motor power is off until then"

    def restore(self) -> None:
        """Switch the motors on if this node has switched them off."""
        if self._is_off:
            self._is_off = False
            self._publisher.publish(self._message(self._message.ON))


class GuardNode:
    """Connects :class:`WheelGuard` to topics.

    Decisions and their sending happen under one lock, so that no older velocity overtakes a stop.

    Args:
        options: options of the node.
        now_ns: time in nanoseconds from an arbitrary origin: this computer's monotonic clock, whatever the parameter
            ``/use_sim_time`` is; a simulator may give its own.
        subscribe: constructor of a subscriber with the arguments of ``rospy.Subscriber``, used for every input.
    """

    def __init__(
        self,
        options: GuardOptions,
        now_ns: Callable[[], int] = HOST.now_ns,
        subscribe: Callable[..., rospy.Subscriber] = rospy.Subscriber,
    ) -> None:
        self._options = options
        self._now_ns = now_ns
        self._subscribe = subscribe
        self._latch = EStopLatch(options.e_stop_path(rospy.get_name()))
        self._topics = options.topics
        self._logic = WheelGuard(options.limits, tracker_of(options.family, self._topics))
        self._lock = threading.Lock()
        self._sent = STILL
        self._reported: GuardStatus | None = None
        self._reported_ns = 0
        # A queue for a single message, sent by a thread: a base that stopped reading can never block the guard.
        self._wheels = rospy.Publisher(self._topics.velocity, Twist, queue_size=1, tcp_nodelay=True)
        self._status = rospy.Publisher("~status", DiagnosticArray, queue_size=4, latch=True)
        self._diagnostics = rospy.Publisher("/diagnostics", DiagnosticArray, queue_size=4)
        self._motors = MotorSwitch(self._topics.motor_power)
        self._sensors = subscriptions(options.family, self._topics, self._logic.tracker, now_ns)
        self._subscribers: dict[str, rospy.Subscriber] = {}
        self._monitor = MasterMonitor(options, self._wheels.resolved_name, self._on_publishers)

    def start(self) -> None:
        """Subscribe. Until the sensors have reported, the wheels are held at zero.

        Raises:
            ConfigError: The emergency stop cannot be remembered.
        """
        if self._latch.begin():
            self._logic.emergency_stop(True, self._now_ns(), LEFT_ENGAGED)
        for sensor in self._sensors:
            callback = self._deciding(sensor.receive)
            subscriber = self._subscribe(sensor.topic, sensor.message, callback, tcp_nodelay=True)
            self._subscribers[sensor.topic] = subscriber
        self._subscribe("~command", Twist, self._deciding(self._command), queue_size=1, tcp_nodelay=True)
        self._subscribe("~emergency_stop", Bool, self._deciding(self._e_stop_message), tcp_nodelay=True)
        # This node's own messages come back here too; any others are of a foreign publisher.
        self._subscribe(self._topics.velocity, rospy.AnyMsg, self._on_velocity, tcp_nodelay=True)
        rospy.Service("~emergency_stop", SetBool, self._e_stop_service)
        self._monitor.start([(rospy.resolve_name(sensor.topic), sensor.definition) for sensor in self._sensors])

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
            self._report()  # before the last zeros, so that rospy's threads have time to send it
            for _ in range(FINAL_ZEROS):
                rospy.rostime.wallsleep(period_s)
                with self._lock:
                    self._send()
            self._monitor.stop()
        self._latch.end(self._logic.e_stop)

    def _deciding(self, receive: Callable[[Any], object]) -> Callable[[Any], None]:
        """Return a callback that decides at once, and sends if that changes the velocity."""

        def on_message(message: Any) -> None:
            with self._lock:
                try:
                    receive(message)
                except Exception as error:  # noqa: BLE001 - any fault must stop the wheels
                    self._logic.hold(Hold.FAULT, f"{type(error).__name__}: {error}")
                    rospy.logerr(traceback.format_exc())
                self._send(only_changes=True)

        return on_message

    def _command(self, message: Twist) -> None:
        sender = message._connection_header.get("callerid", "?")
        self._logic.command(Velocity(message.linear.x, message.angular.z), self._now_ns(), sender)

    def _e_stop_message(self, message: Bool) -> None:
        self._logic.emergency_stop(message.data, self._now_ns())

    def _e_stop_service(self, request: SetBoolRequest) -> SetBoolResponse:
        with self._lock:
            self._logic.emergency_stop(request.data, self._now_ns())
            self._send()
        return SetBoolResponse(True, "stopped: all commands are refused" if request.data else "released")

    def _on_velocity(self, message: rospy.AnyMsg) -> None:
        sender = message._connection_header.get("callerid", "?")
        if sender != rospy.get_name():
            self._monitor.revoke(sender)
            self._on_publishers((sender,))

    def _on_publishers(self, nodes: tuple[str, ...]) -> None:
        with self._lock:
            if not nodes:
                self._logic.release(Hold.FOREIGN_PUBLISHER)
                self._motors.restore()
                self._send(only_changes=True)
                return
            names = ", ".join(nodes)
            self._logic.hold(Hold.FOREIGN_PUBLISHER, names)
            self._send(only_changes=True)  # before the switch: a base without power still obeys its newest velocity
            self._logic.hold(Hold.FOREIGN_PUBLISHER, f"{names}; {self._motors.cut()}")

    def _send(self, only_changes: bool = False) -> None:
        """Decide and send. Called under the lock."""
        tracker, subscribers = self._logic.tracker, self._subscribers
        tracker.unpublished([topic for topic in tracker.quiet_topics if not has_publisher(subscribers.get(topic))])
        velocity = self._logic.decide(self._now_ns()).velocity
        if not only_changes or velocity != self._sent:
            twist = Twist()
            twist.linear.x, twist.angular.z = velocity.linear_m_s, velocity.angular_rad_s
            self._wheels.publish(twist)
            self._sent = velocity

    def _report(self) -> None:
        """Publish the status when it changes, and at its period."""
        notes = self._monitor.notes()
        if self._wheels.get_num_connections() < 2:  # one of them is this node's own subscriber
            notes = (*notes, f"no node subscribes to {self._wheels.resolved_name}")
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
                (rospy.loginfo if normal else rospy.logwarn)("%s", status.text)
            self._reported, self._reported_ns = status, now_ns
            message = to_message(status)
            self._status.publish(message)
            self._diagnostics.publish(message)


def to_message(status: GuardStatus) -> DiagnosticArray:
    """Return the status as a message: OK while commands pass, ERROR where a person must act."""
    passing = {Halt.NONE.value: DiagnosticStatus.OK, Halt.EXPIRED.value: DiagnosticStatus.WARN}
    passing[Halt.CONTACT.value] = passing[Halt.CLIFF.value] = DiagnosticStatus.WARN
    array = DiagnosticArray()
    array.header.stamp = rospy.Time.now()
    values = [
        KeyValue(key, str(value).lower() if isinstance(value, bool) else value) for key, value in asdict(status).items()
    ]
    level = passing.get(status.reason, DiagnosticStatus.ERROR)
    array.status = [DiagnosticStatus(level, NODE_NAME, status.text, NODE_NAME, values)]
    return array


def from_message(array: DiagnosticArray) -> GuardStatus:
    """Return the status in a message of :func:`to_message`. Raises ``KeyError`` for another message."""
    values = {pair.key: pair.value for pair in array.status[0].values}
    return GuardStatus(
        **{name: values[name] for name in GuardStatus.__dataclass_fields__ if name != "e_stop"},
        e_stop=values["e_stop"] == "true",
    )


def _join(stop: threading.Event) -> None:
    """Become a node. Raises ``MasterGone`` if no master answers; rospy itself would wait forever."""
    master = Master(rosgraph.get_master_uri().rstrip("/"), MASTER_TIMEOUT_S)

    def answers() -> bool:
        try:
            return bool(master.identity())
        except MasterGone:
            return False

    if not wait_until(answers, stop.wait, CONNECT_TIMEOUT_S, 0.1):
        master.identity()
    rospy.init_node(NODE_NAME, disable_signals=True)


def main(make_guard: Callable[[GuardOptions], GuardNode] = GuardNode) -> None:
    """Run the node until SIGTERM or Ctrl-C. A wrong parameter prints one line; the exit status is 2."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    try:
        _join(stop)
        node = make_guard(read_guard_options(rospy.get_param("~", None), rospy.get_name()))
        node.start()
    except RuntimeFault as error:
        print(f"{NODE_NAME}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    try:
        node.run(stop)
    finally:
        rospy.signal_shutdown("the guard has ended")
