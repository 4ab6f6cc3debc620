"""Files of verdicts: ``NAME.evidence.yaml`` next to ``NAME.mcap``. The log itself never changes.

A file identifies its run, so that it is never applied to another run that was recorded under the same name.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from robot_runtime.common import config
from robot_runtime.common.clock import utc_now_iso
from robot_runtime.common.yaml_text import dump_yaml
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.recording.durable_file import sync_folder
from robot_runtime.recording.json_output import plain
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader
from robot_runtime.scenes.objects import ObjectPose
from robot_runtime.tasks.kind import KINDS, kind_of
from robot_runtime.verdicts import EpisodeVerdict, Judge, RunIdentity, Verdict, Verdicts

SUFFIX = ".evidence.yaml"
MAX_BYTES = 1 << 20
"""Of a file of verdicts: parsed, a page of lists takes hundreds of times as much memory."""


def verdicts_path(log: Path) -> Path:
    """Path of the file with a log's verdicts."""
    return log.with_suffix(SUFFIX)


def read_verdicts(log: Path, header: EpisodeHeader) -> Verdicts:
    """Read the verdicts on the run of a log with this header.

    Raises:
        RecordingError: the file is malformed, or belongs to another run.
    """
    path, run = verdicts_path(log), RunIdentity.of(header)
    if not path.exists():
        return Verdicts(1, run)
    if not path.is_file() or path.stat().st_size > MAX_BYTES:  # opening a pipe would block
        raise RecordingError(
            f"{path}: is not a file of at most {MAX_BYTES >> 20} MB", "put the verdicts there that a person gave"
        )
    try:
        verdicts = config.load(path, Verdicts)
    except ConfigError as error:
        raise RecordingError(error.message, error.remedy) from error
    if verdicts.run != run:
        raise RecordingError(
            f"{path}: belongs to another run than {log.name}: episode {verdicts.run.episode}, recorded "
            f"{verdicts.run.created}",
            "move it to the log it belongs to, or delete it",
        )
    return verdicts


def add_verdict(
    log: Path,
    who: str,
    visible: bool | None = None,
    objects: dict[str, ObjectPose] | None = None,
    note: str = "",
    judgment: EpisodeVerdict | None = None,
    intervention: bool | None = None,
    judge: Judge | None = None,
) -> Verdicts:
    """Add a verdict, given now, to the file of a log; the fields are those of :class:`~robot_runtime.verdicts.Verdict`.

    Raises:
        ConfigError: the verdict is empty, has no author, or does not fit the task.
        RecordingError: there is no log, or its file of verdicts cannot be read or written.
    """
    try:
        verdict = Verdict(who, utc_now_iso(), visible, dict(objects or {}), note, judgment, intervention, judge)
    except ValueError as error:
        raise ConfigError(f"{log}: {error}", "see `robot-runtime verdict --help`") from error
    with LogReader(log) as reader:
        header = reader.header
    _check_task(log, header, verdict)
    verdicts = read_verdicts(log, header)
    verdicts = replace(verdicts, statements=(*verdicts.statements, verdict))
    _write(verdicts_path(log), verdicts)
    return verdicts


def _check_task(log: Path, header: EpisodeHeader, verdict: Verdict) -> None:
    """Raise ``ConfigError`` unless the log's kind of task has use for the verdict's fields."""
    given = {"visible": verdict.visible is not None, "objects": bool(verdict.objects)}
    for field in sorted(name for name, is_given in given.items() if is_given):
        if field not in kind_of(header.task).verdict_fields:
            takers = [kind for kind, offer in KINDS.usable().items() if field in offer.verdict_fields]
            raise ConfigError(
                f"{log}: task {header.task.name!r} is of kind {header.task.kind}, which has no use for {field!r}",
                f"give it for logs of the kind {' or '.join(takers)}; any log takes a judgment or a note",
            )


def read_objects(path: Path) -> dict[str, ObjectPose]:
    """Read object poses that an operator typed: ``ID: {position: [x, y, z], quaternion: [w, x, y, z]}``, in map.

    Raises:
        ConfigError: the file is malformed.
    """
    data = config.read_yaml(path)
    if not isinstance(data, dict) or not data:
        raise ConfigError(f"{path}: not a mapping of object ids to poses", "write ID: {position: [x, y, z]} per line")
    poses = {str(name): config.parse(pose, ObjectPose, f"{path}: object {name!r}") for name, pose in data.items()}
    for name, pose in poses.items():
        if pose.fault is not None:
            raise ConfigError(f"{path}: object {name!r}: {pose.fault}", "correct the pose")
    return poses


def _write(path: Path, verdicts: Verdicts) -> None:
    """Write the complete file to the disk or nothing, so that a full disk or a power failure loses no verdict."""
    document = asdict(verdicts) | {"statements": [_written(verdict) for verdict in verdicts.statements]}
    unfinished = path.with_name(f"{path.name}.part")
    try:
        text = dump_yaml(plain(document))
        with unfinished.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # a ledger may then hold its hash, and must not hold that of a file that is lost
        unfinished.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise RecordingError(
            f"{path}: cannot be written: {error.strerror or error}", "make the folder writable"
        ) from error


def _written(verdict: Verdict) -> dict[str, object]:
    """The fields that are not empty."""
    empty: Sequence[object] = (None, {}, "")
    return {name: value for name, value in asdict(verdict).items() if value not in empty}
