"""The base's safety topics, passed to one :class:`LevelTracker`, and its battery."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager

from drivers.ros.connection.received import Received
from drivers.ros.connection.session import Endpoint, Session, Subscription
from drivers.ros.connection.topic_cache import TopicCache
from drivers.ros.guard.safety_sources import Reports, tracker_of
from drivers.ros.guard.sensors import Sensor, subscriptions
from drivers.ros.options import RobotOptions
from drivers.ros.robot_variants import VARIANTS, kobuki_charge, topics_of
from drivers.ros.topics import family_of
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import DeviceFault, StaleData
from robot_runtime.safety.guard import Feedback

EMPTY_S = 1.0
"""Duration of low voltages after which the battery counts as empty: starting motors lower the voltage for less."""


class LowVoltage:
    """The time for which every measured voltage has been below a limit.

    Args:
        limit_v: Voltage below which the robot must not drive.
    """

    def __init__(self, limit_v: float) -> None:
        self.limit_v = limit_v
        self._since_ns: int | None = None
        self._newest_ns = 0

    @property
    def empty(self) -> bool:
        """Whether all measurements of the last ``EMPTY_S`` or more were below the limit."""
        return self._since_ns is not None and self._newest_ns - self._since_ns >= seconds_to_ns(EMPTY_S)

    def measured(self, voltage_v: float, now_ns: int) -> None:
        """Take a measurement; not-a-number is not below the limit."""
        self._newest_ns = now_ns
        if not voltage_v < self.limit_v:
            self._since_ns = None
        elif self._since_ns is None:
            self._since_ns = now_ns

    def clear(self) -> None:
        """Forget the measurements of a connection that has ended."""
        self._since_ns = None


EVENT_QUEUE_SIZE = 100
"""Edges are not repeated; none may be dropped."""


class BaseSensors:
    """Subscriptions to levels, events, pulses and battery.

    Args:
        options: variant and topics.
        session: connection to the ROS network.
        lock: lock of the Guard, held while the tracker changes.
        changed: callback after every change, under ``lock`` and in the session's thread.
    """

    def __init__(
        self, options: RobotOptions, session: Session, lock: AbstractContextManager[object], changed: Callable[[], None]
    ) -> None:
        self._variant, self._topics, self._session = VARIANTS[options.family], topics_of(options), session
        self._family, self._periodic = options.family, getattr(options.base, "periodic_hazards", False)
        self._lock, self._changed = lock, changed
        self._levels: dict[str, TopicCache] = {}
        self._voltage = TopicCache(self._topics.voltage, session.clock)
        self._charge = TopicCache(self._topics.charge_ratio, session.clock)
        empty_v = options.base.empty_v
        self._low = LowVoltage(self._variant.empty_v if empty_v is None else empty_v)
        self._subscribers: dict[str, Subscription] = {}
        self._tracker = tracker_of(options.family, self._topics, periodic=self._periodic)

    def open(self, endpoints: list[Endpoint]) -> None:
        """Subscribe, appending to ``endpoints``. Raises ``DeviceFault``."""
        session, topics = self._session, self._topics
        with self._lock:
            self._tracker = tracker_of(self._family, topics, periodic=self._periodic)
        try:
            needed = [topic for topic in (topics.core, topics.hazards, topics.bumper) if topic]
            session.require_publisher(*(needed or (topics.odom,)))
        except StaleData as error:
            other = family_of(session.publishers())
            if other in (None, self._family):
                raise
            raise StaleData(
                error.message,
                f"the network has the topics of the family {other!r}: set options.family in the robot's YAML to it",
            ) from error
        for topic in self._tracker.quiet_topics:
            session.require_publisher(topic)
        for sensor in subscriptions(self._family, topics, self._tracker, session.clock.now_ns):
            if sensor.reports is None:
                continue  # The base's driver subscribes to odometry, and calls alive().
            levels = sensor.reports is Reports.LEVELS or (sensor.reports is Reports.LATCHED and self._periodic)
            cache = self._levels.setdefault(sensor.topic, TopicCache(sensor.topic, session.clock)) if levels else None
            subscriber = session.subscribe(
                sensor.topic,
                sensor.kinds,
                self._receiver(sensor, cache),
                EVENT_QUEUE_SIZE,
                required=False,
                acknowledged=levels,
            )
            self._subscribers[sensor.topic] = subscriber
            endpoints.append(subscriber)
        for topic, receive in ((topics.voltage, self._on_voltage), (topics.charge_ratio, self._charge.receive)):
            if topic:
                endpoints.append(session.subscribe(topic, "std_msgs/Float32", receive, required=False))

    def close(self) -> None:
        """Discard everything; call it under the lock."""
        self._tracker = tracker_of(self._family, self._topics, periodic=self._periodic)
        self._subscribers = {}
        self._low.clear()
        for cache in (*self._levels.values(), self._voltage, self._charge):
            cache.clear()

    def alive(self, now_ns: int) -> bool:
        """Register odometry; return whether it counts as feedback (events only). Call it under the lock."""
        self._tracker.alive(now_ns)
        return self._tracker.source in ("events", "odometry")

    @property
    def unknown_topics(self) -> tuple[str, ...]:
        """The topics that are published on change only, without a message yet."""
        return self._tracker.unknown_topics

    def feedback(self, now_ns: int) -> Feedback | None:
        """Return the present levels, None while a topic is missing; call it under the lock."""
        quiet = self._tracker.quiet_topics
        self._tracker.unpublished([topic for topic in quiet if not _is_published(self._subscribers.get(topic))])
        return self._tracker.feedback(now_ns)

    def check(self, max_age_s: float) -> None:
        """Raise ``StaleData``, naming the topic, if levels are too old or a topic has lost its publisher."""
        if self._tracker.source == "levels":
            for cache in self._levels.values():
                cache.read(max_age_s)
        with self._lock:
            lacking = self._tracker.lacking(self._session.clock.now_ns(), math.inf)
        if lacking:
            raise StaleData(
                f"the base's safety sensors: {lacking}",
                "check that the base's driver runs (`rosnode ping`, `ros2 node list`)",
            )

    def battery(self) -> tuple[float, float]:
        """Return (volts, charge 0..1); NaN where unknown."""
        if self._topics.core:
            core = self._levels[self._topics.core].newest if self._topics.core in self._levels else None
            voltage_v = core.message.battery / 10 if core is not None else math.nan
            return voltage_v, kobuki_charge(voltage_v, self._variant.full_v, self._variant.empty_v)
        voltage, charge = self._voltage.newest, self._charge.newest
        fraction = min(1.0, max(0.0, charge.message.data)) if charge is not None else math.nan
        return (voltage.message.data if voltage is not None else math.nan), fraction

    def check_battery(self) -> None:
        """Raise ``DeviceFault`` if the voltage has stayed below the limit."""
        if self._low.empty:
            raise DeviceFault(
                f"base: the battery is empty: {self.battery()[0]:.1f} V, at least {self._low.limit_v:g} V is needed",
                "charge the robot",
            )

    def _on_voltage(self, received: Received) -> None:
        self._voltage.receive(received)
        self._low.measured(received.message.data, self._session.clock.now_ns())

    def _receiver(self, sensor: Sensor, cache: TopicCache | None) -> Callable[[Received], None]:
        def on_message(received: Received) -> None:
            with self._lock:
                taken = sensor.receive(received)
                if taken:
                    self._changed()
            # Other nodes' messages on /diagnostics say nothing about the base's age.
            if taken and cache is not None:
                cache.receive(received)
            if sensor.topic == self._topics.core:
                self._low.measured(received.message.battery / 10, self._session.clock.now_ns())

        return on_message


def _is_published(subscription: Subscription | None) -> bool:
    return subscription is not None and subscription.has_publisher()
