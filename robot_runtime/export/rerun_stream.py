"""Episode in Rerun: images in 3-D, poses, map, plots and events, on the timelines ``time`` and ``step``.

Entities lie under ``/map``, in meters of the map's frame: ``/map/robot`` by the referee, ``/map/robot/camera`` with
color and depth, ``/map/policy_pose`` by the policy's localizer. Plots lie under ``/plots``.
"""

from __future__ import annotations

import atexit
import ctypes
import math
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_runtime.common.clock import SystemClock, ns_to_seconds, wait_for
from robot_runtime.common.creating import creating
from robot_runtime.common.geometry import SE2, optical_axes
from robot_runtime.errors import ConfigError, DriverMissing, RecordingError
from robot_runtime.hal import PoseEstimate
from robot_runtime.recording.messages import MAP_FRAME
from robot_runtime.recording.reader import LogReader
from robot_runtime.records import EpisodeHeader, StepRecord

if TYPE_CHECKING:
    import rerun

VIEWER = "127.0.0.1", 9876
START_S, FLUSH_S = 10.0, 10.0
"""Time limits of the viewer's start, and of what is under way to it at the end."""

_ELSEWHERE = "write a recording with --out episode.rrd, or serve the log with --foxglove"
_LINE_Z_M = 0.02
_ROBOT_LENGTH_M = 0.3
_TRACK, _CONTACT, _GOAL, _POLICY, _OBJECT = (
    (41, 120, 214),
    (214, 38, 41),
    (33, 166, 89),
    (240, 150, 30),
    (140, 140, 153, 90),
)
_JPEG_QUALITY = 90
_MAX_SCALARS = 64
"""Arrays of the policy with more numbers are not plotted."""


@contextmanager
def open_stream(name: str, out: Path | None = None) -> Iterator[rerun.RecordingStream]:
    """A recording, shown in Rerun's viewer, which is started unless it runs, or written to a file.

    Args:
        name: name of the recording.
        out: the file, ``.rrd``; None for the viewer.

    Raises:
        DriverMissing: rerun-sdk is not installed.
        ConfigError: there is no display for the viewer, or the viewer does not start, or ends.
        RecordingError: the file cannot be written.
    """
    shown = sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if out is None and not _listens() and not shown:
        raise ConfigError("there is no display for Rerun's viewer", _ELSEWHERE)
    try:
        import rerun
    except ImportError as error:
        raise DriverMissing(
            "this view needs the package 'rerun-sdk' (Python 3.11 or newer)", "pip install 'robot-runtime[view]'"
        ) from error

    class _Stream(rerun.RecordingStream):
        """A stream that waits for its writer a limited time, and not at all in its destructor unless it is whole."""

        whole = False

        def flush(self, *, timeout_sec: float = FLUSH_S) -> None:
            super().flush(timeout_sec=timeout_sec)

        def __del__(self) -> None:
            if self.whole:
                super().__del__()
            else:  # with a writer that has died, the library's destructor may hold the interpreter forever
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.inner))

    atexit.unregister(rerun.rerun_shutdown)  # it never ends if a signal has left a thread in the library
    with nullcontext() if out is None else creating(out) as draft:
        with _failure_named(out), _Stream("robot_runtime") as stream:
            if draft is None:
                _start_viewer()
                stream.connect_grpc(f"rerun+http://{VIEWER[0]}:{VIEWER[1]}/proxy")
            else:
                stream.save(draft)
            stream.send_recording_name(name)
            yield stream
        if draft is not None and b"FOOT" not in draft.read_bytes()[-16:]:  # the library only logs that it failed
            raise RecordingError(f"{out}: is not complete", "free the disk, and give the command again")
        stream.whole = True


@contextmanager
def _failure_named(out: Path | None) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # what the library raises when its messages cannot be sent or written
        if out is not None:
            raise RecordingError(f"{out}: cannot be written: {error}", "give another file") from error
        raise ConfigError(f"Rerun's viewer has gone: {error}", f"start it again, {_ELSEWHERE}") from error


def _start_viewer() -> None:
    """Start Rerun's viewer, which the package of this interpreter holds, unless one listens. Raises ``ConfigError``."""
    import rerun_cli

    if _listens():
        return
    program = Path(str(rerun_cli.__file__)).parent / "rerun"
    command = [str(program), "--bind", VIEWER[0], "--port", str(VIEWER[1])]
    try:
        quiet = subprocess.DEVNULL
        viewer = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    except OSError as error:
        raise ConfigError(
            f"{program}: {error.strerror or error}", f"install rerun-sdk again, or {_ELSEWHERE}"
        ) from error
    started = wait_for(SystemClock(), lambda: _listens() or viewer.poll() is not None or None, START_S, 0.05)
    if not started or viewer.poll() is not None:
        raise ConfigError(f"{program}: does not listen on {VIEWER[0]}:{VIEWER[1]}", _ELSEWHERE)


