"""Episode files of each format: what is read from them, and that writing loses nothing."""

from __future__ import annotations

import copy
import gzip
import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises_naming
from small_flat import flat, objectnav_task, pointnav_task

from robot_runtime.common.geometry import SE2, thor_to_ros_position
from robot_runtime.datasets.files import load_episodes, save_episodes
from robot_runtime.datasets.io import parse, read_json
from robot_runtime.errors import EpisodeError, RecordingError
from robot_runtime.task_kinds.objectnav import format_habitat as habitat_objectnav
from robot_runtime.task_kinds.objectnav import format_robothor as robothor
from robot_runtime.task_kinds.objectnav import kind as objectnav
from robot_runtime.task_kinds.pointnav import format_habitat as habitat_pointnav
from robot_runtime.tasks.episode import Episode, Goal

HERE = Path("memory.json")


def pointnav_record(**changes: Any) -> dict[str, Any]:
    """A record in the form of the challenge of 2019; the numbers are made up."""
    return {
        "episode_id": "17",
        "scene_id": "/data/gibson/Somewhere.glb",
        "start_position": [1.5, 0.25, -2.0],
        "start_rotation": [0.0, math.sin(0.3), 0.0, math.cos(0.3)],
        "info": {"geodesic_distance": 5.5, "difficulty": "easy"},
        "goals": [{"position": [-3.0, 0.25, 4.0], "radius": None}],
        "shortest_paths": None,
        "start_room": None,
        **changes,
    }


def objectnav_document() -> dict[str, Any]:
    """Two towels and a chair in one scene, in the form of the MP3D dataset; the numbers are made up."""

    def goal(object_id: int, category: str, x: float) -> dict[str, Any]:
        view = {"agent_state": {"position": [x, 0.1, 0.5], "rotation": [0.0, 0.6, 0.0, 0.8]}, "iou": 0.08}
        return {
            "position": [x + 0.5, 1.2, 0.5],
            "radius": None,
            "object_id": object_id,
            "object_name": f"0_9_{object_id}",
            "object_category": category,
            "room_id": None,
            "room_name": None,
            "view_points": [view, {**view, "iou": 1.83}],
        }

    def episode(episode_id: str, category: str) -> dict[str, Any]:
        return {
            "episode_id": episode_id,
            "scene_id": "mp3d/abc/abc.glb",
            "start_position": [-6.5, 1.0, -2.75],
            "start_rotation": [0, 0.9828, 0, 0.18469],
            "info": {"geodesic_distance": 8.875, "euclidean_distance": 8.5, "closest_goal_object_id": 230},
            "goals": [],
            "start_room": None,
            "shortest_paths": [[{"position": None, "rotation": None, "action": 2}, {"action": 1}, None]],
            "object_category": category,
        }

    return {
        "episodes": [episode("2706", "towel"), episode("2706", "chair"), episode("3", "towel")],
        "goals_by_category": {
            "abc.glb_towel": [goal(230, "towel", 1.0), goal(231, "towel", 2.0)],
            "abc.glb_chair": [goal(7, "chair", -3.0)],
        },
        "category_to_task_category_id": {"chair": 0, "towel": 12},
        "category_to_mp3d_category_id": {"chair": 3, "towel": 20},
    }


def robothor_record(**changes: Any) -> dict[str, Any]:
    return {
        "id": "FloorPlan_Val9_9_Mug_0",
        "scene": "FloorPlan_Val9_9",
        "object_type": "Mug",
        "initial_position": {"x": 4.75, "y": 0.9009996652603149, "z": -1.5},
        "initial_orientation": 30,
        "initial_horizon": 30,
        "shortest_path": [{"x": 4.75, "y": 0.01018, "z": -1.5}, {"x": 4.75, "y": 0.01018, "z": 0.5}],
        "shortest_path_length": 2.0,
        **changes,
    }


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(document).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


# --- PointNav -------------------------------------------------------------------------------------------------------


