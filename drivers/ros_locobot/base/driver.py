"""The base: levels and odometry in, guarded velocities out.

The Guard runs here, in the thread that receives the levels, whether or not the robot runs the guard node as well: a
contact becomes a zero on the wire without waiting for the control loop. Every decision is published, zeros too, at the
base's own rate; a watchdog thread decides when nothing arrives.
"""

from __future__ import annotations

import logging
import threading
from functools import partial

import rospy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry

from drivers.ros_locobot.base.sensors import BaseSensors
from drivers.ros_locobot.connection.diagnostics import Diagnostics
from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.device import RosDevice
from drivers.ros_locobot.guard.node import from_message
from drivers.ros_locobot.localizer.messages import planar_pose
from drivers.ros_locobot.localizer.motion_history import MotionHistory
from drivers.ros_locobot.options import RosOptions
from drivers.ros_locobot.robot_variants import VARIANTS, base_info, topics_of
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import Base, BaseInfo, BaseState, Halt, Velocity
from robot_runtime.hal.streams import fresh
from robot_runtime.safety import STILL, Feedback, Guard, GuardLimits

LAST_ZEROS = 3
"""How often the final zero is sent on closing: a single message may be lost with the connection."""

GUARD_STATUS_MAX_AGE_S = 3.0
"""It is told once a second, and when it changes."""

log = logging.getLogger(__name__)


