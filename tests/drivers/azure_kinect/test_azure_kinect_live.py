"""A robot that sees through an Azure Kinect: the emulated device speaks through the SDK's own bytes."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clockwork_simulation import STEP_NS, ClockworkSimulation
from numpy.typing import NDArray
from raising import raises_naming

from drivers.azure_kinect.device import Configuration, KinectDevice
from drivers.azure_kinect.driver import make_camera, make_playback
from drivers.azure_kinect.nominal_calibration import factory_document
from drivers.azure_kinect.sdk import Capture, Image, ImuSample, load_sdk
from drivers.azure_kinect.sdk_types import ColorControl
from drivers.azure_kinect.source import KinectSource
from drivers.azure_kinect.streams import Controls, LiveStream
from drivers.fake.driver import make_robot
from robot_runtime.common.clock import SimulatedClock, SystemClock, ns_to_seconds
from robot_runtime.conformance import CameraConformance
from robot_runtime.errors import ConfigError, DeviceFault, StaleData
from robot_runtime.hal import Robot
from robot_runtime.hal.lens import Lens
from robot_runtime.hal.simulation import CameraMotion, ColorNoise
from robot_runtime.imaging.camera import SourceCamera
from robot_runtime.robots.loader import RobotContext

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13) or platform.machine() != "x86_64",
    reason="the Kinect SDK is not packaged for this Python",
)

OPTIONS: dict[str, object] = {
    "depth": "nfov_2x2",
    "imaging": {"allow_partial_coverage": True, "depth_min_m": 0.2, "depth_max_m": 60.0},
}


class Exact(ColorNoise):
    def expose(
        self,
        rgb: NDArray[np.uint8],
        depth_m: NDArray[np.float32] | None,
        lens: Lens,
        motion: CameraMotion,
        random: np.random.Generator,
    ) -> NDArray[np.uint8]:
        return rgb


class KinectWorld(ClockworkSimulation):
    """Color without noise; depth is a millimeter more than true."""

    def color_noise(self, options: Mapping[str, Any], where: str) -> ColorNoise:
        return Exact()


def robot_with(options: Mapping[str, object] | None = None, simulated: bool = True) -> Robot:
    """A robot without physics whose camera is an Azure Kinect, emulated or real."""
    context = RobotContext(None, None, seed=0)
    robot = make_robot(context, "fake", {"width": 64, "height": 48, "hfov_deg": 60.0}, "test")
    assert isinstance(robot.clock, SimulatedClock)
    if simulated:
        robot = replace(robot, simulation=KinectWorld(robot.clock))
    return replace(robot, camera=make_camera(robot, context, {**OPTIONS, **(options or {})}, "camera.yaml: options"))


def source_of(robot: Robot) -> KinectSource:
    assert isinstance(robot.camera, SourceCamera)
    assert isinstance(robot.camera.source, KinectSource)
    return robot.camera.source


@pytest.mark.slow
class TestAzureKinectCamera(CameraConformance):
    def make_robot(self) -> Robot:
        return robot_with()


@pytest.mark.slow
def test_stamps_are_the_middles_of_exposures_whatever_the_devices_clock_does() -> None:
    robot = robot_with({"emulated": {"drift_ppm": -80, "jitter_s": 0.004, "latency_s": 0.05}, "latency_s": 0.05})
    with robot:
        source, errors_s = source_of(robot), []
        for _ in range(25):
            raw = source.read(robot.clock.now_ns(), 1.0)
            exposed_ns = (int(np.median(raw.depth)) - 1001) * STEP_NS
            errors_s.append(ns_to_seconds(raw.depth_stamp_ns - exposed_ns))
            assert raw.color_stamp_ns == raw.depth_stamp_ns
            assert int(raw.color[360, 640, 0]) == pytest.approx(exposed_ns // STEP_NS % 256, abs=4)  # as JPEG has it
        # Simulated time goes in steps of 5 ms: so coarsely arrivals are noticed.
        assert np.abs(errors_s[5:]).max() < 0.0055
        stream = source.stream
        assert isinstance(stream, LiveStream)
        # Its clock is slower by 80 millionths, which a second of arrivals cannot tell from their jitter.
        assert abs(stream.drift_ppm) <= 200


def test_what_was_exposed_before_is_passed_over() -> None:
    robot = robot_with({"emulated": {"jitter_s": 0.0}})
    with robot:
        source = source_of(robot)
        source.read(0, 1.0)
        after_ns = robot.clock.now_ns() + 400_000_000
        raw = source.read(after_ns, 1.0)
        assert min(raw.color_stamp_ns, raw.depth_stamp_ns) >= after_ns
        with raises_naming(StaleData, "Azure Kinect 000000000000", "older"):
            source.read(robot.clock.now_ns() + 2_000_000_000, 0.3)


def test_pulling_the_plug_ends_in_a_fault() -> None:
    robot = robot_with({"emulated": {"unplugged_after_s": 0.4}})
    with robot:
        source = source_of(robot)
        source.read(0, 1.0)
        robot.clock.sleep(0.5)
        with raises_naming(DeviceFault, "Azure Kinect 000000000000", "cables") as caught:
            source.read(robot.clock.now_ns(), 1.0)
        assert "cable" in caught.value.remedy


def test_a_robot_without_simulation_looks_for_a_real_device() -> None:
    robot = robot_with(simulated=False)
    with raises_naming(DeviceFault, "Azure Kinect", "USB 3"):
        robot.connect()


def test_the_device_tells_its_own_calibration(tmp_path: Path) -> None:
    document = json.loads(factory_document("000000000042"))
    document["CalibrationInformation"]["Cameras"][1]["Rt"]["Translation"][0] = -0.05
    path = tmp_path / "unit.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    robot = robot_with({"emulated": {"calibration": str(path)}})
    source = source_of(robot)
    assert source.calibration.source == "nominal"
    with robot:
        assert (source.calibration.source, source.calibration.serial) == ("factory", "000000000042")
        assert source.calibration.color_from_depth[0, 3] == pytest.approx(-0.05, abs=1e-6)


def test_everything_taken_is_recorded_and_plays(tmp_path: Path) -> None:
    path = tmp_path / "run.mkv"
    robot = robot_with({"record_to": str(path), "imu": True})
    with robot:
        taken = [source_of(robot).read(robot.clock.now_ns(), 1.0) for _ in range(4)]
        felt = source_of(robot).take_imu()
        stream = source_of(robot).stream
        assert [stream.to_clock_ns(sample.acceleration_us) for sample in felt] == pytest.approx(
            [raw.depth_stamp_ns for raw in taken], abs=5_500_000
        )
    assert len(felt) == 4
    # It stands upright: gravity pushes it up, which is what an accelerometer feels.
    assert np.linalg.norm(felt[0].acceleration_m_s2) == pytest.approx(9.81, abs=1e-3)
    playing = robot_with()
    camera = make_playback(
        playing,
        RobotContext(None, None, 0),
        {"path": str(path), "real_time": False, "imaging": OPTIONS["imaging"]},
        "x",
    )
    playing = replace(playing, camera=camera)
    with playing:
        assert source_of(playing).color_mode.name == "720p"
        for raw in taken:
            played = source_of(playing).read(0, 1.0)
            assert np.array_equal(played.color, raw.color)
            assert np.array_equal(played.depth, raw.depth)
        assert [sample.acceleration_us for sample in source_of(playing).take_imu()] == [
            sample.acceleration_us for sample in felt
        ]
    with raises_naming(ConfigError, "record_to", "run.mkv"):
        robot_with({"record_to": str(path)})


@pytest.mark.parametrize(
    ("options", "things"),
    [
        ({"color": "480p"}, ("color", "'480p'")),
        ({"rate_hz": 30, "exposure_us": 40_000}, ("exposure_us", 40000, "30 Hz")),
        ({"white_balance_k": 2555}, ("white_balance_k",)),
        ({"emulated": {"latency": 1}}, ("latency",)),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], things: tuple[object, ...]) -> None:
    with raises_naming(ConfigError, *things):
        robot_with(options)


def test_an_emulated_units_file_that_is_missing_is_named(tmp_path: Path) -> None:
    robot = robot_with({"emulated": {"calibration": str(tmp_path / "none.json")}})
    with raises_naming(ConfigError, "none.json"):
        robot.connect()


class ScriptedDevice(KinectDevice):
    """Delivers what it is given."""

    def __init__(self, captures: list[Capture | None]) -> None:
        self.serial, self.raw_calibration, self.captures = "000000000009", factory_document("000000000009"), captures
        self.closed = False
        self.done: list[object] = []

    def start(self, configuration: Configuration) -> None:
        self.done.append(configuration)

    def set_control(self, control: ColorControl, value: int | None) -> None:
        self.done.append((control, value))

    def next_capture(self, timeout_s: float) -> Capture | None:
        return self.captures.pop(0) if self.captures else None

    def next_imu(self) -> ImuSample | None:
        return None

    def close(self) -> None:
        self.closed = True


def scripted(
    device: ScriptedDevice, warm_up: int = 0, exposure_us: int | None = None, white_balance_k: int | None = None
) -> KinectSource:
    """A source of what a device delivers, on the host's clock."""
    sdk, clock = load_sdk(), SystemClock()
    controls = Controls(exposure_us, white_balance_k, warm_up, latency_s=0.05)
    configuration = Configuration("720p", "nfov_2x2", 30, imu=False)
    return KinectSource(sdk, clock, LiveStream(sdk, clock, configuration, controls, lambda: device))