def _listens() -> bool:
    try:
        socket.create_connection(VIEWER, 0.5).close()
    except OSError:
        return False
    return True


class RerunEpisode:
    """One episode in a recording.

    Args:
        stream: result of :func:`open_stream`, connected to a viewer or a file.
        header: header of the episode.
    """

    def __init__(self, stream: rerun.RecordingStream, header: EpisodeHeader) -> None:
        self._stream = stream
        self._header = header
        self._index = -1
        self._events = 0
        self._track: list[SE2] = []
        self._contacts: list[SE2] = []
        stream.send_blueprint(_layout())
        self._log_static()

    def add_new(self, log: LogReader, on_step: Callable[[], None] = lambda: None) -> bool:
        """Add what the log has gained since the last call, and return whether the log has its end.

        Args:
            log: the episode's log, opened again since it was written.
            on_step: called after every new step.

        Raises:
            RecordingError: the log is damaged.
        """
        since = self._index
        for record in log.steps(images=False):
            if record.index > since:
                self._add_step(log.with_images(record))
                on_step()
        for index, estimates_by_source in log.poses_by_step():
            if index is not None and index > since:
                for source, estimates in estimates_by_source.items():
                    self._add_poses(source, estimates)
        for event in list(log.events())[self._events :]:
            self._events += 1
            self._say(event.stamp_ns, f"{event.source}: {event.kind} {event.detail}", "INFO")
        if log.end is not None:
            level = "ERROR" if log.end.reason.aborted else "INFO"
            self._say(log.end.stamp_ns, f"end: {log.end.reason.value} {log.end.detail}", level)
        return log.end is not None

    def _add_step(self, record: StepRecord) -> None:
        import rerun as rr

        stream, head = self._stream, record.head
        self._index = record.index
        self._at(record.frame.stamp_ns, record.index)
        self._track.append(record.referee.pose)
        if record.result is not None and record.result.collided:
            self._contacts.append(record.referee.pose)
        stream.log("map/robot", _transform(record.referee.pose))
        rotation = optical_axes(head.pan_rad, head.tilt_rad)
        stream.log("map/robot/camera", rr.Transform3D(translation=self._header.mount, mat3x3=rotation))
        stream.log("map/robot/camera/color", rr.Image(record.frame.rgb).compress(_JPEG_QUALITY))
        stream.log("map/robot/camera/depth", rr.DepthImage(record.frame.depth_m, meter=1.0))
        if record.frame.semantic is not None:
            ids = np.maximum(record.frame.semantic, 0).astype(np.uint16)
            stream.log("map/robot/camera/semantic", rr.SegmentationImage(ids))
        if record.pose.frame == record.referee.frame:
            stream.log("map/policy_pose", _arrow(record.pose.pose, _POLICY))
        points = [(pose.x_m, pose.y_m, _LINE_Z_M) for pose in self._track]
        stream.log("map/track", rr.LineStrips3D([points], colors=[_TRACK], radii=0.015))
        if self._contacts:
            hits = [(pose.x_m, pose.y_m, _LINE_Z_M) for pose in self._contacts]
            stream.log("map/contacts", rr.Points3D(hits, colors=[_CONTACT], radii=0.06))
        for name, value in _scalars(record):
            stream.log(f"plots/{name}", rr.Scalars(value))
        self._say(record.times.observed_ns, *_described(record))

    def _add_poses(self, source: str, estimates: list[PoseEstimate]) -> None:
        """Add raw poses of a source; those of other frames than the map's are left out."""
        import rerun as rr

        here = [(e.pose.x_m, e.pose.y_m, _LINE_Z_M) for e in estimates if e.frame == MAP_FRAME]
        if here:
            self._at(estimates[-1].stamp_ns)
            self._stream.log(rr.new_entity_path(["map", "localizer", source]), rr.Points3D(here, radii=0.02))

    def _say(self, stamp_ns: int, text: str, level: str) -> None:
        import rerun as rr

        self._at(stamp_ns)
        self._stream.log("events", rr.TextLog(text.strip(), level=level))

    def _at(self, stamp_ns: int, index: int | None = None) -> None:
        self._stream.set_time("time", duration=ns_to_seconds(stamp_ns - self._header.start_ns))
        if index is not None:
            self._stream.set_time("step", sequence=index)

    def _log_static(self) -> None:
        import rerun as rr

        header, stream = self._header, self._stream
        stream.log("map", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
        i = header.intrinsics
        matrix = np.array([[i.fx, 0, i.cx], [0, i.fy, i.cy], [0, 0, 1]])
        stream.log(
            "map/robot/camera",
            rr.Pinhole(image_from_camera=matrix, resolution=[i.width, i.height], image_plane_distance=0.3),
            static=True,
        )
        box = rr.Boxes3D(half_sizes=[[header.task.robot_radius_m, header.task.robot_radius_m, 0.05]], colors=[_TRACK])
        stream.log("map/robot/base", box, static=True)
        floor = header.scene.map
        colors = np.ascontiguousarray(floor.to_rgb()[::-1])  # Rerun puts the first row at the largest y
        stream.log(
            "map/floor",
            rr.GridMap(
                data=colors.tobytes(),
                format=rr.components.ImageFormat(
                    width=colors.shape[1], height=colors.shape[0], color_model="RGB", channel_datatype="U8"
                ),
                cell_size=floor.resolution_m,
                translation=[floor.origin_x_m, floor.origin_y_m, 0.0],
            ),
            static=True,
        )
        if header.scene.objects:
            things = header.scene.objects
            w_last = [(*thing.pose.quaternion[1:], thing.pose.quaternion[0]) for thing in things]
            stream.log(
                "map/objects",
                rr.Boxes3D(
                    centers=[thing.center for thing in things],
                    sizes=[thing.size for thing in things],
                    quaternions=w_last,
                    labels=[thing.category for thing in things],
                    show_labels=False,
                    colors=[_OBJECT],
                ),
                static=True,
            )
        goals = header.episode.goals
        if goals:
            stream.log(
                "map/goals",
                rr.Points3D(
                    [(goal.x_m, goal.y_m, goal.z_m) for goal in goals],
                    labels=[goal.object_id or "goal" for goal in goals],
                    colors=[_GOAL],
                    radii=0.1,
                ),
                static=True,
            )
        about = f"{header.agent or 'no agent'} on {header.robot} in {header.scene.name}: {header.task.name}"
        stream.log("about", rr.TextDocument(about), static=True)


def _layout() -> Any:
    import rerun.blueprint as rrb

    return rrb.Blueprint(
        rrb.Horizontal(
            rrb.Spatial3DView(origin="map", name="3-D"),
            rrb.Vertical(
                rrb.Spatial2DView(origin="map/robot/camera/color", name="color"),
                rrb.Spatial2DView(origin="map/robot/camera/depth", name="depth"),
                rrb.Tabs(
                    rrb.TimeSeriesView(origin="plots", name="plots"), rrb.TextLogView(origin="events", name="events")
                ),
                row_shares=[3, 3, 2],
            ),
            column_shares=[3, 2],
        ),
        collapse_panels=True,
    )


def _transform(pose: SE2) -> Any:
    import rerun as rr

    half_rad = pose.yaw_rad / 2
    turned = rr.Quaternion(xyzw=[0, 0, math.sin(half_rad), math.cos(half_rad)])
    return rr.Transform3D(translation=[pose.x_m, pose.y_m, 0], quaternion=turned)


def _arrow(pose: SE2, color: tuple[int, int, int]) -> Any:
    import rerun as rr

    ahead = [_ROBOT_LENGTH_M * math.cos(pose.yaw_rad), _ROBOT_LENGTH_M * math.sin(pose.yaw_rad), 0]
    return rr.Arrows3D(origins=[[pose.x_m, pose.y_m, _LINE_Z_M]], vectors=[ahead], colors=[color])


def _scalars(record: StepRecord) -> Iterator[tuple[str, Any]]:
    """Names and values of a step's plots."""
    yield "battery", record.base.battery_fraction
    if record.result is not None:
        yield "action_s", record.result.duration_s
    for phase, seconds in record.phase_s.items():
        yield f"host_s/{phase}", seconds
    if record.pose.frame == record.referee.frame:
        apart = record.pose.pose.relative_to(record.referee.pose)
        yield "localizer_error_m", math.hypot(apart.x_m, apart.y_m)
    yield from _numbers("policy", record.policy_info)


def _numbers(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The numbers in the policy's basis of decision, by path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(f"{name}/{key}", inner)
    elif _is_number(value):
        yield name, float(value)
    elif isinstance(value, list) and 0 < len(value) <= _MAX_SCALARS and all(map(_is_number, value)):
        yield name, [float(item) for item in value]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _described(record: StepRecord) -> tuple[str, str]:
    """A sentence on a step, and its level."""
    if record.action is None or record.result is None:
        return "start", "INFO"
    result = record.result
    level = "INFO" if result.succeeded else "WARN" if result.collided else "ERROR"
    return f"{record.index} {record.command or record.action}: {result.outcome.value} {result.detail}", level
