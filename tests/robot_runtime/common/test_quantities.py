"""Numbers with units are physically possible, or refused with the unit and the likely slip."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from raising import raises_naming

from robot_runtime.actions.discrete import Magnitudes
from robot_runtime.common import config, quantities
from robot_runtime.common.quantities import FieldOfView, Latency, PartOffset
from robot_runtime.errors import ConfigError
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.camera import ImagingOptions
from robot_runtime.scenes.tag_map import Tag


@dataclass(frozen=True)
class Device(config.Strict):
    """A device of another package, whose author declares two types and nothing for the other fields."""

    latency_s: Latency = 0.0
    lever_m: tuple[PartOffset, PartOffset] = (0.0, 0.0)
    tilt_deg: float = 0.0
    speed_rad_s: float = 1.0
    reach_m: float | None = None
    named: dict[str, FieldOfView] | None = None
    until_s: float = math.inf


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ({"latency_s": 30}, ("latency_s", "30 s", "milliseconds", "0.03")),
        ({"lever_m": [0.1, -210]}, ("lever_m.1", "-210 m", "millimeters", "-0.21")),
        ({"lever_m": [0.1, 21]}, ("lever_m.1", "21 m", "centimeters", "0.21")),
        ({"tilt_deg": 1.5708}, ("tilt_deg", "radians", "degrees: 90")),
        ({"tilt_deg": -0.5236}, ("tilt_deg", "radians", "degrees: -30")),
        ({"tilt_deg": math.radians(7)}, ("tilt_deg", "radians", "degrees: 7")),
        ({"tilt_deg": 400}, ("tilt_deg", "400 °", "-360 to 360")),
        ({"speed_rad_s": 90}, ("speed_rad_s", "90 rad/s", "degrees per second", "1.57")),
        ({"reach_m": 350}, ("reach_m", "350 m", "millimeters", "0.35")),
        ({"named": {"left": 0.7}}, ("named.left", "0.7 °", "radians", "40.1")),
    ],
)
def test_an_impossible_number_is_refused_with_its_unit_and_the_likely_slip(
    document: dict[str, Any], names: tuple[str, ...]
) -> None:
    with raises_naming(ConfigError, *names):
        config.parse(document, Device, "device.yaml")


@pytest.mark.parametrize(
    "document",
    [
        {"latency_s": 0.03, "lever_m": [-0.2, 0], "tilt_deg": 1.5, "speed_rad_s": 3.14, "reach_m": 0.35},
        {"tilt_deg": 360, "named": {"left": 90}},
        {"tilt_deg": 0.52},
        {"latency_s": 0},
    ],
)
def test_possible_numbers_are_taken_as_they_are(document: dict[str, Any]) -> None:
    config.parse(document, Device, "device.yaml")


def test_what_a_record_of_the_past_says_is_not_judged() -> None:
    assert config.parse({"latency_s": 30}, Device, "log", recorded=True).latency_s == 30


def test_the_remedy_is_itself_accepted() -> None:
    """Each value that a refusal proposes is possible."""
    for cls, document in ((Magnitudes, {"forward_m": 250, "turn_deg": 30, "tilt_deg": 30}),):
        with pytest.raises(ConfigError) as caught:
            config.parse(document, cls, "task")
        proposed = float(caught.value.remedy.rpartition(": ")[2].split()[0])
        config.parse({**document, "forward_m": proposed}, cls, "task")


@pytest.mark.parametrize("name", quantities.BY_SUFFIX)
def test_every_range_is_one(name: str) -> None:
    kind = quantities.BY_SUFFIX[name]
    assert kind is None or kind.low < kind.high


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"fx": 0.7, "fy": 0.7}, ("fx", "pixels", "448")),
        ({"cx": 1500.0}, ("cx", "pixel of the image", "1500")),
        ({"cy": -20.0}, ("cy", "pixel of the image", "-20")),
        ({"fy": 3.6}, ("fy", "pixels", "3.6")),
    ],
)
def test_intrinsics_are_pixels_of_their_image(changes: dict[str, float], names: tuple[str, ...]) -> None:
    lens = {"width": 640, "height": 480, "fx": 500.0, "fy": 500.0, "cx": 319.5, "cy": 239.5}
    config.parse(lens, Lens, "camera.yaml")
    with raises_naming(ConfigError, *names):
        config.parse({**lens, **changes}, Lens, "camera.yaml")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{forward_m: 0.25, turn_deg: 0, tilt_deg: 30}", ("'turn_deg': turn_deg must be", "a number, 0.5 to 180 °")),
        ("[0.25, 30, 30]", ("the document: Input should be an object", "a mapping with forward_m, turn_deg, tilt_deg")),
    ],
)
def test_a_check_of_several_fields_names_the_field_that_it_speaks_of(text: str, names: tuple[str, ...]) -> None:
    with raises_naming(ConfigError, *names):
        config.parse(config.parse_yaml(text, "here"), Magnitudes, "here")


def test_a_decimal_comma_is_named() -> None:
    text = "{width: 640, height: 480, fx: 500, fy: 500, cx: 319,5, cy: 239}"
    with raises_naming(ConfigError, "'5'", "with a point, not with a comma"):
        config.parse(config.parse_yaml(text, "here"), Lens, "here")


def test_a_depth_range_is_not_empty() -> None:
    with raises_naming(ConfigError, "depth_min_m", "3", "2"):
        config.parse({"depth_min_m": 3.0, "depth_max_m": 2.0}, ImagingOptions, "camera.yaml")


def test_a_tag_map_in_radians_or_centimeters_is_refused() -> None:
    tag = {"id": 3, "size_m": 0.16, "xyz_m": [1.0, 2.0, 1.1], "rpy_deg": [0.0, 0.0, 90.0]}
    config.parse(tag, Tag, "tags.yaml")
    with raises_naming(ConfigError, "rpy_deg.2", "radians", "-90"):
        config.parse({**tag, "rpy_deg": [0.0, 0.0, -1.5708]}, Tag, "tags.yaml")
    with raises_naming(ConfigError, "size_m", "16 m", "centimeters"):
        config.parse({**tag, "size_m": 16}, Tag, "tags.yaml")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("turn_deg: 030", ("line 1", "030", "means 24", "decimal")),
        ("a: 1\nmax_steps: 0500", ("line 2", "0500", "means 320")),
        ("a: -017", ("-017", "means -15")),
        ("time: 1:30", ("1:30", "means 90")),
        ("a: 0b101", ("0b101", "means 5")),
        ("a: 1\n---\nb: 2\n", ("line 2", "second document")),
        ("camera:\u00a0{latency_s: 0.03}", ("line 1", "U+00A0", "plain space")),
        ("a:\n\u00a0\u00a0b: 1", ("line 2", "U+00A0")),
        ("a:\n\tb: 1", ("line 2", "spaces, not with tabs")),
    ],
)
def test_surprises_of_yaml_are_refused_and_named(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    with raises_naming(ConfigError, path, *names):
        config.read_yaml(path)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("-0", 0), ("0.5", 0.5), ("0x1F", 31), ("'030'", "030"), ("007.5", 7.5), ("10", 10)]
)
def test_numbers_that_mean_what_they_say_are_read(text: str, value: object) -> None:
    assert config.parse_yaml(text, "here") == value


def test_words_with_no_break_spaces_inside_are_text() -> None:
    assert config.parse_yaml("name: cinq\u00a0pièces", "here") == {"name": "cinq\u00a0pièces"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("latency_s: soon", ("line 1", "a number, 0 to 1 s", "latency_s: 0.0")),
        ("tilt_deg: 1\nreach_m: far", ("line 2", "reach_m", "a number")),
        ("tilt_deg: 1\nlever_m: 3", ("line 2", "a list of 2 values in m")),
        ("latency: 0.1", ("line 1", "did you mean 'latency_s'", "a number")),
        ("base: 1", ("line 1", "base", "the fields there are", "latency_s")),
    ],
)
def test_a_refusal_names_line_type_and_example(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    path = tmp_path / "device.yaml"
    path.write_text(text, encoding="utf-8")
    with raises_naming(ConfigError, path, *names):
        config.load(path, Device)
