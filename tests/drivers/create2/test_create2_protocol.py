"""Open Interface of a Create 2: worked bytes, round trips, and every way in which a serial line spoils them."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.create2.protocol import (
    STREAMED,
    Command,
    CommandParser,
    Decoder,
    Opcode,
    Packet,
    difference,
    drive_direct,
    encode_stream,
    stream,
    wheel_speeds,
)

BYTES = [*range(7, 19), 21, 32, *range(34, 39), 45, 52, 53, 58]
UNSIGNED = [22, *range(25, 32), 33, *range(46, 52)]
SIGNED = [19, 20, 23, *range(39, 45), *range(54, 58)]


def values() -> st.SearchStrategy[dict[int, int]]:
    packet = st.one_of(
        st.tuples(st.sampled_from(BYTES), st.integers(0, 255)),
        st.tuples(st.sampled_from(UNSIGNED), st.integers(0, 65535)),
        st.tuples(st.sampled_from(SIGNED), st.integers(-32768, 32767)),
        st.tuples(st.just(24), st.integers(-128, 127)),
    )
    return st.lists(packet, min_size=1, max_size=20, unique_by=lambda item: item[0]).map(dict)


def commands() -> st.SearchStrategy[Command]:
    wheel = st.floats(-0.6, 0.6)
    return st.one_of(
        st.sampled_from([Opcode.START, Opcode.SAFE, Opcode.FULL, Opcode.STOP, Opcode.DOCK]).map(Command),
        st.builds(drive_direct, wheel, wheel),
        st.lists(st.sampled_from(BYTES), max_size=20).map(stream),
        st.builds(Command, st.just(Opcode.DIGITS), st.binary(min_size=4, max_size=4)),
        st.just(Command(Opcode.SONG, bytes([0, 2, 60, 16, 62, 16]))),
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("13051d0219 0d00a3", {29: 537, 13: 0}),  # the vendor's text says 549, which mixes hexadecimal and decimal
        ("13080700 2b12342cfff052", {7: 0, 43: 0x1234, 44: -16}),
    ],
)
def test_worked_bytes_of_messages(text: str, found: dict[int, int]) -> None:
    data = bytes.fromhex(text.replace(" ", ""))
    assert Decoder().feed(data) == [found]
    assert encode_stream(found) == data


def test_worked_bytes_of_a_command() -> None:
    """The right wheel comes first."""
    command = drive_direct(left_m_s=-0.2, right_m_s=0.2)
    assert command.encoded == bytes.fromhex("9100c8ff38")
    assert wheel_speeds(command) == (-0.2, 0.2)


@given(values())
@settings(max_examples=80)
def test_messages_come_back(found: dict[int, int]) -> None:
    assert Decoder().feed(encode_stream(found)) == [found]


@pytest.mark.slow
@given(frames=st.lists(values().map(encode_stream), max_size=5), cuts=st.lists(st.integers(0, 40), max_size=20))
@settings(max_examples=60)
def test_a_stream_may_be_cut_anywhere(frames: list[bytes], cuts: list[int]) -> None:
    data, decoder = b"".join(frames), Decoder()
    ends = [min(at, len(data)) for at in accumulate(cuts)] + [len(data)]
    found = [frame for begin, end in zip([0, *ends], ends, strict=False) for frame in decoder.feed(data[begin:end])]
    assert found == Decoder().feed(data)
    assert len(found) == len(frames)


FULL = {packet: index for index, packet in enumerate(STREAMED)}


@given(noise=st.binary(max_size=60))
@settings(max_examples=100)
def test_noise_costs_at_most_the_frame_behind_it(noise: bytes) -> None:
    found = Decoder().feed(noise + 3 * encode_stream(FULL))
    assert found[-2:] == [FULL, FULL]


@given(data=st.binary(max_size=300))
@settings(max_examples=100)
def test_no_bytes_raise(data: bytes) -> None:
    decoder = Decoder()
    decoder.feed(data)
    assert 0 <= decoder.skipped <= len(data)
    CommandParser().feed(data)


@given(at=st.integers(0, 10**6), bit=st.integers(0, 7))
@settings(max_examples=80)
def test_a_damaged_frame_is_never_believed(at: int, bit: int) -> None:
    frame = bytearray(encode_stream(FULL))
    frame[at % len(frame)] ^= 1 << bit
    assert FULL not in Decoder().feed(bytes(frame))


def test_a_period_has_room_for_what_is_streamed() -> None:
    assert len(encode_stream(FULL)) <= 172


def test_what_does_not_fit_is_refused() -> None:
    for wrong in ({7: 256}, {99: 0}, {43: 40_000}):
        with pytest.raises(ValueError, match="does not fit"):
            encode_stream(wrong)


@given(st.lists(commands(), max_size=10), st.integers(1, 7))
@settings(max_examples=80)
def test_commands_come_back(sent: list[Command], piece: int) -> None:
    data, parser = b"".join(command.encoded for command in sent), CommandParser()
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    assert [command for part in pieces for command in parser.feed(part)] == sent


@given(st.floats(-2, 2), st.floats(-2, 2))
def test_speeds_saturate_and_are_exact_to_a_millimeter_per_second(left_m_s: float, right_m_s: float) -> None:
    found = wheel_speeds(drive_direct(left_m_s, right_m_s))
    wanted = tuple(max(-0.5, min(0.5, speed)) for speed in (left_m_s, right_m_s))
    assert found == pytest.approx(wanted, abs=0.0005001)


@given(st.integers(-32768, 32767), st.integers(-32768, 32767))
def test_libcreate_wrap_encoders_wrap_around_in_both_directions(before: int, change: int) -> None:
    """libcreate takes them for unsigned, and counts a step back over zero as 65535 forward."""
    after = (before + change + 32768) % 65536 - 32768
    assert difference(after, before) == change


def test_encoders_are_signed() -> None:
    assert Decoder().feed(encode_stream({Packet.LEFT_ENCODER: -1})) == [{Packet.LEFT_ENCODER: -1}]
