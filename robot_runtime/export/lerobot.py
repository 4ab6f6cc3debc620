"""LeRobot data set (format v3.0) of logs: an episode per log, a frame per decision.

A frame has an observation and the ``action`` that was chosen after it, so the last observation of an episode, after
which nothing was chosen, has none. Images are stored without loss. Frames are steps, not video: ``timestamp``
counts them at :data:`FPS`, as LeRobot's loader expects; ``observation.time_s`` has the robot's own time.

Layout and loader: huggingface/lerobot, ``lerobot/datasets/lerobot_dataset.py`` at version 0.4.
"""

from __future__ import annotations

import importlib.util
import io
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from robot_runtime.actions.discrete import Action
from robot_runtime.common.clock import ns_to_seconds
from robot_runtime.errors import ConfigError, RecordingError, writing
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord

if TYPE_CHECKING:
    import pyarrow

FORMAT = "v3.0"
FPS = 1
"""Frames per second of ``timestamp``: one per step."""

STATE = ("x_m", "y_m", "yaw_rad", "tilt_rad")
"""Names of ``observation.state``: pose of the policy's localizer, and the head's tilt."""

ACTIONS = tuple(action.value for action in Action)
"""Names of the values of ``action``."""

_COLOR, _DEPTH = "observation.images.color", "observation.depth_m"
_FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}"
_FILES_PER_CHUNK = 1000
_BATCH = 32
"""Frames in memory."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """One decision: a step, the action chosen after it, and what came of that."""

    seen: StepRecord
    action: int
    contact: bool
    done: bool


@dataclass(frozen=True, slots=True)
class _Episode:
    """Rows of a log in the data set's tables."""

    index: int
    task: str
    first: int
    length: int


class _Statistics:
    """Minimum, maximum, mean and standard deviation of the rows of a feature."""

    def __init__(self) -> None:
        self._count = 0
        self._low: Any = np.inf
        self._high: Any = -np.inf
        self._sum: Any = 0.0
        self._squares: Any = 0.0

    def add(self, row: Any) -> None:
        """Add a frame's values, float64 (n,), or (pixels, channels) of an image."""
        rows = np.atleast_2d(np.asarray(row, np.float64))
        self._count += len(rows)
        self._low, self._high = np.minimum(self._low, rows.min(0)), np.maximum(self._high, rows.max(0))
        self._sum, self._squares = self._sum + rows.sum(0), self._squares + (rows**2).sum(0)

    def as_json(self, shape: tuple[int, ...] = (-1,)) -> dict[str, Any]:
        """The values as ``stats.json`` has them, each of this shape."""
        mean = self._sum / self._count
        spread = np.sqrt(np.maximum(self._squares / self._count - mean**2, 0.0))
        values = {"min": self._low, "max": self._high, "mean": mean, "std": spread}
        return {**{name: value.reshape(shape).tolist() for name, value in values.items()}, "count": [self._count]}


