"""Generated rearrangement episodes: deterministic, possible for the task's own moves, and not solved at the start."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from carrying_world import CarryingWorld
from tidy_flat import BALL, BOWL, CRATE, NEEDLE, OBJECTS, RUG, TABLE, tidy_flat

from robot_runtime.common.geometry import SE2
from robot_runtime.datasets.files import load_episodes, save_episodes
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.datasets.validate import validate
from robot_runtime.errors import EpisodeError
from robot_runtime.metrics.functional.predicates import Arrangement, holds
from robot_runtime.metrics.functional.rearrangement import pose_box
from robot_runtime.policies.baselines.oracle import Oracle
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.task_kinds.rearrangement import task as rearrangement
from robot_runtime.task_kinds.rearrangement.crosshair import settings
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.tasks.episode import Episode, RearrangedObject
from robot_runtime.tasks.episode_check import check_episode
from robot_runtime.tasks.episode_objects import model_size_m
from robot_runtime.tasks.goal_program import Program
from robot_runtime.tasks.task import Task, load_task

TASKS = (
    "rearrangement_geometric",
    "rearrangement_predicate",
    "rearrangement_experience",
    "rearrangement_image",
    "house_cleanup_locobot",
    "room_rearrangement_2021",
)
SCENE = tidy_flat()


@pytest.fixture(scope="module", params=TASKS)
def generated(request: pytest.FixtureRequest) -> tuple[Task, list[Episode]]:
    task = load_task(request.param)
    return task, generate_episodes(SCENE, task, 4, 7)


def test_the_same_seed_gives_the_same_episodes(generated: tuple[Task, list[Episode]]) -> None:
    task, episodes = generated
    assert generate_episodes(SCENE, task, 2, 7) == episodes[:2]
    assert generate_episodes(SCENE, task, 2, 8) != episodes[:2]


def test_they_can_be_run_and_nothing_is_odd(generated: tuple[Task, list[Episode]]) -> None:
    task, episodes = generated
    space = GeodesicMap(SCENE.map, task.robot_radius_m)
    for episode in episodes:
        check_episode(task, SCENE, episode, space)
    assert validate(episodes, task, SCENE).findings == ()


def test_they_come_back_from_a_file(generated: tuple[Task, list[Episode]], tmp_path: Path) -> None:
    task, episodes = generated
    save_episodes(tmp_path / "episodes.yaml", episodes, task)
    again = load_episodes(tmp_path / "episodes.yaml")
    for before, after in zip(episodes, again, strict=True):
        assert replace(after, start=before.start, details=before.details) == before
        for a, b in zip(Layout.of(before).objects, Layout.of(after).objects, strict=True):
            assert b.start.position == a.start.position
            assert b.start.quaternion == pytest.approx(a.start.quaternion, abs=1e-12)


def test_as_many_objects_as_the_task_wants_and_none_too_thin(generated: tuple[Task, list[Episode]]) -> None:
    task, episodes = generated
    hand = settings(task)
    for episode in episodes:
        moved = rearrangement.to_move(episode)
        assert hand.min_objects <= len(moved) <= hand.max_objects
        assert NEEDLE.id not in {item.id for item in moved}
        for item in moved:
            assert item.goal is not None
            apart_m = math.dist(item.start.position, item.goal.position)
            assert apart_m > (hand.max_translation_m or 0.0) + 0.1


def test_the_goal_state_of_an_experience_is_the_scenes_own() -> None:
    task = load_task("rearrangement_experience")
    for episode in generate_episodes(SCENE, task, 3, 1):
        for item in Layout.of(episode).objects:
            assert item.goal == SCENE.object(item.id).pose


def test_a_goal_state_makes_its_program_true_and_the_start_does_not() -> None:
    task = load_task("rearrangement_predicate")
    for episode in generate_episodes(SCENE, task, 6, 3):
        assert Layout.of(episode).program is not None
        for state, met in (("start", False), ("goal", True)):
            poses = {item.id: getattr(item, state) for item in Layout.of(episode).objects}
            boxes = {item.id: pose_box(poses.get(item.id, item.pose), item.size) for item in SCENE.objects}
            categories = {item.id: item.category for item in SCENE.objects}
            world = Arrangement(boxes, categories, rooms=SCENE.rooms)
            assert all(holds(target, world) is met for target in Layout.of(episode).program.expressions())


@pytest.mark.slow
def test_the_oracle_solves_them(generated: tuple[Task, list[Episode]]) -> None:
    """With exact moves; in physics, ``tests/sim_bridge/episodes/test_rearrangement_runs.py``."""
    task, episodes = generated
    hand = settings(task)
    solved = 0
    for episode in episodes:
        world = CarryingWorld(task, SCENE, episode)
        world.run(Oracle())
        solved += world.is_done(hand.max_translation_m or 0.1)
    assert solved >= len(episodes) - 1


EMPTY = tidy_flat((TABLE, RUG))


@pytest.mark.parametrize(
    ("name", "models"),
    [
        ("house_cleanup_paper", r"box_30x30x125"),
        ("house_cleanup_locobot", r"\d{3}_\w+"),
        ("rearrangement_experience", r"\d{3}_\w+"),
    ],
)
def test_where_a_scene_has_too_little_episodes_bring_it_along(name: str, models: str) -> None:
    task = load_task(name)
    episodes = generate_episodes(EMPTY, task, 2, 3)
    assert generate_episodes(EMPTY, task, 2, 3) == episodes
    assert validate(episodes, task, EMPTY).findings == ()
    for episode in episodes:
        assert settings(task).min_objects <= len(Layout.of(episode).objects) <= settings(task).max_objects
        assert all(re.fullmatch(models, item.template or "") for item in Layout.of(episode).objects)
        boxes = [
            (pose.position, min(rearrangement.scene_object(EMPTY, episode, item.id).size[:2]) / 2)
            for item in Layout.of(episode).objects
            for pose in (item.start, item.goal)
            if pose is not None
        ]
        for (a, a_m), (b, b_m) in itertools.combinations(boxes, 2):
            assert math.dist(a[:2], b[:2]) > a_m + b_m


def test_what_fits_into_the_scene_is_not_brought_along() -> None:
    for episode in generate_episodes(SCENE, load_task("house_cleanup_locobot"), 2, 3):
        assert all(item.template is None for item in Layout.of(episode).objects)


@pytest.mark.slow
def test_the_oracle_carries_what_was_brought_along() -> None:
    task = load_task("house_cleanup_paper")
    (episode,) = generate_episodes(EMPTY, task, 1, 3)
    world = CarryingWorld(task, EMPTY, episode)
    world.run(Oracle())
    assert world.is_done(1.0)


def test_a_scene_without_room_for_what_would_be_brought_says_so() -> None:
    task = load_task("house_cleanup_paper")
    many = replace(task, settings=replace(settings(task), min_objects=200, max_objects=200))
    with pytest.raises(EpisodeError, match=r"wants 200 objects moved; .* can meet 0 .* room on the floor for \d+ more"):
        generate_episodes(EMPTY, many, 1, 0)


def test_a_crosshair_that_meets_nothing_on_the_floor_is_the_tasks_fault() -> None:
    task = load_task("house_cleanup_paper")
    blind = replace(settings(task), reach_m=0.1)
    with pytest.raises(EpisodeError, match="its crosshair meets nothing that stands on the floor"):
        generate_episodes(EMPTY, replace(task, settings=blind), 1, 0)


def test_what_the_papers_crosshair_can_meet() -> None:
    """From 1.5 m up and 20.6 degrees down, a metre of ray ends 1.148 m above the floor."""
    task = load_task("house_cleanup_paper")
    for top_m, met in ((1.14, False), (1.16, True)):
        column = replace(CRATE, size=(0.35, 0.35, top_m), center=(*CRATE.center[:2], top_m / 2))
        scene = tidy_flat((*OBJECTS[:4], column))
        episode = Episode("1", scene.name, SE2(5.0, 2.0, 0.0), ())
        assert bool(rearrangement.grab_places(task, scene, episode, column.id, column.pose)) is met


# --- what validation finds ------------------------------------------------------------------------------------------

GOAL = ObjectPose((2.0, 1.0, 0.15))
GOOD = Episode(
    "1",
    "tidy_flat",
    SE2(2.5, 2.0, 0.0),
    (),
    details=Layout(objects=(RearrangedObject("ball_1", BALL.pose, GOAL, "Ball"),)),
)


def changed(**changes: object) -> Episode:
    return replace(GOOD, details=replace(Layout.of(GOOD), objects=(replace(Layout.of(GOOD).objects[0], **changes),)))


@pytest.mark.parametrize(
    ("episode", "check"),
    [
        (GOOD, None),
        (changed(goal=None), "nothing to rearrange"),
        (changed(id="ghost"), "unknown object"),
        (changed(id="table_1"), "object cannot be moved"),
        (changed(goal=ObjectPose((99.0, 1.0, 0.1))), "object off the map"),
        (changed(goal=ObjectPose((math.nan, 1.0, 0.1))), "object off the map"),
        (changed(start=ObjectPose((2.0, 2.0, 2.4))), "out of reach"),
        (replace(GOOD, details=replace(Layout.of(GOOD), objects=Layout.of(GOOD).objects * 2)), "object twice"),
        (
            replace(
                GOOD,
                details=replace(
                    Layout.of(GOOD), objects=tuple(RearrangedObject(i.id, i.pose, GOAL) for i in OBJECTS[2:6])
                ),
            ),
            "too many objects",
        ),
        (
            replace(GOOD, details=replace(Layout.of(GOOD), program=Program(({"subject": "ghost", "on": "rug_1"},)))),
            "program is wrong",
        ),
        (
            replace(
                GOOD,
                details=replace(Layout.of(GOOD), program=Program(({"subject": "ball_1", "on": {"some": "Ghost"}},))),
            ),
            "program is wrong",
        ),
    ],
)
def test_validation_lists_what_is_odd(episode: Episode, check: str | None) -> None:
    found = {finding.check for finding in validate([episode], load_task("rearrangement_geometric"), SCENE).findings}
    assert check in found if check else not found


def test_a_task_of_predicates_wants_programs() -> None:
    task = load_task("rearrangement_predicate")
    assert "no program" in {finding.check for finding in validate([GOOD], task, SCENE).findings}
    with pytest.raises(EpisodeError, match="has no program"):
        rearrangement.resolve_goals(task, SCENE, GOOD)
    wrong = replace(GOOD, details=replace(Layout.of(GOOD), program=Program(({"subject": "ghost", "on": "rug_1"},))))
    with pytest.raises(EpisodeError, match="no object 'ghost'"):
        rearrangement.resolve_goals(task, SCENE, wrong)


@pytest.mark.parametrize(
    ("episode", "part"),
    [
        (replace(GOOD, details=replace(Layout.of(GOOD), objects=())), "is empty"),
        (changed(id="ghost"), "no object 'ghost'"),
        (changed(id="table_1"), "cannot be moved"),
        (changed(goal=BALL.pose), "nothing to rearrange"),
        (changed(start=ObjectPose((1.0, 1.0, math.inf))), "not finite"),
        (changed(goal=ObjectPose((1.0, 1.0, 0.1), (1.0, 1.0, 0.0, 0.0))), "not of length 1"),
        (replace(GOOD, details=replace(Layout.of(GOOD), objects=Layout.of(GOOD).objects * 2)), "twice"),
    ],
)
def test_an_episode_that_cannot_be_run_says_why(episode: Episode, part: str) -> None:
    with pytest.raises(EpisodeError, match=part):
        rearrangement.targets(load_task("rearrangement_geometric"), episode, SCENE)


@pytest.mark.parametrize(
    ("template", "size_m"),
    [
        ("025_mug", (0.08, 0.08, 0.082)),
        ("box_30x20x125", (0.3, 0.2, 1.25)),
        ("box_0x1x2", (0.01, 0.01, 0.02)),
        ("a/box_30x30x5.glb", (0.3, 0.3, 0.05)),
        ("box_1000x1x1", (0.1, 0.1, 0.1)),
        ("box_1x1x1x1", (0.1, 0.1, 0.1)),
        ("gearbox", (0.1, 0.1, 0.1)),
    ],
)
def test_the_size_of_a_model(template: str, size_m: tuple[float, float, float]) -> None:
    assert model_size_m(template) == size_m


def test_what_an_episode_brings_along_has_the_size_of_its_model() -> None:
    brought = RearrangedObject("box", BALL.pose, GOAL, template="objects/003_cracker_box.object_config.json")
    episode = replace(GOOD, details=replace(Layout.of(GOOD), objects=(brought,)))
    assert rearrangement.scene_object(SCENE, episode, "box").size == (0.06, 0.16, 0.23)
    rearrangement.resolve_goals(load_task("rearrangement_geometric"), SCENE, episode)


def test_a_leaning_objects_box_is_around_it() -> None:
    lying = ObjectPose((1.0, 1.0, 0.1), (math.cos(math.pi / 4), math.sin(math.pi / 4), 0.0, 0.0))
    box = rearrangement.upright_box(BOWL, lying)
    assert box.size == pytest.approx((0.25, 0.12, 0.25))
    assert rearrangement.upright_box(RUG, RUG.pose).size == RUG.size
