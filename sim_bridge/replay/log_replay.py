"""One log: open it, find its scene, make its twin, do the parts that are wanted, and say what could not be done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from robot_runtime.errors import RecordingError, RuntimeFault
from robot_runtime.policy import Policy
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.scene import Scene
from robot_runtime.scoring.policy_agreement import open_loop
from sim_bridge.replay.action_replay import replay_actions
from sim_bridge.replay.backends.base import Twin
from sim_bridge.replay.closed_loop import run_closed_loop
from sim_bridge.replay.options import ADAPTERS, ReplayOptions
from sim_bridge.replay.pose_replay import Watch, pose_replay
from sim_bridge.replay.resource_cache import Kept
from sim_bridge.replay.results import ActionReplay, ClosedLoop, Note, Part, Replay, SceneCheck

T = TypeVar("T")

PLACED: tuple[Part, ...] = ("pose", "action", "closed")
"""Parts that need the scene."""

DECIDING: tuple[Part, ...] = ("open", "closed")
"""Parts that need the policy."""

Watcher = Callable[[Sequence[StepRecord]], Watch]
"""Given a log's steps, who is shown the images of its pose replay."""


def replay_log(path: Path, options: ReplayOptions, kept: Kept, name: str, watcher: Watcher | None = None) -> Replay:
    """Replay one log.

    What cannot be done, for want of a scene, of poses, of a policy or of what the twin can do, is left out and noted.

    Args:
        kept: of the same options; the caller closes it.
        name: of the log among those that are replayed together, for files in ``options.out``.

    Raises:
        RecordingError: the file is no log, or was torn before its header was written.
    """
    with LogReader(path) as log:
        return _Replaying(log, options, kept).all(name, watcher)


class _Replaying:
    """One log's replay under way: what is found goes into the result, what stands in the way into the notes."""

    def __init__(self, log: LogReader, options: ReplayOptions, kept: Kept) -> None:
        self._log, self._header, self._options, self._kept = log, log.header, options, kept
        self._notes: list[Note] = []
        self._twin_name = options.into
        self._records = self._whole_steps()
        self._scene = self._try("scene", lambda: (kept.scene(log.header), ())) if self._wants(*PLACED) else None
        self._policy = self._try("policy", lambda: (kept.policy(log.header), ())) if self._wants(*DECIDING) else None

    def all(self, name: str, watcher: Watcher | None) -> Replay:
        """Every part that is wanted and can be done."""
        log, header = self._log, self._header
        watch = watcher(self._records) if watcher is not None else None
        pose = self._part("pose", lambda: pose_replay(log, self._records, self._twin(), watch))
        action = self._part("action", self._act)
        decided = self._part("open", lambda: (open_loop(log, self._known_policy()), ()))
        closed = self._part("closed", lambda: self._run(name))
        return Replay(
            log=str(log.path),
            episode=header.episode.key,
            task=header.task.name,
            robot=header.robot,
            agent=header.agent,
            seed=header.seed,
            twin=self._twin_name,
            scene=_check(header, self._scene),
            complete=log.complete,
            notes=tuple(self._notes),
            pose=pose,
            action=action,
            open_loop=decided,
            closed_loop=closed,
        )

    def _wants(self, *parts: Part) -> bool:
        return bool({*parts} & {*self._options.parts})

    def _part(self, part: Part, do: Callable[[], tuple[T, Sequence[Note]]]) -> T | None:
        """A part's result; None where it is not wanted, or lacks a scene or a policy, which is noted already."""
        placeless = part in PLACED and self._scene is None and self._options.into not in ADAPTERS
        undecided = part in DECIDING and self._policy is None
        return None if placeless or undecided or not self._wants(part) else self._try(part, do)

    def _try(self, part: str, do: Callable[[], tuple[T, Sequence[Note]]]) -> T | None:
        """What is done, with its notes; or None, and why not."""
        try:
            found, notes = do()
        except RuntimeFault as error:
            self._notes.append(Note(part, error.message, error.remedy))
            return None
        self._notes += notes
        return found

    def _whole_steps(self) -> list[StepRecord]:
        log, records = self._log, []
        if not log.complete:
            what = "its end was not recorded" if log.end is None else "it is torn"
            self._notes.append(Note("", f"{log.path}: {what}; what is whole is replayed"))
        try:
            for record in log.steps(images=False):
                records.append(record)  # noqa: PERF402 (those before an error are wanted)
        except RecordingError as error:
            self._notes.append(Note("", f"{error.message}; the {len(records)} steps before are replayed", error.remedy))
        return records

    def _twin(self, images: bool | None = None) -> Twin:
        twin = self._kept.twin(self._header, self._scene, self._options.images if images is None else images)
        self._twin_name = twin.name
        return twin

    def _known_policy(self) -> Policy:
        assert self._policy is not None
        return self._policy

    def _act(self) -> tuple[ActionReplay, Sequence[Note]]:
        options, twin = self._options, self._twin()
        return replay_actions(self._log, self._records, twin, options.images, options.forced, options.thresholds)

    def _run(self, name: str) -> tuple[ClosedLoop, Sequence[Note]]:
        folder = self._options.out / "closed_loop" / name
        return run_closed_loop(self._log, self._records, self._twin(images=True), self._known_policy(), folder)


def _check(header: EpisodeHeader, scene: Scene | None) -> SceneCheck:
    recorded = header.scene
    if scene is None:
        return SceneCheck(recorded.name, None, recorded.digest, None)
    return SceneCheck(recorded.name, str(scene.folder), recorded.digest, scene.digest)
