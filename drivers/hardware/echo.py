"""Live readings of a device on a serial port, one line each; nothing is switched on or moved."""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from drivers.serial_wire.port import Port
from robot_runtime.common.clock import SystemClock
from robot_runtime.errors import DeviceFault

T = TypeVar("T")

SHOWN_S = 0.5
"""Time between two lines of a device that sends, or is asked, more often."""

SILENCE_S = 3.0
SERVO_IDS = range(1, 21)


def servos(path: str) -> Iterator[str]:
    """Angles, temperature, voltage, torque and errors of all servos with ids up to 20.

    Raises:
        DeviceFault: no port, or no servo answers.
    """
    from drivers.dynamixel import protocol
    from drivers.dynamixel.bus import SdkPort, ServoBus
    from drivers.dynamixel.serial_port import SERVOS

    baud_rate = 1_000_000
    port = Port(path, baud_rate, SERVOS)
    try:
        bus = ServoBus(SdkPort(port, baud_rate))
        models = {servo: model for servo in SERVO_IDS if (model := bus.model(servo)) is not None}
        if not models:
            raise DeviceFault(
                f"port {path}: no servo with an id up to {SERVO_IDS[-1]} answers at {baud_rate} Bd",
                "switch the servos' power supply on, and check the cable",
            )
        while True:
            for servo, model in models.items():
                state = bus.read(servo, protocol.STATE)
                angle_deg = math.degrees(protocol.angle_rad_of(state.get(protocol.POSITION)))
                errors = protocol.HardwareError(state.get(protocol.HARDWARE_ERROR))
                yield (
                    f"servo {servo} ({protocol.MODELS.get(model, model)}): {angle_deg:+.1f}°, "
                    f"{state.get(protocol.TEMPERATURE)} °C, {state.get(protocol.VOLTAGE) / 10:.1f} V, "
                    f"torque {'on' if state.get(protocol.TORQUE) else 'off'}" + (f", {errors!r}" if errors else "")
                )
            SystemClock().sleep(SHOWN_S)
    finally:
        port.close()


def beacons(path: str) -> Iterator[str]:
    """Positions of a Marvelmind hedgehog. Raises ``DeviceFault``."""
    from drivers.marvelmind.options import MarvelmindOptions
    from drivers.marvelmind.protocol import Decoder, Position, parse
    from drivers.marvelmind.serial_port import HEDGEHOG

    decoder = Decoder()
    for data in _received(Port(path, MarvelmindOptions().baud_rate, HEDGEHOG)):
        for packet in decoder.feed(data):
            found = parse(packet)
            if isinstance(found, Position):
                where = "no fix" if found.unavailable else f"x {found.x_m:.3f} y {found.y_m:.3f} z {found.z_m:.3f} m"
                yield f"hedgehog {found.address}: {where}, {1000 * found.age_s:.0f} ms old"


def kobuki(path: str) -> Iterator[str]:
    """Sensors of a Kobuki, sent in 50 frames per second; one line for each half second. Raises ``DeviceFault``."""
    from drivers.kobuki.protocol import BAUD_RATE, PERIOD_S, Basic, Decoder, Inertia
    from drivers.kobuki.serial_port import KOBUKI

    decoder = Decoder()
    for parts in _shown(Port(path, BAUD_RATE, KOBUKI), decoder.feed, PERIOD_S):
        found = {type(part): part for part in parts}
        basic, inertia = found.get(Basic), found.get(Inertia)
        if isinstance(basic, Basic) and isinstance(inertia, Inertia):
            yield (
                f"bumper {basic.bumper:03b}, cliff {basic.cliff:03b}, wheel drop {basic.wheel_drop:02b}, "
                f"buttons {basic.buttons:03b}, encoders {basic.left_encoder} {basic.right_encoder}, "
                f"gyro {inertia.angle_cdeg / 100:+.1f}°, {basic.battery_dv / 10:.1f} V, "
                f"{decoder.skipped} bytes of noise"
            )


def create2(path: str) -> Iterator[str]:
    """Sensors of a Create 2 in Passive mode, in which it moves and charges by itself; one line for each half second.

    Raises:
        DeviceFault: no port, or nothing arrives.
    """
    from drivers.create2.protocol import BAUD_RATE, PERIOD_S, STREAMED, Decoder, Packet, stream
    from drivers.create2.serial_port import CREATE_2
    from drivers.create2.wire import PADDING

    port, decoder = Port(path, BAUD_RATE, CREATE_2), Decoder()
    port.write(PADDING + stream(STREAMED).encoded)
    for found in _shown(port, decoder.feed, PERIOD_S):
        cliffs = "".join(str(found[packet]) for packet in range(Packet.CLIFF_LEFT, Packet.CLIFF_RIGHT + 1))
        yield (
            f"bumper and wheel drop {found[Packet.BUMPS_AND_WHEEL_DROPS]:04b}, cliff {cliffs}, "
            f"buttons {found[Packet.BUTTONS]:08b}, "
            f"encoders {found[Packet.LEFT_ENCODER]} {found[Packet.RIGHT_ENCODER]}, mode {found[Packet.MODE]}, "
            f"{found[Packet.VOLTAGE_MV] / 1000:.1f} V, {decoder.skipped} bytes of noise"
        )


def _shown(port: Port, decode: Callable[[bytes], list[T]], period_s: float) -> Iterator[T]:
    """Yield one message per :data:`SHOWN_S`, the first at once."""
    messages = (message for data in _received(port) for message in decode(data))
    return islice(messages, 0, None, round(SHOWN_S / period_s))


def _received(port: Port) -> Iterator[bytes]:
    """Yield the bytes that arrive at a port. Raises ``DeviceFault`` after a silence."""
    clock = SystemClock()
    try:
        heard_ns = clock.now_ns()
        while clock.now_ns() - heard_ns < SILENCE_S * 1e9:
            if data := port.read():
                heard_ns = clock.now_ns()
                yield data
    finally:
        port.close()
    raise DeviceFault(
        f"port {port.path}: nothing arrived for {SILENCE_S:g} s", "switch the device on, and check port and cable"
    )


ECHOES: Mapping[str, Callable[[str], Iterator[str]]] = {
    "create2": create2,
    "dynamixel": servos,
    "kobuki": kobuki,
    "marvelmind": beacons,
}
"""By the name that the device's udev rule gives its port: a line for each reading; they end when nothing comes."""
