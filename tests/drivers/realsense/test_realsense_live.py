"""A live RealSense, emulated by the SDK's own software device: pairs, stamps, modes, settings, and what goes wrong."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from clockwork_simulation import ClockworkSimulation, exposed_ns, settled
from raising import raises_naming

from drivers.realsense import sdk
from drivers.realsense.bus import find_device
from drivers.realsense.emulator import Blind, EmulatedD435, EmulatedOptions, Frozen, LostColor, Silent, Unplugged
from drivers.realsense.live import LiveSource
from drivers.realsense.options import ColorOptions, DepthOptions, StreamOptions
from drivers.realsense.sdk import rs
from drivers.realsense.software_device import SERIAL, unit_color_from_depth, unit_lens
from robot_runtime.common import config
from robot_runtime.common.clock import seconds_to_ns
from robot_runtime.errors import ConfigError, DeviceFault, NotConnected, StaleData, UnpairedImages

OPTIONS = StreamOptions(color="640x360", depth="424x240", latency_s=0.03)


def plug(options: StreamOptions = OPTIONS, emulated: EmulatedOptions | None = None) -> LiveSource:
    """A source on an emulated device in a world that tells the time."""
    simulation = ClockworkSimulation()
    bus = EmulatedD435(
        simulation,
        options.color,
        options.depth,
        options.rate_hz,
        EmulatedOptions() if emulated is None else emulated,
        "camera.yaml: options",
    )
    return LiveSource(simulation.clock, options, bus, "camera.yaml: options")


def clock_of(source: LiveSource):  # type: ignore[no-untyped-def]
    return source._clock


def test_a_pair_is_of_one_exposure_after_the_asked_instant_and_owns_its_memory() -> None:
    with plug() as source:
        clock = clock_of(source)
        kept = []
        for pause_s in (0.0, 0.4, 0.013, 2.0):
            asked_ns = settled(clock, pause_s)
            raw = source.read(asked_ns, 1.0)
            assert raw.color.shape == (360, 640, 3)
            assert raw.color.dtype == np.uint8
            assert raw.depth.shape == (240, 424)
            assert raw.depth.dtype == np.uint16
            assert exposed_ns(raw.depth) >= asked_ns
            assert raw.color[0, 0, 0] == exposed_ns(raw.depth) // 5_000_000 % 256
            assert np.array_equal(raw.color[7, :, 1], np.arange(640) % 256)
            assert abs(raw.color_stamp_ns - exposed_ns(raw.depth)) <= seconds_to_ns(0.005)
            assert raw.color_stamp_ns == raw.depth_stamp_ns
            kept.append((raw, raw.depth.copy(), raw.color.copy()))
        assert all(np.array_equal(raw.depth, depth) and np.array_equal(raw.color, color) for raw, depth, color in kept)


def test_what_is_not_waited_for_is_not_drawn() -> None:
    options = replace(OPTIONS, rate_hz=15)
    simulation = ClockworkSimulation()
    bus = EmulatedD435(simulation, options.color, options.depth, options.rate_hz, EmulatedOptions(), "test")
    with LiveSource(simulation.clock, options, bus, "test") as source:
        source.read(settled(simulation.clock, 0.0), 1.0)
        drawn = len(simulation.exposures_ns)
        settled(simulation.clock, 10.0)
        assert len(simulation.exposures_ns) == drawn
        source.read(settled(simulation.clock, 0.0), 1.0)
        assert len(simulation.exposures_ns) <= drawn + 2


def test_unknown_latency_makes_stamps_late_by_it() -> None:
    with plug(replace(OPTIONS, latency_s=0.0), EmulatedOptions(latency_s=0.1, drift_ppm=-80)) as source:
        clock = clock_of(source)
        raw = source.read(settled(clock, 0.5), 1.0)
        assert raw.depth_stamp_ns - exposed_ns(raw.depth) == pytest.approx(100e6, abs=5.1e6)


def test_drift_of_the_devices_clock_does_not_add_up() -> None:
    with plug(OPTIONS, EmulatedOptions(drift_ppm=200)) as source:
        clock = clock_of(source)
        for _ in range(10):
            raw = source.read(settled(clock, 4.0), 1.0)
            # 8 ms in all if nothing were done about it; arrivals are seen at steps of 5 ms.
            assert abs(raw.depth_stamp_ns - exposed_ns(raw.depth)) <= seconds_to_ns(0.0055)


def test_the_device_tells_its_calibration() -> None:
    source = plug()
    assert source.calibration.source == "nominal"
    assert source.depth_mode.min_m == pytest.approx(0.105)
    with source:
        rig = source.calibration
        assert (rig.source, rig.serial, rig.depth_unit_m) == ("factory", SERIAL, 0.001)
        assert (rig.color.fx, rig.color.cx) == pytest.approx((unit_lens("color", "640x360").fx, rig.color.cx))
        assert rig.depth.cy == pytest.approx(unit_lens("depth", "424x240").cy)
        assert rig.color_from_depth == pytest.approx(unit_color_from_depth(), abs=1e-6)
        assert source.name == f"Intel RealSense D435 {SERIAL}"
        assert {mode.name for mode in source.modes if mode.sensor == "depth"} >= {"1280x720", "848x480", "424x240"}
        assert source.color_mode.lens == rig.color


def test_without_a_connection_nothing_is_read() -> None:
    source = plug()
    with raises_naming(NotConnected, "RealSense"):
        source.read(0, 1.0)
    source.connect()
    source.connect()
    source.close()
    source.close()
    with pytest.raises(NotConnected):
        source.read(0, 1.0)
    with source:
        assert source.read(0, 1.0).depth.any()


@pytest.mark.parametrize(
    ("change", "message", "remedy"),
    [
        ({"serial": "123"}, f"123: is not connected; {SERIAL} is", "'serial'"),
        ({"color": "800x600"}, "no color mode '800x600' on USB 3.2", "1280x720"),
        ({"depth": "1920x1080"}, "no depth mode '1920x1080'", "848x480"),
        ({"rate_hz": 90}, "cannot run color 640x360 at 90 Hz", "6, 15, 30, 60"),
        ({"color": "1920x1080", "depth": "1280x720", "rate_hz": 60}, "cannot run color 1920x1080 at 60", "6, 15, 30"),
    ],
)
def test_what_the_device_has_not_is_refused_with_what_it_has(change, message, remedy) -> None:  # type: ignore[no-untyped-def]
    simulation = ClockworkSimulation()
    bus = EmulatedD435(simulation, "640x360", "424x240", 30, EmulatedOptions(), "test")
    source = LiveSource(simulation.clock, replace(OPTIONS, **change), bus, "test")
    with pytest.raises(DeviceFault) as refusal:
        source.connect()
    assert message in refusal.value.message
    assert remedy in refusal.value.remedy


def test_no_device_and_several_devices_are_told_apart() -> None:
    def device(serial: str) -> SimpleNamespace:
        return SimpleNamespace(get_info=lambda field: serial)

    with raises_naming(DeviceFault, "RealSense", "udev"):
        find_device(SimpleNamespace(query_devices=list), "")
    two = SimpleNamespace(query_devices=lambda: [device("A1"), device("B2")])
    with raises_naming(DeviceFault, "A1, B2"):
        find_device(two, "")
    assert find_device(two, "B2").get_info(None) == "B2"


def test_a_device_that_somebody_else_has_is_busy_until_they_leave() -> None:
    simulation = ClockworkSimulation()
    bus = EmulatedD435(simulation, OPTIONS.color, OPTIONS.depth, OPTIONS.rate_hz, EmulatedOptions(), "test")
    first, second = (LiveSource(simulation.clock, OPTIONS, bus, "test") for _ in range(2))
    with first, raises_naming(DeviceFault, "realsense-viewer"):
        second.connect()
    with second:
        assert second.read(0, 1.0).depth.any()


@pytest.mark.parametrize(
    ("fault", "error", "things"),
    [
        (Unplugged(1.0), DeviceFault, ("D435", "plug it in again")),
        (Silent(1.0), StaleData, ("D435", "cable")),
        (LostColor(1.0), UnpairedImages, ("D435", "color and depth")),
    ],
)
def test_a_fault_in_mid_capture_says_which(fault, error, things) -> None:  # type: ignore[no-untyped-def]
    with plug(OPTIONS, EmulatedOptions(faults=(fault,))) as source:
        clock = clock_of(source)
        assert source.read(clock.now_ns(), 0.5).depth.any()
        clock.sleep_until(seconds_to_ns(1.2))
        before_ns = clock.now_ns()
        with raises_naming(error, *things):
            source.read(before_ns, 0.5)
        assert clock.now_ns() - before_ns <= seconds_to_ns(0.51)


def test_a_device_that_comes_back_is_read_again() -> None:
    with plug(OPTIONS, EmulatedOptions(faults=(Unplugged(1.0, 2.0),))) as source:
        clock = clock_of(source)
        clock.sleep_until(seconds_to_ns(1.1))
        with raises_naming(DeviceFault, "plug it in again"):
            source.read(clock.now_ns(), 0.3)
        source.close()
        clock.sleep_until(seconds_to_ns(2.1))
        source.connect()
        asked_ns = clock.now_ns()
        assert exposed_ns(source.read(asked_ns, 0.5).depth) >= asked_ns


def test_silence_from_the_start_is_a_fault_of_the_connection() -> None:
    source = plug(replace(OPTIONS, start_timeout_s=0.4), EmulatedOptions(faults=(Silent(),)))
    with raises_naming(StaleData, "cable"):
        source.connect()
    with pytest.raises(NotConnected):
        source.read(0, 0.1)


def test_blind_and_frozen_images_are_delivered_as_they_are() -> None:
    with plug(OPTIONS, EmulatedOptions(faults=(Blind(1.0, 2.0), Frozen(2.0)))) as source:
        clock = clock_of(source)
        clock.sleep_until(seconds_to_ns(1.2))
        assert not source.read(clock.now_ns(), 0.5).depth.any()
        clock.sleep_until(seconds_to_ns(2.2))
        first = source.read(clock.now_ns(), 0.5)
        second = source.read(first.color_stamp_ns + 1, 0.5)
        assert np.array_equal(first.color, second.color)
        assert second.color_stamp_ns > first.color_stamp_ns


def test_settings_reach_the_sensors() -> None:
    options = replace(
        OPTIONS,
        color_sensor=ColorOptions(exposure_us=8000, gain=32, white_balance_k=4000),
        depth_sensor=DepthOptions(preset="high_accuracy", laser=False, laser_power_mw=300, exposure_us=5000),
    )
    simulation = ClockworkSimulation()
    bus = EmulatedD435(simulation, options.color, options.depth, options.rate_hz, EmulatedOptions(), "test")
    with LiveSource(simulation.clock, options, bus, "test"):
        depth, color = bus.context.query_devices()[0].query_sensors()
        assert color.get_option(rs.option.exposure) == 80  # of 100 microseconds
        assert color.get_option(rs.option.enable_auto_exposure) == 0
        assert color.get_option(rs.option.gain) == 32
        assert color.get_option(rs.option.white_balance) == 4000
        assert depth.get_option(rs.option.visual_preset) == int(rs.rs400_visual_preset.high_accuracy)
        assert depth.get_option(rs.option.emitter_enabled) == 0
        assert depth.get_option(rs.option.laser_power) == 300
        assert depth.get_option(rs.option.exposure) == 5000


def test_a_setting_beyond_the_device_names_field_and_reach() -> None:
    source = plug(replace(OPTIONS, depth_sensor=DepthOptions(laser_power_mw=500)))
    with raises_naming(ConfigError, "camera.yaml: options: field 'depth_sensor.laser_power_mw'", 500) as refusal:
        source.connect()
    assert "from 0 to 360" in refusal.value.remedy


@pytest.mark.parametrize(
    ("options", "thing"),
    [
        ({"color": "wide"}, "1280x720"),
        ({"repeat": True}, "'repeat'"),
        ({"record_to": "run.bag"}, ".db3"),
        ({"filters": {"decimation": 1}}, "filters.decimation"),
        ({"filters": {"threshold": {"min_m": 2.0, "max_m": 1.0}}}, "max_m"),
        ({"depth_sensor": {"preset": "best"}}, "depth_sensor.preset"),
        ({"latency_s": float("nan")}, "latency_s"),
        ({"exposure": 3}, "exposure"),
    ],
)
def test_bad_options_name_their_field(options, thing) -> None:  # type: ignore[no-untyped-def]
    with raises_naming(ConfigError, thing):
        config.parse(options, StreamOptions, "camera.yaml")


def test_the_packaged_usb_library_loads_where_the_system_has_none() -> None:
    assert "libusb" in sdk.load_packaged_libusb()


def test_noise_is_the_simulators() -> None:
    exact, noisy = plug(), plug(OPTIONS, EmulatedOptions(depth_noise={"model": "one count more"}))
    with exact, noisy:
        assert np.array_equal(exact.read(0, 1.0).depth + 1, noisy.read(0, 1.0).depth)
