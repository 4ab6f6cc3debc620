"""Preprocessing is the training frameworks', to the bit: torch and Pillow say what is right."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from raising import raises_naming

from robot_runtime.common import config
from robot_runtime.errors import ConfigError, PolicyError
from robot_runtime.imaging.kernels import pil_bilinear, torch_antialias, torch_area, torch_nearest
from robot_runtime.imaging.preprocess import (
    Cast,
    CenterCrop,
    ChannelOrder,
    ChannelsFirst,
    Clip,
    Divide,
    Kernel,
    NormalizeRange,
    Operation,
    Resize,
    ResizeShortestEdge,
    ResizeWithPad,
    Standardize,
    preprocess,
)

SIDES = st.integers(1, 40)


def image(seed: int, height: int, width: int, kind: str) -> np.ndarray:
    random = np.random.default_rng(seed)
    if kind == "uint8":
        return random.integers(0, 256, (height, width, 3), np.uint8)
    return (10 * random.random((height, width, 1))).astype(np.float32)


def by_torch(array: np.ndarray, height: int, width: int, mode: str) -> np.ndarray:
    planes = torch.from_numpy(array)[None].permute(0, 3, 1, 2)
    resized = torch.nn.functional.interpolate(planes.float(), size=(height, width), mode=mode).to(planes.dtype)
    return resized.permute(0, 2, 3, 1)[0].numpy()


@given(SIDES, SIDES, SIDES, SIDES, st.sampled_from(["uint8", "float32"]), st.integers(0, 99))
def test_area_is_torchs(height: int, width: int, new_height: int, new_width: int, kind: str, seed: int):
    array = image(seed, height, width, kind)
    ours, theirs = torch_area(array, new_height, new_width), by_torch(array, new_height, new_width, "area")
    assert ours.dtype == array.dtype
    if kind == "uint8":
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)


@given(SIDES, SIDES, SIDES, SIDES, st.sampled_from(["uint8", "float32"]), st.integers(0, 99))
def test_nearest_is_torchs(height: int, width: int, new_height: int, new_width: int, kind: str, seed: int):
    array = image(seed, height, width, kind)
    expected = by_torch(array, new_height, new_width, "nearest")
    np.testing.assert_array_equal(torch_nearest(array, new_height, new_width), expected)


@pytest.mark.parametrize("kind", ["uint8", "float32"])
def test_area_of_a_camera_image_is_torchs(kind: str):
    array = image(7, 480, 640, kind)
    np.testing.assert_allclose(torch_area(array, 256, 341), by_torch(array, 256, 341, "area"), rtol=1e-6, atol=0)


def test_area_of_an_image_too_tall_for_16_bits_is_torchs():
    array = np.full((600, 3, 3), 255, np.uint8)
    np.testing.assert_array_equal(torch_area(array, 1, 1), by_torch(array, 1, 1, "area"))


def test_bilinear_is_pillows():
    color, depth = image(1, 300, 400, "uint8"), image(2, 30, 40, "float32")
    expected = np.asarray(Image.fromarray(color).resize((224, 224), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(pil_bilinear(color, 224, 224), expected)
    expected = np.asarray(Image.fromarray(depth[:, :, 0]).resize((11, 7), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(pil_bilinear(depth, 7, 11)[:, :, 0], expected)


def test_pillows_default_is_bicubic_and_not_bilinear() -> None:
    color = np.random.default_rng(1).integers(0, 256, (120, 160, 3), np.uint8)
    expected = np.asarray(Image.fromarray(color).resize((85, 64)))
    np.testing.assert_array_equal(Resize(("rgb",), 64, 85, "pil_bicubic").apply(color), expected)
    assert np.abs(expected.astype(int) - pil_bilinear(color, 64, 85)).max() > 3


@given(SIDES, SIDES, SIDES, st.integers(2, 40), st.sampled_from(["uint8", "float32"]), st.integers(0, 99))
def test_antialiased_bilinear_is_torchs(h: int, w: int, new_h: int, new_w: int, kind: str, seed: int):
    array = image(seed, h, w, kind)
    planes = torch.from_numpy(array)[None].permute(0, 3, 1, 2)
    theirs = torch.nn.functional.interpolate(planes, size=(new_h, new_w), mode="bilinear", antialias=True)
    ours, expected = torch_antialias(array, new_h, new_w), theirs.permute(0, 2, 3, 1)[0].numpy()
    if kind == "uint8":
        np.testing.assert_array_equal(ours, expected)
    else:
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize(("kernel", "flag"), [("cv2_area", cv2.INTER_AREA), ("cv2_bilinear", cv2.INTER_LINEAR)])
def test_area_and_bilinear_of_opencv_are_opencvs(kernel: Kernel, flag: int):
    for array in (image(3, 48, 64, "uint8"), image(3, 48, 64, "float32")):
        expected = cv2.resize(array, (22, 17), interpolation=flag).reshape(17, 22, -1)
        np.testing.assert_array_equal(Resize(("x",), 17, 22, kernel).apply(array), expected)


@pytest.mark.parametrize(("height", "width"), [(480, 640), (720, 1280), (640, 480), (100, 100)])
def test_padding_to_a_square_is_navdps(height: int, width: int):
    """By the longer side, with OpenCV's default; then the same on both sides."""
    array = image(5, height, width, "uint8")
    scale = 224 / max(height, width)
    inner = cv2.resize(array, (0, 0), fx=scale, fy=scale)
    (rows, columns), theirs = inner.shape[:2], np.zeros((224, 224, 3), np.uint8)
    top, left = (224 - rows) // 2, (224 - columns) // 2
    theirs[top : top + rows, left : left + columns] = inner
    np.testing.assert_array_equal(ResizeWithPad(("x",), 224, 224, "cv2_bilinear").apply(array), theirs)