def test_pointnav_positions_and_heading_come_out_in_the_map_frame() -> None:
    (episode,) = parse(habitat_pointnav.reader, {"episodes": [pointnav_record()]}, HERE)
    assert (episode.id, episode.scene) == ("17", "/data/gibson/Somewhere.glb")
    # Habitat's -z is ROS x, Habitat's -x is ROS y.
    assert (episode.start.x_m, episode.start.y_m, episode.start_z_m) == (2.0, -1.5, 0.25)
    assert episode.start.yaw_rad == pytest.approx(0.6)
    assert episode.goals == (Goal(-4.0, 3.0, 0.25),)
    assert episode.shortest_path_m == 5.5
    assert episode.shortest_path == ()
    assert episode.category is None


def test_pointnav_paths_with_positions_are_read_and_those_with_actions_only_are_kept() -> None:
    steps = [{"position": [0.0, 0.0, -z], "rotation": None, "action": None} for z in (0.0, 1.0, 2.5)]
    with_positions, with_actions = parse(
        habitat_pointnav.reader,
        {"episodes": [pointnav_record(shortest_paths=[steps]), pointnav_record(shortest_paths=[[1, 1, 2, None]])]},
        HERE,
    )
    assert with_positions.shortest_path == ((0.0, 0.0), (1.0, 0.0), (2.5, 0.0))
    assert with_actions.shortest_path == ()
    assert with_actions.info["shortest_paths"] == [[1, 1, 2, None]]


def test_a_split_without_episodes_stands_for_its_content_folder(tmp_path: Path) -> None:
    split = write(tmp_path / "val" / "val.json.gz", {"episodes": []})
    write(tmp_path / "val" / "content" / "b.json.gz", {"episodes": [pointnav_record(episode_id="b0")]})
    write(tmp_path / "val" / "content" / "a.json.gz", {"episodes": [pointnav_record(episode_id=i) for i in "01"]})
    assert [episode.id for episode in load_episodes(split)] == ["0", "1", "b0"]
    assert load_episodes(split) == load_episodes(split)
    assert load_episodes(tmp_path / "val") == load_episodes(split)


def test_a_split_with_episodes_of_its_own_is_read_alone(tmp_path: Path) -> None:
    split = write(tmp_path / "val.json.gz", {"episodes": [pointnav_record()]})
    write(tmp_path / "content" / "a.json.gz", {"episodes": [pointnav_record(episode_id="other")]})
    assert [episode.id for episode in load_episodes(split)] == ["17"]


# --- ObjectNav ------------------------------------------------------------------------------------------------------


def test_objectnav_goals_are_looked_up_by_scene_and_category() -> None:
    towel, chair, towel_again = parse(habitat_objectnav.reader, objectnav_document(), HERE)
    assert towel.category == "towel"
    assert [goal.object_id for goal in towel.goals] == ["230", "231"]
    assert [goal.object_id for goal in chair.goals] == ["7"]
    assert towel_again.goals is towel.goals, "goals are shared, not copied, between episodes"
    assert towel.id == chair.id
    assert towel.key != chair.key
    goal = towel.goals[0]
    assert (goal.x_m, goal.y_m, goal.z_m) == (-0.5, -1.5, 1.2)
    assert len(goal.view_points) == 2
    assert (goal.view_points[0].x_m, goal.view_points[0].y_m) == (-0.5, -1.0)
    assert goal.view_points[0].yaw_rad == pytest.approx(2 * math.atan2(0.6, 0.8))


def test_objectnav_goals_may_stand_in_the_episodes() -> None:
    document = objectnav_document()
    for episode in document["episodes"]:
        episode["goals"] = document["goals_by_category"][f"abc.glb_{episode['object_category']}"]
    del document["goals_by_category"]
    inline = parse(habitat_objectnav.reader, document, HERE)
    assert [e.goals for e in inline] == [e.goals for e in parse(habitat_objectnav.reader, objectnav_document(), HERE)]


def test_objectnav_content_files_have_their_own_goals(tmp_path: Path) -> None:
    document = objectnav_document()
    ids = {name: value for name, value in document.items() if name.startswith("category")}
    split = write(tmp_path / "val.json.gz", {"episodes": [], **ids})
    write(tmp_path / "content" / "abc.json.gz", document)
    assert load_episodes(split) == parse(habitat_objectnav.reader, document, HERE)