class RosBase(RosDevice, Base):
    """A Kobuki or Create 2 behind ROS topics."""

    def __init__(self, name: str, session: Session, options: RosOptions, motion: MotionHistory) -> None:
        super().__init__("base", session)
        self.site = session, options, motion
        """What further devices on the same robot are made of."""
        self._motion = motion
        self._topics = topics_of(options)
        self._options = options.base
        self._family = VARIANTS[options.family]
        self._info = base_info(options, name)
        self._guard = Guard(GuardLimits.of(self._info))
        self._lock = threading.Lock()
        self._sensors = BaseSensors(options, session, self._lock, self._on_levels)
        self._odom = self._cache(self._topics.odom)
        self.diagnostics = Diagnostics()
        """What the robot's drivers say of themselves; troubles are logged as well."""
        self._command_topic = f"{self._topics.guard}/command" if options.base.guard else self._topics.velocity
        self._guard_status = self._cache(f"{self._topics.guard}/status")
        self._wheels, self._halt = STILL, Halt.NO_FEEDBACK
        self._feedback: Feedback | None = None
        self._publisher: rospy.Publisher | None = None
        self._watchdog: threading.Thread | None = None
        self._stopping = threading.Event()
        self._updated = threading.Event()

    @property
    def info(self) -> BaseInfo:
        return self._info

    def state(self, max_age_s: float) -> BaseState:
        self._require_working()
        odom = self._odom.read(max_age_s)
        self._sensors.check(max_age_s)
        with self._lock:
            feedback, halt, now_ns = self._feedback, self._halt, self._clock.now_ns()
        feedback = fresh("base", feedback, now_ns, max_age_s)
        if halt in (Halt.NONE, Halt.EXPIRED) and (remote := self._halt_of_guard_node()) is not Halt.NONE:
            halt = remote
        voltage_v, fraction = self._sensors.battery()
        return BaseState(
            stamp_ns=odom.stamp_ns,
            odom=planar_pose(odom.message.pose.pose, self._topics.odom),
            velocity=Velocity(odom.message.twist.twist.linear.x, odom.message.twist.twist.angular.z),
            bumper=feedback.bumper,
            cliff=feedback.cliff,
            wheel_drop=feedback.wheel_drop,
            halt=halt,
            battery_v=voltage_v,
            battery_fraction=fraction,
        )

    def command(self, velocity: Velocity) -> Velocity:
        self._require_working()
        self._require_subscriber()
        with self._lock:
            try:
                self._guard.command(velocity, self._clock.now_ns())
            finally:
                self._decide()
        empty_v = self._options.empty_v if self._options.empty_v is not None else self._family.empty_v
        voltage_v, _ = self._sensors.battery()
        if voltage_v < empty_v:
            self.stop()
            raise DeviceFault(
                f"base: the battery is empty: {voltage_v:.1f} V, at least {empty_v:g} V is needed", "charge the robot"
            )
        return self._wheels

    def stop(self) -> None:
        self._require_connected()
        with self._lock:
            self._guard.stop()
            self._decide()

    def emergency_stop(self) -> None:
        self._require_connected()
        with self._lock:
            self._guard.emergency_stop()
            self._decide()

    def release_emergency_stop(self) -> None:
        """As ``Base``. The e-stop of the robot's guard node is its own and stays."""
        self._require_connected()
        with self._lock:
            self._guard.release_emergency_stop()
            self._decide()

    # --- connection -------------------------------------------------------------------------------------------------

    def _opened(self) -> None:
        session, topics = self._session, self._topics
        self._stopping.clear()
        with self._lock:
            held, self._guard = self._guard.state.e_stop, Guard(GuardLimits.of(self._info))  # its past had another time
            if held:
                self._guard.emergency_stop()
        self._sensors.open(self._endpoints)
        self._endpoints.append(session.subscribe(topics.odom, Odometry, self._on_odom, acknowledged=True))
        self._endpoints.append(
            session.subscribe(topics.diagnostics, DiagnosticArray, self.diagnostics.receive, 10, required=False)
        )
        if self._options.guard:
            status = self._guard_status
            self._endpoints.append(session.subscribe(status.topic, DiagnosticArray, self._on_guard_status))
            session.claim_topic(topics.velocity, topics.guard, *self._options.silent_publishers)
        command = self._command_topic
        session.claim_topic(command, *self._options.silent_publishers)
        for topic in dict.fromkeys((command, topics.velocity)):
            overhear = partial(session.check_sender, topic)
            self._endpoints.append(session.subscribe(topic, rospy.AnyMsg, overhear, required=False))
        publisher = session.advertise(command, Twist)
        self._endpoints.append(publisher)
        session.require_subscriber(publisher)
        with self._lock:
            self._publisher = publisher
        session.on_fault(self._on_fault)
        self._watchdog = threading.Thread(target=self._watch, name="ros: base watchdog", daemon=True)
        self._watchdog.start()

    def _closed(self) -> None:
        self._stopping.set()
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.join(1.0)
        with self._lock:
            self._guard.stop()
            for _ in range(LAST_ZEROS if self._publisher is not None else 0):
                self._decide()
                threading.Event().wait(1 / self._info.rate_hz)  # rospy sends from a thread of its own
            self._publisher = None
            self._feedback = None
            self.diagnostics.forget()
            self._sensors.close()
        self._motion.clear()  # the next connection may have another time

    def _require_subscriber(self) -> None:
        publisher = self._publisher
        if publisher is None or not self._session.has_subscriber(publisher):
            self.stop()
            what = "the guard node" if self._options.guard else "the base's driver"
            raise DeviceFault(
                f"topic {self._command_topic}: {what} no longer listens to it",
                f"look at the log of {what}, start it again (it stopped the wheels), then connect again",
            )

    def _halt_of_guard_node(self) -> Halt:
        """What the guard node on the robot holds the wheels for, beyond what this Guard knows itself.

        Raises:
            StaleData: its status is silent. DeviceFault: it is gone, or holds for what only a person can mend.
        """
        if not self._options.guard:
            return Halt.NONE
        self._require_subscriber()
        status = from_message(self._guard_status.read(GUARD_STATUS_MAX_AGE_S).message)
        if status.reason in (Halt.NONE.value, Halt.EXPIRED.value):
            return Halt.NONE
        if status.reason in {halt.value for halt in Halt}:
            return Halt(status.reason)
        raise DeviceFault(
            f"topic {self._guard_status.topic}: the guard node holds the wheels: {status.text}",
            "mend that on the robot, then connect again",
        )

    # --- in rospy's and the watchdog's threads ----------------------------------------------------------------------

    def _on_guard_status(self, message: DiagnosticArray) -> None:
        self._guard_status.receive(message, stamped=False)  # latched: old when it comes, and still true

    def _on_odom(self, message: Odometry) -> None:
        received = self._odom.receive(message)
        if received is not None:
            self._motion.odom(received.stamp_ns, planar_pose(message.pose.pose, self._odom.topic))
        with self._lock:
            if self._sensors.alive(self._clock.now_ns()):
                self._on_levels()

    def _on_levels(self) -> None:
        """There is news of the sensors: the Guard decides now. Called under the lock."""
        self._sense()
        self._decide()
        self._updated.set()

    def _on_fault(self) -> None:
        log.error("%s", self._session.fault.message if self._session.fault else "")
        with self._lock:
            self._guard.stop()
            self._decide()

    def _watch(self) -> None:
        """Decide although nothing arrived: a command expires, feedback goes stale."""
        period_s = 1 / self._info.rate_hz
        while not self._stopping.is_set():
            if not self._updated.wait(1.5 * period_s):
                with self._lock:
                    self._sense()
                    self._decide()
            self._updated.clear()

    def _sense(self) -> None:
        feedback = self._sensors.feedback(self._clock.now_ns())
        if feedback is not None:
            self._feedback = feedback
            self._guard.feedback(feedback)

    def _decide(self) -> None:
        """The Guard's decision, on the wire; zero if the connection is broken. Called under the lock."""
        if self._session.fault is not None:
            self._guard.stop()
        decision = self._guard.tick(self._clock.now_ns())
        self._wheels, self._halt = decision.velocity, decision.halt
        if self._publisher is not None:
            twist = Twist()
            twist.linear.x, twist.angular.z = decision.velocity.linear_m_s, decision.velocity.angular_rad_s
            try:
                self._publisher.publish(twist)
            except rospy.ROSException as error:  # the node was shut down beneath us
                self._publisher = None
                log.error("topic %s: cannot be published any more: %s", self._command_topic, error)
