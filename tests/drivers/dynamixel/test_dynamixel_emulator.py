"""The emulated servos as the official library sees them, over a pty in real time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dynamixel_rig import servos_in_real_time
from dynamixel_sdk import (
    COMM_SUCCESS,
    GroupBulkRead,
    GroupSyncRead,
    GroupSyncWrite,
    PortHandler,
    Protocol2PacketHandler,
)

from drivers.dynamixel.emulator import EmulatedServo
from drivers.dynamixel.protocol import CENTER
from robot_runtime.common.clock import SystemClock, wait_for

PAN, TILT = 8, 9
PATIENCE_S = 10.0


class Client:
    """ROBOTIS' own library on the servos' port; patient, because this computer may be busy."""

    def __init__(self, path: str) -> None:
        self.port, self.packets = PortHandler(path), Protocol2PacketHandler()
        self.port.setPacketTimeout = lambda length: self.port.setPacketTimeoutMillis(2000)
        assert self.port.openPort()

    def write(self, servo: int, address: int, size: int, value: int) -> int:
        result, error = self.packets.writeTxRx(self.port, servo, address, size, list(value.to_bytes(size, "little")))
        assert result == COMM_SUCCESS
        return int(error)

    def read(self, servo: int, address: int, size: int) -> int:
        data, result, _ = self.packets.readTxRx(self.port, servo, address, size)
        assert result == COMM_SUCCESS
        return int.from_bytes(bytes(data), "little")


@pytest.fixture
def client() -> Iterator[Client]:
    with servos_in_real_time(EmulatedServo(PAN, (1024, 3072)), EmulatedServo(TILT)) as path:
        client = Client(path)
        yield client
        client.port.closePort()


def test_servos_answer_a_ping_with_their_model(client: Client) -> None:
    assert client.packets.ping(client.port, PAN) == (1060, COMM_SUCCESS, 0)
    client.port.setPacketTimeoutMillis = lambda ms: setattr(client.port, "packet_timeout", 100.0)
    found, _ = client.packets.broadcastPing(client.port)
    assert set(found) <= {PAN, TILT}


def test_a_bulk_read_is_answered_by_each_servo_with_its_own_register(client: Client) -> None:
    group = GroupBulkRead(client.port, client.packets)
    assert group.addParam(PAN, 132, 4)
    assert group.addParam(TILT, 0, 2)
    assert group.txRxPacket() == COMM_SUCCESS
    assert (group.getData(PAN, 132, 4), group.getData(TILT, 0, 2)) == (CENTER, 1060)


def test_at_another_baud_rate_nothing_is_answered(client: Client) -> None:
    assert client.port.setBaudRate(57_600)
    client.port.setPacketTimeout = lambda length: client.port.setPacketTimeoutMillis(200)
    assert client.packets.ping(client.port, PAN)[1] != COMM_SUCCESS
    assert client.port.setBaudRate(1_000_000)
    client.port.setPacketTimeout = lambda length: client.port.setPacketTimeoutMillis(2000)
    assert client.packets.ping(client.port, PAN)[1] == COMM_SUCCESS


def test_refusals_have_the_manuals_numbers(client: Client) -> None:
    assert client.write(PAN, 116, 4, 1000) == 6, "below the position limit"
    assert client.write(PAN, 64, 1, 1) == 0
    assert client.write(PAN, 10, 1, 1) == 7, "EEPROM while the torque is on"
    assert client.write(PAN, 132, 4, 0) == 7, "read only"
    assert client.write(PAN, 98, 1, 128) == 4, "the watchdog's range ends at 127"
    assert client.write(PAN, 200, 1, 1) == 4


def test_a_goal_is_reached_at_the_profiles_speed(client: Client) -> None:
    for address, value in ((112, 100), (64, 1)):
        group = GroupSyncWrite(client.port, client.packets, address, 4 if address == 112 else 1)
        for servo in (PAN, TILT):
            group.addParam(servo, list(value.to_bytes(group.data_length, "little")))
        assert group.txPacket() == COMM_SUCCESS
    clock = SystemClock()
    begin_ns = clock.now_ns()
    assert client.write(PAN, 116, 4, CENTER + 400) == 0
    assert wait_for(clock, lambda: client.read(PAN, 132, 4) == CENTER + 400 or None, PATIENCE_S, 0.005)
    assert (clock.now_ns() - begin_ns) / 1e9 > 400 / (100 * 0.229 * 4096 / 60) - 0.01
    group = GroupSyncRead(client.port, client.packets, 132, 4)
    assert all(group.addParam(servo) for servo in (PAN, TILT))
    assert group.txRxPacket() == COMM_SUCCESS
    assert [group.getData(servo, 132, 4) for servo in (PAN, TILT)] == [CENTER + 400, CENTER]


def test_the_bus_watchdog_stops_a_servo_until_it_is_cleared(client: Client) -> None:
    client.write(PAN, 112, 4, 10)
    client.write(PAN, 64, 1, 1)
    client.write(PAN, 98, 1, 2)
    assert client.write(PAN, 116, 4, 3000) == 0
    SystemClock().sleep(0.1)
    assert client.read(PAN, 98, 1) == 255
    stopped_at = client.read(PAN, 132, 4)
    assert client.write(PAN, 116, 4, 3000) == 4, "goals are read-only"
    assert client.write(PAN, 98, 1, 0) == 0
    assert client.write(PAN, 116, 4, 3000) == 0
    assert stopped_at < 2100


def test_a_restart_clears_a_latched_error(client: Client) -> None:
    assert client.read(PAN, 70, 1) == 0
    with servos_in_real_time(EmulatedServo(3), faults=[{"kind": "latched_error", "bits": 4}]) as path:
        other = Client(path)
        assert other.read(3, 70, 1) == 4
        assert other.write(3, 112, 4, 100) == 0x80, "the alert alone: the value was written"
        assert other.read(3, 112, 4) == 100
        assert other.packets.reboot(other.port, 3)[0] == COMM_SUCCESS
        assert other.read(3, 70, 1) == 0
        other.port.closePort()