def test_the_shortest_edge_is_cut_off_not_rounded():
    # 256 / 480 * 640 = 341.33; 99 / 200 * 401 = 198.495
    assert ResizeShortestEdge(("x",), 256, "torch_area").apply(image(0, 480, 640, "uint8")).shape == (256, 341, 3)
    assert ResizeShortestEdge(("x",), 99, "torch_nearest").apply(image(0, 401, 200, "uint8")).shape == (198, 99, 3)


@given(SIDES, SIDES, st.integers(1, 12), st.integers(1, 12))
def test_the_crop_starts_at_half_minus_half(height: int, width: int, rows: int, columns: int):
    array = image(0, height, width, "uint8")
    operation = CenterCrop(("x",), rows, columns)
    if rows > height or columns > width:
        with pytest.raises(ValueError, match="cannot crop"):
            operation.apply(array)
        return
    top, left = height // 2 - rows // 2, width // 2 - columns // 2
    np.testing.assert_array_equal(operation.apply(array), array[top : top + rows, left : left + columns])


def test_order_matters():
    depth = image(3, 20, 40, "float32")
    resize, crop = ResizeShortestEdge(("depth",), 8, "torch_area"), CenterCrop(("depth",), 8, 8)
    one = preprocess({"depth": depth}, [resize, crop])["depth"]
    other = preprocess({"depth": depth}, [crop, resize])["depth"]
    assert one.shape == other.shape == (8, 8, 1)
    assert not np.allclose(one, other)


