"""Calibrations and tag maps of other programs: ROS, Kalibr, OpenCV, RealSense, Azure Kinect, apriltag_ros.

Read is what converts exactly; all else is an error that names it. A color calibration becomes a rig whose depth is
registered to color (same lens, no offset), as drivers deliver it with aligned depth; Azure Kinect's has both sensors.

Sources: ROS ``sensor_msgs/CameraInfo`` and ``camera_calibration_parsers``; Kalibr wiki, "Yaml formats"; OpenCV
``FileStorage``; Azure-Kinect-Sensor-SDK 8bb59ca, ``k4atypes.h`` and ``mode_specific_calibration.c``. Axes of a tag in
apriltag_ros (x right, y up, z out of its face) were not checked against a real file.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from robot_runtime.common import config
from robot_runtime.common.transforms import Matrix, rotation_rpy, rpy_of, transform
from robot_runtime.errors import CalibrationError, ConfigError
from robot_runtime.hal.lens import Lens
from robot_runtime.imaging.rig import RgbdCalibration
from robot_runtime.scenes.tag_map import Tag, TagMap

LENS_MODELS = {
    "plumb_bob": "brown_conrady",
    "radtan": "brown_conrady",
    "brown_conrady": "brown_conrady",
    "rational_polynomial": "rational",
    "none": "pinhole",
    "inverse_brown_conrady": "inverse_brown_conrady",
}
"""Names of distortion models in other programs, and the same model here."""

KINECT_PARAMETERS = 14
"""cx, cy, fx, fy as fractions of the sensor, k1 to k6, the center of distortion (2), p2, p1."""

TAG_AXES = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
"""Axes of this project's tag frame (columns: x out, y right, z up) in that of apriltag_ros."""

Size = tuple[int, int]


def read_rig(path: Path, size: Size | None = None) -> tuple[RgbdCalibration, str]:
    """The calibration in another program's file, and the name of its format.

    Args:
        path: file of a camera's calibration.
        size: width and height in pixels, for files without them.

    Raises:
        ConfigError: unreadable, or a value is missing or impossible.
        CalibrationError: of an unknown format, or a model that has no equal here.
    """
    text = _text(path)
    if text.startswith("%YAML:1.0") or "!!opencv-matrix" in text or "<opencv_storage>" in text:
        return _registered(_opencv(path, size), path), "OpenCV FileStorage"
    document = _document(path, text)
    cameras = [name for name in document if name.startswith("cam") and isinstance(document[name], dict)]
    try:
        if "CalibrationInformation" in document:
            return _kinect(document, path), "Azure Kinect"
        if "camera_matrix" in document:
            return _registered(_camera_info(document, path), path), "ROS camera_info"
        if cameras:
            if len(cameras) > 1:
                raise CalibrationError(f"{path}: has {len(cameras)} cameras", "keep the color camera's part, as cam0")
            return _registered(_kalibr(document[cameras[0]], path), path), "Kalibr camchain"
        if {"fx", "fy", "ppx", "ppy"} <= document.keys():
            return _registered(_realsense(document, path), path), "RealSense intrinsics"
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CalibrationError(f"{path}: a value is missing or impossible: {error}", "export the file again") from error
    if any(name.startswith(("controls-", "param-", "aux-param-")) for name in document):
        raise CalibrationError(
            f"{path}: is a RealSense preset of controls, without intrinsics",
            "nothing to import: the driver reads the intrinsics from the device",
        )
    raise CalibrationError(
        f"{path}: is of no format that is read; its keys are {', '.join(list(document)[:6])}",
        "give a ROS camera_info YAML, a Kalibr camchain with intrinsics, an OpenCV FileStorage, or a RealSense or "
        "Azure Kinect JSON",
    )


def is_tag_file(path: Path) -> bool:
    """Whether a file is apriltag_ros' ``tags.yaml``."""
    text = _text(path)
    return "standalone_tags" in text or "tag_bundles" in text