def test_objectnav_needs_one_set_of_goals_per_scene_and_category(tmp_path: Path) -> None:
    towel, _, again = parse(habitat_objectnav.reader, objectnav_document(), HERE)
    moved = replace(again, goals=(replace(again.goals[0], x_m=9.0), again.goals[1]))
    with raises_naming(EpisodeError, "'3'", "glb_towel"):
        habitat_objectnav.save(tmp_path / "x.json.gz", [towel, moved])


def test_objectnav_needs_ids_for_its_categories(tmp_path: Path) -> None:
    made = Episode("0", "flat", SE2(), (Goal(1, 1, view_points=(SE2(1, 0),)),), category="chair")
    with raises_naming(EpisodeError, "category_ids"):
        habitat_objectnav.save(tmp_path / "x.json", [made])
    with raises_naming(EpisodeError, "goal category"):
        habitat_objectnav.save(tmp_path / "x.json", [replace(made, category=None)], {"chair": 0})
    habitat_objectnav.save(tmp_path / "x.json", [made], {"chair": 0})
    assert read_json(tmp_path / "x.json")["category_to_task_category_id"] == {"chair": 0}


# --- writing --------------------------------------------------------------------------------------------------------


def test_reading_and_writing_pointnav_gives_the_same_document(tmp_path: Path) -> None:
    path = [{"position": [0.1, 0.2, 0.3], "rotation": [0, 0, 0, 1], "action": 1}]
    document = {
        "episodes": [
            pointnav_record(),
            pointnav_record(episode_id="18", start_rotation=[0, 0.03204, 0, -0.99949], shortest_paths=[path]),
            pointnav_record(info={}, scene_dataset_config="default", additional_obj_config_paths=[]),
            pointnav_record(goals=[{"position": [1, 2, 3], "radius": 0.2}, {"position": [1.0, 2, 3.5], "radius": 1}]),
        ],
        "content_scenes_path": "{data_path}/content/{scene}.json.gz",
    }
    episodes = load_episodes(write(tmp_path / "in.json.gz", document))
    habitat_pointnav.save(tmp_path / "out.json.gz", episodes)
    assert read_json(tmp_path / "out.json.gz") == document
    assert load_episodes(tmp_path / "out.json.gz") == episodes


def test_reading_and_writing_objectnav_gives_the_same_document(tmp_path: Path) -> None:
    document = objectnav_document()
    episodes = load_episodes(write(tmp_path / "in.json", document))
    save_episodes(tmp_path / "deep" / "out.json.gz", episodes, objectnav_task())
    assert read_json(tmp_path / "deep" / "out.json.gz") == document


def test_a_changed_heading_is_written_and_an_unchanged_one_keeps_its_quaternion(tmp_path: Path) -> None:
    (episode,) = parse(
        habitat_pointnav.reader, {"episodes": [pointnav_record(start_rotation=[0, -0.6, 0, -0.8])]}, HERE
    )
    turned = replace(episode, id="turned", start=replace(episode.start, yaw_rad=1.0))
    habitat_pointnav.save(tmp_path / "out.json", [episode, turned])
    same, new = read_json(tmp_path / "out.json")["episodes"]
    assert same["start_rotation"] == [0, -0.6, 0, -0.8]
    assert new["start_rotation"] == pytest.approx([0, math.sin(0.5), 0, math.cos(0.5)])


def test_replaced_goals_do_not_take_over_what_the_old_ones_had(tmp_path: Path) -> None:
    task, scene = objectnav_task(), flat()
    document = objectnav_document()
    chair = replace(parse(habitat_objectnav.reader, document, HERE)[1], goals=())
    resolved = objectnav.KIND.resolve_goals(task, scene, chair)
    habitat_objectnav.save(tmp_path / "out.json", [resolved])
    (again,) = load_episodes(tmp_path / "out.json")
    assert [goal.object_id for goal in again.goals] == ["chair_west", "chair_east"]
    assert_same_poses(again.goals[0].view_points, resolved.goals[0].view_points)


