"""Rearrangement measures: the objects that are at their goals in the end, and harm to others.

A *target* is an object with a goal, or a line of the episode's program. Batra et al. 2020, 4.1: completion is the share
of the targets that hold, and 0 if anything was harmed; an episode has succeeded if it is 1. An object that the robot
still carries has no pose and meets no goal.

Each criterion is also a metric: whether all objects with a goal meet it. The metrics of ai2thor-rearrangement
(``prop_fixed`` and others) are computed where the task asks for an overlap.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from robot_runtime.common.geometry import SE2
from robot_runtime.errors import RecordingError
from robot_runtime.metrics.functional.boxes import Box, iou
from robot_runtime.metrics.functional.distances import Graph
from robot_runtime.metrics.functional.path import path_length
from robot_runtime.metrics.functional.predicates import Arrangement, holds
from robot_runtime.metrics.functional.rearrangement import (
    PoseTest,
    angle_between,
    completion,
    pose_box,
    pose_energy,
    room_rearrangement,
)
from robot_runtime.metrics.functional.spl import spl
from robot_runtime.metrics.functional.tours import MAX_OBJECTS, Delivery, shortest_tour
from robot_runtime.metrics.measures import Measures, MetricDefinition, Run
from robot_runtime.metrics.settings import Metrics, Rules
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.objects import GrabOutcome, ObjectPose, ObjectSource
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.rearrangement.crosshair import settings
from robot_runtime.tasks.episode import RearrangedObject
from robot_runtime.tasks.goal_program import Expression, Harm, subjects
from robot_runtime.tasks.task import Task
from robot_runtime.verdicts import Verdicts

PLACES = 8

Point = tuple[float, float]


def shortest_carry_m(
    header: EpisodeHeader, geodesic: GeodesicMap, start: SE2, items: Sequence[RearrangedObject]
) -> float:
    """Length of the shortest way to move ``items`` from their starts to their goals; inf if there is none.

    For each object that is not right the robot stops at a place from which the crosshair can meet it, and at one from
    which it comes down exactly at its goal. What a test forgives is not made use of, nor is which of the first places
    goes with which of the second: the paper's own l (Batra et al. 2020, A.5) is over objects and goals. Of each kind of
    place, :data:`PLACES` stand for all, as far apart as they can be.

    Raises:
        EpisodeError: the scene lacks an object.
        ValueError: more objects than ``metrics.tours`` solves.
    """
    picks, drops = [], []
    for item in items:
        level = rearrangement.at_height(item.goal or item.start, item.start)
        picks.append(_spread(_places(header, geodesic, item, item.start)))
        drops.append(_spread(_places(header, geodesic, item, level)))
    if not all(picks) or not all(drops):
        return float("inf")
    capacity = settings(header.task).capacity
    nodes = [(start.x_m, start.y_m), *(place for places in picks for place in places)]
    first_drop = len(nodes)
    nodes += [place for places in drops for place in places]
    matrix = _matrix(geodesic, nodes, fields=len(nodes) if capacity > 1 else first_drop)
    names = iter(range(1, len(nodes)))
    pick_names = [[next(names) for _ in places] for places in picks]
    drop_names = [[next(names) for _ in places] for places in drops]
    deliveries = [Delivery(*names) for names in zip(pick_names, drop_names, strict=True)]
    return shortest_tour(0, deliveries, Graph(range(len(nodes)), matrix), capacity).length


def _places(header: EpisodeHeader, geodesic: GeodesicMap, item: RearrangedObject, pose: ObjectPose) -> list[Point]:
    found = rearrangement.grab_places(header.task, header.scene, header.episode, item.id, pose)
    return [place for place in found if geodesic.is_navigable(*place)]


def _spread(places: Sequence[Point]) -> list[Point]:
    """At most :data:`PLACES` of them, each as far as can be from those before; the first one first."""
    if len(places) <= PLACES:
        return list(places)
    points = np.array(places)
    chosen = [0]
    nearest = np.hypot(*(points - points[0]).T)
    while len(chosen) < PLACES:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, np.hypot(*(points - points[chosen[-1]]).T))
    return [places[i] for i in chosen]


def _matrix(geodesic: GeodesicMap, nodes: Sequence[Point], fields: int) -> NDArray[np.float64]:
    """Distances between all nodes, by a field around each of the first ``fields``; among the rest inf.

    The way back is as long as the way there, and with one object at a time no path leads from drop to drop.
    """
    found = np.full((len(nodes), len(nodes)), np.inf)
    for i in range(fields):
        field = geodesic.field([nodes[i]])
        found[i] = found[:, i] = [field.at(*node) for node in nodes]
    return found


THINNEST_M = 1e-3
"""Edge of an object that is flat in the scene: a box needs a volume."""

Criteria = dict[str, bool]
"""Criterion -> whether it holds."""


class RearrangementMeasures(Measures):
    """Success by the objects' final poses; SPL by the shortest way to carry everything."""

    has_targets = False
    rank = 5
    defines: ClassVar[tuple[MetricDefinition, ...]] = (
        MetricDefinition("completion", "completion", histogram=True),
        MetricDefinition("targets_met", "targets met"),
        MetricDefinition("criterion_translation", "positions", share=True),
        MetricDefinition("criterion_angle", "angles", share=True),
        MetricDefinition("criterion_iou", "overlaps", share=True),
        MetricDefinition("criterion_openness", "openness", share=True),
        MetricDefinition("criterion_no_harm", "no harm", share=True),
        MetricDefinition("prop_fixed", "fixed"),
        MetricDefinition("prop_fixed_strict", "fixed (strict)"),
        MetricDefinition("prop_misplaced", "misplaced"),
        MetricDefinition("energy_prop", "energy left"),
        MetricDefinition("grabs"),
        MetricDefinition("failed_grabs", "failed grabs", digits=1),
        MetricDefinition("held_at_end"),
    )

    def __init__(self, header: EpisodeHeader, rules: Rules, geodesic: GeodesicMap) -> None:
        super().__init__(header, rules, geodesic)
        self._where = f"episode {header.episode.id!r}: program"
        self._targets = rearrangement.to_move(header.episode)
        self._program: tuple[Expression, ...] = ()
        least = settings(header.task).harm_min_iou
        self._harm = None if least is None else Harm(least)
        self._layout = rearrangement.Layout.of(header.episode)
        program = self._layout.program
        if settings(header.task).goal == "predicate" and program is not None:
            self._program = program.expressions(self._where)
            self._harm = program.harm(self._where) or self._harm
        self._test = _pose_test(header)
        self._start: dict[str, ObjectPose] | None = None
        self._tracked: Mapping[str, ObjectPose] = {}
        self._told: dict[str, ObjectPose] = {}
        self._held: tuple[str, ...] = ()
        self._grabs = self._failed_grabs = 0
        self._shortest_m: float | None = None

    @classmethod
    @override
    def needs_images(cls, task: Task) -> bool:
        return True  # the hand aims with the camera

    @override
    def on_verdicts(self, verdicts: Verdicts) -> None:
        self._told = dict(verdicts.objects)

    @override
    def on_step(self, record: StepRecord) -> None:
        if self._start is None:
            # People state the poses at the end; at the start they put the objects where the episode has them.
            self._start = {item.id: item.start for item in self._layout.objects} | dict(record.state.poses)
        elif (grab := record.state.grab) is not None:
            self._grabs += grab.outcome is GrabOutcome.GRABBED
            self._failed_grabs += grab.outcome is GrabOutcome.NOTHING
        self._tracked, self._held = record.state.poses, record.state.held

    @override
    def holds(self, pose: SE2, distance_m: float) -> bool:
        return completion(self.passed(), self.harmed() != []) == 1.0

    # --- what is right and what is not ------------------------------------------------------------------------------

    def criteria(self) -> dict[str, Criteria]:
        """Per object with a goal, the criteria that apply to it; none where a program decides.

        Raises:
            RecordingError: no source states the pose of an object.
            ValueError: a pose is none.
        """
        return {} if self._program else {item.id: self._criteria(item) for item in self._targets}

    def passed(self) -> list[bool]:
        """Per target, whether it holds. Raises as :meth:`criteria`."""
        if not self._program:
            return [all(found.values()) for found in self.criteria().values()]
        arrangement = self._arrangement()
        return [holds(target, arrangement, self._where) for target in self._program]

    def harmed(self) -> list[str]:
        """Ids of the objects that should have been left alone and were not. Raises as :meth:`criteria`."""
        if self._harm is None:
            return []
        least = self._harm.min_iou
        return [name for name in self._bystanders() if name in self._held or not self._overlap(name) > least]

    def _overlap(self, name: str) -> float:
        return iou(self._box(name, self._starts[name]), self._box(name, self._final(name)))

    @property
    def _starts(self) -> dict[str, ObjectPose]:
        return self._start or {}

    def _bystanders(self) -> list[str]:
        """Objects that were tracked at the start and are not a target."""
        harm = self._harm or Harm(0.0)
        meant = {item.id for item in self._targets} if not self._program else set()
        categories = rearrangement.all_categories(self.header.scene, self.header.episode)
        for selection in subjects(self._program):
            meant |= {name for name, kind in categories.items() if selection.id == name or selection.category == kind}
        return sorted(self._starts.keys() - meant - harm.ignore)

    def _criteria(self, item: RearrangedObject) -> Criteria:
        goal = item.goal
        assert goal is not None
        if item.id in self._held:
            limits = {name: getattr(self._test, limit) for limit, name in _CRITERIA.items()}
            tested = [name for name, limit in limits.items() if limit is not None]
            return {name: False for name in tested if name != "openness" or goal.openness is not None}
        final = self._final(item.id)
        opens = goal.openness is not None and final.openness is not None
        return self._test.criteria(
            translation_m=math.dist(final.position, goal.position),
            angle_rad=angle_between(final.quaternion, goal.quaternion),
            iou=iou(self._box(item.id, final), self._box(item.id, goal)) if self._test.min_iou is not None else None,
            openness=abs((final.openness or 0.0) - (goal.openness or 0.0)) if opens else None,
        )

    def _final(self, name: str) -> ObjectPose:
        pose = self._told.get(name, self._tracked.get(name))
        if pose is None:
            source = self.header.object_source
            raise RecordingError(
                f"object {name!r}: no source states its pose at the end (poses come from "
                f"{source.value if source else 'nowhere'})",
                "type it in with `robot-runtime verdict`, or have a tracker follow it",
            )
        if pose.fault is not None:
            raise RecordingError(f"object {name!r}: at the end, its {pose.fault}", "check who tracks it")
        return pose

    def _box(self, name: str, pose: ObjectPose) -> Box:
        item = rearrangement.scene_object(self.header.scene, self.header.episode, name)
        return pose_box(pose, [max(edge_m, THINNEST_M) for edge_m in item.size])

    def _arrangement(self) -> Arrangement:
        scene, episode = self.header.scene, self.header.episode
        movable = {item.id for item in scene.objects if item.movable} | {item.id for item in self._layout.objects}
        poses = {item.id: item.pose for item in scene.objects if item.id not in movable}
        known = (self._tracked.keys() | self._told.keys()) & movable - set(self._held)
        poses |= {name: self._final(name) for name in known}
        sizes = {item.id: item.size for item in scene.objects}
        sizes |= {item.id: rearrangement.scene_object(scene, episode, item.id).size for item in self._layout.objects}
        return Arrangement(
            boxes={
                name: pose_box(pose, [max(edge_m, THINNEST_M) for edge_m in sizes[name]])
                for name, pose in poses.items()
                if name in sizes
            },
            categories=rearrangement.all_categories(scene, episode),
            quaternions={name: pose.quaternion for name, pose in poses.items()},
            held=frozenset(self._held),
            rooms=scene.rooms,
        )

    # --- numbers ----------------------------------------------------------------------------------------------------

    @override
    def metrics(self, run: Run) -> Metrics:
        passed, harmed, by_object = self.passed(), self.harmed(), self.criteria()
        criteria: dict[str, float | bool | int | None] = {
            f"criterion_{name}": _all([tests[name] for tests in by_object.values() if name in tests])
            for name in _CRITERIA.values()
        }
        return {
            **self._way(run),
            "completion": completion(passed, bool(harmed)),
            "targets_met": sum(passed) / len(passed),
            **criteria,
            "criterion_no_harm": None if self._harm is None else not harmed,
            **self._room_metrics(),
            "grabs": self._grabs,
            "failed_grabs": self._failed_grabs,
            "held_at_end": len(self._held),
        }

    def _way(self, run: Run) -> Metrics:
        """SPL by the shortest way to carry everything; the distance to a goal means nothing here."""
        found: Metrics = {"soft_spl": None, "distance_to_goal": None, "spl": None, "shortest_path_m": None}
        shortest_m = self._shortest(run)
        if shortest_m is None or not math.isfinite(shortest_m):
            return found
        travelled_m = path_length([(pose.x_m, pose.y_m) for pose in run.poses])
        value = spl(run.succeeded, shortest_m, travelled_m, self.rules.zero_path)
        return {**found, "spl": value, "shortest_path_m": shortest_m}

    def _shortest(self, run: Run) -> float | None:
        """None where the episode states no goal poses, or more than can be solved."""
        if self.rules.shortest_path == "dataset":
            return run.shortest_m
        if self._shortest_m is None and 0 < len(self._targets) <= MAX_OBJECTS:
            self._shortest_m = shortest_carry_m(self.header, self.geodesic, run.poses[0], self._targets)
        return self._shortest_m

    def _room_metrics(self) -> Metrics:
        """Of all objects, those that should stay included."""
        if self._program or self._test.min_iou is None:
            return dict.fromkeys(("prop_fixed", "prop_fixed_strict", "prop_misplaced", "energy_prop"))
        goals = {name: self._starts[name] for name in self._bystanders()}
        goals |= {item.id: item.goal for item in self._targets if item.goal is not None}
        before = [self._energy(name, goal, self._starts[name]) for name, goal in goals.items()]
        after = [
            1.0 if name in self._held else self._energy(name, goal, self._final(name)) for name, goal in goals.items()
        ]
        found = room_rearrangement(before, after)
        return {
            "prop_fixed": found.prop_fixed,
            "prop_fixed_strict": found.prop_fixed_strict,
            "prop_misplaced": found.prop_misplaced,
            "energy_prop": found.energy_prop,
        }

    def _energy(self, name: str, goal: ObjectPose, pose: ObjectPose) -> float:
        openness = None
        if goal.openness is not None and pose.openness is not None:
            openness = abs(goal.openness - pose.openness)
        return pose_energy(self._box(name, goal), self._box(name, pose), openness)

    @override
    def facets(self) -> Mapping[str, str]:
        return {**super().facets(), "targets": str(len(self._targets))}

    @override
    def choices(self) -> dict[str, Any]:
        hand = settings(self.header.task)
        source = self.header.object_source
        sources = [*([source] if source else []), *([ObjectSource.OPERATOR] if self._told else [])]
        return {
            "object_poses_from": [source.value for source in dict.fromkeys(sources)],
            "targets": "the episode's program" if self._program else "objects with a goal other than their start",
            "object_test": "the program's own" if self._program else {k: v for k, v in vars(self._test).items() if v},
            "do_no_harm": None if self._harm is None else f"IoU of start and end > {self._harm.min_iou:g}",
            "completion": "share of the targets that hold, 0 after harm (Batra et al. 2020, 4.1)",
            "shortest_path_m": f"exact tour, {hand.capacity} carried at once, {PLACES} places to grab or release each",
            "carried_at_end": "right nowhere",
            "walkthrough": "not scored",
        }


_CRITERIA = {"max_translation_m": "translation", "max_angle_rad": "angle", "min_iou": "iou", "max_openness": "openness"}


def _pose_test(header: EpisodeHeader) -> PoseTest:
    hand = settings(header.task)
    return PoseTest(
        max_translation_m=hand.max_translation_m,
        max_angle_rad=None if hand.max_angle_deg is None else math.radians(hand.max_angle_deg),
        min_iou=hand.min_iou,
        inclusive_iou=hand.inclusive_iou,
        max_openness=hand.max_openness,
    )


def _all(values: Sequence[bool]) -> bool | None:
    return all(values) if values else None
