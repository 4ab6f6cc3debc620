"""What people add to a log after the run: whether they saw the object from where the robot stopped, where things lie.

A log is never changed. What is added stands in ``NAME.evidence.yaml`` beside ``NAME.mcap``, each statement with who
made it and when; later statements overrule earlier ones, and all are kept. The file names the run it belongs to, so
that it is never taken for evidence about another run that was recorded under the same name.
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
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.objects import ObjectPose

SUFFIX = ".evidence.yaml"


@dataclass(frozen=True)
class Annotation:
    """What one person says about one run.

    Attributes:
        who: a name to ask. when: UTC, ISO 8601.
        visible: whether the goal object was in view where the robot stopped; None says nothing about it.
        objects: where objects were when the episode ended, by id, in map; those not named are not spoken of.
        note: anything else.
    """

    who: str
    when: str
    visible: bool | None = None
    objects: dict[str, ObjectPose] = field(default_factory=dict)
    note: str = ""

    __pydantic_config__ = config.STRICT

    def __post_init__(self) -> None:
        if not self.who.strip():
            raise ValueError("a statement needs the name of who makes it")
        if self.visible is None and not self.objects:
            raise ValueError("a statement says whether the object was visible, or where objects are")
        for name, pose in self.objects.items():
            _check_pose(name, pose)


def _check_pose(name: str, pose: ObjectPose) -> None:
    if pose.fault is not None:
        raise ValueError(f"object {name!r}: {pose.fault}")


@dataclass(frozen=True)
class RunIdentity:
    """What tells one run from any other."""

    episode: str
    seed: int
    start_ns: int
    created: str

    __pydantic_config__ = config.STRICT

    @classmethod
    def of(cls, header: EpisodeHeader) -> RunIdentity:
        created = str(header.provenance.get("created", ""))
        return cls(header.episode.key, header.seed, header.start_ns, created)


@dataclass(frozen=True)
class Annotations:
    """The content of an evidence file; without a file, no statements."""

    schema: Literal[1]
    run: RunIdentity
    statements: tuple[Annotation, ...] = ()

    __pydantic_config__ = config.STRICT

    @property
    def verdict(self) -> Annotation | None:
        """The last statement about visibility."""
        return next((said for said in reversed(self.statements) if said.visible is not None), None)

    @property
    def objects(self) -> dict[str, ObjectPose]:
        """Where each object is by the last statement about it."""
        return {name: pose for said in self.statements for name, pose in said.objects.items()}


def annotations_path(log: Path) -> Path:
    """Where the evidence about a log stands."""
    return log.with_suffix(SUFFIX)


def read_annotations(log: Path, header: EpisodeHeader) -> Annotations:
    """The evidence about a log whose header is ``header``.

    Raises:
        RecordingError: the file cannot be understood, or is about another run; names file and field.
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
            f"{path}: is about another run than {log.name}: of {found.run.episode}, recorded {found.run.created}",
            "move it to the log it belongs to, or delete it",
        )
    return found


def add_annotation(
    log: Path,
    who: str,
    visible: bool | None = None,
    objects: dict[str, ObjectPose] | None = None,
    note: str = "",
) -> Annotations:
    """Add a statement, made now, to the evidence about a log.

    Raises:
        ConfigError: the statement says nothing, or nobody makes it.
        RecordingError: no log there, or its evidence cannot be read or written.
    """
    try:
        said = Annotation(who, utc_now_iso(), visible, dict(objects or {}), note)
    except ValueError as error:
        raise ConfigError(f"{log}: {error}", "see `robot-runtime verdict --help`") from error
    with LogReader(log) as reader:
        header = reader.header
    if visible is not None and header.task.kind != "objectnav":
        raise ConfigError(
            f"{log}: task {header.task.name!r} has no object that could be in view", "give verdicts on ObjectNav logs"
        )
    if objects and header.task.kind != "rearrangement":
        raise ConfigError(f"{log}: task {header.task.name!r} moves no objects", "give poses of rearrangement logs")
    evidence = read_annotations(log, header)
    evidence = replace(evidence, statements=(*evidence.statements, said))
    _write(annotations_path(log), evidence)
    return evidence


def read_objects(path: Path) -> dict[str, ObjectPose]:
    """Object poses as an operator types them: ``ID: {position: [x, y, z], quaternion: [w, x, y, z]}``, in map.

    Raises:
        ConfigError: names file, object and field.
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


def _write(path: Path, evidence: Annotations) -> None:
    """Complete or not at all: what others have said must not be lost to a full disk."""
    document = asdict(evidence) | {"statements": [_written(said) for said in evidence.statements]}
    unfinished = path.with_name(f"{path.name}.part")
    try:
        unfinished.write_text(yaml.safe_dump(plain(document), sort_keys=False, allow_unicode=True), encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise RecordingError(
            f"{path}: cannot be written: {error.strerror or error}", "make the folder writable"
        ) from error


def _written(said: Annotation) -> dict[str, object]:
    """What it says, without the fields that say nothing."""
    empty: Sequence[object] = (None, {}, "")
    return {name: value for name, value in asdict(said).items() if value not in empty}
