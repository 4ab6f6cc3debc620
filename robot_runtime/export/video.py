"""MP4 video of a log: color, depth and map of each step, with its action and result written below."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from robot_runtime.common.creating import creating
from robot_runtime.common.geometry import SE2
from robot_runtime.errors import ConfigError, RecordingError
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord
from robot_runtime.scenes.occupancy_map import Cell

FPS = 4.0
"""Steps per second by default."""

HEIGHT_PX = 480
_LINE_PX = 32
_FONT, _FONT_SCALE = cv2.FONT_HERSHEY_SIMPLEX, 0.55
_MARGIN_M = 0.2
_WHITE, _TRACK, _GOAL, _CONTACT = (240, 240, 240), (41, 120, 214), (33, 166, 89), (214, 38, 41)
_DARK = (24, 26, 32)

Image = NDArray[np.uint8]


def write_video(log: LogReader, path: Path, fps: float = FPS, on_step: Callable[[], None] = lambda: None) -> int:
    """Write one log as H.264 in MP4, and return the number of frames.

    Raises:
        ConfigError: PyAV is not installed.
        RecordingError: the log is damaged or has no steps, or the file cannot be written.
    """
    try:
        import av
    except ImportError as error:
        raise ConfigError("videos need PyAV, which is not installed", "pip install 'robot-runtime[video]'") from error
    count = 0
    with creating(path) as draft, av.open(str(draft), "w") as container:
        stream = None
        for image in frames(log):
            if stream is None:
                stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
                stream.height, stream.width = image.shape[:2]
                stream.pix_fmt = "yuv420p"
                stream.options = {"crf": "20"}
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image)))
            count += 1
            on_step()
        if stream is None:
            raise RecordingError(f"{log.path}: has no step", "give a log with steps")
        container.mux(stream.encode())
    return count


def frames(log: LogReader) -> Iterator[Image]:
    """Yield uint8 (height, width, 3) RGB pictures of the steps, all of one even size. Raises ``RecordingError``."""
    header = log.header
    plan = _Plan(header)
    depth_max_m = header.task.camera.depth_max_m
    for record in log.steps():
        color = _scaled(record.frame.rgb, cv2.INTER_AREA)
        depth = _scaled(_depth_colors(record.frame.depth_m, depth_max_m), cv2.INTER_NEAREST)
        row = np.hstack([color, depth, plan.drawn(record)])
        yield _captioned(row, _caption(header, record))


class _Plan:
    """Map of the scene with the trajectory so far."""

    def __init__(self, header: EpisodeHeader) -> None:
        self._map = header.scene.map
        rows, columns = np.nonzero(self._map.cells != Cell.UNKNOWN)
        if not len(rows):
            rows, columns = np.array([0]), np.array([0])
        margin = round(_MARGIN_M / self._map.resolution_m)
        self._first = (max(int(rows.min()) - margin, 0), max(int(columns.min()) - margin, 0))
        shown = self._map.to_rgb()[
            self._first[0] : int(rows.max()) + margin, self._first[1] : int(columns.max()) + margin
        ]
        self._scale = HEIGHT_PX / shown.shape[0]
        width = max(2 * round(shown.shape[1] * self._scale / 2), 2)
        scaled = cv2.resize(shown[::-1], (width, HEIGHT_PX), interpolation=cv2.INTER_NEAREST)
        self._picture: Image = np.asarray(scaled, np.uint8)
        for goal in header.episode.goals:
            cv2.circle(self._picture, self._pixel(goal.x_m, goal.y_m), 8, _GOAL, 2, cv2.LINE_AA)
        self._radius_m = header.task.robot_radius_m
        self._last: SE2 | None = None

    def drawn(self, record: StepRecord) -> Image:
        """The map after a step; steps must come in order."""
        pose = record.referee.pose
        here = self._pixel(pose.x_m, pose.y_m)
        if self._last is not None:
            cv2.line(self._picture, self._pixel(self._last.x_m, self._last.y_m), here, _TRACK, 2, cv2.LINE_AA)
        if record.result is not None and record.result.collided:
            cv2.drawMarker(self._picture, here, _CONTACT, cv2.MARKER_TILTED_CROSS, 12, 2)
        self._last = pose
        picture: Image = self._picture.copy()
        ahead = self._pixel(*pose.apply(self._radius_m, 0.0))
        cv2.circle(
            picture, here, max(round(self._radius_m / self._map.resolution_m * self._scale), 3), _TRACK, 2, cv2.LINE_AA
        )
        cv2.line(picture, here, ahead, _TRACK, 2, cv2.LINE_AA)
        return picture

    def _pixel(self, x_m: float, y_m: float) -> tuple[int, int]:
        row, column = self._map.to_cell(x_m, y_m)
        x = (column + 0.5 - self._first[1]) * self._scale
        y = HEIGHT_PX - (row + 0.5 - self._first[0]) * self._scale
        return round(x), round(y)


def _depth_colors(depth_m: NDArray[np.float32], max_m: float) -> Image:
    """Depth as colors from near (red) to far (blue); holes are black."""
    shares = np.clip(depth_m / max_m, 0.0, 1.0)
    holes = ~(np.isfinite(depth_m) & (depth_m > 0))
    near = (255 * (1 - np.where(holes, 0, shares))).astype(np.uint8)
    colors: Image = np.asarray(cv2.applyColorMap(near, cv2.COLORMAP_TURBO), np.uint8)
    colors[holes] = 0
    return colors[..., ::-1]


def _scaled(image: Image, interpolation: int) -> Image:
    width = 2 * round(image.shape[1] * HEIGHT_PX / image.shape[0] / 2)
    return np.asarray(cv2.resize(image, (width, HEIGHT_PX), interpolation=interpolation), np.uint8)


def _captioned(row: Image, text: str) -> Image:
    strip = np.full((_LINE_PX, row.shape[1], 3), _DARK, np.uint8)
    cv2.putText(strip, text, (10, 22), _FONT, _FONT_SCALE, _WHITE, 1, cv2.LINE_AA)
    return np.vstack([row, strip])


def _caption(header: EpisodeHeader, record: StepRecord) -> str:
    """One line of ASCII: OpenCV's fonts have no other characters."""
    parts = [f"{header.agent or 'no agent'} on {header.robot}", f"step {record.index}"]
    if record.action is not None and record.result is not None:
        parts.append(f"{record.action.value}: {record.result.outcome.value}")
        if record.result.detail:
            parts.append(record.result.detail)
    here = record.referee.pose
    if header.episode.goals:
        nearest_m = min(math.hypot(goal.x_m - here.x_m, goal.y_m - here.y_m) for goal in header.episode.goals)
        parts.append(f"goal {nearest_m:.2f} m")
    return "  |  ".join(parts).encode("ascii", "replace").decode()