def test_colors_become_torchvisions():
    rgb = image(4, 6, 5, "uint8")
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    steps: list[Operation] = [Divide(("rgb",), 255), Standardize(("rgb",), mean, std), ChannelsFirst(("rgb",))]
    ours = preprocess({"rgb": rgb}, steps)["rgb"]
    scaled = torch.from_numpy(rgb).permute(2, 0, 1).float() / 255
    theirs = (scaled - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    np.testing.assert_array_equal(ours, theirs.numpy())


def test_depth_is_clipped_then_normalized_in_float32():
    meters = np.array([[[0.0], [0.5], [2.75], [5.0], [9.0]]], np.float32)
    ours = preprocess({"depth": meters}, [NormalizeRange(("depth",), 0.5, 5.0)])["depth"]
    assert ours.dtype == np.float32
    np.testing.assert_array_equal(ours.ravel(), np.float32([0, 0, 0.5, 1, 1]))
    np.testing.assert_array_equal(Clip(("depth",), 1, 3).apply(meters).ravel(), np.float32([1, 1, 2.75, 3, 3]))


def test_channels_are_reordered_and_types_cast():
    rgb = image(5, 2, 2, "uint8")
    np.testing.assert_array_equal(ChannelOrder(("rgb",), (2, 1, 0)).apply(rgb), rgb[:, :, ::-1])
    assert Cast(("rgb",), "float32").apply(rgb).dtype == np.float32
    np.testing.assert_array_equal(Cast(("x",), "uint8").apply(np.float32([0.9, 255.0])), np.uint8([0, 255]))
    for outside in (np.float32([np.nan]), np.float32([256.0]), np.float32([-1.0])):
        with pytest.raises(ValueError, match="do not fit"):
            Cast(("x",), "uint8").apply(outside)


def test_what_was_given_stays_as_it_was():
    rgb = image(6, 8, 8, "uint8")
    rgb.flags.writeable = False
    before = rgb.copy()
    preprocess({"rgb": rgb, "other": rgb}, [Divide(("rgb",), 255), Clip(("rgb",), 0.2, 0.4)])
    np.testing.assert_array_equal(rgb, before)


@pytest.mark.parametrize(
    ("operation", "array", "said"),
    [
        (Resize(("x",), 4, 4, "torch_area"), np.zeros((8, 8), np.uint8), "takes an image"),
        (Resize(("x",), 4, 4, "torch_area"), np.zeros((8, 8, 1), np.int64), "averages uint8 or float32"),
        (Resize(("x",), 4, 4, "pil_bilinear"), np.zeros((8, 8, 1), np.uint8), "pil_bilinear takes"),
        (ResizeShortestEdge(("x",), 4000, "torch_nearest"), np.zeros((1, 9, 1), np.uint8), "would become"),
        (Standardize(("x",), (0.5,), (0.5,)), np.zeros((2, 2, 3), np.float32), "1 channels"),
        (Standardize(("x",), (0.5,), (0.5,)), np.zeros((2, 2, 1), np.uint8), "takes float32"),
        (ChannelOrder(("x",), (0, 1)), np.zeros((2, 2, 3), np.uint8), "2 channels"),
    ],
)
def test_an_array_that_does_not_fit_is_named_with_its_operation(operation: Operation, array: np.ndarray, said: str):
    with pytest.raises(PolicyError, match=said) as caught:
        preprocess({"x": array}, [operation])
    assert f"operation 0 ({operation.op}) of 'x'" in caught.value.message


def test_a_key_that_is_not_there_is_named():
    with raises_naming(PolicyError, "'depth'"):
        preprocess({"rgb": np.zeros(1)}, [ChannelsFirst(("depth",))])


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"op": "resize", "keys": ["x"], "height": 0, "width": 4, "kernel": "torch_area"}, "1..4096"),
        ({"op": "resize", "keys": ["x"], "height": 4, "width": 4, "kernel": "cv2_cubic"}, "kernel"),
        ({"op": "resize", "keys": [], "height": 4, "width": 4, "kernel": "torch_area"}, "one key or more"),
        ({"op": "standardize", "keys": ["x"], "mean": [0.5], "std": [0.0]}, "positive std"),
        ({"op": "divide", "keys": ["x"], "by": 0.0}, "cannot divide"),
        ({"op": "clip", "keys": ["x"], "low": 2.0, "high": 1.0}, "low < high"),
        ({"op": "channel_order", "keys": ["x"], "order": [0, 2]}, "each channel once"),
        ({"op": "exec", "keys": ["x"]}, "exec"),
        ({"op": "clip", "keys": ["x"], "low": 0.0, "high": 1.0, "hight": 2.0}, "hight"),
    ],
)
def test_an_operation_that_makes_no_sense_is_refused(document: dict, said: str):
    with pytest.raises(ConfigError, match=said):
        config.parse(document, Operation, "policy.yaml")
