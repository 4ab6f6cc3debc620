"""Frames of a Kobuki: worked bytes, round trips, and every way in which a serial line spoils them."""

from __future__ import annotations

import math
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.kobuki import protocol
from drivers.kobuki.protocol import (
    FIRMWARE,
    HARDWARE,
    LED_GREEN,
    SEPARATION_M,
    SERIAL_NUMBER,
    SOUND_BUTTON,
    BaseControl,
    Basic,
    CliffReadings,
    ControllerInfo,
    Current,
    Decoder,
    DockInfrared,
    Feedback,
    FirmwareVersion,
    GeneralInput,
    GeneralOutput,
    GetGain,
    HardwareVersion,
    Inertia,
    RawGyro,
    RequestExtra,
    SetGain,
    Sound,
    SoundSequence,
    UniqueId,
    Version,
    base_control,
    battery_fraction,
    difference,
    encode,
    leds,
    tone,
    wheel_speeds,
)

WORKED = {
    "aa5506010 4c8000000cb": BaseControl(200, 0),
    "aa550601043900 01003b": BaseControl(57, 1),
    "aa5506010400000000 03": BaseControl(0, 0),
    "aa550601043b01c800f1": BaseControl(315, 200),
    "aa55060104c5fe38ffff": BaseControl(-315, -200),
    "aa550601046400 9cff04": BaseControl(100, -100),
    "aa5504 09020b0004": RequestExtra(HARDWARE | FIRMWARE | SERIAL_NUMBER),
    "aa55040c02f002f8": GeneralOutput(0x02F0),
    "aa550304010305": SoundSequence(SOUND_BUTTON),
    "aa55030e01000c": GetGain(),
    "aa550f0d0d01a086010064000000d00700009a": SetGain(1, 100_000, 100, 2000),
}
FEEDBACK = bytes.fromhex("aa5511010fe80302000 0faff0a000c0c0000a3005a".replace(" ", ""))

U8, U16, U32 = st.integers(0, 255), st.integers(0, 65535), st.integers(0, 2**32 - 1)
I8, I16 = st.integers(-128, 127), st.integers(-32768, 32767)


def feedback() -> st.SearchStrategy[Feedback]:
    version = st.builds(Version, U8, U8, U8)
    samples = st.lists(st.tuples(I16, I16, I16), min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Basic, U16, U8, U8, U8, U16, U16, I8, I8, U8, U8, U8, U8),
        st.builds(DockInfrared, U8, U8, U8),
        st.builds(Inertia, I16, I16),
        st.builds(CliffReadings, U16, U16, U16),
        st.builds(Current, U8, U8),
        st.builds(HardwareVersion, version),
        st.builds(FirmwareVersion, version),
        st.builds(RawGyro, U8, samples),
        st.builds(GeneralInput, U16, st.tuples(U16, U16, U16, U16)),
        st.builds(UniqueId, st.tuples(U32, U32, U32)),
        st.builds(ControllerInfo, U8, U32, U32, U32),
    )


def commands() -> st.SearchStrategy[protocol.Command]:
    return st.one_of(
        st.builds(BaseControl, I16, I16),
        st.builds(Sound, U16, U8),
        st.builds(SoundSequence, U8),
        st.builds(RequestExtra, U16),
        st.builds(GeneralOutput, U16),
        st.builds(SetGain, U8, U32, U32, U32),
        st.builds(GetGain, U8),
    )


@pytest.mark.parametrize(("text", "command"), WORKED.items())
def test_worked_bytes_of_commands(text: str, command: protocol.Command) -> None:
    data = bytes.fromhex(text.replace(" ", ""))
    assert encode(command) == data
    assert Decoder(from_base=False).feed(data) == [[command]]


def test_worked_bytes_of_messages() -> None:
    basic = Basic(1000, bumper=2, left_encoder=65530, right_encoder=10, left_pwm=12, right_pwm=12, battery_dv=163)
    assert Decoder().feed(FEEDBACK) == [[basic]]
    assert encode(basic) == FEEDBACK


def test_a_normal_frame_has_81_bytes() -> None:
    sample = (0, 0, 0)
    parts: list[Feedback] = [Basic(0), DockInfrared(0, 0, 0), Inertia(0, 0), CliffReadings(0, 0, 0), Current(0, 0)]
    frame = encode(*parts, RawGyro(0, (sample, sample)), GeneralInput(0, (0, 0, 0, 0)))
    assert len(frame) == 81


@given(parts=st.lists(feedback(), min_size=1, max_size=6))
@settings(max_examples=80)
def test_messages_come_back(parts: list[Feedback]) -> None:
    assert Decoder().feed(encode(*parts)) == [parts]


@given(parts=st.lists(commands(), min_size=1, max_size=4))
@settings(max_examples=60)
def test_commands_come_back(parts: list[protocol.Command]) -> None:
    assert Decoder(from_base=False).feed(encode(*parts)) == [parts]


@given(frames=st.lists(feedback().map(encode), max_size=6), cuts=st.lists(st.integers(0, 40), max_size=30))
@settings(max_examples=60)
def test_a_stream_may_be_cut_anywhere(frames: list[bytes], cuts: list[int]) -> None:
    stream, decoder = b"".join(frames), Decoder()
    ends = [min(at, len(stream)) for at in accumulate(cuts)] + [len(stream)]
    found = [parts for begin, end in zip([0, *ends], ends, strict=False) for parts in decoder.feed(stream[begin:end])]
    assert found == Decoder().feed(stream)
    assert len(found) == len(frames)


