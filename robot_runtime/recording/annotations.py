"""Annotations of a log after the run: success, help, visibility of the goal object, and poses of objects.

People add them, and judges of visibility, whose errors are known; a person's verdict counts before a judge's.

A log is never changed. Annotations are in ``NAME.evidence.yaml`` beside ``NAME.mcap``, each with its author and time;
later ones override earlier ones, and none is deleted. The file identifies its run, so that it is never applied to
another run that was recorded under the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

import yaml

from robot_runtime.common import config
from robot_runtime.common.clock import utc_now_iso
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.recording.json_records import plain
from robot_runtime.recording.judge import Judge
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.objects import ObjectPose

SUFFIX = ".evidence.yaml"


Judgment = Literal["success", "fail", "invalid"]
"""A person's judgment of an episode. An invalid one (wrong start, broken device) says nothing about the policy."""


@dataclass(frozen=True)
class Annotation:
    """Annotation of one run by one person.

    Attributes:
        who: name of the person.
        when: UTC, ISO 8601.
        visible: whether the goal object was in view where the robot stopped; None without a verdict.
        judgment: of the episode; None without one.
        intervention: whether a person helped the robot, which makes the episode a failure; None if nothing was said.
        judge: with its errors, if it is no person; it abstained where ``visible`` is None.
        objects: poses of objects in map at the end of the episode, by id; may be incomplete.
        note: free text.
    """

    who: str
    when: str
    visible: bool | None = None
    objects: dict[str, ObjectPose] = field(default_factory=dict)
    note: str = ""
    judgment: Judgment | None = None
    intervention: bool | None = None
    judge: Judge | None = None

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not self.who.strip():
            raise ValueError("an annotation needs the name of its author")
        said = (self.visible, self.objects or None, self.judgment, self.intervention, self.note.strip() or None)
        if self.judge is None and all(one is None for one in said):
            raise ValueError(
                "an annotation needs a judgment, an intervention, a verdict on visibility, poses of objects, or a note"
            )
        for name, pose in self.objects.items():
            _check_pose(name, pose)


def _check_pose(name: str, pose: ObjectPose) -> None:
    if pose.fault is not None:
        raise ValueError(f"object {name!r}: {pose.fault}")


@dataclass(frozen=True)
class RunIdentity:
    """Identity of a run."""

    episode: str
    seed: int
    start_ns: int
    created: str

    __pydantic_config__ = config.STRICT

    @classmethod
    def of(cls, header: EpisodeHeader) -> RunIdentity:
        """Identity of the run of a header."""
        created = str(header.provenance.get("created", ""))
        return cls(header.episode.key, header.seed, header.start_ns, created)


@dataclass(frozen=True)
class Annotations:
    """Content of an annotation file; without a file, no annotations."""

    schema: Literal[1]
    run: RunIdentity
    statements: tuple[Annotation, ...] = ()

    __pydantic_config__ = config.STRICT

    @property
    def verdict(self) -> Annotation | None:
        """The last annotation of visibility by a person, else the last by a judge that did not abstain."""
        said = [one for one in reversed(self.statements) if one.visible is not None]
        return next((one for one in said if one.judge is None), said[0] if said else None)

    @property
    def judged(self) -> Annotation | None:
        """The last annotation with a judgment of the episode."""
        return next((one for one in reversed(self.statements) if one.judgment is not None), None)

    @property
    def helper(self) -> str:
        """The person who helped the robot, by the last annotation that says so or not; empty if there was none."""
        said = (one for one in reversed(self.statements) if one.intervention is not None)
        return next((one.who if one.intervention else "" for one in said), "")

    @property
    def helped(self) -> bool:
        """Whether a person helped the robot, see :attr:`helper`."""
        return bool(self.helper)

    @property
    def success(self) -> bool | None:
        """Success by a person's judgment; None if it is for the metrics to decide."""
        if self.helped:
            return False
        return None if self.judged is None else self.judged.judgment == "success"

    @property
    def objects(self) -> dict[str, ObjectPose]:
        """Poses of objects, each by its last annotation."""
        return {name: pose for one in self.statements for name, pose in one.objects.items()}