def test_the_same_episodes_give_the_same_bytes(tmp_path: Path) -> None:
    episodes = parse(habitat_pointnav.reader, {"episodes": [pointnav_record()]}, HERE)
    for name in ("a.json.gz", "b.json.gz"):
        habitat_pointnav.save(tmp_path / name, episodes)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="is a file, where a folder is needed"):
        habitat_pointnav.save(tmp_path / "file" / "out.json", [])


def assert_same_poses(found: tuple[SE2, ...], expected: tuple[SE2, ...]) -> None:
    for a, b in zip(found, expected, strict=True):
        assert (a.x_m, a.y_m) == (b.x_m, b.y_m)
        assert math.cos(a.yaw_rad - b.yaw_rad) == pytest.approx(1, abs=1e-12)


METRES = st.floats(-50, 50)
POSES = st.builds(SE2, METRES, METRES, st.floats(-3.14, 3.14))
TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=12)
POINT_EPISODES = st.builds(
    Episode,
    id=TEXTS,
    scene=TEXTS,
    start=POSES,
    start_z_m=METRES,
    goals=st.lists(st.builds(Goal, METRES, METRES, METRES), min_size=1, max_size=3).map(tuple),
    shortest_path_m=st.none() | st.floats(0, 100),
    shortest_path=st.lists(st.tuples(METRES, METRES), max_size=4).map(tuple),
)


@given(episodes=st.lists(POINT_EPISODES, min_size=1, max_size=4))
def test_any_pointnav_episode_survives_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, episodes: list[Episode]
) -> None:
    path = tmp_path_factory.mktemp("pointnav") / "episodes.json.gz"
    save_episodes(path, episodes, pointnav_task())
    again = load_episodes(path)
    for found, expected in zip(again, episodes, strict=True):
        assert replace(found, start=expected.start, info={}) == expected
        assert_same_poses((found.start,), (expected.start,))
    save_episodes(path, again, pointnav_task())
    assert load_episodes(path) == again, "a second round changes nothing at all"


VIEWED_GOALS = st.builds(
    Goal, METRES, METRES, st.floats(0, 2.4), object_id=TEXTS, view_points=st.lists(POSES, max_size=3).map(tuple)
)


@given(
    goals=st.lists(VIEWED_GOALS, min_size=1, max_size=3).map(tuple),
    starts=st.lists(POSES, min_size=1, max_size=3),
    category=st.sampled_from(["chair", "plant"]),
)
def test_any_objectnav_episode_survives_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, goals: tuple[Goal, ...], starts: list[SE2], category: str
) -> None:
    episodes = [
        Episode(str(i), "flat", start, goals, category=category, shortest_path_m=2.5) for i, start in enumerate(starts)
    ]
    path = tmp_path_factory.mktemp("objectnav") / "episodes.json"
    save_episodes(path, episodes, objectnav_task())
    again = load_episodes(path)
    for found, expected in zip(again, episodes, strict=True):
        assert (found.id, found.category, found.shortest_path_m) == (expected.id, category, 2.5)
        for goal, wanted in zip(found.goals, goals, strict=True):
            assert replace(goal, view_points=()) == replace(wanted, view_points=())
            assert_same_poses(goal.view_points, wanted.view_points)
    save_episodes(path, again, objectnav_task())
    assert load_episodes(path) == again


# --- RoboTHOR -------------------------------------------------------------------------------------------------------


def test_robothor_comes_out_right_handed_in_meters_and_radians() -> None:
    (episode,) = parse(robothor.reader, [robothor_record()], HERE)
    # THOR's z is ROS x, THOR's -x is ROS y; clockwise becomes counter-clockwise; looking down is negative.
    assert (episode.start.x_m, episode.start.y_m, episode.start_z_m) == (-1.5, -4.75, 0.0)
    assert episode.start.yaw_rad == pytest.approx(math.radians(-30))
    assert episode.start_tilt_rad == pytest.approx(math.radians(-30))
    assert episode.shortest_path == ((-1.5, -4.75), (0.5, -4.75))
    assert episode.shortest_path_m == 2.0
    assert (episode.category, episode.goals) == ("Mug", ())


