"""Source of the scenes of logs, which do not contain meshes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from robot_runtime.errors import SceneError
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.scene import Scene, find_scene, load_scene


@dataclass(frozen=True)
class SceneSource:
    """Place and accepted versions of the scenes of logs.

    Attributes:
        scene: folder or bundled scene for all logs; None for the ones that they name.
        any_version: whether another version of a scene is accepted.
    """

    scene: str | None = None
    any_version: bool = False

    def of(self, header: EpisodeHeader, loaded: dict[Path, Scene] | None = None, meshes: bool = True) -> Scene:
        """The scene of a log.

        Args:
            header: header of the log.
            loaded: scenes by folder; the scene is taken from there, or added.
            meshes: whether the scene must have meshes.

        Raises:
            SceneError: it is neither in the logged folder nor bundled, has no meshes, or is another version.
        """
        folder, loaded = self.folder(header), {} if loaded is None else loaded
        if folder not in loaded:
            loaded[folder] = load_scene(folder)
        scene = loaded[folder]
        if meshes and not scene.file.assets:
            raise SceneError(f"{folder}: has no meshes to simulate", "name a folder with meshes, with --scene")
        if scene.digest != header.scene.digest and not self.any_version:
            raise SceneError(
                f"{folder}: is another version of scene {header.scene.name!r} than the log's: digest "
                f"{scene.digest[:12]}, recorded {header.scene.digest[:12]}",
                "name the recorded version with --scene, or accept this one with --any-scene-version",
            )
        return scene

    def folder(self, header: EpisodeHeader) -> Path:
        """The folder of a log's scene. Raises ``SceneError`` if it is neither where it was nor bundled."""
        if self.scene is not None:
            return find_scene(self.scene)
        recorded = header.scene
        if (recorded.folder / "scene.yaml").is_file():
            return recorded.folder
        try:
            return find_scene(recorded.name)
        except SceneError:
            raise SceneError(
                f"scene {recorded.name!r} is not at {recorded.folder}, where it was when the log was written",
                "name its folder with --scene",
            ) from None
