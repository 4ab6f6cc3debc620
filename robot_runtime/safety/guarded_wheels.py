"""The Guard's calling protocol, written once: what a driver does at commands, stops and reports, and in between.

Pure, as the Guard is, and of the standard library alone for Python >= 3.8: it runs in a process of the runtime
(:class:`~robot_runtime.safety.guarded_base.GuardedBase`), in a base's guard process and in the ROS guard node.
"""

from __future__ import annotations

from collections.abc import Callable

from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.hal.wheels import Halt, Velocity
from robot_runtime.safety.guard import STILL, Feedback, Guard, GuardLimits, aged, refusal

INTERVAL_S = 0.03
"""Longest time between two decisions of a guard that hears commands at 50 Hz: one and a half periods, so that commands
decide. Each decision uses up the acceleration of the time before it: with polls in between, a command would start the
wheels later than it stops them, and moves would be 3 % short."""


def _nothing(velocity: Velocity) -> None:
    """Send nothing: the driver reads :attr:`GuardedWheels.velocity` when its wheels turn."""


def _free() -> bool:
    return False


class GuardedWheels:
    """A base's Guard, and the rule of when it decides.

    It decides

    * at every command, stop, emergency stop and release;
    * at :meth:`poll`, if a reason to stop has come or gone, while ``held`` is true, and if the last decision is more
      than ``interval_s`` old.

    Poll after every report, and at a fixed period whatever the base delivers: an expired command and a silent base
    stop the wheels in no other way. Whoever shares an object between threads holds one lock around its calls, and
    reads the clock inside that lock.

    Args:
        limits: limits that the Guard enforces.
        now_ns: present time.
        send: consumer of each decided velocity, zeros too, called before the method that decides returns.
        held: test for a reason of the driver's own to stand still; commands are forgotten while it is true.
        interval_s: longest time between two decisions; 0 decides at every poll.

    Attributes:
        halt: reason of the last refusal, ``Halt.NONE`` if nothing was refused.
    """

    def __init__(
        self,
        limits: GuardLimits,
        now_ns: int,
        send: Callable[[Velocity], None] = _nothing,
        held: Callable[[], bool] = _free,
        interval_s: float = 0.0,
    ) -> None:
        self.limits = limits
        self.velocity, self.halt, self.decided_ns = STILL, Halt.NO_FEEDBACK, now_ns
        self._guard = Guard(limits)
        self._send, self._held, self._interval_ns = send, held, seconds_to_ns(interval_s)

    @property
    def e_stop(self) -> bool:
        """Whether the emergency stop is engaged."""
        return self._guard.state.e_stop

    def feedback(self, feedback: Feedback) -> None:
        """Take the levels of the base's sensors; :meth:`poll` after it."""
        self._guard.feedback(feedback)

    def command(self, velocity: Velocity, now_ns: int) -> Velocity:
        """Ask for a velocity and return what is let through.

        Raises:
            InvalidCommand: not a finite number; the wheels were stopped.
        """
        try:
            self._guard.command(velocity, now_ns)
        finally:
            self.decide(now_ns)
        return self.velocity

    def stop(self, now_ns: int) -> None:
        """Bring the wheels to zero at once, past every ramp, and forget the command."""
        self._guard.stop()
        self.decide(now_ns)

    def emergency_stop(self, now_ns: int) -> None:
        """Stop, and refuse every motion until :meth:`release_emergency_stop`."""
        self._guard.emergency_stop()
        self.decide(now_ns)

    def release_emergency_stop(self, now_ns: int) -> None:
        """Allow motion again; the wheels stay at zero until a new command."""
        self._guard.release_emergency_stop()
        self.decide(now_ns)

    def restart(self) -> None:
        """Forget everything but an emergency stop, for a new connection (its clock may be another) or a new place."""
        engaged, self._guard = self.e_stop, Guard(self.limits)
        if engaged:
            self._guard.emergency_stop()
        self.velocity = STILL

    def poll(self, now_ns: int) -> None:
        """Decide if a decision is due."""
        late = not 0 <= now_ns - self.decided_ns <= self._interval_ns
        if late or self._held() or refusal(aged(self.limits, self._guard.state, now_ns)) is not self.halt:
            self.decide(now_ns)

    def decide(self, now_ns: int) -> None:
        """Decide now, with the acceleration that the time since the last decision grants."""
        if self._held():
            self._guard.stop()
        decision = self._guard.tick(now_ns)
        self.velocity, self.halt, self.decided_ns = decision.velocity, decision.halt, now_ns
        self._send(self.velocity)
