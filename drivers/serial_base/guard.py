"""Decisions of the guard process: pure, without port, socket or clock."""

from __future__ import annotations

from collections.abc import Callable

from drivers.serial_base.messages import COMMAND, EMERGENCY_STOP, RELEASE, STEP, STOP, Answer, Request, State
from drivers.serial_base.wire import BaseWire, Reading, Signal
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import InvalidCommand, RuntimeFault
from robot_runtime.hal.wheels import Halt, Velocity, Zone
from robot_runtime.safety import STILL, Feedback, Guard, GuardLimits, aged, refusal

LEAST_INTERVAL_S = 0.004
"""Pause between two commands that are not a stop: a burst of requests must not fill the line."""

COMMAND_PERIOD_S, LATE_PERIODS = 0.02, 1.5
"""Period of the motion loop, and after how many of them a decision is due without a command."""


class WireGuard:
    """The Guard in front of a base's wire.

    Args:
        wire: of the base.
        limits: of its Guard.
        stop_buttons: bits of the base's buttons that engage the emergency stop.
        send: called with bytes for the port.
        emit: called with each state.

    Attributes:
        halt: why the wheels are held.
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
        self.halt = Halt.NO_FEEDBACK
        self.heard_ns: int | None = None
        self._wire, self._guard, self._stop_buttons = wire, Guard(limits), stop_buttons
        self._send, self._emit = send, emit
        self._velocity = self._sent = STILL
        self._sent_ns = self._decided_ns = self._states = 0
        self._reading: Reading | None = None
        self._scheduling = "normal"

    @property
    def e_stop(self) -> bool:
        """Whether the emergency stop is engaged."""
        return self._guard.state.e_stop

    def emergency_stop(self) -> None:
        """Engage the emergency stop before the base is known."""
        self._guard.emergency_stop()

    def begin(self, now_ns: int, scheduling: str = "normal") -> None:
        """Begin with a base; wheels at zero."""
        self._scheduling = scheduling
        self.greet(now_ns)

    def greet(self, now_ns: int) -> None:
        """Send what a base needs that was switched on or restarted; wheels at zero."""
        self._guard.stop()
        self._sent, self._sent_ns = STILL, now_ns
        self._send(self._wire.begin(now_ns))

    def end(self) -> None:
        """Wheels at zero, and no command any more."""
        self._guard.stop()
        self._send(self._wire.end())

    def feed(self, data: bytes, now_ns: int) -> None:
        """Take bytes of the base, decide at once, and send the decision."""
        for reading in self._wire.feed(data, now_ns):
            # The instant of arrival: the Guard's timeout is for the wire and the base, and both include the delay.
            levels = (Zone(bits) for bits in (reading.bumper, reading.cliff, reading.wheel_drop))
            self._guard.feedback(Feedback(now_ns, *levels))
            if reading.buttons & self._stop_buttons:
                self._guard.emergency_stop()
            self._reading, self.heard_ns = reading, now_ns
            self._review(now_ns)
            self._drive(now_ns, repeated=True)
            self._send(self._wire.upkeep(self._signal(), now_ns))
            self._report()

    def tick(self, now_ns: int) -> None:
        """Decide when nothing arrives: a command expires, feedback becomes stale."""
        before = self.halt
        self._review(now_ns)
        self._drive(now_ns, repeated=now_ns - self._sent_ns >= seconds_to_ns(self._wire.period_s))
        if self.halt is not before:
            self._report()

    def handle(self, request: Request, now_ns: int, written: Callable[[], int]) -> Answer:
        """Carry a request out and return the answer."""
        error: RuntimeFault | None = None
        guard = self._guard
        if request.kind == COMMAND:
            error = self._command(Velocity(*request.arguments), now_ns)
        elif request.kind == STOP:
            guard.stop()
        elif request.kind == EMERGENCY_STOP:
            guard.emergency_stop()
        elif request.kind == RELEASE:
            guard.release_emergency_stop()
        if request.kind != STEP:
            self._decide(now_ns)
            self._drive(now_ns)
        refusal = None if error is None else (error.message, error.remedy)
        velocity = self._velocity
        return Answer(request.number, *_numbers(velocity), self.halt.value, written(), refusal)

    def _command(self, velocity: Velocity, now_ns: int) -> RuntimeFault | None:
        try:
            self._guard.command(velocity, now_ns)
        except InvalidCommand as error:
            return error
        return None

    def _decide(self, now_ns: int) -> None:
        """Decide, with the acceleration that the time since the last decision grants."""
        if self._wire.hold or self._wire.fault is not None:
            self._guard.stop()
        decision = self._guard.tick(now_ns)
        self._velocity, self.halt, self._decided_ns = decision.velocity, decision.halt, now_ns

    def _review(self, now_ns: int) -> None:
        """Decide where a reason to stop has come or gone, or no command has for more than a period.

        A command that comes once per period decides by itself: the acceleration of that period is its own.
        """
        reason = refusal(aged(self._guard.limits, self._guard.state, now_ns))
        late = now_ns - self._decided_ns > seconds_to_ns(LATE_PERIODS * COMMAND_PERIOD_S)
        if reason is not self.halt or late or self._wire.hold or self._wire.fault is not None:
            self._decide(now_ns)

    def _drive(self, now_ns: int, repeated: bool = False) -> None:
        """Send the velocity if it has changed, or again if it is to be repeated; a stop at once."""
        velocity = self._velocity
        changed = velocity != self._sent
        soon = now_ns - self._sent_ns < seconds_to_ns(LEAST_INTERVAL_S)
        if (changed and (not soon or velocity == STILL)) or repeated:
            self._sent, self._sent_ns = velocity, now_ns
            self._send(self._wire.drive(velocity))

    def _signal(self) -> Signal:
        if self.halt is Halt.E_STOP or self._wire.fault is not None or self._wire.hold:
            return Signal.STOPPED
        if self.halt in (Halt.CONTACT, Halt.CLIFF, Halt.WHEEL_DROP):
            return Signal.HELD
        return Signal.IDLE if self._velocity == STILL else Signal.MOVING

    def _report(self) -> None:
        wire, reading = self._wire, self._reading
        if reading is None:
            return
        self._states += 1
        self._emit(
            State(
                self._states,
                reading,
                self.halt,
                wire.hold,
                wire.missed,
                wire.skipped,
                self._scheduling,
                wire.version,
            )
        )


def _numbers(velocity: Velocity) -> tuple[float, float]:
    return velocity.linear_m_s, velocity.angular_rad_s
