"""Calibrations and tag maps of other programs become ours exactly, or are named with what does not convert."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import yaml
from raising import raises_naming

from calibration import foreign
from robot_runtime.cli.main import run_command
from robot_runtime.common import config
from robot_runtime.errors import CalibrationError, ConfigError, RuntimeFault
from robot_runtime.imaging.rig import load_calibration
from robot_runtime.robots.calibration_file import open_calibration
from robot_runtime.scenes.tag_map import load_tag_map

K = np.array([[600.0, 0.0, 640.5], [0.0, 610.0, 359.5], [0.0, 0.0, 1.0]])
PLUMB = [0.1, -0.05, 0.001, -0.002, 0.01]
RATIONAL = [0.5, -2.5, 0.001, -0.0002, 1.4, 0.4, -2.3, 1.3]
POINTS = np.array([[0.1, 0.2, 1.0], [-0.4, 0.1, 1.2], [0.5, -0.3, 2.0]])


def camera_info(model: str = "plumb_bob", distortion: list[float] = PLUMB, **changes: Any) -> dict[str, Any]:
    return {
        "image_width": 1280,
        "image_height": 720,
        "camera_name": "head",
        "camera_matrix": {"rows": 3, "cols": 3, "data": K.ravel().tolist()},
        "distortion_model": model,
        "distortion_coefficients": {"rows": 1, "cols": len(distortion), "data": distortion},
        **changes,
    }


def camchain(**changes: Any) -> dict[str, Any]:
    camera = {
        "camera_model": "pinhole",
        "distortion_coeffs": PLUMB[:4],
        "distortion_model": "radtan",
        "intrinsics": [600.0, 610.0, 640.5, 359.5],
        "resolution": [1280, 720],
        "T_cam_imu": np.eye(4).tolist(),
        **changes,
    }
    return {"cam0": camera}


def realsense(**changes: Any) -> dict[str, Any]:
    document = {"width": 1280, "height": 720, "fx": 600.0, "fy": 610.0, "ppx": 640.5, "ppy": 359.5}
    return {**document, "model": "Brown Conrady", "coeffs": PLUMB, **changes}


def opencv(path: Path, distortion: list[float], sized: bool = True) -> Path:
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    if sized:
        storage.write("image_width", 1280)
        storage.write("image_height", 720)
    storage.write("camera_matrix", K)
    storage.write("distortion_coefficients", np.array(distortion)[:, None])
    storage.release()
    return path


def written(folder: Path, document: dict[str, Any], name: str = "camera.yaml") -> Path:
    path = folder / name
    path.write_text(json.dumps(document) if name.endswith(".json") else yaml.safe_dump(document), encoding="utf-8")
    return path


def make(folder: Path, kind: str) -> tuple[Path, list[float]]:
    """A file of a format, and its distortion in OpenCV's order."""
    match kind:
        case "ros":
            return written(folder, camera_info()), PLUMB
        case "ros rational":
            return written(folder, camera_info("rational_polynomial", RATIONAL)), RATIONAL
        case "kalibr":
            return written(folder, camchain()), PLUMB[:4]
        case "realsense":
            return written(folder, realsense(), "camera.json"), PLUMB
        case "opencv xml":
            return opencv(folder / "camera.xml", PLUMB), PLUMB
        case "opencv rational":
            return opencv(folder / "camera.yml", RATIONAL), RATIONAL
    return opencv(folder / "camera.yml", PLUMB), PLUMB


@pytest.mark.parametrize(
    "kind", ["ros", "ros rational", "kalibr", "realsense", "opencv", "opencv xml", "opencv rational"]
)
def test_a_lens_projects_as_the_other_program_does(tmp_path: Path, kind: str) -> None:
    path, distortion = make(tmp_path, kind)
    rig, _ = foreign.read_rig(path)
    expected, _ = cv2.projectPoints(POINTS, np.zeros(3), np.zeros(3), K, np.array(distortion))
    assert rig.color.project(POINTS) == pytest.approx(expected[:, 0], abs=1e-6)
    assert (rig.color.width, rig.color.height) == (1280, 720)


def test_the_command_writes_what_a_camera_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = written(tmp_path, camera_info()), tmp_path / "lens.yaml"
    with raises_naming(CalibrationError, path, "calibrate import"):
        open_calibration(path)
    command = ["calibrate", "import", str(path), "--robot", "lab-1", "--serial", "17", "--out", str(out)]
    assert run_command(command) == 0
    assert "ROS camera_info" in capsys.readouterr().out
    assert load_calibration(out, "lab-1", "17").color.fx == 600.0
    assert run_command(command) == 2, "it overwrites nothing"
    assert run_command([*command[:3], "--out", str(tmp_path / "b.yaml")]) == 2, "it belongs to a robot"


@pytest.mark.parametrize(
    ("document", "names"),
    [
        (camera_info("equidistant", PLUMB[:4]), ("equidistant", "no equal")),
        (camera_info("rational_polynomial", [*RATIONAL, 0.1, 0, 0, 0]), ("12 distortion coefficients",)),
        (camera_info(image_width="wide"), ("impossible", "wide")),
        ({key: value for key, value in camera_info().items() if key != "image_width"}, ("image_width",)),
        (camera_info(camera_matrix={"data": [0.7, 0, 0.5, 0, 0.7, 0.5, 0, 0, 1]}), ("fx", "pixels")),
        (camera_info(camera_matrix={"data": [1.0]}), ("missing or impossible",)),
        (camera_info(camera_matrix=3), ("missing or impossible",)),
        (camchain(camera_model="omni"), ("omni",)),
        (camchain(distortion_model="equidistant"), ("equidistant",)),
        ({**camchain(), "cam1": {}}, ("2 cameras",)),
        ({"controls-laserpower": "150", "param-depthunits": "100"}, ("RealSense preset", "driver")),
        ({"CalibrationInformation": {"Cameras": []}}, ("PV0", "driver")),
        ({"CalibrationInformation": 3}, ("missing or impossible",)),
        ({"a": 1}, ("no format", "camera_info")),
    ],
)
def test_what_does_not_convert_is_named(tmp_path: Path, document: dict[str, Any], names: tuple[str, ...]) -> None:
    path = written(tmp_path, document)
    with raises_naming(RuntimeFault, path, *names):
        foreign.read_rig(path)


