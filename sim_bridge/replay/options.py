"""How logs are replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot_runtime.policy import PolicySource
from sim_bridge.replay.results import PARTS, Part, Thresholds

ADAPTERS = {
    "habitat": "sim_bridge.replay.backends.habitat.make_twin",
    "ai2thor": "sim_bridge.replay.backends.ai2thor.make_twin",
}
"""Twins of other simulators, by the name that ``--into`` takes."""


@dataclass(frozen=True)
class ReplayOptions:
    """The same for all logs of a command, and sent to other processes.

    Attributes:
        into: a simulated robot's preset or YAML file, ``recorded`` for the log's own, or one of :data:`ADAPTERS`.
        twin_options: of the twin: over the options in the robot's file, or an adapter's own.
        parts: those that are wanted.
        scene: folder or bundled scene; None for the one that the log names.
        any_scene_version: whether another version of that scene will do.
        images: whether actions are replayed with images.
        forced: whether every action is also replayed from the pose that was recorded before it.
        policy: for open and closed loop; None for the one that the log names.
        out: folder for results, and for the logs of closed loops.
    """

    into: str = "sim"
    twin_options: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = PARTS
    scene: str | None = None
    any_scene_version: bool = False
    images: bool = False
    forced: bool = False
    policy: PolicySource | None = None
    out: Path = Path("replay")
    thresholds: Thresholds = field(default_factory=Thresholds)
