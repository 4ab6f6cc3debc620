"""Serialization of an episode's header: JSON, the scene's files without meshes, and provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from robot_runtime.common import config, image_files
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import SceneError
from robot_runtime.hal import Intrinsics
from robot_runtime.policy import PolicySource
from robot_runtime.recording import json_records
from robot_runtime.recording.channels import LOG_FORMAT
from robot_runtime.recording.json_values import finite, integer, loads, mapping, text, texts
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.objects import ObjectSource
from robot_runtime.scenes.occupancy_map import MapFile, OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneFile
from robot_runtime.tasks.episode import Episode
from robot_runtime.tasks.task import Task


def header_to_json(header: EpisodeHeader) -> dict[str, Any]:
    """The header as JSON without provenance, and with the scene's name and digest only."""
    return {
        "format": LOG_FORMAT,
        "episode": json_records.plain(header.episode),
        "task": json_records.plain(header.task),
        "scene": {"name": header.scene.name, "digest": header.scene.digest},
        "robot": header.robot,
        "robot_config": json_records.plain(header.robot_config),
        "agent": header.agent,
        "seed": header.seed,
        "intrinsics": json_records.plain(header.intrinsics),
        "depth_unit_m": header.depth_unit_m,
        "mount": list(header.mount),
        "start_ns": header.start_ns,
        "dataset": header.dataset,
        "object_source": json_records.plain(header.object_source),
        "origin": json_records.plain(header.origin),
        "placement": json_records.plain(header.placement),
        "localizers": json_records.plain(header.localizers),
        "policy": json_records.plain(header.policy),
    }


def scene_files(header: EpisodeHeader) -> list[tuple[str, str, bytes]]:
    """Files of the scene's folder without meshes: (name, media type, content)."""
    scene = header.scene
    view_points = {
        name: [[pose.x_m, pose.y_m, pose.yaw_rad] for pose in poses] for name, poses in scene.view_points.items()
    }
    return [
        # JSON is YAML, and is parsed a hundred times as fast.
        ("scene.yaml", "application/yaml", json.dumps(json_records.plain(scene.file), indent=1).encode()),
        (scene.file.map, "application/yaml", json.dumps(scene.map.to_document("map.pgm"), indent=1).encode()),
        ("map.pgm", "image/x-portable-graymap", scene.map.to_pgm()),
        ("view_points.json", "application/json", json.dumps(view_points).encode()),
    ]


def provenance_to_text(header: EpisodeHeader) -> dict[str, str]:
    """Provenance and the scene's folder as texts by name; values other than text are JSON."""
    provenance = {**header.provenance, "scene_folder": str(header.scene.folder)}
    return {
        key: value if isinstance(value, str) else json_records.dumps(value).decode()
        for key, value in provenance.items()
    }


def header_from_json(
    path: Path, data: Mapping[str, Any], files: Mapping[str, bytes], provenance: Mapping[str, str]
) -> EpisodeHeader:
    """The inverse of the three functions above.

    Args:
        path: of the recording, for messages; its folder is the default of the scene's folder.
        data: of :func:`header_to_json`.
        files: of :func:`scene_files`, by name.
        provenance: of :func:`provenance_to_text`.

    Raises:
        ConfigError, SceneError: a value is malformed; so do the errors of ``json_values.MALFORMED``.
    """
    where = f"{path}: /episode"
    values = {key: _value(text) for key, text in provenance.items()}
    x, y, z = data["mount"]
    return EpisodeHeader(
        episode=config.parse(data["episode"], Episode, f"{where}: episode"),
        task=config.parse(data["task"], Task, f"{where}: task"),
        scene=_scene(path, text(data["scene"]["digest"]), files, Path(values.get("scene_folder", path.parent))),
        robot=text(data["robot"]),
        robot_config=mapping(data["robot_config"]),
        agent=text(data["agent"]),
        seed=integer(data["seed"]),
        intrinsics=_intrinsics(data["intrinsics"]),
        depth_unit_m=finite(data["depth_unit_m"]),
        mount=(finite(x), finite(y), finite(z)),
        start_ns=integer(data["start_ns"]),
        provenance=values,
        dataset=text(data.get("dataset", "")),  # the oldest logs have none
        object_source=ObjectSource(data["object_source"]) if data.get("object_source") else None,
        origin=json_records.pose_from_json(data["origin"]) if data.get("origin") else None,
        placement=json_records.placement_from_json(data["placement"]) if data.get("placement") else None,
        localizers={role: texts(names) for role, names in data.get("localizers", {}).items()},
        policy=config.parse(data["policy"], PolicySource, f"{where}: policy") if data.get("policy") else None,
    )


def _intrinsics(data: Mapping[str, Any]) -> Intrinsics:
    width, height = integer(data["width"]), integer(data["height"])
    if not 0 < width * height <= image_files.MAX_IMAGE_PIXELS:
        raise ValueError(f"a camera of {width} x {height} pixels")
    return Intrinsics(width, height, *(finite(data[name]) for name in ("fx", "fy", "cx", "cy")))


def _scene(path: Path, digest: str, files: Mapping[str, bytes], folder: Path) -> Scene:
    file = config.parse(loads(files["scene.yaml"]), SceneFile, f"{path}: scene.yaml")
    map_file = config.parse(loads(files[file.map]), MapFile, f"{path}: {file.map}")
    try:
        occupancy = _decoded_map(map_file, files[map_file.image])
    except SceneError as error:
        raise SceneError(f"{path}: {error.message}", error.remedy) from error
    view_points = {
        name: tuple(SE2(*map(finite, pose)) for pose in poses)
        for name, poses in loads(files["view_points.json"]).items()
    }
    return Scene(folder, file, occupancy, view_points, digest)


@lru_cache(maxsize=4)
def _decoded_map(file: MapFile, image: bytes) -> OccupancyMap:
    """The map of a scene, one object for the many logs that have the same."""
    decoded = OccupancyMap.decode(file, image, "map.yaml")
    decoded.cells.flags.writeable = False
    return decoded


def _value(text: str) -> Any:
    """Value of a metadata text; lists and dictionaries are JSON."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
