"""Emulated Kobuki: its frames and commands, from a simulated body."""

import math

from drivers.kobuki import protocol
from drivers.kobuki.protocol import encode, wheel_speeds
from drivers.serial_base.emulator import EmulatedBase, Sensed
from drivers.serial_base.wire import bits_of
from robot_runtime.hal import Velocity, Zone

FACTORY_GAINS = protocol.ControllerInfo(0, 100_000, 100, 2000)
FLOOR_READING, CLIFF_READING = 1800, 60


class EmulatedKobuki(EmulatedBase):
    """Firmware of a Kobuki: it repeats the last motion for ever.

    Attributes:
        output: the last word of general outputs: supplies and LEDs.
        sounds: melodies and tones since it was switched on.
    """

    usual_baud_rate, period_s, separation_m = protocol.BAUD_RATE, protocol.PERIOD_S, protocol.SEPARATION_M
    latest_firmware = "1.2.0"

    def reboot(self) -> None:
        self.sounds: list[protocol.Sound | protocol.SoundSequence] = []
        self._origin = (0.0, 0.0, 0.0)
        self._decoder = protocol.Decoder(from_base=False)
        self._asked = 0
        self._gains: protocol.ControllerInfo | None = None
        self._gain = FACTORY_GAINS
        self.output = 0
        self._frame = 0
        self._restarted = True

    def take(self, data: bytes) -> None:
        for parts in self._decoder.feed(data):
            for part in parts:
                self._obey(part)

    def _obey(self, part: object) -> None:
        if isinstance(part, protocol.BaseControl):
            left_m_s, right_m_s = wheel_speeds(part)
            self.velocity = Velocity((left_m_s + right_m_s) / 2, (right_m_s - left_m_s) / protocol.SEPARATION_M)
        elif isinstance(part, protocol.RequestExtra):
            self._asked |= part.flags
        elif isinstance(part, protocol.GeneralOutput):
            self.output = part.word
        elif isinstance(part, (protocol.Sound, protocol.SoundSequence)):
            self.sounds.append(part)
        elif isinstance(part, protocol.SetGain):
            self._gain = protocol.ControllerInfo(*part)
        elif isinstance(part, protocol.GetGain):
            self._gains = self._gain

    def message(self, sensed: Sensed, now_ns: int) -> bytes:
        if self._restarted:
            self._restarted = False
            self._origin = sensed.left_m, sensed.right_m, sensed.gyro_rad
            self._started_ns = now_ns
        left_m, right_m, gyro_rad = self._origin
        heading_deg = math.degrees(math.remainder(sensed.gyro_rad - gyro_rad, 2 * math.pi))
        basic = protocol.Basic(
            time_ms=(now_ns - self._started_ns) // 1_000_000 % 65536,
            bumper=bits_of(sensed.bumper, protocol.LEFT, protocol.CENTER, protocol.RIGHT),
            wheel_drop=bits_of(sensed.wheel_drop, protocol.DROP_LEFT, 0, protocol.DROP_RIGHT),
            cliff=bits_of(sensed.cliff, protocol.LEFT, protocol.CENTER, protocol.RIGHT),
            left_encoder=math.floor((sensed.left_m - left_m) / protocol.METERS_PER_TICK) % 65536,
            right_encoder=math.floor((sensed.right_m - right_m) / protocol.METERS_PER_TICK) % 65536,
            buttons=sensed.buttons,
            battery_dv=round(10 * sensed.battery_v),
            overcurrent=protocol.OVERCURRENT_LEFT if sensed.over_current else 0,
        )
        sensors = Zone.RIGHT, Zone.CENTER, Zone.LEFT
        floor = (CLIFF_READING if zone in sensed.cliff else FLOOR_READING for zone in sensors)
        rate_cdeg_s = max(-32768, min(32767, round(100 * math.degrees(sensed.rate_rad_s))))
        sample = (0, 0, max(-32768, min(32767, round(rate_cdeg_s / 0.875))))
        self._frame = (self._frame + 2) % 256
        parts: list[protocol.Feedback] = [
            basic,
            protocol.DockInfrared(0, 0, 0),
            protocol.Inertia(round(100 * heading_deg), rate_cdeg_s),
            protocol.CliffReadings(*floor),
            protocol.Current(0, 0),
            protocol.RawGyro(self._frame, (sample, sample)),
            protocol.GeneralInput(0, (4095, 4095, 4095, 4095)),
        ]
        asked, self._asked = self._asked, 0
        if asked & protocol.HARDWARE:
            parts.append(protocol.HardwareVersion(protocol.Version(1, 0, 4)))
        if asked & protocol.FIRMWARE:
            parts.append(protocol.FirmwareVersion(protocol.Version(*(int(part) for part in self.firmware.split(".")))))
        if asked & protocol.SERIAL_NUMBER:
            parts.append(protocol.UniqueId((1, 2, 3)))
        if self._gains is not None:
            parts.append(self._gains)
            self._gains = None
        return encode(*parts)
