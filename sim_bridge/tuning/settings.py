"""Settings of a simulated robot, the grid of them that a sweep tries, and the sweep's options."""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from robot_runtime.common import config
from robot_runtime.errors import ConfigError
from robot_runtime.policy import PolicySource
from robot_runtime.robots.loader import RobotFile, changed_options, read_robot_file
from sim_bridge.replay.options import SceneSource
from sim_bridge.robot.driver import SimOptions

DRIVER = "sim_bridge.robot.driver.make_robot"

UNCHANGED = "as it is"

PYROBOT = "{model: pyrobot, controller: Proportional, multiplier: %s}"
"""Action noise of the Habitat challenges and of Kadian et al. 2020, whose grid is the default."""

STUDY = (
    ("contact.behaviour", ("slide", "stop")),
    ("action_noise", tuple(PYROBOT % multiplier for multiplier in ("0.0", "0.5", "1.0"))),
)
STUDY_OF_OWN_NOISE = (STUDY[0], ("action_noise.multiplier", ("0.0", "0.5", "1.0")))


@dataclass(frozen=True)
class Setting:
    """One simulated robot.

    Attributes:
        name: name in tables.
        robot: content of the YAML file, changes included.
        path: path of the file, for messages.
        changes: (key, value) as given; empty for an unchanged robot.
    """

    name: str
    robot: RobotFile
    path: str
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def options(self) -> SimOptions:
        """The parsed options, checked by :func:`make_setting`."""
        return config.parse(self.robot.options, SimOptions, f"{self.path}: options")

    def described(self) -> dict[str, Any]:
        """The robot's file as it is logged."""
        return asdict(self.robot)


@dataclass(frozen=True)
class Range:
    """A key and the limits of its value."""

    key: str
    low: float
    high: float

    @classmethod
    def parse(cls, text: str) -> Range:
        """Parse ``KEY=LOW:HIGH``. Raises ``ConfigError``."""
        key, equals, ends = text.partition("=")
        low, colon, high = ends.partition(":")
        try:
            limits = cls(key, float(low), float(high))
        except ValueError:
            colon = ""
        if not (key and equals and colon) or not -math.inf < limits.low < limits.high < math.inf:
            raise ConfigError(f"--refine {text!r} is not KEY=LOW:HIGH", "write it like --refine camera.latency_s=0:0.3")
        return limits


@dataclass(frozen=True)
class SweepOptions:
    """Options of a sweep.

    Attributes:
        scene_source: source of the logs' scenes.
        policy_overrides: policies by the names of the agents that they replace.
        episodes: number of different episodes to take, the first in the order of the logs; None for all.
        runs: whether to run policies; without, there are likelihoods only.
        log_folder: folder for the logs of all runs; None for none.
        ranges: ranges of the numbers to refine, starting from the grid's most likely setting.
        journals: folder of the journals of finished work, from which the same command resumes; None for none.
        overwrite: whether to discard the journals.
    """

    scene_source: SceneSource = field(default_factory=SceneSource)
    policy_overrides: Mapping[str, PolicySource] = field(default_factory=dict)
    episodes: int | None = None
    runs: bool = True
    log_folder: Path | None = None
    ranges: Sequence[Range] = ()
    journals: Path | None = None
    overwrite: bool = False


def make_setting(file: RobotFile, path: str, changes: Sequence[tuple[str, str]] = (), name: str = "") -> Setting:
    """A robot with some of its options changed.

    Raises:
        ConfigError: the robot is not of this simulator, an option does not exist, or does not take its value.
    """
    if file.driver != DRIVER:
        raise ConfigError(
            f"{path}: robot {file.name!r} is not of this simulator: its driver is {file.driver!r}",
            f"name a robot whose driver is {DRIVER}, as sim is",
        )
    for key, _ in changes:
        _check_key(key)
    options = changed_options(file.options, [f"{key}={value}" for key, value in changes])
    made = Setting(name or label(changes), replace(file, options=options), path, tuple(changes))
    config.parse(options, SimOptions, f"{path} with {label(changes)}" if changes else f"{path}: options")
    return made


