"""One episode, whatever file it came from. All poses are in the scene's ``map`` frame (ROS)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from robot_runtime.common.geometry import SE2
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.tasks.goal_program import Program


@dataclass(frozen=True)
class Goal:
    """A place or an object to reach.

    Attributes:
        x_m: of the goal position, or of the object's center.
        y_m: likewise.
        z_m: likewise.
        object_id: the scene object, where the goal is one.
        view_points: poses from which the object counts as reached; empty for a plain position.
    """

    x_m: float
    y_m: float
    z_m: float = 0.0
    object_id: str | None = None
    view_points: tuple[SE2, ...] = ()


@dataclass(frozen=True)
class Instruction:
    """A route in words (R2R, RxR).

    Attributes:
        tokens: the dataset's own, without padding; empty if it has none.
        language: as the dataset writes it, e.g. ``en-US``; None if it states none.
        trajectory_id: of the reference path that it describes; several instructions may share one.
    """

    text: str
    tokens: tuple[int, ...] = ()
    language: str | None = None
    trajectory_id: str | None = None


@dataclass(frozen=True)
class Question:
    """A question about the scene and its answer (EmbodiedQA).

    Attributes:
        type: the template, e.g. ``color_room``.
        answer_token: the answer's index in the dataset's vocabulary.
    """

    text: str
    answer: str
    type: str
    tokens: tuple[int, ...] = ()
    answer_token: int | None = None


@dataclass(frozen=True)
class RearrangedObject:
    """One object of a rearrangement episode, from its start to its goal pose; goal None: it must stay.

    Attributes:
        id: the scene object or the dataset's handle.
        template: model of an object that the scene does not have.
    """

    id: str
    start: ObjectPose
    goal: ObjectPose | None = None
    category: str | None = None
    template: str | None = None


@dataclass(frozen=True)
class Episode:
    """Start and goals.

    Attributes:
        id: as in the dataset; published ids repeat, so use :attr:`key` to distinguish episodes.
        scene: the dataset's scene name.
        start: start pose.
        start_tilt_rad: camera tilt at the start, up positive; None means the task's.
        goals: any of them counts.
        category: goal category (the dataset's word) for ObjectNav.
        shortest_path_m: the dataset's geodesic distance from start to the nearest goal; None if it states none.
        shortest_path: the dataset's path as (x, y) points in map; empty if it states none.
        info: other content of the dataset, for writing it back.
        instruction: of instruction following.
        reference_path: of instruction following, as (x, y, z) points in map.
        question: of EmbodiedQA.
        objects: of rearrangement.
        program: of rearrangement, conditions of the goal state; None if the objects' goals are the condition.
    """

    id: str
    scene: str
    start: SE2
    goals: tuple[Goal, ...]
    category: str | None = None
    start_tilt_rad: float | None = None
    start_z_m: float = 0.0
    shortest_path_m: float | None = None
    shortest_path: tuple[tuple[float, float], ...] = ()
    info: dict[str, Any] = field(default_factory=dict)
    instruction: Instruction | None = None
    reference_path: tuple[tuple[float, float, float], ...] = ()
    question: Question | None = None
    objects: tuple[RearrangedObject, ...] = ()
    program: Program | None = None

    @cached_property
    def key(self) -> str:
        """Scene and content hash: ``scene/0123456789ab``."""
        content = json.dumps(asdict(self), sort_keys=True, default=str).encode()
        return f"{self.scene}/{hashlib.sha256(content).hexdigest()[:12]}"
