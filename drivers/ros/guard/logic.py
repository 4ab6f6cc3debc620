"""Decisions of the guard node and their reasons: pure, without ROS, threads or a clock.

``robot_runtime.safety.guarded_wheels`` with the levels of a :class:`LevelTracker`, plus *holds*: reasons to stop that
only the node can detect (a second publisher, a fault of its own). A hold discards the active command.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from drivers.ros.connection.received import UNKNOWN
from drivers.ros.guard.safety_levels import LevelTracker, SafetySensor
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import InvalidCommand
from robot_runtime.hal.wheels import Halt, Velocity, Zone
from robot_runtime.safety.guard import STILL, GuardLimits
from robot_runtime.safety.guarded_wheels import INTERVAL_S, GuardedWheels


class Hold(str, Enum):
    """The node's own reasons to stop, in order of precedence; after an e-stop, before everything else."""

    ENDED = "ended"
    FAULT = "fault"
    FOREIGN_PUBLISHER = "foreign_publisher"


TEXTS: Mapping[Halt | Hold, str] = {
    Halt.NONE: "commands pass",
    Halt.E_STOP: "emergency stop: release it with the service or the topic emergency_stop",
    Halt.NO_FEEDBACK: "the base's sensors are silent: is the base on, its driver running, its topics as configured?",
    Halt.WHEEL_DROP: "a wheel is dropped: put the robot on the floor",
    Halt.CLIFF: "a cliff sensor sees no floor: only straight reverse is allowed",
    Halt.CONTACT: "the bumper is pressed: only turning and reverse are allowed",
    Halt.EXPIRED: "no command for too long: the runtime stopped, or the network between it and here",
    Hold.ENDED: "the guard has ended: nothing may move the base until it is started again",
    Hold.FAULT: "the guard itself failed: see its log, then start it again",
    Hold.FOREIGN_PUBLISHER: "another node publishes velocities to the base: stop it (or see base.silent_publishers)",
}
"""One line of explanation for each reason."""


LEVELS: Mapping[str, int] = {Halt.NONE.value: 0, Halt.EXPIRED.value: 1, Halt.CONTACT.value: 1, Halt.CLIFF.value: 1}
"""Levels of reasons that are not errors: OK, or WARN."""

REFUSAL_NS = seconds_to_ns(1.0)
"""Time for which the status names a node whose command was refused."""


@dataclass(frozen=True)
class Output:
    """The velocity for the base, and the reason why it differs from the command (``Halt.NONE`` if it does not)."""

    velocity: Velocity
    reason: Halt | Hold


@dataclass(frozen=True)
class GuardStatus:
    """The content of the guard's status topic.

    Attributes:
        reason: value of ``Halt`` or :class:`Hold`; ``none`` while commands pass.
        text: explanation of the reason.
        e_stop: whether the emergency stop is engaged.
        bumper: active zones such as ``left+center``; empty for none.
        cliff: zones without a floor, written as those of ``bumper``.
        wheel_drop: wheels that hang, written as the zones of ``bumper``.
        source: source of the zones: ``levels``, ``events`` or ``none``.
        notes: other problems, such as a master that is gone; empty for none.
    """

    reason: str
    text: str
    e_stop: bool
    bumper: str
    cliff: str
    wheel_drop: str
    source: str
    notes: str = ""

    @classmethod
    def of(cls, array: Any) -> GuardStatus:
        """Read a DiagnosticArray of :meth:`values`. Raises ``KeyError`` for another message."""
        values = {pair.key: pair.value for pair in array.status[0].values}
        named = {name: values[name] for name in cls.__dataclass_fields__ if name != "e_stop"}
        return cls(e_stop=values["e_stop"] == "true", **named)

    def values(self) -> dict[str, str]:
        """Return the values of a diagnostic_msgs/DiagnosticStatus."""
        items = asdict(self).items()
        return {key: str(value).lower() if isinstance(value, bool) else value for key, value in items}

    @property
    def level(self) -> int:
        """Level of a diagnostic_msgs/DiagnosticStatus: OK while commands pass, ERROR where a person must act."""
        return LEVELS.get(self.reason, 2)


