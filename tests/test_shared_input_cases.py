"""Episodes, scenes, tasks, robots and calibrations after public bug reports: each is right, or said by name.

For each file, the words of cause and remedy that the product must say; a file that is right as it is says none. Then
each remedy is carried out.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest
from said import command_says, context, loading_fault

from robot_runtime.errors import RuntimeFault
from robot_runtime.robots.loader import DeviceOverrides, load_robot
from robot_runtime.scenes.scene import load_scene
from robot_runtime.tasks.task import load_task

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases"

RIGHT = r"\A\Z"
"""Nothing is said about a file that is right as it is."""

LENS = r"\.yaml: {}, 1280x720, brown_conrady, fx 600\.00 px"

EPISODES = {
    "a00_vln_ok/val.json.gz": RIGHT,
    "a01_rxr/val_unseen/val_unseen_follower.json.gz": r"follower_gt.json.gz is missing.*has val_unseen_guide_gt",
    "a01_rxr/val_unseen/val_unseen_guide.json.gz": r"no ground truth +1 .*its reference path has 3 nodes",
    "a02_bertidx/val_unseen_bertidx.json.gz": r"bertidx_gt.json.gz is missing; the folder has val_unseen_gt.json.gz",
    "a03_gt_by_trajectory/val.json.gz": r"val_gt.json.gz has no episode of the split.*'7', may be",
    "a04_gt_far_from_path/val.json.gz": r"ground truth elsewhere.*begins 73\.6 m from the start",
    "a05_gt_broken/val.json.gz": r"is empty in the _gt file",
    "a08_robothor_variants/agentlist.json.gz": r"ratio below threshold",
    "a08_robothor_variants/by_scene.json.gz": r"2 episodes.*ratio below threshold",
    "a08_robothor_variants/empty_list.json.gz": r"has no episodes: it is an empty list.*use a file with episodes",
    "a08_robothor_variants/int_id.json.gz": r"ratio below threshold",
    "a08_robothor_variants/ndjson.jsonl": r"3 episodes.*ratio below threshold",
    "a08_robothor_variants/ndjson.jsonl.gz": r"3 episodes.*ratio below threshold",
    "a08_robothor_variants/neg_path.json.gz": r"length below zero.*-1 m",
    "a08_robothor_variants/points2.json.gz": r"ratio below threshold",
    "a08_robothor_variants/quat.json.gz": r"unreadable.*'initial_orientation': Input should be a valid number",
    "a09_habitat_rearrange/abs_paths.json.gz": r"nothing to rearrange +1",
    "a09_habitat_rearrange/dots.json.gz": r"'targets': names 'obj.v1.2_:0000', which 'rigid_objs' does not have",
    "a09_habitat_rearrange/ok.json.gz": r"nothing to rearrange +1",
    "a09_habitat_rearrange/ovmm.json.gz": r"nothing to rearrange +1",
    "a09_habitat_rearrange/scaled.json.gz": r"'rigid_objs.0': its 3 x 3 part is not a rotation: it is scaled",
    "a09_habitat_rearrange/transposed.json.gz": r"its last row is not 0 0 0 1: it is transposed",
    "a10_ithor/comma.json.gz": r"'openable_data': 'Fridge\|\+00,5\|\+00.0\|\+01.0' is not Type",
    "a10_ithor/no_targets.json.gz": r"nothing to rearrange +1",
    "a10_ithor/repeated_name.json.gz": r"'starting_poses': has two objects 'Mug_1'",
    "a10_ithor/rot_dict.json.gz": r"'agent_rotation': Input should be a valid number",
    "u_scenes/two_floors/up.json.gz": r"goal on another floor.*3\.20 m from the start.*other floor.*unreachable goal",
}

SCENES = {
    "u_scenes/hundred": RIGHT,
    "u_scenes/no_rooms": RIGHT,
    "u_scenes/one_room": RIGHT,
    "u_scenes/poly_bowtie": r"room 'a': its edges .* cross each other.*in their order along the walls",
    "u_scenes/poly_cw": RIGHT,
    "u_scenes/poly_dup": r"two rooms share the id 'a'.*an id of its own",
    "u_scenes/poly_out": r"room 'a': lies off the map, which spans x 0.00 to 8.05 m.*meters in the frame of the map",
    "u_scenes/poly_overlap": r"rooms 'a' and 'b' overlap by about 8\.0 m²",
    "u_scenes/poly_two": r"room 'a': a polygon needs at least 3 corners, got 2 \(line 4\)",
    "u_scenes/tiny_room": RIGHT,
    "u_scenes/two_floors": r"object 'bed_1' is at z = 3\.30 m, on another floor",
}

IMPORTS = {
    "c01_foreign_calibration/k4a/calibration.json": r"lacks the color camera.*the driver reads",
    "c01_foreign_calibration/kalibr/camchain.yaml": LENS.format("Kalibr camchain"),
    "c01_foreign_calibration/opencv/calib.yml": LENS.format("OpenCV FileStorage"),
    "c01_foreign_calibration/opencv_xml/calib.xml": r"does not state the image's size.*add --size",
    "c01_foreign_calibration/realsense/preset.json": r"a RealSense preset.*the driver reads",
    "c01_foreign_calibration/ros/head_camera.yaml": LENS.format("ROS camera_info"),
    "c03_apriltag_ros/tags.yaml": r"1 tags of family tag36h11.*left out: tag 10: standalone.*left out: tag 20",
}

LOCALIZERS = {
    "c03_apriltag_ros/loc.yaml": r"tags.yaml: is a tag file of apriltag_ros.*calibrate import tags.yaml --at",
    "c03_apriltag_ros/loc_cm.yaml": r"'tags.0.size_m': 16 m is not a possible edge.*0\.16 if 16 is in centimeters",
    "c03_apriltag_ros/loc_fam.yaml": r"fam.yaml: field 'family'.*one of tag36h11",
    "c03_apriltag_ros/loc_floor.yaml": r"shows no room with tags use robot sim-tags",  # its map is right
    "c03_apriltag_ros/loc_rad.yaml": r"-1\.5708 ° looks like radians.*in degrees: -90",
    "c03_apriltag_ros/loc_strid.yaml": r"'tags.0.id': Input should be a valid integer.*a whole number",
    "c04_lens_normalized/cx_outside.yaml": r"'lens.cx': cx must be a pixel of the image, .* got 1500.0 \(line 5\)",
    "c04_lens_normalized/fx_neg.yaml": r"'lens.fx': fx must be in pixels, at least 12.8, got -224.0 \(line 5\)",
    "c04_lens_normalized/fx_tiny.yaml": r"'lens.fx': .* if it is a fraction of the image, write 448 \(line 5\)",
    "c05_tags_rad/loc.yaml": r"'tags.0.rpy_deg.2': -1\.5708 ° looks like radians.*in degrees: -90",
}

ROBOTS = {
    "r_robots/an_asym.yaml": r"move_forward.covariance': covariance must be symmetric",
    "r_robots/an_deg.yaml": r"move_forward.mean': .*5 rad is not a possible mean error.*0\.0872665 if 5 is in",
    "r_robots/an_ok.yaml": RIGHT,
    "r_robots/an_sd_not_var.yaml": RIGHT,  # 9 cm and 8 degrees are as possible as 8 mm and 1 degree
    "r_robots/anchor.yaml": r"field 'base.model': there is no such field \(line 1\).*remove it",
    "r_robots/emoji.yaml": RIGHT,
    "r_robots/fit_d.yaml": r"'sigma': sigma is more than 5.0 m between 0 and 5 m: coefficients are in meters",
    "r_robots/fit_holes.yaml": r"'holes.0.1': Input should be less than or equal to 1 \(found 100\)",
    "r_robots/ms.yaml": r"'camera.latency_s': 30 s is not .*\(line 4\).*0\.03 if 30 is in milliseconds",
    "r_robots/multidoc.yaml": r"line 3 begins a second document.*remove that line, or split the file there",
    "r_robots/nbsp.yaml": r"line 4: .* has the invisible character U\+00A0.*replace it by a plain space",
    "r_robots/noname.yaml": r"'name': Field required.*name is text",
    "r_robots/octal.yaml": r"line 4, column 23 .*the number 010 means 8.*in decimal without leading zeros",
    "r_robots/oldkey.yaml": r"'camera.noise': there is no such field \(line 4\).*did you mean 'depth_noise'\?",
    "r_robots/onoff.yaml": r"'contact.behaviour': Input should be 'stop' or 'slide' \(found False\) \(line 4\)",
    "r_robots/optlist.yaml": r"'options': Input should be an object \(line 3\).*it is a mapping",
    "r_robots/pr_lower.yaml": r"'action_noise.pyrobot.controller': .*\(found 'proportional'\).*ILQR, Proportional",
    "r_robots/pr_step.yaml": RIGHT,
    "r_robots/preset.yaml": RIGHT,
    "r_robots/realhead.yaml": r"head: options: field 'variant': .*\(found 'interbotics'\) \(line 3\).*interbotix",
    "r_robots/rw_100x80.yaml": r"t100x80x4.txt: has 8000.0 blocks of 23 numbers, not 80 x 80.*, unchanged",
    "r_robots/rw_factor_0.001.yaml": r"mm.txt: its factors of depth are not near 1.*factors have no unit",
    "r_robots/rw_missing.yaml": r"dist-model.txt not found.*name the authors' dist-model.txt",
    "r_robots/rw_npy.yaml": r"dist-model.npy: .*name the authors' dist-model.txt",
    "r_robots/rw_short.yaml": r"short.txt: has 100.0 blocks of 23 numbers, not 80 x 80",
    "r_robots/slash.yaml": RIGHT,
    "r_robots/smart.yaml": r"'motors.type': .*\(found '“kobuki”'\) \(line 4\).*one of ideal, kobuki, create2",
    "r_robots/tabs.yaml": r"line 4, column 1 is not valid YAML.*with spaces, not with tabs",
    "r_robots/under.yaml": RIGHT,
}

TASKS = {
    "t_tasks/comma.yaml": r"'magnitudes.25': there is no such field \(line 6\).*a point, not with a comma",
    "t_tasks/dupact.yaml": r"'actions': action move_forward stands twice in 'actions'.*\(line 5\)",
    "t_tasks/fov_rad.yaml": r"'camera.hfov_deg': 1\.3788 ° is not .*\(line 11\).*78\.9994 if 1\.3788 is in radians",
    "t_tasks/fwd_cm.yaml": r"'magnitudes.forward_m': 25 m .*\(line 6\).*0\.25 if 25 is in centimeters",
    "t_tasks/fwd_neg.yaml": r"'magnitudes.forward_m': forward_m must be a positive number, got -0.25 \(line 6\)",
    "t_tasks/height_cm.yaml": r"'camera.height_m': 88 m .*\(line 12\).*0\.88 if 88 is in centimeters",
    "t_tasks/long.yaml": RIGHT,
    "t_tasks/max0.yaml": r"'max_steps': max_steps must be positive, got 0 \(line 17\)",
    "t_tasks/norway.yaml": r"'name': Input should be a valid string \(found False\) \(line 2\).*it is text",
    "t_tasks/nostop.yaml": r"'actions' lacks stop, by which an episode succeeds \(line 5\)",
    "t_tasks/octal30.yaml": r"line 6, column 41 .*030 means 24.*in decimal without leading zeros",
    "t_tasks/octal_steps.yaml": r"line 17, column 12 .*0500 means 320.*in decimal without leading zeros",
    "t_tasks/other_steps.yaml": RIGHT,
    "t_tasks/own_fov_rad.yaml": r"'camera.hfov_deg': 1\.3788 ° is not a possible .*78\.9994 if 1\.3788 is in radians",
    "t_tasks/own_height_cm.yaml": r"'camera.height_m': 88 m .*0\.88 if 88 is in centimeters",
    "t_tasks/own_norm.yaml": r"'camera.depth_max_m': 10000 m .*\(line 14\).*10 if 10000 is in millimeters",
    "t_tasks/own_rad.yaml": r"'magnitudes.turn_deg': 0\.5236 ° looks like radians.*\(line 6\).*in degrees: 30",
    "t_tasks/px1_fake.yaml": RIGHT,
    "t_tasks/px1_sim.yaml": RIGHT,
    "t_tasks/px2x64_fake.yaml": RIGHT,
    "t_tasks/px2x64_sim.yaml": RIGHT,
    "t_tasks/px4k_sim.yaml": RIGHT,
    "t_tasks/px8_fake.yaml": RIGHT,
    "t_tasks/px8_sim.yaml": RIGHT,
    "t_tasks/rad.yaml": r"'magnitudes.turn_deg': 0\.5236 ° looks like radians.*in degrees: 30",
    "t_tasks/radius_cm.yaml": r"'robot_radius_m': 18 m .*\(line 16\).*0\.18 if 18 is in centimeters",
    "t_tasks/rgbonly.yaml": RIGHT,
    "t_tasks/step02_15.yaml": RIGHT,
    "t_tasks/text.yaml": r"'magnitudes.forward_m': Input should be a valid number \(found '0.25'\) \(line 6\)",
    "t_tasks/turn0.yaml": r"'magnitudes.turn_deg': turn_deg must be a positive number, got 0.0 \(line 6\)",
    "t_tasks/turn400.yaml": r"'magnitudes.turn_deg': 400 ° .*\(line 6\).*in degrees, 0\.5 to 180 °",
    "t_tasks/upper.yaml": r"'actions.0': .*\(found 'STOP'\) \(line 5\).*one of stop, move_forward",
}

NAMED_BY_ANOTHER = r"_gt\.json\.gz|n_noise/.*|c03_apriltag_ros/(cm|fam|floor|rad|strid)\.yaml|c05_tags_rad/tags\.yaml"
"""Files that a file of the tables names, and that are read with it."""


PERSON = ("",)
"""Only a person can carry the remedy out: what is right is not in the file."""

REPAIRS: dict[str, tuple[str, ...]] = {
    "t_tasks/comma.yaml": ("0,25", "0.25"),
    "t_tasks/dupact.yaml": ("move_forward, move_forward", "move_forward"),
    "t_tasks/fov_rad.yaml": ("1.3788", "78.9994"),
    "t_tasks/fwd_cm.yaml": ("forward_m: 25", "forward_m: 0.25"),
    "t_tasks/fwd_neg.yaml": ("-0.25", "0.25"),
    "t_tasks/height_cm.yaml": ("height_m: 88", "height_m: 0.88"),
    "t_tasks/max0.yaml": ("max_steps: 0", "max_steps: 1"),
    "t_tasks/norway.yaml": ("name: no", "name: 'no'"),
    "t_tasks/nostop.yaml": ("[move_forward", "[stop, move_forward"),
    "t_tasks/octal30.yaml": ("030", "30"),
    "t_tasks/octal_steps.yaml": ("0500", "500"),
    "t_tasks/own_fov_rad.yaml": ("1.3788", "78.9994"),
    "t_tasks/own_height_cm.yaml": ("height_m: 88", "height_m: 0.88"),
    "t_tasks/own_norm.yaml": ("10000", "10"),
    "t_tasks/own_rad.yaml": ("0.5236", "30"),
    "t_tasks/rad.yaml": ("0.5236", "30"),
    "t_tasks/radius_cm.yaml": ("radius_m: 18", "radius_m: 0.18"),
    "t_tasks/text.yaml": ('"0.25"', "0.25"),
    "t_tasks/turn0.yaml": ("turn_deg: 0", "turn_deg: 30"),
    "t_tasks/turn400.yaml": ("400", "180"),
    "t_tasks/upper.yaml": (
        *("STOP", "stop", "MOVE_FORWARD", "move_forward"),
        *("TURN_LEFT", "turn_left", "TURN_RIGHT", "turn_right"),
    ),
    "r_robots/an_asym.yaml": ("1e-4,1e-3", "1e-4,5e-5", "[0,1e-4,0]", "[5e-5,1e-4,0]"),
    "r_robots/an_deg.yaml": ("5.0]", "0.0872665]", "4.0]", "0.00121847]"),
    "r_robots/anchor.yaml": ("base: &b {model: redwood}\n", "", "*b", "{model: redwood}"),
    "r_robots/fit_d.yaml": ("-1.0]", "0.001]"),
    "r_robots/fit_holes.yaml": ("[[0.5, 100], [5, 30]]", "[[0.5, 1.0], [5, 0.3]]"),
    "r_robots/ms.yaml": ("30", "0.03"),
    "r_robots/multidoc.yaml": ("---\nname: b\ndriver: drivers.fake.driver.make_robot\n", ""),
    "r_robots/nbsp.yaml": ("\u00a0", " "),
    "r_robots/noname.yaml": ("driver: sim", "name: mine\ndriver: sim"),
    "r_robots/octal.yaml": ("010", "0.01"),
    "r_robots/oldkey.yaml": ("{noise: redwood}", "{depth_noise: {model: redwood}}"),
    "r_robots/onoff.yaml": ("off", "slide"),
    "r_robots/optlist.yaml": ("[motors]", "{}"),
    "r_robots/pr_lower.yaml": ("proportional", "Proportional"),
    "r_robots/realhead.yaml": ("interbotics", "interbotix"),
    "r_robots/rw_100x80.yaml": PERSON,  # the authors' table is to be fetched
    "r_robots/rw_factor_0.001.yaml": PERSON,
    "r_robots/rw_missing.yaml": PERSON,
    "r_robots/rw_npy.yaml": PERSON,
    "r_robots/rw_short.yaml": PERSON,
    "r_robots/smart.yaml": ("“kobuki”", "kobuki"),
    "r_robots/tabs.yaml": ("\t", "  "),
    "c03_apriltag_ros/loc.yaml": PERSON,  # where the bundle hangs is measured; test_remedies.py has the command
    "c03_apriltag_ros/loc_cm.yaml": ("size_m: 16, xyz_m: [135, 390, 110]", "size_m: 0.16, xyz_m: [1.35, 3.9, 1.1]"),
    "c03_apriltag_ros/loc_fam.yaml": ("tag25h9", "tag36h11"),
    "c03_apriltag_ros/loc_rad.yaml": ("-1.5708", "-90"),
    "c03_apriltag_ros/loc_strid.yaml": ('"0"', "0"),
    "c03_apriltag_ros/loc_floor.yaml": PERSON,  # the robot 'fake' shows no tags
    "c04_lens_normalized/cx_outside.yaml": ("cx: 1500.0, cy: 900.0", "cx: 320.0, cy: 240.0"),
    "c04_lens_normalized/fx_neg.yaml": ("fx: -224.0", "fx: 224.0"),
    "c04_lens_normalized/fx_tiny.yaml": ("fx: 0.7, fy: 0.7, cx: 0.5, cy: 0.5", "fx: 448, fy: 336, cx: 320, cy: 240"),
    "c05_tags_rad/loc.yaml": ("1.5708", "90", "3.1416", "180"),
    "u_scenes/poly_bowtie": PERSON,  # in which order the corners lie
    "u_scenes/poly_dup": ("id: a", "id: other"),
    "u_scenes/poly_out": PERSON,
    "u_scenes/poly_two": PERSON,
}  # fmt: skip
"""Of each file with an error: what stands in it, and what the error asks for; several errors, several pairs."""

NUMBER = ('{"x": 0, "y": 90, "z": 0}', "90")
OF_EPISODES: dict[str, tuple[str, ...]] = {
    "a01_rxr/val_unseen/val_unseen_follower.json.gz": ("val_unseen_guide_gt", "val_unseen_follower_gt"),
    "a02_bertidx/val_unseen_bertidx.json.gz": ("val_unseen_gt", "val_unseen_bertidx_gt"),
    "a03_gt_by_trajectory/val.json.gz": ('"7": {"locations"', '"1": {"locations"'),
    "a08_robothor_variants/neg_path.json.gz": (': -1.0, "difficulty"', ': 1.41, "difficulty"'),
    "a08_robothor_variants/quat.json.gz": NUMBER,
    "a09_habitat_rearrange/dots.json.gz": ('"obj.v1.2_:0000"', '"obj_:0000"', "obj.v1.2.object", "obj.object"),
    "a09_habitat_rearrange/scaled.json.gz": ("[2.0, 0, 0", "[1, 0, 0", "[0, 2, 0", "[0, 1, 0", "[0, 0, 2", "[0, 0, 1"),
    "a09_habitat_rearrange/transposed.json.gz": (
        *("[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [-2.0, 0.5, -3.0, 1]",),
        *("[1.0, 0, 0, -2.0], [0, 1, 0, 0.5], [0, 0, 1, -3.0], [0, 0, 0, 1]",),
    ),
    "a10_ithor/comma.json.gz": ("|+00,5|", "|+00.5|"),
    "a10_ithor/repeated_name.json.gz": (
        *('"Mug_1", "position": {"x": 1.5', '"Mug_2", "position": {"x": 1.5'),
        *('"Mug_1", "position": {"x": 2.5', '"Mug_2", "position": {"x": 2.5'),
    ),
    "a10_ithor/rot_dict.json.gz": NUMBER,
}  # fmt: skip
"""The same of episode files and of the files beside them, whose names are replaced, too."""

KEPT = r"no ground truth|ratio below|empty in the _gt|elsewhere|empty list|nothing to rearrange|another floor"
"""Findings that only a person can mend: what is right is in another file, or the episodes are to be others."""


@pytest.fixture
def cases() -> Path:
    if not CASES.is_dir():
        pytest.skip(f"the cases are not at {CASES}")
    return CASES


def load_says(error: RuntimeFault | None) -> str:
    return "" if error is None else " ".join(f"{error.message} {error.remedy}".split())


def test_every_file_is_in_a_table(cases: Path) -> None:
    told = EPISODES.keys() | SCENES.keys() | IMPORTS.keys() | LOCALIZERS.keys() | ROBOTS.keys() | TASKS.keys()
    files = {path.relative_to(cases) for path in cases.glob("[acnrtu]*/**/*") if path.is_file()}
    left = {
        path.as_posix()
        for path in files
        if not ({path.as_posix(), path.parent.as_posix()} & told or re.search(NAMED_BY_ANOTHER, path.as_posix()))
    }
    assert files
    assert left == set()


def validation_says(capsys: pytest.CaptureFixture[str], name: str, cases: Path, folder: Path) -> str:
    scene: list[str | Path] = ["--scene", (cases / name).parent] if name.startswith("u_scenes") else []
    report = folder / "report.json"
    said = command_says(capsys, "episodes", "validate", cases / name, *scene, "--json", report)
    if report.is_file():
        document = json.loads(report.read_text(encoding="utf-8"))
        found = [
            f"{found['check']} {found['count']} {found['examples'][0]['detail']}" for found in document["findings"]
        ]
        said = " ".join([*(f"{document['episodes']} episodes:" for _ in found[:1]), *document["companions"], *found])
    return said


@pytest.mark.parametrize("name", EPISODES)
def test_episodes(name: str, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = validation_says(capsys, name, cases, tmp_path)
    assert re.search(EPISODES[name], said), said


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_scenes(name: str, cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = command_says(capsys, "scene", "info", cases / name)
    if SCENES[name] is RIGHT:
        assert re.search(r"free [1-9]?[0-9.]+ m², of which a robot .* reaches", said)
        said = "".join(re.findall("(?:note|error): .*", said))
    assert re.search(SCENES[name], said), said


@pytest.mark.parametrize("name", IMPORTS)
def test_foreign_calibrations(name: str, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = command_says(
        *(capsys, "calibrate", "import", cases / name, "--robot", "lab-1", "--out", tmp_path / "out.yaml")
    )
    assert re.search(IMPORTS[name], said), said


@pytest.mark.parametrize("name", LOCALIZERS)
def test_localizers(name: str, cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir((cases / name).parent)  # files that a preset names are those of the working directory
    said = load_says(loading_fault(load_robot, "fake", context(), DeviceOverrides(localizer=Path(name).name)))
    assert re.search(LOCALIZERS[name], said), said


@pytest.mark.parametrize("name", ROBOTS)
def test_robots(name: str, cases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cases / "r_robots")
    said = load_says(loading_fault(load_robot, str(cases / name), context()))
    assert re.search(ROBOTS[name], said), said


@pytest.mark.parametrize("name", TASKS)
def test_tasks(name: str, cases: Path) -> None:
    said = load_says(loading_fault(load_task, str(cases / name)))
    assert re.search(TASKS[name], said), said


# --- remedies --------------------------------------------------------------------------------------------------------


def test_every_error_has_a_repair_or_is_for_a_person() -> None:
    refused = {name for table in (TASKS, ROBOTS, LOCALIZERS) for name, said in table.items() if said is not RIGHT}
    scenes = {name for name in SCENES if "poly" in name} - {"u_scenes/poly_cw", "u_scenes/poly_overlap"}
    assert refused | scenes == set(REPAIRS)
    assert {name for name, said in EPISODES.items() if said is not RIGHT and not re.search(KEPT, said)} == set(
        OF_EPISODES
    )


@pytest.mark.parametrize("name", OF_EPISODES)
def test_what_is_found_of_episodes_is_not_found_after_its_repair(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fragments = OF_EPISODES[name]
    for file in (CASES / name).parent.glob("*.gz"):
        text, copy = gzip.decompress(file.read_bytes()).decode(), str(file.relative_to(CASES))
        for old, new in zip(fragments[::2], fragments[1::2], strict=True):
            text, copy = text.replace(old, new), copy.replace(old, new)
        (folder / copy).parent.mkdir(parents=True, exist_ok=True)
        (folder / copy).write_bytes(gzip.compress(text.encode()))
    said = validation_says(capsys, name, folder, folder)
    assert not re.search(EPISODES[name], said), said
    assert "unreadable" not in said


def test_an_image_size_that_a_calibration_lacks_is_given(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = CASES / "c01_foreign_calibration/opencv_xml/calib.xml"
    given = ("--robot", "lab-1", "--size", "1280x720", "--out", folder / "out.yaml")
    assert "OpenCV FileStorage, 1280x720" in command_says(capsys, "calibrate", "import", file, *given)


@pytest.fixture
def folder(cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for copies of the cases, in which files may be repaired."""
    assert cases
    monkeypatch.chdir(tmp_path)
    return tmp_path


