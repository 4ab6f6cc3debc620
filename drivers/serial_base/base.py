"""The runtime's side of a base whose connection a guard process owns."""

import logging
import math
import threading
from collections.abc import Sequence
from dataclasses import replace

from drivers.serial_base.guard_link import GuardLink
from drivers.serial_base.lockstep import LockstepEmulation
from drivers.serial_base.messages import COMMAND, EMERGENCY_STOP, RELEASE, STOP, Answer, State, Trouble
from drivers.serial_base.settings import GuardSettings
from drivers.serial_base.wire import NO_VERSION
from robot_runtime.common.clock import Clock, seconds_to_ns, wait_for
from robot_runtime.common.geometry import SE2
from robot_runtime.common.host_checks import Finding, Status
from robot_runtime.errors import DeviceFault, InvalidCommand, LowBattery, NotConnected, StaleData
from robot_runtime.hal import Base, BaseInfo, BaseState, Halt, Localizer, LocalizerInfo, PoseEstimate, Velocity, Zone
from robot_runtime.hal.pose_history import PoseHistory
from robot_runtime.hal.stand_ins import HistoryLocalizer
from robot_runtime.hal.streams import fresh
from robot_runtime.safety.guard import STILL

FIRST_STATE_S = 4.0
"""Time limit from opening the port to the first state, with the version of the firmware."""

POLL_S = 0.02

PAUSE_S = 1.0
"""Rest after which a motion counts as new, as far as a critical battery is concerned; after a stop it does at once."""

log = logging.getLogger(__name__)


