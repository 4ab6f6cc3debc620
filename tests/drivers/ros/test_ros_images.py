"""Images and camera descriptions of ROS as arrays: every encoding, holes, units, lenses; nothing here needs ROS."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming

from drivers.ros.camera.messages import DepthImages, color_image, intrinsics
from drivers.ros.connection.errors import DepthUnit
from robot_runtime.errors import DeviceFault

TOPIC = "/camera/image"
MIN_M, MAX_M = 0.28, 10.0


def depth_image(message: Any) -> tuple[np.ndarray, float]:
    return DepthImages(TOPIC, MIN_M, MAX_M).convert(message)


def image(array: np.ndarray, encoding: str, padding: int = 0, big_endian: bool = False) -> Any:
    """A message with ``padding`` extra bytes at the end of each row."""
    if big_endian:
        array = array.astype(array.dtype.newbyteorder(">"))
    rows = [row.tobytes() + b"\xaa" * padding for row in array]
    return SimpleNamespace(
        height=array.shape[0],
        width=array.shape[1],
        encoding=encoding,
        is_bigendian=int(big_endian),
        step=len(rows[0]),
        data=b"".join(rows),
    )


RGB = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
ALPHA = np.full((2, 3, 1), 255, np.uint8)


@pytest.mark.parametrize("padding", [0, 5])
@pytest.mark.parametrize(
    ("encoding", "array"),
    [
        ("rgb8", RGB),
        ("bgr8", RGB[:, :, ::-1]),
        ("8UC3", RGB[:, :, ::-1]),
        ("rgba8", np.concatenate([RGB, ALPHA], axis=2)),
        ("bgra8", np.concatenate([RGB[:, :, ::-1], ALPHA], axis=2)),
        ("8UC4", np.concatenate([RGB[:, :, ::-1], ALPHA], axis=2)),
    ],
)
def test_colour_comes_out_as_rgb_whatever_the_encoding(encoding: str, array: np.ndarray, padding: int) -> None:
    found = color_image(image(array, encoding, padding), TOPIC)
    assert found.dtype == np.uint8
    assert np.array_equal(found, RGB)
    found[0, 0, 0] = 1  # a new array: the message's bytes are read-only


def test_grey_is_repeated() -> None:
    assert np.array_equal(color_image(image(RGB[:, :, 0], "mono8"), TOPIC), np.repeat(RGB[:, :, :1], 3, axis=2))


@pytest.mark.parametrize("encoding", ["yuv422", "16UC1", "", "bayer_rggb8"])
def test_another_encoding_is_refused_by_name(encoding: str) -> None:
    with raises_naming(DeviceFault, TOPIC):
        color_image(image(RGB, encoding), TOPIC)


def test_a_torn_image_is_refused() -> None:
    message = image(RGB, "rgb8")
    message.data = message.data[:-1]
    with raises_naming(DeviceFault, TOPIC, "3x2", "rgb8", "17 bytes"):
        color_image(message, TOPIC)


@pytest.mark.parametrize("big_endian", [False, True])
@given(millimetres=st.lists(st.integers(0, 65535), min_size=4, max_size=4))
def test_integers_are_millimetres(big_endian: bool, millimetres: list[int]) -> None:
    raw = np.array(millimetres, np.uint16).reshape(2, 2)
    try:
        depth_m, unit_m = depth_image(image(raw, "16UC1", 3, big_endian))
    except DepthUnit:
        assert not ((raw >= 280) & (raw <= 10000)).any()
        return
    assert depth_m.dtype == np.float32
    assert unit_m == 0.001
    expected = np.where((raw >= 280) & (raw <= 10000), raw, 0) * np.float32(0.001)
    assert np.array_equal(depth_m, expected.astype(np.float32))


def test_floats_are_metres_and_what_is_not_finite_is_a_hole() -> None:
    raw = np.array([[1.5, np.nan], [np.inf, 0.1], [20.0, -np.inf]], np.float32)
    depth_m, unit_m = depth_image(image(raw, "32FC1"))
    assert unit_m == 0
    assert np.array_equal(depth_m, np.array([[1.5, 0], [0, 0], [0, 0]], np.float32))


def test_metres_called_16uc1_are_found_out() -> None:
    raw = np.full((4, 4), 3, np.uint16)
    with raises_naming(DepthUnit, TOPIC, "16UC1") as caught:
        depth_image(image(raw, "16UC1"))
    assert "16UC1" in caught.value.remedy


def test_millimetres_called_32fc1_are_found_out() -> None:
    with raises_naming(DepthUnit, TOPIC, "32FC1"):
        depth_image(image(np.full((4, 4), 1500, np.float32), "32FC1"))


def test_a_camera_against_a_wall_is_no_fault() -> None:
    depth_m, _ = depth_image(image(np.zeros((4, 4), np.uint16), "16UC1"))
    assert not depth_m.any()
    depth_m, _ = depth_image(image(np.full((4, 4), 150, np.uint16), "16UC1"))
    assert not depth_m.any(), "nearer than the sensor measures, but not metres"


def test_images_without_a_depth_in_range_are_counted_with_their_median() -> None:
    images = DepthImages(TOPIC, MIN_M, MAX_M)
    near, good = image(np.full((4, 4), 150, np.uint16), "16UC1"), image(np.full((4, 4), 1500, np.uint16), "16UC1")
    images.convert(near)
    with raises_naming(DepthUnit, TOPIC, "median is 0.15 m"):
        images.finish()
    images.convert(good)
    assert "1 of 2" in images.finish()
    with raises_naming(DepthUnit, TOPIC, "median is 15 m", "depth_max_m"):
        images.convert(image(np.full((4, 4), 15000, np.uint16), "16UC1"))


def camera_info(**changes: Any) -> Any:
    k = [388.0, 0, 319.5, 0, 388.0, 239.5, 0, 0, 1]
    p = [400.0, 0, 320.5, 0, 0, 400.0, 240.5, 0, 0, 0, 1, 0]
    fields = {"width": 640, "height": 480, "K": k, "P": p, "D": [], "distortion_model": "plumb_bob"}
    return SimpleNamespace(**{**fields, **changes})


def test_the_matrix_that_belongs_to_the_image_is_used() -> None:
    raw, rectified = (intrinsics(camera_info(), TOPIC, r, 1.0) for r in (False, True))
    assert (raw.fx, raw.cx, raw.cy) == (388.0, 319.5, 239.5)
    assert (rectified.fx, rectified.cx, rectified.cy) == (400.0, 320.5, 240.5)


def test_a_lens_is_measured_in_pixels() -> None:
    faint, strong = [1e-5, 0, 0, 0, 0], [0.1, -0.05, 0, 0, 0]
    assert intrinsics(camera_info(D=faint), TOPIC, False, 1.0).fx == 388.0
    with raises_naming(DeviceFault, TOPIC, "px"):
        intrinsics(camera_info(D=strong), TOPIC, False, 1.0)
    assert intrinsics(camera_info(D=strong), TOPIC, True, 1.0).fx == 400.0
    for model in ("equidistant", "fisheye"):
        for coefficients in (strong, []):
            with raises_naming(DeviceFault, TOPIC, model, "px"):
                intrinsics(camera_info(D=coefficients, distortion_model=model), TOPIC, False, 1.0)
    with raises_naming(DeviceFault, TOPIC, "omni_ucm", "plumb_bob"):
        intrinsics(camera_info(distortion_model="omni_ucm"), TOPIC, False, 1.0)
    assert intrinsics(camera_info(distortion_model=""), TOPIC, False, 1.0).fx == 388.0


def test_an_uncalibrated_camera_is_refused() -> None:
    with raises_naming(DeviceFault, TOPIC):
        intrinsics(camera_info(K=[0.0] * 9), TOPIC, False, 1.0)


# --- compressed images ----------------------------------------------------------------------------------------------


def packed(form: str, data: bytes) -> Any:
    return SimpleNamespace(format=form, data=data)


def png(pixels: np.ndarray) -> bytes:
    return bytes(cv2.imencode(".png", pixels)[1])


def test_compressed_color_is_rgb_and_what_is_no_picture_is_named() -> None:
    assert np.array_equal(color_image(packed("rgb8; png compressed bgr8", png(RGB[:, :, ::-1])), TOPIC), RGB)
    with raises_naming(DeviceFault, TOPIC, "h264"):
        color_image(packed("h264", b"\0\0\0\1"), TOPIC)


MILLIMETERS = np.array([[0, 500, 1000], [2000, 4000, 9000]], np.uint16)
METERS = MILLIMETERS.astype(np.float32) / 1000


def test_compressed_depth_has_the_unit_of_its_encoding() -> None:
    for data in (png(MILLIMETERS), bytes(12) + png(MILLIMETERS)):
        form = "16UC1; compressedDepth png" if data[0] == 0 else "16UC1; png compressed "
        found, unit_m = depth_image(packed(form, data))
        assert unit_m == 0.001
        np.testing.assert_allclose(found, METERS)
    a, b = 10100.0, 1 - 1010.0
    inverse = np.where(MILLIMETERS > 0, a / np.maximum(METERS, 1e-3) + b, 0).round().astype(np.uint16)
    found, unit_m = depth_image(packed("32FC1; compressedDepth png", struct.pack("<iff", 0, a, b) + png(inverse)))
    assert unit_m == 0.0
    np.testing.assert_allclose(found, METERS, rtol=0.01)


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("16UC1; jpeg compressed ", bytes(cv2.imencode(".jpg", np.zeros((2, 3), np.uint8))[1])),
        ("16UC1; compressedDepth rvl", bytes(40)),
        ("32FC1; png compressed ", png(MILLIMETERS)),
        ("16UC1; png compressed ", b""),
    ],
)
def test_depth_that_compression_has_changed_is_refused(form: str, data: bytes) -> None:
    with raises_naming(DeviceFault, TOPIC, form, "16 bits"):
        depth_image(packed(form, data))


def test_compressed_depth_in_another_unit_is_refused() -> None:
    with raises_naming(DepthUnit, TOPIC, "meters"):
        depth_image(packed("16UC1; png compressed ", png(MILLIMETERS // 1000)))
