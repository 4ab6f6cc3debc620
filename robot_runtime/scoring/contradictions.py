"""Contradictions in a log, between a log and the task that it names, and between logs of a row.

Nothing here decides about a score. A log whose records contradict each other word for word is refused instead, see
``recording.integrity``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from robot_runtime.common import config
from robot_runtime.common.geometry import wrap_angle
from robot_runtime.recording.json_records import plain
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.tasks.registry import kind_of
from robot_runtime.tasks.task import Task

JUMP_M = 0.5
"""Difference between referee and odometry in one action that wheels that slip or a localizer's errors may cause."""

JUMP_SHARE = 0.5
"""The same as a share of the distance by odometry, for long continuous actions."""

STRETCH_M = 4.0
"""Distance by odometry after which the comparison of a stretch restarts."""

POSE_ERROR_M = 0.2
"""Error of a referee's position that no note mentions."""

DRIFT_SHARE = 0.08
"""Error of a base's odometry without calibration, as a share of the distance; a calibrated one has 1 to 2 %."""

DRIFT_SHARE_PER_RAD = 0.03
"""The same for each radian turned, by an error of 3 % in angles, which bends what follows."""

TASK_SETTINGS = ("success", "robot_radius_m", "max_steps", "max_seconds", "magnitudes")
"""Fields of a task that decide about success, with its kind's; agents may have other sensors and cameras."""

NO_CHAIN = "no chain, as in older logs: a later change would not be noticed"

_SHOWN = 40


class OdometryCheck:
    """Comparison of the referee's poses with odometry: action by action, and over every few meters.

    The distance between the ends of a stretch is compared, which depends on neither frame. Contact ends a stretch:
    wheels may slip there.

    Attributes:
        jumps: number of actions in which they disagree.
    """

    def __init__(self) -> None:
        self._before: StepRecord | None = None
        self._start: StepRecord | None = None
        self._driven_m = self._turned_rad = 0.0
        self._first = self._drift = ""
        self.jumps = 0

    def on_step(self, record: StepRecord) -> None:
        """Add the next step."""
        before, self._before = self._before, record
        if before is None or before.state.phase != record.state.phase or before.referee.frame != record.referee.frame:
            self._restart(record)
            return
        seen_m, driven_m = _moved_m(before, record)
        if abs(seen_m - driven_m) > max(JUMP_M, JUMP_SHARE * driven_m):
            self.jumps += 1
            self._first = self._first or (
                f"at step {record.index} the referee's pose moved {seen_m:.2f} m, the wheels {driven_m:.2f} m"
            )
            self._restart(record)
        elif record.result is not None and record.result.collided:
            self._restart(record)
        else:
            self._driven_m += driven_m
            turned_rad = record.base.odom.yaw_rad - before.base.odom.yaw_rad
            self._turned_rad += abs(wrap_angle(turned_rad)) if math.isfinite(turned_rad) else 0.0
            self._compare(record)

    def _compare(self, record: StepRecord) -> None:
        start = self._start or record
        seen_m, driven_m = _moved_m(start, record)
        share = DRIFT_SHARE + DRIFT_SHARE_PER_RAD * self._turned_rad
        allowed_m = POSE_ERROR_M + share * self._driven_m + _error_m(start) + _error_m(record)
        if abs(seen_m - driven_m) > allowed_m:
            self._drift = self._drift or (
                f"from step {start.index} to {record.index} the referee's pose moved {seen_m:.2f} m, "
                f"the wheels {driven_m:.2f} m: more than odometry drifts ({allowed_m:.2f} m)"
            )
            self._restart(record)
        elif self._driven_m > STRETCH_M:
            self._restart(record)

    def _restart(self, record: StepRecord) -> None:
        self._start, self._driven_m, self._turned_rad = record, 0.0, 0.0

    def note(self) -> str:
        """The first contradiction in one action, and how many more there are; otherwise the first of a stretch."""
        more = f", and {self.jumps - 1} more such steps" if self.jumps > 1 else ""
        return self._first + more if self._first else self._drift


def _moved_m(before: StepRecord, after: StepRecord) -> tuple[float, float]:
    """Distance between two steps by the referee and by odometry."""
    referee_m = before.referee.pose.distance_to(after.referee.pose)
    return referee_m, before.base.odom.distance_to(after.base.odom)


def _error_m(record: StepRecord) -> float:
    """Three standard deviations of the referee's position, as far as a localizer's word for them goes."""
    variance = float(record.referee.covariance[0, 0] + record.referee.covariance[1, 1])
    return min(3 * math.sqrt(max(variance, 0.0)), POSE_ERROR_M) if math.isfinite(variance) else POSE_ERROR_M


def task_note(header: EpisodeHeader) -> str:
    """Settings in which a log's task differs from the preset of the same name; empty if it does not, or has none."""
    own, preset = _settings(header.task), _preset_settings(header.task.name, Path.cwd())
    differing = [
        f"{name} {own.get(name)}, not {preset.get(name)}"
        for name in (own | preset if preset else ())
        if own.get(name) != preset.get(name)
    ]
    return f"its task is not the {header.task.name!r} of this version: {'; '.join(differing)}" if differing else ""


def mixed_settings(scored: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[str, ...]:
    """The choices that differ among scores of a row, each with its values and how many scores have them.

    Scenes of one name must be one scene; others differ by nature.

    Args:
        scored: scene and choices of each score.
    """
    counts: dict[str, Counter[str]] = {}
    total = 0
    for scene, stated in scored:
        total += 1
        choices = {**stated, f"scene {scene}": stated.get("scene_digest", "")}
        choices.pop("scene_digest", None)
        for name, value in _flat(choices).items():
            counts.setdefault(name, Counter())[f"{value!s:.{_SHOWN}}"] += 1
    for name, values in counts.items():
        if not name.startswith("scene ") and values.total() < total:
            values["not stated"] = total - values.total()
    return tuple(
        f"{name}: {', '.join(f'{value} ({count})' for value, count in values.items())}"
        for name, values in counts.items()
        if len(values) > 1
    )


def _settings(task: Task) -> dict[str, Any]:
    own = {kind_of(task).settings_field: plain(task.settings)} if task.settings is not None else {}
    return _flat({name: plain(getattr(task, name)) for name in TASK_SETTINGS} | own)


@lru_cache(maxsize=64)
def _preset_settings(name: str, folder: Path) -> dict[str, Any]:
    """The settings of a preset; empty if there is none. Presets of the working directory, ``folder``, come first."""
    path = dict(config.presets("tasks")).get(name)
    return {} if path is None else _settings(config.load(path, Task))


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dictionaries as one, with dots in its keys."""
    return dict(_leaves(values, ""))


def _leaves(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