def read_tags(path: Path, at: Matrix) -> tuple[TagMap, list[str]]:
    """The tag map in a file of apriltag_ros, and what it cannot have.

    Args:
        path: its ``tags.yaml``.
        at: pose of the bundle's frame in map, float64 (4, 4), with the axes of this project's tags.

    Raises:
        CalibrationError: there is no bundle, or more than one.
        ConfigError: a value is missing or impossible.
    """
    from scipy.spatial.transform import Rotation

    document = _document(path, _text(path))
    bundles, alone = document.get("tag_bundles") or [], document.get("standalone_tags") or []
    if not isinstance(bundles, list) or len(bundles) != 1 or not isinstance(bundles[0], dict):
        raise CalibrationError(
            f"{path}: needs exactly one tag bundle; standalone tags have no pose",
            "keep one bundle, or measure the tags: `robot-runtime tags survey`",
        )
    layout = bundles[0].get("layout")
    if not isinstance(layout, list) or not layout:
        raise CalibrationError(f"{path}: its bundle has no tags", "write them under 'layout'")
    tags, axes = [], transform((0.0, 0.0, 0.0), TAG_AXES)
    for number, item in enumerate(layout):
        try:
            quaternion = [float(item.get(name, 0.0)) for name in ("qx", "qy", "qz")] + [float(item["qw"])]
            if abs((length := math.hypot(*quaternion)) - 1) > 0.01:
                raise ValueError(f"qw, qx, qy, qz are no rotation: their length is {length:.3g}, not 1")
            turn = Rotation.from_quat(quaternion)
            theirs = transform((float(item["x"]), float(item["y"]), float(item["z"])), turn.as_matrix())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"{path}: layout {number}: {error}", "write id, size, x, y, z, qw, qx, qy, qz") from error
        pose = at @ np.linalg.inv(axes) @ theirs @ axes
        xyz = [round(float(value), 6) for value in pose[:3, 3]]
        rpy = [round(math.degrees(angle), 4) for angle in rpy_of(pose[:3, :3])]
        fields = {"id": item.get("id"), "size_m": item.get("size"), "xyz_m": xyz, "rpy_deg": rpy}
        tags.append(config.parse(fields, Tag, f"{path}: layout {number}"))
    left_out = [f"tag {item.get('id')}: standalone, without a pose" for item in alone if isinstance(item, dict)]
    return TagMap(schema=1, family="tag36h11", tags=tuple(tags), survey={"imported": path.name}), left_out


def planar(x_m: float, y_m: float, z_m: float, yaw_deg: float) -> Matrix:
    """A pose in map with a heading, float64 (4, 4)."""
    return transform((x_m, y_m, z_m), rotation_rpy(0.0, 0.0, math.radians(yaw_deg)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}", "give a text file: YAML, XML or JSON") from error


def _document(path: Path, text: str) -> dict[str, Any]:
    try:
        document = json.loads(text) if text.lstrip().startswith("{") else config.parse_yaml(text, str(path))
    except ValueError:  # flow mappings of YAML begin as JSON does
        document = config.parse_yaml(text, str(path))
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: is not a mapping", "export the file again")
    return document


def _lens(path: Path, size: Sequence[Any], matrix: Sequence[float], model: str, distortion: Sequence[float]) -> Lens:
    """A lens of fx, fy, cx, cy; trailing coefficients beyond those of the model must be 0."""
    own = LENS_MODELS.get(model)
    if own is None:
        raise CalibrationError(
            f"{path}: distortion model {model!r} has no equal here",
            f"calibrate with one of {', '.join(LENS_MODELS)}, or with `robot-runtime calibrate intrinsics`",
        )
    count = {"pinhole": 0, "rational": 8}.get(own, 5)
    if any(distortion[count:]):
        raise CalibrationError(
            f"{path}: {len(distortion)} distortion coefficients, of which {count} convert",
            "calibrate without thin prism and tilt: rational model at most",
        )
    coefficients = [float(value) for value in (*distortion, *[0.0] * count)[:count]]
    fx, fy, cx, cy = (float(value) for value in matrix)
    fields = {"width": int(size[0]), "height": int(size[1]), "fx": fx, "fy": fy, "cx": cx, "cy": cy, "model": own}
    return config.parse({**fields, "coefficients": coefficients}, Lens, str(path))


def _camera_info(document: Mapping[str, Any], path: Path) -> Lens:
    fx, _, cx, _, fy, cy, *_ = document["camera_matrix"]["data"]
    size = (document["image_width"], document["image_height"])
    distortion = document.get("distortion_coefficients", {}).get("data", [])
    return _lens(path, size, (fx, fy, cx, cy), document["distortion_model"], distortion)


def _kalibr(camera: Mapping[str, Any], path: Path) -> Lens:
    if camera["camera_model"] != "pinhole":
        raise CalibrationError(f"{path}: camera model {camera['camera_model']!r} has no equal here", "use pinhole")
    return _lens(
        path, camera["resolution"], camera["intrinsics"], camera["distortion_model"], camera["distortion_coeffs"]
    )


def _realsense(document: Mapping[str, Any], path: Path) -> Lens:
    matrix = [document[name] for name in ("fx", "fy", "ppx", "ppy")]
    model = str(document.get("model", "none")).lower().replace(" ", "_")
    return _lens(path, (document["width"], document["height"]), matrix, model, document.get("coeffs", ()))


def _opencv(path: Path, size: Size | None) -> Lens:
    def first(*names: str) -> Any:
        return next((node for name in names if not (node := storage.getNode(name)).empty()), None)

    try:
        storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_READ)
        matrix = first("camera_matrix", "cameraMatrix", "K", "M1")
        distortion = first("distortion_coefficients", "dist_coeffs", "distCoeffs", "D", "D1")
        width, height = first("image_width", "imageWidth"), first("image_height", "imageHeight")
        values = None if matrix is None else np.asarray(matrix.mat(), float).reshape(3, 3)
        coefficients = [] if distortion is None else np.asarray(distortion.mat(), float).ravel().tolist()
    except (cv2.error, ValueError, SystemError) as error:
        raise ConfigError(
            f"{path}: OpenCV cannot read it: {error!s:.200}", "write it again with FileStorage"
        ) from error
    if values is None:
        raise CalibrationError(f"{path}: has no camera matrix", "write it under 'camera_matrix'")
    if width is not None and height is not None:
        size = (int(width.real()), int(height.real()))
    if size is None:
        raise CalibrationError(f"{path}: does not state the image's size", "add --size WIDTHxHEIGHT")
    model = "none" if not coefficients else "plumb_bob" if len(coefficients) <= 5 else "rational_polynomial"
    return _lens(path, size, (values[0, 0], values[1, 1], values[0, 2], values[1, 2]), model, coefficients)


