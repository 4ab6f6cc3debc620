"""The base's safety topics, passed to one :class:`LevelTracker`, and its battery."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

from std_msgs.msg import Float32

from drivers.ros_locobot.connection.session import Session
from drivers.ros_locobot.connection.topic_cache import TopicCache
from drivers.ros_locobot.guard.options import GuardOptions
from drivers.ros_locobot.guard.safety_levels import LevelTracker
from drivers.ros_locobot.guard.sensors import subscriptions
from drivers.ros_locobot.options import RosOptions
from drivers.ros_locobot.robot_variants import VARIANTS, kobuki_charge, topics_of
from robot_runtime.safety import Feedback

EVENT_QUEUE_SIZE = 100
"""Edges are not repeated; none may be dropped."""


class BaseSensors:
    """Subscriptions to levels, events, pulses and battery.

    Args:
        options: Variant and topics.
        session: The connection to the ROS network.
        lock: The Guard's; held while the tracker changes.
        changed: Called under ``lock`` after every change, in rospy's thread.
    """

    def __init__(
        self, options: RosOptions, session: Session, lock: threading.Lock, changed: Callable[[], None]
    ) -> None:
        self._variant, self._topics, self._session = VARIANTS[options.family], topics_of(options), session
        self._guard_options = GuardOptions(options.family, options.robot_name, options.topics, options.base)
        self._lock, self._changed = lock, changed
        self._main = TopicCache(self._topics.core or self._topics.bumper, session.clock)
        self._voltage = TopicCache(self._topics.voltage, session.clock)
        self._charge = TopicCache(self._topics.charge_ratio, session.clock)
        self._tracker = LevelTracker()

    def open(self, endpoints: list[Any]) -> None:
        """Subscribe, appending to ``endpoints``. Raises ``DeviceFault``."""
        session, topics = self._session, self._topics
        with self._lock:
            self._tracker = LevelTracker()
        session.require_publisher(*(topic for topic in (topics.core, topics.bumper) if topic))
        for sensor in subscriptions(self._guard_options, self._tracker, session.clock.now_ns):
            if sensor.topic == topics.odom:
                continue  # The base's driver subscribes to odometry, and calls alive().
            if sensor.definition is not None:
                session.check_definition(sensor.topic, sensor.definition)
            main = sensor.topic == self._main.topic
            on_message = self._receiver(sensor.receive, self._main if main else None)
            endpoints.append(
                session.subscribe(
                    sensor.topic, sensor.message, on_message, EVENT_QUEUE_SIZE, required=False, acknowledged=main
                )
            )
        endpoints.extend(
            session.subscribe(cache.topic, Float32, cache.receive, required=False)
            for cache in (self._voltage, self._charge)
            if cache.topic
        )

    def close(self) -> None:
        """Discard everything; call it under the lock."""
        self._tracker = LevelTracker()
        for cache in (self._main, self._voltage, self._charge):
            cache.clear()

    def alive(self, now_ns: int) -> bool:
        """Register odometry; return whether it counts as feedback (events only). Call it under the lock."""
        self._tracker.alive(now_ns)
        return self._tracker.source == "events"

    def feedback(self, now_ns: int) -> Feedback | None:
        """Return the present levels, None before the first; call it under the lock."""
        return self._tracker.feedback(now_ns)

    def check(self, max_age_s: float) -> None:
        """Raise ``StaleData``, naming the topic, if the levels are too old; events have no age."""
        if self._tracker.source != "events":
            self._main.read(max_age_s)

    def battery(self) -> tuple[float, float]:
        """Return (volts, charge 0..1); NaN where unknown."""
        if self._topics.core:
            core = self._main.newest
            voltage_v = core.message.battery / 10 if core is not None else math.nan
            return voltage_v, kobuki_charge(voltage_v, self._variant.full_v, self._variant.empty_v)
        voltage, charge = self._voltage.newest, self._charge.newest
        fraction = min(1.0, max(0.0, charge.message.data)) if charge is not None else math.nan
        return (voltage.message.data if voltage is not None else math.nan), fraction

    def _receiver(self, receive: Callable[[Any], None], cache: TopicCache | None) -> Callable[[Any], None]:
        def on_message(message: Any) -> None:
            if cache is not None and cache.receive(message) is None:
                return
            with self._lock:
                receive(message)
                self._changed()

        return on_message
