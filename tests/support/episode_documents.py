"""Episode documents of every format, small and made up, for the tests of reading, writing and validating."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def habitat_record(**changes: Any) -> dict[str, Any]:
    """Fields that the records of Habitat's later tasks share: no ``shortest_paths``, no ``start_room``."""
    return {
        "episode_id": "17",
        "scene_id": "mp3d/abc/abc.glb",
        "start_position": [1.5, 0.25, -2.0],
        "start_rotation": [0.0, math.sin(0.3), 0.0, math.cos(0.3)],
        "info": {"geodesic_distance": 5.5},
        "goals": [{"position": [-3.0, 0.25, 4.0], "radius": 3.0}],
        **changes,
    }


def r2r_document() -> dict[str, Any]:
    """Two instructions for one path, ids as numbers, tokens padded with zeros; the third as in a test split."""
    path = [[1.5, 0.25, -2.0], [0.0, 0.25, 0.0], [-3.0, 0.25, 4.0]]

    def record(episode_id: int, text: str) -> dict[str, Any]:
        instruction = {"instruction_text": text, "instruction_tokens": [5, 7, 2, 0, 0, 0]}
        return habitat_record(episode_id=episode_id, trajectory_id=4, instruction=instruction, reference_path=path)

    held_back = record(3, "Go on.")
    for name in ("reference_path", "info"):
        del held_back[name]
    return {
        "episodes": [record(1, "Leave the room."), record(2, "Walk out."), {**held_back, "goals": None}],
        "instruction_vocab": {"word_list": ["<pad>", "leave", "the", "room"], "num_vocab": 4},
    }


def r2r_truth() -> dict[str, Any]:
    """The ground truth of the first two; one location per step and one more."""
    locations = [[1.5, 0.25, -2.0], [1.25, 0.25, -2.0], [1.0, 0.25, -2.0]]
    truth = {"locations": locations, "actions": [1, 1, 0], "forward_steps": 2}
    return {"1": truth, "2": {**truth, "actions": [1, 1, 0]}}


def rxr_document() -> dict[str, Any]:
    """One of RxR's guide file: text ids, a language, and no vocabulary."""
    instruction = {
        "instruction_id": "33",
        "instruction_text": "कमरे से बाहर जाओ",
        "language": "hi-IN",
        "annotator_id": "0",
        "edit_distance": -1.0,
        "timed_instruction": [{"start_time": 0.0, "end_time": 1.5, "word": "कमरे"}],
    }
    path = [[1.5, 0.25, -2.0], [-3.0, 0.25, 4.0]]
    record = habitat_record(trajectory_id="4332", instruction=instruction, reference_path=path)
    return {"episodes": [record]}


def eqa_document() -> dict[str, Any]:
    view = {"position": [-2.5, 0.25, 4.0], "rotation": [0.0, 0.6, 0.0, 0.8]}
    goal = {
        "position": [-3.0, 0.9, 4.0],
        "radius": None,
        "object_id": "12",
        "object_name": "sofa",
        "object_category": None,
        "room_id": None,
        "room_name": None,
        "view_points": [view, view],
    }
    question = {
        "question_text": "what color is the sofa in the living room?",
        "answer_text": "brown",
        "question_tokens": [1, 2, 3],
        "answer_token": 1,
        "question_type": "color_room",
    }
    path = [[{"position": [1.5, 0.25, -2.0], "rotation": [0, 0, 0, 1], "action": 0}]]
    first = habitat_record(goals=[goal], question=question, shortest_paths=path, start_room=None)
    second = {**first, "episode_id": 18, "question": {**question, "answer_token": [1], "question_type": None}}
    return {
        "episodes": [first, second],
        "question_vocab": {"word_list": ["what", "color", "is"]},
        "answer_vocab": {"word_list": ["red", "brown"]},
    }


def transform(x: float, y: float, z: float, turn_rad: float = 0.0) -> list[list[float]]:
    """A 4 x 4 transform of Habitat's frame, turned about its upright axis."""
    c, s = math.cos(turn_rad), math.sin(turn_rad)
    return [[c, 0.0, s, x], [0.0, 1.0, 0.0, y], [-s, 0.0, c, z], [0.0, 0.0, 0.0, 1.0]]


