"""Tracker of object poses received over UDP: ``driver: drivers.object_tracker.driver.make_tracker``."""

import difflib
import socket
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from drivers.object_tracker.protocol import MAX_DATAGRAM, Sighting, decode
from robot_runtime.common import config
from robot_runtime.common.clock import ns_to_seconds, seconds_to_ns
from robot_runtime.common.geometry import SE2
from robot_runtime.common.quantities import Rate
from robot_runtime.common.threads import background
from robot_runtime.errors import ConfigError, DeviceFault, NotConnected, StaleData
from robot_runtime.hal import ObjectTracker, Robot, TrackerInfo
from robot_runtime.robots.loader import RobotContext
from robot_runtime.scenes.objects import ObjectPose, ObjectSource, TrackedObjects

POLL_S = 0.1
"""Time limit of a receive, and so of closing."""


@dataclass(frozen=True)
class TrackerOptions(config.Strict):
    """The ``options`` of a tracker in a robot's YAML file.

    Attributes:
        host: address to listen on; 0.0.0.0 is every interface.
        port: UDP port to listen on.
        objects: ids that must be tracked; empty for every object from its first pose on.
        rate_hz: rate of each object's poses, for information.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 7420
    objects: tuple[str, ...] = ()
    rate_hz: Rate = 30.0


@dataclass(frozen=True, slots=True)
class _Latest:
    """The newest pose of an object, or what is wrong with its newest message."""

    stamp_ns: int
    pose: ObjectPose | None
    fault: str


def make_tracker(robot: Robot, context: RobotContext, options: Mapping[str, Any], where: str) -> ObjectTracker:
    """Return the tracker, disconnected.

    Raises:
        ConfigError: a bad option, or an object that the scene does not have.
    """
    chosen = config.parse(dict(options), TrackerOptions, where)
    scene = context.scene
    known: frozenset[str] = frozenset()
    frames: dict[str, SE2] = {}
    if scene is not None:
        known = frozenset(item.id for item in (*scene.objects, *context.added_objects) if item.movable)
        frames = {name: scene.file.frames.pose(name) for name in scene.file.frames.named}
        for name in chosen.objects:
            if name not in known:
                raise ConfigError(f"{where}: objects: {_unknown(name, known)}", "name movable objects of the scene")
    return UdpObjectTracker(robot, chosen, known, frames)


class UdpObjectTracker(ObjectTracker):
    """Tracker with the newest pose of every object.

    An invalid message (NaN, an unknown object or frame, no JSON) is not ignored: reading raises ``DeviceFault`` until a
    valid message about that object comes, or, if it names no known object, until the message is too old.
    """

    def __init__(self, robot: Robot, options: TrackerOptions, known: frozenset[str], frames: Mapping[str, SE2]) -> None:
        self._robot, self._clock = robot, robot.clock
        self._options, self._known = options, known
        self._frames = {"map": SE2(), **frames}
        self._info = TrackerInfo(f"udp {options.host}:{options.port}", ObjectSource.TRACKER, options.rate_hz)
        self._lock = threading.Lock()
        self._latest: dict[str, _Latest] = {}
        self._invalid_message: _Latest | None = None
        self._socket: socket.socket | None = None
        self._opened = ExitStack()

    @property
    def info(self) -> TrackerInfo:
        return self._info

    @property
    def port(self) -> int:
        """The port, chosen by the system if the option is 0. Raises ``NotConnected``."""
        return int(self._require_socket().getsockname()[1])

    def connect(self) -> None:
        if self._socket is not None:
            return
        address = (self._options.host, self._options.port)
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            receiver.bind(address)
        except OSError as error:
            receiver.close()
            raise DeviceFault(
                f"object tracker: cannot listen on {address[0]}:{address[1]}: {error.strerror}",
                "choose another 'port' in the robot's YAML, or end the program that uses it",
            ) from error
        receiver.settimeout(POLL_S)
        self._socket = receiver
        self._opened.enter_context(receiver)
        self._opened.enter_context(background(partial(self._receive, receiver), "object tracker", 2 * POLL_S + 1.0))

    def close(self) -> None:
        self._opened.close()
        self._socket = None
        with self._lock:
            self._latest.clear()
            self._invalid_message = None

    def objects(self, max_age_s: float) -> TrackedObjects:
        self._require_socket()
        hand = self._robot.manipulator
        held = hand.held if hand is not None else ()
        with self._lock:
            seen, noise = dict(self._latest), self._invalid_message
        now_ns = self._clock.now_ns()
        if noise is not None and now_ns - noise.stamp_ns <= seconds_to_ns(max_age_s):
            raise DeviceFault(f"{self._info.name}: {noise.fault}", "fix the pose publisher")
        wanted = [name for name in self._options.objects or seen if name not in held]
        poses = {name: self._pose_of(name, seen.get(name), now_ns, max_age_s) for name in wanted}
        stamps = [seen[name].stamp_ns for name in wanted]
        return TrackedObjects(min(stamps, default=now_ns), poses, held)

    def _pose_of(self, name: str, seen: _Latest | None, now_ns: int, max_age_s: float) -> ObjectPose:
        age_s = float("inf") if seen is None else ns_to_seconds(now_ns - seen.stamp_ns)
        if seen is None or not age_s <= max_age_s:
            when = (
                "has not been seen yet" if seen is None else f"was seen {age_s:.2f} s ago, {max_age_s:g} s is allowed"
            )
            raise StaleData(f"{self._info.name}: object {name!r} {when}", "check that its marker is in view and sent")
        if seen.pose is None:
            raise DeviceFault(f"{self._info.name}: object {name!r}: {seen.fault}", "fix the pose publisher")
        return seen.pose

    def _require_socket(self) -> socket.socket:
        if self._socket is None:
            raise NotConnected("object tracker: is not connected", "call connect() before using it")
        return self._socket

    def _receive(self, receiver: socket.socket, ended: threading.Event) -> None:
        while not ended.is_set():
            try:
                datagram = receiver.recv(MAX_DATAGRAM)
            except TimeoutError:
                continue
            except OSError as error:
                self._report_invalid(f"the network failed: {error.strerror}")
                return
            try:
                sightings = decode(datagram)
            except ConfigError as error:
                self._report_invalid(error.message)
                continue
            for sighting in sightings:
                self._take(sighting)

    def _take(self, sighting: Sighting) -> None:
        name, now_ns = sighting.object, self._clock.now_ns()
        if self._known and name not in self._known:
            self._report_invalid(_unknown(name, self._known))
            return
        fault = sighting.fault
        if fault is None and sighting.frame not in self._frames:
            fault = f"the scene has no frame {sighting.frame!r}, but {', '.join(self._frames)}"
        if fault is not None:
            seen = _Latest(now_ns, None, fault)
        else:
            pose = sighting.pose.moved(self._frames[sighting.frame])
            seen = _Latest(now_ns - seconds_to_ns(sighting.age_s), pose, "")
        with self._lock:
            before = self._latest.get(name)
            # Datagrams may arrive out of order.
            if before is None or before.pose is None or seen.stamp_ns >= before.stamp_ns:
                self._latest[name] = seen

    def _report_invalid(self, fault: str) -> None:
        with self._lock:
            self._invalid_message = _Latest(self._clock.now_ns(), None, fault)


def _unknown(name: str, known: frozenset[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=3)
    return f"there is no movable object {name!r}" + (f"; did you mean {', '.join(close)}?" if close else "")
