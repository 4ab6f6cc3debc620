"""Generators of episodes for any scene, with the distributions of the published datasets; deterministic by seed.

PointNav, Savva et al. 2019 (Habitat), section 4: "We initialize the agent at a starting position and orientation that
are sampled uniformly at random from all navigable positions [...] we restrict the GDSP [geodesic distance along the
shortest path] to be between 1m and 30m. [...] we perform aggressive rejection sampling for episodes with the above
ratio [GDSP / Euclidean distance] falling in the range [1, 1.1]." The paper leaves the rate open; habitat-lab
(``datasets/pointnav/pointnav_generator.py``) keeps such an episode with probability 20 (ratio - 0.98)^2, which is
0.008 at 1 and 0.288 at 1.1, and tries 10 starts per goal.

ObjectNav, Batra et al. 2020, section 3: the distance is that to the nearest view point of any instance, and the ratio
is at least 1.05.

Rearrangement: :mod:`robot_runtime.task_kinds.rearrangement.generate`.

EQA: questions by the rules ``few_scenes``; starts 10, 30 and 50 actions before the target, in turns.

AreaGoal has no published generator. Kinds of rooms are drawn uniformly from those in the scene, starts as for
ObjectNav; there is no minimum ratio, since the nearest place of a room is rarely far off the straight line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from robot_runtime.common.geometry import SE2
from robot_runtime.datasets.sampling import MAX_GEODESIC_M, MIN_GEODESIC_M, Sampler
from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.geodesic import DistanceField
from robot_runtime.scenes.scene import Room, Scene
from robot_runtime.task_kinds.areagoal import task as areagoal
from robot_runtime.task_kinds.eqa.questions import generate_questions, sample_questions
from robot_runtime.task_kinds.eqa.questions.episodes import question_episodes
from robot_runtime.task_kinds.rearrangement.generate import generate_rearrangement
from robot_runtime.tasks import categories
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.task import Task

POINTNAV_STRAIGHT_RATIO = 1.1
OBJECTNAV_MIN_RATIO = 1.05

_STARTS_PER_GOAL = 10
_GOALS_PER_EPISODE = 100
_STARTS_PER_CATEGORY = 2000


def generate_episodes(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` episodes of the task's kind.

    Raises:
        EpisodeError: as the kind's generator; or the kind needs written words.
    """
    if task.kind == "vln":
        raise EpisodeError(
            f"task {task.name!r} needs episodes with instructions, which cannot be generated",
            "use --episodes with a file in R2R-CE's or RxR-CE's schema",
        )
    generators = {
        "pointnav": generate_pointnav,
        "objectnav": generate_objectnav,
        "areagoal": generate_areagoal,
        "eqa": generate_eqa,
        "rearrangement": generate_rearrangement,
    }
    return generators[task.kind](scene, task, count, seed)


