"""Serialization of an episode's header: JSON, the scene's files without meshes, and provenance."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from robot_runtime.common import config, image_files
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import SceneError
from robot_runtime.hal import Intrinsics
from robot_runtime.policy import PolicySource
from robot_runtime.recording import codec, json_output
from robot_runtime.recording.json_records import SPECIAL
from robot_runtime.recording.json_values import finite, loads, mapping, text
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.occupancy_map import MapFile, OccupancyMap
from robot_runtime.scenes.scene import Scene, SceneFile
from robot_runtime.tasks.episode import KIND, Episode
from robot_runtime.tasks.task import Task

LOG_FORMAT = 1
"""Version of the layout of a log, written in its ``/episode`` record."""


def _document(cls: type) -> codec.Codec:
    """The codec of what is also written in YAML files, in which a misspelled field is an error."""
    return codec.Codec(
        lambda data: config.parse(data, cls, f"/episode: {cls.__name__.lower()}", recorded=True), {"type": "object"}
    )


def _intrinsics(data: Mapping[str, Any]) -> Intrinsics:
    intrinsics: Intrinsics = _CAMERA.decode(data)
    if not 0 < intrinsics.width * intrinsics.height <= image_files.MAX_IMAGE_PIXELS:
        raise ValueError(f"a camera of {intrinsics.width} x {intrinsics.height} pixels")
    return intrinsics


_FINITE = replace(codec.NUMBER, decode=finite)
_CAMERA = codec.codec_of(Intrinsics, {float: _FINITE})
_SCENE = {"type": "object", "properties": {"name": codec.TEXT.schema, "digest": codec.TEXT.schema}}
_OLDER_LACK = ("dataset", "object_source", "origin", "placement", "localizers", "policy", "senses_contact")
_SPECIAL: codec.Special = {
    **SPECIAL,
    Episode: _document(Episode),
    Task: _document(Task),
    PolicySource: codec.described("what the agent can be loaded from again")(_document(PolicySource)),
    Scene: codec.Codec(
        lambda data: text(data["digest"]), _SCENE, lambda scene: {"name": scene.name, "digest": scene.digest}
    ),
    Intrinsics: replace(_CAMERA, decode=_intrinsics),
    (EpisodeHeader, "depth_unit_m"): _FINITE,
    (EpisodeHeader, "mount"): codec.codec_of(tuple[float, float, float], {float: _FINITE}),
    **{(EpisodeHeader, name): codec.optional for name in _OLDER_LACK},
}
HEADER = codec.object_codec(
    {name: part for name, part in codec.parts_of(EpisodeHeader, _SPECIAL).items() if name != "provenance"}
)
"""A header's fields without provenance, and with the scene's name and digest only."""

HEADER_SCHEMA: dict[str, Any] = {"format": codec.INTEGER.schema, **HEADER.properties}


def header_to_json(header: EpisodeHeader) -> dict[str, Any]:
    """The header for ``json_output.dumps`` without provenance, and with the scene's name and digest only."""
    return {"format": LOG_FORMAT, **HEADER.encode(header)}


def scene_files(header: EpisodeHeader) -> list[tuple[str, str, bytes]]:
    """Files of the scene's folder without meshes: (name, media type, content)."""
    scene = header.scene
    view_points = {
        name: [[pose.x_m, pose.y_m, pose.yaw_rad] for pose in poses] for name, poses in scene.view_points.items()
    }
    return [
        # JSON is YAML, and is parsed a hundred times as fast.
        ("scene.yaml", "application/yaml", json.dumps(json_output.plain(scene.file), indent=1).encode()),
        (scene.file.map, "application/yaml", json.dumps(scene.map.to_document("map.pgm"), indent=1).encode()),
        ("map.pgm", "image/x-portable-graymap", scene.map.to_pgm()),
        ("view_points.json", "application/json", json.dumps(view_points).encode()),
    ]


def provenance_to_text(header: EpisodeHeader) -> dict[str, str]:
    """Provenance and the scene's folder as texts by name; values other than text are JSON."""
    provenance = {**header.provenance, "scene_folder": str(header.scene.folder)}
    return {
        key: value if isinstance(value, str) else json_output.dumps(value).decode() for key, value in provenance.items()
    }


def header_from_json(
    path: Path, data: Mapping[str, Any], files: Mapping[str, bytes], provenance: Mapping[str, str]
) -> EpisodeHeader:
    """The inverse of the three functions above.

    Args:
        path: path of the recording, for messages; its folder is the default of the scene's folder.
        data: result of :func:`header_to_json`.
        files: files of :func:`scene_files`, by name.
        provenance: result of :func:`provenance_to_text`.

    Raises:
        ConfigError, SceneError: a value is malformed; so do the errors of ``json_values.MALFORMED``.
    """
    values = {key: _value(text) for key, text in provenance.items()}
    fields = HEADER.decode({**data, "episode": {**mapping(data["episode"]), KIND: mapping(data["task"]).get("kind")}})
    folder = Path(values.get("scene_folder", path.parent))
    fields["scene"] = _scene(path, fields["scene"], files, folder)
    return EpisodeHeader(**fields, provenance=values)


def _scene(path: Path, digest: str, files: Mapping[str, bytes], folder: Path) -> Scene:
    file = config.parse(loads(files["scene.yaml"]), SceneFile, f"{path}: scene.yaml", recorded=True)
    map_file = config.parse(loads(files[file.map]), MapFile, f"{path}: {file.map}", recorded=True)
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
