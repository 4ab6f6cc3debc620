"""Settings of a replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot_runtime.policy import PolicySource
from sim_bridge.replay.results import PARTS, Part, Thresholds

ADAPTERS = {
    "habitat": "sim_bridge.replay.backends.habitat.make_backend",
    "ai2thor": "sim_bridge.replay.backends.ai2thor.make_backend",
}
"""Adapters of other simulators, by the name that ``--into`` takes."""


@dataclass(frozen=True)
class ReplayOptions:
    """The settings that all logs of a command share; sent to worker processes.

    Attributes:
        into: a simulated robot's preset or YAML file, ``recorded`` for the log's own, or one of :data:`ADAPTERS`.
        twin_options: options of the simulator, over those in the robot's file.
        parts: parts of the replay to do.
        scene: folder or bundled scene; None for the one that the log names.
        any_scene_version: whether a version of the scene other than the recorded one is accepted.
        images: whether actions are replayed with images.
        forced: whether every action is also replayed from the pose that was recorded before it.
        policy: policy of the open and closed loop; None for the policy named by the log.
        out: folder for results and for the logs of closed loops.
        thresholds: beyond which trajectories have diverged.
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
