"""The pan-tilt: two servos, read at 50 Hz, that stop by themselves when this program falls silent."""

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivers.dynamixel import protocol
from drivers.dynamixel.bus import ServoBus, SilentServo
from drivers.dynamixel.link import EmulatedLink, PortLink, ServoLink
from drivers.dynamixel.options import DynamixelOptions
from drivers.dynamixel.protocol import Block, HardwareError, angle_rad_of, counts_of
from drivers.dynamixel.variants import ServoVariant
from robot_runtime.common import config
from robot_runtime.common.clock import Clock, wait_for
from robot_runtime.common.host_checks import Finding, Status
from robot_runtime.errors import DeviceFault, NotConnected, StaleData
from robot_runtime.hal import Head, HeadLimits, HeadState, Robot, fresh
from robot_runtime.hal.head import Stillness
from robot_runtime.robots.loader import RobotContext

_LOG = logging.getLogger(__name__)

GOAL_ATTEMPTS = 5
"""Polls within which a servo must have taken a goal over."""

REBOOT_BEGIN_S, REBOOT_S = 0.2, 2.0
"""Time in which a restart has begun, and in which it ends."""

REBOOT_POLL_S = 0.05

MIN_VOLTAGE_V = 10.0
"""Least supply of a 12 V servo with its torque; the pan-tilt's board gives 5 V when only USB feeds it."""

SUPPLY_REMEDY = "connect the servos' 12 V supply: USB alone does not move them; charge the battery"
VOLTAGE_REMEDY = "charge the battery, and check the servos' supply and cables"

LATCHED_REMEDY = (
    "free the head and let the servo cool down, then switch the servos' supply off and on, or set reboot: true in the "
    "head's options"
)


