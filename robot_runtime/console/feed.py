"""State of the robot for the page: gathered in its loop, sent from a thread of its own to the page's process.

The loop only leaves references behind. Whatever the thread has not sent when something newer comes is dropped.
"""

import math
import shutil
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from robot_runtime.common.clock import Stopwatch, ns_to_seconds
from robot_runtime.common.geometry import SE2
from robot_runtime.console import pipe
from robot_runtime.console.alerts import Forecast, alerts
from robot_runtime.console.live_video import RATE_HZ
from robot_runtime.console.supervision import Supervision
from robot_runtime.errors import RuntimeFault
from robot_runtime.estop.requests import Stops
from robot_runtime.hal import BaseState, Halt, PoseEstimate, RgbdFrame, Robot, Zone
from robot_runtime.hal.events import Event
from robot_runtime.placement.offset import Offset, Tolerance
from robot_runtime.policies.baselines.blind import offset_to_goal
from robot_runtime.records import EpisodeEnd, EpisodeHeader, StepRecord, Subscriber
from robot_runtime.scenes.occupancy_map import Cell, OccupancyMap
from robot_runtime.tasks.episode import Episode

STATE_HZ = 5.0
FULL_DISK_BYTES = 200e6
"""Space at which recording counts as in danger; ``campaign`` begins no run below it."""

FROZEN_S = 20.0
"""Time for which the page's process may take nothing; it needs some to start."""

CAMPAIGN_S = 3.0
"""Period at which a campaign's status is read."""

CAMPAIGN = ("title", "done", "total", "eta_s", "answer", "rows", "asks", "closing")
"""Fields of a campaign's status that the page shows; none of them names a sealed policy."""

GOALS = 50
"""Largest number of goals on the map."""

DEPTH_WIDTH = 320
"""Least width to which depth is thinned out for the page."""

_GRAY = {Cell.FREE: 255, Cell.OCCUPIED: 0, Cell.UNKNOWN: 128}


