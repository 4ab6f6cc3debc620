"""Packets of Marvelmind hedgehogs: worked bytes, round trips, and every way in which a serial line spoils them."""

from __future__ import annotations

import math
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.marvelmind.protocol import (
    MAX_FRAME,
    POSITION_CM,
    POSITION_MM,
    POSITION_MM_UNIX,
    Decoder,
    Flags,
    Packet,
    Position,
    Quality,
    crc16,
    encode,
    frame,
    parse,
)

MM = bytes.fromhex("ff4711001640e20100d2040000c9fdffffc2010000020b89132600fc8b")
MM_UNIX = bytes.fromhex("ff4781001a7b68e5cf8b010000d2040000c9fdffffc2010000020b89132600bd5e")
QUALITY = bytes.fromhex("ff470700100b57000000000000000000000000000053db")

UNITS_M = {POSITION_CM: 0.01, POSITION_MM: 0.001, POSITION_MM_UNIX: 0.001}


def positions() -> st.SearchStrategy[Position]:
    return st.sampled_from(sorted(UNITS_M)).flatmap(
        lambda code: st.builds(
            Position,
            code=st.just(code),
            device_ms=st.integers(0, 2**32 - 1),
            x_m=st.floats(-300, 300),
            y_m=st.floats(-300, 300),
            z_m=st.floats(-300, 300),
            address=st.integers(0, 255),
            age_s=st.floats(0, 65),
            angle_rad=st.none() | st.floats(0, 2 * math.pi),
            pair_center=st.booleans(),
            flags=st.sampled_from([Flags(0), Flags.UNAVAILABLE, Flags.OTHER_HEDGEHOG | Flags.OUTSIDE_GEOFENCE]).map(
                lambda flags: flags | Flags.MILLISECONDS
            ),
        )
    )


def packets() -> st.SearchStrategy[bytes]:
    others = st.builds(Packet, st.sampled_from([0x0002, 0x0012, 0x7777]), st.binary(max_size=255)).map(frame)
    return positions().map(encode) | others


@pytest.mark.parametrize(
    ("data", "code", "device_ms"), [(MM, POSITION_MM, 123_456), (MM_UNIX, POSITION_MM_UNIX, 1_700_000_000_123)]
)
def test_worked_bytes_of_messages(data: bytes, code: int, device_ms: int) -> None:
    (packet,) = Decoder().feed(data)
    found = parse(packet)
    assert isinstance(found, Position)
    assert (found.code, found.device_ms, found.address) == (code, device_ms, 11)
    assert (found.x_m, found.y_m, found.z_m) == pytest.approx((1.234, -0.567, 0.450))
    assert found.angle_rad == pytest.approx(math.radians(90.5))
    assert found.age_s == pytest.approx(0.038)
    assert found.pair_center
    assert found.flags == Flags.MILLISECONDS
    assert encode(found) == data


def test_worked_bytes_of_a_quality() -> None:
    (packet,) = Decoder().feed(QUALITY)
    assert parse(packet) == Quality(11, 87)


def test_the_checksum_is_modbus() -> None:
    assert crc16(b"123456789") == 0x4B37


def test_old_firmware_counts_sixty_fourths_of_a_second() -> None:
    new = encode(Position(POSITION_CM, 6400, 1.0, 2.0, 0.0, address=3))
    payload = bytearray(new[5:-2])
    payload[10] &= ~Flags.MILLISECONDS
    (packet,) = Decoder().feed(frame(Packet(POSITION_CM, bytes(payload))))
    found = parse(packet)
    assert isinstance(found, Position)
    assert found.device_ms == 100_000


@pytest.mark.parametrize("code", [0x0002, 0x0003, 0x0004, 0x0005, 0x0006, 0x0012, 0x0083, 0x0084, 0x0085, 0x4242])
def test_packets_about_something_else_say_nothing(code: int) -> None:
    assert parse(Packet(code, bytes(36))) is None


@given(position=positions())
@settings(max_examples=60)
def test_messages_come_back(position: Position) -> None:
    (packet,) = Decoder().feed(encode(position))
    found = parse(packet)
    assert isinstance(found, Position)
    unit_m = UNITS_M[position.code]
    for name in ("x_m", "y_m", "z_m"):
        assert getattr(found, name) == pytest.approx(getattr(position, name), abs=unit_m / 2 + 1e-9)
    assert found.age_s == pytest.approx(position.age_s, abs=0.0005001)
    assert (found.device_ms, found.address) == (position.device_ms, position.address)
    assert (found.flags, found.pair_center) == (position.flags, position.pair_center)
    if position.angle_rad is None:
        assert found.angle_rad is None
    else:
        assert found.angle_rad is not None
        off_rad = math.remainder(found.angle_rad - position.angle_rad, 2 * math.pi)
        assert abs(off_rad) <= math.radians(0.05) + 1e-9


@pytest.mark.parametrize(
    "position",
    [
        Position(POSITION_CM, 0, 400.0, 0.0, 0.0, address=1),
        Position(POSITION_MM, 0, 3e6, 0.0, 0.0, address=1),
        Position(POSITION_MM, 0, 0.0, 0.0, 0.0, address=300),
        Position(POSITION_MM, 0, 0.0, 0.0, 0.0, address=1, age_s=70.0),
        Position(0x0003, 0, 0.0, 0.0, 0.0, address=1),
    ],
)
def test_what_does_not_fit_is_refused(position: Position) -> None:
    with pytest.raises(ValueError, match="packet"):
        encode(position)


def test_a_packet_has_at_most_255_bytes() -> None:
    with pytest.raises(ValueError, match="at most 255"):
        frame(Packet(0x0012, bytes(256)))


@given(
    pieces=st.lists(st.tuples(st.binary(max_size=40), packets()), min_size=1, max_size=6),
    cuts=st.lists(st.integers(1, 60), max_size=40),
)
@settings(max_examples=80)
def test_a_stream_may_be_cut_anywhere(pieces: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    stream = b"".join(noise + packet for noise, packet in pieces)
    decoder = Decoder()
    found: list[Packet] = []
    ends = [*(end for end in accumulate(cuts) if end < len(stream)), len(stream)]
    begin = 0
    for end in ends:
        found += decoder.feed(stream[begin:end])
        begin = end
    assert [frame(packet) for packet in found] == [packet for _, packet in pieces]
    assert decoder.skipped == sum(len(noise) for noise, _ in pieces)


@given(position=positions(), bit=st.integers(0, 8 * len(MM_UNIX) - 1))
@settings(max_examples=60)
def test_a_damaged_frame_is_never_believed(position: Position, bit: int) -> None:
    good = encode(position)
    bit %= 8 * len(good)
    bad = bytearray(good)
    bad[bit // 8] ^= 1 << bit % 8
    found = Decoder().feed(bytes(bad) + MM)
    assert [frame(packet) for packet in found] == [MM]


@given(data=st.lists(st.binary(max_size=300), max_size=10))
@settings(max_examples=60)
def test_no_bytes_raise(data: list[bytes]) -> None:
    decoder = Decoder()
    taken = 0
    for piece in data:
        for packet in decoder.feed(piece):
            taken += len(frame(packet))
            parse(packet)
    total = sum(map(len, data))
    assert 0 <= total - decoder.skipped - taken < MAX_FRAME


def test_noise_costs_at_most_the_frame_behind_it() -> None:
    """The next packet arrives 1/8 s later: waiting for 255 bytes of noise would cost most of a second."""
    assert [frame(packet) for packet in Decoder().feed(b"\xff\x47\x99\x99\xff" + MM)] == [MM]
