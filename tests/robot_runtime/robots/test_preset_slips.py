"""The usual slips of units, inserted into every number of every preset, are refused with the unit that was meant."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from robot_runtime.campaign.plan import parse_plan
from robot_runtime.common import config, quantities
from robot_runtime.errors import ConfigError, RuntimeFault
from robot_runtime.robots.action_errors import ActionError
from robot_runtime.robots.camera_mount import load_mount
from robot_runtime.robots.loader import DeviceOverrides, RobotContext, load_robot
from robot_runtime.scenes.scene import load_scene
from robot_runtime.tasks.task import load_task

SLIPS: dict[str, tuple[tuple[str, float], ...]] = {
    "m": (("millimeters", 1e3),),
    "m/s": (("millimeters", 1e3),),
    "m/s²": (("millimeters", 1e3),),
    "m/px": (("millimeters", 1e3),),
    "s": (("milliseconds", 1e3),),
    "°": (("radians", math.radians(1)),),
    "°/s": (("radians", math.radians(1)),),
    "rad": (("degrees", math.degrees(1)),),
    "rad/s": (("degrees", math.degrees(1)),),
    "rad/s²": (("degrees", math.degrees(1)),),
}
"""Unit: the other unit that is written in its place, and the factor to it."""

PLAUSIBLE = {
    # Offsets between parts of a robot that are below 2 mm: in millimeters they are those of another robot.
    ("CameraMount", "pan_joint_m", -4.4e-05),
    ("CameraMount", "pan_joint_m", -8e-05),
    ("CameraMount", "xyz_m", 9e-06),
    # Coordinates below 0.5 m: in millimeters they are those of a place in a large map.
    ("TagMap", "xyz_m", 0.25),
    ("TagMap", "xyz_m", 0.45),
}
"""Numbers that are as plausible after the slip: class, field, and number."""

FOR_A_PERSON = {
    # The example shows the form; the value depends on other fields, whose limit the next refusal names.
    *(("Task", name) for name in ("sensors", "start_distance_m", "look_limits_deg")),
    *(("Plan", name) for name in ("robots", "signer")),
    *(("MotorModel", "threshold_m_s"), ("OpenCvOptions", "hfov_deg"), ("RealSenseOptions", "record_to")),
    ("LocalizerOptions", "source"),
    ("Task", "misspelt rearrangement"),  # a kind's own settings are found by its name, not by a field's
}
"""Fields whose remedy's example is not itself accepted in its place."""

PLAN = {
    **{"name": "mine", "task": "objectnav_robothor2021", "scenes": {"*": "arena"}, "episodes": "e.json.gz"},
    "policies": {name: {"commitment": "0" * 64, "server": f"ws://{name}:8000"} for name in ("P1", "P2")},
    **{"robots": [{"robot": "sim"}], "order": {"seed": 1}},
}
"""What a plan adds to each preset of campaigns."""

Path = tuple[int | str, ...]


@pytest.fixture(scope="module")
def documents() -> dict[str, tuple[type, Any]]:
    """Every dataclass that the presets are read into, with its defaults, by its content."""
    found: dict[str, tuple[type, Any]] = {}
    patch = pytest.MonkeyPatch()
    parse = config.parse

    def noting(data: Any, cls: type, where: str, recorded: bool = False) -> Any:
        document = parse(data, cls, where, recorded)
        found.setdefault(f"{cls} {document}", (cls, document))
        return document

    patch.setattr(config, "parse", noting)
    for name, _ in config.presets("tasks"):
        load_task(name)
    for _, path in config.presets("mounts"):
        load_mount(path)
    for name, _ in config.presets("campaigns"):
        parse_plan({"preset": name, **PLAN}, name)
    context = RobotContext(load_scene("apartment"), load_task("pointnav_quick").camera, 0)
    robots = [(name, DeviceOverrides()) for name, _ in config.presets("robots")]
    robots += [("fake", DeviceOverrides(camera=name)) for name, _ in config.presets("cameras")]
    robots += [("fake", DeviceOverrides(localizer=name)) for name, _ in config.presets("localizers")]
    for name, devices in robots:
        with suppress(RuntimeFault):  # a device that this robot cannot have: its options have been read
            load_robot(name, context, devices)
    patch.undo()
    return found