@given(noise=st.binary(max_size=60), parts=st.lists(feedback(), min_size=1, max_size=3))
@settings(max_examples=100)
def test_noise_costs_at_most_the_frame_behind_it(noise: bytes, parts: list[Feedback]) -> None:
    frame = encode(*parts)
    found = Decoder().feed(noise + frame + frame + frame)
    assert found[-2:] == [parts, parts]


@given(data=st.binary(max_size=400), from_base=st.booleans())
@settings(max_examples=150)
def test_no_bytes_raise(data: bytes, from_base: bool) -> None:
    decoder = Decoder(from_base)
    decoder.feed(data)
    assert 0 <= decoder.skipped <= len(data)


@given(parts=st.lists(feedback(), min_size=1, max_size=3), at=st.integers(0, 10**6), bit=st.integers(0, 7))
@settings(max_examples=80)
def test_a_damaged_frame_is_never_believed(parts: list[Feedback], at: int, bit: int) -> None:
    frame = bytearray(encode(*parts))
    frame[at % len(frame)] ^= 1 << bit
    assert Decoder().feed(bytes(frame)) == []


def test_unknown_sub_payloads_are_skipped() -> None:
    body = bytes([0x77, 2, 1, 2]) + encode(Inertia(5, 6))[3:-1]
    frame = protocol.SYNC + bytes([len(body)]) + body
    assert Decoder().feed(frame + bytes([protocol.checksum(frame[2:])])) == [[Inertia(5, 6)]]


@pytest.mark.parametrize(
    ("number", "version"),
    [(123, "1.0.0"), (10100, "1.1.0"), (111, "1.1.1"), (104, "1.0.4"), (112, "1.1.2"), (10200, "1.2.0")],
)
def test_old_firmware_states_its_version_in_two_bytes(number: int, version: str) -> None:
    body = bytes([0x0B, 2]) + number.to_bytes(2, "little")
    frame = protocol.SYNC + bytes([len(body)]) + body
    ((found,),) = Decoder().feed(frame + bytes([protocol.checksum(frame[2:])]))
    assert isinstance(found, FirmwareVersion)
    assert str(found.version) == version


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        encode(BaseControl(40_000, 0))


# --- motion ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("linear_m_s", "angular_rad_s", "command"),
    [
        (0.2, 0.0, (200, 0)),
        (0.0, 0.5, (57, 1)),
        (0.0, -0.5, (-57, 1)),
        (0.2, 1.0, (315, 200)),
        (-0.2, 1.0, (-315, -200)),
        (0.5, 0.01, (501, 32767)),
        (0.0, 0.0, (0, 0)),
        (0.0015, -1.0, (-115, 1)),
        (100.0, 0.0, (32767, 0)),
        (0.0, 1e6, (32767, 1)),
    ],
)
def test_velocities_become_speed_and_radius(linear_m_s: float, angular_rad_s: float, command: tuple[int, int]) -> None:
    assert base_control(linear_m_s, angular_rad_s) == command


@given(st.floats(-0.7, 0.7), st.floats(-math.pi, math.pi))
@settings(max_examples=200)
def test_the_wheels_do_what_was_asked_within_the_resolution(linear_m_s: float, angular_rad_s: float) -> None:
    left_m_s, right_m_s = wheel_speeds(base_control(linear_m_s, angular_rad_s))
    driven_m_s, turned_rad_s = (left_m_s + right_m_s) / 2, (right_m_s - left_m_s) / SEPARATION_M
    if abs(angular_rad_s) < 1e-4:
        assert (driven_m_s, turned_rad_s) == (pytest.approx(linear_m_s, abs=0.0011), 0)
        return
    # The radius is in millimeters, and saturates: the smallest turn at a speed is the speed over 32.9 m.
    least_rad_s = abs(linear_m_s) / 32.7
    radius_share = 0.0 if abs(linear_m_s) < 0.002 else min(1.0, abs(0.0011 * angular_rad_s / linear_m_s))
    allowed = 0.0025 + radius_share * (abs(angular_rad_s) * SEPARATION_M + abs(linear_m_s)) + least_rad_s * SEPARATION_M
    assert driven_m_s == pytest.approx(linear_m_s, abs=allowed)
    assert turned_rad_s == pytest.approx(angular_rad_s, abs=2 * allowed / SEPARATION_M)


@given(st.integers(0, 65535), st.integers(-32768, 32767))
def test_counters_wrap_around_in_both_directions(before: int, change: int) -> None:
    """libcreate counts a step back over zero as one of 65535 forward."""
    assert difference((before + change) % 65536, before) == change


def test_lights_leave_the_supplies_of_camera_and_arm_on() -> None:
    assert leds(LED_GREEN, 0) == GeneralOutput(0x02F0)
    assert all(leds(left, right).word & 0xF0 == 0xF0 for left in range(4) for right in range(4))


def test_a_tone_has_its_frequency() -> None:
    assert tone(440.0, 200) == Sound(826, 200)


@pytest.mark.parametrize(("volts", "fraction"), [(17.0, 1.0), (16.5, 1.0), (13.2, 0.05), (12.0, 0.0)])
def test_charge_follows_the_vendors_rule(volts: float, fraction: float) -> None:
    assert battery_fraction(volts) == pytest.approx(fraction)
