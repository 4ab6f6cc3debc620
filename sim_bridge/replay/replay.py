"""One log, or many: open it, find its scene, make its twin, do the parts that are wanted, and say what could not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robot_runtime import config
from robot_runtime.errors import RuntimeFault, SceneError
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader
from robot_runtime.scene import Scene, find_scene, load_scene
from sim_bridge.replay.results import PARTS, Note, Part, Replay, SceneCheck, Thresholds
from sim_bridge.replay.twin import Twin, TwinFactory


@dataclass(frozen=True)
class ReplayOptions:
    """How logs are replayed; the same for all of them, and sent to other processes.

    Attributes:
        into: a simulated robot's preset or YAML file, or a simulator of :data:`ADAPTERS`.
        twin_options: of the twin, by name.
        parts: those that are wanted.
        scene: folder or bundled scene; None for the one that the log names.
        any_scene_version: whether another version of that scene will do.
        images: whether actions are replayed with images.
        forced: whether every action is also replayed from the pose that was recorded before it.
        policy: for open and closed loop, what ``--policy`` or ``--agent`` named; None for the one that the log names.
        policy_arguments: of that policy. policy_python: the interpreter of one that has a process of its own.
        out: folder for the logs of closed loops.
    """

    into: str = "sim"
    twin_options: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Part, ...] = PARTS
    scene: str | None = None
    any_scene_version: bool = False
    images: bool = False
    forced: bool = False
    policy: str | None = None
    policy_arguments: Mapping[str, str] = field(default_factory=dict)
    policy_python: str | None = None
    out: Path = Path("replay")
    thresholds: Thresholds = field(default_factory=Thresholds)


ADAPTERS = {
    "habitat": "sim_bridge.replay.habitat_twin.make_twin",
    "ai2thor": "sim_bridge.replay.thor_twin.make_twin",
}
"""Twins of other simulators, by the name that ``--into`` takes."""


def twin_factory(into: str) -> TwinFactory:
    """What makes the twins that ``--into`` names. Raises ``ConfigError``."""
    factory: TwinFactory = config.resolve(
        ADAPTERS.get(into, "sim_bridge.replay.mujoco_twin.make_twin"), f"--into {into}"
    )
    return factory


class Twins:
    """Scenes and twins that are kept from one log to the next: a twin is built once per place, camera and objects."""

    def __init__(self, options: ReplayOptions) -> None:
        self._options = options
        self._factory = twin_factory(options.into)
        self._scenes: dict[Path, Scene] = {}
        self._kept: tuple[object, Twin] | None = None

    def __enter__(self) -> Twins:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the twin that is kept."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept[1].close()

    def scene_for(self, header: EpisodeHeader) -> Scene:
        """The scene to replay a log in, with its meshes.

        Raises:
            SceneError: it is not where the log says and not bundled, or it is another version than was recorded in.
        """
        scene = self._scene_at(self._folder_for(header))
        if scene.digest != header.scene.digest and not self._options.any_scene_version:
            raise SceneError(
                f"{scene.folder}: is another version of scene {header.scene.name!r} than the log's: digest "
                f"{scene.digest[:12]}, recorded {header.scene.digest[:12]}",
                "name the recorded version with --scene, or replay in this one with --any-scene-version",
            )
        return scene

    def twin_for(self, header: EpisodeHeader, scene: Scene | None) -> Twin:
        """The twin for a log: the last one, if it stands for this log, too. Raises what ``TwinFactory`` does."""
        task, objects = header.task, tuple(item.id for item in header.episode.objects)
        key = (scene and scene.folder, task.camera, objects, header.robot, str(header.robot_config))
        if self._kept is None or self._kept[0] != key:
            self.close()
            options = self._options
            twin = self._factory(header, scene, options.images, options.twin_options, f"--into {options.into}")
            self._kept = key, twin
        return self._kept[1]

    def _folder_for(self, header: EpisodeHeader) -> Path:
        if self._options.scene is not None:
            return find_scene(self._options.scene)
        if (header.scene.folder / "scene.yaml").is_file():
            return header.scene.folder
        try:
            return find_scene(header.scene.name)
        except SceneError:
            raise SceneError(
                f"scene {header.scene.name!r} is not at {header.scene.folder}, where it was when the log was written",
                "name its folder with --scene",
            ) from None

    def _scene_at(self, folder: Path) -> Scene:
        if folder not in self._scenes:
            self._scenes[folder] = load_scene(folder)
        return self._scenes[folder]


def replay_log(path: Path, options: ReplayOptions, twins: Twins) -> Replay:
    """Replay one log.

    What cannot be done, for want of a scene, of poses, of a policy or of what the twin can do, is left out and noted.

    Args:
        twins: of the same options; the caller closes it.

    Raises:
        RecordingError: the file is no log, or was torn before its header was written.
    """
    with LogReader(path) as log:
        header, notes = log.header, list(_torn(log))
        scene = twin = None
        try:
            scene = twins.scene_for(header)
        except RuntimeFault as error:
            notes.append(_note("scene", error))
        return Replay(
            log=str(path),
            episode=header.episode.key,
            task=header.task.name,
            robot=header.robot,
            agent=header.agent,
            seed=header.seed,
            twin=options.into if twin is None else twin.name,
            scene=_check(header, scene),
            complete=log.complete,
            notes=tuple(notes),
        )


def _check(header: EpisodeHeader, scene: Scene | None) -> SceneCheck:
    recorded = header.scene
    if scene is None:
        return SceneCheck(recorded.name, None, recorded.digest, None)
    return SceneCheck(recorded.name, str(scene.folder), recorded.digest, scene.digest)


def _torn(log: LogReader) -> Iterator[Note]:
    if not log.complete:
        what = "its end was not recorded" if log.end is None else "it is torn"
        yield Note("", f"{log.path}: {what}; what is whole was replayed", "mend it with `robot-runtime recover`")


def _note(part: str, error: RuntimeFault) -> Note:
    return Note(part, error.message, error.remedy)