def annotations_path(log: Path) -> Path:
    """Path of a log's annotation file."""
    return log.with_suffix(SUFFIX)


def read_annotations(log: Path, header: EpisodeHeader) -> Annotations:
    """Read the annotations of a log with this header.

    Raises:
        RecordingError: the file is malformed, or belongs to another run.
    """
    path, run = annotations_path(log), RunIdentity.of(header)
    if not path.exists():
        return Annotations(1, run)
    try:
        found = config.load(path, Annotations)
    except ConfigError as error:
        raise RecordingError(error.message, error.remedy) from error
    if found.run != run:
        raise RecordingError(
            f"{path}: belongs to another run than {log.name}: of {found.run.episode}, recorded {found.run.created}",
            "move it to the log it belongs to, or delete it",
        )
    return found


def add_annotation(
    log: Path,
    who: str,
    visible: bool | None = None,
    objects: dict[str, ObjectPose] | None = None,
    note: str = "",
    judgment: Judgment | None = None,
    intervention: bool | None = None,
    judge: Judge | None = None,
) -> Annotations:
    """Add an annotation, made now, to a log.

    Args:
        log: its file.
        who: name of the author.
        visible: see :class:`Annotation`.
        objects: see :class:`Annotation`.
        note: see :class:`Annotation`.
        judgment: see :class:`Annotation`.
        intervention: see :class:`Annotation`.
        judge: see :class:`Annotation`.

    Raises:
        ConfigError: the annotation is empty, has no author, or does not fit the task.
        RecordingError: there is no log, or its annotation file cannot be read or written.
    """
    try:
        added = Annotation(who, utc_now_iso(), visible, dict(objects or {}), note, judgment, intervention, judge)
    except ValueError as error:
        raise ConfigError(f"{log}: {error}", "see `robot-runtime verdict --help`") from error
    with LogReader(log) as reader:
        header = reader.header
    if visible is not None and header.task.kind != "objectnav":
        raise ConfigError(f"{log}: task {header.task.name!r} has no goal object", "give verdicts on ObjectNav logs")
    if objects and header.task.kind != "rearrangement":
        raise ConfigError(f"{log}: task {header.task.name!r} moves no objects", "give poses of rearrangement logs")
    annotations = read_annotations(log, header)
    annotations = replace(annotations, statements=(*annotations.statements, added))
    _write(annotations_path(log), annotations)
    return annotations


def read_objects(path: Path) -> dict[str, ObjectPose]:
    """Read object poses that an operator typed: ``ID: {position: [x, y, z], quaternion: [w, x, y, z]}``, in map.

    Raises:
        ConfigError: the file is malformed.
    """
    data = config.read_yaml(path)
    if not isinstance(data, dict) or not data:
        raise ConfigError(
            f"{path}: is not a mapping of object ids to poses", "write ID: {position: [x, y, z]} per line"
        )
    poses = {str(name): config.parse(pose, ObjectPose, f"{path}: object {name!r}") for name, pose in data.items()}
    try:
        for name, pose in poses.items():
            _check_pose(name, pose)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}", "correct the pose") from error
    return poses


def _write(path: Path, annotations: Annotations) -> None:
    """Write the whole file or nothing, so that a full disk loses no annotation."""
    document = asdict(annotations) | {"statements": [_written(one) for one in annotations.statements]}
    unfinished = path.with_name(f"{path.name}.part")
    try:
        unfinished.write_text(yaml.safe_dump(plain(document), sort_keys=False, allow_unicode=True), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise RecordingError(
            f"{path}: cannot be written: {error.strerror or error}", "make the folder writable"
        ) from error


def _written(annotation: Annotation) -> dict[str, object]:
    """The fields that are not empty."""
    empty: Sequence[object] = (None, {}, "")
    return {name: value for name, value in asdict(annotation).items() if value not in empty}
