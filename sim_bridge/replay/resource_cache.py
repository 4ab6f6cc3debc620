"""Cache of the scenes, simulators and policies that several logs share."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import ExitStack
from pathlib import Path

from typing_extensions import Self

from robot_runtime.common import config
from robot_runtime.errors import PolicyError
from robot_runtime.policies import load_source
from robot_runtime.policy import Policy, PolicySource
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.scene import Scene
from sim_bridge.replay.backends import mujoco
from sim_bridge.replay.backends.base import BackendFactory, SimulatorBackend
from sim_bridge.replay.options import ADAPTERS, ReplayOptions
from sim_bridge.replay.scene_source import SceneSource

MOST_BACKENDS = 4
"""Simulators that are open at once, each of 100 to 200 MB: with and without images, in two scenes."""


class ReplayCache:
    """The scene, simulator and policy of each log; one simulator per scene, task, camera and set of objects.

    Results do not depend on the logs before: simulator and policy are reset for every episode.
    """

    def __init__(self, options: ReplayOptions) -> None:
        self._options = options
        self._factory = backend_factory(options.into)
        self._scenes: dict[Path, Scene] = {}
        self._simulators: OrderedDict[str, SimulatorBackend] = OrderedDict()
        self._policy: tuple[PolicySource, Policy] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release simulators and policy."""
        with ExitStack() as stack:
            for simulator in self._simulators.values():
                stack.callback(simulator.close)
            if self._policy is not None:
                stack.callback(self._policy[1].close)
        self._simulators.clear()
        self._policy = None

    def scene(self, header: EpisodeHeader) -> Scene:
        """The scene to replay a log in, with its meshes.

        Raises:
            SceneError: there is no such scene, or its version is not the recorded one.
        """
        source = SceneSource(self._options.scene, self._options.any_scene_version)
        return source.of(header, self._scenes, meshes=False)

    def simulator(self, header: EpisodeHeader, scene: Scene | None, images: bool) -> SimulatorBackend:
        """The simulator for a log. Raises as :class:`BackendFactory`."""
        objects = sorted(item.id for item in header.episode.objects)
        camera = header.intrinsics, header.mount, header.depth_unit_m
        place = scene and scene.folder, header.episode.scene, header.episode.start_z_m  # adapters use the last two
        # As text, because some of it is dictionaries.
        key = repr((images, place, header.task, objects, camera, header.robot_config))
        if key not in self._simulators:
            while len(self._simulators) >= MOST_BACKENDS:
                self._simulators.popitem(last=False)[1].close()
            options = self._options
            where = f"--into {options.into}"
            self._simulators[key] = self._factory(header, scene, images, options.twin_options, where)
        self._simulators.move_to_end(key)
        return self._simulators[key]

    def policy(self, header: EpisodeHeader) -> Policy:
        """The policy of the options, else the one that the log names.

        Raises:
            PolicyError: the log names none.
            RuntimeFault: as ``load_source``.
        """
        source = self._options.policy or header.policy
        if source is None:
            raise PolicyError(
                f"the log does not name the source of its policy {header.agent!r}", "name it with --policy or --agent"
            )
        if self._policy is None or self._policy[0] != source:
            if self._policy is not None:
                self._policy[1].close()
                self._policy = None
            self._policy = source, load_source(source)
        return self._policy[1]


def backend_factory(into: str) -> BackendFactory:
    """The constructor of the simulator that ``--into`` names. Raises ``ConfigError``."""
    if into not in ADAPTERS:
        return mujoco.factory(into)
    factory: BackendFactory = config.resolve(ADAPTERS[into], f"--into {into}")
    return factory
