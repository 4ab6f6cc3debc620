"""Plausibility checks of datasets: episodes by themselves, against each other, a task and a scene.

None of the findings makes an episode unreadable, and published datasets have most of them: 108 of RoboTHOR's 1,800
validation episodes start at their goal, and 2.4 % of an MP3D ObjectNav training file violate the ratio in its paper.
They should be known before a score is trusted.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from robot_runtime.datasets.findings import Problem, all_findings, mapping, sequence
from robot_runtime.datasets.native_yaml import impossible_number
from robot_runtime.datasets.validate_scene import SceneChecks
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode, EpisodeDetails
from robot_runtime.tasks.floors import storeys_away_m
from robot_runtime.tasks.task import Task

MIN_RATIO = 1.05
"""Batra et al. 2020, section 3: geodesic over Euclidean distance of an ObjectNav episode."""

SEVERAL = 3
"""Starts that all have small headings by chance in one of 20,000 files of degrees."""

NEAR_M = 1e-3
"""Points closer than this are equal."""

LENGTH_M = 0.01
LENGTH_FRACTION = 0.01
"""A stated length may differ from its polyline's by the sum of both tolerances: files mix planar and spatial lengths,
and lengths that were solved on a map are a little shorter than the path that was traced through it.
"""

EXAMPLES = 3

CHECKS: dict[str, str] = {
    "unreadable": "cannot be read: a field is missing or wrong",
    "impossible number": "has a place or length that no building has, or a heading in another unit",
    "small headings": "all headings are below 6.2832°: they may be radians that are read as degrees",
    "repeated id": "its id is another episode's too; tell them apart by key",
    "repeated episode": "is another episode again, in every field",
    "zero length": "starts at its goal: SPL is 0/0, which the metric's rule decides",
    "length below zero": "states a shortest path below 0 m, as programs do that found no way to the goal",
    "no length": "states no shortest path: only a scene can tell SPL",
    "ratio below threshold": "geodesic over Euclidean distance is too near 1: a straight line solves it",
    "shorter than straight": "states a shortest path that is shorter than the straight line",
    "length is not the path's": "states another length than its own path has",
    "start is not the path's": "starts elsewhere than its own path",
    "no goal": "has no goal, and nothing that a scene could fill one in from",
    "no view points": "has a goal object that is seen from nowhere",
    "view points on another floor": "has view points a storey above or below their object, which are left out",
    "iou above 1": "a view point's iou, a fraction of the image, is above 1",
    "best view point is the start": "its info names the start as the best view point, which says nothing",
    "goal on another floor": "its goals are a storey above or below its start: no map of one floor has both",
    "unknown category": "its category is not among the task's or the file's",
}
"""Meaning of the findings about an episode by itself that all kinds of tasks have."""

SCENE_CHECKS: dict[str, str] = {
    "other scene": "belongs to another scene than the one given",
    "start off the map": "starts where the map has no room for the robot",
    "goal off the map": "no goal lies in navigable space",
    "other floor": "its start, goals or objects are on another floor than the map's: it cannot be run",
    "unreachable goal": "no way leads from the start to a goal",
    "unknown object": "names an object that the scene does not have",
}
"""Meaning of the findings on a scene's map that all kinds of tasks have."""


def all_checks() -> dict[str, str]:
    """Meaning of every check's finding, those of all installed kinds of tasks included, in the order of reports."""
    kinds = all_findings()
    tables = (CHECKS, *(kind.checks for kind in kinds), SCENE_CHECKS, *(kind.scene_checks for kind in kinds))
    return {name: meaning for table in tables for name, meaning in table.items()}


@dataclass(frozen=True)
class Example:
    """One episode with a finding.

    Attributes:
        index: position in the dataset, from 0.
        detail: the numbers.
    """

    index: int
    id: str
    scene: str
    detail: str


