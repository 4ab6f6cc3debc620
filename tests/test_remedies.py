"""Remedies that are carried out: each makes the input that was refused a good one.

A row has a good file, what is wrong in it, and what the error says to write instead; the error must name it. Numbers,
misspelt and mistyped fields of all presets are in robots/test_preset_slips.py.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from episode_documents import eqa_document, r2r_document, r2r_truth, rearrange_document
from open_room import make_scene
from said import command_says, context, loading_fault

from robot_runtime.common import config
from robot_runtime.datasets.files import load_episodes
from robot_runtime.datasets.io import write_json
from robot_runtime.robots.camera_mount import load_mount
from robot_runtime.robots.loader import load_robot
from robot_runtime.scenes.scene import load_scene
from robot_runtime.scenes.tag_map import load_tag_map
from robot_runtime.tasks.task import load_task

TASK = config.find_preset("tasks", "pointnav_quick").read_text(encoding="utf-8")
NOISY = config.find_preset("robots", "sim-noisy").read_text(encoding="utf-8")
FAKE = "name: mine\ndriver: drivers.fake.driver.make_robot\noptions: {rate_hz: 30.0}\n"
MOUNT = config.find_preset("mounts", "pyrobot-kobuki").read_text(encoding="utf-8")
TAGS = "schema: 1\nfamily: tag36h11\ntags:\n- {id: 1, size_m: 0.16, xyz_m: [1.0, 2.0, 1.1], rpy_deg: [0, 0, 90]}\n"
SCENE = """schema: 1
name: s
objects: []
rooms:
- {id: a, category: hall, polygon: [[0, 0], [2, 0], [2, 2], [0, 2]]}
- {id: b, category: hall, polygon: [[0, 0], [-2, 0], [-2, -2]]}
"""
EPISODES = "schema: 1\nscene: s\nepisodes:\n- {id: a, start: [0.0, 0.0, 90], goals: [{position: [1.0, 1.0]}]}\n"

ROWS: dict[str, list[tuple[str, str, str, str]]] = {
    # the good text, the bad one, what the error says, the repair
    "task": [
        ("forward_m: 0.25", "forward_m: 250", "0.25 if 250 is in millimeters", "forward_m: 0.25"),
        ("forward_m: 0.25", "forward_m: 25", "0.25 if 25 is in centimeters", "forward_m: 0.25"),
        ("forward_m: 0.25", "forward_m: 0,25", "with a point, not with a comma", "forward_m: 0.25"),
        ("forward_m: 0.25", "forward_m: '0.25'", "it is a number", "forward_m: 0.25"),
        ("forward_m: 0.25", "forward_m: -0.25", "must be a positive number", "forward_m: 0.25"),
        ("turn_deg: 30", "turn_deg: 0.5236", "in degrees: 30", "turn_deg: 30"),
        ("turn_deg: 30", "turn_deg: 400", "0.5 to 180", "turn_deg: 180"),
        ("turn_deg: 30", "turn_deg: 030", "in decimal without leading zeros", "turn_deg: 30"),
        ("turn_deg: 30", "turn_degrees: 30", "did you mean 'turn_deg'", "turn_deg: 30"),
        ("turn_deg: 30", "turn_deg: 30, turn_deg: 15", "keep one of the two entries", "turn_deg: 30"),
        ("hfov_deg: 79", "hfov_deg: 1.3788", "78.9994 if 1.3788 is in radians", "hfov_deg: 78.9994"),
        ("height_m: 0.88", "height_m: 880", "0.88 if 880 is in millimeters", "height_m: 0.88"),
        ("depth_max_m: 10.0", "depth_max_m: 10000", "10 if 10000 is in millimeters", "depth_max_m: 10"),
        ("depth_min_m: 0.1", "depth_min_m: 11.0", "0 <= depth_min_m < depth_max_m", "depth_min_m: 0"),
        ("depth_normalized: true", "depth_normalized: maybe", "true or false", "depth_normalized: true"),
        ("robot_radius_m: 0.18", "robot_radius_m: 180", "0.18 if 180 is in millimeters", "robot_radius_m: 0.18"),
        ("max_steps: 60", "max_steps: 0", "for example `max_steps: 1`", "max_steps: 1"),
        ("max_steps: 60", "max_steps: 60.5", "it is a whole number", "max_steps: 60"),
        ("max_steps: 60", "max_steps: 1:00", "in decimal", "max_steps: 60"),
        ("max_steps: 60", "max_steps:\u00a060", "replace it by a plain space", "max_steps: 60"),
        ("max_steps: 60", "max_steps: 60\n---\na: 1", "remove that line, or split the file", "max_steps: 60"),
        ("name: pointnav_quick", "name: no", "it is text", "name: 'no'"),
        ("kind: pointnav", "kind: pointnaw", "pointnav", "kind: pointnav"),
        ("[stop, move_forward,", "[move_forward,", "'actions' lacks stop", "[stop, move_forward,"),
        (
            "[stop, move_forward,",
            "[stop, stop, move_forward,",
            "stop stands twice in 'actions'",
            "[stop, move_forward,",
        ),
        ("[stop, move_forward,", "[STOP, move_forward,", "one of stop, move_forward", "[stop, move_forward,"),
        ("[depth, gps,", "[dept, gps,", "depth", "[depth, gps,"),
        ("width: 160", "width: -160", "width", "width: 160"),
        ("\n  width: 160", "\n\twidth: 160", "with spaces, not with tabs", "\n  width: 160"),
        ("rule: distance", "rule: distanc", "rule", "rule: distance"),
    ],
    "robot": [
        ("latency_s: 0.03", "latency_s: 30", "0.03 if 30 is in milliseconds", "latency_s: 0.03"),
        ("latency_s: 0.03", "latency_s: 010", "in decimal without leading zeros", "latency_s: 0.1"),
        ("depth_min_m: 0.28", "depth_min_mm: 0.28", "did you mean 'depth_min_m'", "depth_min_m: 0.28"),
        ("depth_max_m: 10.0", "depth_max_m: 0.2", "depth_min_m < depth_max_m", "depth_max_m: 10.0"),
        ("noise_deg: 1.0", "noise_deg: 90.0", "0 to", "noise_deg: 1.0"),
        ("type: kobuki", "type: “kobuki”", "one of ideal, kobuki, create2", "type: kobuki"),
        ("dropout_probability: 0.02", "dropout_probability: 2", "a number, 0 to 1", "dropout_probability: 0.02"),
        ("rate_hz: 10.0", "rate_hz: 0.0", "rate_hz", "rate_hz: 10.0"),
        ("name: sim-noisy", "nam: sim-noisy", "did you mean 'name'", "name: sim-noisy"),
        ("driver.make_robot", "driver.make_robto", "did you mean 'make_robot'", "driver.make_robot"),
        ("sim_bridge.robot.driver", "sim_bridge.robt.driver", "check the spelling", "sim_bridge.robot.driver"),
        ("noise_m: 0.02", "noise_m: 20", "0.02 if 20 is in millimeters", "noise_m: 0.02"),
    ],
    "fake": [
        ("rate_hz: 30.0", "rate_hz: 0", "rate_hz must be a positive number", "rate_hz: 30"),
        ("rate_hz: 30.0", "rate_hz: fast", "it is a number", "rate_hz: 30"),
        ("options: {rate_hz: 30.0}", "options: [rate_hz]", "it is a mapping", "options: {}"),
    ],
    "mount": [
        ("[0.0, 0.015, 0.0]", "[0.0, 15, 0.0]", "0.015 if 15 is in millimeters", "[0.0, 0.015, 0.0]"),
        ("[0.0, 0.0, 0.05]", "[0.0, 0.05]", "a value is missing", "[0.0, 0.0, 0.05]"),
        ("tilt_joint_m", "tilt_jont_m", "did you mean 'tilt_joint_m'", "tilt_joint_m"),
    ],
    "tags": [
        ("size_m: 0.16", "size_m: 160", "0.16 if 160 is in millimeters", "size_m: 0.16"),
        ("[0, 0, 90]", "[0, 0, 1.5708]", "in degrees: 90", "[0, 0, 90]"),
        ("id: 1,", "id: one,", "a whole number", "id: 1,"),
        ("id: 1,", "id: 900,", "ids 0 to 586", "id: 586,"),
        ("family: tag36h11", "family: tag25h9", "one of tag36h11", "family: tag36h11"),
        ("schema: 1", "schema: 2", "one of 1", "schema: 1"),
    ],
    "scene": [
        ("[2, 0], [2, 2]", "[2, 2], [2, 0]", "in their order along the walls", "[2, 0], [2, 2]"),
        ("id: b", "id: a", "an id of its own", "id: b"),
        ("[[0, 0], [-2, 0], [-2, -2]]", "[[0, 0], [-2, 0]]", "at least 3 corners", "[[0, 0], [-2, 0], [-2, -2]]"),
        ("objects: []", "objects: [], ", "YAML", "objects: []"),
        ("name: s", "nane: s", "did you mean 'name'", "name: s"),
    ],
    "episodes": [
        ("schema: 1", "schema: 3", "correct 'schema'", "schema: 1"),
        ("start: [0.0, 0.0, 90]", "start: [0.0, 0.0]", "correct 'start'", "start: [0.0, 0.0, 90]"),
        ("scene: s\n", "", "state the scene", "scene: s\n"),
        ("0.0, 0.0, 90", "0.0, 0.0, 1.5708", "in degrees: 90", "0.0, 0.0, 90"),
        ("0.0, 0.0, 90", "2500, 0.0, 90", "2.5 if 2500 is in millimeters", "2.5, 0.0, 90"),
        ("[1.0, 1.0]", "[1.0, 1200]", "1.2 if 1200 is in millimeters", "[1.0, 1.2]"),
        ("id: a,", "id: a, start_tilt_deg: -0.5236,", "in degrees: -30", "id: a, start_tilt_deg: -30,"),
        ("id: a,", "id: a, shortest_path_m: 5200,", "5.2 if 5200 is in millimeters", "id: a, shortest_path_m: 5.2,"),
        ("0.0, 0.0, 90", "0.0, 0.0, 030", "without leading zeros", "0.0, 0.0, 30"),
        ("position: [1.0, 1.0]", "position: [.nan, 1.0]", "correct 'goals.0.position.0'", "position: [1.0, 1.0]"),
        ("goals:", "gaols:", "correct 'gaols'", "goals:"),
    ],
}


def _in_scene(path: Path) -> object:
    make_scene().map.save(path.parent / "map.yaml")
    return load_scene(path.rename(path.with_name("scene.yaml")).parent)


KINDS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "task": (TASK, lambda path: load_task(str(path))),
    "robot": (NOISY, lambda path: load_robot(str(path), context())),
    "fake": (FAKE, lambda path: load_robot(str(path), context())),
    "mount": (MOUNT, load_mount),
    "tags": (TAGS, load_tag_map),
    "scene": (SCENE, _in_scene),
    "episodes": (EPISODES, load_episodes),
}


@pytest.mark.parametrize(
    ("kind", "good", "bad", "said", "repair"), [(kind, *row) for kind, rows in ROWS.items() for row in rows]
)
def test_a_remedy_makes_the_file_a_good_one(
    tmp_path: Path, kind: str, good: str, bad: str, said: str, repair: str
) -> None:
    text, load = KINDS[kind]
    assert text.count(good) >= 1
    path = tmp_path / "file.yaml"
    path.write_text(text.replace(good, bad, 1), encoding="utf-8")
    fault = loading_fault(load, path)
    assert fault is not None
    assert said in f"{fault.message} {fault.remedy}"
    path.write_text(text.replace(good, repair, 1), encoding="utf-8")
    assert loading_fault(load, path) is None


# --- remedies that are commands or other files ---------------------------------------------------------------


def _camera(folder: Path, **changes: Any) -> Path:
    lens = {"camera_model": "pinhole", "intrinsics": [500, 500, 320, 240], "resolution": [640, 480]}
    lens |= {"distortion_model": "radtan", "distortion_coeffs": [0.1, -0.05, 0, 0], **changes}
    (folder / "chain.yaml").write_text(json.dumps({"cam0": lens}), encoding="utf-8")
    return folder / "chain.yaml"


OPENCV = "<?xml version='1.0'?><opencv_storage>{}</opencv_storage>"
MATRIX = (
    "<camera_matrix type_id='opencv-matrix'><rows>3</rows><cols>3</cols><dt>d</dt>"
    "<data>500. 0. 320. 0. 500. 240. 0. 0. 1.</data></camera_matrix>"
)


@pytest.mark.parametrize(
    ("make", "options", "said", "more"),
    [
        (_camera, [], "add --robot NAME", ["--robot", "lab-1"]),
        (
            lambda folder: _written(folder / "lens.xml", OPENCV.format(MATRIX)),
            ["--robot", "lab-1"],
            "add --size WIDTHxHEIGHT",
            ["--size", "640x480"],
        ),
        (_camera, ["--robot", "lab-1", "--size", "640"], "--size 1280x720", ["--size", "640x480"]),
    ],
)
def test_the_option_that_an_import_asks_for_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Path], options: list[str], said: str,
    more: list[str],
) -> None:  # fmt: skip
    command = ["calibrate", "import", make(tmp_path), *options, "--out", tmp_path / "out.yaml"]
    assert said in command_says(capsys, *command)
    assert "Check it" in command_says(capsys, *command, *more)


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "line",
    [
        *(f"{key}: gone.yaml" for key in ("odometry", "motors", "tilt_servo")),
        *("options: {camera: {mount: gone.yaml}}", "options: {tags: gone.yaml}"),
        "options: {camera: {depth_noise: {model: redwood, distortion: gone.yaml}}}",
        "camera: {driver: drivers.replay.driver.make_camera, options: {log: gone.yaml}}",
        "localizer: {driver: drivers.apriltag.driver.make_localizer, options: {tags: gone.yaml}}",
        *(
            f"camera: {{driver: drivers.realsense.driver.make_camera, options: {{imaging: {{{key}: gone.yaml}}}}}}"
            for key in ("calibration", "latency")
        ),
    ],
)
def test_a_file_that_is_named_and_not_there_is_an_error_with_both_names(tmp_path: Path, line: str) -> None:
    path = _written(tmp_path / "mine.yaml", f"name: mine\ndriver: sim_bridge.robot.driver.make_robot\n{line}\n")
    fault = loading_fault(load_robot, str(path), context())
    assert fault is not None
    assert "gone.yaml" in fault.message
    assert "mine.yaml" in fault.message


def test_an_apriltag_file_is_converted_by_the_command_that_its_refusal_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tag = {"id": 1, "size": 0.16, "x": 0.0, "y": 0.0, "z": 0.0, "qw": 1.0, "qx": 0.0, "qy": 0.0, "qz": 0.0}
    path = _written(tmp_path / "tags.yaml", json.dumps({"tag_bundles": [{"name": "a", "layout": [tag]}]}))
    fault = loading_fault(load_tag_map, path)
    assert fault is not None
    words = fault.remedy.partition("`robot-runtime ")[2].rstrip("`").split()
    words = [
        "1,2,1,90" if word == "X,Y,Z,YAW_DEG" else str(tmp_path / "map.yaml") if word == "FILE" else word
        for word in words
    ]
    assert "1 tags" in command_says(capsys, *words)
    assert loading_fault(load_tag_map, tmp_path / "map.yaml") is None


def test_episode_files_are_good_after_what_their_errors_say(tmp_path: Path) -> None:
    path = tmp_path / "val.json"
    path.write_bytes(json.dumps(eqa_document()).replace("brown", "br\u00fcn").encode("latin-1"))
    fault = loading_fault(load_episodes, path)
    assert fault is not None
    assert "iconv -f LATIN1 -t UTF-8" in fault.remedy
    path.write_bytes(path.read_bytes().decode("latin-1").encode())
    assert loading_fault(load_episodes, path) is None

    document = rearrange_document()
    pose = document["episodes"][0]["rigid_objs"][0]
    pose[1] = [list(row) for row in zip(*pose[1], strict=True)]
    write_json(path, document)
    fault = loading_fault(load_episodes, path)
    assert fault is not None
    assert "transposed" in fault.message
    write_json(path, rearrange_document())
    assert loading_fault(load_episodes, path) is None


def test_a_split_is_complete_with_the_file_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json(tmp_path / "val.json", r2r_document())
    assert "val_gt.json is missing" in command_says(capsys, "episodes", "validate", tmp_path / "val.json")
    write_json(tmp_path / "val_gt.json", r2r_truth())
    assert "files next to it" not in command_says(capsys, "episodes", "validate", tmp_path / "val.json")


@pytest.mark.slow
def test_questions_become_episodes_by_the_command_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = _written(tmp_path / "eqa_v1.json", json.dumps({"questions": {"h": [{"question": "?", "answer": "a"}]}}))
    fault = loading_fault(load_episodes, path)
    assert fault is not None
    words = fault.remedy.partition("`robot-runtime ")[2].rstrip("`").replace("SCENE", "apartment").split()
    command_says(capsys, *words)
    assert load_episodes(Path("eqa.json.gz"))


def test_a_gzipped_text_is_read_by_content(tmp_path: Path) -> None:
    (tmp_path / "val.json").write_bytes(gzip.compress(json.dumps(eqa_document()).encode()))
    assert load_episodes(tmp_path / "val.json")
