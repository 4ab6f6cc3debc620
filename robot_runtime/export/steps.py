"""Table with a row per step of one or more logs, as CSV or Parquet."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.common.creating import creating
from robot_runtime.errors import ConfigError
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import PHASES, StepRecord

_PLANAR = ("x_m", "y_m", "yaw_rad")
_MOVED = ("forward_m", "turn_rad", "tilt_rad")

COLUMNS: dict[str, type] = {
    "log": str,
    "episode": str,
    "agent": str,
    "robot": str,
    "step": int,
    "time_s": float,
    "action": str,
    "outcome": str,
    "contact": bool,
    "detail": str,
    "duration_s": float,
    **{f"commanded_{name}": float for name in _MOVED},
    **{f"measured_{name}": float for name in _MOVED},
    **{f"pose_{name}": float for name in _PLANAR},
    "pose_frame": str,
    "pose_status": str,
    **{f"referee_{name}": float for name in _PLANAR},
    **{f"odom_{name}": float for name in _PLANAR},
    "pan_rad": float,
    "tilt_rad": float,
    "battery_v": float,
    "battery_fraction": float,
    "exposed_s": float,
    **{f"host_{name}_s": float for name in PHASES},
}
"""Columns and their types. ``time_s`` and ``exposed_s`` count from the episode's start on the robot's clock: the end of
the step's observation, and the exposure of its images. Commanded and measured values are of the step's action, ``pose``
is the policy's localizer's, ``referee`` the scores', ``odom`` the base's; ``host_*_s`` are the host's times by phase.
Empty or null: the step has none."""


def rows(log: LogReader) -> Iterator[dict[str, Any]]:
    """Yield a row of :data:`COLUMNS` for each step. Raises ``RecordingError``: the log is damaged."""
    header = log.header
    same = {"log": log.path.name, "episode": header.episode.id, "agent": header.agent, "robot": header.robot}
    for record in log.steps(images=False):
        yield {**same, **_row(record, header.start_ns)}


def _row(record: StepRecord, start_ns: int) -> dict[str, Any]:
    result = record.result
    row: dict[str, Any] = {
        "step": record.index,
        "time_s": ns_to_seconds(record.times.observed_ns - start_ns),
        "action": None if record.action is None else record.action.value,
        "pose_frame": record.pose.frame,
        "pose_status": record.pose.status.value,
        "pan_rad": record.head.pan_rad,
        "tilt_rad": record.head.tilt_rad,
        "battery_v": record.base.battery_v,
        "battery_fraction": record.base.battery_fraction,
        "exposed_s": ns_to_seconds(record.times.exposed_ns - start_ns),
        **{f"host_{name}_s": record.phase_s.get(name) for name in PHASES},
    }
    for name, pose in (("pose", record.pose.pose), ("referee", record.referee.pose), ("odom", record.base.odom)):
        row |= {f"{name}_{axis}": getattr(pose, axis) for axis in _PLANAR}
    if result is not None:
        row |= {"outcome": result.outcome.value, "contact": result.collided, "detail": result.detail}
        row["duration_s"] = result.duration_s
        for name, moved in (("commanded", result.commanded), ("measured", result.measured)):
            row |= {f"{name}_{axis}": getattr(moved, axis) for axis in _MOVED}
    return row


def write_csv(path: Path, tables: Iterable[Iterable[dict[str, Any]]]) -> int:
    """Write the rows of several logs below a line of names, and return their number.

    Args:
        path: path of the file.
        tables: one per log, of :func:`rows`.

    Raises:
        RecordingError: the file cannot be written.
    """
    count = 0
    with creating(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for table in tables:
            for row in table:
                writer.writerow(row)
                count += 1
    return count


def write_parquet(path: Path, tables: Iterable[Iterable[dict[str, Any]]]) -> int:
    """Write the rows of several logs, one row group each; arguments and result as for :func:`write_csv`.

    Raises:
        ConfigError: pyarrow is not installed.
        RecordingError: the file cannot be written.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigError("Parquet needs pyarrow, which is not installed", _INSTALL) from error
    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    count = 0
    with creating(path) as draft, parquet.ParquetWriter(draft, schema) as writer:
        for table in tables:
            steps = pyarrow.Table.from_pylist(list(table), schema)
            writer.write_table(steps)
            count += steps.num_rows
    return count


_INSTALL = "pip install 'robot-runtime[parquet]'"
