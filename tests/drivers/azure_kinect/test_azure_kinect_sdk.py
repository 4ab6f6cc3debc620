"""The Kinect SDK's libraries, its calibrations and its devices, of which none is here."""

from __future__ import annotations

import ctypes
import importlib.metadata
import platform
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises_naming

from drivers.azure_kinect import modes
from drivers.azure_kinect.calibration import FactoryCalibration, lens, matrix
from drivers.azure_kinect.device import Configuration, SdkDevice
from drivers.azure_kinect.nominal_calibration import factory_document
from drivers.azure_kinect.sdk import Sdk, find_libraries, load_sdk
from drivers.azure_kinect.sdk_types import (
    SUCCEEDED,
    TIMED_OUT,
    Calibration,
    ColorControl,
    ColorResolution,
    DepthMode,
    Sensor,
)
from robot_runtime.errors import ConfigError, DeviceFault, DriverMissing

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13) or platform.machine() != "x86_64",
    reason="the Kinect SDK is not packaged for this Python",
)


@pytest.fixture(scope="module")
def factory() -> FactoryCalibration:
    return FactoryCalibration(load_sdk(), factory_document("000000000007"), "test")


def test_without_the_package_the_remedy_is_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with raises_naming(DriverMissing, "pyk4a-bundle") as caught:
        find_libraries()
    assert caught.value.remedy == "pip install 'robot-runtime[azure-kinect]'"


def test_no_device_is_said_so() -> None:
    with raises_naming(DeviceFault, "Azure Kinect", "USB 3") as caught:
        SdkDevice(load_sdk())
    assert "robot-runtime doctor" in caught.value.remedy


@pytest.mark.parametrize(
    ("color", "depth", "rate_hz", "things"),
    [
        ("480p", "nfov", 30, ("color", "'480p'")),
        ("720p", "narrow", 30, ("depth", "'narrow'")),
        ("720p", "nfov", 60, ("rate_hz", 60)),
        ("3072p", "nfov", 30, ("color", "3072p", "30 Hz")),
        ("720p", "wfov", 30, ("depth", "wfov", "30 Hz")),
    ],
)
def test_modes_that_there_are_not_are_refused(color: str, depth: str, rate_hz: int, things: tuple[object, ...]) -> None:
    with raises_naming(ConfigError, *things):
        modes.check(color, depth, rate_hz, "camera.yaml: options")


def test_modes_that_go_together_are_not() -> None:
    modes.check("3072p", "wfov", 15, "here")
    modes.check("720p", "wfov_2x2", 30, "here")


@pytest.mark.parametrize("color", modes.COLOR)
def test_every_color_mode_has_its_size(factory: FactoryCalibration, color: str) -> None:
    found = factory.color_mode(color)
    assert (found.lens.width, found.lens.height) == (modes.COLOR[color].width, modes.COLOR[color].height)


@pytest.mark.parametrize("depth", modes.DEPTH)
def test_every_depth_mode_has_its_size_and_only_narrow_ones_an_outline(factory: FactoryCalibration, depth: str) -> None:
    found = factory.depth_mode(depth)
    assert (found.lens.width, found.lens.height) == (modes.DEPTH[depth].width, modes.DEPTH[depth].height)
    assert bool(found.outline) == depth.startswith("nfov")


def test_the_serial_number_comes_from_the_document(factory: FactoryCalibration) -> None:
    assert factory.serial == factory.of("720p", "nfov").serial == "000000000007"


def test_a_document_without_calibration_is_refused_with_the_sdks_reason() -> None:
    with raises_naming(DeviceFault, "my.json", "cameras"):
        FactoryCalibration(load_sdk(), b'{"CalibrationInformation": {}}', "my.json")


def test_a_document_without_serial_number_is_refused() -> None:
    with raises_naming(DeviceFault, "my.json", "serial number"):
        FactoryCalibration(load_sdk(), factory_document().replace(b"SerialId", b"Serial"), "my.json")


@given(
    point=st.tuples(st.floats(-0.8, 0.8), st.floats(-0.5, 0.5), st.floats(0.6, 4)),
    color=st.sampled_from(["720p", "1536p"]),
    depth=st.sampled_from(["nfov", "wfov_2x2"]),
)
@settings(max_examples=40)
def test_points_fall_on_the_pixels_that_the_sdk_says(point: tuple[float, float, float], color: str, depth: str) -> None:
    sdk = load_sdk()
    found = sdk.calibration(factory_document(), modes.DEPTH[depth].number, modes.COLOR[color].number, "test")
    x, y, z = point
    at = np.array([x * z, y * z, z])
    for lens_of, seen_from in (
        (lens(found.depth_camera_calibration), np.eye(4)),
        (lens(found.color_camera_calibration), matrix(found.extrinsics[Sensor.DEPTH][Sensor.COLOR])),
    ):
        target = Sensor.DEPTH if lens_of.width == modes.DEPTH[depth].width else Sensor.COLOR
        ours = lens_of.project(seen_from[:3, :3] @ at + seen_from[:3, 3])
        theirs, valid = sdk_pixel(found, at, target)
        if valid:
            assert ours == pytest.approx(theirs, abs=0.01)


def sdk_pixel(calibration: Calibration, point_m: Any, target: Sensor) -> tuple[list[float], bool]:
    """``k4a_calibration_3d_to_2d`` from the depth camera, and whether the pixel lies in the image."""
    function = load_sdk().k4a.k4a_calibration_3d_to_2d
    point, pixel, valid = (ctypes.c_float * 3)(*(1000 * point_m)), (ctypes.c_float * 2)(), ctypes.c_int()
    result = function(
        ctypes.byref(calibration), point, int(Sensor.DEPTH), int(target), ctypes.byref(pixel), ctypes.byref(valid)
    )
    assert result == SUCCEEDED
    return list(pixel), bool(valid.value)