def rearrange_document() -> dict[str, Any]:
    """Two bowls and a box; one bowl is to move, the rest is to stay."""
    record = habitat_record(
        scene_dataset_config="data/replica_cad.json",
        additional_obj_config_paths=["data/objects/ycb/configs/"],
        info={"object_labels": {"024_bowl_:0001": "any_targets|0"}},
        ao_states={"fridge_:0000": {"2": 0.5}},
        rigid_objs=[
            ["024_bowl.object_config.json", transform(1.0, 0.5, -2.0)],
            ["003_box.object_config.json", transform(0.0, 0.5, 0.0)],
            ["024_bowl.object_config.json", transform(2.0, 0.75, -3.0, math.pi / 2)],
        ],
        targets={"024_bowl_:0001": transform(-1.0, 0.5, -4.0)},
        markers=[],
        target_receptacles=[["table_:0000", None]],
        goal_receptacles=[["counter_:0000", None]],
        name_to_receptacle={"024_bowl_:0001": "table"},
    )
    del record["goals"]
    return {"episodes": [record], "config": None}


def ithor_scenes() -> dict[str, list[dict[str, Any]]]:
    """Content of the published pickle: a bowl moves and turns, a mug stays, a fridge opens."""

    def pose(name: str, x: float, yaw_deg: float) -> dict[str, Any]:
        return {
            "name": name,
            "objectName": name,
            "position": {"x": x, "y": 0.75, "z": 3.5},
            "rotation": {"x": 0.0, "y": yaw_deg, "z": 0.0},
        }

    episode = {
        "agent_position": {"x": 0.25, "y": 0.9009992480278015, "z": 3.5},
        "agent_rotation": 240,
        "object_rearrangement_count": 2,
        "openable_data": [
            {
                "name": "Fridge_ab2776a0",
                "objectName": "Fridge_ab2776a0",
                "objectId": "Fridge|-02.64|+00.00|+02.13",
                "start_openness": 0.25,
                "target_openness": 1.0,
            }
        ],
        "starting_poses": [pose("Bowl_21eb5c01", -2.5, 0.0), pose("Mug_1", 1.0, 90.0)],
        "target_poses": [pose("Bowl_21eb5c01", -1.5, 90.0), pose("Mug_1", 1.0, 90.0)],
        "position_diff_count": 1,
        "open_diff_count": 1,
        "pose_diff_energy": 2.0,
    }
    return {"FloorPlan24": [episode, {**episode, "agent_rotation": 30}], "FloorPlan2": [episode]}


SITE_YAML = """\
schema: 1
scene: lab
episodes:
- id: to the window
  start: [1.2, 0.4, 90]
  goals:
  - position: [3.5, 2.0]
  shortest_path_m: 3.25
  shortest_path:
  - [1.2, 0.4]
  - [3.5, 2.0]
- id: find a chair
  start: [1.2, 0.4, -33.3]
  scene: other lab
  start_z: 0.02
  start_tilt_deg: -30
  category: chair
- id: to the sofa
  start: [1.2, 0.4, 0]
  instruction:
    text: Leave the room and stop at the sofa — slowly.
    tokens: [4, 5]
    language: en-US
    trajectory_id: '7'
  reference_path:
  - [1.2, 0.4]
  - [1.2, 3.0, 0.1]
- id: sofa colour
  start: [1.2, 0.4, 0]
  goals:
  - position: [4.5, 3.0, 0.4]
    object: sofa_1
    view_points:
    - [4.0, 3.0, 12.34]
  question:
    text: What color is the sofa?
    answer: gray
    type: color
    answer_token: 0
- id: tidy up
  start: [1.2, 0.4, 180]
  objects:
  - id: mug_1
    category: mug
    template: mug.obj
    start:
      position: [2.0, 1.0, 0.8]
    goal:
      position: [4.0, 1.0, 0.9]
      yaw_deg: 90
  - id: door
    start:
      position: [0.0, 0.0]
      quaternion: [0.5, 0.5, 0.5, 0.5]
      openness: 0.25
  info:
    operator: Ada
    tries: [1, 2]
"""
"""Every kind of task, in the form that the runtime itself writes."""


def ithor_pickled(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The content of the published pickle that became this document."""
    scenes: dict[str, list[dict[str, Any]]] = {}
    for record in document["episodes"]:
        original = {name: value for name, value in record.items() if name not in ("unique_id", "scene", "index")}
        scenes.setdefault(record["scene"], []).append(original)
    return scenes