class _Writer:
    """Data set that is being written."""

    def __init__(self, folder: Path, header: EpisodeHeader, depth: bool) -> None:
        self._folder = folder
        self._size = (header.intrinsics.height, header.intrinsics.width)
        self._robot = header.robot
        self._depth = depth
        self._episodes: list[_Episode] = []
        self._statistics = {name: _Statistics() for name in ("observation.state", "action", _COLOR)}

    @property
    def frames(self) -> int:
        """Number of frames so far."""
        return sum(episode.length for episode in self._episodes)

    def add(self, log: LogReader) -> None:
        """Add a log; one without a decision is left out. Raises ``ConfigError``, ``RecordingError``."""
        import pyarrow as pa
        from pyarrow import parquet

        header = log.header
        if (header.intrinsics.height, header.intrinsics.width) != self._size:
            raise ConfigError(
                f"{log.path}: its images have another size than {self._size[1]}x{self._size[0]}",
                "export the logs of each camera separately",
            )
        index, first, task = len(self._episodes), self.frames, _instruction(header)
        task_index = self._tasks([task]).index(task)
        path = self._folder / "data" / f"{_file(index)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        length, frames = 0, _frames(log)
        with ExitStack() as stack:
            file: Any = None
            while batch := list(islice(frames, _BATCH)):
                table = self._table(header, batch)
                numbers = {
                    "timestamp": [number / FPS for number in range(length, length + len(batch))],
                    "frame_index": range(length, length + len(batch)),
                    "episode_index": [index] * len(batch),
                    "index": range(first + length, first + length + len(batch)),
                    "task_index": [task_index] * len(batch),
                }
                for name, values in numbers.items():
                    kind = pa.float32() if name == "timestamp" else pa.int64()
                    table = table.append_column(name, pa.array(list(values), kind))
                file = file or stack.enter_context(parquet.ParquetWriter(path, table.schema))
                file.write_table(table)
                length += len(batch)
        if length:
            self._episodes.append(_Episode(index, task, first, length))

    def finish(self) -> None:
        """Write what describes the data."""
        import pyarrow as pa
        from pyarrow import parquet

        meta = self._folder / "meta"
        (meta / "episodes/chunk-000").mkdir(parents=True)
        names = self._tasks()
        table = pa.table({"task_index": pa.array(range(len(names)), pa.int64()), "task": pa.array(names)})
        # The loader reads it with pandas, and takes the tasks from the index of the table.
        kinds = {"task": ("unicode", "object"), "task_index": ("int64", "int64")}
        columns = [
            {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": stored, "metadata": None}
            for name, (kind, stored) in kinds.items()
        ]
        described = {"index_columns": ["task"], "column_indexes": [], "columns": columns, "pandas_version": "2.0.0"}
        parquet.write_table(table.replace_schema_metadata({"pandas": json.dumps(described)}), meta / "tasks.parquet")
        rows = [self._described(episode) for episode in self._episodes]
        parquet.write_table(pa.Table.from_pylist(rows), meta / "episodes/chunk-000/file-000.parquet")
        statistics = {
            name: found.as_json((3, 1, 1) if name == _COLOR else (-1,)) for name, found in self._statistics.items()
        }
        (meta / "stats.json").write_text(json.dumps(statistics, indent=2), encoding="utf-8")
        info = {
            "codebase_version": FORMAT,
            "robot_type": self._robot,
            "total_episodes": len(self._episodes),
            "total_frames": self.frames,
            "total_tasks": len(names),
            "chunks_size": _FILES_PER_CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "fps": FPS,
            "splits": {"train": f"0:{len(self._episodes)}"},
            "data_path": f"data/{_FILE}.parquet",
            "video_path": None,
            "features": self._features(),
            "action_classes": list(ACTIONS),
        }
        (meta / "info.json").write_text(json.dumps(info, indent=2), encoding="utf-8")

    def _tasks(self, further: Sequence[str] = ()) -> list[str]:
        """The different tasks, in the order in which they came."""
        return list(dict.fromkeys([*(episode.task for episode in self._episodes), *further]))

    def _described(self, episode: _Episode) -> dict[str, Any]:
        chunk, file = divmod(episode.index, _FILES_PER_CHUNK)
        return {
            "episode_index": episode.index,
            "tasks": [episode.task],
            "length": episode.length,
            "data/chunk_index": chunk,
            "data/file_index": file,
            "dataset_from_index": episode.first,
            "dataset_to_index": episode.first + episode.length,
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": 0,
        }

    def _features(self) -> dict[str, dict[str, Any]]:
        height, width = self._size
        one: dict[str, Any] = {"shape": [1], "names": None}
        features: dict[str, dict[str, Any]] = {
            "observation.state": {"dtype": "float32", "shape": [len(STATE)], "names": list(STATE)},
            "observation.time_s": {"dtype": "float32", **one},
            _COLOR: {"dtype": "image", "shape": [height, width, 3], "names": ["height", "width", "channels"]},
        }
        if self._depth:
            features[_DEPTH] = {"dtype": "float32", "shape": [height, width], "names": ["height", "width"]}
        features["action"] = {"dtype": "int64", "shape": [1], "names": ["action"]}
        features |= {name: {"dtype": "bool", **one} for name in ("next.contact", "next.done")}
        features["timestamp"] = {"dtype": "float32", **one}
        features |= {
            name: {"dtype": "int64", **one} for name in ("frame_index", "episode_index", "index", "task_index")
        }
        return features

    def _table(self, header: EpisodeHeader, frames: Sequence[_Frame]) -> pyarrow.Table:
        """The columns of some frames but their numbers."""
        import pyarrow as pa

        states = [_state(frame.seen) for frame in frames]
        for frame, state in zip(frames, states, strict=True):
            self._statistics["observation.state"].add(state)
            self._statistics["action"].add([frame.action])
            self._statistics[_COLOR].add(frame.seen.frame.rgb[::8, ::8].reshape(-1, 3) / 255)
        images = [{"bytes": _png(frame.seen.frame.rgb), "path": None} for frame in frames]
        times = [ns_to_seconds(frame.seen.times.exposed_ns - header.start_ns) for frame in frames]
        columns = {
            "observation.state": pa.array(states, pa.list_(pa.float32(), len(STATE))),
            "observation.time_s": pa.array(times, pa.float32()),
            _COLOR: pa.array(images, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
            _DEPTH: _nested(np.stack([frame.seen.frame.depth_m for frame in frames])) if self._depth else None,
            "action": pa.array([frame.action for frame in frames], pa.int64()),
            "next.contact": pa.array([frame.contact for frame in frames], pa.bool_()),
            "next.done": pa.array([frame.done for frame in frames], pa.bool_()),
        }
        return pa.table({name: column for name, column in columns.items() if column is not None})


def write_dataset(
    logs: Sequence[Path], folder: Path, depth: bool = True, on_log: Callable[[], None] = lambda: None
) -> int:
    """Write a data set, and return the number of frames.

    Args:
        logs: logs whose images have the same size.
        folder: folder of the data set; must not exist.
        depth: whether to include depth, float32 meters.
        on_log: called after every log.

    Raises:
        ConfigError: pyarrow is not installed; the folder exists; an action is continuous; images of two sizes.
        RecordingError: a log is damaged; no log has a decision; a file cannot be written.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise ConfigError("LeRobot data sets need pyarrow", "pip install 'robot-runtime[parquet]'")
    if folder.exists():
        raise ConfigError(f"{folder} exists", "name a new folder")
    writer: _Writer | None = None
    try:
        with writing(folder):
            for path in logs:
                with LogReader(path) as log:
                    writer = writer or _Writer(folder, log.header, depth)
                    writer.add(log)
                on_log()
            if writer is None or not writer.frames:
                raise RecordingError("no log has a decision", "give logs of episodes with discrete actions")
            writer.finish()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return writer.frames


def _frames(log: LogReader) -> Iterator[_Frame]:
    """Yield each step with the action chosen after it."""
    end, before = log.end, None
    for record in log.steps():
        if before is not None:
            done = end is not None and end.steps == record.index
            contact = record.result is not None and record.result.collided
            yield _Frame(before, _action(log, record), contact, done)
        before = record


def _action(log: LogReader, record: StepRecord) -> int:
    if record.action is None or record.command is not None:
        raise ConfigError(f"{log.path}: step {record.index} has no discrete action", "leave this log out")
    return ACTIONS.index(record.action.value)


def _instruction(header: EpisodeHeader) -> str:
    """The task in words: the episode's own instruction or question, else the task's name and category."""
    episode = header.episode
    if episode.details is not None and episode.details.words:
        return episode.details.words
    return " ".join(filter(None, (header.task.name, episode.category)))


def _state(record: StepRecord) -> list[float]:
    pose = record.pose.pose
    return [pose.x_m, pose.y_m, pose.yaw_rad, record.head.tilt_rad]


def _png(rgb: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(rgb).save(file, "PNG", compress_level=3)
    return file.getvalue()


def _nested(depth_m: NDArray[np.float32]) -> pyarrow.Array:
    """Images (frames, rows, columns) as lists of lists, without a Python object per pixel."""
    import pyarrow as pa

    count, rows, columns = depth_m.shape
    flat = pa.array(np.ascontiguousarray(depth_m, np.float32).ravel())
    lines = pa.ListArray.from_arrays(np.arange(0, count * rows + 1, dtype=np.int32) * columns, flat)
    return pa.ListArray.from_arrays(np.arange(0, count + 1, dtype=np.int32) * rows, lines)


def _file(index: int) -> str:
    chunk, file = divmod(index, _FILES_PER_CHUNK)
    return _FILE.format(chunk_index=chunk, file_index=file)
