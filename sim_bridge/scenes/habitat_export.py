"""Export of a scene and its episodes for habitat-sim and ``habitat.Env``.

habitat-lab measures distances in three dimensions, and its agent stands on the navigation mesh, which lies at least one
cell above the scene's lowest point. Starts and goals are written at that height: at the floor's, 0.184 m to the goal
would be measured as 0.272 m after the first step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_runtime.errors import EpisodeError
from robot_runtime.scenes.scene import Scene
from robot_runtime.tasks.episode import Episode
from sim_bridge.scenes.glb import is_transparent, write_glb
from sim_bridge.scenes.habitat_navmesh import Effective
from sim_bridge.scenes.habitat_stage import CONFIG_SUFFIX, write_config
from sim_bridge.scenes.shapes import visual_triangles

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