class FakeLibrary(SimpleNamespace):
    """The functions of libk4a that a device needs, of a computer with devices of these numbers.

    Attributes:
        closed: numbers of those that were closed. busy: of those that cannot be opened.
    """

    def __init__(self, serials: list[str], busy: set[int] | None = None, captures: int = 0) -> None:
        super().__init__()
        self.serials, self.busy, self.closed, self.captures = serials, busy or set(), [], captures
        self.started: Any = None

    def k4a_device_get_installed_count(self) -> int:
        return len(self.serials)

    def k4a_device_open(self, index: int, handle: Any) -> int:
        handle._obj.value = index + 1
        return 1 if index in self.busy else SUCCEEDED

    def k4a_device_close(self, handle: Any) -> None:
        self.closed.append(self.serials[handle.value - 1])

    def k4a_device_get_serialnum(self, handle: Any, buffer: Any, size: Any) -> int:
        return fill(self.serials[handle.value - 1].encode() + b"\0", buffer, size)

    k4a_device_get_serialnum.argtypes = (None, ctypes.c_char_p, None)  # type: ignore[attr-defined]

    def k4a_device_get_raw_calibration(self, handle: Any, buffer: Any, size: Any) -> int:
        return fill(factory_document(self.serials[handle.value - 1]), buffer, size)

    k4a_device_get_raw_calibration.argtypes = (None, ctypes.c_char_p, None)  # type: ignore[attr-defined]

    def k4a_device_start_cameras(self, handle: Any, configuration: Any) -> int:
        self.started = configuration._obj
        return SUCCEEDED if configuration._obj.depth_mode != DepthMode.WFOV_UNBINNED else 1

    def k4a_device_start_imu(self, handle: Any) -> int:
        return SUCCEEDED

    def k4a_device_stop_imu(self, handle: Any) -> None:
        pass

    def k4a_device_stop_cameras(self, handle: Any) -> None:
        pass

    def k4a_device_set_color_control(self, handle: Any, control: int, mode: int, value: int) -> int:
        return 1 if value == 77_777 else SUCCEEDED

    def k4a_device_get_capture(self, handle: Any, capture: Any, timeout_ms: int) -> int:
        self.captures -= 1
        return TIMED_OUT if self.captures >= 0 else 1

    def k4a_device_get_imu_sample(self, handle: Any, sample: Any, timeout_ms: int) -> int:
        return TIMED_OUT


def fill(data: bytes, buffer: Any, size: Any) -> int:
    """As the SDK tells a text: its size first, when there is no buffer."""
    room, size._obj.value = size._obj.value, len(data)
    if buffer is None or room < len(data):
        return 2
    ctypes.memmove(buffer, data, len(data))
    return SUCCEEDED


def fake_sdk(library: FakeLibrary, last_error: str = "") -> Sdk:
    """An SDK over a fake library; its reasons are this one."""
    sdk = object.__new__(Sdk)
    sdk.k4a = library  # type: ignore[assignment]
    sdk.last_error = lambda: last_error  # type: ignore[method-assign]
    return sdk


def test_the_device_with_the_number_is_opened_and_the_others_are_let_go() -> None:
    library = FakeLibrary(["01", "02", "03"])
    device = SdkDevice(fake_sdk(library), "02")
    assert device.serial == "02"
    assert device.raw_calibration == factory_document("02")
    assert library.closed == ["01"]
    device.close()
    device.close()
    assert library.closed == ["01", "02"]


def test_a_number_that_there_is_not_is_said_with_those_that_there_are() -> None:
    with raises_naming(DeviceFault, "09", "01, 02"):
        SdkDevice(fake_sdk(FakeLibrary(["01", "02"])), "09")


def test_a_device_that_another_program_has_is_said_with_the_sdks_reason() -> None:
    library = FakeLibrary(["01"], busy={0})
    with raises_naming(DeviceFault, "libusb: resource busy") as caught:
        SdkDevice(fake_sdk(library, "libusb: resource busy"))
    assert "udev" in caught.value.remedy


def test_cameras_that_do_not_start_send_to_the_doctor() -> None:
    device = SdkDevice(fake_sdk(FakeLibrary(["01"]), "depth engine: no OpenGL"))
    with raises_naming(DeviceFault, "depth engine: no OpenGL") as caught:
        device.start(Configuration("720p", "wfov", 15, imu=False))
    assert "robot-runtime doctor" in caught.value.remedy


def test_a_device_is_started_in_its_modes_synchronised() -> None:
    library = FakeLibrary(["01"], captures=1)
    device = SdkDevice(fake_sdk(library))
    device.start(Configuration("1536p", "nfov", 15, imu=True))
    assert library.started.color_resolution == ColorResolution.P1536
    assert library.started.depth_mode == DepthMode.NFOV_UNBINNED
    assert library.started.synchronized_images_only
    assert device.next_capture(0.1) is None
    assert device.next_imu() is None


def test_a_device_that_is_unplugged_says_so() -> None:
    device = SdkDevice(fake_sdk(FakeLibrary(["01"])))
    with raises_naming(DeviceFault, "Azure Kinect 01"):
        device.next_capture(0.1)


def test_an_exposure_that_the_device_refuses_is_named() -> None:
    device = SdkDevice(fake_sdk(FakeLibrary(["01"])))
    device.set_control(ColorControl.WHITEBALANCE, None)
    with raises_naming(DeviceFault, "exposure_time_absolute", 77777):
        device.set_control(ColorControl.EXPOSURE_TIME_ABSOLUTE, 77_777)