def generate_pointnav(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` PointNav episodes for the task's robot radius.

    Raises:
        EpisodeError: the robot fits nowhere, or the scene is too small or too open for such episodes.
    """
    sampler = Sampler(scene, task, seed)
    return [_pointnav_episode(sampler, scene, index) for index in range(count)]


def generate_objectnav(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` ObjectNav episodes, with categories drawn uniformly from those in the scene.

    Raises:
        EpisodeError: the robot fits nowhere, the scene has no view points of any of the task's categories, or it is too
            small or too open for such episodes.
    """
    sampler = Sampler(scene, task, seed)
    goals = _visible_goals(scene, task)
    episodes: list[Episode] = []
    while len(episodes) < count:
        if not goals:
            raise sampler.too_small("an ObjectNav")
        category = sorted(goals)[sampler.rng.integers(len(goals))]
        episode = _objectnav_episode(sampler, scene, len(episodes), category, goals[category])
        if episode is None:
            del goals[category]
        else:
            episodes.append(episode)
    return episodes


def generate_areagoal(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` AreaGoal episodes that start outside of every room of their kind.

    Raises:
        EpisodeError: the robot fits nowhere, the scene has no room of the task's categories, or no place to start.
    """
    sampler = Sampler(scene, task, seed)
    present = {room.category for room in scene.rooms}
    categories = sorted(name for name, category in task.categories.items() if present & set(category.matches))
    if not categories:
        raise EpisodeError(
            f"{scene.folder / 'scene.yaml'}: has no room of any category of task {task.name!r}",
            "choose another task, or add rooms to 'rooms'",
        )
    episodes: list[Episode] = []
    while len(episodes) < count:
        if not categories:
            raise sampler.too_small("an AreaGoal")
        category = categories[sampler.rng.integers(len(categories))]
        episode = _areagoal_episode(sampler, scene, task, len(episodes), category)
        if episode is None:
            categories.remove(category)
        else:
            episodes.append(episode)
    return episodes


def generate_eqa(scene: Scene, task: Task, count: int, seed: int) -> list[Episode]:
    """``count`` episodes with questions about the scene, of every template in turn.

    Raises:
        EpisodeError: fewer questions than that have a target that the robot can see and get to.
        SceneError: the scene has no view points.
    """
    asked = sample_questions(generate_questions([scene], seed=seed), 2 * count, seed)
    moves = {"magnitudes": task.magnitudes, "radius_m": task.robot_radius_m}
    made = question_episodes(asked, [scene], seed, **moves).episodes  # type: ignore[arg-type]
    by_question = [list(group) for _, group in groupby(made, key=lambda episode: episode.info["info"]["question"])]
    if len(by_question) < count:
        raise EpisodeError(
            f"scene {scene.name!r}: {len(by_question)} questions have a target that can be seen and reached",
            "ask for fewer episodes, or make more with `robot-runtime episodes questions`",
        )
    return [replace(starts[i % len(starts)], id=str(i)) for i, starts in enumerate(by_question[:count])]


def keep_probability(ratio: float) -> float:
    """Probability of keeping a PointNav episode with that geodesic-to-Euclidean ratio (habitat-lab's rule)."""
    return 1.0 if ratio >= POINTNAV_STRAIGHT_RATIO else 20 * (ratio - 0.98) ** 2


def _pointnav_episode(sampler: Sampler, scene: Scene, index: int) -> Episode:
    for _ in range(_GOALS_PER_EPISODE):
        goal = sampler.place()
        field = sampler.geodesic.field([goal])
        for _ in range(_STARTS_PER_GOAL):
            start = sampler.place()
            distance_m = field.at(*start)
            if not MIN_GEODESIC_M <= distance_m <= MAX_GEODESIC_M:
                continue
            if sampler.rng.random() < keep_probability(distance_m / math.dist(start, goal)):
                return _episode(sampler, scene, index, start, field, (Goal(*goal),))
    raise sampler.too_small("a PointNav")


def _objectnav_episode(
    sampler: Sampler, scene: Scene, index: int, category: str, goals: tuple[Goal, ...]
) -> Episode | None:
    """An episode, or None if no start is found. A start 1 m or more from every view point has not succeeded already."""
    field = sampler.geodesic.field([(pose.x_m, pose.y_m) for goal in goals for pose in goal.view_points])
    for _ in range(_STARTS_PER_CATEGORY):
        start = sampler.place()
        distance_m = field.at(*start)
        if not MIN_GEODESIC_M <= distance_m <= MAX_GEODESIC_M:
            continue
        euclidean_m = math.dist(start, field.path(*start)[-1])
        if distance_m / euclidean_m >= OBJECTNAV_MIN_RATIO:
            episode = _episode(sampler, scene, index, start, field, goals)
            return replace(episode, category=category, info={"info": {"euclidean_distance": euclidean_m}})
    return None


def _areagoal_episode(sampler: Sampler, scene: Scene, task: Task, index: int, category: str) -> Episode | None:
    """An episode, or None if no start is found, as in a scene of one room."""
    wanted = Episode(str(index), scene.name, SE2(), (), category=category)
    rooms = areagoal.goal_rooms(task, scene, wanted)
    places = areagoal.targets(task, wanted, scene)
    field = sampler.geodesic.field(places)
    for _ in range(_STARTS_PER_CATEGORY):
        start = sampler.place()
        outside = not any(room.contains(*start) for room in rooms)
        if outside and MIN_GEODESIC_M <= field.at(*start) <= MAX_GEODESIC_M:
            goals = tuple(Goal(*_central_place(room, places)) for room in rooms)
            return replace(_episode(sampler, scene, index, start, field, goals), category=category)
    return None


def _central_place(room: Room, places: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The place nearest to the mean of a room's corners; for display, no distance is measured to it."""
    corners = np.array(room.polygon).mean(axis=0)
    inside = [place for place in places if room.contains(*place)]
    return min(inside or places, key=lambda place: math.dist(place, corners))


def _episode(
    sampler: Sampler,
    scene: Scene,
    index: int,
    start: tuple[float, float],
    field: DistanceField,
    goals: tuple[Goal, ...],
) -> Episode:
    return Episode(
        id=str(index),
        scene=scene.name,
        start=SE2(*start, sampler.heading()),
        goals=goals,
        shortest_path_m=field.at(*start),
        shortest_path=tuple((float(x), float(y)) for x, y in field.path(*start)),
    )


def _visible_goals(scene: Scene, task: Task) -> dict[str, tuple[Goal, ...]]:
    """Per category of the task, the instances that have view points."""
    present = {
        name: [categories.object_goal(scene, item) for match in category.matches for item in scene.instances(match)]
        for name, category in task.categories.items()
    }
    visible = {name: tuple(goal for goal in goals if goal.view_points) for name, goals in present.items()}
    visible = {name: goals for name, goals in visible.items() if goals}
    if not any(present.values()):
        raise EpisodeError(
            f"{scene.folder / 'scene.yaml'}: has no object of any category of task {task.name!r}",
            "choose another task, or add objects to 'objects'",
        )
    if not visible:
        raise EpisodeError(
            f"{scene.folder / 'view_points.json'}: has no view points of any object of task {task.name!r}",
            "compute them with `robot-runtime scene view-points`",
        )
    return visible
