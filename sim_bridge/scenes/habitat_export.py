"""Export of a scene and its episodes for habitat-sim and ``habitat.Env``.

habitat-lab measures distances in three dimensions, and its agent stands on the navigation mesh, which lies at least one
cell above the scene's lowest point. Starts and goals are written at that height: at the floor's, 0.184 m to the goal
would be measured as 0.272 m after the first step.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.spatial.transform import Rotation

from robot_runtime.common.geometry import ros_to_habitat_position
from robot_runtime.errors import EpisodeError, SceneError
from robot_runtime.scenes.scene import Asset, Material, Scene
from robot_runtime.tasks.episode import Episode
from sim_bridge.scenes.habitat_navmesh import Effective
from sim_bridge.scenes.habitat_stage import CONFIG_SUFFIX, write_config
from sim_bridge.scenes.shapes import visual_triangles

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


CELL_HEIGHT_M = 0.2
"""Height of the cells of habitat-lab's navigation meshes."""


def export_scene(scene: Scene, folder: Path) -> list[Path]:
    """Write ``NAME.glb`` and its stage configuration, and the same with glass as ``NAME_solid`` where there is any.

    Returns:
        The configurations; a navigation mesh is to be computed in the last.

    Raises:
        SceneError: the scene has no meshes, or a file cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    has_glass = any(map(is_transparent, scene.file.materials.values()))
    names = [scene.name, f"{scene.name}_solid"] if has_glass else [scene.name]
    return [write_stage(scene, folder / f"{name}.glb", glass=name != scene.name) for name in names]


def write_stage(scene: Scene, file: Path, glass: bool) -> Path:
    """Write a scene's meshes with their stage configuration next to them; return that. Raises ``SceneError``."""
    write_glb(scene, file, glass)
    return write_config(file.with_name(f"{file.stem}{CONFIG_SUFFIX}"), file, "y")


def navmesh_height_m(scene: Scene, cell_height_m: float = CELL_HEIGHT_M) -> float:
    """Height of habitat-sim's navigation mesh over the scene's floor. Raises ``SceneError`` for an unreadable mesh."""
    lowest_m = min((float(mesh[..., 2].min()) for mesh in visual_triangles(scene.folder, scene.file)), default=0.0)
    return Effective(0.0, cell_height_m, 0.0, 0.0, 0.0).floor_m(min(lowest_m, 0.0))


def at_height(episodes: Sequence[Episode], height_m: float, scene_id: str) -> list[Episode]:
    """The episodes at a height: starts, view points, plain goals, paths; goals that are objects keep theirs.

    Raises:
        EpisodeError: there are none.
    """
    if not episodes:
        raise EpisodeError("there are no episodes to export", "name a file with episodes")
    return [
        replace(
            episode,
            scene=scene_id,
            start_z_m=height_m,
            goals=tuple(goal if goal.object_id else replace(goal, z_m=height_m) for goal in episode.goals),
            info=_at_height(episode.info, height_m),
            details=episode.details and episode.details.at_height(height_m),
        )
        for episode in episodes
    ]


def _at_height(value: Any, height_m: float) -> Any:
    """A data set's other content with the places of agents, in Habitat's axes, at a height; objects keep theirs."""
    if isinstance(value, list):
        return [_at_height(item, height_m) for item in value]
    if not isinstance(value, dict):
        return value
    lifted = {name: _at_height(item, height_m) for name, item in value.items()}
    if value.get("position") is not None and "object_id" not in value:
        lifted["position"] = [value["position"][0], height_m, value["position"][2]]
    if "locations" in value:
        lifted["locations"] = [[x, height_m, z] for x, _, z in value["locations"]]
    return lifted
