"""The base driver: safety levels and odometry as input, guarded velocities as output.

The Guard runs in the thread that receives the levels, also if the robot runs the guard node: after a contact, zero is
sent without waiting for the control loop. Every decision is published, zeros too, at the base's own rate; a watchdog
thread decides when no message arrives.
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
from robot_runtime.hal import Base, BaseInfo, BaseState, Halt, Velocity, Zone
from robot_runtime.hal.motors import KnownMotors
from robot_runtime.hal.streams import fresh
from robot_runtime.safety import STILL, Feedback, Guard, GuardLimits

FINAL_ZEROS = 3
"""Number of zeros sent on closing: a single message may be lost with the connection."""

GUARD_STATUS_MAX_AGE_S = 3.0
"""It is published once a second, and when it changes."""

log = logging.getLogger(__name__)


class RosBase(RosDevice, Base):
    """A Kobuki or Create 2 behind ROS topics.

    Args:
        name: The robot's.
        session: The connection to the ROS network.
        options: Topics and limits.
        motion: Gets the odometry.

    Attributes:
        site: Session, options and motion, for further devices on the same robot.
        diagnostics: The diagnoses of the robot's drivers.
    """

    def __init__(self, name: str, session: Session, options: RosOptions, motion: MotionHistory) -> None:
        super().__init__("base", session)
        self.site = session, options, motion
        self._motion = motion
        self._topics = topics_of(options)
        self._options = options.base
        self._info = base_info(options, name)
        self.motors = KnownMotors(VARIANTS[options.family].motors)
        self._guard = Guard(GuardLimits.of(self._info))
        self._lock = threading.Lock()
        self._sensors = BaseSensors(options, session, self._lock, self._on_levels)
        self._odom = self._cache(self._topics.odom)
        self.diagnostics = Diagnostics()
        self._command_topic = f"{self._topics.guard}/command" if options.base.guard else self._topics.velocity
        self._guard_status = self._cache(f"{self._topics.guard}/status")
        self._wheels, self._halt = STILL, Halt.NO_FEEDBACK
        self._feedback: Feedback | None = None
        self._touched = Zone.NONE
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

    def touched(self) -> Zone:
        with self._lock:
            touched, self._touched = self._touched, Zone.NONE
        return touched

    def command(self, velocity: Velocity) -> Velocity:
        self._require_working()
        self._require_subscriber()
        with self._lock:
            try:
                self._guard.command(velocity, self._clock.now_ns())
            finally:
                self._decide()
        try:
            self._sensors.check_battery()
        except DeviceFault:
            self.stop()
            raise
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
        """Release this driver's emergency stop; the guard node's is separate and stays."""
        self._require_connected()
        with self._lock:
            self._guard.release_emergency_stop()
            self._decide()

    # --- connection -------------------------------------------------------------------------------------------------

    def _opened(self) -> None:
        session, topics = self._session, self._topics
        self._stopping.clear()
        with self._lock:
            # A new Guard, because the clock may have a new origin; an emergency stop stays.
            stopped, self._guard = self._guard.state.e_stop, Guard(GuardLimits.of(self._info))
            if stopped:
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
            check = partial(session.check_sender, topic)
            self._endpoints.append(session.subscribe(topic, rospy.AnyMsg, check, required=False))
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
            for _ in range(FINAL_ZEROS if self._publisher is not None else 0):
                self._decide()
                threading.Event().wait(1 / self._info.rate_hz)  # rospy sends from a thread of its own
            self._publisher = None
            self._feedback = None
            self.diagnostics.clear()
            self._sensors.close()
        self._motion.clear()  # the next connection's clock may have another origin

    def _require_subscriber(self) -> None:
        publisher = self._publisher
        if publisher is None or not self._session.has_subscriber(publisher):
            self.stop()
            what = "the guard node" if self._options.guard else "the base's driver"
            raise DeviceFault(
                f"topic {self._command_topic}: {what} no longer subscribes to it",
                f"look at the log of {what}, start it again, then connect again; until then only the time limit of the "
                + ("base's driver stops the wheels" if self._options.guard else "base's firmware can stop the wheels"),
            )

    def _halt_of_guard_node(self) -> Halt:
        """Return why the guard node on the robot holds the wheels, where this Guard does not.

        Raises:
            StaleData: Its status is silent.
            DeviceFault: It is gone, or holds for a reason that only a person can remove.
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
            "remove that cause on the robot, then connect again",
        )

    # --- in rospy's and the watchdog's threads ----------------------------------------------------------------------

    def _on_guard_status(self, message: DiagnosticArray) -> None:
        self._guard_status.receive(message, stamped=False)  # latched: old on arrival, and still valid

    def _on_odom(self, message: Odometry) -> None:
        received = self._odom.receive(message)
        if received is not None:
            self._motion.odom(received.stamp_ns, planar_pose(message.pose.pose, self._odom.topic))
        with self._lock:
            if self._sensors.alive(self._clock.now_ns()):
                self._on_levels()

    def _on_levels(self) -> None:
        """Decide, because the levels have changed. Called under the lock."""
        self._sense()
        self._decide()
        self._updated.set()

    def _on_fault(self) -> None:
        log.error("%s", self._session.fault.message if self._session.fault else "")
        with self._lock:
            self._guard.stop()
            self._decide()

    def _watch(self) -> None:
        """Decide when no message arrives: a command expires, feedback becomes stale."""
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
            self._touched |= feedback.bumper
            self._guard.feedback(feedback)

    def _decide(self) -> None:
        """Publish the Guard's decision; zero if the connection is broken. Called under the lock."""
        if self._session.fault is not None:
            self._guard.stop()
        decision = self._guard.tick(self._clock.now_ns())
        self._wheels, self._halt = decision.velocity, decision.halt
        if self._publisher is not None:
            twist = Twist()
            twist.linear.x, twist.angular.z = decision.velocity.linear_m_s, decision.velocity.angular_rad_s
            try:
                self._publisher.publish(twist)
            except rospy.ROSException as error:  # the node was shut down
                self._publisher = None
                log.error("topic %s: cannot be published any more: %s", self._command_topic, error)