def test_a_file_without_a_size_gets_it_from_the_command_line(tmp_path: Path) -> None:
    path, out = opencv(tmp_path / "calib.xml", PLUMB, sized=False), tmp_path / "lens.yaml"
    with raises_naming(CalibrationError, path, "--size"):
        foreign.read_rig(path)
    assert run_command(["calibrate", "import", str(path), "--robot", "a", "--size", "1280x720", "--out", str(out)]) == 0
    assert run_command(["calibrate", "import", str(path), "--robot", "a", "--size", "big", "--out", "x.yaml"]) == 2


def test_an_opencv_file_in_place_of_yaml_names_the_command(tmp_path: Path) -> None:
    with raises_naming(ConfigError, "OpenCV", "calibrate import"):
        config.read_yaml(opencv(tmp_path / "calib.yaml", PLUMB))


def test_both_sensors_of_an_azure_kinect_are_read(tmp_path: Path) -> None:
    numbers = [0.5, 0.5, 0.45, 0.6, *[0.4, -2.6, 1.5, 0.3, -2.4, 1.4], 0.0, 0.0, -0.0001, 0.0006]
    turn = np.eye(3).ravel().tolist()

    def camera(location: str, width: int, height: int, x_m: float) -> dict[str, Any]:
        intrinsics = {"ModelParameterCount": 14, "ModelParameters": numbers, "ModelType": "BrownConrady"}
        pose = {"Rotation": turn, "Translation": [x_m, 0.0, 0.0]}
        return {
            "Intrinsics": intrinsics,
            "Location": location,
            "SensorWidth": width,
            "SensorHeight": height,
            "Rt": pose,
        }

    cameras = [
        camera("CALIBRATION_CameraLocationD0", 1024, 1024, 0.0),
        camera("CALIBRATION_CameraLocationPV0", 4096, 3072, -0.032),
    ]
    document = {"CalibrationInformation": {"Cameras": cameras, "Metadata": {"SerialId": "000111"}}}
    rig, kind = foreign.read_rig(written(tmp_path, document, "k4a.json"))
    assert kind == "Azure Kinect"
    assert rig.serial == "000111"
    assert (rig.color.fx, rig.color.fy, rig.color.cx) == pytest.approx((0.45 * 4096, 0.6 * 3072, 2047.5))
    assert rig.color.coefficients[2:4] == (0.0006, -0.0001), "p1, p2: the file has p2 first"
    assert rig.depth.width == 1024
    assert rig.color_from_depth[0, 3] == pytest.approx(-0.032)


def test_a_bundle_of_apriltag_ros_becomes_a_tag_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    half = math.sqrt(0.5)
    layout = [
        {"id": 0, "size": 0.16, "x": 0.0, "y": 0.0, "z": 0.0, "qw": 1.0, "qx": 0.0, "qy": 0.0, "qz": 0.0},
        {"id": 1, "size": 0.16, "x": 0.5, "y": 0.2, "z": 0.0, "qw": half, "qx": 0.0, "qy": half, "qz": 0.0},
    ]
    document = {"standalone_tags": [{"id": 10, "size": 0.15}], "tag_bundles": [{"name": "b", "layout": layout}]}
    path, out = written(tmp_path, document, "tags.yaml"), tmp_path / "ours.yaml"
    with raises_naming(ConfigError, path, "apriltag_ros", "calibrate import"):
        load_tag_map(path)
    assert run_command(["calibrate", "import", str(path), "--at", "3,1.5,1,180", "--out", str(out)]) == 0
    assert "tag 10" in capsys.readouterr().out
    tags = load_tag_map(out).by_id
    assert tags[0].xyz_m == (3.0, 1.5, 1.0)
    assert tags[0].rpy_deg[2] == pytest.approx(180.0) or tags[0].rpy_deg[2] == pytest.approx(-180.0)
    # 0.5 m to the viewer's right, whose right on a wall that faces -x is -y; turned to face that way.
    assert tags[1].xyz_m == pytest.approx((3.0, 1.0, 1.2))
    assert abs(tags[1].rpy_deg[2]) == pytest.approx(90.0)


@pytest.mark.parametrize(
    "document",
    [
        {"standalone_tags": [{"id": 1, "size": 0.1}]},
        {"tag_bundles": [{"layout": [{"id": 0, "size": 5, "x": 0, "y": 0, "z": 0, "qw": 1}]}]},
        {"tag_bundles": [{"layout": [{"id": 0, "size": 0.1, "x": 0, "y": 0, "z": 0, "qw": 0.9, "qz": 0.1}]}]},
        {"tag_bundles": [{"layout": [{"id": "a"}]}]},
        {"tag_bundles": [{"layout": [3]}]},
        {"tag_bundles": [{"layout": 3}]},
        {"tag_bundles": 3},
        {"tag_bundles": [{}]},
    ],
)
def test_tag_files_without_poses_or_sizes_in_meters_are_refused(tmp_path: Path, document: dict[str, Any]) -> None:
    with pytest.raises(RuntimeFault):
        foreign.read_tags(written(tmp_path, document), np.eye(4))
