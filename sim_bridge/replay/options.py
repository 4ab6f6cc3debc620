"""Settings of a replay, and the source of the scenes of logs: a log does not contain meshes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot_runtime.errors import SceneError
from robot_runtime.policy import PolicySource
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from sim_bridge.replay.results import PARTS, Part, Thresholds


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


ADAPTERS = {
    "habitat": "sim_bridge.replay.backends.habitat.make_backend",
    "ai2thor": "sim_bridge.replay.backends.ai2thor.make_backend",
}
"""Adapters of other simulators, by the name that ``--into`` takes."""


def world_name(into: str) -> str:
    """The short name of a value of ``--into``, for folders and options: a file's name without suffix."""
    return Path(into).stem if into.endswith((".yaml", ".yml")) else into


@dataclass(frozen=True)
class ReplayOptions:
    """The settings that all logs of a command share; sent to worker processes.

    Attributes:
        into: a simulated robot's preset or YAML file, ``recorded`` for the log's own, or one of :data:`ADAPTERS`.
        twin_options: options of the simulator, over those in the robot's file.
        parts: parts of the replay to do.
        scene: folder or bundled scene; None for the one that the log names.
        any_scene_version: whether a version of the scene other than the recorded one is accepted.
        images: whether actions are replayed with images.
        forced: whether every action is also replayed from the pose that was recorded before it.
        policy: policy of the open and closed loop; None for the policy named by the log.
        out: folder for results and for the logs of closed loops.
        thresholds: differences beyond which trajectories have diverged.
    """

    into: str = "sim"
    twin_options: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = PARTS
    scene: str | None = None
    any_scene_version: bool = False
    images: bool = False
    forced: bool = False
    policy: PolicySource | None = None
    out: Path = Path("replay")
    thresholds: Thresholds = field(default_factory=Thresholds)