class WheelGuard:
    """The guard's decision logic. Not thread-safe: the node calls it, and reads the clock, under its lock."""

    def __init__(self, limits: GuardLimits, tracker: LevelTracker) -> None:
        self.tracker = tracker
        self._holds: dict[Hold, str] = {}
        self._guard = GuardedWheels(limits, 0, held=lambda: bool(self._holds), interval_s=INTERVAL_S)
        self._invalid = ""
        self._commander, self._commanded_ns = "", 0
        self._refused_ns: dict[str, int] = {}
        self._e_stop_cause = ""
        self._last = Output(STILL, Halt.NO_FEEDBACK)

    def command(self, velocity: Velocity, now_ns: int, sender: str) -> None:
        """Take a velocity command; one that is not finite stops the wheels and is reported in the status.

        Args:
            velocity: commanded velocity.
            now_ns: time of arrival.
            sender: name of the node. A second node is refused until the first is silent: until its command expires.
                ``UNKNOWN`` is the only node's, before the network has told its name.
        """
        timeout_ns = self._guard.limits.command_timeout_ns
        if self._commander not in ("", UNKNOWN, sender) and now_ns - self._commanded_ns <= timeout_ns:
            self._refused_ns[sender] = now_ns
            return
        self._commander, self._commanded_ns = sender, now_ns
        self._refused_ns.pop(sender, None)
        self._sense(now_ns)
        try:
            self._guard.command(velocity, now_ns)
            self._invalid = ""
        except InvalidCommand as error:
            self._invalid = error.message

    @property
    def e_stop(self) -> bool:
        """Whether the emergency stop is engaged."""
        return self._guard.e_stop

    def emergency_stop(self, engaged: bool, now_ns: int, cause: str = "") -> None:
        """Engage or release the emergency stop; either way the active command is discarded.

        Args:
            engaged: whether to engage it.
            now_ns: present time.
            cause: explanation for the status.
        """
        self._e_stop_cause = cause
        if engaged:
            self._guard.emergency_stop(now_ns)
        else:
            self._guard.release_emergency_stop(now_ns)

    def hold(self, hold: Hold, detail: str) -> None:
        """Stop until :meth:`release`; ``detail`` names the cause."""
        self._holds[hold] = detail

    def release(self, hold: Hold) -> None:
        """End a hold."""
        self._holds.pop(hold, None)

    def decide(self, now_ns: int) -> Output:
        """Return the velocity for the base now."""
        self._sense(now_ns)
        guard = self._guard
        guard.poll(now_ns)
        hold = next((hold for hold in Hold if hold in self._holds), None)
        if hold is None or guard.halt is Halt.E_STOP:
            self._last = Output(guard.velocity, guard.halt)
        else:
            self._last = Output(STILL, hold)
        return self._last

    def status(self, now_ns: int, notes: Iterable[str] = ()) -> GuardStatus:
        """Return the status of the last :meth:`decide`."""
        reason, feedback = self._last.reason, self.tracker.feedback(now_ns)
        text = TEXTS[reason]
        if isinstance(reason, Hold) and self._holds.get(reason):
            text = f"{text} ({self._holds[reason]})"
        elif reason is Halt.E_STOP and self._e_stop_cause:
            text = f"{text} ({self._e_stop_cause})"
        elif reason is Halt.EXPIRED:
            text = f"{text} ({self._guard.limits.command_timeout_s:g} s are allowed)"
        elif reason is Halt.NO_FEEDBACK:
            text = f"{text} ({self.tracker.lacking(now_ns, self._guard.limits.feedback_timeout_s)})"
        zones = {kind: _words(getattr(feedback, kind.value)) if feedback else "" for kind in SafetySensor}
        return GuardStatus(
            reason=reason.value,
            text=text,
            e_stop=self.e_stop,
            bumper=zones[SafetySensor.BUMPER],
            cliff=zones[SafetySensor.CLIFF],
            wheel_drop=zones[SafetySensor.WHEEL_DROP],
            source=self.tracker.source,
            notes="; ".join(note for note in (self._invalid, self._refusals(now_ns), *notes) if note),
        )

    def _sense(self, now_ns: int) -> None:
        feedback = self.tracker.feedback(now_ns)
        if feedback is not None:
            self._guard.feedback(feedback)

    def _refusals(self, now_ns: int) -> str:
        refused = sorted(node for node, at_ns in self._refused_ns.items() if now_ns - at_ns <= REFUSAL_NS)
        if not refused:
            return ""
        return f"commands of {', '.join(refused)} are refused, because {self._commander} commands the robot"


def _words(zone: Zone) -> str:
    return "+".join(
        single.name.lower() for single in (Zone.LEFT, Zone.CENTER, Zone.RIGHT) if single in zone and single.name
    )
