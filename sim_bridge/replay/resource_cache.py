"""What is costly to make and serves several logs: scenes, twins, policies."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import ExitStack
from pathlib import Path

from typing_extensions import Self

from robot_runtime.common import config
from robot_runtime.errors import PolicyError, SceneError
from robot_runtime.policies import load_source
from robot_runtime.policy import Policy, PolicySource
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.scene import Scene, find_scene, load_scene
from sim_bridge.replay.backends import mujoco
from sim_bridge.replay.backends.base import Twin, TwinFactory
from sim_bridge.replay.options import ADAPTERS, ReplayOptions

TWINS = 4
"""So many are kept at once: with and without images, of two places. Each takes a hundred megabytes or two."""


class Kept:
    """Makes what a log needs, or has it still from a log before: one twin per place, task, camera and set of objects.

    What a twin or a policy does never depends on the logs before: both begin anew with every episode.
    """

    def __init__(self, options: ReplayOptions) -> None:
        self._options = options
        self._factory = twin_factory(options.into)
        self._scenes: dict[Path, Scene] = {}
        self._twins: OrderedDict[str, Twin] = OrderedDict()
        self._policy: tuple[PolicySource, Policy] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release all of it."""
        with ExitStack() as stack:
            for twin in self._twins.values():
                stack.callback(twin.close)
            if self._policy is not None:
                stack.callback(self._policy[1].close)
        self._twins.clear()
        self._policy = None

    def scene(self, header: EpisodeHeader) -> Scene:
        """The scene to replay a log in, with its meshes.

        Raises:
            SceneError: it is not where the log says and not bundled, or it is another version than was recorded in.
        """
        folder = self._folder(header)
        if folder not in self._scenes:
            self._scenes[folder] = load_scene(folder)
        scene = self._scenes[folder]
        if scene.digest != header.scene.digest and not self._options.any_scene_version:
            raise SceneError(
                f"{folder}: is another version of scene {header.scene.name!r} than the log's: digest "
                f"{scene.digest[:12]}, recorded {header.scene.digest[:12]}",
                "name the recorded version with --scene, or replay in this one with --any-scene-version",
            )
        return scene

    def twin(self, header: EpisodeHeader, scene: Scene | None, images: bool) -> Twin:
        """The twin for a log. Raises what :class:`TwinFactory` does."""
        objects = sorted(item.id for item in header.episode.objects)
        camera = header.intrinsics, header.mount, header.depth_unit_m
        place = scene and scene.folder, header.episode.scene, header.episode.start_z_m  # adapters go by the latter
        # As text: some of it is dictionaries.
        key = repr((images, place, header.task, objects, camera, header.robot_config))
        if key not in self._twins:
            while len(self._twins) >= TWINS:
                self._twins.popitem(last=False)[1].close()
            options = self._options
            where = f"--into {options.into}"
            self._twins[key] = self._factory(header, scene, images, options.twin_options, where)
        self._twins.move_to_end(key)
        return self._twins[key]

    def policy(self, header: EpisodeHeader) -> Policy:
        """The policy that is asked for, else the one that the log names.

        Raises:
            PolicyError: the log names none. RuntimeFault: what ``load_source`` raises.
        """
        source = self._options.policy or header.policy
        if source is None:
            raise PolicyError(
                f"the log does not say where its policy {header.agent!r} came from", "name it with --policy or --agent"
            )
        if self._policy is None or self._policy[0] != source:
            if self._policy is not None:
                self._policy[1].close()
                self._policy = None
            self._policy = source, load_source(source)
        return self._policy[1]

    def _folder(self, header: EpisodeHeader) -> Path:
        if self._options.scene is not None:
            return find_scene(self._options.scene)
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


def twin_factory(into: str) -> TwinFactory:
    """What makes the twins that ``--into`` names. Raises ``ConfigError``."""
    if into not in ADAPTERS:
        return mujoco.factory(into)
    factory: TwinFactory = config.resolve(ADAPTERS[into], f"--into {into}")
    return factory