def make_head(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Head:
    """Return the pan-tilt, disconnected; emulated on a simulated robot. Raises ``ConfigError`` for a bad option."""
    chosen = config.parse(dict(options), DynamixelOptions, where)
    link: ServoLink
    if robot.simulation is None:
        link = PortLink(robot.clock, chosen)
    else:
        link = EmulatedLink(robot.simulation, robot.head, chosen)
    return DynamixelHead(robot.clock, chosen, link)


@dataclass(frozen=True, slots=True)
class ServoState:
    """One servo, for diagnosis.

    Attributes:
        voltage_v: voltage of its supply.
        errors: latched.
    """

    id: int
    temperature_c: int
    voltage_v: float
    errors: HardwareError


class DynamixelHead(Head):
    """A pan-tilt of two servos. It is at rest once it has been at its goal for ``settle_s``.

    After a silence of ``watchdog_s`` the servos have stopped: they stay where they are until the next command.

    Attributes:
        servo_states: both servos as of the newest poll; empty before it.
    """

    def __init__(self, clock: Clock, options: DynamixelOptions, link: ServoLink) -> None:
        self._clock, self._options, self._link = clock, options, link
        self._variant = options.pan_tilt
        self._servos = (self._variant.pan, self._variant.tilt)
        self._stillness = Stillness(math.radians(options.tolerance_deg), options.settle_s)
        self._lock = threading.Lock()
        self._bus: ServoBus | None = None
        self._reset()

    def _reset(self) -> None:
        self._state: HeadState | None = None
        self._fault: DeviceFault | None = None
        self._silent: SilentServo | None = None
        self._goal: dict[int, int] | None = None
        self._unsent = False
        self._refusals = 0
        self.servo_states: tuple[ServoState, ...] = ()
        self._stillness.reset()

    @property
    def limits(self) -> HeadLimits:
        return self._variant.limits

    def diagnose(self) -> Sequence[Finding]:
        self._require_working()
        limit_c, found = self._options.max_temperature_c, []
        for state in self.servo_states:
            what, detail = f"servo {state.id}", f"{state.temperature_c} °C, {state.voltage_v:.1f} V"
            if state.errors:
                found.append(Finding(what, Status.WARN, f"{detail}, reports {state.errors!r}", VOLTAGE_REMEDY))
            elif state.voltage_v < MIN_VOLTAGE_V:
                found.append(Finding(what, Status.FAIL, f"{detail}, {MIN_VOLTAGE_V:g} V is needed", SUPPLY_REMEDY))
            elif state.temperature_c > limit_c:
                found.append(Finding(what, Status.FAIL, detail, f"let it cool down below {limit_c} °C"))
            else:
                found.append(Finding(what, Status.OK, detail))
        return found

    @property
    def retries(self) -> int:
        """Instructions that had to be repeated since connecting."""
        return 0 if self._bus is None else self._bus.retries

    def connect(self) -> None:
        self._reset()
        bus = self._link.open()
        try:
            for servo in self._servos:
                self._prepare(bus, servo)
            self._bus = bus
            self._poll()
            if self._fault is not None:
                raise self._fault
        except BaseException:
            self._bus = None
            self._link.close()
            raise
        self._link.start(self._poll, self._on_placed)

    def close(self) -> None:
        bus, self._bus = self._bus, None
        self._link.close(None if bus is None else lambda: self._leave(bus))

    def state(self, max_age_s: float) -> HeadState:
        self._require_working()
        with self._lock:
            state, silent = self._state, self._silent
        try:
            return fresh("head", state, self._clock.now_ns(), max_age_s)
        except StaleData as stale:
            if silent is None:
                raise
            raise StaleData(f"{stale.message}: {silent.message}", silent.remedy) from stale

    def command(self, pan_rad: float, tilt_rad: float) -> tuple[float, float]:
        self._require_working()
        angles = self.limits.clip(pan_rad, tilt_rad)
        for servo in self.servo_states:
            if servo.temperature_c > self._options.max_temperature_c:
                raise DeviceFault(
                    f"servo {servo.id} on {self._options.port} is at {servo.temperature_c} °C, "
                    f"{self._options.max_temperature_c} °C is allowed",
                    "let it cool down, and check that nothing loads or blocks the head",
                )
        with self._lock:
            self._stillness.set_goal(angles, self._clock.now_ns())
            goals = zip(self._servos, angles, strict=True)
            self._goal = {servo.id: counts_of(servo.sign * angle_rad) for servo, angle_rad in goals}
            self._unsent, self._refusals = True, 0
            if self._state is not None:
                state = self._state
                self._state = HeadState(state.stamp_ns, state.pan_rad, state.tilt_rad, not self._stillness.still)
        return angles

    def _require_working(self) -> None:
        if self._bus is None:
            raise NotConnected(f"the servos on {self._options.port} are not connected", "call connect() first")
        if self._fault is not None:
            raise self._fault

    # --- the bus, in the link's thread ------------------------------------------------------------------------------

    def _prepare(self, bus: ServoBus, servo: ServoVariant) -> None:
        """Check a servo's registers, and switch it on where it is."""
        if bus.model(servo.id) is None:
            raise self._missing(bus, servo.id)
        state = bus.read(servo.id, protocol.STATE)
        if state.get(protocol.HARDWARE_ERROR) and self._options.reboot:
            bus.reboot(servo.id)
            self._clock.sleep(REBOOT_BEGIN_S)
            wait_for(self._clock, lambda: bus.model(servo.id), REBOOT_S, REBOOT_POLL_S)
            state = bus.read(servo.id, protocol.STATE)
        settings = bus.read(servo.id, protocol.SETTINGS)
        errors = HardwareError(state.get(protocol.HARDWARE_ERROR) & settings.get(protocol.SHUTDOWN))
        if errors:
            raise self._latched(servo.id, errors)
        self._check_settings(bus, servo, settings)
        state = bus.read(servo.id, protocol.STATE)
        tripped = state.get(protocol.BUS_WATCHDOG) == protocol.WATCHDOG_TRIPPED
        bus.write(servo.id, protocol.BUS_WATCHDOG, 0)
        bus.write(servo.id, protocol.PROFILE_ACCELERATION, self._variant.profile_acceleration)
        bus.write(servo.id, protocol.PROFILE_VELOCITY, self._variant.profile_velocity)
        if tripped or not state.get(protocol.TORQUE):
            present = state.get(protocol.POSITION)
            reach = settings.get(protocol.MIN_POSITION), settings.get(protocol.MAX_POSITION)
            bus.write(servo.id, protocol.GOAL_POSITION, min(max(present, reach[0]), reach[1]))
            bus.write(servo.id, protocol.TORQUE, 1)
        bus.write(servo.id, protocol.BUS_WATCHDOG, protocol.watchdog_units(self._options.watchdog_s))

    def _check_settings(self, bus: ServoBus, servo: ServoVariant, settings: Block) -> None:
        model = settings.get(protocol.MODEL)
        if model not in protocol.MODELS:
            known = ", ".join(f"{name} ({number})" for number, name in protocol.MODELS.items())
            raise DeviceFault(f"servo {servo.id} is a model {model}", f"use one of {known}, or another id")
        wanted = {
            protocol.DRIVE_MODE: protocol.REVERSED if servo.reversed else 0,
            protocol.OPERATING_MODE: protocol.POSITION_MODE,
            protocol.HOMING_OFFSET: 0,
        }
        for register, value in wanted.items():
            found = settings.get(register)
            if found == value:
                continue
            if not self._options.configure:
                raise DeviceFault(
                    f"servo {servo.id}: register {register.address} is {found}, {self._options.variant}'s is {value}",
                    "choose the robot's variant in the head's options, or set configure: true there to write it",
                )
            bus.write(servo.id, protocol.TORQUE, 0)
            bus.write(servo.id, register, value)
        limits = self.limits
        is_pan = servo is self._variant.pan
        ends = (limits.min_pan_rad, limits.max_pan_rad) if is_pan else (limits.min_tilt_rad, limits.max_tilt_rad)
        low, high = settings.get(protocol.MIN_POSITION), settings.get(protocol.MAX_POSITION)
        if any(not low <= counts_of(servo.sign * end) <= high for end in ends):
            degrees = sorted(math.degrees(servo.sign * angle_rad_of(counts)) for counts in (low, high))
            axis = "pan" if is_pan else "tilt"
            raise DeviceFault(
                f"servo {servo.id}: its own position limits allow {degrees[0]:.0f}° to {degrees[1]:.0f}°, the head's "
                f"are {math.degrees(ends[0]):.0f}° to {math.degrees(ends[1]):.0f}°",
                f"set min_{axis}_deg and max_{axis}_deg in the head's options, or the servo's registers 48 and 52",
            )

    def _missing(self, bus: ServoBus, servo: int) -> DeviceFault:
        found = [other for other in (8, 9, 10, 11) if other != servo and bus.model(other) is not None]
        if not found and bus.received:
            return DeviceFault(
                f"port {self._options.port}: {bus.received} bytes came, and none of them was a servo's reply",
                "another device is at this port, or the servos have another 'baud_rate': look for the right port with "
                "`robot-runtime hardware find-port`",
            )
        others = f"; those that do: {' and '.join(map(str, found))}" if found else ""
        return DeviceFault(
            f"port {self._options.port}: servo {servo} does not answer{others}",
            "set 'variant' or the ids in the head's options: PyRobot's are 8 and 9, Interbotix' 10 and 11"
            if found
            else "switch the servos' power supply on, and check the cable and 'baud_rate' in the head's options",
        )

    def _latched(self, servo: int, errors: HardwareError) -> DeviceFault:
        names = ", ".join(str(error.name).lower().replace("_", " ") for error in HardwareError if error in errors)
        return DeviceFault(f"servo {servo} on {self._options.port} has switched itself off: {names}", LATCHED_REMEDY)

    def _poll(self) -> None:
        """Send a new goal, and read both servos."""
        bus = self._bus
        if bus is None or self._fault is not None:
            return
        with self._lock:
            goal = self._goal if self._unsent else None
            self._unsent = False
        try:
            if goal is not None:
                bus.sync_write(protocol.GOAL_POSITION, goal)
            blocks = bus.sync_read([servo.id for servo in self._servos], protocol.STATE)
            self._rearm(bus, blocks)
        except SilentServo as silent:
            with self._lock:
                self._silent, self._unsent = silent, self._unsent or goal is not None
            return
        except DeviceFault as fault:
            self._fault = fault
            return
        self._take(blocks)

    def _rearm(self, bus: ServoBus, blocks: Mapping[int, Block]) -> None:
        """After the bus watchdog has stopped the servos, hold them where they are and drop the goal."""
        tripped = [
            servo for servo, block in blocks.items() if block.get(protocol.BUS_WATCHDOG) == protocol.WATCHDOG_TRIPPED
        ]
        if not tripped:
            return
        _LOG.warning("servos %s stopped: this program was silent for %g s", tripped, self._options.watchdog_s)
        with self._lock:
            self._goal, self._unsent = None, False
        for servo, block in blocks.items():
            bus.write(servo, protocol.BUS_WATCHDOG, 0)
            bus.write(servo, protocol.GOAL_POSITION, block.get(protocol.POSITION))
            bus.write(servo, protocol.BUS_WATCHDOG, protocol.watchdog_units(self._options.watchdog_s))

    def _take(self, blocks: Mapping[int, Block]) -> None:
        """Take over what was read, or the fault in it."""
        now_ns = self._clock.now_ns()
        for servo, block in blocks.items():
            errors = HardwareError(block.get(protocol.HARDWARE_ERROR))
            if not block.get(protocol.TORQUE):
                self._fault = self._latched(servo, errors) if errors else self._limp(servo)
                return
        angles = [servo.sign * angle_rad_of(blocks[servo.id].get(protocol.POSITION)) for servo in self._servos]
        self._report(blocks)
        with self._lock:
            self._silent = None
            self._stillness.sample((angles[0], angles[1]), now_ns)
            self._state = HeadState(now_ns, angles[0], angles[1], moving=not self._stillness.still)
            if self._goal is None or self._unsent:
                return
            held = {servo: block.get(protocol.GOAL_POSITION) for servo, block in blocks.items()}
            refusing = [servo for servo, counts in self._goal.items() if held[servo] != counts]
            self._unsent = bool(refusing)
            self._refusals = self._refusals + 1 if refusing else 0
            if self._refusals >= GOAL_ATTEMPTS:
                self._fault = DeviceFault(
                    f"servo {refusing[0]} on {self._options.port} does not take its goal over",
                    "check its position limits, registers 48 and 52, and that no other program uses the servos",
                )

    def _report(self, blocks: Mapping[int, Block]) -> None:
        """Keep both servos' condition; warn of errors that do not switch them off."""
        states = tuple(
            ServoState(
                servo,
                block.get(protocol.TEMPERATURE),
                block.get(protocol.VOLTAGE) / 10,
                HardwareError(block.get(protocol.HARDWARE_ERROR)),
            )
            for servo, block in blocks.items()
        )
        before = {state.id: state.errors for state in self.servo_states}
        self.servo_states = states
        for state in states:
            if state.errors and state.errors != before.get(state.id):
                _LOG.warning("servo %d reports %s and works on", state.id, state.errors)

    def _limp(self, servo: int) -> DeviceFault:
        return DeviceFault(
            f"servo {servo} on {self._options.port} has no torque: it restarted, or another program took it away",
            "check the servos' power supply and cable, end other programs that use them, and restart",
        )

    def _on_placed(self) -> None:
        """Forget the goal: a simulated head was turned by hand."""
        with self._lock:
            self._goal, self._unsent = None, False
            self._stillness.reset()
        self._poll()

    def _leave(self, bus: ServoBus) -> None:
        """Switch the watchdogs off, so that the servos hold the camera."""
        for servo in self._servos:
            self._leave_servo(bus, servo.id)

    def _leave_servo(self, bus: ServoBus, servo: int) -> None:
        try:
            bus.write(servo, protocol.BUS_WATCHDOG, 0)
            if self._options.release:
                bus.write(servo, protocol.TORQUE, 0)
        except DeviceFault as fault:
            _LOG.warning("%s", fault.message)
