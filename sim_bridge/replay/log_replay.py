"""Replay of a log: its scene, its simulator, the parts that are wanted, and notes about what could not be done."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from typing_extensions import Self

from robot_runtime.common import config
from robot_runtime.errors import PolicyError, RuntimeFault
from robot_runtime.policies import load_source
from robot_runtime.policy import Policy, PolicySource
from robot_runtime.recording.reader import LogReader, before_damage
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.policy_agreement import open_loop
from robot_runtime.tasks.episode import EpisodeDetails
from sim_bridge.replay.action_replay import replay_actions
from sim_bridge.replay.backends import mujoco
from sim_bridge.replay.backends.base import BackendFactory, SimulatorBackend
from sim_bridge.replay.closed_loop import run_closed_loop
from sim_bridge.replay.options import ADAPTERS, ReplayOptions, SceneSource
from sim_bridge.replay.pose_replay import FrameCallback, pose_replay
from sim_bridge.replay.results import ActionReplay, ClosedLoop, Note, Part, Replay, SceneCheck

T = TypeVar("T")

_PARTS_WITH_SCENE: tuple[Part, ...] = ("pose", "action", "closed")
_PARTS_WITH_POLICY: tuple[Part, ...] = ("open", "closed")

FrameCallbackFactory = Callable[[Sequence[StepRecord]], FrameCallback]
"""Returns, for a log's steps, the callback for the images of its pose replay."""


def replay_log(
    path: Path, options: ReplayOptions, cache: ReplayCache, name: str, on_frames: FrameCallbackFactory | None = None
) -> Replay:
    """Replay one log; parts that cannot be done are left out and noted.

    Args:
        path: path of the log file.
        options: settings.
        cache: made of the same options; the caller closes it.
        name: name of the log among those of a command, for files in ``options.out``.
        on_frames: makes the callback for the images of the pose replay.

    Raises:
        RecordingError: the file is not a log, or has no complete header.
    """
    with LogReader(path) as log:
        return _LogReplay(log, options, cache).run(name, on_frames)


class _LogReplay:
    """One log's replay: results and notes."""

    def __init__(self, log: LogReader, options: ReplayOptions, cache: ReplayCache) -> None:
        self._log, self._header, self._options, self._cache = log, log.header, options, cache
        self._notes: list[Note] = []
        self._simulator_name = options.into
        self._facts: tuple[str, ...] = ()
        self._records = self._readable_steps()
        wanted = {*options.parts}
        self._scene: Scene | None = None
        if wanted & {*_PARTS_WITH_SCENE}:
            self._scene = self._try("scene", lambda: (cache.scene(log.header), ()))
        self._policy: Policy | None = None
        if wanted & {*_PARTS_WITH_POLICY}:
            self._policy = self._try("policy", lambda: (cache.policy(log.header), ()))

    def run(self, name: str, on_frames: FrameCallbackFactory | None) -> Replay:
        """Do every part that is wanted and possible."""
        log, header = self._log, self._header
        on_frame = on_frames(self._records) if on_frames is not None else None
        pose = self._part("pose", lambda: pose_replay(log, self._records, self._simulator(), on_frame))
        action = self._part("action", self._replay_actions)
        decided = self._part("open", lambda: (open_loop(log, self._required_policy()), ()))
        closed = self._part("closed", lambda: self._run_closed_loop(name))
        return Replay(
            log=str(log.path),
            episode=header.episode.key,
            task=header.task.name,
            robot=header.robot,
            agent=header.agent,
            seed=header.seed,
            twin=self._simulator_name,
            scene=_check(header, self._scene),
            complete=log.complete,
            notes=tuple(self._notes),
            pose=pose,
            action=action,
            open_loop=decided,
            closed_loop=closed,
            facts=self._facts,
        )

    def _part(self, part: Part, do: Callable[[], tuple[T, Sequence[Note]]]) -> T | None:
        """A part's result; None where it is not wanted, or lacks a scene or a policy; that is noted already."""
        no_scene = part in _PARTS_WITH_SCENE and self._scene is None and self._options.into not in ADAPTERS
        no_policy = part in _PARTS_WITH_POLICY and self._policy is None
        return None if no_scene or no_policy or part not in self._options.parts else self._try(part, do)

    def _try(self, part: str, do: Callable[[], tuple[T, Sequence[Note]]]) -> T | None:
        """The result of a function whose notes, or failure, are noted."""
        try:
            result, notes = do()
        except RuntimeFault as error:
            self._notes.append(Note(part, error.message, error.remedy))
            return None
        self._notes += notes
        return result

    def _readable_steps(self) -> list[StepRecord]:
        log = self._log
        if not log.complete:
            what = "its end was not recorded" if log.end is None else "it is truncated"
            self._notes.append(Note("", f"{log.path}: {what}; the complete part is replayed"))
        records, damage = before_damage(log.steps(images=False))
        if damage is not None:
            what = f"{damage.message}; the {len(records)} steps before are replayed"
            self._notes.append(Note("", what, damage.remedy))
        return records

    def _simulator(self, images: bool | None = None) -> SimulatorBackend:
        images = self._options.images if images is None else images
        simulator = self._cache.simulator(self._header, self._scene, images)
        self._simulator_name = simulator.name
        self._facts = simulator.facts(self._header)
        return simulator

    def _required_policy(self) -> Policy:
        assert self._policy is not None
        return self._policy

    def _replay_actions(self) -> tuple[ActionReplay, Sequence[Note]]:
        options, simulator = self._options, self._simulator()
        return replay_actions(self._log, self._records, simulator, options.images, options.forced, options.thresholds)

    def _run_closed_loop(self, name: str) -> tuple[ClosedLoop, Sequence[Note]]:
        options, simulator = self._options, self._simulator(images=True)
        folder, policy = options.out / "closed_loop" / name, self._required_policy()
        return run_closed_loop(self._log, self._records, simulator, policy, folder, options.thresholds)


def _check(header: EpisodeHeader, scene: Scene | None) -> SceneCheck:
    recorded = header.scene
    if scene is None:
        return SceneCheck(recorded.name, None, recorded.digest, None)
    return SceneCheck(recorded.name, str(scene.folder), recorded.digest, scene.digest)


# --- shared scenes, simulators and policies -------------------------------------------------------------------------


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
        objects = sorted(item.id for item in EpisodeDetails.of(header.episode).objects_to_move)
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