class GuardProcessBase(Base):
    """A base behind a guard process.

    At a charge of ``critical_fraction`` no motion begins any more; one that is under way is finished. With an
    emulation, the base is a simulated robot's.

    Attributes:
        newest: newest message of the guard, for diagnosis; None before the first.
    """

    def __init__(
        self,
        clock: Clock,
        info: BaseInfo,
        settings: GuardSettings,
        critical_fraction: float = 0.0,
        emulation: LockstepEmulation | None = None,
    ) -> None:
        self._clock, self._info, self._settings = clock, info, settings
        self._critical_fraction, self._emulation = critical_fraction, emulation
        self._lock = threading.Lock()
        self._guard: GuardLink | None = None
        self._state: BaseState | None = None
        self.newest: State | None = None
        self._touched = Zone.NONE
        self._trouble: Trouble | None = None
        self._e_stop = False
        self._moved_ns = -seconds_to_ns(PAUSE_S)
        self._history = PoseHistory(f"odometry of {info.name}", "odom")
        self._odometry = HistoryLocalizer(LocalizerInfo(self._history.name, "odom", info.rate_hz), clock, self._history)

    @property
    def info(self) -> BaseInfo:
        return self._info

    @property
    def odometry(self) -> Localizer:
        return self._odometry

    @property
    def guard_process_id(self) -> int:
        """Process id of the guard process; 0 while disconnected."""
        return 0 if self._guard is None else self._guard.process_id

    def diagnose(self) -> Sequence[Finding]:
        newest = self.newest
        if newest is None:
            return ()
        lost = f"{newest.missed} readings lost, {newest.skipped} bytes skipped"
        return (
            Finding("firmware", Status.WARN, NO_VERSION, "restart the base; if it stays silent, flash its firmware")
            if newest.version == NO_VERSION
            else Finding("firmware", Status.OK, newest.version or "the device does not tell its version"),
            Finding("line", Status.OK, f"{lost}; the guard process runs with {newest.scheduling} priority"),
        )

    def connect(self) -> None:
        if self._guard is not None:
            return
        settings = replace(self._settings, e_stop=self._e_stop)
        with self._lock:
            self._state = self.newest = self._trouble = None
        if self._emulation is not None:
            settings = replace(settings, port=self._emulation.plug(), lockstep=True, e_stop_file="")
        guard = GuardLink(settings, self._on_state, self._on_trouble)
        guard.open()
        self._guard = guard
        if self._emulation is not None:
            self._emulation.start(guard)
            return
        try:
            self._await_first_state()
        except DeviceFault:
            self.close()
            raise

    def close(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.close()
        if self._emulation is not None:
            self._emulation.stop()
        with self._lock:
            self._state = None
        self._history.clear()

    def state(self, max_age_s: float) -> BaseState:
        self._working()
        with self._lock:
            state, trouble = self._state, self._trouble
        try:
            return fresh("base", state, self._clock.now_ns(), max_age_s)
        except StaleData as error:
            if trouble is None or not trouble.message:
                raise
            raise StaleData(f"{error.message}: {trouble.message}", trouble.remedy) from error

    def touched(self) -> Zone:
        with self._lock:
            touched, self._touched = self._touched, Zone.NONE
        return touched

    def command(self, velocity: Velocity) -> Velocity:
        guard, now_ns = self._working(), self._clock.now_ns()
        if velocity != STILL:
            self._require_allowed(now_ns)
        answer = guard.request(COMMAND, now_ns, _number(velocity.linear_m_s), _number(velocity.angular_rad_s))
        self._note(answer)
        if answer.error is not None:
            raise InvalidCommand(*answer.error)
        let_through = Velocity(answer.linear_m_s, answer.angular_rad_s)
        if let_through != STILL:
            self._moved_ns = now_ns
        return let_through

    def stop(self) -> None:
        guard = self._connected()
        self._moved_ns = self._clock.now_ns() - seconds_to_ns(PAUSE_S)  # what comes next is another motion
        if guard.fault is None:
            self._request(guard, STOP)

    def emergency_stop(self) -> None:
        guard = self._connected()
        self._e_stop = True
        self._request(guard, EMERGENCY_STOP)

    def release_emergency_stop(self) -> None:
        self._request(self._connected(), RELEASE)
        self._e_stop = False  # after the answer: a state from before it may still say otherwise

    # --- the guard's messages ---------------------------------------------------------------------------------------

    def _on_state(self, message: State) -> None:
        reading, halt = message.reading, message.halt
        state = BaseState(
            stamp_ns=reading.stamp_ns,
            odom=SE2(reading.x_m, reading.y_m, reading.yaw_rad),
            velocity=Velocity(reading.linear_m_s, reading.angular_rad_s),
            bumper=Zone(reading.bumper),
            cliff=Zone(reading.cliff),
            wheel_drop=Zone(reading.wheel_drop),
            halt=halt,
            battery_v=reading.battery_v,
            battery_fraction=reading.battery_fraction,
        )
        with self._lock:
            before, self.newest, self._state = self.newest, message, state
            self._touched |= state.bumper
            self._e_stop = self._e_stop or halt is Halt.E_STOP
        if before is None or before.reading.stamp_ns != reading.stamp_ns:
            self._history.add(PoseEstimate(state.stamp_ns, state.odom, "odom"))
        if reading.pushed and not (before is not None and before.reading.pushed):
            log.warning("%s: the wheels turn without a command: odometry is doubtful", self._info.name)

    def _on_trouble(self, trouble: Trouble) -> None:
        with self._lock:
            before, self._trouble = self._trouble, trouble
        if trouble.message and (before is None or before.message != trouble.message):  # each attempt fails again
            log.error("%s", trouble.message)

    def _note(self, answer: Answer) -> None:
        """Let the newest state tell at once why the Guard holds the wheels."""
        with self._lock:
            if self._state is not None and self._state.halt.value != answer.halt:
                self._state = replace(self._state, halt=Halt(answer.halt))

    def _request(self, guard: GuardLink, kind: str) -> None:
        try:
            self._note(guard.request(kind, self._clock.now_ns()))
        except DeviceFault as fault:  # the wheels were stopped in its place; the next use raises it
            log.error("%s", fault.message)

    # --- conditions -------------------------------------------------------------------------------------------------

    def _connected(self) -> GuardLink:
        if self._guard is None:
            raise NotConnected(f"{self._info.name}: not connected", "call connect() first, or use `with robot:`")
        return self._guard

    def _working(self) -> GuardLink:
        guard = self._connected()
        if guard.fault is not None:
            raise guard.fault
        if self._emulation is not None:
            self._emulation.check()
        return guard

    def _require_allowed(self, now_ns: int) -> None:
        newest = self.newest
        if newest is None:
            return
        if newest.hold:
            raise DeviceFault(f"{self._info.name}: {newest.hold}", "remove that cause, then go on")
        if newest.reading.battery_fraction <= self._critical_fraction and (
            now_ns - self._moved_ns >= seconds_to_ns(PAUSE_S)
        ):
            self.stop()
            volts = newest.reading.battery_v
            raise LowBattery(f"{self._info.name}: its battery is critical, at {volts:.1f} V", "charge it")

    def _await_first_state(self) -> None:
        def arrived() -> bool | None:
            self._working()
            return True if self.newest is not None else None

        if wait_for(self._clock, arrived, FIRST_STATE_S, POLL_S) is None:
            self.state(math.inf)  # raises with the reason


def _number(value: object) -> float:
    """A number as a float, not-a-number for everything else: the guard refuses it."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