@dataclass
class Finding:
    """The result of a check: its meaning, the number of episodes and the first few."""

    check: str
    meaning: str
    count: int = 0
    examples: list[Example] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """The findings of a dataset, in the order of :func:`all_checks`, without empty ones.

    Attributes:
        companions: what is wrong with files next to the dataset's, as sentences.
    """

    episodes: int
    findings: tuple[Finding, ...]
    companions: tuple[str, ...] = ()

    def count(self, check: str) -> int:
        """Number of episodes with a finding of the check."""
        return next((finding.count for finding in self.findings if finding.check == check), 0)

    def to_document(self) -> dict[str, Any]:
        """The report as a JSON object."""
        findings = [
            {
                "check": item.check,
                "meaning": item.meaning,
                "count": item.count,
                "examples": [vars(example) for example in item.examples],
            }
            for item in self.findings
        ]
        return {"episodes": self.episodes, "findings": findings, "companions": list(self.companions)}


def validate(
    episodes: Iterable[Episode | EpisodeError],
    task: Task | None = None,
    scene: Scene | None = None,
    min_ratio: float = MIN_RATIO,
    examples: int = EXAMPLES,
    companions: Callable[[Set[str]], Iterable[str]] = lambda ids: (),
) -> Report:
    """Check a dataset in one pass; memory grows by an id and a hash per episode.

    Args:
        episodes: result of ``iter_readable``: an error stands for an episode that cannot be read.
        task: task with the categories and the robot's radius; None for the file's own categories and a LoCoBot.
        scene: scene for checks that need a map; None to omit them.
        min_ratio: smallest ratio of episodes with a goal category.
        examples: number of examples of each finding.
        companions: function from the ids of the episodes to what is wrong with files next to the dataset's.
    """
    found = {name: Finding(name, meaning) for name, meaning in all_checks().items()}
    kinds = [findings(task, scene) for findings in all_findings()]
    checks: list[Callable[[Episode], Iterator[Problem]]] = [
        _Repeats(),
        _numbers,
        _path,
        lambda episode: _ratio(episode, min_ratio),
        _goals,
        lambda episode: _category(episode, task),
        *(findings.of_episode for findings in kinds),
    ]
    if scene is not None:
        checks.append(SceneChecks(scene, task, kinds))
    count = turned = 0
    largest_rad = 0.0
    ids: set[str] = set()
    for index, episode in enumerate(episodes):
        count += 1
        if isinstance(episode, EpisodeError):
            identity, problems = ("", ""), [("unreadable", episode.message)]
        else:
            identity, problems = (episode.id, episode.scene), [c for check in checks for c in check(episode)]
            ids.add(episode.id)
            turned += bool(episode.start.yaw_rad)
            largest_rad = max(largest_rad, abs(episode.start.yaw_rad))
        for name, detail in problems:
            finding = found[name]
            finding.count += 1
            if finding.count <= examples:
                finding.examples.append(Example(index, *identity, detail))
    if turned >= SEVERAL and largest_rad <= math.radians(2 * math.pi):
        found["small headings"].count = turned
        found["small headings"].examples.append(Example(0, "", "", f"the largest is {math.degrees(largest_rad):.4g}°"))
    shown = tuple(finding for finding in found.values() if finding.count)
    return Report(count, shown, tuple(companions(ids)))


class _Repeats:
    """Comparison with the episodes before."""

    def __init__(self) -> None:
        self._ids: dict[str, set[int]] = {}

    def __call__(self, episode: Episode) -> Iterator[Problem]:
        # Without the view points, which Episode.key contains: the other fields distinguish episodes.
        bare = replace(episode, info={}, goals=tuple(replace(goal, view_points=()) for goal in episode.goals))
        content = hash(repr(bare))
        seen = self._ids.setdefault(episode.id, set())
        if seen:
            yield "repeated id", episode.id
        if content in seen:
            yield "repeated episode", f"key {episode.key}"
        seen.add(content)


def _numbers(episode: Episode) -> Iterator[Problem]:
    if problem := impossible_number(episode):
        yield "impossible number", "; ".join(problem)


