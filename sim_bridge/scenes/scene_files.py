"""Writing the files of a scene folder: scene.yaml, OBJ meshes, PNG textures."""

import dataclasses
import hashlib
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from PIL import Image

from robot_runtime.common.yaml_text import YamlDumper, dump_yaml
from robot_runtime.scenes.scene import SceneFile

Array = NDArray[np.float64]


def save_scene_file(path: Path, file: SceneFile) -> None:
    """Write ``scene.yaml``; fields that hold their default are left out, short lists stand on one line."""
    document = _plain(file)
    text = dump_yaml(document, _Dumper, width=120)
    path.write_text(text, encoding="utf-8")


class _Dumper(YamlDumper):
    """Lists of numbers in flow style, everything else in block style."""


def _represent_list(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    flat = all(isinstance(item, (int, float)) for item in data)
    points = all(isinstance(item, list) and all(isinstance(v, (int, float)) for v in item) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flat or points)


_Dumper.add_representer(list, _represent_list)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if getattr(value, field.name) != _default(field)
        }
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return round(value, 6) + 0.0 if isinstance(value, float) else value


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def save_obj(path: Path, corners: Array, normals: Array | None = None, uv: Array | None = None) -> None:
    """Write triangles (M, 3, 3) with optional normals (M, 3, 3) and texture coordinates (M, 3, 2); 10 um steps."""
    lines: list[str] = []
    columns: list[NDArray[np.int64] | None] = []
    for keyword, values, decimals in (("v", corners, 5), ("vt", uv, 5), ("vn", normals, 4)):
        if values is None:
            columns.append(None)
            continue
        flat = np.round(values.reshape(-1, values.shape[-1]), decimals) + 0.0
        unique, inverse = np.unique(flat, axis=0, return_inverse=True)
        lines += [keyword + "".join(f" {number}" for number in row) for row in unique.tolist()]
        columns.append(inverse.reshape(-1) + 1)
    words = _corner_words(columns)
    lines += [f"f {a} {b} {c}" for a, b, c in zip(words[0::3], words[1::3], words[2::3], strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _corner_words(columns: list[NDArray[np.int64] | None]) -> list[str]:
    vertex, texture, normal = (None if column is None else column.tolist() for column in columns)
    if vertex is None:
        return []
    if texture is not None and normal is not None:
        return [f"{v}/{t}/{n}" for v, t, n in zip(vertex, texture, normal, strict=True)]
    if texture is not None:
        return [f"{v}/{t}" for v, t in zip(vertex, texture, strict=True)]
    if normal is not None:
        return [f"{v}//{n}" for v, n in zip(vertex, normal, strict=True)]
    return [str(v) for v in vertex]


def shrink(image: Image.Image, longest_px: int) -> Image.Image:
    """The image as RGB on white where it is transparent, reduced so that no edge is longer than ``longest_px``."""
    if image.mode in ("RGBA", "LA", "P", "PA"):
        rgba = image.convert("RGBA")
        ground = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        image = Image.alpha_composite(ground, rgba)
    image = image.convert("RGB")
    factor = longest_px / max(image.size)
    if factor < 1:
        size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
        image = image.resize(size, Image.Resampling.LANCZOS)
    return image


def digest(*arrays: Array | None) -> str:
    """A name for content: sha256 of the arrays' values to 10 um, 16 hex digits."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(b"-" if array is None else np.round(array * 1e5).astype(np.int64).tobytes())
    return total.hexdigest()[:16]
