"""Localizer by Marvelmind beacons: ``driver: drivers.marvelmind.driver.make_localizer``.

Bytes come from a reader thread, or from the emulated hedgehog of a simulated robot. Each packet with a new position
becomes a pose, stamped with the instant of its ultrasound. A packet without a fix becomes an event and no pose.
"""

import math
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from drivers.marvelmind.emulator import EmulatedLink, Hedgehog
from drivers.marvelmind.mounting import Mounting
from drivers.marvelmind.options import MarvelmindOptions
from drivers.marvelmind.protocol import NMEA, POSITION_MM_UNIX, Decoder, Flags, Position, Quality, parse
from drivers.marvelmind.serial_port import HEDGEHOG
from drivers.serial_wire.reader import Link, ThreadLink
from robot_runtime.common import config
from robot_runtime.common.clock import Clock, seconds_to_ns
from robot_runtime.errors import DeviceFault, NotConnected, StaleData
from robot_runtime.hal import BufferedLocalizer, Event, Localizer, LocalizerInfo, PoseEstimate, PoseHistory, Robot
from robot_runtime.hal.simulation import Simulation, Subscription
from robot_runtime.robots.loader import RobotContext

EMULATED_ADDRESS = 11
POLL_S = 0.02
MIN_QUALITY_PERCENT = 10
"""Quality below which a position is no fix, where the hedgehog tells it."""

TEXT_BYTES = 200
"""More than twice an NMEA sentence."""

REPEATS = 3
"""Packets in a row with the same timestamp from which a source counts as frozen."""