def _registered(color: Lens, path: Path) -> RgbdCalibration:
    return RgbdCalibration(color, replace(color), np.eye(4), 0.001, "", path.name)


def _kinect(document: Mapping[str, Any], path: Path) -> RgbdCalibration:
    """Both sensors at full size: other modes of the device crop and scale them."""
    about = document["CalibrationInformation"]
    cameras = {str(camera.get("Location", ""))[-3:]: camera for camera in about.get("Cameras", [])}
    if not any(name.endswith("PV0") for name in cameras) or not any(name.endswith("D0") for name in cameras):
        raise CalibrationError(
            f"{path}: lacks the color camera (PV0) or the depth camera (D0)",
            "nothing to import: the driver reads the calibration from the device",
        )
    color, depth = (next(value for key, value in cameras.items() if key.endswith(end)) for end in ("PV0", "D0"))
    lenses = []
    for camera in (color, depth):
        numbers = [float(value) for value in camera["Intrinsics"]["ModelParameters"]]
        width, height = int(camera["SensorWidth"]), int(camera["SensorHeight"])
        model = str(camera["Intrinsics"].get("ModelType", "CALIBRATION_LensDistortionModelBrownConrady"))
        if len(numbers) < KINECT_PARAMETERS or any(numbers[10:12]) or not model.endswith("BrownConrady"):
            raise CalibrationError(f"{path}: its lens model has no equal here", "leave it to the driver")
        cx, cy, fx, fy, k1, k2, k3, k4, k5, k6, _, _, p2, p1 = numbers[:KINECT_PARAMETERS]
        matrix = (fx * width, fy * height, cx * width - 0.5, cy * height - 0.5)
        distortion = (k1, k2, p1, p2, k3, k4, k5, k6)
        lenses.append(_lens(path, (width, height), matrix, "rational_polynomial", distortion))
    pose = transform(tuple(color["Rt"]["Translation"]), np.reshape(color["Rt"]["Rotation"], (3, 3)))
    serial = str(about.get("Metadata", {}).get("SerialId", ""))
    return RgbdCalibration(lenses[0], lenses[1], pose, 0.001, serial, path.name)