def numbers(value: Any, kind: Any = None, place: Path = ()) -> Iterator[tuple[Path, float, quantities.Quantity]]:
    """All numbers with units in a dataclass, defaults included, with their places in a file."""
    if dataclasses.is_dataclass(value):
        for name, (own, _) in quantities.quantities_of(type(value)).items():
            inlined = name == getattr(type(value), "__inlined__", None)
            yield from numbers(getattr(value, name), own, place if inlined else (*place, name))
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from numbers(item, kind, (*place, index))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from numbers(item, kind, (*place, name))
    elif isinstance(value, (int, float)) and kind is not None and value and not isinstance(value, bool):
        yield place, value, kind


def changed(document: Any, place: Path, value: float) -> Any:
    """A document in which one number is another; None if the file has it elsewhere."""
    changed = copy.deepcopy(document)
    into = changed
    for part in place[:-1]:
        if part not in (into if isinstance(into, dict) else range(len(into))):
            return None
        into = into[part]
    into[place[-1]] = value
    return changed


def refused(document: Any, cls: type) -> ConfigError | None:
    """The error that a document is refused with."""
    try:
        config.parse(document, cls, "preset")
    except ConfigError as error:
        return error
    return None


@pytest.mark.slow
def test_no_slip_of_a_unit_in_a_preset_is_accepted(documents: dict[str, tuple[type, Any]]) -> None:
    accepted, tried, asked, mended, seen = set(), 0, 0, 0, set()
    for cls, document in documents.values():
        plain = json.loads(json.dumps(config.unparse(document), default=str))
        for place, value, kind in numbers(document):
            name = next(str(part) for part in reversed(place) if isinstance(part, str))
            if (cls, name, value) in seen:
                continue
            seen.add((cls, name, value))
            for other, factor in SLIPS.get(kind.unit, ()):
                slipped = changed(plain, place, value * factor)
                if slipped is None:
                    continue
                tried += 1
                if (refusal := refused(slipped, cls)) is None:
                    accepted.add((cls.__name__, name, value))
                elif name in refusal.message and "not a possible" in refusal.message:
                    assert kind.unit in refusal.message, refusal
                    assert other in refusal.remedy, refusal
                    proposed = map(float, re.findall(r"([-\d.e]+) if|degrees: ([-\d.]+)", refusal.remedy)[0][:1])
                    mended += any(refused(changed(plain, place, number), cls) is None for number in proposed)
                    asked += 1
    assert tried > 300
    assert mended == asked > 200, "each number that a remedy proposes is accepted"
    assert accepted == PLAUSIBLE


@pytest.mark.slow
def test_the_remedies_of_misspelt_and_mistyped_fields_help(documents: dict[str, tuple[type, Any]]) -> None:
    useless, asked, seen = set(), 0, set()
    for cls, document in documents.values():
        plain = json.loads(json.dumps(config.unparse(document), default=str))
        for name, value in plain.items() if isinstance(plain, dict) else ():
            if (cls, name) in seen or len(name) < 5:
                continue
            seen.add((cls, name))
            misspelt = {(f"{name[:-2]}{name[-1]}{name[-2]}x" if key == name else key): plain[key] for key in plain}
            refusal = refused(misspelt, cls)
            assert refusal is not None
            if "no such field" in refusal.message:
                asked += 1
                meant = re.search("did you mean '(.*?)'", refusal.remedy)
                is_found = meant is not None and meant[1] == name
                useless |= set() if is_found else {(cls.__name__, f"misspelt {name}")}
            if (refusal := refused({**plain, name: {"?": value}}, cls)) is None or f"`{name}: " not in refusal.remedy:
                continue
            example = config.parse_yaml(re.findall(rf"`{name}: (.*)`", refusal.remedy)[0], "remedy")
            asked += 1
            useless |= set() if refused({**plain, name: example}, cls) is None else {(cls.__name__, name)}
    assert asked > 300
    assert useless == FOR_A_PERSON


@pytest.mark.parametrize(
    ("field", "index", "factor"),
    [("mean", 0, 1e3), ("mean", 2, math.degrees(1)), ("covariance", 0, 1e6), ("covariance", 2, math.degrees(1) ** 2)],
)
def test_slips_in_the_errors_of_actions_are_refused(field: str, index: int, factor: float) -> None:
    error: dict[str, Any] = {
        "mean": [-0.015, 0.002, 0.026],
        "covariance": [[6.4e-5, 0.0, 0.0], [0.0, 3.6e-5, 0.0], [0.0, 0.0, 4e-4]],
    }
    config.parse(error, ActionError, "here")
    row = error[field] if field == "mean" else error[field][index]
    row[index] *= factor
    with pytest.raises(ConfigError, match="not a possible"):
        config.parse(error, ActionError, "here")
