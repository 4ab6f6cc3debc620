"""Contradictions in a log, between a log and the task that it names, and between logs of a row.

Nothing here decides about a score. A log whose records contradict each other word for word is refused instead, see
``recording.integrity``.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from robot_runtime.common import config
from robot_runtime.common.differences import flat
from robot_runtime.common.geometry import SE2, wrap_angle
from robot_runtime.recording.json_output import plain
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.geodesic import DistanceField, GeodesicMap, Point
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.tasks.kind import kind_of
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

MAP_ERROR_M = 0.1
"""Error of a map's walls that no note mentions."""

WITHOUT_WALLS = "drivers.fake."
"""Start of the driver's name of a robot without physics, which drives through walls."""

_LONGEST_ARC_RAD = 6.0
"""Turn in one action from which on the length of its path is not told from the distance between its ends."""

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
        self._start_error_m = self._driven_m = self._turned_rad = 0.0
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
        allowed_m = POSE_ERROR_M + share * self._driven_m + self._start_error_m + _error_m(record)
        if abs(seen_m - driven_m) > allowed_m:
            self._drift = self._drift or (
                f"from step {start.index} to {record.index} the referee's pose moved {seen_m:.2f} m, "
                f"the wheels {driven_m:.2f} m: more than odometry drifts ({allowed_m:.2f} m)"
            )
            self._restart(record)
        elif self._driven_m > STRETCH_M:
            self._restart(record)

    def _restart(self, record: StepRecord) -> None:
        self._start, self._start_error_m, self._driven_m, self._turned_rad = record, _error_m(record), 0.0, 0.0

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
    covariance = record.referee.covariance
    variance = covariance.item(0, 0) + covariance.item(1, 1)
    return min(3 * math.sqrt(max(variance, 0.0)), POSE_ERROR_M) if math.isfinite(variance) else POSE_ERROR_M


class WallCheck:
    """Comparison of the referee's poses with walls: cells that the scene's map shows as occupied, and no others.

    Robots of :data:`WITHOUT_WALLS` are not compared, nor are logs that do not name their robot's driver.
    """

    def __init__(self, header: EpisodeHeader) -> None:
        driver = header.robot_config.get("driver")
        self._is_solid = isinstance(driver, str) and not driver.startswith(WITHOUT_WALLS)
        self._poses: list[SE2] = []
        self._errors_m: list[float] = []
        self._path_m = 0.0

    def on_step(self, record: StepRecord) -> None:
        """Add the next step."""
        if not (self._is_solid and record.state.scored and record.referee.frame == "map"):
            return
        pose = record.referee.pose
        if self._poses:
            turned_rad = 0.0 if record.result is None else abs(record.result.measured.turn_rad)
            half_rad = min(turned_rad, _LONGEST_ARC_RAD) / 2
            self._path_m += pose.distance_to(self._poses[-1]) * (half_rad / math.sin(half_rad) if half_rad else 1.0)
        self._poses.append(pose)
        self._errors_m.append(POSE_ERROR_M + _error_m(record))

    def notes(self, field: DistanceField) -> tuple[str, ...]:
        """The contradictions, after the last step."""
        if not self._poses:
            return ()
        shown = field.space.map
        walls = shown.cells == Cell.OCCUPIED
        return tuple(filter(None, (self._depth_note(shown, walls), self._detour_note(field, walls))))

    def _depth_note(self, shown: OccupancyMap, walls: NDArray[np.bool_]) -> str:
        """The pose that lies deepest in a wall, if map and pose errors do not explain it."""
        cells = [
            shown.to_cell(pose.x_m, pose.y_m) if shown.contains(pose.x_m, pose.y_m) else None for pose in self._poses
        ]
        inside = [(cell, error_m) for cell, error_m in zip(cells, self._errors_m, strict=True) if cell and walls[cell]]
        if not inside:
            return ""
        depths_m = (ndimage.distance_transform_edt(np.pad(walls, 1))[1:-1, 1:-1] - 0.5) * shown.resolution_m
        deep = [float(depths_m[cell]) for cell, error_m in inside if depths_m[cell] > error_m + MAP_ERROR_M]
        if not deep:
            return ""
        return f"{len(deep)} of the referee's poses lie up to {max(deep):.2f} m deep in what the map shows as occupied"

    def _detour_note(self, field: DistanceField, walls: NDArray[np.bool_]) -> str:
        """Whether the path is too short for one around the walls, by what a point could do and by all errors."""
        start, end, path_m = self._poses[0], self._poses[-1], self._path_m
        if path_m + field.at(end.x_m, end.y_m) + MAP_ERROR_M >= field.at(start.x_m, start.y_m):
            return ""  # as nearly always; what follows takes longer
        shown = field.space.map
        cells = np.where(walls, Cell.OCCUPIED, Cell.FREE).astype(np.uint8)
        space = GeodesicMap(replace(shown, cells=cells), 0.0)
        open_field = space.field([(float(x_m), float(y_m)) for x_m, y_m in field.targets])
        least_m = min(_distances_m(open_field, start, self._errors_m[0]), default=0.0)
        left_m = max(_distances_m(open_field, end, self._errors_m[-1]), default=math.inf)
        if path_m + left_m + MAP_ERROR_M >= least_m:
            return ""
        return (
            f"the referee's path of {path_m:.2f} m and the {left_m:.2f} m that it left are shorter than any way around "
            f"the map's walls ({least_m:.2f} m)"
        )


def _distances_m(field: DistanceField, pose: SE2, error_m: float) -> list[float]:
    """Distances to the goals from a pose and from around it, where there is a way."""
    around = [(math.cos(number * math.pi / 4), math.sin(number * math.pi / 4)) for number in range(8)]
    places: list[Point] = [(pose.x_m + error_m * x, pose.y_m + error_m * y) for x, y in [(0.0, 0.0), *around]]
    return [distance_m for place in places if math.isfinite(distance_m := field.at(*place))]


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
        for name, value in flat(choices).items():
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
    return flat({name: plain(getattr(task, name)) for name in TASK_SETTINGS} | own)


@lru_cache(maxsize=64)
def _preset_settings(name: str, folder: Path) -> dict[str, Any]:
    """The settings of a preset; empty if there is none. Presets of the working directory, ``folder``, come first."""
    path = dict(config.presets("tasks")).get(name)
    return {} if path is None else _settings(config.load(path, Task))
