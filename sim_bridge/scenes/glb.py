"""A scene's meshes as one GLB, for simulators that read nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.spatial.transform import Rotation

from robot_runtime.common.geometry import ros_to_habitat_position
from robot_runtime.errors import SceneError
from robot_runtime.scenes.scene import Asset, Material, Scene

_AXES = np.array([ros_to_habitat_position(*axis) for axis in np.eye(3)], np.float64).T
"""Takes vectors along the ROS axes to glTF's as Habitat lays them: y up, and forward is -z."""


def write_glb(scene: Scene, path: Path, glass: bool = False) -> None:
    """Everything of a scene that can be seen, where it stands at the start.

    ``map``'s x axis points along -z of the file, its z axis along y. Textures are in color: habitat-sim shows gray ones
    in red. It draws what is transparent opaque, and our simulator sees through it, so that is left out.

    Args:
        scene: scene with meshes.
        path: file to write.
        glass: whether transparent surfaces are written too, for a navigation mesh.

    Raises:
        SceneError: the scene has no meshes, or one of its files cannot be read or the file not be written.
    """
    import trimesh

    textured: Any = trimesh.visual.TextureVisuals  # untyped
    if not any(asset.visual for asset in scene.file.assets):
        raise SceneError(
            f"{scene.folder}: the scene has a map and no meshes", "name a scan, or make meshes with `scene from-log`"
        )
    materials = {name: _material(scene.folder, material) for name, material in scene.file.materials.items()}
    whole: Any = trimesh.Scene()
    for asset in scene.file.assets:
        placed = _placed(asset)
        for number, visual in enumerate(asset.visual):
            if not glass and is_transparent(scene.file.materials[visual.material]):
                continue
            file = scene.folder / visual.mesh
            try:
                mesh = trimesh.load_mesh(file, process=False)
            except (OSError, ValueError) as error:
                raise SceneError(f"{file}: cannot be read: {error}", "import the scene again") from error
            uv = getattr(mesh.visual, "uv", None)
            mesh.visual = textured(uv, material=materials[visual.material])
            whole.add_geometry(mesh, node_name=f"{asset.name}_{number}", transform=placed)
    try:
        path.write_bytes(whole.export(file_type="glb"))
    except OSError as error:
        raise SceneError(f"{path}: cannot be written: {error.strerror}", "free the disk") from error


def is_transparent(material: Material) -> bool:
    """Whether light passes through a material."""
    return material.rgba[3] < 1


def _material(folder: Path, material: Material) -> Any:
    from trimesh.visual.material import PBRMaterial

    image: Image.Image | None = None
    if material.texture is not None:
        try:
            image = Image.open(folder / material.texture)
            image = image.convert("RGBA" if image.has_transparency_data else "RGB")
        except OSError as error:
            raise SceneError(
                f"{folder / material.texture}: cannot be read: {error}", "import the scene again"
            ) from error
    look: Any = PBRMaterial  # untyped
    return look(baseColorFactor=material.rgba, baseColorTexture=image, metallicFactor=0.0, roughnessFactor=1.0)


def _placed(asset: Asset) -> np.ndarray:
    """From the asset's frame to the file's, float64 (4, 4)."""
    w, x, y, z = asset.quaternion
    pose = np.eye(4)
    pose[:3, :3] = _AXES @ Rotation.from_quat((x, y, z, w)).as_matrix()
    pose[:3, 3] = _AXES @ np.array(asset.position)
    return pose