def _path(episode: Episode) -> Iterator[Problem]:
    stated_m, points = episode.shortest_path_m, episode.shortest_path
    if stated_m is None and not EpisodeDetails.of(episode).objects_to_move:
        yield "no length", "no geodesic distance or shortest path length"
    elif stated_m == 0:
        yield "zero length", "0 m"
    elif stated_m is not None and stated_m < 0:
        yield "length below zero", f"{stated_m:g} m"
    if not points:
        return
    length_m = sum(math.dist(a, b) for a, b in pairwise(points))
    if stated_m is not None and abs(length_m - stated_m) > LENGTH_M + LENGTH_FRACTION * stated_m:
        yield "length is not the path's", f"states {stated_m:.3f} m, its path has {length_m:.3f} m in the plane"
    apart_m = math.dist(points[0], (episode.start.x_m, episode.start.y_m))
    if apart_m > NEAR_M:
        yield "start is not the path's", f"{apart_m:.4f} m apart"


def _ratio(episode: Episode, min_ratio: float) -> Iterator[Problem]:
    """Comparison of the stated length with the straight line."""
    geodesic_m, apart_m = episode.shortest_path_m, straight_m(episode)
    if geodesic_m is None or geodesic_m <= 0 or not apart_m or apart_m < NEAR_M:
        return
    ratio = geodesic_m / apart_m
    numbers = f"{geodesic_m:.3f} m / {apart_m:.3f} m = {ratio:.4f}"
    if geodesic_m < apart_m - LENGTH_M:
        yield "shorter than straight", numbers
    if episode.category is not None and ratio < min_ratio:
        yield "ratio below threshold", f"{numbers} < {min_ratio:g}"


def straight_m(episode: Episode) -> float | None:
    """Distance to the nearest view point; without any, the one that the file states, or to its path's end or a goal.

    ObjectNav's shortest path ends at a view point, but the ``euclidean_distance`` of HM3D's files is to the object.
    """
    start = (episode.start.x_m, episode.start.y_m)
    views = [(pose.x_m, pose.y_m) for goal in episode.goals for pose in goal.view_points]
    if views:
        return min(math.dist(start, view) for view in views)
    stated = mapping(episode.info.get("info")).get("euclidean_distance")
    if isinstance(stated, (int, float)):
        return float(stated)
    if episode.shortest_path:
        return math.dist(start, episode.shortest_path[-1])
    return min((math.dist(start, (goal.x_m, goal.y_m)) for goal in episode.goals), default=None)


def _goals(episode: Episode) -> Iterator[Problem]:
    has_other_end = episode.category or (episode.details and episode.details.has_end)
    if not episode.goals and not has_other_end:
        yield "no goal", "neither goals, category, question, objects nor reference path"
    if episode.category is not None:
        with_views = any("view_points" in extra for extra in _extras(episode))
        unseen = [goal.object_id for goal in episode.goals if with_views and not goal.view_points]
        if unseen:
            yield "no view points", f"object {unseen[0]}"
    lost = sum(
        len(sequence(extra.get("view_points"))) - len(goal.view_points)
        for extra, goal in zip(_extras(episode), episode.goals, strict=False)
    )
    if lost > 0:
        yield "view points on another floor", f"{lost} view points"
    ious = [mapping(view).get("iou") for goal in _extras(episode) for view in sequence(goal.get("view_points"))]
    worst = max((iou for iou in ious if isinstance(iou, (int, float))), default=0.0)
    if worst > 1:
        yield "iou above 1", f"{worst:.3f}"
    if height_m := storeys_away_m(episode):
        yield "goal on another floor", f"{height_m:+.2f} m from the start"
    best = mapping(episode.info.get("info")).get("best_viewpoint_position")
    # In Habitat's frame, because best_viewpoint_position is not converted.
    if best == [-episode.start.y_m, episode.start_z_m, -episode.start.x_m]:
        yield "best view point is the start", str(best)


def _extras(episode: Episode) -> list[dict[str, Any]]:
    """The goals' fields in the file."""
    return [mapping(extra) for extra in sequence(episode.info.get("goals"))]


def _category(episode: Episode, task: Task | None) -> Iterator[Problem]:
    if episode.category is None:
        return
    listed = mapping(episode.info.get("dataset")).get("category_to_task_category_id")
    known = task.categories if task else mapping(listed)
    if known and episode.category not in known:
        yield "unknown category", episode.category
