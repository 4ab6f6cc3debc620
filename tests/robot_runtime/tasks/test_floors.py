"""What an episode or scene has on another floor than the map's is refused, left out, or said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from open_room import make_scene
from raising import raises_naming
from said import command_says
from small_campaign import write_light_task
from small_flat import flat, pointnav_task
from synthetic import header, pointnav_episode

from robot_runtime.actions.discrete import Action
from robot_runtime.common.geometry import SE2
from robot_runtime.datasets import native_yaml
from robot_runtime.datasets.formats import generate_episodes
from robot_runtime.datasets.validate import validate
from robot_runtime.errors import ConfigError, OtherFloor, RuntimeFault, SceneError
from robot_runtime.scenes.geodesic import GeodesicMap
from robot_runtime.scenes.scene import Scene, SceneObject, find_scene, load_scene
from robot_runtime.scenes.scene_notes import scene_notes
from robot_runtime.scoring.summary import score_log
from robot_runtime.tasks.episode import Episode, Goal
from robot_runtime.tasks.episode_check import check_episode
from robot_runtime.tasks.task import load_task

EPISODE = Episode("0", "small_flat", SE2(0.5, 2.5), (Goal(4.0, 2.0),))


def check(episode: Episode, scene: Scene) -> Episode:
    task = pointnav_task()
    return check_episode(task, scene, episode, GeodesicMap(scene.map, task.robot_radius_m))


@pytest.mark.parametrize(
    ("episode", "names"),
    [
        (replace(EPISODE, goals=(Goal(4.0, 2.0, 3.2),)), ("goal", "3.20 m above")),
        (replace(EPISODE, goals=(Goal(4.0, 2.0, -2.8),)), ("goal", "2.80 m below")),
        (replace(EPISODE, start_z_m=3.2, goals=(Goal(4.0, 2.0, 3.2),)), ("start", "3.20 m above")),
    ],
)
def test_an_episode_of_another_floor_is_not_run(episode: Episode, names: tuple[str, ...]) -> None:
    with raises_naming(OtherFloor, "'0'", *names):
        check(episode, flat())
    assert validate([episode], scene=flat()).count("other floor") == 1


@pytest.mark.slow
def test_an_episode_of_another_floor_costs_itself_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task, scene = load_task(str(write_light_task(tmp_path))), load_scene(find_scene("arena"))
    first, second = generate_episodes(scene, task, 2, 7)
    upstairs = tuple(replace(goal, z_m=3.2) for goal in first.goals)
    native_yaml.save(tmp_path / "val.yaml", [replace(first, goals=upstairs), second])
    command = ["run", "--robot", "fake", "--scene", "arena", "--task", tmp_path / "light.yaml", "--agent", "random"]
    said = command_says(capsys, *command, "--episodes", tmp_path / "val.yaml", "--out", tmp_path / "logs")
    assert "not run: episode '0': the goal is 3.20 m above the floor" in said
    assert "remedy: use episodes of this floor" in said  # so it does not exit with 0
    (log,) = (tmp_path / "logs").glob("*.mcap")
    assert score_log(log).episode == second.id


def test_a_log_with_its_goal_on_another_floor_has_no_score(record: Callable[..., Path]) -> None:
    start = header(episode=pointnav_episode(goals=(Goal(4.0, 1.9, 3.2),)))
    assert "its goal is +3.20 m from its start" in score_log(record(start, [Action.STOP])).reason


def test_goals_on_other_floors_do_not_count() -> None:
    both = replace(EPISODE, goals=(Goal(4.0, 2.0, 3.2), Goal(4.0, 2.0, 0.1)))
    assert [goal.z_m for goal in check(both, flat()).goals] == [0.1]


@pytest.mark.parametrize("z_m", [-0.3, 0.0, 0.9, 1.4])
def test_steps_and_navigation_meshes_are_on_the_floor(z_m: float) -> None:
    check(replace(EPISODE, start_z_m=z_m / 2, goals=(Goal(4.0, 2.0, z_m),)), flat())


def test_objects_hang_up_to_the_ceiling() -> None:
    view = (SE2(4.0, 2.0),)
    high = replace(EPISODE, goals=(Goal(4.0, 2.0, 2.2, "lamp", view),), category="lamp")
    assert not validate([high], scene=flat()).count("other floor")
    upstairs = replace(high, goals=(Goal(4.0, 2.0, 3.3, "lamp", view),))
    assert validate([upstairs], scene=flat()).count("other floor") == 1


def test_an_imported_scene_has_the_floor_of_its_source() -> None:
    shifted = replace(flat(), file=replace(flat().file, source={"floor_shift_m": -3.2}))
    assert shifted.floor_z_m == pytest.approx(3.2)
    check(replace(EPISODE, start_z_m=3.2, goals=(Goal(4.0, 2.0, 3.3),)), shifted)
    with pytest.raises(OtherFloor):
        check(EPISODE, shifted)


def test_without_a_scene_a_goal_a_storey_away_is_a_finding() -> None:
    assert validate([replace(EPISODE, goals=(Goal(4.0, 2.0, 3.2),))]).count("goal on another floor") == 1
    assert not validate([replace(EPISODE, start_z_m=3.2, goals=(Goal(4.0, 2.0, 3.2),))]).count("goal on another floor")


# --- scenes -----------------------------------------------------------------------------------------------------------


def written(folder: Path, polygon: list[list[float]], *others: list[list[float]]) -> Path:
    """A scene of 6 x 6 m, x and y from -3 to 3 m, with rooms of these corners."""
    make_scene().map.save(folder / "map.yaml")
    rooms = [{"id": f"r{i}", "category": "hall", "polygon": corners} for i, corners in enumerate((polygon, *others))]
    (folder / "scene.yaml").write_text(yaml.safe_dump({"schema": 1, "name": "s", "rooms": rooms, "objects": []}))
    return folder


SQUARE = [[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]]


@pytest.mark.parametrize("polygon", [SQUARE, SQUARE[::-1], [[-2, -2], [2, -2], [2, 0], [0, 0], [0, 2], [-2, 2]]])
def test_rooms_of_any_shape_and_order_are_read(tmp_path: Path, polygon: list[list[float]]) -> None:
    assert not list(scene_notes(load_scene(written(tmp_path, polygon))))


@pytest.mark.parametrize(
    ("polygon", "names"),
    [
        ([[0, 0], [2, 2], [2, 0], [0, 2]], ("'r0'", "cross", "[2.0, 2.0]")),
        ([[100, 100], [104, 100], [104, 104]], ("'r0'", "off the map", "-3.00 to 3.00")),
        ([[-2000, -2000], [-1000, -2000], [-1000, -1000]], ("'r0'", "off the map", "meters")),
        ([[0, 0], [1, 1]], ("r0", "3 corners")),
    ],
)
def test_rooms_that_cannot_be_are_refused(tmp_path: Path, polygon: list[list[float]], names: tuple[str, ...]) -> None:
    with raises_naming(RuntimeFault, *names) as caught:
        load_scene(written(tmp_path, polygon))
    assert isinstance(caught.value, (SceneError, ConfigError))


def test_rooms_that_overlap_or_leave_the_map_are_notes(tmp_path: Path) -> None:
    beyond = [[1.0, -2.0], [5.0, -2.0], [5.0, 2.0], [1.0, 2.0]]
    notes = list(scene_notes(load_scene(written(tmp_path, SQUARE, beyond))))
    assert [note.partition(":")[0] for note in notes] == [
        "room 'r1' lies to 50 % off the map",
        "rooms 'r0' and 'r1' overlap by about 4.0 m²",
    ]


def test_objects_on_another_floor_or_off_the_map_are_notes() -> None:
    scene = make_scene()
    upstairs = SceneObject("bed_1", "bed", (2.0, 2.0, 3.3), (1.0, 1.0, 0.5))
    outside = SceneObject("bed_2", "bed", (9.0, 2.0, 0.3), (1.0, 1.0, 0.5))
    scene = replace(scene, file=replace(scene.file, objects=(*scene.objects, upstairs, outside)))
    upstairs_note, outside_note = scene_notes(scene)
    assert "'bed_1' is at z = 3.30 m" in upstairs_note
    assert "'bed_2' is off the map" in outside_note
