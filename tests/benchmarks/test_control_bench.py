"""Rows of ``bench control``: what they measure, at a small scale."""

from __future__ import annotations

import pytest

from drivers.kobuki.driver import KOBUKI_BASE, KobukiOptions
from robot_runtime.hal import Velocity
from robot_runtime.hal.simulated_motors import MotorOptions
from robot_runtime.safety.guard import STILL
from tests.benchmarks.locobot.decoding import decoding_rows
from tests.benchmarks.locobot.emulated import MeasuringKobuki, PressableBody
from tests.benchmarks.locobot.motion import GYRO, make_emulated_base
from tests.benchmarks.locobot.reactions import contact_rows, slow_contacts
from tests.benchmarks.locobot.stalls import stalled_ms


def no_progress(*_: object) -> None:
    pass


@pytest.mark.slow
@pytest.mark.usefixtures("in_real_time")
def test_every_contact_stops_the_emulated_base() -> None:
    rows = {row.id: row for row in contact_rows(20, 0, no_progress)}
    assert rows["contacts_missed"].value == 0
    assert 0 < (rows["contact_to_zero_p99_ms"].value or 0) <= (rows["contact_to_zero_max_ms"].value or 0)


@pytest.mark.parametrize(("stops_ms", "missed"), [(10, 0), (None, 1)])
def test_a_contact_is_made_in_motion_and_missed_if_the_motion_goes_on(stops_ms: int | None, missed: int) -> None:
    body = PressableBody(MotorOptions())
    device = MeasuringKobuki(body, contacts=1)
    pressed = []
    for ms in range(1000):
        device.velocity = Velocity(0.2, 0.0) if stops_ms is None or ms < stops_ms else STILL
        device.transmit(ms * 1_000_000)
        pressed.append(body.pressed)
    assert any(pressed) is bool(missed)
    assert device.measured.missed == missed


def test_noise_costs_no_frame() -> None:
    rows = {row.id: row for row in decoding_rows(no_progress)}
    assert (rows["resync_frames"].value or 0) <= 1
    assert (rows["frames_per_s_fuzz"].value or 0) > 0


@pytest.mark.slow
def test_motion_by_bytes_in_simulated_time_is_reproducible() -> None:
    poses = []
    for _ in range(2):
        options = KobukiOptions(emulator=GYRO)
        clock, base, body = make_emulated_base(KOBUKI_BASE, options, MotorOptions("kobuki"))
        with base:
            clock.sleep(0.3)
            for _ in range(25):
                base.command(Velocity(0.2, 0.5))
                clock.sleep(0.02)
            poses.append((body.pose, base.state(0.1)))
    assert poses[0] == poses[1]
    assert poses[0][0].x_m > 0


def test_a_slow_contact_is_put_down_to_the_computer_only_where_it_stood_still_meanwhile() -> None:
    measured = {"contact_ms": [3.0, 30.0, 30.0], "contact_ns": [10_000_000, 100_000_000, 500_000_000]}
    nothing: dict[str, list[float]] = {"contact_ms": [], "contact_ns": []}
    stalled = [(80_000_000, 95_000_000)]
    assert stalled_ms(stalled, 70_000_000, 100_000_000) == 15
    assert stalled_ms(stalled, 470_000_000, 500_000_000) == 0
    assert slow_contacts(measured, nothing, stalled) == "2 above 20 ms, 1 of them only by a stall of this computer"
