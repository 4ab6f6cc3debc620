"""Packets of protocol 2.0: known bytes, the official library's bytes, and what noise does to them."""

from __future__ import annotations

import math

import pytest
from dynamixel_sdk import COMM_SUCCESS, Protocol2PacketHandler
from hypothesis import given
from hypothesis import strategies as st

from drivers.dynamixel import protocol
from drivers.dynamixel.protocol import SYNC, Block, Instruction, Packet, Register, decode, encode, end_of, status
from drivers.serial_wire.framing import FrameScanner

PARAMETERS = st.binary(max_size=60) | st.lists(
    st.sampled_from([b"\xff", b"\xff\xff\xfd", b"\xfd", b"\x00", b"\xff\xff\xfd\x00"]), max_size=12
).map(b"".join)
PACKETS = st.builds(
    Packet,
    st.integers(0, protocol.MAX_ID),
    st.sampled_from([Instruction.READ, Instruction.WRITE, Instruction.SYNC_WRITE, Instruction.STATUS]),
    PARAMETERS,
)


@pytest.mark.parametrize(
    ("packet", "known"),
    [
        (Packet(10, Instruction.PING), "fffffd000a0300011a52"),
        (Packet(10, Instruction.WRITE, b"\x40\x00\x01"), "fffffd000a06000340000168ed"),
        (Packet(10, Instruction.WRITE, b"\x70\x00\x83\x00\x00\x00"), "fffffd000a0900037000830000004d75"),
        (Packet(10, Instruction.WRITE, b"\x74\x00\xab\x0a\x00\x00"), "fffffd000a0900037400ab0a0000cc35"),
        (Packet(10, Instruction.READ, b"\x84\x00\x04\x00"), "fffffd000a0700028400040027a5"),
        (status(10, 0, b"\xab\x0a\x00\x00"), "fffffd000a08005500ab0a0000a41d"),
    ],
)
def test_worked_bytes_of_messages(packet: Packet, known: str) -> None:
    assert encode(packet).hex() == known
    assert decode(bytes.fromhex(known)) == packet


@given(PACKETS)
def test_messages_come_back(packet: Packet) -> None:
    assert decode(encode(packet)) == packet


def test_the_checksum_is_the_published_one() -> None:
    assert protocol.crc16(b"123456789") == 0xFEE8


class Recorded:
    """A port that keeps what the official library sends."""

    is_using = False

    def __init__(self) -> None:
        self.sent = b""

    def clearPort(self) -> None:  # noqa: N802
        pass

    def writePort(self, packet: list[int]) -> int:  # noqa: N802
        self.sent = bytes(packet)
        return len(packet)


@given(PACKETS)
def test_the_official_library_sends_the_same_bytes(packet: Packet) -> None:
    port, length = Recorded(), len(packet.parameters) + 3
    empty = [0, 0, 0, 0, packet.id, length & 0xFF, length >> 8, packet.instruction]
    assert Protocol2PacketHandler().txPacket(port, [*empty, *packet.parameters, 0, 0]) == COMM_SUCCESS
    if b"\xff\xff\xfd" in packet.parameters:
        assert port.sent != encode(packet), "the library's defect: it sends the header within a packet as it is"
    else:
        assert port.sent == encode(packet)


@given(st.lists(PACKETS, max_size=5), st.lists(st.integers(1, 40), min_size=1))
def test_a_stream_may_be_cut_anywhere(packets: list[Packet], sizes: list[int]) -> None:
    data, scanner, found = b"".join(map(encode, packets)), FrameScanner(SYNC, end_of, bytes), []
    while data:
        size = sizes[len(data) % len(sizes)]
        found += [decode(frame) for frame in scanner.feed(data[:size])]
        data = data[size:]
    assert found == packets
    assert scanner.skipped == 0


@given(st.binary(max_size=80), PACKETS, st.binary(max_size=80), PACKETS)
def test_noise_costs_at_most_the_frame_behind_it(before: bytes, one: Packet, between: bytes, other: Packet) -> None:
    frames = FrameScanner(SYNC, end_of, bytes).feed(before + encode(one) + between + encode(other))
    found = [decode(frame) for frame in frames]
    begun = SYNC in before + between or any((before + b"|" + between).endswith(SYNC[:n]) for n in range(1, 4))
    assert begun or (one in found and other in found)


@given(PACKETS, st.data())
def test_a_damaged_frame_is_never_believed(packet: Packet, data: st.DataObject) -> None:
    whole = encode(packet)
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    assert packet not in [decode(frame) for frame in FrameScanner(SYNC, end_of, bytes).feed(damaged)]


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    for frame in FrameScanner(SYNC, end_of, bytes).feed(data):
        decode(frame)


@pytest.mark.parametrize("packet", [Packet(255, 1), Packet(1, 3, bytes(2000))])
def test_what_does_not_fit_is_refused(packet: Packet) -> None:
    with pytest.raises(ValueError, match="a packet has an id"):
        encode(packet)


@given(st.floats(-math.pi, math.pi))
def test_angles_keep_to_half_a_count(angle_rad: float) -> None:
    counts = protocol.counts_of(angle_rad)
    assert protocol.angle_rad_of(counts) == pytest.approx(angle_rad, abs=math.pi / 4096 + 1e-9)


def test_positions_are_signed_and_a_block_ends_where_it_ends() -> None:
    block = Block(100, b"\x01\x02" + (-5).to_bytes(4, "little", signed=True))
    assert block.get(Register(102, 4)) == -5
    assert block.get(Register(100, 2)) == 0x0201
    for register in (Register(99, 1), Register(104, 4)):
        with pytest.raises(IndexError):
            block.get(register)


@pytest.mark.parametrize(("timeout_s", "units"), [(0.2, 10), (0.001, 1), (60.0, 127)])
def test_the_watchdog_counts_in_20_milliseconds(timeout_s: float, units: int) -> None:
    assert protocol.watchdog_units(timeout_s) == units
