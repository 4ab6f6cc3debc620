"""The base driver: safety levels and odometry as input, guarded velocities as output.

The Guard runs in the thread that receives the levels, also if the robot runs the guard node: after a contact, zero is
sent without waiting for the control loop. Every decision is published, zeros too, at the base's own rate; a watchdog
thread decides when no message arrives.
"""

import logging
import threading

from drivers.ros.base.dead_base import MotionWatch
from drivers.ros.base.sensors import BaseSensors
from drivers.ros.connection.diagnostics import Diagnostics
from drivers.ros.connection.received import Received
from drivers.ros.connection.session import Publisher, Session
from drivers.ros.device import RosDevice
from drivers.ros.guard.logic import GuardStatus
from drivers.ros.localizer.messages import odometry_pose
from drivers.ros.localizer.motion_history import MotionHistory
from drivers.ros.options import RobotOptions
from drivers.ros.robot_variants import VARIANTS, base_info, topics_of, velocity_kind
from drivers.ros.topics import kinds_of
from robot_runtime.errors import DeviceFault
from robot_runtime.hal import BaseState, Halt, Velocity, Zone
from robot_runtime.hal.motors import KnownMotors
from robot_runtime.hal.streams import fresh
from robot_runtime.safety.guard import STILL, Feedback
from robot_runtime.safety.guarded_base import GuardedBase
from robot_runtime.safety.guarded_wheels import INTERVAL_S

FINAL_ZEROS = 3
"""Number of zeros sent on closing: a single message may be lost with the connection."""

DIAGNOSTICS = "diagnostic_msgs/DiagnosticArray"

LONGEST_PERIOD_S = 0.02
"""Of the watchdog: a command expires no later than this after its time."""

GUARD_STATUS_MAX_AGE_S = 3.0
"""It is published once a second, and when it changes."""

log = logging.getLogger(__name__)