def make_localizer(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> Localizer:
    """Return the localizer, disconnected; emulated on a simulated robot. Raises ``ConfigError`` for a bad option."""
    chosen = config.parse(dict(options), MarvelmindOptions, where)
    mounting, simulation = chosen.mounting(robot.name), robot.simulation
    if simulation is None:
        link: Link = ThreadLink(chosen.port, chosen.baud_rate, HEDGEHOG)
    else:
        address = chosen.address or EMULATED_ADDRESS
        hedgehog = Hedgehog(simulation, f"marvelmind on {chosen.port}", mounting, address, chosen.emulator)
        link = EmulatedLink(simulation, hedgehog, chosen.rate_hz, chosen.baud_rate)
    return MarvelmindLocalizer(robot.clock, chosen, mounting, link, simulation)


class MarvelmindLocalizer(BufferedLocalizer):
    """Localizer by a hedgehog, or a pair, on the robot, in ``map``, or in ``beacons`` without an alignment.

    Without a heading (of a single hedgehog, or a pair that has lost it) the yaw's variance is infinite and the position
    is that of ``info.mark_m``.
    """

    def __init__(
        self,
        clock: Clock,
        options: MarvelmindOptions,
        mounting: Mounting,
        link: Link,
        simulation: Simulation | None = None,
    ) -> None:
        frame = "beacons" if options.unaligned else "map"
        info = LocalizerInfo(f"marvelmind on {options.port}", frame, options.rate_hz, mounting.lever_m)
        super().__init__(info, clock, PoseHistory(info.name, frame), POLL_S)
        self._options, self._mounting = options, mounting
        self._link, self._simulation = link, simulation
        self._lock = threading.Lock()
        self._placed: Subscription | None = None
        self._connected = False
        self._reset()

    def _reset(self) -> None:
        self._decoder = Decoder()
        self._address = self._options.address
        self._device_ms: int | None = None
        self._repeats = 0
        self._has_heading = True
        self._quality: int | None = None
        self._codes: set[int] = set()
        self._text = b""
        """The last bytes, until the first packet."""
        self._others: set[int] = set()
        """Addresses of other hedgehogs that send positions."""
        self._fault: DeviceFault | None = None
        self._trouble = ""
        """Reason why there is no new pose; empty while there is one."""

    def connect(self) -> None:
        if self._connected:
            return
        self._reset()
        self._history.clear()
        self._link.open(self._receive)
        if self._simulation is not None:
            self._placed = self._simulation.on_placed(self._clear)
        self._connected = True

    def close(self) -> None:
        self._link.close()
        if self._placed is not None:
            self._placed.close()
            self._placed = None
        self._connected = False

    def latest(self, max_age_s: float) -> PoseEstimate:
        try:
            return super().latest(max_age_s)
        except StaleData as error:
            raise self._with_reason(error) from error

    def at(self, stamp_ns: int, timeout_s: float) -> PoseEstimate:
        try:
            return super().at(stamp_ns, timeout_s)
        except StaleData as error:
            self._link.check()
            raise self._with_reason(error) from error

    def _require_connected(self) -> None:
        if not self._connected:
            raise NotConnected(f"{self._info.name}: is not connected", "call connect() before using it")
        self._link.check()
        if self._fault is not None:
            raise self._fault

    def _with_reason(self, error: StaleData) -> StaleData:
        with self._lock:
            trouble, has_packet, noise = self._trouble, self._device_ms is not None, self._decoder.skipped
            codes, others = sorted(self._codes), sorted(self._others)
        if not trouble and not has_packet and others:
            senders = " and ".join(map(str, others))
            return StaleData(
                f"{error.message}: positions come from hedgehog {senders}, not from {self._options.address}",
                "set 'address' in the localizer's options to the one on the robot",
            )
        if not trouble and not has_packet and codes:
            kinds = ", ".join(f"{code:#06x}" for code in codes)
            return StaleData(
                f"{error.message}: packets come ({kinds}), but none with a position",
                "switch on the streaming of positions of this hedgehog in the vendor's tool",
            )
        if not trouble and not has_packet and NMEA.search(self._text):
            return StaleData(
                f"{error.message}: the hedgehog sends NMEA sentences",
                "choose the protocol 'Marvelmind' instead of NMEA in the hedgehog's interfaces, in the vendor's tool",
            )
        if not trouble and not has_packet:
            trouble = f"{noise} bytes came without a packet" if noise else "no bytes came"
            remedy = "check 'baud_rate', and that the port is a hedgehog's" if noise else "switch hedgehog and modem on"
            return StaleData(f"{error.message}: {trouble}", remedy)
        if not trouble:
            return error
        quality = "" if self._quality is None else f", its positions' quality is {self._quality} %"
        return StaleData(
            f"{error.message}: {trouble}{quality}",
            "bring the hedgehog into view of at least three beacons, and check them in the vendor's tool",
        )

    def _clear(self) -> None:
        with self._lock:
            self._history.clear()

    def _receive(self, data: bytes) -> None:
        """Decode bytes at their arrival."""
        now_ns = self._clock.now_ns()
        with self._lock:
            self._text = b"" if self._codes else (self._text + data)[-TEXT_BYTES:]
            for packet in self._decoder.feed(data):
                message = parse(packet)
                self._codes.add(packet.code)
                if isinstance(message, Quality) and message.address == self._address:
                    self._quality = message.percent
                elif isinstance(message, Position) and self._is_own(message):
                    self._take(message, now_ns)

    def _is_own(self, position: Position) -> bool:
        if position.from_other_hedgehog:
            return False
        if self._address is None:
            self._address = position.address
        if self._options.address is None and position.address != self._address:
            self._fault = DeviceFault(
                f"{self._info.name}: receives packets of the hedgehogs {self._address} and {position.address}",
                "set 'address' in the localizer's options to the one on the robot",
            )
        if position.address != self._address:
            self._others.add(position.address)
        return position.address == self._address

    def _take(self, position: Position, now_ns: int) -> None:
        if not self._is_new(position, now_ns):
            return
        if why := self._no_fix(position):
            self._report_no_fix("no_fix", f"hedgehog {position.address} {why}", now_ns)
            return
        if self._trouble:
            self._history.report(Event(now_ns, self._info.name, "fix", f"hedgehog {position.address} has a fix again"))
            self._trouble = ""
        stamp_ns = now_ns - seconds_to_ns(position.age_s + self._options.latency_s)
        angle_rad = position.angle_rad if self._mounting.pair is not None else None
        self._report_heading(position, angle_rad is not None, now_ns)
        pose = self._mounting.base(position.x_m, position.y_m, angle_rad)
        covariance = self._covariance(position, angle_rad is not None, pose.yaw_rad)
        self._history.add(PoseEstimate(stamp_ns, pose, self._info.frame, covariance))

    def _no_fix(self, position: Position) -> str:
        """Return why a position is none; empty if it is one."""
        if position.unavailable:
            return "has no fix"
        if Flags.OUTSIDE_GEOFENCE in position.flags:
            return "is outside the geofence of its beacons"
        if not (position.x_m or position.y_m or position.z_m):
            return "sends the position (0, 0, 0), which is none"
        if self._quality is not None and self._quality < MIN_QUALITY_PERCENT:
            return f"has positions of {self._quality} % quality"
        return ""

    def _is_new(self, position: Position, now_ns: int) -> bool:
        """Return whether a measurement is later than the last one by the hedgehog's own clock."""
        before_ms, self._device_ms = self._device_ms, position.device_ms
        if before_ms is None:
            return True
        on_ms = position.device_ms - before_ms
        if position.code != POSITION_MM_UNIX:
            on_ms = (on_ms + 2**31) % 2**32 - 2**31  # the counter wraps around after 49 days
        if on_ms < 0:
            detail = f"the clock of hedgehog {position.address} went back by {-on_ms / 1000:.3f} s"
            self._history.report(Event(now_ns, self._info.name, "clock_went_back", detail))
            return False
        self._repeats = self._repeats + 1 if on_ms == 0 else 0
        if self._repeats >= REPEATS:
            self._report_no_fix("frozen", f"hedgehog {position.address} sends one measurement again and again", now_ns)
        return on_ms > 0

    def _report_no_fix(self, kind: str, trouble: str, now_ns: int) -> None:
        """Record why there is no pose; an event when that begins."""
        if self._trouble != trouble:
            self._trouble = trouble
            self._history.report(Event(now_ns, self._info.name, kind, trouble))

    def _report_heading(self, position: Position, known: bool, now_ns: int) -> None:
        """Report when a pair loses its heading, and when it has one again."""
        if self._mounting.pair is None or known == self._has_heading:
            return
        self._has_heading = known
        detail = f"the pair of hedgehog {position.address} has {'a heading again' if known else 'no heading'}"
        self._history.report(Event(now_ns, self._info.name, "heading" if known else "no_heading", detail))

    def _covariance(self, position: Position, with_yaw: bool, yaw_rad: float) -> np.ndarray:
        noise_m, pair = self._options.noise_m, self._mounting.pair
        variance_m2 = noise_m**2
        if pair is not None:
            # The mean of two; a position of one of them alone is half their distance away from the middle.
            variance_m2 = variance_m2 / 2 if position.pair_center else variance_m2 + (pair.base_m / 2) ** 2
        covariance = np.diag([variance_m2, variance_m2, math.inf])
        if not with_yaw or pair is None:
            return covariance
        forward_m, left_m = self._mounting.lever_m
        yaw_rad2 = 2 * (noise_m / pair.base_m) ** 2
        c, s = math.cos(yaw_rad), math.sin(yaw_rad)
        # Derivative of the robot's position by its heading, about the hedgehog.
        lever = np.array([s * forward_m + c * left_m, -c * forward_m + s * left_m])
        covariance[:2, :2] += yaw_rad2 * np.outer(lever, lever)
        covariance[:2, 2] = covariance[2, :2] = yaw_rad2 * lever
        covariance[2, 2] = yaw_rad2
        return covariance
