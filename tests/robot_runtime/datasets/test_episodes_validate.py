"""Findings of ``episodes validate`` by themselves, against a task, and against a scene."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from episode_documents import SITE_YAML, eqa_document, ithor_scenes, r2r_document, r2r_truth
from hypothesis import given
from hypothesis import strategies as st
from small_flat import flat, objectnav_task, pointnav_task
from test_episodes_formats import objectnav_document, pointnav_record, robothor_record

from robot_runtime.cli.main import run_command
from robot_runtime.common.geometry import SE2
from robot_runtime.datasets.files import iter_readable, load_episodes
from robot_runtime.datasets.io import parse, write_json
from robot_runtime.datasets.validate import all_checks, validate
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.task_kinds.eqa import format_mp3d as mp3d_eqa
from robot_runtime.task_kinds.objectnav import format_habitat as habitat_objectnav
from robot_runtime.task_kinds.objectnav import format_robothor as robothor
from robot_runtime.task_kinds.pointnav import format_habitat as habitat_pointnav
from robot_runtime.task_kinds.rearrangement import format_ithor as ithor_rearrangement
from robot_runtime.task_kinds.rearrangement.task import Layout
from robot_runtime.task_kinds.vln.kind import Instruction, Route
from robot_runtime.tasks.episode import Episode, Goal, RearrangedObject

HERE = Path("memory.json")


def good(**changes: Any) -> Episode:
    """A PointNav episode in the small flat without a problem."""
    path = ((0.5, 2.5), (2.5, 3.5), (3.5, 3.5), (4.0, 2.0))
    length_m = sum(math.dist(a, b) for a, b in pairwise(path))
    episode = Episode("0", "small_flat", SE2(0.5, 2.5), (Goal(4.0, 2.0),), shortest_path_m=length_m, shortest_path=path)
    return replace(episode, **changes)


def checks(*episodes: Episode, **options: Any) -> dict[str, int]:
    return {finding.check: finding.count for finding in validate(episodes, **options).findings}


def test_a_good_episode_has_nothing_odd() -> None:
    assert checks(good()) == {}
    assert checks(good(), task=pointnav_task(), scene=flat()) == {}
    assert checks() == {}


@pytest.mark.parametrize(
    ("headings", "odd"), [((1.2, 2.9, -0.5), True), ((1.2, 2.9, -90), False), ((0, 0, 0), False), ((1, 2), False)]
)
def test_headings_that_may_all_be_radians_are_said(headings: tuple[float, ...], odd: bool) -> None:
    starts = [good(id=str(i), start=SE2(0.5, 2.5, math.radians(deg))) for i, deg in enumerate(headings)]
    assert validate(starts).count("small headings") == (len(starts) if odd else 0)


@pytest.mark.parametrize(
    ("episodes", "found"),
    [
        ([good(), good(start=SE2(0.5, 2.5, 1.0))], {"repeated id"}),
        ([good(), good()], {"repeated id", "repeated episode"}),
        ([good(shortest_path_m=-1.0, shortest_path=())], {"length below zero"}),
        ([good(start=SE2(0.5, 2.5, math.radians(1.5708)))], {"impossible number"}),
        ([good(shortest_path_m=5120.0, shortest_path=())], {"impossible number"}),
        ([good(goals=(Goal(4000.0, 2000.0),))], {"impossible number"}),
        ([good(shortest_path_m=None)], {"no length"}),
        ([good(shortest_path_m=0.0, shortest_path=())], {"zero length"}),
        ([good(shortest_path_m=9.0)], {"length is not the path's"}),
        ([good(shortest_path_m=2.0, shortest_path=())], {"shorter than straight"}),
        ([good(start=SE2(0.5, 2.498))], {"start is not the path's"}),
        ([good(goals=())], {"no goal"}),
        ([good(goals=(), details=Route(instruction=Instruction("Go on.")))], {"no goal"}),
        ([good(goals=(), category="chair")], set()),
        ([good(shortest_path=(), shortest_path_m=3.6, category="chair")], {"ratio below threshold"}),
        ([good(details=Route(instruction=Instruction(" ")))], {"empty instruction"}),
        ([good(details=Layout(objects=(RearrangedObject("a", ObjectPose((1, 2, 3))),)))], {"nothing to rearrange"}),
        ([good(info={"info": {"best_viewpoint_position": [-2.5, 0.0, -0.5]}})], {"best view point is the start"}),
    ],
)
def test_each_oddity_is_found_and_no_other(episodes: list[Episode], found: set[str]) -> None:
    assert checks(*episodes).keys() == found
    assert found <= all_checks().keys()


def test_the_ratio_has_a_threshold_that_can_be_set() -> None:
    episode = good(category="chair", shortest_path=(), shortest_path_m=1.2 * math.dist((0.5, 2.5), (4.0, 2.0)))
    assert checks(episode) == {}
    assert checks(episode, min_ratio=1.3) == {"ratio below threshold": 1}
    stated = replace(episode, info={"info": {"euclidean_distance": 4.2}})
    assert checks(stated) == {"ratio below threshold": 1}, "the file's own Euclidean distance goes first"
    assert checks(replace(stated, category=None)) == {}, "PointNav keeps straight ones now and then"


def test_the_way_to_an_object_is_measured_to_its_nearest_view_point() -> None:
    seen = Goal(4.5, 2.5, 0.0, "chair_1", (SE2(3.5, 2.5), SE2(4.5, 1.5)))
    stated = {"info": {"euclidean_distance": 4.0}}
    episode = good(category="chair", goals=(seen,), shortest_path=(), shortest_path_m=3.3, info=stated)
    assert checks(episode) == {}, "3 m to the view point; the 4 m of HM3D's files are to the object"
    assert checks(replace(episode, shortest_path_m=2.8)).keys() == {"shorter than straight", "ratio below threshold"}
    unseen = replace(episode, goals=(replace(seen, view_points=()),))
    assert checks(unseen).keys() == {"shorter than straight", "ratio below threshold"}


def test_objectnav_files_have_ious_above_one_and_repeated_ids() -> None:
    episodes = parse(habitat_objectnav.reader, objectnav_document(), HERE)
    assert checks(*episodes) == {"repeated id": 1, "iou above 1": 3}
    (finding,) = [f for f in validate(episodes).findings if f.check == "iou above 1"]
    first = finding.examples[0]
    assert (first.index, first.id, first.scene, first.detail) == (0, "2706", "mp3d/abc/abc.glb", "1.830")
    bare = objectnav_document()
    for goals in bare["goals_by_category"].values():
        goals[0]["view_points"] = []
    assert checks(*parse(habitat_objectnav.reader, bare, HERE))["no view points"] == 3


def test_categories_are_the_tasks_or_else_the_files() -> None:
    document = objectnav_document()
    del document["category_to_task_category_id"]["towel"]
    episodes = parse(habitat_objectnav.reader, document, HERE)
    assert checks(*episodes)["unknown category"] == 2
    assert "unknown category" not in checks(*episodes, task=objectnav_task())
    assert checks(good(category="Mug"), task=objectnav_task())["unknown category"] == 1
    assert checks(good(), task=objectnav_task())["unknown category"] == 1, "it has none at all"


def test_answers_are_in_the_vocabulary_and_instructions_in_the_ground_truth(tmp_path: Path) -> None:
    document = eqa_document()
    document["episodes"][1]["question"]["answer_text"] = "beige"
    assert checks(*parse(mp3d_eqa.reader, document, HERE))["answer not in vocabulary"] == 1
    write_json(tmp_path / "a.json", r2r_document())
    assert checks(*load_episodes(tmp_path / "a.json"))["no ground truth"] == 2, "the third has no route to follow"
    write_json(tmp_path / "a_gt.json", r2r_truth())
    assert "no ground truth" not in checks(*load_episodes(tmp_path / "a.json"))


def test_rearrangement_needs_no_path() -> None:
    episodes = parse(ithor_rearrangement.reader, ithor_rearrangement.from_pickled(ithor_scenes(), "val"), HERE)
    assert checks(*episodes) == {}


@pytest.mark.parametrize(
    ("episode", "found"),
    [
        (good(scene="data/small_flat.glb"), set()),
        (good(scene="elsewhere"), {"other scene"}),
        (good(start=SE2(-3.0, 0.0), shortest_path=()), {"start off the map", "shorter than straight"}),
        (good(start=SE2(3.0, 1.0), shortest_path=()), {"start off the map"}),
        (good(goals=(Goal(3.0, 1.0),)), {"goal off the map"}),
        (good(goals=(Goal(3.0, 1.0), Goal(4.0, 2.0))), set()),
        (good(goals=(Goal(4.0, 2.0, object_id="ghost"),)), {"unknown object"}),
        (good(goals=(Goal(5.0, 1.0, view_points=(SE2(5.0, 1.7),)),)), set()),
        (good(goals=(), details=Route(reference_path=((0.5, 2.5, 0.0), (99.0, 2.0, 0.0)))), {"goal off the map"}),
        (
            good(details=Layout(objects=(RearrangedObject("mug", ObjectPose((1, 2, 1)), ObjectPose((2, 2, 1))),))),
            {"unknown object"},
        ),
    ],
)
def test_a_scene_says_what_is_off_its_map(episode: Episode, found: set[str]) -> None:
    assert checks(episode, scene=flat()).keys() == found


def test_a_scene_says_what_cannot_be_reached_and_what_it_has_no_goal_for() -> None:
    assert checks(good(), scene=flat(door=False)) == {"unreachable goal": 1}
    chair = good(category="chair", goals=(), shortest_path=(), shortest_path_m=None)
    assert checks(chair, scene=flat(), task=objectnav_task()) == {"no length": 1}
    bed = validate([replace(chair, category="bed")], objectnav_task(), flat())
    (finding,) = [finding for finding in bed.findings if finding.check == "goal off the map"]
    assert "bed" in finding.examples[0].detail


def test_the_real_robothor_files_have_their_known_oddities(shared_data: Path) -> None:
    report = validate(iter_readable(shared_data / "robothor" / "val"))
    counts = {finding.check: finding.count for finding in report.findings}
    assert report.episodes == 1800
    assert counts == {
        "zero length": 108,
        "ratio below threshold": 865,
        "shorter than straight": 6,
        "start is not the path's": 36,
    }


def test_only_the_first_examples_are_kept() -> None:
    episodes = parse(robothor.reader, [robothor_record(id=str(i), shortest_path_length=0.0) for i in range(9)], HERE)
    report = validate(episodes, examples=2)
    assert report.count("zero length") == 9
    assert [len(finding.examples) for finding in report.findings] == [2] * len(report.findings)


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_lists_problems_and_still_succeeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [pointnav_record(), pointnav_record(), pointnav_record(episode_id="bad", goals=[])]
    write_json(tmp_path / "x.json", {"episodes": records})
    assert run_command(["episodes", "validate", str(tmp_path / "x.json")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "3 episodes, problems:" in out
    assert "repeated id" in out
    assert "unreadable" in out
    assert run_command(["episodes", "validate", str(tmp_path / "x.json"), "--strict"]) == 5
    capsys.readouterr()


def test_the_command_writes_json(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", [robothor_record(shortest_path_length=0.0, shortest_path=[])])
    out = tmp_path / "findings.json"
    arguments = ["episodes", "validate", str(tmp_path / "x.json"), "--json", str(out)]
    assert run_command([*arguments, "--task", "objectnav_robothor2021"]) == 0
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["episodes"] == 1
    assert document["findings"] == [
        {
            "check": "zero length",
            "meaning": all_checks()["zero length"],
            "count": 1,
            "examples": [{"index": 0, "id": "FloorPlan_Val9_9_Mug_0", "scene": "FloorPlan_Val9_9", "detail": "0 m"}],
        }
    ]


def test_the_command_reads_yaml_and_a_clean_file_passes_strictly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lab.yaml").write_text(SITE_YAML)
    assert run_command(["episodes", "validate", str(tmp_path / "lab.yaml")]) == 0
    record = pointnav_record(info={"geodesic_distance": 20.0})
    write_json(tmp_path / "clean.json", {"episodes": [record]})
    assert run_command(["episodes", "validate", str(tmp_path / "clean.json"), "--strict"]) == 0
    assert "no problems found" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_at_all_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["episodes", "validate", str(tmp_path / "nowhere.json")]) == 5
    assert "no such file" in capsys.readouterr().err


# --- anything -------------------------------------------------------------------------------------------------------

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
INFOS = st.dictionaries(st.sampled_from(["info", "goals", "dataset", "ground_truth", "start_rotation"]), ANYTHING)


@given(info=INFOS, view_points=ANYTHING)
def test_whatever_a_file_says_beside_is_no_reason_to_fail(info: dict[str, Any], view_points: Any) -> None:
    validate([good(info=info, category="chair")], objectnav_task())
    validate([good(info={**info, "goals": [{"view_points": view_points}]}, category="chair")])
    (episode,) = parse(habitat_pointnav.reader, {"episodes": [pointnav_record()], **info}, HERE)
    validate(
        [episode, replace(episode, details=replace(Route.of(episode), instruction=Instruction("go")), category="chair")]
    )
