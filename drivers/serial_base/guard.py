"""Decisions of the guard process: pure, without port, socket or clock."""

from collections.abc import Callable

from drivers.serial_base.messages import COMMAND, EMERGENCY_STOP, RELEASE, STEP, STOP, Answer, Request, State
from drivers.serial_base.wire import BaseWire, Reading, Signal
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import InvalidCommand
from robot_runtime.hal.wheels import Halt, Velocity, Zone
from robot_runtime.safety.guard import STILL, Feedback, GuardLimits
from robot_runtime.safety.guarded_wheels import INTERVAL_S, GuardedWheels

LEAST_INTERVAL_S = 0.004
"""Pause between two commands that are not a stop: a burst of requests must not fill the line."""


class WireGuard:
    """The Guard in front of a base's wire.

    Attributes:
        heard_ns: arrival of the newest reading; None before the first.
    """

    def __init__(
        self,
        wire: BaseWire,
        limits: GuardLimits,
        stop_buttons: int,
        send: Callable[[bytes], None],
        emit: Callable[[State], None],
    ) -> None:
        self.heard_ns: int | None = None
        self._wire, self._stop_buttons, self._send, self._emit = wire, stop_buttons, send, emit
        self._guard = GuardedWheels(limits, 0, held=self._held, interval_s=INTERVAL_S)
        self._sent = STILL
        self._sent_ns = self._states = 0
        self._reading: Reading | None = None
        self._scheduling = "normal"

    @property
    def e_stop(self) -> bool:
        """Whether the emergency stop is engaged."""
        return self._guard.e_stop

    def emergency_stop(self, now_ns: int) -> None:
        """Engage the emergency stop before the base is known."""
        self._guard.emergency_stop(now_ns)

    def begin(self, now_ns: int, scheduling: str = "normal") -> None:
        """Begin with a base; wheels at zero."""
        self._scheduling = scheduling
        self.greet(now_ns)

    def greet(self, now_ns: int) -> None:
        """Send what a base needs that was switched on or restarted; wheels at zero."""
        self._guard.restart()
        self._sent, self._sent_ns = STILL, now_ns
        self._send(self._wire.begin(now_ns))

    def end(self) -> None:
        """Wheels at zero, and no command any more."""
        self._guard.restart()
        self._send(self._wire.end())

    def feed(self, data: bytes, now_ns: int) -> None:
        """Take bytes of the base, decide at once, and send the decision."""
        for reading in self._wire.feed(data, now_ns):
            # The instant of arrival: the Guard's timeout is for the wire and the base, and both include the delay.
            levels = (Zone(bits) for bits in (reading.bumper, reading.cliff, reading.wheel_drop))
            self._guard.feedback(Feedback(now_ns, *levels))
            if reading.buttons & self._stop_buttons:
                self._guard.emergency_stop(now_ns)
            self._reading, self.heard_ns = reading, now_ns
            self._guard.poll(now_ns)
            self._drive(now_ns, repeated=True)
            self._send(self._wire.upkeep(self._signal(), now_ns))
            self._report()

    def tick(self, now_ns: int) -> None:
        """Decide when nothing arrives: a command expires, feedback becomes stale."""
        before = self._guard.halt
        self._guard.poll(now_ns)
        self._drive(now_ns, repeated=now_ns - self._sent_ns >= seconds_to_ns(self._wire.period_s))
        if self._guard.halt is not before:
            self._report()

    def handle(self, request: Request, now_ns: int, written: Callable[[], int]) -> Answer:
        """Carry a request out and return the answer."""
        guard, refused = self._guard, None
        if request.kind == COMMAND:
            try:
                guard.command(Velocity(*request.arguments), now_ns)
            except InvalidCommand as error:
                refused = error.message, error.remedy
        elif request.kind == STOP:
            guard.stop(now_ns)
        elif request.kind == EMERGENCY_STOP:
            guard.emergency_stop(now_ns)
        elif request.kind == RELEASE:
            guard.release_emergency_stop(now_ns)
        if request.kind != STEP:
            self._drive(now_ns)
        velocity = guard.velocity
        return Answer(request.number, velocity.linear_m_s, velocity.angular_rad_s, guard.halt.value, written(), refused)

    def _held(self) -> bool:
        return bool(self._wire.hold) or self._wire.fault is not None

    def _drive(self, now_ns: int, repeated: bool = False) -> None:
        """Send the velocity if it has changed, or again if it is to be repeated; a stop at once."""
        velocity = self._guard.velocity
        changed = velocity != self._sent
        soon = now_ns - self._sent_ns < seconds_to_ns(LEAST_INTERVAL_S)
        if (changed and (not soon or velocity == STILL)) or repeated:
            self._sent, self._sent_ns = velocity, now_ns
            self._send(self._wire.drive(velocity))

    def _signal(self) -> Signal:
        guard = self._guard
        if guard.halt is Halt.E_STOP or self._held():
            return Signal.STOPPED
        if guard.halt in (Halt.CONTACT, Halt.CLIFF, Halt.WHEEL_DROP):
            return Signal.HELD
        return Signal.IDLE if guard.velocity == STILL else Signal.MOVING

    def _report(self) -> None:
        wire, reading = self._wire, self._reading
        if reading is None:
            return
        self._states += 1
        self._emit(
            State(
                self._states,
                reading,
                self._guard.halt,
                wire.hold,
                wire.missed,
                wire.skipped,
                self._scheduling,
                wire.version,
            )
        )