@pytest.mark.parametrize(("exposure_us", "white_balance_k"), [(4000, 4500), (None, None)])
def test_exposure_and_white_balance_reach_the_device_before_it_starts(
    exposure_us: int | None, white_balance_k: int | None
) -> None:
    device = ScriptedDevice([])
    with scripted(device, exposure_us=exposure_us, white_balance_k=white_balance_k):
        pass
    exposure, white_balance, started = device.done
    # Both are said even where they are automatic: the device remembers what the program before wanted.
    assert exposure == (ColorControl.EXPOSURE_TIME_ABSOLUTE, exposure_us)
    assert white_balance == (ColorControl.WHITEBALANCE, white_balance_k)
    assert isinstance(started, Configuration)


def test_a_device_that_delivers_nothing_is_not_waited_for_long() -> None:
    device = ScriptedDevice([])
    with raises_naming(DeviceFault, "Azure Kinect 000000000009", "3 s"):
        scripted(device, warm_up=2).connect()
    assert device.closed


def test_arrivals_that_the_sdk_has_stamped_count_from_their_stamps() -> None:
    arrived_ns = SystemClock().now_ns() - 400_000_000
    depth = Image(np.ones((288, 320), np.uint16), 5_000_000, arrived_ns)
    color = Image(np.zeros(10, np.uint8), 5_001_000, arrived_ns)
    device = ScriptedDevice([Capture(color, depth, size=(1280, 720))])
    with scripted(device, warm_up=0) as source:
        stamped = source.stream.next(0, 0.1)
        assert stamped is not None
        assert stamped.depth_ns == pytest.approx(arrived_ns - 50_000_000, abs=5_000_000)
        assert stamped.color_ns - stamped.depth_ns == 1_000_000