def make_grid(robot: str, vary: Sequence[str], fitted: Sequence[str] = (), study: bool = True) -> list[Setting]:
    """The unchanged robot, every combination of the values to vary, and fitted robots.

    Args:
        robot: preset or YAML file.
        vary: texts ``KEY=V1,V2,...``.
        fitted: presets or YAML files of further robots, used unchanged.
        study: whether sliding and noise vary if ``vary`` is empty.

    Raises:
        ConfigError: see :func:`make_setting`; or a text is not KEY=VALUES.
    """
    path, file = read_robot_file(robot)
    settings = [make_setting(file, str(path), name=UNCHANGED)]
    axes = [_axis(text) for text in vary]
    if study and not vary:
        axes = list(STUDY_OF_OWN_NOISE if "action_noise" in file.options else STUDY)
    for values in itertools.product(*(axis[1] for axis in axes)):
        changes = [(key, value) for (key, _), value in zip(axes, values, strict=True)]
        settings.append(make_setting(file, str(path), changes))
    for other in fitted:
        other_path, other_file = read_robot_file(other)
        name = f"fitted: {other_file.name}"
        if any(setting.name == name for setting in settings):
            name += f", {other}"
        settings.append(make_setting(other_file, str(other_path), name=name))
    return _without_duplicates(settings)


def label(changes: Sequence[tuple[str, str]]) -> str:
    """Changes as a table shows them, with the shortest unique keys."""
    return ", ".join(f"{_short_key(key)} {_short_value(value)}" for key, value in changes) or UNCHANGED


def _short_key(key: str) -> str:
    names = {"contact.behaviour": "contact", "action_noise": "noise", "action_noise.multiplier": "noise x"}
    if key in names:
        return names[key]
    words, known = key.split("."), list(_keys(SimOptions))
    suffixes = (".".join(words[start:]) for start in range(len(words) - 1, 0, -1))
    return next((end for end in suffixes if sum(f".{other}".endswith(f".{end}") for other in known) == 1), key)


def _short_value(value: str) -> str:
    parsed = config.parse_yaml(value, "a value")
    if not isinstance(parsed, dict):
        return value
    words = [str(parsed[word]) for word in ("model", "controller") if word in parsed]
    return " ".join([*words, *([f"x {parsed['multiplier']:g}"] if "multiplier" in parsed else [])])


def _axis(text: str) -> tuple[str, tuple[str, ...]]:
    key, equals, values = text.partition("=")
    parts = tuple(part.strip() for part in _split(values))
    if not (key and equals and all(parts)):
        raise ConfigError(f"--vary {text!r} is not KEY=V1,V2,...", "write it like --vary contact.behaviour=stop,slide")
    return key.strip(), parts


def _split(text: str) -> Iterator[str]:
    """Split at commas outside of brackets."""
    depth, begin = 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and depth == 0:
            yield text[begin:i]
            begin = i + 1
    yield text[begin:]


def _without_duplicates(settings: Sequence[Setting]) -> list[Setting]:
    """The settings without those whose options equal an earlier one's."""
    unique: list[Setting] = []
    for setting in settings:
        if all(setting.options != other.options for other in unique):
            unique.append(setting)
    return unique


def _check_key(key: str) -> None:
    known = sorted(_keys(SimOptions))
    if key in known or any(key.startswith(f"{open_key}.") for open_key in known if open_key in _OPEN):
        return
    word = key.rpartition(".")[2]
    close = [other for other in known if word and other.rpartition(".")[2].startswith(word)]
    close += [other for other in difflib.get_close_matches(key, known, n=3) if other not in close]
    raise ConfigError(
        f"a simulated robot has no option {key!r}",
        f"did you mean {', '.join(repr(other) for other in close)}?" if close else f"use one of {', '.join(known)}",
    )


_OPEN = ("action_noise", "camera.depth_noise", "camera.color_noise")
"""Options whose keys depend on their model; the model checks them."""


def _keys(cls: type[Any], prefix: str = "") -> Iterator[str]:
    hints = get_type_hints(cls)
    for part in fields(cls):
        key, hint = f"{prefix}{part.name}", hints[part.name]
        yield key
        if is_dataclass(hint) and isinstance(hint, type):
            yield from _keys(hint, f"{key}.")
        elif key == "action_noise":
            for kind in get_args(hint):
                models = filter(is_dataclass, get_args(kind) or (kind,))
                yield from (f"{key}.{option.name}" for model in models for option in fields(model))