class Feed(Subscriber):
    """Source of the page's messages.

    Args:
        robot: connected.
        stops: emergency stop of the robot.
        supervision: supervision of the robot's loop.
        connection: connection to the page's process.
        on_lost: called once with a line when that process has ended, or takes nothing any more.
        notify: called with a line when a person is needed.
        campaign: returns the status of the campaign that the run belongs to (``campaign.status``); None without one.
        log: returns the file of the present or last log; None where nothing is recorded.

    Attributes:
        viewers: number of pages that are open.
    """

    def __init__(
        self,
        robot: Robot,
        stops: Stops,
        supervision: Supervision,
        connection: Connection,
        on_lost: Callable[[str], None],
        notify: Callable[[str], None],
        campaign: Callable[[], dict[str, Any]] | None = None,
        log: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self.viewers = 0
        self._robot, self._stops, self._supervision = robot, stops, supervision
        self._connection, self._on_lost, self._campaign = connection, on_lost, campaign
        self._notify, self._alerts = notify, dict[str, str]()
        self._news, self._ended = threading.Condition(), threading.Event()
        self._waiting: dict[str, Any] = {}
        self._sending: Stopwatch | None = None
        self._is_lost = False
        self._frame: RgbdFrame | None = None
        self._frame_age = Stopwatch()
        self._record: StepRecord | None = None
        self._path: list[list[float]] = []
        self._facts: dict[str, Any] = {
            "stage": "idle",
            "robot": robot.name,
            "view": supervision.view,
            "human": supervision.human,
        }
        self._log = log
        self._battery, self._disk = Forecast(robot.min_battery_fraction), Forecast(FULL_DISK_BYTES)
        self._uptime = Stopwatch()
        self._offset: dict[str, Any] | None = None
        self._lost = ""
        # Two, so that a page's process that takes nothing holds up no alert.
        self._watcher = threading.Thread(target=self._watch, name="console feed", daemon=True)
        self._sender = threading.Thread(target=self._send_all, name="console sender", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._watcher.start()
        self._sender.start()

    def say_goodbye(self, content: dict[str, Any], within_s: float) -> None:
        """Show a last message, and return once it was handed over, or after ``within_s``."""
        self.put("closing", content)
        timer = Stopwatch()
        while (self._waiting or self._sending is not None) and timer.elapsed_s() < within_s and not self._is_lost:
            self._ended.wait(0.02)

    def close(self, end_s: float, kill: Callable[[], object]) -> None:
        """End sending.

        Args:
            end_s: longest time for the message that is being sent to pages, in seconds; shorter where none is open.
            kill: ends the page's process, which takes nothing any more.
        """
        self._ended.set()
        self._watcher.join()
        self._sender.join(end_s if self.viewers else min(end_s, 1 / STATE_HZ))
        if self._sender.is_alive():
            kill()
            self._sender.join()

    @property
    def shows_map(self) -> bool:
        """Whether the page may show map and pose."""
        return self._supervision.view in ("all", "in-sight")

    def show(self, frame: RgbdFrame) -> None:
        """Show a picture."""
        self._frame = frame
        self._frame_age.restart()

    def put(self, kind: str, content: Any) -> None:
        """Send a message soon, unless another one of its kind comes before."""
        with self._news:
            self._waiting[kind] = content
            self._news.notify()

    # --- the robot's thread -----------------------------------------------------------------------------------------

    def begin(self, episode: Episode, number: int, total: int, reference: bytes | None) -> None:
        """An episode is about to begin.

        Args:
            episode: episode to be run.
            number: number of the episode, from 1.
            total: number of episodes.
            reference: picture at the start of an earlier run of this episode as JPEG; None without one.
        """
        self._record, self._offset, self._lost, self._path = None, None, "", []
        start = episode.start
        self._facts |= {
            "stage": "placing",
            "episode": episode.id,
            "number": number,
            "total": total,
            "goal": (episode.details.words if episode.details else "") or episode.category or "",
            "start": [start.x_m, start.y_m, start.yaw_rad],
            "goals": self._goals(episode),
            "step": 0,
            "action": None,
            "outcome": None,
        }
        self.put("reference", reference)
        self.put("path", {"points": []})

    def _goals(self, episode: Episode) -> list[list[float]]:
        """Places of the goals for the map; none for a person who is to find them."""
        if not self.shows_map or self._supervision.human:
            return []
        return [[round(goal.x_m, 3), round(goal.y_m, 3)] for goal in episode.goals[:GOALS]]

    def show_offset(self, offset: Offset | None, note: str, tolerance: Tolerance) -> None:
        """Show how far the robot is from its start."""
        measured = {} if offset is None else _offset(offset, tolerance)
        self._offset = {"note": note, **measured}

    def stage(self, stage: str) -> None:
        """Say what the loop does: ``idle``, ``placing``, ``running`` or ``over``."""
        self._facts |= {"stage": stage}

    @override
    def on_episode_start(self, header: EpisodeHeader) -> None:
        self._offset = None
        task, self._goal_form = header.task, header.task.pointgoal_format
        self._facts |= {
            "stage": "running",
            "task": task.name,
            "max_steps": task.max_steps,
            "actions": [str(action) for action in task.actions],
            "scene": header.scene.name,
            "placed": None if header.placement is None else str(header.placement),
        }
        if self.shows_map:
            self.put("map", map_picture(header.scene.map))
            self.put("extent", _extent(header))

    @override
    def on_step(self, record: StepRecord) -> None:
        self._record = record
        self.show(record.frame)
        self._path.append([round(record.pose.pose.x_m, 3), round(record.pose.pose.y_m, 3)])
        if self.shows_map:
            self.put("path", {"points": self._path[:]})
        self._facts |= {
            "step": record.index,
            "action": None if record.action is None else str(record.command or record.action),
            "outcome": None if record.result is None else record.result.outcome.value,
            "offset_to_goal": _goal_offset(record, self._goal_form),
        }

    @override
    def on_event(self, event: Event) -> None:
        if event.kind in ("lost", "paused"):
            self._lost = event.detail or event.kind
        elif event.kind in ("regained", "resumed"):
            self._lost = ""

    @override
    def on_episode_end(self, end: EpisodeEnd) -> None:
        self._facts |= {"stage": "over", "end": end.reason.value, "end_detail": end.detail}

    # --- the threads of the feed ------------------------------------------------------------------------------------

    def _watch(self) -> None:
        asked: Stopwatch | None = None
        while not self._ended.wait(1 / STATE_HZ):
            state = self._state()
            lines = alerts(state)
            for kind in lines.keys() - self._alerts.keys():
                self._notify(f"{self._robot.name}: {lines[kind]}")
            self._alerts = lines
            self.put("state", state | {"alerts": [{"kind": kind, "text": text} for kind, text in self._alerts.items()]})
            if self._campaign is not None and (asked is None or asked.elapsed_s() >= CAMPAIGN_S):
                asked = Stopwatch()
                self.put("campaign", _campaign(self._campaign))
            sending = self._sending
            if sending is not None and sending.elapsed_s() > FROZEN_S:
                self._lose("its process takes nothing any more")

    def _send_all(self) -> None:
        shown: RgbdFrame | None = None
        since = Stopwatch()
        while not self._ended.is_set() and not self._is_lost:
            with self._news:
                self._news.wait_for(lambda: self._waiting, 1 / STATE_HZ)
                waiting, self._waiting = self._waiting, {}
            frame = self._frame
            if frame is not None and frame is not shown and self.viewers and since.elapsed_s() >= 0.8 / RATE_HZ:
                since.restart()
                shown = frame
                every = max(1, frame.depth_m.shape[1] // DEPTH_WIDTH)
                shown_m = (
                    None
                    if self._supervision.view == "camera"
                    else np.ascontiguousarray(frame.depth_m[::every, ::every])
                )
                waiting["frame"] = (frame.rgb, shown_m)
            for kind, content in waiting.items():
                self._send(kind, content)

    def _send(self, kind: str, content: Any) -> None:
        self._sending = Stopwatch()
        try:
            pipe.send(self._connection, (kind, content))
        except OSError:
            if not self._ended.is_set():
                self._lose("its process has ended")
        finally:
            self._sending = None

    def _lose(self, why: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._on_lost(
                f"the console's page is not served any more: {why}; run, recording and the pages' STOP go on, "
                "`robot-runtime stop` stops the robot, too"
            )

    def _state(self) -> dict[str, Any]:
        base, record, supervision = self._stops.state(), self._record, self._supervision
        state = {
            **self._facts,
            "e_stop": None if base is None else base.halt is Halt.E_STOP,
            "stop_reason": self._stops.reason,
            "base": None if base is None else self._base(base),
            "frame_age_s": None if self._frame is None else round(self._frame_age.elapsed_s(), 2),
            "pose": None,
            "lost": self._lost,
            "offset": self._offset,
            "paused": supervision.paused,
            "waits": supervision.waits,
            "steers": supervision.steers,
            "continuous": supervision.continuous,
            "asks": supervision.inbox.waits,
            "taken_over": supervision.taken_over,
            "interventions": len(supervision.interventions),
            "operator": supervision.operator,
            "disk": self._disk_left(),
        }
        if record is not None and self.shows_map:
            state["pose"] = _pose(record.pose, record.base, base)
        return state

    def _disk_left(self) -> dict[str, Any] | None:
        """Free space where the log is written, and minutes until it is used up."""
        path = self._log()
        if path is None:
            return None
        try:
            free = shutil.disk_usage(path.parent).free
        except OSError:  # the folder is gone: the recorder reports it
            return None
        self._disk.add(self._uptime.elapsed_s(), free)
        return {"free_gb": round(free / 1e9, 1), "minutes": _minutes(self._disk.left_s())}

    def _base(self, base: BaseState) -> dict[str, Any]:
        self._battery.add(ns_to_seconds(base.stamp_ns), base.battery_fraction)
        return {
            "age_s": round(ns_to_seconds(self._robot.clock.now_ns() - base.stamp_ns), 3),
            "speed": [round(base.velocity.linear_m_s, 3), round(base.velocity.angular_rad_s, 3)],
            "bumper": _zones(base.bumper),
            "cliff": _zones(base.cliff),
            "wheel_drop": _zones(base.wheel_drop),
            "halt": base.halt.value,
            "battery": base.battery,
            "battery_fraction": None if math.isnan(base.battery_fraction) else round(base.battery_fraction, 3),
            "battery_minutes": _minutes(self._battery.left_s()),
        }


def _minutes(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds / 60)


def _campaign(status: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The part of a campaign's status that the page shows; the reason if there is none."""
    try:
        fields = status()
    except RuntimeFault as error:
        fields = dict.fromkeys(CAMPAIGN) | {"title": "campaign", "answer": error.message}
    return {name: fields[name] for name in CAMPAIGN if name in fields}


def map_picture(occupancy: OccupancyMap) -> Any:
    """A map as gray picture, uint8 (rows, columns), the largest y on top."""
    table = np.zeros(3, np.uint8)
    for cell, gray in _GRAY.items():
        table[cell] = gray
    return np.ascontiguousarray(table[occupancy.cells][::-1])


def _extent(header: EpisodeHeader) -> dict[str, Any]:
    occupancy, rows = header.scene.map, header.scene.map.cells.shape[0]
    left, bottom, resolution = occupancy.origin_x_m, occupancy.origin_y_m, occupancy.resolution_m
    return {
        "left_m": left,
        "top_m": bottom + rows * resolution,
        "resolution_m": resolution,
        "radius_m": header.task.robot_radius_m,
        "rooms": [
            [
                room.category.replace("_", " "),
                *(round(float(np.mean(axis)), 2) for axis in zip(*room.polygon, strict=True)),
            ]
            for room in header.scene.file.rooms
        ],
        "origin": None if header.origin is None else header.origin.frame,
    }


def _zones(zone: Zone) -> list[str]:
    return [part.name.lower() for part in (Zone.LEFT, Zone.CENTER, Zone.RIGHT) if part in zone and part.name]


def _pose(estimate: PoseEstimate, at_step: BaseState, now: BaseState | None) -> list[float]:
    """Pose in the map, carried on by odometry since the step, and one standard deviation of the position."""
    pose: SE2 = estimate.pose if now is None else estimate.pose @ now.odom.relative_to(at_step.odom)
    deviation_m = math.sqrt(max(0.0, float(estimate.covariance[0, 0] + estimate.covariance[1, 1]) / 2))
    return [round(value, 3) for value in (pose.x_m, pose.y_m, pose.yaw_rad, deviation_m)]


def _offset(offset: Offset, tolerance: Tolerance) -> dict[str, Any]:
    return {
        "ahead_m": round(offset.ahead_m, 3),
        "left_m": round(offset.left_m, 3),
        "turn_deg": round(math.degrees(offset.turn_rad), 1),
        "within_m": tolerance.within_m,
        "within_deg": tolerance.within_deg,
        "near": offset.distance_m <= tolerance.within_m,
        "turned": abs(offset.turn_rad) <= tolerance.within_rad,
    }


def _goal_offset(record: StepRecord, form: str) -> list[float] | None:
    """Distance and direction (left positive, degrees) of the goal, where the task gives them to its agents."""
    observation = record.observation
    if not all(name in observation for name in ("pointgoal", "gps", "compass")):
        return None
    forward_m, left_m = offset_to_goal(observation, form)
    bearing_rad = math.atan2(left_m, forward_m) - float(observation["compass"][0])
    return [round(math.hypot(forward_m, left_m), 2), round(math.degrees(math.remainder(bearing_rad, 2 * math.pi)), 0)]