def repaired(folder: Path, name: str, fragments: tuple[str, ...]) -> Path:
    """The case's file, in a copied folder in which each first fragment is the second, wherever it stands."""
    copy = folder / name.partition("/")[0]
    shutil.copytree(CASES / copy.name, copy)
    found = 0
    for path in copy.rglob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        if fragments[0] in text and (path.stem in name or path.name in {"tags.yaml", "scene.yaml"} or "loc_" in name):
            found += 1
            for old, new in zip(fragments[::2], fragments[1::2], strict=True):
                text = text.replace(old, new)
            path.write_text(text, encoding="utf-8")
    assert found
    return folder / name


@pytest.mark.parametrize("name", [name for name, fragment in REPAIRS.items() if fragment is not PERSON])
def test_what_the_error_asks_for_is_accepted(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = repaired(folder, name, REPAIRS[name])
    if name in TASKS:
        fault = loading_fault(load_task, str(path))
    elif name in ROBOTS:
        fault = loading_fault(load_robot, str(path), context())
    elif name in SCENES:
        scene = path / "scene.yaml"
        text = scene.read_text(encoding="utf-8")
        scene.write_text(text.replace("id: other", "id: a", 1), encoding="utf-8")  # one of the two keeps its name
        fault = loading_fault(load_scene, path)
    else:
        monkeypatch.chdir(path.parent)
        fault = loading_fault(load_robot, "fake", context(), DeviceOverrides(localizer=path.name))
    # What is left is for other machines: a device or a robot with tags that is not here.
    assert fault is None or "shows no room with tags" in fault.message or "/dev/video0" in fault.message, fault
