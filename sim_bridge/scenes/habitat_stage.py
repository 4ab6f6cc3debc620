"""Scene files as habitat-sim takes them, and the statements that it needs to take them right.

Of a stage without a configuration it supposes by the name that a ``.glb`` has z up and its front along y, and any other
file y up and its front along -z (``StageAttributesManager::setDefaultAssetNameBasedAttributes``, 0.2.2 to 0.3.4).
``NAME.stage_config.json`` next to ``NAME.glb`` overrides that, also where the GLB is opened.
"""

import json
import struct
from pathlib import Path
from typing import Literal

from robot_runtime.errors import SceneError

Up = Literal["y", "z"]

CONFIG_SUFFIX = ".stage_config.json"

AXES: dict[Up, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    "y": ((0, 1, 0), (0, 0, -1)),
    "z": ((0, 0, 1), (0, 1, 0)),
}
"""Up and front by the axis that points up."""


def supposed_up(file: Path) -> Up:
    """The axis that habitat-sim supposes to point up in a stage without a configuration."""
    return "z" if file.suffix == ".glb" else "y"


def write_config(path: Path, asset: Path, up: Up) -> Path:
    """Write the configuration of a stage. Raises ``SceneError``."""
    upward, front = AXES[up]
    asset_name = asset.name if asset.parent == path.parent else str(asset.resolve())
    document = {"render_asset": asset_name, "up": upward, "front": front}
    try:
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SceneError(f"{path}: cannot be written: {error.strerror}", "free the disk") from error
    return path


def stated(file: Path, up: Up | None, folder: Path) -> Path:
    """The file to open for a stage that a user names.

    Args:
        file: the file.
        up: the axis that the user says points up; None for what its configuration or habitat-sim supposes.
        folder: folder for a configuration.

    Raises:
        SceneError: nothing is stated, and the file would lie on its side.
    """
    if up is not None:
        return write_config(folder / f"{file.stem}{CONFIG_SUFFIX}", file, up)
    if file.name.endswith(CONFIG_SUFFIX) or file.with_name(f"{file.stem}{CONFIG_SUFFIX}").is_file():
        return file
    supposed, extents_m = supposed_up(file), _extents_m(file)
    if extents_m is not None:
        other: Up = "y" if supposed == "z" else "z"
        tall_m, low_m = extents_m["xyz".index(supposed)], extents_m["xyz".index(other)]
        if tall_m > low_m:
            raise SceneError(
                f"{file}: habitat-sim supposes that {supposed} points up, along which it measures {tall_m:.1f} m, and "
                f"{low_m:.1f} m along {other}",
                f"say what points up with --twin-arg up={other}, or up={supposed}",
            )
    return file


def _extents_m(file: Path) -> tuple[float, float, float] | None:
    """Extents along x, y, z by the file's own statement; None where it makes none that can be read cheaply."""
    try:
        bounds = _glb_bounds(file) if file.suffix == ".glb" else _mesh_bounds(file)
    except (OSError, ValueError, KeyError, IndexError, TypeError, struct.error):
        return None  # habitat-sim says what is wrong with it
    if not bounds:
        return None
    low, high = zip(*((min(low), max(high)) for low, high in bounds), strict=True)
    x, y, z = (top - bottom for bottom, top in zip(low, high, strict=True))
    return x, y, z


def _glb_bounds(file: Path) -> list[tuple[list[float], list[float]]]:
    """Smallest and largest coordinates per axis, from the accessors of a file whose nodes are not turned."""
    with file.open("rb") as stream:
        magic, _, _, length, kind = struct.unpack("<4sIII4s", stream.read(20))
        if (magic, kind) != (b"glTF", b"JSON"):
            return []
        document = json.loads(stream.read(length))
    if any({"rotation", "matrix"} & node.keys() for node in document.get("nodes", ())):
        return []
    used = [primitive["attributes"]["POSITION"] for mesh in document["meshes"] for primitive in mesh["primitives"]]
    accessors = [document["accessors"][index] for index in used]
    return [([a["min"][axis] for a in accessors], [a["max"][axis] for a in accessors]) for axis in range(3)]


def _mesh_bounds(file: Path) -> list[tuple[list[float], list[float]]]:
    import trimesh

    mesh = trimesh.load_mesh(file, process=False)
    low, high = mesh.bounds
    return [([float(low[axis])], [float(high[axis])]) for axis in range(3)]