class RosBase(RosDevice, GuardedBase):
    """A base behind ROS topics. Its emergency stop is its own: that of the guard node is another.

    Args:
        name: name of the robot.
        session: connection to the ROS network.
        options: topics and limits.
        motion: history that gets the odometry.

    Attributes:
        site: session and options, for further devices on the same robot.
        diagnostics: diagnoses of the robot's drivers.
    """

    def __init__(self, name: str, session: Session, options: RobotOptions, motion: MotionHistory) -> None:
        RosDevice.__init__(self, "base", session)
        GuardedBase.__init__(self, base_info(options, name), session.clock, INTERVAL_S)
        self.site = session, options
        self._motion = motion
        self._topics, self._family = topics_of(options), options.family
        self._command_kind = velocity_kind(options)
        self._options = options.base
        self.motors = KnownMotors(VARIANTS[options.family].motors)
        self._sensors = BaseSensors(options, session, self._lock, self._on_levels)
        self._odom = self._cache(self._topics.odom)
        self.diagnostics = Diagnostics()
        self._command_topic = f"{self._topics.guard}/command" if options.base.guard else self._topics.velocity
        self._guard_status = self._cache(f"{self._topics.guard}/status")
        self._feedback: Feedback | None = None
        self._touched = Zone.NONE
        self._publisher: Publisher | None = None
        self._watchdog: threading.Thread | None = None
        self._watch_motion = MotionWatch() if VARIANTS[options.family].names_dead_base else None
        self._guard_node_holds = False
        self._stopping = threading.Event()
        self._updated = threading.Event()

    def state(self, max_age_s: float) -> BaseState:
        self._require_working()
        odom = self._odom.read(max_age_s)
        self._sensors.check(max_age_s)
        with self._lock:
            feedback, halt, now_ns = self._feedback, self._guard.halt, self._clock.now_ns()
        feedback = fresh("base", feedback, now_ns, max_age_s)
        if halt in (Halt.NONE, Halt.EXPIRED) and (remote := self._halt_of_guard_node()) is not Halt.NONE:
            halt = remote
        voltage_v, fraction = self._sensors.battery()
        return BaseState(
            stamp_ns=odom.stamp_ns,
            odom=odometry_pose(odom.message)[0],
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
        let_through = super().command(velocity)
        try:
            self._sensors.check_battery()
        except DeviceFault:
            self.stop()
            raise
        return let_through

    # --- connection -------------------------------------------------------------------------------------------------

    def _opened(self) -> None:
        session, topics = self._session, self._topics
        self._stopping.clear()
        with self._lock:
            self._guard.restart()
        self._sensors.open(self._endpoints)
        self._endpoints.append(
            session.subscribe(topics.odom, kinds_of(self._family, "odom"), self._on_odom, acknowledged=True)
        )
        if topics.diagnostics:
            self._endpoints.append(
                session.subscribe(topics.diagnostics, DIAGNOSTICS, self.diagnostics.receive, 10, required=False)
            )
        silent = self._options.silent_publishers
        if self._options.guard:
            self._endpoints.append(session.subscribe(self._guard_status.topic, DIAGNOSTICS, self._on_guard_status))
            if topics.guard in session.publishers().get(topics.velocity, ()):  # else it was remapped
                self._endpoints += session.claim_topic(topics.velocity, topics.guard, f"{topics.guard}_keeper", *silent)
        command = self._command_topic
        self._endpoints += session.claim_topic(command, *silent)
        publisher = session.advertise(command, self._command_kind)
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
            for _ in range(FINAL_ZEROS if self._publisher is not None else 0):
                self._guard.stop(self._clock.now_ns())
                threading.Event().wait(1 / self._info.rate_hz)  # a session may send from a thread of its own
            self._publisher = None
            self._feedback = None
            if self._watch_motion is not None:
                self._watch_motion.clear()
            self.diagnostics.clear()
            self._sensors.close()
        self._motion.clear()  # the next connection's clock may have another origin

    def _require_subscriber(self) -> None:
        publisher = self._publisher
        if publisher is None or not publisher.has_subscriber():
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
        status = GuardStatus.of(self._guard_status.read(GUARD_STATUS_MAX_AGE_S).message)
        if status.reason in (Halt.NONE.value, Halt.EXPIRED.value):
            return Halt.NONE
        if status.reason in {halt.value for halt in Halt}:
            return Halt(status.reason)
        raise DeviceFault(
            f"topic {self._guard_status.topic}: the guard node holds the wheels: {status.text}",
            "remove that cause on the robot, then connect again",
        )

    # --- in the threads of the session and the watchdog -----------------------------------------------------------

    def _on_guard_status(self, received: Received) -> None:
        self._guard_node_holds = GuardStatus.of(received.message).reason != Halt.NONE.value
        self._guard_status.receive(received, stamped=False)  # latched: old on arrival, and still valid

    def _on_odom(self, received: Received) -> None:
        pose, why = odometry_pose(received.message)
        if why:
            self._odom.lose(why)
        elif (taken := self._odom.receive(received)) is not None:
            self._motion.odom(taken.stamp_ns, pose)
        with self._lock:
            if self._watch_motion is not None and not why:
                self._watch_motion.odometry(pose, self._clock.now_ns())
            if self._sensors.alive(self._clock.now_ns()):
                self._on_levels()

    def _on_levels(self) -> None:
        """Take the levels, which have changed. Called under the lock."""
        self._sense()
        self._updated.set()

    def _on_fault(self) -> None:
        log.error("%s", self._session.fault.message if self._session.fault else "")
        with self._lock:
            self._guard.stop(self._clock.now_ns())

    def _watch(self) -> None:
        """Decide when no message arrives: a command expires, feedback becomes stale."""
        period_s = min(LONGEST_PERIOD_S, 1 / self._info.rate_hz)
        while not self._stopping.is_set():
            try:
                if not self._updated.wait(1.5 * period_s):
                    with self._lock:
                        self._sense()
                self._updated.clear()
            except Exception:  # noqa: PERF203 - without this thread, no command expires
                log.exception("base watchdog: the wheels are stopped")
                with self._lock:
                    self._guard.stop(self._clock.now_ns())
                self._stopping.wait(period_s)

    def _sense(self) -> None:
        now_ns = self._clock.now_ns()
        feedback = self._sensors.feedback(now_ns)
        if feedback is not None:
            self._feedback = feedback
            self._touched |= feedback.bumper
            self._guard.feedback(feedback)
        self._guard.poll(now_ns)

    def _held(self) -> bool:
        return self._session.fault is not None

    def _send(self, velocity: Velocity) -> None:
        if self._publisher is not None:
            if self._watch_motion is not None:
                self._watch_motion.command(STILL if self._guard_node_holds else velocity, self._clock.now_ns())
            try:
                messages, now_ns = self._session.messages, self._clock.now_ns()
                self._publisher.publish(messages.velocity(self._command_kind, velocity, now_ns))
            except DeviceFault as error:  # the node was shut down
                self._publisher = None
                log.error("%s", error.message)