def test_robothor_2020_names_the_object() -> None:
    record = robothor_record(object_id="Mug|1|2|3", target_position={"x": 1.0, "y": 0.8, "z": 2.0}, difficulty="hard")
    del record["initial_horizon"]
    (episode,) = parse(robothor.reader, [record], HERE)
    assert episode.goals == (Goal(2.0, -1.0, 0.8, object_id="Mug|1|2|3"),)
    assert episode.start_tilt_rad is None
    assert episode.info["difficulty"] == "hard"


def test_robothor_test_split_has_no_paths() -> None:
    record = {name: value for name, value in robothor_record().items() if not name.startswith("shortest_path")}
    (episode,) = parse(robothor.reader, [record], HERE)
    assert episode.shortest_path_m is None
    assert episode.shortest_path == ()


@pytest.mark.parametrize(("split", "count", "zero"), [("val", 1800, 108), ("debug", 4, None)])
def test_the_real_robothor_files_load_completely(shared_data: Path, split: str, count: int, zero: int | None) -> None:
    episodes = load_episodes(shared_data / "robothor" / split)
    assert len(episodes) == count
    assert len({episode.id for episode in episodes}) == count
    assert len({episode.key for episode in episodes}) == count
    raw = [record for file in sorted((shared_data / "robothor" / split).iterdir()) for record in read_json(file)]
    for episode, record in zip(episodes, raw, strict=True):
        x_m, y_m, _ = thor_to_ros_position(*(record["initial_position"][axis] for axis in "xyz"))
        assert (episode.id, episode.scene, episode.category) == (record["id"], record["scene"], record["object_type"])
        assert (episode.start.x_m, episode.start.y_m) == (x_m, y_m)
        assert episode.start_tilt_rad == pytest.approx(math.radians(-30))
        length = sum(math.dist(a, b) for a, b in pairwise(episode.shortest_path))
        assert length == pytest.approx(record["shortest_path_length"], abs=1e-6), "the planar path has the 3-D length"
    if zero is not None:
        assert sum(episode.shortest_path_m == 0 for episode in episodes) == zero


# --- telling them apart ---------------------------------------------------------------------------------------------


def test_the_format_is_told_by_content_not_by_name(tmp_path: Path) -> None:
    assert load_episodes(write(tmp_path / "a.json", [robothor_record()])) == load_episodes(tmp_path / "a.json")
    objects = load_episodes(write(tmp_path / "b.data", objectnav_document()))
    assert objects == load_episodes(tmp_path / "b.data")
    assert objects[0].category == "towel"
    assert load_episodes(write(tmp_path / "c.gz", {"episodes": [pointnav_record()]}))[0].category is None
    disguised = tmp_path / "d.json"
    disguised.write_bytes(gzip.compress(json.dumps([robothor_record()]).encode()))
    assert load_episodes(disguised)[0].category == "Mug"


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    write(tmp_path / "2.json.gz", [robothor_record(id="second")])
    write(tmp_path / "1.json", [robothor_record(id="first")])
    (tmp_path / "README.md").write_text("not episodes")
    assert [episode.id for episode in load_episodes(tmp_path)] == ["first", "second"]
    empty = tmp_path / "empty"
    empty.mkdir()
    with raises_naming(EpisodeError, ".json"):
        load_episodes(empty)


@pytest.mark.parametrize(
    "document",
    [
        {"episodes": [{**pointnav_record(), "object_category": "chair", "goal_image_id": 1}], "goals": {}},
        {"results": []},
        {"episodes": 3},
        [1, 2],
        [{"x": 1}],
        "text",
        None,
        3.5,
    ],
)
def test_other_schemas_are_refused_by_name(tmp_path: Path, document: Any) -> None:
    path = write(tmp_path / "other.json", copy.deepcopy(document))
    with raises_naming(EpisodeError, "schema") as caught:
        load_episodes(path)
    assert str(path) in caught.value.message
    assert "PointNav-v1" in caught.value.remedy
